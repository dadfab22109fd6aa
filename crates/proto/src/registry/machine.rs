//! The registry of one agent: hands what it hears to its parts, and applies each epoch first.

use std::collections::BTreeMap;

use super::front::Front;
use super::handover::{Before, Handover};
use super::holder::Holder;
use super::keeping::Kept;
use super::near::near;
use super::outbox::{Action, Outbox, Seen, Timer};
use super::view::Placement;
use super::{Answer, Bound, Frame, Question, Record, Said};
use crate::id::ProcessId;
use crate::membership::{AgentId, Pace};
use crate::time::Time;

/// The names of one agent.
#[derive(Debug)]
pub struct Registry {
    front: Front,
    holder: Holder,
    kept: Kept,
    handover: Handover,
    out: Outbox,
    /// The latest frame of each agent.
    heard: BTreeMap<AgentId, u64>,
}

/// Names that are compared with one that may be misspelt: to say so must not take long.
const LOOKED_AT: usize = 16_384;

/// How large the tables of a registry are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Names kept, as holder or for another.
    pub kept: usize,
    /// Names that processes of this host have bound.
    pub owned: usize,
    /// Questions of processes that are open.
    pub questions: usize,
    /// Names that this agent asks for.
    pub asked: usize,
    /// Answers remembered.
    pub cached: usize,
    /// Agents that wait here.
    pub waiting: usize,
    /// Leases given.
    pub leases: usize,
    /// Answers to wishes that are kept, to say them again.
    pub answered: usize,
}

impl Registry {
    /// A registry that knows nothing yet, not even who is here.
    #[must_use]
    pub fn new(me: AgentId, pace: Pace) -> Self {
        Self {
            front: Front::default(),
            holder: Holder::default(),
            kept: Kept::default(),
            handover: Handover::default(),
            out: Outbox::new(me, pace),
            heard: BTreeMap::new(),
        }
    }

    /// The members or the lease may have changed. To be called after whatever the membership hears; other calls do the same first.
    pub fn handle_members(&mut self, seen: Seen<'_>) {
        self.catch_up(seen);
        self.hear_myself(seen);
    }

    /// A process of this host asks. The caller knows who it is by its socket.
    pub fn handle_question(&mut self, process: ProcessId, question: Question, seen: Seen<'_>) {
        self.catch_up(seen);
        if let Question::Near { request, name } = question {
            let names = near(&name, self.names().take(LOOKED_AT));
            return self.out.answer(process, Answer::Near { request, names });
        }
        self.front
            .handle_question(process, question, &mut self.out, seen);
        self.hear_myself(seen);
    }

    /// A process of this host has ended or closed its socket. What it bound goes with its verdict, not now.
    pub fn handle_gone(&mut self, process: ProcessId, seen: Seen<'_>) {
        self.catch_up(seen);
        self.front.handle_gone(process, &mut self.out, seen.now);
        self.hear_myself(seen);
    }

    /// Another agent says something. The caller knows that it is `frame.from` which does.
    pub fn handle_frame(&mut self, frame: Frame, seen: Seen<'_>) {
        self.catch_up(seen);
        let Some(placement) = &self.out.placement else {
            return;
        };
        let ours = frame.to == self.out.me && placement.has(frame.from);
        if !ours || frame.view != placement.view || !seen.may_act() {
            return;
        }
        // Who knows of a death that we do not know of must not be told of the dead. It asks again.
        let asks = matches!(frame.said, Said::Read { .. } | Said::Change { .. });
        if asks && frame.epoch > placement.epoch {
            return;
        }
        let last = self.heard.entry(frame.from).or_default();
        if frame.sequence <= *last {
            return;
        }
        *last = frame.sequence;
        self.hear(frame.from, frame.said, seen);
        self.hear_myself(seen);
    }

