//! The lane of one mailbox of this OS process. All threads that post to the mailbox write there, and only its owner reads: so a post goes
//! to its mailbox, and not through the hands of another thread that waits for something else.

use core::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use mizzen_lane::{Call, Peek, Refused, SHORT_MAX, SharedProducer, Watch, call_quietly};

use crate::counters::Counter;
use crate::lock::lock;
use crate::message::{Encoded, Flags, Payload};

/// The sending end.
pub(crate) struct MailboxLane {
    producer: SharedProducer,
    /// How far the owner of the mailbox has read.
    peek: Peek,
    ending: Arc<Ending>,
    /// Gives back what was lent with a message that nobody read.
    discard: Box<Discard>,
}

type Discard = dyn Fn(Flags, &Payload) + Send + Sync;

/// Whether the owner of the mailbox still reads the lane.
#[derive(Debug)]
pub(crate) struct Ending {
    state: AtomicU8,
    lane: SharedProducer,
}

impl Ending {
    const OPEN: u8 = 0;
    /// The owner discards what is there. What is announced later, it may not see.
    const BEGUN: u8 = 1;
    /// It has, and reads no more.
    const OVER: u8 = 2;

    pub(crate) fn of(lane: SharedProducer) -> Self {
        Self {
            state: AtomicU8::new(Self::OPEN),
            lane,
        }
    }

    /// The owner begins to discard what is in the lane. It then makes a fence in all threads, before it looks.
    pub(crate) fn begin(&self) {
        self.state.store(Self::BEGUN, Ordering::SeqCst);
    }

    /// Up to which slot the owner has to look after that fence: whoever has claimed a later one sees that the end has begun. A slot
    /// before it may still be written to, while those behind it are there.
    pub(crate) fn bound(&self) -> u32 {
        self.lane.claimed()
    }

    /// The owner will not read any more.
    pub(crate) fn end(&self) {
        // Release pairs with the acquire in `is`: how far it has read is known.
        self.state.store(Self::OVER, Ordering::Release);
    }

    #[inline]
    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::Acquire) == state
    }
}

/// How many messages of a peer came over lanes of our mailboxes.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    open: Mutex<Vec<(Arc<Ending>, Peek)>>,
    /// Over those that are closed.
    before: Counter,
}

impl Taken {
    pub(crate) fn add(&self, lane: &Arc<Ending>, peek: Peek) {
        lock(&self.open).push((Arc::clone(lane), peek));
    }

    pub(crate) fn end(&self, lane: &Arc<Ending>) {
        let mut open = lock(&self.open);
        if let Some(at) = open.iter().position(|(other, _)| Arc::ptr_eq(lane, other)) {
            let (_, peek) = open.swap_remove(at);
            self.before.add(peek.taken());
        }
    }

    pub(crate) fn count(&self) -> u64 {
        let open = lock(&self.open);
        let taken: u64 = open.iter().map(|(_, peek)| peek.taken()).sum();
        self.before.get() + taken
    }
}

impl MailboxLane {
    pub(crate) fn new(
        producer: SharedProducer,
        peek: Peek,
        ending: Arc<Ending>,
        discard: impl Fn(Flags, &Payload) + Send + Sync + 'static,
    ) -> Self {
        Self {
            producer,
            peek,
            ending,
            discard: Box::new(discard),
        }
    }

    /// Whether the mailbox is closed.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.ending.is(Ending::OVER)
    }

    /// How many messages were posted.
    pub(super) fn sent(&self) -> u64 {
        self.producer.sent()
    }

    /// Posts if there is room, and has the owner of the mailbox woken by its bell if it sleeps.
    #[inline]
    pub(super) fn attempt(
        &self,
        watch: &Watch,
        message: &impl Encoded,
        wake: impl FnOnce(u32),
    ) -> Result<(), Refused> {
        let flags = message.flags();
        let short = message.with_short(SHORT_MAX, |bytes| {
            self.producer.try_short_alone(flags.0, bytes)
        });
        let published = match short {
            Some(published) => published?,
            None => self.producer.try_eager(flags.0, 0, message)?,
        };
        // Whoever fills a gap wakes the same owner as those who announced behind it.
        if let Call::Bell(bell) = call_quietly(watch) {
            wake(bell);
        }
        if !self.ending.is(Ending::OPEN) {
            self.clear_away(published.position(), message);
        }
        Ok(())
    }

    /// The owner closed the mailbox meanwhile. If it did not come to this message, what the message lent is given back here.
    #[cold]
    fn clear_away(&self, position: u32, message: &impl Encoded) {
        while !self.is_over() {
            std::thread::yield_now();
        }
        let is_read = position.wrapping_sub(self.peek.passed() as u32) > u32::MAX / 2;
        if is_read {
            return;
        }
        let mut bytes = Vec::with_capacity(message.len());
        message.each(|part| bytes.extend_from_slice(part));
        (self.discard)(message.flags(), &Payload::Owned(bytes));
    }
}

