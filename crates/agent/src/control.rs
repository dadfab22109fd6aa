//! What drives the membership: the agent of this host, and on the first host the root; and the names, which follow the members.
//!
//! Frames go in before time does, so that an agent that was not scheduled takes nobody for dead. What the machines want of the rest
//! of the agent comes out as [`Command`]s. A job of one host has the same machines, and no connection.

mod names;

use std::collections::{BTreeMap, VecDeque};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::Context;
use mizzen_identity::Credentials;
use mizzen_proto::boot::{Death, FromAgent, Network, Part, Start};
use mizzen_proto::id::{ProcessId, Rank};
use mizzen_proto::membership::{
    Agent, AgentAction, AgentId, Between, Epoch, Fence, HostId, Members, Notice, Pace, Policy,
    Root, RootAction, Spoken, Why,
};
use mizzen_proto::registry::{Answer, Registry};

use crate::clock;
use crate::net::{Event, FIRST_LIFE, Net};

/// The membership of this host.
pub(crate) struct Control {
    pace: Pace,
    agent: Agent,
    root: Option<Root>,
    names: Registry,
    net: Option<Net>,
    /// This host.
    name: String,
    networks: Vec<Network>,
    /// Where the root listens, when that is known.
    root_at: Option<String>,
    /// Who is dialled again, and when.
    retries: BTreeMap<HostId, Retry>,
    /// Whose absence a refusal would prove.
    looked_for: BTreeMap<HostId, AgentId>,
    /// When the launcher is told that the root lives.
    pulse: Option<Instant>,
    /// Until when this agent must be a member; `None` if it is, or does not know where the root is.
    join_by: Option<Instant>,
    is_finished: bool,
    events: Vec<Event>,
    commands: VecDeque<Command>,
}

#[derive(Debug, Clone, Copy)]
struct Retry {
    at: Instant,
    wait: Duration,
}

/// What the rest of the agent has to do, in order.
#[derive(Debug)]
pub(crate) enum Command {
    /// Start a process, which is to know this first.
    Start(ProcessId, Fence),
    /// Tell all processes.
    Tell(Notice),
    /// Answer a process.
    Answer(ProcessId, Answer),
    /// End all processes.
    End(Why),
    /// Tell the launcher.
    Say(FromAgent),
}

/// How an agent is reached, and proves who it is.
pub(crate) struct Place {
    pub(crate) listener: TcpListener,
    pub(crate) locator: String,
    pub(crate) credentials: Credentials,
}

impl Control {
    /// Begins. `place`: in a job of several hosts.
    pub(crate) fn new(start: &Start, place: Option<Place>) -> anyhow::Result<Self> {
        let Part { number, .. } = start.part;
        let pace = match &place {
            None => Pace::ALONE,
            Some(_) => Pace::of(start.part.pace),
        };
        let now = clock::now();
        let mut commands = VecDeque::new();
        let (mut net, mut locator) = (None, String::new());
        if let Some(place) = place {
            locator = place.locator;
            let patience = pace.suspect.min(MOST_PATIENT);
            net = Some(
                Net::new(
                    place.listener,
                    place.credentials,
                    patience,
                    !start.spans.is_empty(),
                )
                .context("no connections between agents")?,
            );
        }
        let root = (number == 0).then(|| root(start, pace));
        if root.is_some() && net.is_some() {
            let locator = locator.clone();
            commands.push_back(Command::Say(FromAgent::Listening { locator }));
        }
        let me = AgentId::new(HostId(number), FIRST_LIFE);
        let pulse = (root.is_some() && net.is_some()).then(Instant::now);
        Ok(Self {
            pace,
            agent: Agent::new(me, pace, locator, now),
            root,
            names: Registry::new(me, pace),
            net,
            name: start.host.clone(),
            networks: start.networks.clone(),
            root_at: None,
            retries: BTreeMap::new(),
            looked_for: BTreeMap::new(),
            pulse,
            join_by: None,
            is_finished: false,
            events: Vec::new(),
            commands,
        })
    }

    /// The launcher says where the root listens.
    pub(crate) fn handle_root_at(&mut self, locator: String) {
        if self.root.is_none() {
            self.root_at = Some(locator);
            self.join_by = Some(Instant::now() + JOIN);
            self.dial(ROOT, vec![]);
        }
    }

    /// The launcher passes on what another agent says.
    pub(crate) fn handle_passed(&mut self, from: u32, bytes: &[u8]) {
        if let Some(net) = &mut self.net {
            net.handle_passed(HostId(from), bytes, &mut self.events);
        }
        self.handle_events();
    }

