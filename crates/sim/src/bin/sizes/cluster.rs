//! A large job on a whole network: agents and the root as machines, processes as rows, one heap of what happens when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::boot::OnDeath;
use mizzen_proto::id::{MailboxId, ProcessId, Rank, RequestId};
use mizzen_proto::membership::{
    Agent, AgentAction, AgentId, Between, Change, FromAgent, FromRoot, HostId, Notice, Order, Pace,
    Policy, Root, RootAction, Said,
};
use mizzen_proto::registry::{Action, Answer, Frame, Outcome, Patience, Question, Registry, Seen};
use mizzen_proto::time::Time;

use crate::tally::{Count, Figures, Phase};

const PACE: Pace = Pace::DEFAULT;
/// Between two hosts.
const DELAY: Duration = Duration::from_micros(50);
/// What dies.
const LOST: usize = 3;

#[derive(Debug)]
pub(crate) struct Cluster {
    now: Time,
    root: Root,
    hosts: Vec<Host>,
    processes: Vec<Process>,
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    events: Vec<Option<Event>>,
    began: Time,
    last_answer: Time,
    answered: u32,
}

#[derive(Debug)]
struct Host {
    agent: Agent,
    registry: Registry,
    count: Count,
    armed: Option<Time>,
    is_gone: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Process {
    count: Count,
    started: bool,
    /// Of its fence.
    fence: u64,
    /// Questions that are open, and the most that were.
    open: u64,
    most_open: u64,
}

#[derive(Debug)]
enum Event {
    Tick(usize),
    RootTick,
    Up(usize, FromAgent),
    Down(usize, FromRoot),
    Between(usize, usize, Between),
    Names(usize, Frame),
}

impl Cluster {
    /// Hosts that start within a second, and processes placed on them.
    pub(crate) fn new(hosts: u32, processes: u32) -> Self {
        let policy = Policy {
            on_death: OnDeath::Continue,
            max_restarts: 0,
        };
        let mut root = Root::new(PACE, policy);
        let each = processes / hosts;
        for host in 0..hosts {
            let first = Rank(host * each);
            assert!(root.place(HostId(host), first, each, Time(0)), "it fits");
        }
        let host = |host| {
            let me = AgentId::new(HostId(host), 1);
            let locator = format!("10.0.{}.{}:7000", host / 256, host % 256);
            Host {
                agent: Agent::new(me, PACE, locator, Time(0)),
                registry: Registry::new(me, PACE),
                count: Count::default(),
                armed: None,
                is_gone: false,
            }
        };
        Self {
            now: Time(0),
            root,
            hosts: (0..hosts).map(host).collect(),
            processes: vec![Process::default(); processes as usize],
            heap: BinaryHeap::new(),
            events: vec![],
            began: Time(0),
            last_answer: Time(0),
            answered: 0,
        }
    }

    /// All start, within a second, and have agreed on the names.
    pub(crate) fn start(&mut self) {
        let mut rng = Rng::with_seed(1);
        for host in 0..self.hosts.len() {
            let at = if host == 0 {
                0
            } else {
                rng.u64(..1_000_000_000)
            };
            self.add(Time(at), Event::Tick(host));
        }
        self.add(Time(0), Event::RootTick);
        self.run_until(|cluster| {
            let all = cluster.processes.iter().all(|process| process.started);
            let settled = cluster.root.is_told() && cluster.last_answer.0 > 0;
            cluster.last_answer = cluster.now.max(Time(1));
            all && settled
                && cluster
                    .hosts
                    .iter()
                    .all(|host| host.registry.is_established())
        });
    }

    /// Each process binds a name of its own.
    pub(crate) fn bind_all(&mut self) {
        for rank in 0..self.processes.len() {
            let question = Question::Bind {
                request: RequestId(1),
                name: format!("process/{rank}").into(),
                mailbox: MailboxId(1),
            };
            self.ask(rank, &question);
        }
        self.wait_for(self.processes.len());
    }

    /// All wait for one name, and then it is bound.
    pub(crate) fn fetch_one(&mut self) {
        let name = "the one";
        for rank in 1..self.processes.len() {
            let question = Question::Read {
                request: RequestId(2),
                name: name.into(),
                patience: Patience::Wait,
            };
            self.ask(rank, &question);
        }
        let question = Question::Bind {
            request: RequestId(2),
            name: name.into(),
            mailbox: MailboxId(2),
        };
        self.ask(0, &question);
        self.wait_for(self.processes.len());
    }

