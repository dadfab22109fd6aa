//! An agent, and the root with it on the first host: what a driver does around the machines.

use std::collections::BTreeMap;
use std::rc::Rc;

use mizzen_proto::boot::Death;
use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::{
    Agent, AgentAction, AgentId, Between, Change, Epoch, Fence, FromAgent, FromRoot, HostId,
    Notice, Order, Pace, Root, RootAction, Why,
};
use mizzen_proto::registry::Action;
use mizzen_proto::time::Time;

use super::message::{Message, Note, Speaker, content};
use super::names::Desk;
use super::plan::{AGENT, KILL, Mistake, NAMES, Plan, REDIAL, ROOT};
use crate::ids::{ConnectionId, Life, MachineId, Place};
use crate::machine::{Context, Opened};

#[derive(Debug)]
pub(super) struct Keeper {
    plan: Rc<Plan>,
    host: u32,
    pub(super) agent: Option<Agent>,
    pub(super) root: Option<Root>,
    pub(super) desk: Option<Desk>,
    /// The latest connection with the agent of each host, and which life that is.
    links: BTreeMap<u32, (ConnectionId, Place)>,
    dials: BTreeMap<ConnectionId, Dial>,
    children: BTreeMap<Rank, Child>,
    pub(super) is_finished: bool,
    was_member: bool,
    /// For mistakes: how many epochs were passed on, when a grant came, what was sent to each host.
    counted: u64,
    granted: Time,
    sent: BTreeMap<HostId, Epoch>,
}

#[derive(Debug)]
struct Dial {
    host: u32,
    /// Whose absence it would prove.
    looks_for: Option<AgentId>,
    waiting: Vec<Message>,
}

#[derive(Debug)]
struct Child {
    process: ProcessId,
    connection: Option<ConnectionId>,
    /// What it is told when it has connected.
    waiting: Vec<Message>,
    has_left: bool,
}

impl Keeper {
    pub(super) fn new(plan: Rc<Plan>, place: Place) -> Self {
        Self {
            host: plan.host(place.machine),
            plan,
            agent: None,
            root: None,
            desk: None,
            links: BTreeMap::new(),
            dials: BTreeMap::new(),
            children: BTreeMap::new(),
            is_finished: false,
            was_member: false,
            counted: 0,
            granted: Time(0),
            sent: BTreeMap::new(),
        }
    }

    pub(super) fn start(&mut self, context: &mut Context<'_, impl Speaker>) {
        let now = context.now();
        if self.host == 0 {
            let mut pace = self.plan.pace;
            if self.plan.has(Mistake::HastyVerdict) {
                pace = Pace {
                    lease: pace.suspect,
                    kill: pace.beat,
                    ..pace
                };
            }
            let mut root = Root::new(pace, self.plan.policy);
            for (host, first, count) in self.plan.blocks() {
                assert!(root.place(host, first, count, now), "the plan fits");
            }
            self.root = Some(root);
        } else {
            self.dial_root(context);
        }
        let me = AgentId::new(HostId(self.host), context.me().life.0 + 1);
        let names = self.plan.names;
        self.desk = (names > 0).then(|| Desk::new(me, self.plan.pace, names));
        self.agent = Some(Agent::new(
            me,
            self.plan.pace,
            format!("host {}", self.host),
            now,
        ));
        self.pump(context);
    }

    pub(super) fn receive(
        &mut self,
        connection: ConnectionId,
        message: Message,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let now = context.now();
        let from = self
            .links
            .iter()
            .find(|(_, (one, _))| *one == connection)
            .map(|(host, _)| *host);
        match message {
            Message::Up(bytes) => {
                let frame = FromAgent::decode(&bytes).expect("an agent encoded it");
                let host = from.unwrap_or(frame.agent.host.0);
                // Of two connections that crossed, the one that we dialled may be gone: the answer goes where the word came from.
                let peer = Place {
                    machine: MachineId(host),
                    life: Life(frame.agent.life.saturating_sub(1)),
                };
                self.links.entry(host).or_insert((connection, peer));
                if let Some(root) = &mut self.root {
                    root.handle_frame(HostId(host), frame, now);
                }
            }
            Message::Down(bytes) => {
                let frame = FromRoot::decode(&bytes).expect("the root encoded it");
                self.hear_root(frame, now);
            }
            Message::Between(bytes) => {
                let frame = Between::decode(&bytes).expect("an agent encoded it");
                let frame = match frame {
                    Between::Down(down) => Between::Down(self.spoil(down, now)),
                    other => other,
                };
                if let (Some(agent), Some(host)) = (&mut self.agent, from) {
                    agent.handle_between(HostId(host), frame, now);
                }
            }
            Message::Unreachable(process) => {
                if let Some(agent) = &mut self.agent {
                    agent.report_unreachable(process);
                }
            }
            Message::Leaving => {
                let child = self
                    .children
                    .values_mut()
                    .find(|child| child.connection == Some(connection));
                if let (Some(child), Some(agent)) = (child, &mut self.agent) {
                    child.has_left = true;
                    agent.handle_left(child.process);
                }
            }
            Message::Names(bytes) => {
                if let (Some(desk), Some(agent)) = (&mut self.desk, &self.agent) {
                    desk.handle_frame(&bytes, agent, context);
                }
            }
            Message::Question(bytes) => {
                let mut children = self.children.values();
                let child = children.find(|child| child.connection == Some(connection));
                if let (Some(child), Some(desk), Some(agent)) = (child, &mut self.desk, &self.agent)
                {
                    desk.handle_question(child.process, &bytes, agent, context);
                }
            }
            Message::Begin(..) | Message::Tell(_) | Message::Work(_) | Message::Answer(_) => {}
        }
        self.pump(context);
    }

