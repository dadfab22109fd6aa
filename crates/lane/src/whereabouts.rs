//! Where a block is that was handed over: with whom its owner left it, or to whom that one handed it on, and so on.
//!
//! The owner follows what the holders say, when it looks for memory and when one of them dies. Whose death gives it back:
//!
//! | step | the holder's word | the next one's word | the duty to give back is with |
//! | --- | --- | --- | --- |
//! | lent, or taken over | nothing, or has it | | the holder |
//! | on its way | handed on | nothing | the holder; if it is killed, the owner revokes the loan, and the next one cannot take it over |
//! | taken over | handed on | has it | the next holder |
//! | never sent, or not wanted | the next loan is back | | nobody: it is back |
//!
//! A holder that left in order had sent what it handed on, so that its duty is the next one's.

use crate::extent::Extent;
use crate::returns::{Place, Returns, Said};
use crate::revocations::Revocations;

/// A block at a peer, or a message.
#[derive(Debug)]
pub(crate) struct Out<H> {
    pub(crate) what: AtPeer,
    pub(crate) number: u32,
    pub(crate) loan: u64,
    pub(crate) holder: H,
    pub(crate) returns: Returns,
}

#[derive(Debug)]
pub(crate) enum AtPeer {
    /// The block of this number.
    Block,
    /// Memory of a message, whose number is not one of ours.
    Message(Vec<Extent>),
}

/// How a holder's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At any moment, also between saying that it hands on a block and doing so.
    Killed,
    /// After it had said goodbye, and done all it said.
    InOrder,
}

/// The processes to which our blocks may be handed on.
#[derive(Debug)]
pub(crate) struct Parties<H> {
    /// By place, less one. One that is dead leaves its place empty: it may still be named by those who live.
    all: Vec<Option<Party<H>>>,
}

#[derive(Debug)]
struct Party<H> {
    holder: H,
    returns: Returns,
    revocations: Revocations,
}

enum Whereabouts {
    Back,
    WithHolder,
    OnTheWay(Place),
}

/// More hops than this are nonsense of a peer.
const MOST_HOPS: u64 = 1 << 32;
/// Hops that are followed in one look.
const STEPS: usize = 64;

impl<H: Copy + Eq> Parties<H> {
    pub(crate) fn new() -> Self {
        Self { all: Vec::new() }
    }

    /// The place of a process, new if it has none. `None`: there are too many.
    pub(crate) fn admit(
        &mut self,
        holder: H,
        returns: &Returns,
        revocations: &Revocations,
    ) -> Option<Place> {
        let is_it =
            |party: &Option<Party<H>>| matches!(party, Some(known) if known.holder == holder);
        if let Some(index) = self.all.iter().position(is_it) {
            return Place::new(index as u32 + 1);
        }
        let place = Place::new(self.all.len() as u32 + 1)?;
        self.all.push(Some(Party {
            holder,
            returns: returns.clone(),
            revocations: revocations.clone(),
        }));
        Some(place)
    }

    /// A process is dead, and what it held was looked at.
    pub(crate) fn forget(&mut self, dead: H) {
        for party in &mut self.all {
            if matches!(party, Some(known) if known.holder == dead) {
                *party = None;
            }
        }
    }

    fn at(&self, place: Place) -> Option<&Party<H>> {
        self.all.get(place.number() as usize - 1)?.as_ref()
    }

    fn of(&self, holder: H) -> Option<&Party<H>> {
        let mut known = self.all.iter().flatten();
        known.find(|party| party.holder == holder)
    }
}

impl<H: Copy + Eq> Out<H> {
    /// Whether it came back.
    pub(crate) fn is_back(&mut self, parties: &Parties<H>) -> bool {
        if let AtPeer::Message(_) = self.what {
            return self.returns.is_back(self.number, self.loan);
        }
        match self.follow(parties) {
            Whereabouts::Back => true,
            Whereabouts::WithHolder => false,
            // Who handed it on may have done so to one that was dead already.
            Whereabouts::OnTheWay(to) => parties.at(to).is_none() && self.take_from_way(parties),
        }
    }

