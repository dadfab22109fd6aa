//! What is under way with one name at its holder.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::outbox::{Outbox, Repeat, Timer};
use super::{Bound, Outcome, Patience, Said, Wish};
use crate::id::Address;
use crate::membership::AgentId;
use crate::time::Time;

#[derive(Debug, Default)]
pub(super) struct Slot {
    pub(super) queue: VecDeque<Todo>,
    pub(super) round: Option<Round>,
    /// Who waits for the name to be bound, with the stamp of the latest read.
    pub(super) waiting: BTreeMap<AgentId, u64>,
    /// Who may use an answer again, until when.
    pub(super) leases: BTreeMap<AgentId, Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Todo {
    Read(AgentId, Patience, u64),
    Change(AgentId, u64, Wish, Address),
    /// The owner may be gone.
    Reap,
    /// The others may not have it.
    Confirm,
}

#[derive(Debug)]
pub(super) struct Round {
    pub(super) number: u64,
    pub(super) bound: Option<Bound>,
    pub(super) answer: Option<(AgentId, u64, Outcome)>,
    pub(super) changes: bool,
    /// Whose leases are not over.
    pub(super) revoking: BTreeMap<AgentId, Time>,
    /// Who has not said that it keeps it.
    pub(super) copying: BTreeSet<AgentId>,
    pub(super) repeat: Repeat,
}

impl Slot {
    pub(super) fn is_empty(&self) -> bool {
        let idle = self.queue.is_empty() && self.round.is_none();
        idle && self.waiting.is_empty() && self.leases.is_empty()
    }

    /// Whether this was asked before and is not answered; a later read replaces an earlier one.
    pub(super) fn is_known(&mut self, todo: Todo) -> bool {
        match todo {
            Todo::Change(from, request, ..) => {
                let answer = self.round.as_ref().and_then(|round| round.answer);
                let under_way = answer.is_some_and(|one| (one.0, one.1) == (from, request));
                let is_same = |one: &Todo| matches!(one, Todo::Change(a, b, ..) if (*a, *b) == (from, request));
                under_way || self.queue.iter().any(is_same)
            }
            Todo::Read(from, ..) => {
                self.queue
                    .retain(|one| !matches!(one, Todo::Read(other, ..) if *other == from));
                false
            }
            Todo::Reap | Todo::Confirm => false,
        }
    }
}

impl Round {
    pub(super) fn tell(&self, name: &Arc<str>, out: &mut Outbox) {
        let (name, round) = (Arc::clone(name), self.number);
        if !self.revoking.is_empty() {
            let name = || Arc::clone(&name);
            for agent in self.revoking.keys() {
                out.send(
                    *agent,
                    Said::Revoke {
                        name: name(),
                        round,
                    },
                );
            }
            return;
        }
        for agent in &self.copying {
            let (name, bound) = (Arc::clone(&name), self.bound);
            out.send(*agent, Said::Copy { name, round, bound });
        }
    }

    pub(super) fn set_timer(&self, name: &Arc<str>, out: &mut Outbox) {
        let over = self.revoking.values().min();
        let due = over.map_or(self.repeat.due, |over| self.repeat.due.min(*over));
        out.set_timer(due, Timer::Round(Arc::clone(name)));
    }
}
