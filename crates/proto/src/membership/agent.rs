//! The agent of a host: watches its processes, beats, and ends them when it may not let them run any more.
//!
//! | state | moves on when |
//! | --- | --- |
//! | joining: says hello, does nothing else | it is welcome: it knows members, ended lives and epoch, and starts its processes |
//! | member | the job ends and its processes have; or it is fenced |
//! | fenced: its processes are being ended | they have ended |
//! | gone | |
//!
//! It is fenced when its lease is over, when it hears that it was pronounced lost, or when the root contradicts itself.

mod lease;
mod reports;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::{
    AgentId, Between, Change, Ending, Entry, Epoch, Fence, FromAgent, FromRoot, HostEnd, HostId,
    MAX_EARLY, MAX_LOCATOR, MAX_RELAYED, Members, News, Notice, Order, PROBERS, Pace, Report, Said,
};
use crate::boot::Death;
use crate::id::ProcessId;
use crate::time::Time;
use lease::Lease;
use reports::Reports;

/// What whoever drives an agent has to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this to the root.
    ToRoot(FromAgent),
    /// Send this to the agent of this host, connecting if need be. If its port refuses, say so by
    /// [`handle_refused`](Agent::handle_refused).
    ToAgent(HostId, Between),
    /// Start this process, and give it the fence before anything else.
    Start(ProcessId, Fence),
    /// Tell all processes that were started.
    Tell(Notice),
    /// End all processes, and report their ends as usual.
    EndProcesses(Why),
    /// There is nothing more to do: end.
    Finish,
}

/// Why an agent ends its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// The root decided that the job ends.
    #[error("the job ends")]
    JobEnds(Ending),
    /// The root was not heard for the lease: the others will go on without this host, or have ended as well.
    #[error("the root of the job was not heard for longer than the lease")]
    LeaseOver,
    /// The others were told that this host is lost, and go on without it.
    #[error("this host was taken for lost")]
    Pronounced(HostEnd),
    /// What the root says cannot be.
    #[error("the root of the job contradicts itself")]
    Contradiction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Joining,
    Member,
    Fenced,
    Gone,
}

/// The membership of one host.
#[derive(Debug)]
pub struct Agent {
    me: AgentId,
    pace: Pace,
    locator: String,
    phase: Phase,
    members: Members,
    lease: Lease,
    reports: Reports,
    /// What was told to start and has not ended.
    running: BTreeSet<ProcessId>,
    said_bye: bool,
    /// News that came before those that they follow.
    early: BTreeMap<Epoch, News>,
    beat_due: Time,
    /// By how much ticks were late: halved with each beat.
    late: Duration,
    /// When the root was heard without another in between.
    heard: Time,
    /// Who passed on a word of the root last, or asked for a beat, and when.
    via: Option<(HostId, Time)>,
    /// For whom frames are passed on, and when that was last so.
    relayed: BTreeMap<HostId, Time>,
    actions: VecDeque<Action>,
}

impl Agent {
    /// An agent that begins. `locator`: where other agents reach it.
    ///
    /// # Panics
    ///
    /// If the life is 0, or the locator longer than [`MAX_LOCATOR`].
    #[must_use]
    pub fn new(me: AgentId, pace: Pace, locator: String, now: Time) -> Self {
        assert!(locator.len() <= MAX_LOCATOR, "a locator has a limit");
        assert!(me.life > 0, "lives of agents count from 1");
        Self {
            me,
            pace,
            locator,
            phase: Phase::Joining,
            members: Members::default(),
            lease: Lease::default(),
            reports: Reports::default(),
            running: BTreeSet::new(),
            said_bye: false,
            early: BTreeMap::new(),
            beat_due: now,
            late: Duration::ZERO,
            heard: now,
            via: None,
            relayed: BTreeMap::new(),
            actions: VecDeque::new(),
        }
    }

