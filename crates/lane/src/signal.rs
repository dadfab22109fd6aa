//! Sleeping and waking without losing a wake-up.
//!
//! A receiver has a **watch** word, which only it writes and which every sender looks at after announcing a message:
//! 0 while the receiver is awake, the number of a bell plus one while it sleeps, or "closed". A sleeping
//! thread has a **bell**: a counter that anyone may raise and on which the thread waits (a futex). A wrong
//! ring costs a wasted look, so bells may have many writers; messages may not.
//!
//! | receiver | sender |
//! | --- | --- |
//! | 1. read the bell | 1. announce the message |
//! | 2. watch ← my bell | 2. fence |
//! | 3. fence | 3. read the watch: if a bell, raise and wake it |
//! | 4. look for messages: if any, do not sleep | |
//! | 5. sleep while the bell is as read in 1 | |
//!
//! The two fences make it impossible that both the receiver misses the message in 4 and the sender misses the
//! watch in 3. If the sender sees the watch, it raises the bell after 1, so 5 does not sleep.

use crate::region::Region;
use crate::sync::{AtomicU32, Ordering, fence};

/// The word by which a receiver tells its senders whether it sleeps.
#[derive(Clone, Debug)]
pub struct Watch {
    region: Region,
    index: usize,
}

/// What a sender finds in a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The receiver is awake: nothing to do.
    Awake,
    /// The receiver sleeps: raise and wake this bell of its process.
    Bell(u32),
    /// The receiver is gone: nobody will read the message.
    Closed,
}

/// The counter on which one thread sleeps.
#[derive(Clone, Debug)]
pub struct Bell {
    region: Region,
    index: usize,
}

const AWAKE: u32 = 0;
const CLOSED: u32 = u32::MAX;

impl Watch {
    /// The watch at 4-byte index `index` of a region.
    #[must_use]
    pub fn new(region: Region, index: usize) -> Self {
        Self { region, index }
    }

    /// Receiver: from now on senders must raise `bell`. Look for messages after this, before sleeping.
    pub fn announce_sleep(&self, bell: u32) {
        self.word().store(bell + 1, Ordering::Relaxed);
        // Pairs with the fence in `call_after_publish`.
        fence(Ordering::SeqCst);
    }

    /// Receiver: senders need not call any more.
    pub fn announce_awake(&self) {
        self.word().store(AWAKE, Ordering::Relaxed);
    }

    /// Receiver: nobody will read any more.
    pub fn announce_closed(&self) {
        self.word().store(CLOSED, Ordering::Release);
    }

    /// What the watch says now.
    #[inline]
    #[must_use]
    pub fn call(&self) -> Call {
        match self.word().load(Ordering::Acquire) {
            AWAKE => Call::Awake,
            CLOSED => Call::Closed,
            bell => Call::Bell(bell - 1),
        }
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        self.region.word32(self.index)
    }
}

/// Sender: whom to call after having announced a message.
#[inline]
#[must_use]
pub fn call_after_publish(watch: &Watch) -> Call {
    // Pairs with the fence in `Watch::announce_sleep`.
    fence(Ordering::SeqCst);
    watch.call()
}

impl Bell {
    /// The bell at 4-byte index `index` of a region that every sender may write.
    #[must_use]
    pub fn new(region: Region, index: usize) -> Self {
        Self { region, index }
    }

    /// The bell's count. Read it before [`Watch::announce_sleep`]; sleep while [`Bell::word`] equals it.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.word().load(Ordering::Acquire)
    }

    /// Raises the bell. The caller then wakes whoever sleeps on [`Bell::word`].
    pub fn raise(&self) {
        self.word().fetch_add(1, Ordering::Release);
    }

    /// The word to sleep on.
    #[must_use]
    pub fn word(&self) -> &AtomicU32 {
        self.region.word32(self.index)
    }
}
