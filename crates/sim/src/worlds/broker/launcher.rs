//! The log of the job, which decides who is started again; and the launcher, which reads it and knows where processes listen.
//!
//! They are what the agents have to do with, not what is tried here: membership is (`worlds/members.rs`), and the launcher's own
//! reading of the log in its crate.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use mizzen_proto::boot::{OnDeath, Unreachable};
use mizzen_proto::broker::Departure;
use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::time::Time;

use super::message::{Again, Message, News, Speaker};
use super::plan::{LOG, Plan};
use crate::ids::{ConnectionId, MachineId, Place};
use crate::machine::Context;

#[derive(Debug)]
pub(super) struct Log {
    plan: Rc<Plan>,
    readers: Vec<ConnectionId>,
    news: Vec<News>,
    restarts: u32,
    has_ended: bool,
    left: BTreeSet<ProcessId>,
}

impl Log {
    pub(super) fn new(plan: Rc<Plan>) -> Self {
        Self {
            plan,
            readers: Vec::new(),
            news: Vec::new(),
            restarts: 0,
            has_ended: false,
            left: BTreeSet::new(),
        }
    }

    /// Whoever reads the log reads all of it.
    pub(super) fn connected(
        &mut self,
        connection: ConnectionId,
        context: &mut Context<'_, impl Speaker>,
    ) {
        self.readers.push(connection);
        for news in &self.news {
            context.send(connection, Message::News(*news));
        }
    }

    pub(super) fn receive(&mut self, message: Message, context: &mut Context<'_, impl Speaker>) {
        match message {
            Message::Leaving(process) => {
                self.left.insert(process);
                self.tell(News::Left(process), context);
            }
            Message::Ended(process, how) => self.handle_ended(process, how, context),
            _ => {}
        }
    }

    fn handle_ended(
        &mut self,
        process: ProcessId,
        how: Departure,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let fails = how == Departure::Died && !self.left.contains(&process);
        let wanted = fails && self.plan.on_death == OnDeath::Restart && !self.has_ended;
        if wanted && self.restarts >= self.plan.max_restarts {
            self.has_ended = true;
            self.tell(News::Ended(process, how, Again::Never), context);
            self.tell(News::JobEnds, context);
            return context.sometimes("a job ended");
        }
        self.restarts += u32::from(wanted);
        let again = if wanted { Again::Starts } else { Again::Never };
        self.tell(News::Ended(process, how, again), context);
    }

    fn tell(&mut self, news: News, context: &mut Context<'_, impl Speaker>) {
        self.news.push(news);
        for reader in &self.readers {
            context.send(*reader, Message::News(news));
        }
    }
}

#[derive(Debug)]
pub(super) struct Launcher {
    plan: Rc<Plan>,
    agents: BTreeMap<MachineId, ConnectionId>,
    ranks: Vec<Whereabouts>,
    /// What is said later, in this order.
    late: VecDeque<(Time, MachineId, Message)>,
}

/// What the launcher knows of a rank.
#[derive(Debug, Default)]
struct Whereabouts {
    life: u32,
    gone: Option<Unreachable>,
    listens: Option<u32>,
    waiting: BTreeSet<MachineId>,
}

impl Launcher {
    pub(super) fn new(plan: Rc<Plan>) -> Self {
        let ranks = (0..plan.size()).map(|_| Whereabouts::default()).collect();
        Self {
            plan,
            agents: BTreeMap::new(),
            ranks,
            late: VecDeque::new(),
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_, impl Speaker>) {
        context.dial(LOG);
    }

    pub(super) fn connected(&mut self, connection: ConnectionId, peer: Place) {
        if self.plan.is_agent(peer.machine) {
            self.agents.insert(peer.machine, connection);
        }
    }

    pub(super) fn receive(
        &mut self,
        from: ConnectionId,
        message: Message,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let agent = self.agents.iter().find(|(_, one)| **one == from);
        let agent = agent.map(|(agent, _)| *agent);
        match (message, agent) {
            (Message::Ready(process), _) => self.handle_ready(process, context),
            (Message::Locate(rank, least), Some(agent)) => {
                self.handle_locate(agent, rank, least, context);
            }
            (Message::News(news), _) => self.read(news, context),
            _ => {}
        }
    }

    pub(super) fn timer(&mut self, context: &mut Context<'_, impl Speaker>) {
        let now = context.now();
        while let Some((due, agent, message)) = self.late.pop_front() {
            if due > now {
                self.late.push_front((due, agent, message));
                return context.set_timer(0, due);
            }
            if let Some(connection) = self.agents.get(&agent) {
                context.send(*connection, message);
            }
        }
    }

    fn handle_ready(&mut self, process: ProcessId, context: &mut Context<'_, impl Speaker>) {
        let (rank, life) = (process.rank.0, process.incarnation.0);
        let known = &mut self.ranks[rank as usize];
        if life < known.life || (life == known.life && known.gone.is_some()) {
            return;
        }
        known.listens = Some(life);
        for agent in std::mem::take(&mut known.waiting) {
            self.say(agent, Message::Located(process), context);
        }
    }

    fn handle_locate(
        &mut self,
        agent: MachineId,
        rank: u32,
        least: u32,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let known = &mut self.ranks[rank as usize];
        let gone = known.gone.filter(|_| known.life >= least);
        let listens = known.listens.filter(|life| *life >= least.max(known.life));
        match (gone, listens) {
            (Some(reason), _) => self.say(agent, Message::Unreachable(rank, reason), context),
            (None, Some(life)) => {
                let process = ProcessId::new(Rank(rank), Incarnation(life));
                self.say(agent, Message::Located(process), context);
            }
            (None, None) => {
                context.sometimes("the launcher waited for a process to listen");
                known.waiting.insert(agent);
            }
        }
    }

    fn read(&mut self, news: News, context: &mut Context<'_, impl Speaker>) {
        let (process, gone) = match news {
            News::Left(process) => (process, Unreachable::Left),
            News::Ended(process, _, Again::Starts) => {
                let known = &mut self.ranks[process.rank.index()];
                known.life = process.incarnation.0 + 1;
                known.gone = None;
                return;
            }
            News::Ended(process, Departure::Left, Again::Never) => (process, Unreachable::Left),
            News::Ended(process, Departure::Died, Again::Never) => (process, Unreachable::Dead),
            News::JobEnds => return,
        };
        let known = &mut self.ranks[process.rank.index()];
        let reason = *known.gone.get_or_insert(gone);
        for agent in std::mem::take(&mut known.waiting) {
            let message = Message::Unreachable(process.rank.0, reason);
            self.say(agent, message, context);
        }
    }

    /// Says it when there is time for it, and not before what was to be said earlier.
    fn say(&mut self, to: MachineId, message: Message, context: &mut Context<'_, impl Speaker>) {
        let most = self.plan.lateness.as_millis() as u64;
        let wait = Duration::from_millis(context.rng().u64(..=most));
        let last = self.late.back().map_or(Time(0), |(due, ..)| *due);
        let due = (context.now() + wait).max(last);
        self.late.push_back((due, to, message));
        let first = self.late.front().map_or(due, |(due, ..)| *due);
        context.set_timer(0, first);
    }
}