    /// A process of this host cannot reach another. Nobody but the root decides what that means.
    pub fn report_unreachable(&mut self, process: ProcessId) {
        if self.phase == Phase::Member {
            self.say(Said::Unreachable { process });
        }
    }

    /// A process was started. It may have ended before that was known.
    pub fn handle_started(&mut self, process: ProcessId, pid: u32) {
        if self.running.contains(&process) {
            self.report(Report::Started { process, pid });
        }
    }

    /// A process left the job.
    pub fn handle_left(&mut self, process: ProcessId) {
        if self.running.contains(&process) {
            self.report(Report::Left { process });
        }
    }

    /// A process ended, whether or not it was said to have started.
    pub fn handle_ended(&mut self, process: ProcessId, how: Death) {
        if !self.running.remove(&process) {
            return;
        }
        self.report(Report::Ended { process, how });
        self.go_when_done();
    }

    /// The root says something.
    pub fn handle_root(&mut self, frame: FromRoot, now: Time) {
        if frame.to == self.me {
            self.heard = now;
            self.hear(frame, now);
        }
    }

    /// The agent of another host says something.
    pub fn handle_between(&mut self, from: HostId, frame: Between, now: Time) {
        match frame {
            Between::Look { from: asking, to } => {
                let member = self.phase == Phase::Member && self.members.is_here(asking);
                if to == self.me && asking.host == from && member {
                    self.via = Some((from, now));
                    self.beat(now);
                }
            }
            Between::Up(up) => {
                let member = self.phase == Phase::Member && self.members.is_here(up.agent);
                if up.agent.host == from && member && self.may_relay(from, now) {
                    self.say(Said::Passed(Box::new(up)));
                }
            }
            Between::Down(down) => {
                if down.to == self.me && !matches!(down.said, Order::Pass(_)) {
                    self.via = Some((from, now));
                    self.hear(down, now);
                }
            }
        }
    }

    /// This agent was to be sent something, and its host says that nobody listens there.
    pub fn handle_refused(&mut self, agent: AgentId) {
        if self.phase == Phase::Member && self.members.is_here(agent) {
            self.say(Said::Refused { agent });
        }
    }

    /// The root can be reached, again or for the first time: what was said in vain is said at once, not with the next beat.
    pub fn handle_root_reached(&mut self, now: Time) {
        if matches!(self.phase, Phase::Joining | Phase::Member) {
            self.beat_due = now + self.pace.beat;
            self.beat(now);
        }
    }

