//! What one peer has borrowed of our arena, and what becomes of it when the peer ends.
//!
//! | the peer | blocks at the peer | memory of streams |
//! | --- | --- | --- |
//! | reads | come back through its table of returns | is kept for the next message, as far as it may leave some unread |
//! | left, or is cut off, and may still read | as above | is left to the arena, message by message, until it comes back |
//! | is dead | are ours at once | the same |
//!
//! A thread may hand over a block, or end a message, just while another notes the end. Each notes first and looks then, under
//! the arena's lock or that of the streams: whoever comes second does for both.

use crate::allowance::{Allowance, Waits};
use crate::arena::{Arena, Backing};
use crate::block::Block;
use crate::manifest::CHUNK;
use crate::returns::{Place, Returns};
use crate::revocations::Revocations;
use crate::supply::StreamOut;
use crate::sync::{Arc, AtomicBool, Mutex, MutexGuard, Ordering};
use crate::whereabouts::Ending;

/// A peer as the borrower of our blocks.
#[derive(Debug)]
pub struct Borrower<B: Backing> {
    holder: B::Holder,
    returns: Returns,
    revocations: Revocations,
    allowance: Arc<Allowance>,
    /// For as many threads as send a long message at once.
    streams: Mutex<Streams<B>>,
    /// Whether the peer's process does not exist any more.
    is_dead: AtomicBool,
}

#[derive(Debug)]
struct Streams<B: Backing> {
    idle: Vec<StreamOut<B>>,
    /// None is kept any more.
    ended: bool,
}

impl<B: Backing> Borrower<B> {
    /// The peer `holder`, which gives back our blocks in `returns`, and does not take over what we write into `revocations`.
    pub fn new(holder: B::Holder, returns: Returns, revocations: Revocations) -> Self {
        Self {
            holder,
            returns,
            revocations,
            allowance: Arc::new(Allowance::new(Arena::<B>::FIRST_MESSAGE)),
            streams: Mutex::new(Streams {
                idle: Vec::new(),
                ended: false,
            }),
            is_dead: AtomicBool::new(false),
        }
    }

    /// Where the peer gives back our blocks.
    pub fn returns(&self) -> &Returns {
        &self.returns
    }

    /// The ticket of `block` was sent to the peer, which has it from now on.
    pub fn hand_over(&self, arena: &Arena<B>, block: Block<B>) {
        block.hand_over(self.holder, self.returns.clone());
        self.reclaim_late(arena);
    }

    /// Others may hand on our blocks to the peer, or the peer to others: its place. `None`: there are too many of them.
    pub fn admit(&self, arena: &Arena<B>) -> Option<Place> {
        let place = arena.admit(self.holder, &self.returns, &self.revocations);
        self.reclaim_late(arena);
        place
    }

    /// Allows the peer to leave so many bytes of long messages unread before those who send more wait for it: at least 1 MiB
    /// and at most 1 GiB.
    pub fn set_allowance(&self, bytes: usize) {
        self.allowance.set(bytes);
    }

    /// How many bytes of long messages the peer may leave unread.
    pub fn allowance(&self) -> usize {
        self.allowance.limit() * CHUNK
    }

    /// How many bytes it has left unread, in whole chunks and with what is promised to messages that are being written.
    pub fn unread(&self) -> usize {
        self.allowance.unread() * CHUNK
    }

    /// The memory for one long message to the peer. [`keep`](Self::keep) it afterwards.
    pub fn stream(&self, arena: &Arc<Arena<B>>) -> StreamOut<B> {
        let idle = self.lock().idle.pop();
        idle.unwrap_or_else(|| {
            let (returns, allowance) = (self.returns.clone(), Arc::clone(&self.allowance));
            StreamOut::new(Arc::clone(arena), self.holder, returns, allowance)
        })
    }

    /// A message waits to begin: as long as this is there, those that are being written take no more than they need.
    pub fn wait(&self) -> Waits {
        Waits::new(&self.allowance)
    }

    /// Keeps the memory of a stream for the next message, unless the peer is gone.
    pub fn keep(&self, arena: &Arena<B>, mut stream: StreamOut<B>) {
        stream.rest();
        // Under the lock: whoever ends the peer takes what is here.
        let mut streams = self.lock();
        if streams.ended {
            drop(streams);
            drop(stream);
            self.reclaim_late(arena);
        } else {
            streams.idle.push(stream);
        }
    }

    /// Notes what the peer has read, and gives all memory that no message needs back to the arena.
    pub fn trim(&self) {
        self.lock().idle.retain_mut(|stream| {
            stream.trim();
            !stream.is_empty()
        });
    }

    /// The peer reads nothing that is sent from now on: nothing is kept for it.
    pub fn end(&self) {
        let idle = {
            let mut streams = self.lock();
            streams.ended = true;
            core::mem::take(&mut streams.idle)
        };
        // To the arena, message by message.
        drop(idle);
    }

    /// The peer's process is dead, and nobody reads what it had borrowed.
    pub fn reclaim(&self, arena: &Arena<B>, how: Ending) {
        // Before the arena takes back what there is: who hands over something later sees it.
        self.is_dead.store(true, Ordering::Release);
        arena.reclaim(self.holder, how);
    }

    /// What was handed over to a process that had died meanwhile is ours again.
    fn reclaim_late(&self, arena: &Arena<B>) {
        // Acquire pairs with the release in `reclaim`, through the arena's lock in between: who finds us too early there has
        // stored this before.
        if self.is_dead.load(Ordering::Acquire) {
            arena.reclaim(self.holder, Ending::Killed);
        }
    }

    /// Whether no memory is kept for streams that are not in use.
    pub fn is_idle(&self) -> bool {
        self.lock().idle.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Streams<B>> {
        self.streams
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
