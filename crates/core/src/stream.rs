//! Long messages through memory, as their sender sees them: waits for the receiver when that has left too much unread, and shows
//! it the slabs. How the message then goes, and why two of them never wait for each other, is `crates/lane/src/filling.rs`.

use core::panic::Location;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use mizzen_lane::{Begun, Filling, NoBlock, Offer, Receiver, StreamOut};
use mizzen_shm::SegmentError;
use mizzen_shm::pull::proof;

use crate::error::{ArenaError, PostError};
use crate::link::MemoryLink;
use crate::links::WithLinks;
use crate::memory::{Memory, SlabId};
use crate::message::Encoded;
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Contention, Noted, Patience, Step, Until, spin};

/// The first nap of a sender that waits for its receiver to read. Most receivers that read at all have given some back by then.
const FIRST_NAP: Duration = Duration::from_micros(20);
/// The longest. Meanwhile a receiver that copies gives back some megabytes, and what may be unread is far more.
const LONGEST_NAP: Duration = Duration::from_millis(1);

impl MemoryLink {
    /// Sends a long message: announces it by `announce`, then writes it. Waits until the peer has read enough, before the
    /// message is announced and, if it is longer than what the peer may leave unread, while it is written. If that takes too
    /// long, an announced message is given up, of which its receiver hears.
    #[track_caller]
    pub(crate) fn stream(
        &self,
        around: &dyn WithLinks,
        message: &impl Encoded,
        until: Until,
        announce: impl FnOnce(&[u8]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let (len, rank) = (message.len(), self.peer.rank);
        if matches!(until, Until::Now) && len > self.borrower.allowance() {
            // It could not be written to its end without waiting.
            return Err(PostError::Busy { rank });
        }
        let links = around.links();
        let contention = Contention::default();
        let peer = Peer::new(self, around, until, &contention);
        let mut filling = self.begin(&peer, len)?;
        // Who reads the caller's memory is waited for, however long it takes.
        let may_offer = self.pulling.may_offer() && matches!(until, Until::Forever);
        let sole = message.sole().filter(|_| may_offer);
        let offered = sole.and_then(|sole| Some((sole, proof()?)));
        if let Some((sole, (proof_at, proof))) = offered {
            let at = sole.as_ptr().expose_provenance() as u64;
            let offer = Offer {
                at,
                proof_at,
                proof,
            };
            filling.offer(offer, self.pausing.looks(len));
        }
        let (stream, outcome) = self.fill(&peer, filling, message, announce);
        if offered.is_some() {
            self.pausing.note(len, stream.was_pulled());
        }
        self.borrower.keep(&links.arena, stream);
        self.take_back_unheard(&links.arena);
        links.tidy();
        if outcome.is_ok() {
            self.counts.note_long(len);
        }
        outcome
    }

    /// Waits until the peer has read enough for a message of `len` bytes to begin.
    fn begin(&self, peer: &Peer<'_>, len: usize) -> Result<Filling<Memory>, PostError> {
        let arena = &peer.around.links().arena;
        let mut stream = self.borrower.stream(arena);
        let mut waits = None;
        for tries in 0.. {
            stream = match stream.begin(len)? {
                Begun::Now(filling) => return Ok(filling),
                Begun::Full(stream) => stream,
            };
            waits.get_or_insert_with(|| self.borrower.wait());
            // What the peer has read of messages that other threads wrote.
            self.borrower.trim();
            if tries > 0 {
                if let Err(error) = peer.wait(tries - 1) {
                    self.borrower.keep(arena, stream);
                    return Err(error);
                }
            }
        }
        Err(self.gone_or_died())
    }

    fn fill(
        &self,
        peer: &Peer<'_>,
        mut filling: Filling<Memory>,
        message: &impl Encoded,
        announce: impl FnOnce(&[u8]) -> Result<(), PostError>,
    ) -> (StreamOut<Memory>, Result<(), PostError>) {
        let ticket = filling.ticket();
        let announced = peer
            .show(SlabId(ticket.slab))
            .and_then(|()| announce(&ticket.to_bytes()));
        if let Err(error) = announced {
            return (filling.withdraw(), Err(error));
        }
        // As long as it is wanted.
        let mut goes_on = Ok(true);
        message.each(|part| {
            if let Ok(true) = goes_on {
                goes_on = filling.write(part, peer);
            }
        });
        match goes_on {
            Ok(_) => (filling.finish(), Ok(())),
            Err(error) => (filling.abandon(), Err(error)),
        }
    }
}

/// The peer of a link, as the receiver of one message.
pub(crate) struct Peer<'a> {
    link: &'a MemoryLink,
    around: &'a dyn WithLinks,
    until: Until,
    contention: &'a Contention,
    patience: RefCell<Patience<'a>>,
    nap: Cell<Duration>,
    noted: RefCell<Noted>,
    /// Called from where.
    at: &'static Location<'static>,
}

