//! Sleeping and waking without losing a wake-up.
//!
//! A receiver has a **watch** word, which only it writes and which every sender looks at after announcing a message:
//! 0 while the receiver is awake, the number of a bell plus one while it sleeps, or "closed". A sleeping
//! thread has a **bell**: a counter that anyone may raise and on which the thread waits (a futex). A needless
//! ring costs one wasted look, so bells may have many writers; messages may not.
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
//!
//! A fence per message is expensive: it waits until the announced line has come from the other core. So a receiver that can
//! (the system call `membarrier`) makes in 3 a fence in *all* threads of all processes that registered for it, and says
//! so by its watch: "awake, and quiet". A registered sender that reads this needs no fence of its own in 2
//! ([`call_quietly`]). Senders that do not know of it, and receivers that cannot, use fences as above; each pair agrees
//! by what is in the watch. Two senders cannot do without a fence *between each other*, so on a shared lane, where one
//! looks at the other's slot, both keep theirs.

use crate::region::Region;
use crate::shared::Published;
use crate::sync::{AtomicU32, Ordering, fence};

/// The word by which a receiver tells its senders whether it sleeps.
#[derive(Clone, Debug)]
pub struct Watch {
    region: Region,
    index: usize,
    /// Makes a fence in all threads of all registered processes, this one among them.
    everywhere: Option<fn()>,
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

/// Awake; senders make a fence before they look here. What a new watch holds.
const AWAKE: u32 = 0;
/// Awake; registered senders need not.
const QUIET: u32 = u32::MAX - 1;
const CLOSED: u32 = u32::MAX;

impl Watch {
    /// The watch at 4-byte index `index` of a region.
    ///
    /// `everywhere`, if this process is registered for it, makes a fence in all threads of all registered processes.
    #[must_use]
    pub fn new(region: Region, index: usize, everywhere: Option<fn()>) -> Self {
        Self {
            region,
            index,
            everywhere,
        }
    }

    /// Receiver: from now on senders must raise `bell`. Look for messages after this, before sleeping.
    pub fn announce_sleep(&self, bell: u32) {
        self.own_word().store(bell + 1, Ordering::Relaxed);
        // Pairs with the fence in `call_after_publish`.
        fence(Ordering::SeqCst);
        if let Some(everywhere) = self.everywhere {
            // Pairs with the program order of `call_quietly` in all registered threads.
            everywhere();
        }
    }

    /// Receiver: senders need not call any more.
    pub fn announce_awake(&self) {
        let awake = if self.everywhere.is_some() {
            QUIET
        } else {
            AWAKE
        };
        self.own_word().store(awake, Ordering::Relaxed);
    }

    /// Receiver: nobody will read any more.
    pub fn announce_closed(&self) {
        self.own_word().store(CLOSED, Ordering::Release);
    }

    /// What the watch says now.
    #[inline]
    #[must_use]
    pub fn call(&self) -> Call {
        match self
            .region
            .word32_unchecked(self.index)
            .load(Ordering::Acquire)
        {
            AWAKE | QUIET => Call::Awake,
            CLOSED => Call::Closed,
            bell => Call::Bell(bell - 1),
        }
    }

    /// The word as its owner sees it: a sender's view of it is read-only.
    #[inline]
    fn own_word(&self) -> &AtomicU32 {
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

/// Sender: as [`call_after_publish`], without a fence if both sides can do without. Not after publishing on a shared lane: see
/// [`is_awake_and_last`].
#[inline]
#[must_use]
pub fn call_quietly(watch: &Watch) -> Call {
    if watch.everywhere.is_some() {
        light_fence();
        if watch
            .region
            .word32_unchecked(watch.index)
            .load(Ordering::Relaxed)
            == QUIET
        {
            return Call::Awake;
        }
    }
    call_after_publish(watch)
}

/// Sender, after publishing on a shared lane: whether nobody need be called, found out without a fence. It takes that both sides can do
/// without, that the receiver is awake, and that nobody has claimed a slot after this one. Otherwise
/// [`call_after_publish`], and [`Published::following`].
///
/// Why nobody behind us is left asleep: the look at the claims is after our announcement, and a receiver makes a fence in all threads
/// between announcing its sleep and its last look. If that fence comes after our announcement, the receiver sees it. If it comes before,
/// the sleep was announced before our look at the claims, so whoever claims after that look sees the sleep, and rings.
#[inline]
#[must_use]
pub fn is_awake_and_last(watch: &Watch, published: &Published<'_>) -> bool {
    if watch.everywhere.is_none() {
        return false;
    }
    light_fence();
    let word = watch.region.word32_unchecked(watch.index);
    word.load(Ordering::Relaxed) == QUIET && published.is_last()
}

/// Keeps the compiler from moving the look at the watch before the announcement; the processor is kept by the receiver's
/// fence everywhere. Loom has no such fence, so that its models use one at both sides.
#[inline]
fn light_fence() {
    #[cfg(not(loom))]
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
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
