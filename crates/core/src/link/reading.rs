//! A long message that is read while its sender still writes it: see `stream.rs`.

use std::sync::Arc;
use std::time::Duration;

use mizzen_lane::Region;

use super::memory::MemoryLink;
use crate::error::UnpackError;
use crate::memory::{Arena, CHUNK, Loan, LoanTicket, Manifest};
use crate::message::Streaming;
use crate::wait::{Crowd, Patience, Step, spin};

/// How long to sleep when the sender, which is writing, makes no progress.
const NAP: Duration = Duration::from_micros(200);

/// The bytes of a message that may not all be there yet. Dropping it gives back its chunks, read or not.
pub(crate) struct Stream {
    /// Before the manifest: with that, all chunks are given back.
    chunks: Vec<Option<Loan>>,
    here: usize,
    manifest: Manifest,
    _given_back_last: Loan,
    link: Arc<MemoryLink>,
    /// The slab that was needed last: it often is the next one too.
    slab: Option<(u32, Region)>,
}

impl Stream {
    /// The message whose manifest is at `ticket` in the memory of `link`'s peer.
    pub(crate) fn open(link: &Arc<MemoryLink>, ticket: LoanTicket) -> Result<Self, UnpackError> {
        let region = link.slab(ticket.slab)?;
        let len = usize::try_from(ticket.len).map_err(|_| UnpackError::Malformed)?;
        if len > Arena::LONGEST_MESSAGE {
            return Err(UnpackError::Malformed);
        }
        let offset = usize::try_from(ticket.offset).map_err(|_| UnpackError::Malformed)?;
        let manifest = Manifest::new(region.clone(), offset, len).ok_or(UnpackError::Malformed)?;
        let block = LoanTicket {
            len: Manifest::bytes(len) as u64,
            ..ticket
        };
        let slab = Some((ticket.slab, region.clone()));
        let given_back_last =
            Loan::new(region, block, link.returns.clone()).ok_or(UnpackError::Malformed)?;
        Ok(Self {
            chunks: Vec::new(),
            here: 0,
            manifest,
            _given_back_last: given_back_last,
            link: Arc::clone(link),
            slab,
        })
    }

    /// Notes that the first `filled` bytes are here.
    fn take_in(&mut self, filled: usize) -> Result<(), UnpackError> {
        while self.chunks.len() * CHUNK < filled {
            let ticket = self.manifest.chunk(self.chunks.len());
            let region = self.slab(ticket.slab)?;
            let chunk = Loan::new(region, ticket, self.link.returns.clone());
            self.chunks.push(Some(chunk.ok_or(UnpackError::Malformed)?));
        }
        self.here = filled;
        Ok(())
    }

    fn slab(&mut self, slab: u32) -> Result<Region, UnpackError> {
        match &self.slab {
            Some((known, region)) if *known == slab => Ok(region.clone()),
            _ => {
                let region = self.link.slab(slab)?;
                self.slab = Some((slab, region.clone()));
                Ok(region)
            }
        }
    }

    /// The bytes before `at` will not be read again.
    fn release(&mut self, at: usize) {
        for chunk in self.chunks[..at / CHUNK].iter_mut().rev() {
            if chunk.take().is_none() {
                return;
            }
        }
    }

    fn gone(&self) -> UnpackError {
        match self.link.gone() {
            Some(gone) => UnpackError::PeerGone(gone),
            None => UnpackError::Malformed,
        }
    }
}

impl Streaming for Stream {
    fn len(&self) -> usize {
        self.manifest.len()
    }

    fn here(&self) -> usize {
        self.here
    }

    fn arrive(&mut self, until: usize) -> Result<(), UnpackError> {
        let crowd = Crowd::default();
        let mut patience = Patience::until(None, &crowd);
        while self.here < until {
            // Read before the manifest: what the sender wrote before it went is there then.
            let ended = self.link.is_ended();
            let filled = self.manifest.filled().ok_or(UnpackError::Retracted)?;
            if filled > self.here {
                self.take_in(filled)?;
                patience = Patience::until(None, &crowd);
                continue;
            }
            if ended {
                return Err(self.gone());
            }
            spin(patience.quick_looks(), || {
                self.manifest.filled() != Some(self.here)
            });
            if let Step::Sleep(_) = patience.step() {
                std::thread::sleep(NAP);
            }
        }
        Ok(())
    }

    fn copy_out(&self, mut at: usize, mut target: &mut [u8]) {
        while !target.is_empty() {
            let within = at % CHUNK;
            let (now, later) = target.split_at_mut(target.len().min(CHUNK - within));
            if let Some(Some(chunk)) = self.chunks.get(at / CHUNK) {
                chunk.copy_out(within, now);
            }
            at += now.len();
            target = later;
        }
    }

    fn copy_coming(&mut self, mut at: usize, mut target: &mut [u8]) -> Result<(), UnpackError> {
        while !target.is_empty() {
            self.arrive(at + 1)?;
            let now = target.len().min(self.here - at);
            let (now, later) = target.split_at_mut(now);
            self.copy_out(at, now);
            at += now.len();
            target = later;
            self.release(at);
        }
        Ok(())
    }
}

impl core::fmt::Debug for Stream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stream")
            .field("len", &self.len())
            .field("here", &self.here)
            .finish_non_exhaustive()
    }
}
