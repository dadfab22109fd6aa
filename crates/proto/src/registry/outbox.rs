//! What a registry has to say and when it says it again, for all of its parts.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::limits::{first_gap, last_gap};
use super::view::Placement;
use super::{Answer, Frame, Said};
use crate::id::ProcessId;
use crate::membership::{AgentId, Members, Pace};
use crate::time::Time;

/// What whoever drives a registry has to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this to the agent that it names, connecting if need be. It may be lost.
    Send(Frame),
    /// Tell a process of this host.
    Answer(ProcessId, Answer),
}

/// What the membership of this agent says at this moment.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// All that is known to have been decided.
    pub members: &'a Members,
    /// Until when this agent may answer: its lease. `Time(0)` if it takes no part.
    pub lease: Time,
    /// The time.
    pub now: Time,
}

/// What is to be looked at again at some time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Ready,
    Batch(u64),
    Read(Arc<str>),
    Change(Arc<str>),
    Round(Arc<str>),
}

/// When something is said again that was not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repeat {
    pub(super) due: Time,
    gap: Duration,
}

#[derive(Debug)]
pub(super) struct Outbox {
    pub(super) me: AgentId,
    pub(super) pace: Pace,
    /// None while this agent takes no part.
    pub(super) placement: Option<Placement>,
    /// Whether all are known to be ready for this view.
    pub(super) established: bool,
    sequence: u64,
    timers: BTreeSet<(Time, Timer)>,
    /// What this agent says to itself.
    pub(super) inward: VecDeque<Said>,
    pub(super) actions: VecDeque<Action>,
}

impl<'a> Seen<'a> {
    /// What the membership machine of this agent says.
    #[must_use]
    pub fn of(agent: &'a crate::membership::Agent, now: Time) -> Self {
        let lease = agent.lease_until().filter(|_| agent.is_member());
        Self {
            members: agent.members(),
            lease: lease.unwrap_or(Time(0)),
            now,
        }
    }

    /// Whether others may still rely on what this agent says.
    pub(super) fn may_act(&self) -> bool {
        self.now < self.lease
    }

    /// Whether this life of a process runs, and has not left.
    pub(super) fn runs(&self, process: ProcessId) -> bool {
        use crate::membership::Standing;
        let state = self.members.state(process.rank);
        state.is_some_and(|state| {
            state.life == process.incarnation && state.standing == Standing::Running
        })
    }
}

impl Repeat {
    pub(super) fn new(pace: &Pace, now: Time) -> Self {
        let gap = first_gap(pace);
        let due = now + gap;
        Self { due, gap }
    }

    /// It was said again.
    pub(super) fn next(self, pace: &Pace, now: Time) -> Self {
        let gap = (self.gap * 2).min(last_gap(pace));
        let due = now + gap;
        Self { due, gap }
    }
}

impl Outbox {
    pub(super) fn new(me: AgentId, pace: Pace) -> Self {
        Self {
            me,
            pace,
            placement: None,
            established: false,
            sequence: 0,
            timers: BTreeSet::new(),
            inward: VecDeque::new(),
            actions: VecDeque::new(),
        }
    }

    /// Says something to an agent, which may be this one.
    pub(super) fn send(&mut self, to: AgentId, said: Said) {
        if to == self.me {
            return self.inward.push_back(said);
        }
        let Some(placement) = &self.placement else {
            return;
        };
        self.sequence += 1;
        let frame = Frame {
            from: self.me,
            to,
            epoch: placement.epoch,
            view: placement.view,
            sequence: self.sequence,
            said,
        };
        self.actions.push_back(Action::Send(frame));
    }

    pub(super) fn answer(&mut self, process: ProcessId, answer: Answer) {
        self.actions.push_back(Action::Answer(process, answer));
    }

    pub(super) fn set_timer(&mut self, due: Time, timer: Timer) {
        self.timers.insert((due, timer));
    }

    /// The next timer that is due.
    pub(super) fn ring(&mut self, now: Time) -> Option<Timer> {
        if self.timers.first()?.0 > now {
            return None;
        }
        self.timers.pop_first().map(|(_, timer)| timer)
    }

    /// Lets what is due ring later.
    pub(super) fn put_off(&mut self, now: Time) {
        let later = now + last_gap(&self.pace);
        while let Some(timer) = self.ring(now) {
            self.timers.insert((later, timer));
        }
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(due, _)| *due)
    }

    pub(super) fn holders(&self, name: &str) -> Vec<AgentId> {
        let placement = self.placement.as_ref();
        placement.map_or_else(Vec::new, |placement| placement.holders(name))
    }

    pub(super) fn holder(&self, name: &str) -> Option<AgentId> {
        self.placement.as_ref()?.holder(name)
    }
}
