//! A process: asks for others, is told of them, leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use mizzen_proto::id::ProcessId;

use super::message::{Answer, Message, Note, Speaker};
use super::plan::Plan;
use crate::ids::{ConnectionId, Place};
use crate::machine::Context;

/// How many questions a life asks; then it is quiet, so that all can be answered.
const QUESTIONS: u32 = 12;

const WORK: u64 = 0;
const LISTEN: u64 = 1;

#[derive(Debug)]
pub(super) struct Process {
    plan: Rc<Plan>,
    rank: u32,
    agent: Option<ConnectionId>,
    asked: u32,
    /// Who was asked for and has not been told of.
    pub(super) open: BTreeSet<u32>,
    /// To whom it was introduced, and has a socket that is whole: it does not ask for them.
    met: BTreeMap<u32, ProcessId>,
    is_leaving: bool,
}

impl Process {
    pub(super) fn new(plan: Rc<Plan>, rank: u32) -> Self {
        Self {
            plan,
            rank,
            agent: None,
            asked: 0,
            open: BTreeSet::new(),
            met: BTreeMap::new(),
            is_leaving: false,
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_, impl Speaker>) {
        context.dial(self.plan.agent_of(self.rank));
    }

    pub(super) fn connected(
        &mut self,
        connection: ConnectionId,
        context: &mut Context<'_, impl Speaker>,
    ) {
        self.agent = Some(connection);
        let wait = Duration::from_millis(context.rng().u64(..1000));
        context.set_timer(LISTEN, context.now() + wait);
        context.set_timer(WORK, context.now());
    }

    pub(super) fn receive(&mut self, message: Message, context: &mut Context<'_, impl Speaker>) {
        let answer = match message {
            Message::Answer(answer) => answer,
            Message::Closed(process) => {
                if self.met.get(&process.rank.0) == Some(&process) {
                    self.met.remove(&process.rank.0);
                }
                return;
            }
            _ => return,
        };
        match answer {
            Answer::Peer(process) => {
                let asked = self.open.remove(&process.rank.0);
                self.met.insert(process.rank.0, process);
                context.sometimes(if asked {
                    "two were introduced"
                } else {
                    "who had not asked was introduced"
                });
            }
            Answer::Address(process) => {
                self.open.remove(&process.rank.0);
                context.sometimes("a process of another host was located");
            }
            Answer::Unreachable(rank, _) => {
                self.open.remove(&rank);
                context.sometimes("somebody could not be reached");
            }
        }
        context.note(Note::Hears(answer));
    }

    pub(super) fn timer(&mut self, key: u64, context: &mut Context<'_, impl Speaker>) {
        let (Some(agent), Some(me)) = (self.agent, self.plan.process(context.me())) else {
            return;
        };
        if key == LISTEN {
            return context.send(agent, Message::Ready(me));
        }
        if self.is_leaving {
            return context.kill(self.plan.machine_of(self.rank));
        }
        if self.asked >= QUESTIONS {
            return;
        }
        if context.rng().u32(..100) == 0 {
            self.is_leaving = true;
            context.note(Note::Leaves);
            context.send(agent, Message::Leaving(me));
            let wait = Duration::from_millis(context.rng().u64(1..200));
            return context.set_timer(WORK, context.now() + wait);
        }
        // Oneself, and one that is not there, are asked for too.
        let target = context.rng().u32(..=self.plan.size());
        let is_met = self.met.contains_key(&target);
        let impatient = context.rng().u32(..4) == 0;
        if !is_met && (self.open.insert(target) || impatient) {
            self.asked += 1;
            context.note(Note::Asks(target));
            context.send(agent, Message::Reach(target));
        }
        let wait = Duration::from_millis(context.rng().u64(1..1200));
        context.set_timer(WORK, context.now() + wait);
    }

    /// A process ends with its agent.
    pub(super) fn lost(&mut self, me: Place, context: &mut Context<'_, impl Speaker>) {
        context.kill(me.machine);
    }
}