    /// Time has passed. All frames that have arrived were handled before.
    pub fn handle_tick(&mut self, seen: Seen<'_>) {
        self.catch_up(seen);
        if !seen.may_act() {
            // Nobody may rely on us; a lease that is renewed after all finds the timers again.
            return self.out.put_off(seen.now);
        }
        while let Some(timer) = self.out.ring(seen.now) {
            match &timer {
                Timer::Ready | Timer::Batch(_) => {
                    self.handover.handle_timer(&timer, &mut self.out, seen.now);
                }
                Timer::Read(_) | Timer::Change(_) => {
                    self.front.handle_timer(&timer, &mut self.out, seen.now);
                }
                Timer::Round(name) => {
                    let (kept, out) = (&mut self.kept, &mut self.out);
                    self.holder.handle_timer(name, kept, out, seen);
                }
            }
        }
        self.hear_myself(seen);
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.out.actions.pop_front()
    }

    /// When to call [`handle_tick`](Self::handle_tick), at the latest.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        self.out.next_timer()
    }

    /// Whether names are answered in the present view.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.out.established
    }

    /// Which hosts are here and who keeps what, if this agent takes part.
    #[must_use]
    pub fn placement(&self) -> Option<&Placement> {
        self.out.placement.as_ref()
    }

    /// What is kept here of a name.
    #[must_use]
    pub fn kept(&self, name: &str) -> Option<Bound> {
        self.kept.look(name).0
    }

    /// What this agent answers for a name, if it is the holder and all who keep it have it.
    #[must_use]
    pub fn held(&self, name: &str) -> Option<Bound> {
        let (bound, confirmed) = self.kept.look(name);
        let holds = self.out.established && self.out.holder(name) == Some(self.out.me);
        bound.filter(|_| holds && confirmed)
    }

    /// Names that are kept here: for who is to be told what exists.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kept.iter().map(|(name, ..)| &**name)
    }

    /// How large the tables are.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        Sizes {
            kept: self.kept.len(),
            owned: self.front.owned.len(),
            questions: self.front.questions,
            asked: self.front.asked(),
            cached: self.front.cached(),
            waiting: self.holder.waiting,
            leases: self.holder.leases,
            answered: self.holder.answered(),
        }
    }

    /// Applies what the membership knows more than we did.
    fn catch_up(&mut self, seen: Seen<'_>) {
        let known = self.out.placement.as_ref().map(|one| one.epoch);
        let epoch = seen.members.epoch();
        if known == Some(epoch) {
            return;
        }
        let me = self.out.me;
        let next = seen
            .members
            .is_here(me)
            .then(|| Placement::of(seen.members));
        let view = next.as_ref().map(|placement| placement.view);
        let placement = std::mem::replace(&mut self.out.placement, next);
        self.front.handle_epoch(seen);
        if view.is_some() && view == placement.as_ref().map(|placement| placement.view) {
            if self.out.established {
                let (kept, out) = (&mut self.kept, &mut self.out);
                self.holder.look_after(kept, out, seen);
            }
            return;
        }
        let established = std::mem::replace(&mut self.out.established, false);
        let before = Before {
            placement,
            established,
            binds: self.front.binds_under_way(),
        };
        self.out.inward.clear();
        self.holder.clear();
        self.front.handle_view();
        if let Some(placement) = &self.out.placement {
            self.heard.retain(|agent, _| placement.has(*agent));
            let (kept, owned) = (&mut self.kept, &self.front.owned);
            self.handover
                .begin(&before, kept, owned, &mut self.out, seen.now);
        }
    }

    /// Hears what this agent has said to itself. Without a lease that waits: it would not be said again.
    fn hear_myself(&mut self, seen: Seen<'_>) {
        while seen.may_act() {
            let Some(said) = self.out.inward.pop_front() else {
                break;
            };
            self.hear(self.out.me, said, seen);
        }
    }

    fn hear(&mut self, from: AgentId, said: Said, seen: Seen<'_>) {
        let now = seen.now;
        match said {
            Said::Hand { number, records } => self.take_over(from, number, &records),
            Said::Handed { number } => {
                let (kept, out) = (&mut self.kept, &mut self.out);
                self.handover.handle_handed(from, number, kept, out, now);
            }
            Said::Ready => {
                let all = self.handover.handle_ready(from, &mut self.out);
                if all {
                    self.establish(seen);
                }
            }
            Said::Established => {
                let placement = self.out.placement.as_ref();
                if placement.and_then(Placement::coordinator) == Some(from) {
                    self.establish(seen);
                }
            }
            // Whatever else is said is said in a view that is established.
            said if self.handover.is_ready() => {
                self.establish(seen);
                self.hear_of_name(from, said, seen);
            }
            _ => {}
        }
    }

    fn hear_of_name(&mut self, from: AgentId, said: Said, seen: Seen<'_>) {
        let now = seen.now;
        let (kept, out) = (&mut self.kept, &mut self.out);
        let Some(name) = said.name() else {
            return;
        };
        let holders = out.holders(name);
        let of_holder = holders.first() == Some(&from);
        let to_holder = holders.first() == Some(&out.me);
        match said {
            Said::Read { .. } | Said::Change { .. } if to_holder => {
                self.holder.handle_ask(from, said, kept, out, seen);
            }
            Said::Withdraw { name } if to_holder => self.holder.handle_withdraw(from, &name),
            Said::Revoked { name, round } if to_holder => {
                self.holder
                    .handle_revoked(from, &name, round, kept, out, seen);
            }
            Said::Copied { name, round } if to_holder => {
                self.holder
                    .handle_copied(from, &name, round, kept, out, seen);
            }
            Said::Found {
                name,
                bound,
                stamp,
                leased,
            } if of_holder => {
                let found = (bound, stamp, leased);
                self.front.handle_found(from, &name, found, out, now);
            }
            Said::Free { name, stamp } if of_holder => {
                self.front.handle_free(&name, stamp, out, now);
            }
            Said::Full { name } if of_holder => self.front.handle_full(&name, out),
            Said::Changed {
                name,
                request,
                outcome,
            } if of_holder => {
                self.front.handle_changed(&name, request, outcome, out, now);
            }
            Said::Revoke { name, round } if of_holder => {
                self.front.handle_revoke(&name);
                out.send(from, Said::Revoked { name, round });
            }
            Said::Copy { name, round, bound } if of_holder && holders.contains(&out.me) => {
                match bound {
                    Some(bound) => kept.keep(&name, bound, false),
                    None => kept.drop_name(&name),
                }
                out.send(from, Said::Copied { name, round });
            }
            _ => {}
        }
    }

    /// Names that this agent holds from now on.
    fn take_over(&mut self, from: AgentId, number: u64, records: &[Record]) {
        // What comes again after it was taken may be old.
        if !self.out.established {
            for record in records {
                if self.out.holder(&record.name) == Some(self.out.me) {
                    self.handover.take(record, &mut self.kept);
                }
            }
        }
        self.out.send(from, Said::Handed { number });
    }

    /// All who are here are ready: nobody answers by an earlier view any more.
    fn establish(&mut self, seen: Seen<'_>) {
        if self.out.established || !self.handover.is_ready() {
            return;
        }
        self.out.established = true;
        let placement = self.out.placement.as_ref();
        if placement.and_then(Placement::coordinator) == Some(self.out.me) {
            let others: Vec<AgentId> = placement.map_or_else(Vec::new, |placement| {
                let agents = placement.agents().iter();
                agents.copied().filter(|one| *one != self.out.me).collect()
            });
            for agent in others {
                self.out.send(agent, Said::Established);
            }
        }
        for (name, address) in self.handover.take_wishes() {
            let owner = self.kept.look(&name).0.map(|bound| bound.address.process);
            let theirs = owner.is_none_or(|owner| owner.is_fenced_by(address.process));
            let is_done = self
                .kept
                .look(&name)
                .0
                .is_some_and(|bound| bound.address == address);
            if theirs && !is_done && seen.runs(address.process) {
                let number = self.holder.number(seen);
                self.kept.keep(&name, Bound { number, address }, false);
            }
        }
        let (kept, out) = (&mut self.kept, &mut self.out);
        self.holder.look_after(kept, out, seen);
        self.front.ask_all(&mut self.out, seen.now);
    }
}
