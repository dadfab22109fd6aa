//! Long messages, the receiver's side: copied out of chunks while the sender still fills others.
//!
//! A receiver gives back chunks when it has read them, in their order, and the manifest when it will read no more, with which
//! all chunks of the message are free. What the sender wrote into the manifest is foreign: it is loaded once, and checked. A
//! receiver never has more chunks of a message than its manifest has entries, whatever the sender says.
#![allow(unsafe_code)]

use std::collections::VecDeque;

use crate::buddy::BLOCK_ALIGN;
use crate::loan::{Loan, LoanTicket};
use crate::manifest::{CHUNK, Manifest, Offer};
use crate::region::Region;
use crate::returns::Returns;

/// From how many bytes on a message goes to memory that no cache has: what was written of it last time is gone from there.
const COLD: usize = 8 << 20;

/// A message whose bytes may not all be there yet. Dropping it gives back its chunks, read or not.
#[derive(Debug)]
pub struct StreamIn {
    /// Chunks that are here, the first after those that were released.
    chunks: VecDeque<Chunk>,
    released: usize,
    here: usize,
    /// Whether the sender's offer was taken, or looked for.
    was_offered: bool,
    manifest: Manifest,
    number: u32,
    loan: u64,
    _given_back_last: Loan,
    returns: Returns,
    /// The slab that was needed last: it often is the next one too.
    slab: (u32, Region),
}

/// A chunk of the sender, which was checked to lie inside its slab.
#[derive(Debug)]
struct Chunk {
    region: Region,
    offset: usize,
}

/// Why a message cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoMore<E> {
    /// The sender gave it up.
    Abandoned,
    /// The sender wrote nonsense.
    Malformed,
    /// One of its slabs is not known.
    Slab(E),
}

impl StreamIn {
    /// The message that `ticket` announced, with its manifest in `region`. `None` if the ticket makes no sense.
    ///
    /// # Safety
    ///
    /// As for [`Loan::new`], of the manifest and of all chunks that it names in the slabs that [`look`](Self::look) is given.
    #[must_use]
    pub(crate) unsafe fn open(
        region: Region,
        ticket: LoanTicket,
        returns: Returns,
    ) -> Option<Self> {
        let len = usize::try_from(ticket.len).ok()?;
        let offset = usize::try_from(ticket.offset).ok()?;
        let manifest = Manifest::open(region.clone(), offset, len)?;
        let block = LoanTicket {
            len: Manifest::bytes(manifest.entries()) as u64,
            ..ticket
        };
        // The next that is said of it, mostly by who reads it where it lies, or to its end.
        returns.claim(ticket.number);
        let slab = (ticket.slab, region.clone());
        // SAFETY: as the caller promised.
        let given_back_last = unsafe { Loan::new(region, block, returns.clone()) }?;
        Some(Self {
            chunks: VecDeque::new(),
            released: 0,
            here: 0,
            was_offered: false,
            manifest,
            number: ticket.number,
            loan: ticket.loan,
            _given_back_last: given_back_last,
            returns,
            slab,
        })
    }

    /// Length of the whole message.
    #[must_use]
    pub fn len(&self) -> usize {
        self.manifest.len()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes are here, from the first on. Those that were released are gone again.
    #[must_use]
    pub fn here(&self) -> usize {
        self.here
    }

    /// Whether all of the message can be here at once. If not, no more comes unless what was read is
    /// [released](Self::release).
    #[must_use]
    pub fn holds_all(&self) -> bool {
        self.manifest.holds_all()
    }

    /// Whether some of the message is gone, because it was released.
    #[must_use]
    pub fn has_released(&self) -> bool {
        self.released > 0
    }

    /// A quick look: whether [`look`](Self::look) would find something new.
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.manifest.filled() != Some(self.here)
    }

    /// Takes in what came since the last look: whether there was something. `slab` finds a slab of the sender.
    ///
    /// # Errors
    ///
    /// If the rest will not come.
    pub fn look<E>(
        &mut self,
        mut slab: impl FnMut(u32) -> Result<Region, E>,
    ) -> Result<bool, NoMore<E>> {
        let filled = self.manifest.filled().ok_or(NoMore::Abandoned)?;
        if filled <= self.here {
            return Ok(false);
        }
        if filled.div_ceil(CHUNK) - self.released > self.manifest.entries() {
            return Err(NoMore::Malformed);
        }
        while (self.released + self.chunks.len()) * CHUNK < filled {
            let (number, offset) = self.manifest.chunk(self.released + self.chunks.len());
            if self.slab.0 != number {
                self.slab = (number, slab(number).map_err(NoMore::Slab)?);
            }
            let region = self.slab.1.clone();
            // Blocks and chunks lie in slabs alike.
            if offset % BLOCK_ALIGN != 0 || offset + CHUNK > region.len() {
                return Err(NoMore::Malformed);
            }
            self.chunks.push_back(Chunk { region, offset });
        }
        self.here = filled;
        Ok(true)
    }

    /// Begins to read the message where its sender has it, if that is offered; once. What was read counts if it is
    /// [`still_offered`](Self::still_offered) afterwards. The sender waits until this is dropped, or it is
    /// [not read](Self::decline).
    #[must_use]
    pub fn take_offer(&mut self) -> Option<Offer> {
        if core::mem::replace(&mut self.was_offered, true) {
            return None;
        }
        // Without one, nothing is said to the sender.
        self.manifest.offered()?;
        self.returns.start_pulling(self.number, self.loan);
        let offer = self.manifest.offered();
        if offer.is_none() {
            self.decline();
        }
        offer
    }

    /// Whether the sender has kept the message where it was until now.
    #[must_use]
    pub fn still_offered(&self) -> bool {
        self.manifest.offered().is_some()
    }

    /// It is read from chunks after all.
    pub fn decline(&self) {
        self.returns
            .give_chunks(self.number, self.loan, self.released);
    }

    /// Copies bytes that are here, and were not released.
    pub fn copy_out(&self, mut at: usize, mut target: &mut [u8]) {
        let is_cold = self.len() >= COLD;
        while !target.is_empty() {
            let within = at % CHUNK;
            let (now, later) = target.split_at_mut(target.len().min(CHUNK - within));
            let is_here = at + now.len() <= self.here;
            let chunk = (at / CHUNK).checked_sub(self.released);
            let chunk = chunk.and_then(|chunk| self.chunks.get(chunk));
            if let Some(chunk) = chunk.filter(|_| is_here) {
                // SAFETY: `look` checked that the chunk lies inside its slab. As was promised to `open`, the sender wrote these
                // bytes before it told of them, which are here, and does not write them again before we give them back.
                unsafe {
                    let offset = chunk.offset + within;
                    match is_cold {
                        false => chunk.region.copy_out(offset, now),
                        true => chunk.region.copy_out_cold(offset, now),
                    }
                }
            }
            at += now.len();
            target = later;
        }
    }

    /// The bytes before `at` will not be read again: gives back the chunks they fill.
    pub fn release(&mut self, at: usize) {
        let read = (at.min(self.here) / CHUNK).saturating_sub(self.released);
        if read > 0 {
            drop(self.chunks.drain(..read.min(self.chunks.len())));
            self.released += read;
            self.returns
                .give_chunks(self.number, self.loan, self.released);
        }
    }
}