    /// A host is killed, which its port tells; then the processes of a second host ask for the names of those of a third.
    pub(crate) fn lose_host(&mut self) {
        // Until nobody remembers anything.
        let until = self.now + PACE.beat * 2;
        self.run_until(|cluster| cluster.now >= until);
        self.reset();
        self.hosts[LOST].is_gone = true;
        let agent = self.hosts[LOST].agent.id();
        self.root.handle_refused(agent, self.now);
        self.pump_root();
        let each = self.processes.len() / self.hosts.len();
        self.run_until(|cluster| cluster.root.is_told());
        for rank in each..2 * each {
            let question = Question::Read {
                request: RequestId(3),
                name: format!("process/{}", rank + 4 * each).into(),
                patience: Patience::Wait,
            };
            self.ask(rank, &question);
        }
        self.wait_for(each);
        let took = self.now;
        let until = self.now + PACE.beat / 4;
        self.run_until(|cluster| cluster.now >= until);
        self.now = took;
    }

    /// What was counted since the last time.
    pub(crate) fn figures(&mut self, phase: Phase) -> Figures {
        let here = || self.hosts.iter().filter(|host| !host.is_gone);
        let members = self.root.members();
        // A node of a tree is on average two thirds full.
        let entries = |count: usize, each: usize| (count * each * 3 / 2) as u64;
        let table =
            entries(members.hosts().count(), 80) + entries(members.exceptions().count(), 24);
        let agent = |host: &Host| {
            let sizes = host.registry.sizes();
            let names = entries(sizes.kept, 88) + entries(sizes.owned + sizes.cached, 80);
            let open = entries(sizes.questions, 96) + entries(sizes.asked, 96);
            let others = entries(sizes.waiting + sizes.leases + sizes.answered, 48);
            // The latest frame of each other agent.
            let heard = entries(self.hosts.len(), 16);
            table + names + open + others + heard
        };
        let root = agent(&self.hosts[0]) + entries(self.hosts.len(), 160);
        let process = self.processes.iter();
        let figures = Figures {
            phase,
            hosts: self.hosts.len() as u32,
            processes: self.processes.len() as u32,
            took: self.now.since(self.began),
            agent: here()
                .skip(1)
                .map(|host| host.count)
                .max()
                .unwrap_or_default(),
            root: self.hosts[0].count,
            process: process
                .clone()
                .map(|one| one.count)
                .max()
                .unwrap_or_default(),
            agent_memory: here().skip(1).map(agent).max().unwrap_or_default(),
            root_memory: root,
            process_memory: process
                .map(|one| 24 * one.fence + 64 * one.most_open)
                .max()
                .unwrap_or(0),
        };
        self.reset();
        figures
    }

    fn reset(&mut self) {
        self.began = self.now;
        self.answered = 0;
        for host in &mut self.hosts {
            host.count = Count::default();
        }
        for process in &mut self.processes {
            process.count = Count::default();
            process.most_open = process.open;
        }
    }

    fn wait_for(&mut self, answers: usize) {
        self.run_until(|cluster| cluster.answered as usize >= answers);
    }

    fn ask(&mut self, rank: usize, question: &Question) {
        let each = self.processes.len() / self.hosts.len();
        let host = rank / each;
        let mut bytes = vec![];
        question.encode(&mut bytes).expect("the name is short");
        self.processes[rank].count.add(bytes.len());
        let row = &mut self.processes[rank];
        row.open += 1;
        row.most_open = row.most_open.max(row.open);
        let process = ProcessId::new(Rank(rank as u32), mizzen_proto::id::Incarnation(0));
        let one = &mut self.hosts[host];
        let seen = Seen::of(&one.agent, self.now);
        one.registry
            .handle_question(process, question.clone(), seen);
        self.pump(host);
    }

    fn add(&mut self, at: Time, event: Event) {
        let index = self.events.len();
        self.events.push(Some(event));
        self.heap.push(Reverse((at, index as u64, index)));
    }

