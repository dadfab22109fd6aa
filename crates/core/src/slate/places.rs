//! Writing and reading trays, in the order of turns; and reading lent buffers of others in place.
//!
//! This file has unsafe code because that order, which [`Slates`] keeps, is what makes it safe to write a place of a tray and to read one.
#![allow(unsafe_code)]

use super::slates::Slates;
use super::trays::TrayPlace;
use crate::memory::{Lent, SlabId};
use crate::plain::Plain;

impl Slates {
    /// Writes into the own tray what is to be shown in this turn, `at` bytes behind the beginning of its place.
    ///
    /// # Panics
    ///
    /// If the turn has been shown, or cannot be shown yet because a member is [behind](Self::behind); or if it does not fit.
    #[inline]
    pub fn fill(&mut self, at: usize, bytes: &[u8]) {
        assert!(
            self.cleared == self.turn && self.shown < self.turn,
            "a place is written before its turn is shown"
        );
        if let Some(trays) = &self.trays {
            // SAFETY: this turn was not shown yet, and all others have shown a turn that says that they are done with the one that had the place before: so
            // `behind` found. A member has one view of its slates, so nobody else writes its tray.
            unsafe { trays.all[self.me].fill(self.turn, at, bytes) };
        }
    }

    /// `len` bytes of what a member shows in this turn in its tray, `at` bytes behind the beginning of the place. `None` if the member was not
    /// [read](Self::read) in this turn.
    ///
    /// # Panics
    ///
    /// If they lie outside the place.
    #[inline]
    #[must_use]
    pub fn view(&self, member: usize, at: usize, len: usize) -> Option<&[u8]> {
        let trays = self.trays.as_ref()?;
        if self.members[member].shown != self.turn || member == self.me {
            return None;
        }
        // SAFETY: the member was seen to have shown this turn. It writes the place again when this member has shown a later one, which takes `&mut self`.
        Some(unsafe { trays.all[member].view(self.turn, at, len) })
    }

    /// Whether all others are other processes, whose memory is mapped here.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        let trays = self.trays.as_ref();
        trays.is_some_and(|trays| {
            let mut trays = trays.all.iter().enumerate();
            trays.all(|(number, tray)| number == self.me || tray.is_foreign())
        })
    }

    /// Lets the others read a lent buffer of this member in place: where it is. `None` if one of them is gone.
    #[must_use]
    pub fn lend<T: Plain>(&self, lent: &Lent<T>) -> Option<TrayPlace> {
        let ticket = lent.ticket();
        for link in self
            .members
            .iter()
            .filter_map(|member| member.link.as_ref())
        {
            let arena = &self.process.links.arena;
            link.try_show_slab(arena, SlabId(ticket.slab)).ok()?;
        }
        Some([u64::from(ticket.slab), ticket.offset])
    }

    /// Finds a member's lent buffer where it told that it is: whether there is such a place.
    pub fn find_lent(&mut self, member: usize, [slab, offset]: TrayPlace) -> bool {
        let member = &mut self.members[member];
        let (Ok(slab), Ok(offset)) = (u32::try_from(slab), usize::try_from(offset)) else {
            return false;
        };
        let Some(link) = &member.link else {
            return false;
        };
        if member
            .lent
            .as_ref()
            .is_none_or(|(known, ..)| *known != slab)
        {
            let Ok(region) = link.slab(slab) else {
                return false;
            };
            member.lent = Some((slab, region, offset));
        }
        if let Some((_, region, at)) = &mut member.lent {
            *at = offset;
            return offset % 64 == 0 && offset <= region.len();
        }
        false
    }

    /// `len` bytes of the buffer of a member that was [found](Self::find_lent), from byte `at` on.
    #[must_use]
    pub fn view_lent(&self, member: usize, at: usize, len: usize) -> Option<&[u8]> {
        let (_, region, offset) = self.members[member].lent.as_ref()?;
        let start = offset.checked_add(at)?;
        let is_inside = start <= region.len() && len <= region.len() - start;
        let is_foreign = !region.is_writable();
        // SAFETY: the range was checked against the region, which is mapped here read-only, so nobody of this process writes it. (Its owner does not, while
        // others read it; one that breaks the rules changes plain values, of which any bytes are.)
        (is_inside && is_foreign)
            .then(|| unsafe { core::slice::from_raw_parts(region.base().add(start).as_ptr(), len) })
    }
}
