//! A long message that is read while its sender still writes it: waiting for more of it. How it goes is
//! `crates/lane/src/emptying.rs`.

use std::sync::Arc;
use std::time::Duration;

use mizzen_lane::{NoMore, StreamIn};
use mizzen_shm::pull::read_memory;

use super::memory::MemoryLink;
use super::pulling::Way;
use crate::error::UnpackError;
use crate::memory::LoanTicket;
use crate::message::Streaming;
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Contention, Noted, Patience, Step, spin};

/// How long to sleep when the sender, which is writing, makes no progress.
const NAP: Duration = Duration::from_micros(200);

/// The bytes of a message that may not all be there yet, and from whom they come.
pub(crate) struct Stream {
    bytes: StreamIn,
    /// The first bytes, if they are needed after the others: the table of the message's pieces.
    table: Vec<u8>,
    /// What was read is let go at once.
    reads_once: bool,
    link: Arc<MemoryLink>,
}

impl Stream {
    /// The message whose manifest is at `ticket` in the memory of `link`'s peer.
    pub(crate) fn open(link: &Arc<MemoryLink>, ticket: LoanTicket) -> Result<Self, UnpackError> {
        let region = link.slab(ticket.slab)?;
        let bytes = link.lender.open(region, ticket);
        let bytes = bytes.ok_or(UnpackError::Malformed)?;
        Ok(Self {
            reads_once: !bytes.holds_all(),
            bytes,
            table: Vec::new(),
            link: Arc::clone(link),
        })
    }

    /// Reads a message, all of it and for the last time, in its sender's memory, if it has just begun, and that has been faster. The way it
    /// goes if not, to be measured.
    fn pull(&mut self, target: &mut [u8]) -> Result<Pulled, UnpackError> {
        let len = self.len();
        // Not if most of it has been written already; what is all here is read even if its sender is gone.
        let mut is_early = self.here() <= len / 2;
        if is_early {
            self.look()?;
            is_early = self.here() <= len / 2;
        }
        let link = &self.link;
        let Some((way, pid)) = link.pulling.choose(len, is_early) else {
            return Ok(Pulled::No(None));
        };
        if !way.pulls {
            return Ok(Pulled::No(Some(way)));
        }
        let Some(offer) = self.bytes.take_offer() else {
            return Ok(Pulled::No(None));
        };
        if !read_memory(pid, offer.at, target, (offer.proof_at, offer.proof)) {
            link.pulling.refuse();
        } else if self.bytes.still_offered() {
            link.pulling.note(len, way);
            link.counts.note_pulled(len);
            return Ok(Pulled::All);
        }
        self.bytes.decline();
        Ok(Pulled::No(None))
    }

    fn gone(&self) -> UnpackError {
        match self.link.gone() {
            Some(gone) => UnpackError::PeerGone(gone),
            None => UnpackError::Malformed,
        }
    }
}

/// What became of reading a message in its sender's memory.
enum Pulled {
    All,
    /// It comes through chunks, and is measured.
    No(Option<Way>),
}

impl Streaming for Stream {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn here(&self) -> usize {
        self.bytes.here()
    }

    fn look(&mut self) -> Result<bool, UnpackError> {
        // Read before the manifest: what the sender wrote before it went is there then.
        let ended = self.link.fate.is_ended();
        let has_news = self.bytes.look(|slab| self.link.slab(slab))?;
        if ended && !has_news {
            return Err(self.gone());
        }
        Ok(has_news)
    }

    fn arrive(&mut self, until: usize) -> Result<(), UnpackError> {
        let contention = Contention::default();
        let mut patience = Patience::until(None, &contention);
        let mut noted = Noted::default();
        while self.here() < until {
            if self.look()? {
                patience = Patience::until(None, &contention);
                noted = Noted::default();
                continue;
            }
            spin(patience.quick_looks(), || self.bytes.has_news());
            if let Step::Sleep(_) = patience.step() {
                noted.keep(&mut patience, || {
                    let peer = self.link.peer;
                    let what = format!("for the rest of a message of rank {peer}");
                    WaitsFor::one(Kind::Message, peer.rank, what)
                });
                std::thread::sleep(NAP);
            }
        }
        Ok(())
    }

    fn copy_out(&self, at: usize, target: &mut [u8]) {
        let kept = self.table.get(at..).unwrap_or_default();
        let (first, rest) = target.split_at_mut(kept.len().min(target.len()));
        first.copy_from_slice(&kept[..first.len()]);
        self.bytes.copy_out(at + first.len(), rest);
    }

    fn copy_here(&mut self, at: usize, target: &mut [u8]) -> usize {
        if self.reads_once {
            // Before anybody waits for more: the sender may wait for it. What is skipped comes, and goes, in pieces too.
            self.bytes.release(at);
        }
        let now = self.here().saturating_sub(at).min(target.len());
        self.bytes.copy_out(at, &mut target[..now]);
        now
    }

    fn copy_coming(&mut self, mut at: usize, mut target: &mut [u8]) -> Result<(), UnpackError> {
        let mut way = None;
        if self.reads_once && self.holds_all() && at == 0 && target.len() == self.len() {
            match self.pull(target)? {
                Pulled::All => return Ok(()),
                Pulled::No(chosen) => way = chosen,
            }
        }
        while !target.is_empty() {
            let now = self.copy_here(at, target);
            if now == 0 {
                let here = self.here();
                self.arrive(if self.reads_once { here + 1 } else { at + 1 })?;
            }
            at += now;
            target = &mut target[now..];
        }
        if self.reads_once {
            self.bytes.release(at);
        }
        if let Some(way) = way {
            self.link.pulling.note(self.len(), way);
        }
        Ok(())
    }

    fn holds_all(&self) -> bool {
        self.bytes.holds_all()
    }

    fn read_once(&mut self) {
        self.reads_once = true;
    }

    fn is_spent(&self) -> bool {
        self.bytes.has_released()
    }

    fn arrive_table(&mut self, until: usize) -> Result<(), UnpackError> {
        self.arrive(until)?;
        let kept = self.table.len();
        if until > kept && !self.holds_all() {
            self.table.resize(until, 0);
            self.bytes.copy_out(kept, &mut self.table[kept..]);
        }
        Ok(())
    }

    fn table_len(&self) -> usize {
        self.table.len()
    }
}

impl From<NoMore<Self>> for UnpackError {
    fn from(why: NoMore<Self>) -> Self {
        match why {
            NoMore::Abandoned => Self::Retracted,
            NoMore::Malformed => Self::Malformed,
            NoMore::Slab(error) => error,
        }
    }
}

impl core::fmt::Debug for Stream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stream")
            .field("len", &self.len())
            .field("here", &self.here())
            .finish_non_exhaustive()
    }
}
