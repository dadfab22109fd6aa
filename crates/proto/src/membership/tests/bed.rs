//! A root and agents in virtual time, on a network whose ways can be cut.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::boot::{Death, OnDeath};
use crate::id::{Incarnation, ProcessId, Rank};
use crate::membership::*;
use crate::time::Time;

/// Who sends or gets a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Party {
    Root,
    Host(u32),
}

#[derive(Debug, Clone)]
enum Frame {
    Up(FromAgent),
    Down(FromRoot),
    Between(Between),
}

pub(super) struct Bed {
    pub(super) now: Time,
    pub(super) root: Root,
    pub(super) agents: BTreeMap<u32, Agent>,
    /// One-way cuts.
    pub(super) cut: BTreeSet<(Party, Party)>,
    /// Hosts that answer, and have no agent any more.
    pub(super) refusing: BTreeSet<u32>,
    pub(super) paused: BTreeSet<u32>,
    pub(super) log: Vec<News>,
    pub(super) told: BTreeMap<u32, Vec<Notice>>,
    pub(super) started: Vec<ProcessId>,
    pub(super) ends: Vec<(u32, Why, Time)>,
    pub(super) finished: BTreeSet<u32>,
    pub(super) frames: u64,
    queue: BTreeMap<(Time, u64), (Party, Party, Frame)>,
    delay: Duration,
}

pub(super) const CONTINUE: Policy = Policy {
    on_death: OnDeath::Continue,
    max_restarts: 0,
};

impl Bed {
    /// `hosts` hosts with two ranks each, none of which has reported.
    pub(super) fn new(hosts: u32, policy: Policy) -> Self {
        let mut root = Root::new(Pace::DEFAULT, policy);
        let now = Time(0);
        for host in 0..hosts {
            assert!(root.place(HostId(host), Rank(2 * host), 2, now));
        }
        let mut bed = Self {
            now,
            root,
            agents: BTreeMap::new(),
            cut: BTreeSet::new(),
            refusing: BTreeSet::new(),
            paused: BTreeSet::new(),
            log: vec![],
            told: BTreeMap::new(),
            started: vec![],
            ends: vec![],
            finished: BTreeSet::new(),
            frames: 0,
            queue: BTreeMap::new(),
            delay: Duration::from_millis(1),
        };
        bed.drain();
        bed
    }

    /// The same, and all have reported.
    pub(super) fn running(hosts: u32, policy: Policy) -> Self {
        let mut bed = Self::new(hosts, policy);
        for host in 0..hosts {
            bed.begin(host, 1);
        }
        bed.run(Duration::from_secs(2));
        assert_eq!(bed.started.len(), 2 * hosts as usize);
        bed
    }

    pub(super) fn begin(&mut self, host: u32, life: u32) {
        let me = AgentId::new(HostId(host), life);
        let agent = Agent::new(me, Pace::DEFAULT, format!("tcp=10.0.0.{host}:1"), self.now);
        self.agents.insert(host, agent);
        self.refusing.remove(&host);
    }

    /// The agent and all processes of a host vanish; the host still answers.
    pub(super) fn kill_host(&mut self, host: u32) {
        self.agents.remove(&host);
        self.refusing.insert(host);
    }

    pub(super) fn kill(&mut self, rank: u32, life: u32, how: Death) {
        let host = rank / 2;
        let agent = self.agents.get_mut(&host).expect("the host is there");
        agent.handle_ended(process(rank, life), how);
        self.drain();
    }

    /// Cuts or joins all ways of a host.
    pub(super) fn isolate(&mut self, host: u32, is_cut: bool) {
        let others: Vec<Party> = self
            .agents
            .keys()
            .map(|other| Party::Host(*other))
            .collect();
        for other in others.into_iter().chain([Party::Root]) {
            self.cut_way(other, Party::Host(host), is_cut);
            self.cut_way(Party::Host(host), other, is_cut);
        }
    }

