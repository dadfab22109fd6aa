//! The holder of a name: answers for it, alone, and changes what it means at all who keep it.
//!
//! A change goes in rounds, one at a time for each name; what is asked meanwhile waits behind it.
//!
//! ```text
//!   wish ──▶ revoke the leases, or wait them out ──▶ copy to the two others ──▶ keep it here ──▶ answer
//! ```
//!
//! What came with a handover is copied to the two others before anything is answered from it (a round that changes nothing): one of
//! them may not have it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::keeping::Kept;
use super::limits::lease_at_holder;
use super::outbox::{Outbox, Repeat, Seen, Timer};
use super::slot::{Round, Slot, Todo};
use super::{
    Bound, FencingNumber, MAX_ANSWERED, MAX_KEPT, MAX_LEASES, MAX_NAMES, MAX_QUEUED, MAX_WAITING,
    Outcome, Patience, Refusal, Said, Wish,
};
use crate::id::Address;
use crate::membership::AgentId;
use crate::time::Time;

/// The names that this agent answers for, as far as something is under way: forgotten with each view.
#[derive(Debug, Default)]
pub(super) struct Holder {
    slots: BTreeMap<Arc<str>, Slot>,
    /// Never starts again: with the epoch it makes the fencing numbers.
    counter: u64,
    pub(super) waiting: usize,
    pub(super) leases: usize,
    /// What became of wishes, as long as their agents may ask again: a bind that was refused must not be done later.
    answered: BTreeMap<AgentId, BTreeMap<u64, Outcome>>,
}

