//! Bytes that wait to be written.

/// A queue of bytes in one piece: added at the end, taken from the front.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    bytes: Vec<u8>,
    start: usize,
}

impl Queue {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.bytes.len() + bytes.len() > self.bytes.capacity() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes `len` bytes out. Memory for more than a burst is given back.
    pub(crate) fn consume(&mut self, len: usize) {
        self.start += len;
        assert!(
            self.start <= self.bytes.len(),
            "consumed more than is queued"
        );
        if self.start == self.bytes.len() {
            self.start = 0;
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            } else {
                self.bytes.clear();
            }
        }
    }
}

/// An idle link keeps no more memory than this.
const KEPT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let mut queue = Queue::default();
        let (mut added, mut taken) = (0_usize, 0_usize);
        for round in 0..500_usize {
            for _ in 0..round % 7 {
                queue.push(&[added as u8]);
                added += 1;
            }
            let len = queue.len().min(round % 5);
            for &byte in &queue.bytes()[..len] {
                assert_eq!(byte, taken as u8);
                taken += 1;
            }
            queue.consume(len);
        }
        assert_eq!(queue.len(), added - taken);
    }

    #[test]
    fn an_empty_queue_keeps_little_memory() {
        let mut queue = Queue::default();
        queue.push(&[0; 100_000]);
        queue.consume(100_000);
        assert!(queue.is_empty() && queue.bytes.capacity() <= KEPT);
    }
}