    fn run_until(&mut self, mut is_done: impl FnMut(&mut Self) -> bool) {
        let limit = self.now + Duration::from_secs(60);
        while !is_done(self) {
            let Some(Reverse((at, _, index))) = self.heap.pop() else {
                panic!("nothing happens any more");
            };
            assert!(at < limit, "it takes longer than a minute");
            self.now = self.now.max(at);
            if let Some(event) = self.events[index].take() {
                self.handle(event);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::RootTick => {
                self.root.handle_tick(now);
                self.pump_root();
            }
            Event::Tick(host) => {
                let one = &mut self.hosts[host];
                if one.is_gone {
                    return;
                }
                one.armed = None;
                one.agent.handle_tick(now);
                one.registry.handle_tick(Seen::of(&one.agent, now));
                self.pump(host);
            }
            Event::Up(from, frame) => {
                self.root.handle_frame(HostId(from as u32), frame, now);
                self.pump_root();
            }
            Event::Down(to, frame) => {
                self.hosts[to].agent.handle_root(frame, now);
                self.pump(to);
            }
            Event::Between(from, to, frame) => {
                let agent = &mut self.hosts[to].agent;
                agent.handle_between(HostId(from as u32), frame, now);
                self.pump(to);
            }
            Event::Names(to, frame) => {
                let one = &mut self.hosts[to];
                one.registry.handle_frame(frame, Seen::of(&one.agent, now));
                self.pump(to);
            }
        }
    }

    fn pump_root(&mut self) {
        while let Some(action) = self.root.poll_action() {
            let RootAction::Send(to, frame) = action else {
                continue;
            };
            let beats = matches!(frame.said, Order::Grant { .. });
            let to = to.0 as usize;
            let len = length(|out| frame.encode(out).is_ok());
            self.carry(0, to, len, beats, Event::Down(to, frame));
        }
        if let Some(due) = self.root.next_wakeup() {
            self.add(due, Event::RootTick);
        }
        self.pump(0);
    }

    /// What the agent of a host wants done.
    fn pump(&mut self, host: usize) {
        if self.hosts[host].is_gone {
            return;
        }
        while let Some(action) = self.hosts[host].agent.poll_action() {
            match action {
                AgentAction::ToRoot(frame) => {
                    let beats = matches!(frame.said, Said::Beat { .. });
                    let len = length(|out| frame.encode(out).is_ok());
                    self.carry(host, 0, len, beats, Event::Up(host, frame));
                }
                AgentAction::ToAgent(to, frame) => {
                    let to = to.0 as usize;
                    let len = length(|out| frame.encode(out).is_ok());
                    self.carry(host, to, len, false, Event::Between(host, to, frame));
                }
                AgentAction::Start(process, fence) => {
                    let row = &mut self.processes[process.rank.index()];
                    row.started = true;
                    row.fence = fence.entries() as u64;
                    row.count.add(16 + 12 * fence.entries());
                    self.hosts[host].agent.handle_started(process, 1);
                }
                AgentAction::Tell(notice) => self.tell(host, &notice),
                AgentAction::EndProcesses(_) | AgentAction::Finish => {}
            }
        }
        let now = self.now;
        let one = &mut self.hosts[host];
        one.registry.handle_members(Seen::of(&one.agent, now));
        while let Some(action) = self.hosts[host].registry.poll_action() {
            match action {
                Action::Send(frame) => {
                    let to = frame.to.host.0 as usize;
                    let len = length(|out| frame.encode(out).is_ok());
                    self.carry(host, to, len, false, Event::Names(to, frame));
                }
                Action::Answer(process, answer) => self.answer(process, &answer),
            }
        }
        let one = &mut self.hosts[host];
        let wakeups = [one.agent.next_wakeup(), one.registry.next_wakeup()];
        let due = wakeups.into_iter().flatten().min();
        let earlier = |due: &Time| one.armed.is_none_or(|armed| *due < armed);
        if let Some(due) = due.filter(earlier) {
            one.armed = Some(due);
            self.add(due, Event::Tick(host));
        }
    }

    fn answer(&mut self, process: ProcessId, answer: &Answer) {
        if let Answer::Done { outcome, .. } = answer {
            assert!(matches!(outcome, Outcome::Bound(_)), "{outcome:?}");
        }
        let mut bytes = vec![];
        answer.encode(&mut bytes).expect("its names are short");
        let row = &mut self.processes[process.rank.index()];
        row.count.add(bytes.len());
        row.open -= 1;
        self.answered += 1;
    }

    fn tell(&mut self, host: usize, notice: &Notice) {
        let ended = |change: &&Change| matches!(change, Change::Ended { .. });
        let ends = notice.changes.iter().filter(ended).count();
        let each = self.processes.len() / self.hosts.len();
        for row in &mut self.processes[host * each..(host + 1) * each] {
            if row.started {
                row.count.add(12 + 12 * notice.changes.len());
                // Neighbours that end together are one entry.
                row.fence += u64::from(ends > 0);
            }
        }
    }

    /// Counts at both ends what goes between hosts, and lets it arrive.
    fn carry(&mut self, from: usize, to: usize, len: usize, is_beat: bool, event: Event) {
        let at = if from == to {
            self.now
        } else {
            if !is_beat {
                self.hosts[from].count.add(len);
                if !self.hosts[to].is_gone {
                    self.hosts[to].count.add(len);
                }
            }
            self.now + DELAY
        };
        if !self.hosts[to].is_gone {
            self.add(at, event);
        }
    }
}

fn length(encode: impl FnOnce(&mut Vec<u8>) -> bool) -> usize {
    let mut bytes = vec![];
    assert!(encode(&mut bytes), "it is within the limits");
    bytes.len()
}
