//! A process: does some work with others, refuses what comes from ended lives, and ends with its agent.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::{Admission, Fence};

use super::message::{Message, Note, Speaker};
use super::names::Caller;
use super::plan::{Mistake, Plan, WORK};
use crate::ids::{ConnectionId, MachineId, Place};
use crate::machine::{Context, Opened};

#[derive(Debug)]
pub(super) struct Process {
    plan: Rc<Plan>,
    me: Option<ProcessId>,
    pub(super) fence: Fence,
    agent: Option<ConnectionId>,
    /// To others, whoever dialled.
    links: BTreeMap<Rank, ConnectionId>,
    dialling: BTreeMap<ConnectionId, Rank>,
    is_leaving: bool,
    caller: Option<Caller>,
}

impl Process {
    pub(super) fn new(plan: Rc<Plan>) -> Self {
        Self {
            plan,
            me: None,
            fence: Fence::default(),
            agent: None,
            links: BTreeMap::new(),
            dialling: BTreeMap::new(),
            is_leaving: false,
            caller: None,
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_, impl Speaker>) {
        let host = self.plan.host(context.me().machine);
        self.agent = Some(context.dial(self.plan.agent(host)));
    }

    pub(super) fn receive(&mut self, message: Message, context: &mut Context<'_, impl Speaker>) {
        match message {
            Message::Begin(process, fence) => {
                context.note(Note::Joined(fence.epoch().0));
                self.me = Some(process);
                self.fence = *fence;
                let (names, between) = (self.plan.names, self.plan.between_calls);
                self.caller = (names > 0).then(|| Caller::new(process, names, between));
                let wait = Duration::from_millis(context.rng().u64(1..1000));
                context.set_timer(WORK, context.now() + wait);
            }
            Message::Tell(notice) => match self.fence.handle_notice(&notice) {
                Ok(true) => context.note(Note::Told(notice)),
                Ok(false) => {}
                Err(_) => context.note(Note::Gap),
            },
            Message::Work(from) => {
                let admission = self.fence.admission(from);
                match admission {
                    Admission::Ended => context.sometimes("a frame of an ended life was refused"),
                    Admission::NotYet => {
                        context.sometimes("a frame came before the news of its life")
                    }
                    Admission::Admit => {}
                }
                if admission == Admission::Admit || self.plan.has(Mistake::NoFence) {
                    context.note(Note::Took(from));
                }
            }
            Message::Answer(bytes) => {
                if let Some(caller) = &mut self.caller {
                    caller.handle_answer(&bytes, context);
                }
            }
            _ => {}
        }
    }

    pub(super) fn timer(&mut self, context: &mut Context<'_, impl Speaker>) {
        let (Some(me), Some(agent)) = (self.me, self.agent) else {
            return;
        };
        if self.is_leaving {
            let myself = context.me().machine;
            return context.kill(myself);
        }
        if context.rng().u32(..400) == 0 {
            self.is_leaving = true;
            context.send(agent, Message::Leaving);
            return context.set_timer(WORK, context.now() + Duration::from_millis(5));
        }
        if let Some(caller) = &mut self.caller {
            let wait = caller.work(agent, context);
            return context.set_timer(WORK, context.now() + wait);
        }
        let size = self.plan.ranks.len() as u32;
        let to = (me.rank + context.rng().u32(1..size)) % size;
        match self.links.get(&to) {
            Some(link) => context.send(*link, Message::Work(me)),
            None if self.dialling.values().any(|one| *one == to) => {}
            None => {
                let connection = context.dial(self.plan.process(to));
                self.dialling.insert(connection, to);
            }
        }
        let wait = Duration::from_millis(context.rng().u64(50..1500));
        context.set_timer(WORK, context.now() + wait);
    }

    pub(super) fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        opened: Opened,
        context: &mut Context<'_, impl Speaker>,
    ) {
        self.dialling.remove(&connection);
        let Some(rank) = self.plan.rank(peer.machine) else {
            return;
        };
        self.links.insert(rank, connection);
        if let (Opened::Here, Some(me)) = (opened, self.me) {
            context.send(connection, Message::Work(me));
        }
    }

    pub(super) fn lost(
        &mut self,
        connection: ConnectionId,
        context: &mut Context<'_, impl Speaker>,
    ) {
        if self.agent == Some(connection) {
            // Without its agent nobody would end it.
            let myself = context.me().machine;
            return context.kill(myself);
        }
        let gone: Vec<Rank> = self
            .links
            .iter()
            .filter(|(_, one)| **one == connection)
            .map(|(rank, _)| *rank)
            .collect();
        for rank in gone {
            self.links.remove(&rank);
            self.complain(rank, context);
        }
    }

    pub(super) fn refused(
        &mut self,
        connection: ConnectionId,
        to: MachineId,
        context: &mut Context<'_, impl Speaker>,
    ) {
        self.dialling.remove(&connection);
        match self.plan.rank(to) {
            Some(rank) => self.complain(rank, context),
            None => self.lost(connection, context),
        }
    }

    fn complain(&mut self, rank: Rank, context: &mut Context<'_, impl Speaker>) {
        let lives = (0..u32::MAX).map(|life| ProcessId::new(rank, Incarnation(life)));
        let mut lives = lives.filter(|life| self.fence.admission(*life) == Admission::Admit);
        if let (Some(process), Some(agent)) = (lives.next(), self.agent) {
            context.send(agent, Message::Unreachable(process));
        }
    }
}
