//! Unpacking a message of which some has yet to come.
//!
//! One from another host: the first pieces came with the announcement. The others lie in the body, which is asked for once: by
//! `finish`, straight into the memory of the cheaper pieces; or by the first piece of it that is wanted at once, into our own
//! memory, unless it is longer than what may be unread.
//!
//! A long one on the same host is copied as it comes. If it is longer than what may be unread, from this host or from another, its
//! sender waits for what is read to be let go: so cheaper pieces are filled before later ones are unpacked, and nothing can be
//! unpacked twice.

use std::time::{Duration, Instant};

use zerocopy::IntoBytes;

use super::unpack::Incoming;
use crate::error::UnpackError;
use crate::link::ALLOWANCE;
use crate::memory::{Block, Holding, Purpose};
use crate::message::{Flags, Offered, Payload, Streaming};
use crate::plain::Plain;
use crate::wait::Until;

/// Bytes of values that are copied before more memory is written.
const STEP: usize = 1 << 20;
/// Bytes of a long message that may be skipped by receiving them. More of them are not asked for, at the price of asking more often.
const SKIPPED_MAX: usize = 1 << 20;
/// How long to wait for a block of our own arena for a lent piece: the reader may hold all of it, and then nobody else
/// gives any back.
const LENT_PATIENCE: Duration = Duration::from_secs(10);

impl<'m> Incoming<'m> {
    /// Copies the bytes from `at` on, waiting for them.
    #[inline]
    pub(super) fn copy(&mut self, at: usize, target: &mut [u8]) -> Result<(), UnpackError> {
        if at + target.len() > self.payload.here() {
            return self.copy_coming(at, target);
        }
        self.payload.copy_out(at, target);
        Ok(())
    }

    /// From now on a long body of another host is read in its order, and comes as it is read. Others stay as they are.
    fn read_in_order(&mut self) {
        let is_long = |offered: &dyn Offered| offered.len() > ALLOWANCE;
        if matches!(&self.payload, Payload::Offered(offered) if is_long(&**offered)) {
            let none = Payload::Owned(Vec::new());
            if let Payload::Offered(offered) = core::mem::replace(&mut self.payload, none) {
                self.payload = Payload::Stream(offered.into_stream());
            }
        }
    }

    #[cold]
    fn copy_coming(&mut self, at: usize, target: &mut [u8]) -> Result<(), UnpackError> {
        self.read_in_order();
        match &mut self.payload {
            Payload::Stream(stream) => {
                if !stream.holds_all() {
                    fill(&mut **stream, core::mem::take(&mut self.pending))?;
                }
                stream.copy_coming(at, target)
            }
            _ => {
                self.receive_all()?;
                self.payload.copy_out(at, target);
                Ok(())
            }
        }
    }

    /// Copies `count` values from `at` on, waiting for them. Their number came from a peer: memory is written as they come.
    pub(super) fn copy_values<T: Plain>(
        &mut self,
        at: usize,
        count: usize,
    ) -> Result<Vec<T>, UnpackError> {
        let bytes = count * size_of::<T>();
        let mut values = Vec::new();
        values
            .try_reserve_exact(count)
            .map_err(|_| UnpackError::Memory { bytes })?;
        if at + bytes > self.payload.here() {
            self.read_in_order();
        }
        let step = match self.payload {
            Payload::Stream(_) => (STEP / size_of::<T>()).max(1),
            _ => count,
        };
        while values.len() < count {
            let from = values.len();
            values.resize_with(count.min(from + step), T::new_zeroed);
            let target = values[from..].as_mut_bytes();
            self.copy(at + from * size_of::<T>(), target)?;
        }
        Ok(values)
    }

    /// An error if what was unpacked is gone.
    pub(super) fn check_unspent(&self) -> Result<(), UnpackError> {
        let is_spent = match &self.payload {
            Payload::Stream(stream) => stream.is_spent(),
            _ => self.flags.has(Flags::SPENT),
        };
        if is_spent {
            return Err(UnpackError::Spent);
        }
        Ok(())
    }