    pub(super) fn cut_way(&mut self, from: Party, to: Party, is_cut: bool) {
        if is_cut {
            self.cut.insert((from, to));
        } else {
            self.cut.remove(&(from, to));
        }
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.drain();
            let frame = self
                .queue
                .iter()
                .find(|(_, (_, to, _))| !self.is_paused(*to));
            let frame = frame.map(|(key, _)| *key);
            let agents = self
                .agents
                .iter()
                .filter(|(host, _)| !self.paused.contains(host));
            let ticks = agents.filter_map(|(_, agent)| agent.next_wakeup());
            let tick = ticks.chain(self.root.next_wakeup()).min();
            let next = frame.map(|(at, _)| at).into_iter().chain(tick).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            // Frames before ticks.
            match frame.filter(|(at, _)| *at <= self.now) {
                Some(key) => self.deliver(key),
                None => self.tick(),
            }
        }
        self.now = end;
    }

    pub(super) fn run_ms(&mut self, millis: u64) {
        self.run(Duration::from_millis(millis));
    }

    pub(super) fn agent(&self, host: u32) -> &Agent {
        &self.agents[&host]
    }

    /// The verdicts on lives, in order.
    pub(super) fn verdicts(&self) -> Vec<(ProcessId, Death)> {
        let mut members = Members::default();
        let all = self
            .log
            .iter()
            .flat_map(|news| members.apply_news(news).expect("a log"));
        all.filter_map(|change| match change {
            Change::Ended { process, how } => Some((process, how)),
            _ => None,
        })
        .collect()
    }

    pub(super) fn endings(&self) -> Vec<Ending> {
        let entries = self.log.iter().flat_map(|news| &news.entries);
        entries
            .filter_map(|entry| match entry {
                Entry::JobEnds(ending) => Some(*ending),
                _ => None,
            })
            .collect()
    }

    fn is_paused(&self, party: Party) -> bool {
        matches!(party, Party::Host(host) if self.paused.contains(&host))
    }

    fn tick(&mut self) {
        let now = self.now;
        if self.root.next_wakeup().is_some_and(|due| due <= now) {
            self.root.handle_tick(now);
        }
        for (host, agent) in &mut self.agents {
            let due = agent.next_wakeup().is_some_and(|due| due <= now);
            if due && !self.paused.contains(host) {
                agent.handle_tick(now);
            }
        }
    }

    fn deliver(&mut self, key: (Time, u64)) {
        let now = self.now;
        let Some((from, to, frame)) = self.queue.remove(&key) else {
            return;
        };
        match (from, to, frame) {
            (Party::Host(host), Party::Root, Frame::Up(up)) => {
                self.root.handle_frame(HostId(host), up, now);
            }
            (Party::Root, Party::Host(host), Frame::Down(down)) => {
                if let Some(agent) = self.agents.get_mut(&host) {
                    agent.handle_root(down, now);
                }
            }
            (Party::Host(from), Party::Host(to), Frame::Between(frame)) => {
                if let Some(agent) = self.agents.get_mut(&to) {
                    agent.handle_between(HostId(from), frame, now);
                }
            }
            other => panic!("{other:?}"),
        }
    }

    fn send(&mut self, from: Party, to: Party, frame: Frame) {
        self.frames += 1;
        if !self.cut.contains(&(from, to)) {
            self.queue
                .insert((self.now + self.delay, self.frames), (from, to, frame));
        }
    }

    /// Does what the machines want.
    pub(super) fn drain(&mut self) {
        while let Some(action) = self.root.poll_action() {
            match action {
                RootAction::Append(news) => self.log.push(news),
                RootAction::Send(host, frame) => {
                    self.send(Party::Root, Party::Host(host.0), Frame::Down(frame));
                }
                RootAction::Started { .. } => {}
            }
        }
        let hosts: Vec<u32> = self.agents.keys().copied().collect();
        for host in hosts {
            while let Some(action) = self.agents.get_mut(&host).and_then(Agent::poll_action) {
                self.obey(host, action);
            }
        }
    }

    fn obey(&mut self, host: u32, action: AgentAction) {
        let me = Party::Host(host);
        match action {
            AgentAction::ToRoot(frame) => self.send(me, Party::Root, Frame::Up(frame)),
            AgentAction::ToAgent(to, frame) => {
                let refused =
                    self.refusing.contains(&to.0) && !self.cut.contains(&(me, Party::Host(to.0)));
                if let (true, Between::Look { to, .. }) = (refused, &frame) {
                    let agent = self.agents.get_mut(&host).expect("it acts");
                    agent.handle_refused(*to);
                }
                self.send(me, Party::Host(to.0), Frame::Between(frame));
            }
            AgentAction::Start(process, fence) => {
                assert_eq!(fence.epoch(), self.agent(host).members().epoch());
                self.started.push(process);
                let agent = self.agents.get_mut(&host).expect("it acts");
                agent.handle_started(process, 1000 + process.rank.0);
            }
            AgentAction::Tell(notice) => self.told.entry(host).or_default().push(notice),
            AgentAction::EndProcesses(why) => {
                self.ends.push((host, why, self.now));
                let agent = self.agents.get_mut(&host).expect("it acts");
                for process in agent.running().collect::<Vec<_>>() {
                    agent.handle_ended(process, Death::Signal(9));
                }
            }
            AgentAction::Finish => {
                self.finished.insert(host);
            }
        }
    }
}

pub(super) fn process(rank: u32, life: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(life))
}
