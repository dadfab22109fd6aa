//! Memory for what was asked for of long bodies and not unpacked yet, of all links and readers of this program together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes of a window while there is room for it: enough that a network is not idle while they are unpacked.
const WINDOW: usize = 2 << 20;
/// What every reader may have, however many there are.
const LEAST: usize = 64 << 10;
/// What all windows may have together that are longer than that.
const ALL: usize = 16 << 20;

/// The bytes of all windows that are longer than the least. Relaxed: it is only counted.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Memory for some bytes of a body.
#[derive(Debug)]
pub(super) struct Window {
    bytes: Vec<u8>,
    taken: usize,
}

impl Window {
    /// Memory for at most `most` bytes.
    pub(super) fn new(most: usize) -> Self {
        let len = WINDOW.min(most);
        let taken = TAKEN
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                taken.checked_add(len).filter(|taken| *taken <= ALL)
            })
            .map_or(0, |_| len);
        let len = if taken > 0 { len } else { LEAST.min(most) };
        Self {
            bytes: vec![0; len],
            taken,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        TAKEN.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_windows_together_are_bounded_and_nobody_has_none() {
        let many: Vec<Window> = (0..100).map(|_| Window::new(usize::MAX)).collect();
        let all: usize = many.iter().map(|window| window.bytes().len()).sum();
        assert!(all <= ALL + 100 * LEAST, "{all}");
        assert!(many.iter().all(|window| window.bytes().len() >= LEAST));
        assert_eq!(many[0].bytes().len(), WINDOW);
        drop(many);
        assert_eq!(Window::new(100).bytes().len(), 100);
        assert_eq!(Window::new(usize::MAX).bytes().len(), WINDOW);
    }
}