    /// The launcher says that another agent is gone.
    pub(crate) fn handle_not_passed(&mut self, to: u32) {
        if let Some(net) = &mut self.net {
            net.handle_not_passed(HostId(to), &mut self.events);
        }
        self.handle_events();
    }

    /// The launcher ends the job.
    pub(crate) fn stop(&mut self, code: u8) {
        if let Some(root) = &mut self.root {
            root.stop(code, clock::now());
        }
    }

    /// A signal that asks programs to end is about to be passed on.
    pub(crate) fn interrupt(&mut self, signal: u8) {
        if let Some(root) = &mut self.root {
            root.interrupt(signal, clock::now());
        }
    }

    pub(crate) fn handle_started(&mut self, process: ProcessId, pid: u32) {
        self.agent.handle_started(process, pid);
    }

    pub(crate) fn handle_left(&mut self, process: ProcessId) {
        self.agent.handle_left(process);
    }

    pub(crate) fn handle_ended(&mut self, process: ProcessId, how: Death) {
        self.agent.handle_ended(process, how);
        self.forget_questions(process);
    }

    /// Takes in what other agents say.
    pub(crate) fn receive(&mut self) -> anyhow::Result<()> {
        if let Some(net) = &mut self.net {
            net.poll(&mut self.events)?;
        }
        self.handle_events();
        Ok(())
    }

    /// Lets time pass, does what is due, and sends what there is to say.
    pub(crate) fn tick(&mut self) {
        let instant = Instant::now();
        if let Some(net) = &mut self.net {
            net.enforce(instant, &mut self.events);
        }
        self.retry(instant);
        self.handle_events();
        let now = clock::now();
        if self.agent.next_wakeup().is_some_and(|due| due <= now) {
            self.agent.handle_tick(now);
        }
        self.pump();
        // What a machine decides now may be due now.
        for _ in 0..TURNS {
            let now = clock::now();
            let is_due = |root: &&mut Root| root.next_wakeup().is_some_and(|due| due <= now);
            let Some(root) = self.root.as_mut().filter(is_due) else {
                break;
            };
            root.handle_tick(now);
            self.pump();
        }
        self.pump_names();
        self.watch_join(instant);
        if self.pulse.is_some_and(|at| at <= instant) {
            self.pulse = Some(instant + self.pace.beat);
            self.commands.push_back(Command::Say(FromAgent::Pulse));
        }
        if let Some(net) = &mut self.net {
            net.flush(&mut self.events);
            let passes = net.take_passes().into_iter().map(|(HostId(to), bytes)| {
                let pass = FromAgent::Pass { to, bytes };
                Command::Say(pass)
            });
            self.commands.extend(passes);
        }
    }