    /// What has not been unpacked, in memory of our own.
    pub(super) fn detach_payload(&mut self) -> Result<Payload, UnpackError> {
        let len = self.payload.len();
        let at = self.data_at().min(len);
        self.read_in_order();
        match &mut self.payload {
            Payload::Stream(stream) if !stream.holds_all() => {
                let mut bytes = zeroed(len)?;
                stream.copy_out(0, &mut bytes[..stream.table_len()]);
                stream.copy_coming(at, &mut bytes[at..])?;
                self.flags = self.flags.with(Flags::SPENT);
                Ok(Payload::Owned(bytes))
            }
            _ => {
                self.arrive(0, len)?;
                let none = Payload::Owned(Vec::new());
                Ok(core::mem::replace(&mut self.payload, none).detach())
            }
        }
    }

    /// Waits until `len` bytes from `at` on are here, if they can all be.
    #[inline]
    pub(super) fn arrive(&mut self, at: usize, len: usize) -> Result<(), UnpackError> {
        if at + len <= self.payload.here() {
            return Ok(());
        }
        self.read_in_order();
        match &mut self.payload {
            Payload::Stream(stream) if stream.holds_all() => stream.arrive(at + len),
            // It comes while it is copied.
            Payload::Stream(_) => Ok(()),
            _ => self.receive_all(),
        }
    }

    /// Waits until the table is here, if it was too long to come with the announcement.
    pub(super) fn arrive_table(&mut self) -> Result<(), UnpackError> {
        match &self.payload {
            Payload::Offered(offered)
                if offered.head().is_empty() && !self.flags.has(Flags::SINGLE) =>
            {
                self.read_in_order();
                match &self.payload {
                    Payload::Stream(_) => Ok(()),
                    _ => self.receive_all(),
                }
            }
            _ => Ok(()),
        }
    }

    /// The lent piece at `at` of a message that came over a network, in a block of our own arena, after `put_right`.
    pub(super) fn take_foreign(
        &mut self,
        at: usize,
        len: usize,
        put_right: fn(Flags, &mut [u8]),
    ) -> Result<Holding, UnpackError> {
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
        self.copy(at, block.as_mut_bytes())?;
        put_right(self.flags, block.as_mut_bytes());
        Ok(self.loan(block))
    }

    /// Fills the memory of the cheaper pieces while they come.
    pub(super) fn finish_stream(mut self) -> Result<(), UnpackError> {
        let Payload::Stream(stream) = &mut self.payload else {
            return Ok(());
        };
        stream.read_once();
        fill(&mut **stream, core::mem::take(&mut self.pending))
    }

    /// Fills the memory of the cheaper pieces, straight from the network where it can.
    pub(super) fn finish_offered(mut self) -> Result<(), UnpackError> {
        let wanted = self.fill_from_head();
        if wanted.is_empty() {
            // Dropping it declines the body.
            return Ok(());
        }
        let Some(mut skipped) = self.skipped(&wanted)? else {
            self.read_in_order();
            if let Payload::Stream(stream) = &mut self.payload {
                return fill(&mut **stream, wanted);
            }
            self.receive_all()?;
            for (at, target) in wanted {
                self.payload.copy_out(at, target);
            }
            return Ok(());
        };
        let Payload::Offered(offered) = &mut self.payload else {
            return Ok(());
        };
        let mut skipped = skipped.iter_mut();
        let mut parts: Vec<&mut [u8]> = Vec::with_capacity(wanted.len() * 2 + 1);
        for (_, target) in wanted {
            parts.extend(skipped.next().map(Vec::as_mut_slice));
            parts.push(target);
        }
        parts.extend(skipped.next().map(Vec::as_mut_slice));
        offered.receive(&mut parts)
    }

    /// Fills the cheaper pieces that came with the announcement; returns those of the body, in their order.
    pub(super) fn fill_from_head(&mut self) -> Vec<(usize, &'m mut [u8])> {
        let here = self.payload.here();
        let mut wanted = Vec::new();
        for (at, target) in core::mem::take(&mut self.pending) {
            if at + target.len() <= here {
                self.payload.copy_out(at, target);
            } else {
                wanted.push((at, target));
            }
        }
        wanted.sort_by_key(|(at, target)| (*at, target.len()));
        wanted
    }