    /// Time has passed. All frames that have arrived were handled before.
    pub fn handle_tick(&mut self, now: Time) {
        if matches!(self.phase, Phase::Fenced | Phase::Gone) {
            return;
        }
        if self.phase == Phase::Member && self.lease.is_over(now) {
            return self.fence(Why::LeaseOver);
        }
        if now < self.beat_due {
            return;
        }
        let late = now.since(self.beat_due);
        if late > self.pace.late() {
            // It was us who did not listen (Lifeguard).
            self.heard = now;
        }
        self.late = late.max(self.late / 2);
        // A pulse that was missed is not made up for.
        self.beat_due = if late < self.pace.beat {
            self.beat_due + self.pace.beat
        } else {
            now + self.pace.beat
        };
        self.beat(now);
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_tick`](Self::handle_tick), at the latest.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        match self.phase {
            Phase::Fenced | Phase::Gone => None,
            // Without a lease nothing runs, so none can be over.
            Phase::Joining => Some(self.beat_due),
            Phase::Member => {
                let until = self.lease.until().unwrap_or(self.beat_due);
                Some(until.min(self.beat_due))
            }
        }
    }

    /// Which life of which host's agent this is.
    #[must_use]
    pub fn id(&self) -> AgentId {
        self.me
    }

    /// All that is known to have been decided.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Until when processes may run, as of now. Processes that send read this, so that the fence needs no agent that runs.
    #[must_use]
    pub fn lease_until(&self) -> Option<Time> {
        self.lease.until()
    }

    /// Whether it takes part: it is welcome, and not fenced.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.phase == Phase::Member
    }

    /// Whether it has ended its processes, or is about to, because it may not let them run.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.phase == Phase::Fenced
    }

    /// The processes that were told to start and have not ended.
    pub fn running(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.running.iter().copied()
    }

    fn hear(&mut self, frame: FromRoot, now: Time) {
        // What was said before the latest news was said by somebody who did not know them.
        if self.phase == Phase::Gone || frame.epoch < self.members.epoch() {
            return;
        }
        match frame.said {
            Order::Over { how } => self.handle_over(how),
            Order::Welcome { number, members } if self.phase == Phase::Joining => {
                self.join(number, *members, now);
            }
            Order::Welcome { .. } => {}
            _ if self.phase != Phase::Member => {}
            Order::Grant {
                number,
                age,
                reports,
            } => {
                self.lease.grant(number, self.pace.lease, age);
                self.reports.handle_taken(reports);
                self.send_reports();
            }
            Order::News(news) => self.take_news(news),
            Order::Look { agent, .. } => {
                if agent != self.me {
                    let (from, to) = (self.me, agent);
                    let look = Between::Look { from, to };
                    self.actions.push_back(Action::ToAgent(to.host, look));
                }
            }
            Order::Pass(down) => {
                let to = down.to.host;
                self.actions
                    .push_back(Action::ToAgent(to, Between::Down(*down)));
            }
        }
    }

    fn join(&mut self, number: u64, members: Members, now: Time) {
        self.lease.grant(number, self.pace.lease, Duration::ZERO);
        let granted = self.lease.until().is_some() && !self.lease.is_over(now);
        if !granted || !members.is_here(self.me) {
            return;
        }
        self.members = members;
        self.phase = Phase::Member;
        match self.members.ending() {
            Some(_) => self.go_when_done(),
            None => self.start(self.members.processes_on(self.me.host)),
        }
    }

    fn take_news(&mut self, news: News) {
        if news.epoch <= self.members.epoch() {
            return;
        }
        if self.early.len() < MAX_EARLY || self.members.epoch().next() == Some(news.epoch) {
            self.early.insert(news.epoch, news);
        }
        while let Some(next) = self.members.epoch().next() {
            let Some(news) = self.early.remove(&next) else {
                break;
            };
            self.apply(&news);
            if self.phase != Phase::Member {
                break;
            }
        }
    }

    fn apply(&mut self, news: &News) {
        let Ok(changes) = self.members.apply_news(news) else {
            return self.fence(Why::Contradiction);
        };
        let ends = changes.iter().find_map(|change| match change {
            Change::JobEnds(ending) => Some(*ending),
            _ => None,
        });
        let epoch = news.epoch;
        self.actions
            .push_back(Action::Tell(Notice { epoch, changes }));
        if let Some(how) = pronounced(news, self.me) {
            return self.handle_over(how);
        }
        if let Some(ending) = ends {
            self.actions
                .push_back(Action::EndProcesses(Why::JobEnds(ending)));
            return self.go_when_done();
        }
        if self.members.ending().is_none() {
            let fresh = self.members.processes_on(self.me.host);
            let fresh = fresh
                .into_iter()
                .filter(|process| to_start(news, self.me.host, *process));
            self.start(fresh.collect());
        }
    }

    fn start(&mut self, processes: Vec<ProcessId>) {
        for process in processes {
            self.running.insert(process);
            let fence = Fence::new(&self.members);
            self.actions.push_back(Action::Start(process, fence));
        }
    }

    fn handle_over(&mut self, how: HostEnd) {
        if how == HostEnd::Left && self.said_bye {
            self.phase = Phase::Gone;
            self.actions.push_back(Action::Finish);
        } else {
            self.fence(Why::Pronounced(how));
        }
    }

    /// Ends the processes for good: this life of the agent takes part no more.
    fn fence(&mut self, why: Why) {
        if matches!(self.phase, Phase::Fenced | Phase::Gone) {
            return;
        }
        self.phase = Phase::Fenced;
        if !self.running.is_empty() {
            self.actions.push_back(Action::EndProcesses(why));
        }
        self.go_when_done();
    }

    fn go_when_done(&mut self) {
        if !self.running.is_empty() {
            return;
        }
        match self.phase {
            Phase::Member if self.members.ending().is_some() && !self.said_bye => {
                self.said_bye = true;
                self.report(Report::Bye);
            }
            Phase::Fenced => {
                self.phase = Phase::Gone;
                self.actions.push_back(Action::Finish);
            }
            _ => {}
        }
    }

    fn beat(&mut self, now: Time) {
        let number = self.lease.beat(now);
        if self.phase == Phase::Joining {
            let locator = self.locator.clone();
            return self.say(Said::Hello { number, locator });
        }
        let (late, reports) = (self.late, self.reports.taken());
        self.say(Said::Beat {
            number,
            late,
            reports,
        });
        self.reports.handle_beat();
        self.send_reports();
        let beat = Said::Beat {
            number,
            late,
            reports,
        };
        for host in self.passers(number, now) {
            self.say_by(host, beat.clone());
        }
    }

    fn report(&mut self, report: Report) {
        self.reports.push(report);
        self.send_reports();
    }

    fn send_reports(&mut self) {
        if self.phase != Phase::Member {
            return;
        }
        let via = self.via.map(|(host, _)| host);
        while let Some((number, report)) = self.reports.poll() {
            let said = Said::Report { number, report };
            if let Some(host) = via {
                self.say_by(host, said.clone());
            }
            self.say(said);
        }
    }

    /// Who is to pass the beat on: while the root is silent, whoever did it last, or two others each time.
    fn passers(&mut self, number: u64, now: Time) -> Vec<HostId> {
        let pace = self.pace;
        self.via = self.via.filter(|(_, when)| now.since(*when) < pace.suspect);
        if let Some((host, _)) = self.via {
            return vec![host];
        }
        if now < self.heard + pace.suspect {
            return vec![];
        }
        let agents = self.members.agents().map(|agent| agent.host);
        let others: Vec<HostId> = agents.filter(|host| *host != self.me.host).collect();
        let turn = usize::try_from(number).unwrap_or(0).wrapping_mul(PROBERS);
        let count = others.len();
        let next = (0..count.min(PROBERS)).map(|i| others[(turn + i) % count]);
        next.collect()
    }

    fn may_relay(&mut self, host: HostId, now: Time) -> bool {
        let lease = self.pace.lease;
        self.relayed.retain(|_, when| now.since(*when) < lease);
        if self.relayed.len() >= MAX_RELAYED && !self.relayed.contains_key(&host) {
            return false;
        }
        self.relayed.insert(host, now);
        true
    }

    fn say(&mut self, said: Said) {
        let frame = self.frame(said);
        self.actions.push_back(Action::ToRoot(frame));
    }

    fn say_by(&mut self, host: HostId, said: Said) {
        let frame = Between::Up(self.frame(said));
        self.actions.push_back(Action::ToAgent(host, frame));
    }

    fn frame(&self, said: Said) -> FromAgent {
        FromAgent {
            agent: self.me,
            epoch: self.members.epoch(),
            said,
        }
    }
}

/// Whether the news say that this agent has ended.
fn pronounced(news: &News, me: AgentId) -> Option<HostEnd> {
    news.entries.iter().find_map(|entry| match entry {
        Entry::HostEnded { agent, how } if *agent == me => Some(*how),
        _ => None,
    })
}

/// Whether the news let this process run on this host.
fn to_start(news: &News, here: HostId, process: ProcessId) -> bool {
    news.entries.iter().any(|entry| match entry {
        Entry::Placed { host, first, count } => {
            let at = process.rank.0.checked_sub(first.0);
            *host == here && at.is_some_and(|at| at < *count)
        }
        Entry::Restarted { process: one, host } => *host == here && *one == process,
        _ => false,
    })
}