impl fmt::Debug for MailboxLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MailboxLane")
            .field("sent", &self.sent())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread;

    use mizzen_lane::{Arrival, Region, Ring, Shape};

    use super::*;
    use crate::message::{Mark, Single};

    /// Posts to a mailbox whose owner sleeps, and does `meanwhile` what is done between the announcement of the message and the look
    /// at whether the mailbox is closed. How many messages were discarded by who posted.
    fn discarded_if(meanwhile: impl FnOnce(&Ending, &mut mizzen_lane::Consumer)) -> u32 {
        let (producer, mut consumer) = Ring::heap(Shape::new(4, 256)).shared_ends_calling(|_| ());
        let ending = Arc::new(Ending::of(producer.clone()));
        let discarded = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&discarded);
        let discard = move |_, payload: &Payload| {
            assert_eq!(payload.len(), 3);
            count.fetch_add(1, Ordering::Relaxed);
        };
        let lane = MailboxLane::new(producer, consumer.peek(), Arc::clone(&ending), discard);
        let watch = Watch::new(Region::heap(64), 0, None);
        watch.announce_sleep(0);
        let message = Single(b"one", Mark::of::<u8>());
        let wake = |_| meanwhile(&ending, &mut consumer);
        lane.attempt(&watch, &message, wake).unwrap();
        discarded.load(Ordering::Relaxed)
    }

    #[test]
    fn who_posts_too_late_to_be_read_discards_its_message() {
        let discarded = discarded_if(|ending, _| {
            ending.begin();
            ending.end();
        });
        assert_eq!(discarded, 1);
    }

    #[test]
    fn what_the_owner_came_to_is_not_discarded_twice() {
        let discarded = discarded_if(|ending, consumer| {
            ending.begin();
            assert!(matches!(consumer.poll(), Ok(Some(Arrival::Short(_)))));
            ending.end();
        });
        assert_eq!(discarded, 0);
    }

    /// Bytes that are not written before they may be.
    struct Slow(Receiver<()>);

    impl mizzen_lane::Parts for Slow {
        fn len(&self) -> usize {
            200
        }

        fn each(&self, mut write: impl FnMut(&[u8])) {
            self.0.recv().unwrap();
            write(&[1; 200]);
        }
    }

    #[test]
    fn what_lies_behind_a_gap_is_within_the_bound() {
        let (producer, mut consumer) = Ring::heap(Shape::new(4, 1024)).shared_ends_calling(|_| ());
        let ending = Ending::of(producer.clone());
        let (go, may_go) = channel();
        thread::scope(|scope| {
            scope.spawn(|| producer.try_eager(0, 0, Slow(may_go)).map(drop).unwrap());
            while ending.bound() == 0 {
                thread::yield_now();
            }
            producer.try_short_alone(0, b"behind").unwrap();
            ending.begin();
            assert!(matches!(consumer.poll(), Ok(None)), "the first is missing");
            assert_eq!(ending.bound(), 2);
            go.send(()).unwrap();
        });
        assert!(matches!(consumer.poll(), Ok(Some(Arrival::Eager(_)))));
        assert!(matches!(consumer.poll(), Ok(Some(Arrival::Short(_)))));
    }

    #[test]
    fn what_is_posted_to_an_open_mailbox_is_left_to_its_owner() {
        assert_eq!(discarded_if(|_, _| ()), 0);
    }
}
