//! The agent of a host, as far as it introduces: what a driver does around the [`Broker`].

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use mizzen_proto::boot::ToProcess;
use mizzen_proto::broker::{Action, Broker, Departure};
use mizzen_proto::id::{Incarnation, ProcessId, Rank};

use super::message::{Again, Answer, Message, News, Note, Speaker};
use super::plan::{LAUNCHER, LOG, Plan};
use crate::ids::{ConnectionId, MachineId, Place};
use crate::machine::Context;

/// How soon what there was no descriptor for is tried again.
const NEXT_TRY: Duration = Duration::from_millis(2);
/// How long an introduction keeps its descriptors.
const UNDER_WAY: Duration = Duration::from_millis(7);

// Timers.
const RETRY: u64 = 0;
const DESCRIPTORS: u64 = 1;
const STARTS: u64 = 1000;
const COLLECTS: u64 = 2000;

#[derive(Debug)]
pub(super) struct Agent {
    plan: Rc<Plan>,
    me: MachineId,
    broker: Broker,
    log: Option<ConnectionId>,
    launcher: Option<ConnectionId>,
    children: BTreeMap<u32, Child>,
    /// The life of each rank that the log has, if it is not the first.
    lives: BTreeMap<u32, u32>,
    /// Introductions that have their descriptors.
    under_way: u32,
    is_ending: bool,
}

#[derive(Debug)]
struct Child {
    process: ProcessId,
    connection: Option<ConnectionId>,
    /// What it is told when it has connected.
    waiting: Vec<Message>,
    has_left: bool,
    /// It has ended, and nobody has looked yet.
    has_ended: bool,
}

impl Agent {
    pub(super) fn new(plan: Rc<Plan>, me: MachineId) -> Self {
        let here = plan.ranks_of(me);
        Self {
            broker: Broker::new(plan.size(), plan.on_death, &here),
            plan,
            me,
            log: None,
            launcher: None,
            children: BTreeMap::new(),
            lives: BTreeMap::new(),
            under_way: 0,
            is_ending: false,
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_, impl Speaker>) {
        context.dial(LOG);
        context.dial(LAUNCHER);
    }

    pub(super) fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        context: &mut Context<'_, impl Speaker>,
    ) {
        if let Some(process) = self.plan.process(peer) {
            let child = self.children.get_mut(&process.rank.0);
            if let Some(child) = child.filter(|child| child.process == process) {
                child.connection = Some(connection);
                for message in child.waiting.drain(..) {
                    context.send(connection, message);
                }
            }
            return;
        }
        let side = match peer.machine {
            LOG => &mut self.log,
            _ => &mut self.launcher,
        };
        *side = Some(connection);
        if self.log.is_some() && self.launcher.is_some() {
            for rank in self.plan.ranks_of(self.me) {
                let wait = Duration::from_millis(context.rng().u64(..800));
                context.set_timer(STARTS + u64::from(rank), context.now() + wait);
            }
        }
    }

    pub(super) fn receive(
        &mut self,
        from: ConnectionId,
        message: Message,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let mut children = self.children.values_mut();
        let child = children.find(|child| child.connection == Some(from));
        match (message, child) {
            (Message::Reach(target), Some(child)) => {
                let process = child.process;
                let known = self.life_of(target);
                context.note(Note::Takes(process, target, known));
                self.broker.handle_reach(process.rank.0, target);
            }
            (Message::Ready(process), Some(_)) => {
                self.tell(self.launcher, Message::Ready(process), context)
            }
            (Message::Leaving(process), Some(child)) => {
                child.has_left = true;
                self.broker.handle_exit(process.rank.0, Departure::Left);
                self.tell(self.log, Message::Leaving(process), context);
            }
            (Message::Located(process), _) => {
                let (rank, life) = (process.rank.0, process.incarnation.0);
                let current = self.life_of(rank);
                self.broker.handle_located(rank, life, "", current);
            }
            (Message::Unreachable(rank, reason), _) => {
                self.broker.handle_unreachable(rank, reason);
            }
            (Message::News(news), _) => self.read(news, context),
            _ => {}
        }
        self.act(context);
    }

    pub(super) fn timer(&mut self, key: u64, context: &mut Context<'_, impl Speaker>) {
        match key {
            RETRY => self.broker.retry(),
            DESCRIPTORS => self.under_way = 0,
            COLLECTS.. => self.collect((key - COLLECTS) as u32, context),
            _ => self.spawn((key - STARTS) as u32, context),
        }
        self.act(context);
    }

    pub(super) fn child_ended(&mut self, child: Place, context: &mut Context<'_, impl Speaker>) {
        let ended = self.plan.process(child);
        let mut children = self.children.values_mut();
        if let Some(child) = children.find(|child| Some(child.process) == ended) {
            child.has_ended = true;
            let process = child.process;
            let rank = process.rank.0;
            // Before the agent has looked, those that it was introduced to know it by their sockets.
            for other in self.children.values().filter_map(|child| child.connection) {
                context.send(other, Message::Closed(process));
            }
            let wait = Duration::from_millis(context.rng().u64(..30));
            context.set_timer(COLLECTS + u64::from(rank), context.now() + wait);
        }
    }

