//! Memory of long frames that were acknowledged, for those that are kept next. Fresh memory costs more than what is copied into it: the
//! system clears each page first.

/// Frames without contents, of all links of an engine.
#[derive(Debug, Default)]
pub(super) struct Spares {
    frames: Vec<Vec<u8>>,
    bytes: usize,
}

/// What they may be together: as much as one link keeps, so that a stream finds its own again.
const MOST: usize = 1 << 20;

impl Spares {
    /// Takes in a frame that nobody needs any more.
    pub(super) fn put(&mut self, frame: Vec<u8>) {
        if self.bytes + frame.capacity() <= MOST {
            self.bytes += frame.capacity();
            self.frames.push(frame);
        }
    }

    /// The last that was put in, or an empty one. It may be too short.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let frame = self.frames.pop().unwrap_or_default();
        self.bytes -= frame.capacity();
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_comes_out_and_there_is_a_bound() {
        let mut spares = Spares::default();
        assert_eq!(spares.take().capacity(), 0);
        for _ in 0..100 {
            spares.put(Vec::with_capacity(64 << 10));
        }
        let taken: Vec<_> = std::iter::repeat_with(|| spares.take())
            .take_while(|frame| frame.capacity() > 0)
            .collect();
        assert_eq!(taken.len(), MOST / (64 << 10));
        assert_eq!(spares.bytes, 0);
    }
}
