//! The memory that a message comes from and goes to.

/// One buffer, or two with [`separate`](Self::new): what is sent is then never rewritten.
pub(crate) struct Buffers {
    first: Vec<u8>,
    second: Option<Vec<u8>>,
}

impl Buffers {
    /// Buffers of `size` bytes, every page of which has been touched.
    pub(crate) fn new(size: usize, separate: bool) -> Self {
        Self {
            first: vec![1; size],
            second: separate.then(|| vec![1; size]),
        }
    }

    #[inline]
    pub(crate) fn outgoing(&self) -> &[u8] {
        &self.first
    }

    #[inline]
    pub(crate) fn incoming(&mut self) -> &mut [u8] {
        self.second.as_mut().unwrap_or(&mut self.first)
    }

    /// Writes as much of `mark` as fits to the start of what is sent next.
    pub(crate) fn mark(&mut self, mark: u64) {
        let len = self.first.len().min(8);
        self.first[..len].copy_from_slice(&mark.to_le_bytes()[..len]);
    }

    /// The mark of what was received last.
    pub(crate) fn marked(&self) -> u64 {
        let received = self.second.as_ref().unwrap_or(&self.first);
        let (mut mark, len) = ([0; 8], received.len().min(8));
        mark[..len].copy_from_slice(&received[..len]);
        u64::from_le_bytes(mark)
    }
}
