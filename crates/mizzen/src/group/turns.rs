//! Turns of the slates: each member shows something, and looks at what the others show.

use mizzen_core::service::{Noted, Shown, Waited};
use mizzen_proto::group::schedule::Member;

use super::error::GroupError;
use super::seat::{LONG, Seat, Waiting};

impl Seat {
    /// Begins a turn of the slates: waits for those that still read what this member showed some turns ago.
    #[inline]
    pub(super) fn begin_turn(&mut self) -> Result<(), GroupError> {
        if let Some(slates) = self.slates.as_mut() {
            slates.begin();
        }
        while let Some((member, turn)) = self.slates.as_mut().and_then(|slates| slates.behind()) {
            self.wait_for_slate(Member(member as u32), Some(turn))?;
        }
        Ok(())
    }

    /// Shows something in this turn, which all others may see.
    #[inline]
    pub(super) fn show(&mut self, words: &[u64]) {
        let print = self.print();
        if let Some(slates) = self.slates.as_mut() {
            slates.show(print, words);
        }
    }

    /// What a member shows in this turn.
    #[inline]
    pub(super) fn look(&mut self, member: Member) -> Result<Shown, GroupError> {
        if let Some(shown) = self.glance(member) {
            return self.check_print(member, shown);
        }
        self.wait_for_slate(member, None)?;
        match self.glance(member) {
            Some(shown) => self.check_print(member, shown),
            None => Err(self.break_off(format!("member {member} has gone on without this one"))),
        }
    }

    #[inline]
    fn glance(&mut self, member: Member) -> Option<Shown> {
        let slates = self.slates.as_mut()?;
        slates.read(member.index())
    }

    /// Members that do different things show different prints.
    #[inline]
    fn check_print(&mut self, member: Member, shown: Shown) -> Result<Shown, GroupError> {
        if shown.print == self.print() {
            return Ok(shown);
        }
        Err(self.differ(member))
    }

    /// Shows three numbers in a turn of its own: those of all members.
    pub(super) fn shown_by_all(&mut self, own: &[u64; 3]) -> Result<Vec<[u64; 3]>, GroupError> {
        self.begin_turn()?;
        self.show(own);
        let mut all = Vec::with_capacity(self.roster.size() as usize);
        for member in self.roster.members() {
            let [first, second, third, ..] = if member == self.me {
                let [first, second, third] = *own;
                [first, second, third, 0, 0, 0]
            } else {
                self.look(member)?.words
            };
            all.push([first, second, third]);
        }
        Ok(all)
    }

    /// Waits until a member has shown a turn: this one, if none is said.
    #[inline]
    fn wait_for_slate(&mut self, member: Member, turn: Option<u64>) -> Result<(), GroupError> {
        let waited = self.wait_once(member, turn);
        if waited == Waited::There {
            return Ok(());
        }
        self.wait_long(member, turn, waited)
    }

    #[inline]
    fn wait_once(&self, member: Member, turn: Option<u64>) -> Waited {
        let Some(slates) = &self.slates else {
            return Waited::Long;
        };
        match turn {
            Some(turn) => slates.wait_for(member.index(), turn, &self.inbox, LONG),
            None => slates.wait(member.index(), &self.inbox, LONG),
        }
    }

    #[cold]
    fn wait_long(
        &mut self,
        member: Member,
        turn: Option<u64>,
        first: Waited,
    ) -> Result<(), GroupError> {
        let mut waited = first;
        let (mut waiting, mut noted) = (Waiting::default(), Noted::default());
        loop {
            match waited {
                Waited::There => return Ok(()),
                Waited::Message => self.take_word()?,
                Waited::Long => waiting.nap(),
            }
            if let Some(times) = waiting.lasts() {
                self.ask_once_more(member, times);
                noted.keep_after(LONG * times, || self.waits_for(member));
            }
            // What a member had shown before it was gone is still there.
            let gone = self.has_gone(member);
            waited = self.wait_once(member, turn);
            if let (Some(gone), false) = (gone, waited == Waited::There) {
                return Err(self.lose(member, gone));
            }
        }
    }
}