impl<'a> Peer<'a> {
    #[track_caller]
    pub(crate) fn new(
        link: &'a MemoryLink,
        around: &'a dyn WithLinks,
        until: Until,
        contention: &'a Contention,
    ) -> Self {
        Self {
            link,
            around,
            until,
            contention,
            patience: RefCell::new(Patience::until(None, contention)),
            nap: Cell::new(FIRST_NAP),
            noted: RefCell::default(),
            at: Location::caller(),
        }
    }

    /// Whether there is time to wait.
    fn check_time(&self) -> Result<(), PostError> {
        let rank = self.link.peer.rank;
        match self.until {
            Until::Forever | Until::Taken => Ok(()),
            Until::Now => Err(PostError::Busy { rank }),
            // A receiver that reads slowly does not make it later.
            Until::Deadline(deadline) if Instant::now() >= deadline => {
                Err(PostError::TimedOut { rank })
            }
            Until::Deadline(_) => Ok(()),
        }
    }

    fn remark(&self, patience: &mut Patience<'_>) {
        let what = || {
            let (peer, unread) = (self.link.peer, self.link.borrower.unread() >> 20);
            format!(
                "for rank {peer} to read long messages: {unread} MiB that this process posted to it are unread, as much as may be"
            )
        };
        let waits = || {
            let peer = self.link.peer.rank;
            WaitsFor::one(Kind::Room, peer, what()).called_from(self.at)
        };
        self.noted.borrow_mut().keep(patience, waits);
        if let Some(waited) = patience.remarkable() {
            self.around.remark(waited, &what());
        }
    }
}

impl Receiver<Memory> for Peer<'_> {
    type Error = PostError;

    fn check(&self) -> Result<(), PostError> {
        if self.link.fate.is_ended() {
            return Err(self.link.gone_or_died());
        }
        Ok(())
    }

    fn show(&self, slab: SlabId) -> Result<(), PostError> {
        self.link.show_slab(&self.around.links().arena, slab)
    }

    /// Keeps our own lanes moving meanwhile: the peer may wait for us.
    fn wait(&self, in_vain: u32) -> Result<(), PostError> {
        let mut patience = self.patience.borrow_mut();
        if in_vain == 0 {
            *patience = Patience::until(self.until.deadline(), self.contention);
            self.nap.set(FIRST_NAP);
            self.noted.take();
        }
        self.check()?;
        self.check_time()?;
        self.around.pump_all();
        spin(patience.quick_looks(), || false);
        match patience.step() {
            Step::Again => (),
            Step::Sleep(most) => {
                self.remark(&mut patience);
                self.link.counts.sleeps.add(1);
                std::thread::sleep(self.nap.get().min(most));
                self.nap.set((self.nap.get() * 2).min(LONGEST_NAP));
            }
            Step::Expired(_) => {
                let rank = self.link.peer.rank;
                return Err(PostError::TimedOut { rank });
            }
        }
        Ok(())
    }
}

impl From<NoBlock<SegmentError>> for PostError {
    fn from(none: NoBlock<SegmentError>) -> Self {
        ArenaError::from(none).into()
    }
}