impl Holder {
    /// Another view: everybody asks again.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.answered.clear();
        self.waiting = 0;
        self.leases = 0;
    }

    /// A read or a wish of an agent.
    pub(super) fn handle_ask(
        &mut self,
        from: AgentId,
        said: Said,
        kept: &mut Kept,
        out: &mut Outbox,
        seen: Seen<'_>,
    ) {
        let (name, todo) = match said {
            Said::Read {
                name,
                patience,
                stamp,
            } => (name, Todo::Read(from, patience, stamp)),
            Said::Change {
                name,
                request,
                oldest,
                wish,
                address,
            } => {
                if self.was_answered(from, request, oldest, &name, out) {
                    return;
                }
                (name, Todo::Change(from, request, wish, address))
            }
            _ => return,
        };
        if self.slots.len() >= MAX_KEPT && !self.slots.contains_key(&name) {
            // It asks again.
            return;
        }
        let slot = self.slots.entry(Arc::clone(&name)).or_default();
        if slot.is_known(todo) || slot.queue.len() >= MAX_QUEUED {
            return;
        }
        slot.queue.push_back(todo);
        self.advance(&name, kept, out, seen);
    }

    pub(super) fn handle_withdraw(&mut self, from: AgentId, name: &Arc<str>) {
        if let Some(slot) = self.slots.get_mut(name) {
            self.waiting -= usize::from(slot.waiting.remove(&from).is_some());
            slot.queue
                .retain(|todo| !matches!(todo, Todo::Read(one, ..) if *one == from));
        }
        self.tidy(name);
    }

    pub(super) fn handle_revoked(
        &mut self,
        from: AgentId,
        name: &Arc<str>,
        number: u64,
        kept: &mut Kept,
        out: &mut Outbox,
        seen: Seen<'_>,
    ) {
        let Some(round) = self.round(name, number) else {
            return;
        };
        if round.revoking.remove(&from).is_some() && round.revoking.is_empty() {
            self.copy(name, kept, out, seen);
        }
    }

    pub(super) fn handle_copied(
        &mut self,
        from: AgentId,
        name: &Arc<str>,
        number: u64,
        kept: &mut Kept,
        out: &mut Outbox,
        seen: Seen<'_>,
    ) {
        let Some(round) = self.round(name, number) else {
            return;
        };
        if round.copying.remove(&from) && round.copying.is_empty() {
            self.finish(name, kept, out, seen);
        }
    }

    /// Names whose owner is gone become free, and what others may not have is copied.
    pub(super) fn look_after(&mut self, kept: &mut Kept, out: &mut Outbox, seen: Seen<'_>) {
        let due = |name: &Arc<str>, bound: &Bound, confirmed: bool| {
            let gone = !seen.runs(bound.address.process);
            let mine = (gone || !confirmed) && out.holder(name) == Some(out.me);
            let todo = if gone { Todo::Reap } else { Todo::Confirm };
            mine.then(|| (Arc::clone(name), todo))
        };
        let todos: Vec<_> = kept
            .iter()
            .filter_map(|(name, bound, confirmed)| due(name, bound, confirmed))
            .collect();
        for (name, todo) in todos {
            let slot = self.slots.entry(Arc::clone(&name)).or_default();
            if slot.queue.front() != Some(&todo) {
                slot.queue.push_front(todo);
            }
            self.advance(&name, kept, out, seen);
        }
    }

    /// A round may have to be told again, or leases be over.
    pub(super) fn handle_timer(
        &mut self,
        name: &Arc<str>,
        kept: &mut Kept,
        out: &mut Outbox,
        seen: Seen<'_>,
    ) {
        let Some(slot) = self.slots.get_mut(name) else {
            return;
        };
        let now = seen.now;
        let Some(round) = slot.round.as_mut() else {
            let before = slot.leases.len();
            slot.leases.retain(|_, until| *until > now);
            self.leases -= before - slot.leases.len();
            if let Some(until) = slot.leases.values().max() {
                out.set_timer(*until, Timer::Round(Arc::clone(name)));
            }
            return self.tidy(name);
        };
        if !round.revoking.is_empty() {
            round.revoking.retain(|_, until| *until > now);
            if round.revoking.is_empty() {
                return self.copy(name, kept, out, seen);
            }
        }
        if round.repeat.due <= now {
            round.repeat = round.repeat.next(&out.pace, now);
            round.tell(name, out);
        }
        round.set_timer(name, out);
    }

    /// Does what can be done now of what was asked.
    fn advance(&mut self, name: &Arc<str>, kept: &mut Kept, out: &mut Outbox, seen: Seen<'_>) {
        while let Some(slot) = self.slots.get_mut(name) {
            if slot.round.is_some() {
                return;
            }
            let Some(todo) = slot.queue.pop_front() else {
                break;
            };
            let (bound, confirmed) = kept.look(name);
            // What another may lack is not answered from.
            let settles = matches!(todo, Todo::Reap | Todo::Confirm);
            if bound.is_some() && !confirmed && !settles {
                slot.queue.push_front(todo);
                slot.queue.push_front(Todo::Confirm);
                continue;
            }
            match todo {
                Todo::Read(from, patience, stamp) => match bound {
                    Some(bound) => self.found(name, from, stamp, bound, out, seen.now),
                    None => self.absent(name, from, patience, stamp, out),
                },
                Todo::Change(from, request, wish, address) => {
                    let decided =
                        self.decide(from, wish, address, bound, kept.is_full(MAX_NAMES), seen);
                    let answer = (from, request, decided.1);
                    if let Outcome::Taken(_) = decided.1 {
                        self.tell(name, answer, out);
                    } else {
                        self.begin(name, decided.0, Some(answer), kept, out, seen);
                    }
                }
                Todo::Reap => {
                    if bound.is_some_and(|bound| !seen.runs(bound.address.process)) {
                        self.begin(name, None, None, kept, out, seen);
                    }
                }
                Todo::Confirm => {
                    if bound.is_some() && !confirmed {
                        self.begin(name, bound, None, kept, out, seen);
                    }
                }
            }
        }
        self.tidy(name);
    }

    /// What the name is to mean, and what to say of it.
    fn decide(
        &mut self,
        from: AgentId,
        wish: Wish,
        address: Address,
        bound: Option<Bound>,
        is_full: bool,
        seen: Seen<'_>,
    ) -> (Option<Bound>, Outcome) {
        let process = address.process;
        let state = seen.members.state(process.rank);
        let is_theirs = state.is_some_and(|state| state.host == from.host) && seen.runs(process);
        if !is_theirs {
            return (bound, Outcome::Refused(Refusal::OwnerGone));
        }
        match (wish, bound) {
            (Wish::Bind, Some(now)) if now.address == address => {
                (bound, Outcome::Bound(now.number))
            }
            (Wish::Bind, Some(now)) if !now.address.process.is_fenced_by(process) => {
                (bound, Outcome::Taken(now.address))
            }
            (Wish::Bind, None) if is_full => (None, Outcome::Refused(Refusal::NamesFull)),
            (Wish::Bind, _) => {
                let number = self.number(seen);
                (Some(Bound { number, address }), Outcome::Bound(number))
            }
            (Wish::Unbind, Some(now)) if now.address == address => {
                let number = self.number(seen);
                (None, Outcome::Unbound(Some(number)))
            }
            (Wish::Unbind, _) => (bound, Outcome::Unbound(None)),
        }
    }

    /// A number for another change.
    pub(super) fn number(&mut self, seen: Seen<'_>) -> FencingNumber {
        self.counter += 1;
        FencingNumber {
            epoch: seen.members.epoch(),
            counter: self.counter,
        }
    }

    fn begin(
        &mut self,
        name: &Arc<str>,
        bound: Option<Bound>,
        answer: Option<(AgentId, u64, Outcome)>,
        kept: &mut Kept,
        out: &mut Outbox,
        seen: Seen<'_>,
    ) {
        self.counter += 1;
        let Some(slot) = self.slots.get_mut(name) else {
            return;
        };
        let meant = kept.look(name).0.map(|bound| bound.address);
        let changes = meant != bound.map(|bound| bound.address);
        let leases = slot.leases.iter().filter(|(_, until)| **until > seen.now);
        let revoking: BTreeMap<AgentId, Time> = if changes {
            leases.map(|(agent, until)| (*agent, *until)).collect()
        } else {
            BTreeMap::new()
        };
        let wait = !revoking.is_empty();
        let round = slot.round.insert(Round {
            number: self.counter,
            bound,
            answer,
            changes,
            revoking,
            copying: BTreeSet::new(),
            repeat: Repeat::new(&out.pace, seen.now),
        });
        if wait {
            round.tell(name, out);
            round.set_timer(name, out);
        } else {
            self.copy(name, kept, out, seen);
        }
    }

    fn copy(&mut self, name: &Arc<str>, kept: &mut Kept, out: &mut Outbox, seen: Seen<'_>) {
        let slot = self.slots.get_mut(name);
        let Some(round) = slot.and_then(|slot| slot.round.as_mut()) else {
            return;
        };
        let others = out.holders(name).into_iter();
        round.copying = others.filter(|agent| *agent != out.me).collect();
        round.repeat = Repeat::new(&out.pace, seen.now);
        if round.copying.is_empty() {
            return self.finish(name, kept, out, seen);
        }
        round.tell(name, out);
        round.set_timer(name, out);
    }

    /// All have it: it counts from now on.
    fn finish(&mut self, name: &Arc<str>, kept: &mut Kept, out: &mut Outbox, seen: Seen<'_>) {
        let Some(slot) = self.slots.get_mut(name) else {
            return;
        };
        let Some(round) = slot.round.take() else {
            return;
        };
        match round.bound {
            Some(bound) => {
                kept.keep(name, bound, true);
                if !seen.runs(bound.address.process) {
                    // It went while this was under way.
                    slot.queue.push_front(Todo::Reap);
                }
            }
            None => kept.drop_name(name),
        }
        let mut told = BTreeMap::new();
        if round.changes {
            self.leases -= slot.leases.len();
            slot.leases.clear();
            if round.bound.is_some() {
                told = std::mem::take(&mut slot.waiting);
                self.waiting -= told.len();
            }
        }
        if let Some(until) = slot.leases.values().max() {
            out.set_timer(*until, Timer::Round(Arc::clone(name)));
        }
        if let Some(answer) = round.answer {
            self.tell(name, answer, out);
        }
        if let Some(bound) = round.bound {
            for (agent, stamp) in told {
                self.found(name, agent, stamp, bound, out, seen.now);
            }
        }
        self.advance(name, kept, out, seen);
    }

    /// How many answers to wishes are kept.
    pub(super) fn answered(&self) -> usize {
        self.answered.values().map(BTreeMap::len).sum()
    }

    /// Whether a wish was answered; if so, it is answered again.
    fn was_answered(
        &mut self,
        from: AgentId,
        request: u64,
        oldest: u64,
        name: &Arc<str>,
        out: &mut Outbox,
    ) -> bool {
        let known = self.answered.entry(from).or_default();
        *known = known.split_off(&oldest);
        if let Some(outcome) = known.get(&request).copied() {
            self.tell(name, (from, request, outcome), out);
            return true;
        }
        request < oldest
    }

    fn tell(&mut self, name: &Arc<str>, answer: (AgentId, u64, Outcome), out: &mut Outbox) {
        let (to, request, outcome) = answer;
        if to != out.me {
            let known = self.answered.entry(to).or_default();
            if known.len() >= MAX_ANSWERED {
                known.pop_first();
            }
            known.insert(request, outcome);
        }
        let name = Arc::clone(name);
        out.send(
            to,
            Said::Changed {
                name,
                request,
                outcome,
            },
        );
    }

    fn found(
        &mut self,
        name: &Arc<str>,
        to: AgentId,
        stamp: u64,
        bound: Bound,
        out: &mut Outbox,
        now: Time,
    ) {
        let slot = self.slots.entry(Arc::clone(name)).or_default();
        let room = self.leases < MAX_LEASES || slot.leases.contains_key(&to);
        let leased = to != out.me && room;
        if leased {
            let until = now + lease_at_holder(&out.pace);
            if slot.leases.is_empty() {
                out.set_timer(until, Timer::Round(Arc::clone(name)));
            }
            self.leases += usize::from(slot.leases.insert(to, until).is_none());
        }
        self.waiting -= usize::from(slot.waiting.remove(&to).is_some());
        let name = Arc::clone(name);
        let said = Said::Found {
            name,
            bound,
            stamp,
            leased,
        };
        out.send(to, said);
    }

    fn absent(
        &mut self,
        name: &Arc<str>,
        from: AgentId,
        patience: Patience,
        stamp: u64,
        out: &mut Outbox,
    ) {
        let name = Arc::clone(name);
        if patience == Patience::Look {
            return out.send(from, Said::Free { name, stamp });
        }
        let slot = self.slots.entry(Arc::clone(&name)).or_default();
        if self.waiting >= MAX_WAITING && !slot.waiting.contains_key(&from) {
            return out.send(from, Said::Full { name });
        }
        self.waiting += usize::from(slot.waiting.insert(from, stamp).is_none());
    }

    fn round(&mut self, name: &Arc<str>, number: u64) -> Option<&mut Round> {
        let round = self.slots.get_mut(name)?.round.as_mut()?;
        (round.number == number).then_some(round)
    }

    fn tidy(&mut self, name: &Arc<str>) {
        if self.slots.get(name).is_some_and(Slot::is_empty) {
            self.slots.remove(name);
        }
    }
}
