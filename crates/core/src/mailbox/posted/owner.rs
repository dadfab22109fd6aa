//! What the owner of the mailbox sees of its exchange: the messages that no receive wanted.

use super::exchange::{Exchange, Inner};
use super::slot::Waiter;
use crate::delivery::{Searched, Wanted, What};
use crate::mailbox::look::among::Among;
use crate::mailbox::look::{Elsewhere, Look, Outcome, Reach};

impl Exchange {
    /// The owner is about to sleep. It looks once more.
    pub(in crate::mailbox) fn leave_owner(&self, waiter: Waiter, what: What) {
        self.with(|inner| {
            inner.owner = Some((waiter, what));
            self.arm(inner);
        });
    }

    /// The owner looks itself.
    pub(in crate::mailbox) fn attend_owner(&self) {
        self.with(|inner| inner.owner = None);
    }

    /// Whether the owner has left word, and was not woken yet.
    pub(in crate::mailbox) fn has_owner(&self) -> bool {
        self.with(|inner| inner.owner.is_some())
    }

    /// Whether there may be what the owner waits for. The receives have got theirs.
    pub(super) fn has_owners(&self, inner: &mut Inner) -> bool {
        let Some((_, what)) = &inner.owner else {
            return false;
        };
        match *what {
            What::Anything => self.has_left(inner),
            What::Of(wanted, mut searched) => self.has_left_of(inner, wanted, &mut searched),
            What::News => false,
        }
    }

    /// What the receives leave.
    fn next_left(&self, inner: &mut Inner, reach: Reach) -> Option<Outcome> {
        if let Some(taken) = inner.refused.pop_front() {
            return Some(Ok(taken));
        }
        let Inner {
            places,
            board,
            owner_searched,
            ..
        } = inner;
        if board.wants_anything() {
            return None;
        }
        let among = Among {
            wants: &|rank| !board.wants(rank),
            news: true,
        };
        let places = places.as_ref()?;
        places.poll_among(&self.process, &self.core, &among, owner_searched, reach)
    }

    fn has_left(&self, inner: &mut Inner) -> bool {
        let Inner {
            places: Some(places),
            board,
            owner_searched,
            refused,
            ..
        } = inner
        else {
            return false;
        };
        let among = Among {
            wants: &|rank| !board.wants(rank),
            news: true,
        };
        !refused.is_empty()
            || !board.wants_anything()
                && places.is_ready_among(&self.process, &self.core, &among, owner_searched)
    }

    fn has_left_of(&self, inner: &Inner, wanted: Wanted, searched: &mut Searched) -> bool {
        let mut refused = inner.refused.iter();
        if refused.any(|taken| taken.source.rank == wanted.rank) {
            return true;
        }
        let Some(places) = &inner.places else {
            return false;
        };
        !inner.board.wants(wanted.rank)
            && places.is_ready_of(&self.process, &self.core, wanted, searched)
    }
}

impl Elsewhere for Exchange {
    fn poll(&self, reach: Reach) -> Look {
        self.with(|inner| {
            self.turn(inner, reach);
            if inner.board.is_empty() && inner.refused.is_empty() {
                if let Some(places) = self.give_back(inner) {
                    return Look::Home(places);
                }
            }
            match self.next_left(inner, reach) {
                Some(outcome) => Look::Found(outcome),
                None => Look::Nothing,
            }
        })
    }

    fn poll_of(&self, wanted: Wanted, searched: &mut Searched, reach: Reach) -> Option<Outcome> {
        self.with(|inner| {
            self.turn(inner, reach);
            let mut refused = inner.refused.iter();
            if let Some(place) = refused.position(|taken| taken.source.rank == wanted.rank) {
                return inner.refused.remove(place).map(Ok);
            }
            if inner.board.wants(wanted.rank) {
                return None;
            }
            let places = inner.places.as_ref()?;
            places.poll_of(&self.process, &self.core, wanted, searched, reach)
        })
    }

    fn move_on(&self) {
        self.look(None, Reach::All);
    }

    fn is_ready(&self) -> bool {
        self.with(|inner| self.has_left(inner))
    }

    fn is_ready_of(&self, wanted: Wanted, searched: &mut Searched) -> bool {
        self.with(|inner| self.has_left_of(inner, wanted, searched))
    }
}