    fn read(&mut self, news: News, context: &mut Context<'_, impl Speaker>) {
        match news {
            News::Ended(process, _, Again::Starts) => {
                let (rank, life) = (process.rank.0, process.incarnation.0);
                self.lives.insert(rank, life + 1);
                if self.plan.agent_of(rank) == self.me {
                    context.sometimes("a process was started again");
                    self.spawn(rank, context);
                }
            }
            News::JobEnds => {
                self.is_ending = true;
                self.broker.give_up();
                for rank in self.children.keys() {
                    context.kill(self.plan.machine_of(*rank));
                }
            }
            News::Ended(..) | News::Left(_) => {}
        }
    }

    fn spawn(&mut self, rank: u32, context: &mut Context<'_, impl Speaker>) {
        if self.is_ending {
            return;
        }
        let life = self.life_of(rank);
        let machine = self.plan.machine_of(rank);
        let place = Place {
            machine,
            life: crate::ids::Life(life),
        };
        let process = self.plan.process(place).expect("a rank is a process");
        let child = Child {
            process,
            connection: None,
            waiting: Vec::new(),
            has_left: false,
            has_ended: false,
        };
        self.children.insert(rank, child);
        context.spawn(machine);
        self.broker.handle_started(rank);
    }

    fn collect(&mut self, rank: u32, context: &mut Context<'_, impl Speaker>) {
        let Some(child) = self.children.remove(&rank) else {
            return;
        };
        let how = match child.has_left {
            true => Departure::Left,
            false => Departure::Died,
        };
        self.tell(self.log, Message::Ended(child.process, how), context);
        self.broker.handle_exit(rank, how);
    }

    /// Does what the broker wants.
    fn act(&mut self, context: &mut Context<'_, impl Speaker>) {
        while let Some(action) = self.broker.poll_action() {
            match action {
                Action::Introduce { rank, target } => self.introduce(rank, target, context),
                Action::Post { rank, packet } => match packet {
                    ToProcess::Address {
                        rank: of,
                        incarnation,
                        ..
                    } => {
                        let process = ProcessId::new(Rank(of), Incarnation(incarnation));
                        self.post(rank, Answer::Address(process), context);
                    }
                    ToProcess::Unreachable { rank: of, reason } => {
                        self.post(rank, Answer::Unreachable(of, reason), context);
                    }
                    other => unreachable!("a broker does not say {other:?}"),
                },
                Action::Locate { rank } => {
                    let least = self.life_of(rank);
                    self.tell(self.launcher, Message::Locate(rank, least), context);
                }
            }
        }
        let entries = self.broker.entries();
        if entries > self.children_max() {
            context.note(Note::Grown(entries));
        }
        if self.broker.wants_retry() {
            context.set_timer(RETRY, context.now() + NEXT_TRY);
        }
    }

    fn introduce(&mut self, rank: u32, target: u32, context: &mut Context<'_, impl Speaker>) {
        let runs = |rank| {
            let child = self.children.get(&rank);
            let child = child.filter(|child: &&Child| !child.has_ended);
            child.map(|child| child.process)
        };
        let (Some(one), Some(other)) = (runs(rank), runs(target)) else {
            context.sometimes("one of two had ended when they were introduced");
            return self.broker.handle_gone(rank, target);
        };
        if self.under_way >= self.plan.descriptors {
            context.sometimes("there was no descriptor left");
            return self.broker.handle_no_descriptor(rank, target);
        }
        self.under_way += 1;
        context.set_timer(DESCRIPTORS, context.now() + UNDER_WAY);
        self.post(rank, Answer::Peer(other), context);
        self.post(target, Answer::Peer(one), context);
    }

    fn post(&mut self, rank: u32, answer: Answer, context: &mut Context<'_, impl Speaker>) {
        let Some(child) = self.children.get_mut(&rank) else {
            return;
        };
        context.note(Note::Tells(child.process, answer));
        match child.connection {
            Some(connection) => context.send(connection, Message::Answer(answer)),
            None => child.waiting.push(Message::Answer(answer)),
        }
    }

    fn tell(
        &self,
        to: Option<ConnectionId>,
        message: Message,
        context: &mut Context<'_, impl Speaker>,
    ) {
        if let Some(connection) = to {
            context.send(connection, message);
        }
    }

    fn life_of(&self, rank: u32) -> u32 {
        self.lives.get(&rank).copied().unwrap_or(0)
    }

    /// What the tables of the broker may hold: each rank of this host with each rank, in each of three.
    fn children_max(&self) -> usize {
        let here = self.plan.ranks_of(self.me).len();
        3 * here * self.plan.size() as usize
    }
}