    /// Whether it is free now that `dead`, which is still known, has ended.
    pub(crate) fn is_free_after(&mut self, dead: H, how: Ending, parties: &Parties<H>) -> bool {
        if let AtPeer::Message(_) = self.what {
            return self.holder == dead;
        }
        for _ in 0..STEPS {
            match self.follow(parties) {
                Whereabouts::Back => return true,
                Whereabouts::WithHolder => return self.holder == dead,
                Whereabouts::OnTheWay(to) if self.holder == dead => {
                    let Some(next) = parties.at(to).filter(|next| next.holder != dead) else {
                        return true;
                    };
                    if how == Ending::InOrder {
                        self.move_to(next, self.loan + 1);
                        return false;
                    }
                    next.revocations.revoke(self.number, self.loan + 1);
                    if next.returns.said(self.number).0 <= self.loan {
                        self.loan += 1;
                        return true;
                    }
                }
                Whereabouts::OnTheWay(to) => {
                    let next = parties.at(to).filter(|next| next.holder != dead);
                    return next.is_none() && self.take_from_way(parties);
                }
            }
        }
        false
    }

    /// Whether it is on its way to `me`, as this loan.
    pub(crate) fn is_coming_to(&mut self, me: H, loan: u64, parties: &Parties<H>) -> bool {
        for _ in 0..STEPS {
            let before = self.loan;
            let whereabouts = self.follow(parties);
            if self.loan != before {
                continue;
            }
            return match whereabouts {
                Whereabouts::OnTheWay(to) => {
                    self.loan.checked_add(1) == Some(loan)
                        && parties.at(to).is_some_and(|next| next.holder == me)
                }
                // Who handed it on has left since.
                Whereabouts::WithHolder => self.holder == me && self.loan == loan,
                Whereabouts::Back => false,
            };
        }
        false
    }

    /// Whom it is with, as far as they say.
    fn follow(&mut self, parties: &Parties<H>) -> Whereabouts {
        for _ in 0..STEPS {
            let (loan, said) = self.returns.said(self.number);
            if !self.may_be_at(loan) {
                return Whereabouts::WithHolder;
            }
            // It may have come to the same holder again before we looked.
            self.loan = loan;
            let to = match said {
                Said::Has => return Whereabouts::WithHolder,
                Said::Back => return Whereabouts::Back,
                Said::HandedOn(to) => to,
            };
            let Some(next) = parties.at(to) else {
                return Whereabouts::OnTheWay(to);
            };
            let (taken, _) = next.returns.said(self.number);
            if taken <= loan || !self.may_be_at(taken) {
                return Whereabouts::OnTheWay(to);
            }
            self.move_to(next, taken);
        }
        Whereabouts::WithHolder
    }

    /// Whether it can have come as far as this loan. What peers say is foreign.
    fn may_be_at(&self, loan: u64) -> bool {
        loan.checked_sub(self.loan)
            .is_some_and(|hops| hops < MOST_HOPS)
    }

    fn move_to(&mut self, next: &Party<H>, loan: u64) {
        self.holder = next.holder;
        self.returns = next.returns.clone();
        self.loan = loan;
    }

    /// Takes it from a holder that lives and has handed it on to one that is dead, unless that holder keeps it after all.
    fn take_from_way(&mut self, parties: &Parties<H>) -> bool {
        let Some(holder) = parties.of(self.holder) else {
            // Who is not known any more is dead.
            return true;
        };
        holder.revocations.revoke(self.number, self.loan);
        let (loan, said) = self.returns.said(self.number);
        let is_free = loan == self.loan && matches!(said, Said::HandedOn(_));
        self.loan += u64::from(is_free);
        is_free
    }
}
