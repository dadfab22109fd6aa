//! Unpacking a message from another host whose body has yet to come.
//!
//! The first pieces came with the announcement. The others lie in the body, which is asked for once: by `finish`, straight
//! into the memory of the cheaper pieces; or by the first piece of it that is to be there at once, into memory
//! of our own.

use std::time::{Duration, Instant};

use super::unpack::Incoming;
use crate::error::UnpackError;
use crate::memory::{LentBytes, Loan, Purpose};
use crate::message::{Flags, Payload};
use crate::wait::Until;

/// How long to wait for a block of our own arena for a lent piece: the reader may hold all of it, and then nobody else
/// gives any back.
const LENT_PATIENCE: Duration = Duration::from_secs(10);

impl Incoming<'_> {
    /// Waits until `len` bytes from `at` on are here.
    #[inline]
    pub(super) fn arrive(&mut self, at: usize, len: usize) -> Result<(), UnpackError> {
        if at + len <= self.payload.here() {
            return Ok(());
        }
        match &mut self.payload {
            Payload::Stream(stream) => stream.arrive(at + len),
            _ => self.receive_all(),
        }
    }

    /// Waits until the table is here, if it was too long to come with the announcement.
    pub(super) fn arrive_table(&mut self) -> Result<(), UnpackError> {
        match &self.payload {
            Payload::Offered(offered)
                if offered.head().is_empty() && !self.flags.has(Flags::SINGLE) =>
            {
                self.receive_all()
            }
            _ => Ok(()),
        }
    }

    /// The lent piece at `at` of a message that came over a network, in a block of our own arena.
    pub(super) fn take_foreign(&mut self, at: usize, len: usize) -> Result<Loan, UnpackError> {
        // The table was checked, but a lane may hold a message that says it came over a network, and can still change.
        if at
            .checked_add(len)
            .is_none_or(|end| end > self.payload.len())
        {
            return Err(UnpackError::Malformed);
        }
        self.arrive(at, len)?;
        // An empty piece begins where the next one does, and is in no buffer.
        if len > 0
            && self
                .lent
                .binary_search_by_key(&at, |(place, _)| *place)
                .is_ok()
        {
            return self.take_lent(at).ok_or(UnpackError::NotLent);
        }
        let mut block = self.block(len)?;
        self.payload.copy_out(at, block.as_mut_bytes());
        Ok(self.loan(block))
    }

    /// Fills the memory of the cheaper pieces while they come.
    pub(super) fn finish_stream(mut self) -> Result<(), UnpackError> {
        let mut pending = core::mem::take(&mut self.pending);
        // Pieces that were unpacked twice need their bytes twice.
        let in_order = pending
            .windows(2)
            .all(|two| two[0].0 + two[0].1.len() <= two[1].0);
        let Payload::Stream(stream) = &mut self.payload else {
            return Ok(());
        };
        for (at, target) in &mut pending {
            if in_order {
                stream.copy_coming(*at, target)?;
            } else {
                stream.arrive(*at + target.len())?;
                stream.copy_out(*at, target);
            }
        }
        Ok(())
    }

    /// Fills the memory of the cheaper pieces, straight from the network where it can.
    pub(super) fn finish_offered(mut self) -> Result<(), UnpackError> {
        let here = self.payload.here();
        let mut wanted = Vec::new();
        for (at, target) in core::mem::take(&mut self.pending) {
            if at + target.len() <= here {
                self.payload.copy_out(at, target);
            } else {
                wanted.push((at, target));
            }
        }
        if wanted.is_empty() {
            // Dropping it declines the body.
            return Ok(());
        }
        wanted.sort_by_key(|(at, _)| *at);
        // A piece that was unpacked twice, or one that a strange sender cut in two.
        let is_odd = wanted[0].0 < here
            || wanted
                .windows(2)
                .any(|two| two[0].0 + two[0].1.len() > two[1].0);
        let Payload::Offered(offered) = &mut self.payload else {
            return Ok(());
        };
        // Each wanted piece, what is skipped before it, and what is skipped at the end.
        if is_odd || wanted.len() * 2 + 1 > offered.max_parts() {
            self.receive_all()?;
            for (at, target) in wanted {
                self.payload.copy_out(at, target);
            }
            return Ok(());
        }
        let mut skipped = Vec::new();
        let mut reached = here;
        for (at, target) in &wanted {
            skipped.push(zeroed(at - reached)?);
            reached = at + target.len();
        }
        skipped.push(zeroed(offered.len() - reached)?);
        let mut skipped = skipped.iter_mut();
        let mut parts: Vec<&mut [u8]> = Vec::with_capacity(wanted.len() * 2 + 1);
        for (_, target) in wanted {
            parts.extend(skipped.next().map(Vec::as_mut_slice));
            parts.push(target);
        }
        parts.extend(skipped.next().map(Vec::as_mut_slice));
        offered.receive(&mut parts)
    }

    /// Receives the body into memory of our own, and lent pieces of it into our arena.
    fn receive_all(&mut self) -> Result<(), UnpackError> {
        let pieces = if self.flags.has(Flags::LENT) {
            self.rest()
        } else {
            Vec::new()
        };
        let here = self.payload.here();
        let mut bytes = zeroed(self.payload.len())?;
        self.payload.copy_out(0, &mut bytes[..here]);
        let mut blocks: Vec<(usize, LentBytes)> = Vec::new();
        for (at, entry) in pieces {
            if entry.is_lent() && at >= here && entry.len > 0 {
                blocks.push((at, self.block(entry.len as usize)?));
            }
        }
        let Payload::Offered(offered) = &mut self.payload else {
            return Ok(());
        };
        if blocks.len() * 2 + 1 > offered.max_parts() {
            // They are copied into blocks as they are unpacked.
            blocks.clear();
        }
        let mut parts: Vec<&mut [u8]> = Vec::with_capacity(blocks.len() * 2 + 1);
        let (mut rest, mut reached) = (&mut bytes[here..], here);
        for (at, block) in &mut blocks {
            let block = block.as_mut_bytes();
            let (before, after) = rest.split_at_mut(*at - reached);
            reached = *at + block.len();
            rest = &mut after[block.len()..];
            parts.push(before);
            parts.push(block);
        }
        parts.push(rest);
        offered.receive(&mut parts)?;
        self.payload = Payload::Owned(bytes);
        self.lent = blocks
            .into_iter()
            .map(|(at, block)| (at, Some(self.loan(block))))
            .collect();
        Ok(())
    }

    fn block(&self, len: usize) -> Result<LentBytes, UnpackError> {
        let until = Until::Deadline(Instant::now() + LENT_PATIENCE);
        let links = &self.process.links;
        links
            .take_block(&*self.process, len, Purpose::Lend, until)
            .map_err(|_| UnpackError::Memory { bytes: len })
    }

    fn loan(&self, block: LentBytes) -> Loan {
        block.into_loan(self.process.id, self.process.links.own_returns().clone())
    }
}

/// Memory that costs nothing until it is written. Its length came from a peer.
fn zeroed(len: usize) -> Result<Vec<u8>, UnpackError> {
    Vec::<u8>::new()
        .try_reserve_exact(len)
        .map_err(|_| UnpackError::Memory { bytes: len })?;
    Ok(vec![0; len])
}
