//! How much of our long messages one peer may leave unread before its senders wait, and the numbers by which it gives them back.
//!
//! Each peer has its own: one that reads nothing stops those who send to it, and nobody else. Chunks are counted from when they
//! are promised to a message until the peer has given them back. The counts order nothing: the memory itself is passed on by the
//! table of returns and by the arena's lock.

use crate::arena::NUMBERS;
use crate::manifest::CHUNK;
use crate::returns::MOST_CHUNKS;
use crate::sync::{Arc, AtomicUsize, Mutex, MutexGuard, Ordering};

/// Bytes of long messages of this process that may be unread at one other, unless set otherwise.
pub const ALLOWANCE: usize = 64 << 20;

/// The least that can be allowed, 1 MiB: the table of a message's pieces must fit, which the reader needs as a whole.
const LEAST: usize = if cfg!(loom) { 1 } else { 16 };

/// What one peer may leave unread.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Chunks that may be unread.
    limit: AtomicUsize,
    /// Chunks that are unread, or promised to messages that are being written.
    unread: AtomicUsize,
    /// Messages that cannot begin because of it.
    waiting: AtomicUsize,
    numbers: Mutex<Numbers>,
}

/// Numbers of messages that are not in use.
#[derive(Debug)]
struct Numbers {
    free: Vec<Number>,
    next: u32,
}

/// The number of a message, and how often it was used.
#[derive(Debug)]
pub(crate) struct Number {
    pub(crate) number: u32,
    pub(crate) loan: u64,
}

impl Allowance {
    /// Numbers of messages begin at `first`.
    pub(crate) fn new(first: u32) -> Self {
        Self {
            limit: AtomicUsize::new(chunks_in(ALLOWANCE)),
            unread: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            numbers: Mutex::new(Numbers {
                free: Vec::new(),
                next: first,
            }),
        }
    }

    /// Allows so many bytes from now on.
    pub(crate) fn set(&self, bytes: usize) {
        self.limit.store(chunks_in(bytes), Ordering::Relaxed);
    }

    /// How many chunks may be unread.
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Promises so many chunks, if they may be unread too.
    pub(crate) fn try_promise(&self, chunks: usize) -> bool {
        let limit = self.limit();
        let more = |unread: usize| unread.checked_add(chunks).filter(|all| *all <= limit);
        self.unread
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Promises one more chunk to a message that could go on without, more slowly: others that wait come first.
    pub(crate) fn try_grow(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0 && self.try_promise(1)
    }

    /// So many chunks came back, or are not needed.
    pub(crate) fn give(&self, chunks: usize) {
        if chunks > 0 {
            self.unread.fetch_sub(chunks, Ordering::Relaxed);
        }
    }

    /// A number for a message. `None`: all are in use.
    pub(crate) fn take_number(&self) -> Option<Number> {
        let mut numbers = self.lock();
        if let Some(number) = numbers.free.pop() {
            return Some(number);
        }
        let first = numbers.next;
        let is_left = (first as usize) < NUMBERS;
        is_left.then(|| {
            numbers.next += 1;
            Number {
                number: first,
                loan: 0,
            }
        })
    }

    /// Takes back numbers of messages that the peer has given back.
    pub(crate) fn give_numbers(&self, numbers: impl IntoIterator<Item = Number>) {
        self.lock().free.extend(numbers);
    }

    /// Chunks that are unread or promised.
    pub(crate) fn unread(&self) -> usize {
        self.unread.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.numbers
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A message that waits to begin. While there is one, others that are long do not take more than they need to go on.
#[derive(Debug)]
pub struct Waits(Arc<Allowance>);

impl Waits {
    pub(crate) fn new(allowance: &Arc<Allowance>) -> Self {
        allowance.waiting.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(allowance))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

fn chunks_in(bytes: usize) -> usize {
    bytes.div_ceil(CHUNK).clamp(LEAST, MOST_CHUNKS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_promised_than_is_allowed() {
        let allowance = Arc::new(Allowance::new(7));
        allowance.set(0);
        assert_eq!(allowance.limit(), LEAST);
        assert!(!allowance.try_promise(LEAST + 1) && !allowance.try_promise(usize::MAX));
        assert!(allowance.try_promise(LEAST - 1));
        let waits = Waits::new(&allowance);
        assert!(!allowance.try_grow(), "others wait");
        drop(waits);
        assert!(allowance.try_grow() && !allowance.try_grow());
        allowance.give(LEAST);
        assert_eq!(allowance.unread(), 0);
        allowance.set(usize::MAX);
        assert_eq!(allowance.limit(), MOST_CHUNKS);
    }

    #[test]
    fn numbers_are_used_again_and_bounded() {
        let first = NUMBERS as u32 - 2;
        let allowance = Allowance::new(first);
        let numbers = [(); 2].map(|()| allowance.take_number().unwrap());
        assert!(allowance.take_number().is_none());
        allowance.give_numbers(numbers);
        assert_eq!(allowance.take_number().unwrap().number, first + 1);
        const { assert!(ALLOWANCE / CHUNK <= crate::arena::MAX_MESSAGES) };
    }
}