    pub(super) fn timer(&mut self, key: u64, context: &mut Context<'_, impl Speaker>) {
        let now = context.now();
        match key {
            AGENT => {
                if let Some(agent) = &mut self.agent {
                    agent.handle_tick(now);
                }
            }
            ROOT => {
                if let Some(root) = &mut self.root {
                    root.handle_tick(now);
                }
            }
            REDIAL => self.dial_root(context),
            NAMES => {
                if let (Some(desk), Some(agent)) = (&mut self.desk, &self.agent) {
                    desk.handle_tick(agent, context);
                }
            }
            _ => {
                let rank = Rank((key - KILL) as u32);
                if self.children.contains_key(&rank) {
                    let process = self.plan.process(rank);
                    context.kill(process);
                }
            }
        }
        self.pump(context);
    }

    pub(super) fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        opened: Opened,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let now = context.now();
        if let Some(rank) = self.plan.rank(peer.machine) {
            let child = self.children.get_mut(&rank);
            let child = child.filter(|child| child.process.incarnation.0 == peer.life.0);
            match child {
                Some(child) => {
                    child.connection = Some(connection);
                    for message in child.waiting.drain(..) {
                        context.send(connection, message);
                    }
                }
                None => context.close(connection),
            }
            return;
        }
        let host = peer.machine.0;
        self.links.insert(host, (connection, peer));
        if let (Some(dial), Opened::Here) = (self.dials.remove(&connection), opened) {
            if let Some(agent) = dial.looks_for.filter(|agent| agent.life != peer.life.0 + 1) {
                self.nobody(agent, now);
            }
            for message in dial.waiting {
                context.send(connection, message);
            }
        }
        self.pump(context);
    }

    pub(super) fn lost(
        &mut self,
        connection: ConnectionId,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let link = self.links.iter().find(|(_, (one, _))| *one == connection);
        let Some((host, peer)) = link.map(|(host, (_, peer))| (*host, *peer)) else {
            return;
        };
        self.links.remove(&host);
        if self.root.is_some() {
            // Either it dials again, or its port says that it is gone.
            let agent = AgentId::new(HostId(host), peer.life.0 + 1);
            self.dial(host, Some(agent), None, context);
        } else if host == 0 {
            context.set_timer(REDIAL, context.now() + self.plan.pace.beat / 10);
        }
    }

    pub(super) fn refused(
        &mut self,
        connection: ConnectionId,
        is_proof: bool,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let Some(dial) = self.dials.remove(&connection) else {
            return;
        };
        let proof = is_proof || self.plan.has(Mistake::SilenceIsRefusal);
        if let Some(agent) = dial.looks_for.filter(|_| proof) {
            context.sometimes("a port refused");
            self.nobody(agent, context.now());
        }
        if dial.host == 0 && self.root.is_none() {
            context.set_timer(REDIAL, context.now() + self.plan.pace.beat / 10);
        }
        self.pump(context);
    }

    pub(super) fn child_ended(&mut self, child: Place, context: &mut Context<'_, impl Speaker>) {
        let rank = self
            .plan
            .rank(child.machine)
            .expect("only processes are children");
        if let Some(child) = self.children.remove(&rank) {
            let how = if child.has_left {
                Death::Exit(0)
            } else {
                Death::Signal(6)
            };
            if let Some(agent) = &mut self.agent {
                agent.handle_ended(child.process, how);
                if let Some(desk) = &mut self.desk {
                    desk.handle_gone(child.process, agent, context);
                }
            }
        }
        self.pump(context);
    }

    fn hear_root(&mut self, frame: FromRoot, now: Time) {
        let frame = self.spoil(frame, now);
        if let Some(agent) = &mut self.agent {
            agent.handle_root(frame, now);
        }
    }

    /// Where a mistake is made with what the root says.
    fn spoil(&mut self, mut frame: FromRoot, now: Time) -> FromRoot {
        match &mut frame.said {
            Order::Grant { .. } => self.granted = now,
            Order::News(news) if self.plan.has(Mistake::OutOfOrder) && self.host == 1 => {
                news.entries
                    .sort_by_key(|entry| std::cmp::Reverse(format!("{entry:?}")));
            }
            _ => {}
        }
        frame
    }

    /// Whether these are news that were sent to that host before.
    fn is_again(&mut self, host: HostId, said: &Order) -> bool {
        let Order::News(news) = said else {
            return false;
        };
        let sent = self.sent.entry(host).or_default();
        let again = news.epoch <= *sent;
        *sent = news.epoch.max(*sent);
        again
    }

    fn nobody(&mut self, agent: AgentId, now: Time) {
        match (&mut self.root, &mut self.agent) {
            (Some(root), _) => root.handle_refused(agent, now),
            (None, Some(one)) => one.handle_refused(agent),
            (None, None) => {}
        }
    }

    /// Says what the agent knew when it was welcomed, before it is told more.
    fn greet(&mut self, context: &mut Context<'_, impl Speaker>) {
        let member = self.agent.as_ref().filter(|agent| agent.is_member());
        let Some(agent) = member.filter(|_| !self.was_member) else {
            return;
        };
        self.was_member = true;
        context.note(Note::Joined(agent.members().epoch().0));
    }

    /// Does what the machines want, until they want nothing more.
    fn pump(&mut self, context: &mut Context<'_, impl Speaker>) {
        let now = context.now();
        self.greet(context);
        loop {
            if let Some(action) = self.root.as_mut().and_then(Root::poll_action) {
                match action {
                    RootAction::Append(news) => context.note(Note::Appended(news)),
                    RootAction::Send(HostId(0), frame) => {
                        self.hear_root(frame, now);
                        self.greet(context);
                    }
                    RootAction::Send(host, frame) => {
                        let again = self.is_again(host, &frame.said);
                        if !again || !self.plan.has(Mistake::NothingResent) {
                            // Without a connection it is lost, like what is under way when one breaks.
                            if let Some((link, _)) = self.links.get(&host.0) {
                                context
                                    .send(*link, Message::Down(content(|out| frame.encode(out))));
                            }
                        }
                    }
                    RootAction::Started { .. } => {}
                }
                continue;
            }
            let Some(action) = self.agent.as_mut().and_then(Agent::poll_action) else {
                break;
            };
            self.obey(action, context);
        }
        self.pump_names(context);
        let count = if self.desk.is_some() { 3 } else { 2 };
        let ticks = [
            (AGENT, self.agent.as_ref().and_then(Agent::next_wakeup)),
            (ROOT, self.root.as_ref().and_then(Root::next_wakeup)),
            (NAMES, self.desk.as_ref().and_then(Desk::next_wakeup)),
        ];
        for (key, due) in ticks.into_iter().take(count) {
            match due {
                Some(due) => context.set_timer(key, due),
                None => context.cancel_timer(key),
            }
        }
    }

    fn pump_names(&mut self, context: &mut Context<'_, impl Speaker>) {
        let (Some(desk), Some(agent)) = (&mut self.desk, &self.agent) else {
            return;
        };
        desk.handle_members(agent, context);
        while let Some(action) = self.desk.as_mut().and_then(Desk::poll) {
            match action {
                Action::Send(frame) => {
                    let mut bytes = vec![];
                    frame.encode(&mut bytes).expect("it is within the limits");
                    let message = Message::Names(bytes);
                    self.send_to(frame.to.host.0, message, context);
                }
                Action::Answer(process, answer) => {
                    let child = self.children.get(&process.rank);
                    let child = child.filter(|child| child.process == process);
                    if let Some(connection) = child.and_then(|child| child.connection) {
                        let mut bytes = vec![];
                        answer.encode(&mut bytes).expect("its names are short");
                        context.send(connection, Message::Answer(bytes));
                    }
                }
            }
        }
    }

    /// Sends to an agent over the connection that is there, or when there is one.
    fn send_to(&mut self, host: u32, message: Message, context: &mut Context<'_, impl Speaker>) {
        let mut dials = self.dials.values_mut();
        match self.links.get(&host) {
            Some((link, _)) => context.send(*link, message),
            None => match dials.find(|dial| dial.host == host && dial.looks_for.is_none()) {
                Some(dial) => dial.waiting.push(message),
                None => self.dial(host, None, Some(message), context),
            },
        }
    }

    fn obey(&mut self, action: AgentAction, context: &mut Context<'_, impl Speaker>) {
        match action {
            AgentAction::ToRoot(frame) => match &mut self.root {
                Some(root) => root.handle_frame(HostId(0), frame, context.now()),
                None => {
                    if let Some((link, _)) = self.links.get(&0) {
                        context.send(*link, Message::Up(content(|out| frame.encode(out))));
                    }
                }
            },
            AgentAction::ToAgent(host, frame) => {
                context.sometimes("agents spoke with each other");
                let looks_for = match &frame {
                    Between::Look { to, .. } => Some(*to),
                    _ => None,
                };
                let message = Message::Between(content(|out| frame.encode(out)));
                match (self.links.get(&host.0), looks_for) {
                    // A connection may be dead without our knowing: whoever looks dials.
                    (Some((link, _)), None) => context.send(*link, message),
                    _ => self.dial(host.0, looks_for, Some(message), context),
                }
            }
            AgentAction::Start(process, fence) => {
                let fence = if self.plan.has(Mistake::DeadUnknown) {
                    Fence::default()
                } else {
                    fence
                };
                if process.incarnation > Incarnation(0) {
                    context.sometimes("a process was started again");
                }
                let child = Child {
                    process,
                    connection: None,
                    waiting: vec![Message::Begin(process, Box::new(fence))],
                    has_left: false,
                };
                self.children.insert(process.rank, child);
                context.spawn(self.plan.process(process.rank));
                if let Some(agent) = &mut self.agent {
                    agent.handle_started(process, process.rank.0);
                }
            }
            AgentAction::Tell(notice) => self.tell(notice, context),
            AgentAction::EndProcesses(why) => {
                context.note(Note::Fenced(why));
                match why {
                    Why::LeaseOver => context.sometimes("a lease was over"),
                    Why::Pronounced(_) => context.sometimes("an agent heard that it was lost"),
                    Why::JobEnds(_) => context.sometimes("a job ended"),
                    Why::Contradiction => {}
                }
                if why == Why::LeaseOver && self.plan.has(Mistake::LeaseIgnored) {
                    return;
                }
                let stale = why == Why::LeaseOver && self.plan.has(Mistake::StaleBeatRenews);
                let begin = if stale {
                    context.now().max(self.granted + self.plan.pace.lease)
                } else {
                    context.now()
                };
                let most = self.plan.pace.kill / 2;
                for rank in self.children.keys() {
                    let wait = most.mul_f64(context.rng().f64());
                    context.set_timer(KILL + u64::from(rank.0), begin + wait);
                }
            }
            AgentAction::Finish => {
                self.is_finished = true;
                context.note(Note::Finished);
                if self.root.is_none() {
                    let myself = context.me().machine;
                    context.kill(myself);
                }
            }
        }
    }

    fn tell(&mut self, mut notice: Notice, context: &mut Context<'_, impl Speaker>) {
        self.counted += 1;
        if self.plan.has(Mistake::EpochCounted) {
            notice.epoch = Epoch(self.counted);
        }
        if self.plan.has(Mistake::DeducedSilently) {
            let deduced = |change: &Change| {
                matches!(
                    change,
                    Change::Ended {
                        how: Death::HostLost,
                        ..
                    }
                )
            };
            notice.changes.retain(|change| !deduced(change));
        }
        context.note(Note::Told(notice.clone()));
        for child in self.children.values_mut() {
            match child.connection {
                Some(connection) => context.send(connection, Message::Tell(notice.clone())),
                None => child.waiting.push(Message::Tell(notice.clone())),
            }
        }
    }

    fn dial_root(&mut self, context: &mut Context<'_, impl Speaker>) {
        if !self.links.contains_key(&0) && !self.dials.values().any(|dial| dial.host == 0) {
            self.dial(0, None, None, context);
        }
    }

    fn dial(
        &mut self,
        host: u32,
        looks_for: Option<AgentId>,
        message: Option<Message>,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let connection = context.dial(self.plan.agent(host));
        let waiting = message.into_iter().collect();
        let dial = Dial {
            host,
            looks_for,
            waiting,
        };
        self.dials.insert(connection, dial);
    }
}