    pub(crate) fn poll_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    /// How soon [`tick`](Self::tick) is to be called.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let now = clock::now();
        let machines = [
            self.agent.next_wakeup(),
            self.root.as_ref().and_then(Root::next_wakeup),
            self.names.next_wakeup(),
        ];
        let machines = machines.into_iter().flatten().map(|due| due.since(now));
        let instant = Instant::now();
        let retries = self.retries.values().map(|retry| retry.at);
        let others = retries.chain(self.net.as_ref().and_then(Net::deadline));
        let others = others.chain(self.pulse).chain(self.join_by);
        let others = others.map(|at| at.saturating_duration_since(instant));
        let events = (!self.events.is_empty()).then_some(Duration::ZERO);
        machines.chain(others).chain(events).min()
    }

    /// All that is known to have been decided.
    pub(crate) fn members(&self) -> &Members {
        self.agent.members()
    }

    /// Whether this agent is one of the members, or was.
    pub(crate) fn has_joined(&self) -> bool {
        self.agent.members().epoch() > Epoch::default()
    }

    pub(crate) fn pace(&self) -> Pace {
        self.pace
    }

    /// Which life of a process the others know of.
    pub(crate) fn life_of(&self, rank: u32) -> u32 {
        let state = self.agent.members().state(Rank(rank));
        state.map_or(0, |state| state.life.0)
    }

    /// Whether the root does not hear what is said now.
    pub(crate) fn is_cut_off(&self) -> bool {
        let linked = self.net.as_ref().is_some_and(|net| net.is_linked(ROOT));
        self.root.is_none() && !linked
    }

    /// Whether nobody needs this agent any more.
    pub(crate) fn is_finished(&self) -> bool {
        let others = self.root.as_ref().is_some_and(|root| {
            let mut agents = root.members().agents();
            agents.next().is_some() || !root.is_told()
        });
        self.is_finished && !others
    }

    /// What to wait for until others say something.
    pub(crate) fn net(&self) -> Option<BorrowedFd<'_>> {
        self.net.as_ref().map(AsFd::as_fd)
    }

    fn handle_events(&mut self) {
        for _ in 0..TURNS {
            if self.events.is_empty() {
                return;
            }
            for event in std::mem::take(&mut self.events) {
                self.handle_event(event);
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Opened(peer) => {
                self.retries.remove(&peer.host);
                let sought = self.looked_for.remove(&peer.host);
                if let Some(other) = sought.filter(|sought| *sought != peer) {
                    self.handle_nobody(other);
                }
                if peer.host == ROOT && self.root.is_none() {
                    self.agent.handle_root_reached(clock::now());
                }
            }
            Event::Spoken(from, spoken) => self.hear(from, spoken),
            Event::Lost(peer) => {
                let is_sought = match &self.root {
                    // Either it dials again, or its port says that it is gone.
                    Some(root) => root.members().is_here(peer),
                    None => peer.host == ROOT,
                };
                if is_sought {
                    if self.root.is_some() {
                        self.looked_for.insert(peer.host, peer);
                    }
                    self.dial(peer.host, vec![]);
                }
            }
            Event::Failed { host, is_refused } => {
                let sought = self.looked_for.get(&host).copied();
                if let Some(agent) = sought.filter(|_| is_refused) {
                    self.looked_for.remove(&host);
                    self.handle_nobody(agent);
                }
                let is_sought = match (&self.root, sought) {
                    (Some(root), Some(agent)) => root.members().is_here(agent),
                    (Some(_), None) => false,
                    (None, _) => host == ROOT,
                };
                if is_sought {
                    let before = self
                        .retries
                        .get(&host)
                        .map_or(FIRST_RETRY, |retry| retry.wait);
                    let wait = (before * 2).min(self.pace.beat.min(LAST_RETRY));
                    let at = Instant::now() + before;
                    self.retries.insert(host, Retry { at, wait });
                } else {
                    self.looked_for.remove(&host);
                }
            }
        }
    }

    /// What comes must be of whom it says it is of: a connection is one agent's, in one life.
    fn hear(&mut self, from: AgentId, spoken: Spoken) {
        let now = clock::now();
        match (spoken, &mut self.root) {
            (Spoken::Up(frame), Some(root)) if frame.agent == from => {
                root.handle_frame(from.host, frame, now);
            }
            (Spoken::Down(frame), None) if from.host == ROOT => self.agent.handle_root(frame, now),
            (Spoken::Across(frame), _) => self.agent.handle_between(from.host, frame, now),
            (Spoken::Names(frame), _) => self.hear_of_names(from, &frame),
            // The root is told nothing, nobody else decides, and nobody speaks for another.
            (Spoken::Up(_) | Spoken::Down(_), _) => {}
        }
    }

    fn handle_nobody(&mut self, agent: AgentId) {
        match &mut self.root {
            Some(root) => root.handle_refused(agent, clock::now()),
            None => self.agent.handle_refused(agent),
        }
    }

    /// Does what the machines want, until they want nothing more.
    fn pump(&mut self) {
        let now = clock::now();
        loop {
            if let Some(action) = self.root.as_mut().and_then(Root::poll_action) {
                match action {
                    RootAction::Append(news) => {
                        let mut bytes = Vec::new();
                        let encoded = news.encode(&mut bytes);
                        debug_assert!(encoded.is_ok(), "an epoch has a limit");
                        self.commands
                            .push_back(Command::Say(FromAgent::News { news: bytes }));
                    }
                    RootAction::Send(host, frame) if host == self.agent.id().host => {
                        self.agent.handle_root(frame, now);
                    }
                    RootAction::Send(host, frame) => self.send(host, Spoken::Down(frame)),
                    RootAction::Started { process, pid } => {
                        let started = FromAgent::Started {
                            rank: process.rank.0,
                            incarnation: process.incarnation.0,
                            pid,
                        };
                        self.commands.push_back(Command::Say(started));
                    }
                }
                continue;
            }
            let Some(action) = self.agent.poll_action() else {
                return;
            };
            match action {
                AgentAction::ToRoot(frame) => match &mut self.root {
                    Some(root) => root.handle_frame(frame.agent.host, frame, now),
                    None => self.send(ROOT, Spoken::Up(frame)),
                },
                AgentAction::ToAgent(host, frame) => self.speak_with(host, frame),
                AgentAction::Start(process, fence) => {
                    self.commands.push_back(Command::Start(process, fence));
                }
                AgentAction::Tell(notice) => self.commands.push_back(Command::Tell(notice)),
                AgentAction::EndProcesses(why) => self.commands.push_back(Command::End(why)),
                AgentAction::Finish => self.is_finished = true,
            }
        }
    }

    fn send(&mut self, host: HostId, spoken: Spoken) {
        if let Some(net) = &mut self.net {
            net.send(host, &spoken, &mut self.events);
        }
    }

    fn speak_with(&mut self, host: HostId, frame: Between) {
        let linked = self.net.as_ref().is_some_and(|net| net.is_linked(host));
        match frame {
            // A connection may be dead without our knowing: whoever looks dials.
            Between::Look { to, .. } => {
                self.looked_for.insert(host, to);
                self.dial(host, vec![Spoken::Across(frame)]);
            }
            _ if linked => self.send(host, Spoken::Across(frame)),
            _ => self.dial(host, vec![Spoken::Across(frame)]),
        }
    }

    fn dial(&mut self, host: HostId, first: Vec<Spoken>) {
        let locator = match (host, &self.root_at) {
            (ROOT, Some(locator)) => Some(locator.as_str()),
            _ => {
                let members = match &self.root {
                    Some(root) => root.members(),
                    None => self.agent.members(),
                };
                members.host(host).map(|host| host.locator.as_str())
            }
        };
        let Some(net) = &mut self.net else {
            return;
        };
        // One at a time: what has to be said is said when that is answered.
        if net.is_dialling(host) {
            return net.say_first(host, first);
        }
        let Some(locator) = locator else {
            let is_refused = false;
            return self.events.push(Event::Failed { host, is_refused });
        };
        let addresses = crate::places::addresses_in(locator, &self.networks);
        net.dial(host, addresses, first, &mut self.events);
    }

    /// Who cannot join says so: a job that does not begin needs a reason.
    fn watch_join(&mut self, now: Instant) {
        if self.has_joined() {
            self.join_by = None;
        }
        if self.join_by.is_none_or(|by| now < by) {
            return;
        }
        self.join_by = None;
        let at = self.root_at.as_deref().unwrap_or_default();
        let text = format!(
            "the agent of {} did not reach that of the first host at {at} within {} s; check --hosts, the networks of the job's \
             file, and what a firewall between the hosts lets through.",
            self.name,
            JOIN.as_secs()
        );
        self.commands
            .push_back(Command::Say(FromAgent::Error { text }));
    }

    fn retry(&mut self, now: Instant) {
        let due = self.retries.iter().filter(|(_, retry)| retry.at <= now);
        let due: Vec<HostId> = due.map(|(host, _)| *host).collect();
        for host in due {
            if let Some(retry) = self.retries.get_mut(&host) {
                // Until it is known how that went.
                retry.at = now + Duration::from_secs(3600);
            }
            let is_linked = self.net.as_ref().is_some_and(|net| net.is_linked(host));
            if is_linked {
                self.retries.remove(&host);
            } else {
                self.dial(host, vec![]);
            }
        }
    }
}

fn root(start: &Start, pace: Pace) -> Root {
    let policy = Policy {
        on_death: start.on_death,
        max_restarts: start.part.max_restarts,
    };
    let mut root = Root::new(pace, policy);
    let mut first = 0;
    for (host, count) in (0..).zip(&start.part.placed) {
        if *count == 0 {
            continue;
        }
        let placed = root.place(HostId(host), Rank(first), *count, clock::now());
        debug_assert!(placed, "the part was checked when it came");
        first += count;
    }
    root
}

/// The first host, whose agent is the root.
const ROOT: HostId = HostId(0);

/// How long an agent has to become a member: as long as a connection through a slow network, and some more.
const JOIN: Duration = Duration::from_secs(15);

/// Turns in which what one machine says makes the other say something.
const TURNS: usize = 16;

/// How soon after a failure somebody is dialled again, and how late.
const FIRST_RETRY: Duration = Duration::from_millis(20);
const LAST_RETRY: Duration = Duration::from_millis(250);

/// However patient a job is, a connection that answers nothing for so long is made anew.
const MOST_PATIENT: Duration = Duration::from_secs(4);

#[cfg(test)]
mod tests;