    /// Memory for what is skipped before each of the wanted pieces, and at the end. `None`: they cannot come straight into place.
    pub(super) fn skipped(
        &self,
        wanted: &[(usize, &'m mut [u8])],
    ) -> Result<Option<Vec<Vec<u8>>>, UnpackError> {
        let here = self.payload.here();
        let Payload::Offered(offered) = &self.payload else {
            return Ok(None);
        };
        // A piece that was unpacked twice, or one that a strange sender cut in two.
        let is_odd = wanted.first().is_some_and(|(at, _)| *at < here)
            || wanted
                .windows(2)
                .any(|two| two[0].0 + two[0].1.len() > two[1].0);
        // Each wanted piece, what is skipped before it, and what is skipped at the end.
        if is_odd || wanted.len() * 2 + 1 > offered.max_parts() {
            return Ok(None);
        }
        let filled: usize = wanted.iter().map(|(_, target)| target.len()).sum();
        if offered.len() > ALLOWANCE && offered.len() - here - filled > SKIPPED_MAX {
            return Ok(None);
        }
        let mut skipped = Vec::with_capacity(wanted.len() + 1);
        let mut reached = here;
        for (at, target) in wanted {
            skipped.push(zeroed(at - reached)?);
            reached = at + target.len();
        }
        skipped.push(zeroed(offered.len() - reached)?);
        Ok(Some(skipped))
    }

    /// The pieces that [`skipped`](Self::skipped) found no way for, of a message that is read in its order.
    pub(super) fn stream_odd(&mut self) -> bool {
        self.read_in_order();
        matches!(self.payload, Payload::Stream(_))
    }

    /// Receives the body into memory of our own, and lent pieces of it into our arena.
    fn receive_all(&mut self) -> Result<(), UnpackError> {
        // What has to be put right is copied into a block when its type is known.
        let pieces = if self.flags.has(Flags::LENT) && !self.flags.is_unlike() {
            self.rest()
        } else {
            Vec::new()
        };
        let here = self.payload.here();
        let mut bytes = zeroed(self.payload.len())?;
        self.payload.copy_out(0, &mut bytes[..here]);
        let mut blocks: Vec<(usize, Block)> = Vec::new();
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

    fn block(&self, len: usize) -> Result<Block, UnpackError> {
        let until = Until::Deadline(Instant::now() + LENT_PATIENCE);
        let links = &self.process.links;
        links
            .take_block(&*self.process, len, Purpose::Landed, until)
            .map_err(|_| UnpackError::Memory { bytes: len })
    }

    fn loan(&self, block: Block) -> Holding {
        let owner = self.process.id;
        Holding {
            loan: block.into_loan(owner),
            owner,
        }
    }
}

/// Fills the memory of cheaper pieces while they come.
fn fill<'m>(
    stream: &mut dyn Streaming,
    pending: impl IntoIterator<Item = (usize, &'m mut [u8])>,
) -> Result<(), UnpackError> {
    let mut pending: Vec<_> = pending.into_iter().collect();
    pending.sort_by_key(|(at, target)| (*at, target.len()));
    let mut last: Option<(usize, &[u8])> = None;
    for (at, target) in pending {
        match last {
            // A piece that was unpacked twice comes once.
            Some((before, filled)) if before == at && filled.len() == target.len() => {
                target.copy_from_slice(filled);
            }
            _ => stream.copy_coming(at, target)?,
        }
        last = Some((at, target));
    }
    Ok(())
}

/// Memory that costs nothing until it is written. Its length came from a peer.
pub(super) fn zeroed(len: usize) -> Result<Vec<u8>, UnpackError> {
    Vec::<u8>::new()
        .try_reserve_exact(len)
        .map_err(|_| UnpackError::Memory { bytes: len })?;
    Ok(vec![0; len])
}
