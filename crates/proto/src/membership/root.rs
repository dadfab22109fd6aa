//! The root: hears agents, decides, and tells everybody in one order.
//!
//! An agent is, at the root:
//!
//! | state | moves on when |
//! | --- | --- |
//! | expected | it says hello: it is here, and is welcomed when the epoch that says so is told |
//! | here | it says goodbye, its port refuses, or it is silent for lease and killing: it has ended |
//! | here, silent for `suspect` | others are asked to look for it, again and again; a beat, however it comes, ends the suspicion |
//! | ended | a later life of it says hello. The ended one is told so, whenever it speaks |
//!
//! A grant answers a beat, and counts for the agent from when the beat was sent, for the root from when it came: so the
//! agent's lease is always over before the root's.

mod batch;
mod decide;
mod watch;
mod ways;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{
    AgentId, Change, Contradiction, Ending, Entry, Epoch, FromAgent, FromRoot, HostEnd, HostId,
    HostStanding, MAX_BEHIND, MAX_LOCATOR, MAX_RESENT, Members, News, Order, Pace, Said,
};
use crate::boot::OnDeath;
use crate::id::{ProcessId, Rank};
use crate::time::Time;
use batch::Batch;
use watch::Watch;

/// What the death of a process means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What it does to the job.
    pub on_death: OnDeath,
    /// How many times processes are started again, all together.
    pub max_restarts: u32,
}

/// What whoever drives the root has to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// An epoch is decided: keep it where another root finds it. What is sent after this may depend on it.
    Append(News),
    /// Send this to the agent of this host.
    Send(HostId, FromRoot),
    /// A process was started: for who shows the job.
    Started {
        /// Who.
        process: ProcessId,
        /// Its number on its host.
        pid: u32,
    },
}

/// The one who decides.
#[derive(Debug)]
pub struct Root {
    pace: Pace,
    policy: Policy,
    /// All that was decided. Its epoch is the latest that was told; what is in the batch is in it already.
    members: Members,
    batch: Batch,
    /// What somebody may not have yet.
    kept: VecDeque<News>,
    watches: BTreeMap<HostId, Watch>,
    /// When the next tick was due when it was last asked for. Frames do not postpone it: a late one shows.
    armed: Option<Time>,
    actions: VecDeque<Action>,
}

impl Root {
    /// The root of a job of which nothing was decided yet.
    #[must_use]
    pub fn new(pace: Pace, policy: Policy) -> Self {
        Self {
            pace,
            policy,
            members: Members::default(),
            batch: Batch::default(),
            kept: VecDeque::new(),
            watches: BTreeMap::new(),
            armed: None,
            actions: VecDeque::new(),
        }
    }

    /// A root that takes over, with what was [appended](Action::Append) so far.
    ///
    /// It does not know what the former one granted, so everybody has a full lease from now.
    ///
    /// # Errors
    ///
    /// [`Contradiction`] if this is not the log of a job from its beginning.
    pub fn resume(
        pace: Pace,
        policy: Policy,
        log: Vec<News>,
        now: Time,
    ) -> Result<Self, Contradiction> {
        let mut root = Self::new(pace, policy);
        for news in &log {
            root.members.apply_news(news)?;
        }
        let watch = |agent: AgentId| (agent.host, Watch::new(agent, now));
        root.watches = root.members.agents().map(watch).collect();
        root.kept = log.into();
        root.arm();
        Ok(root)
    }

    /// Lets ranks run on a host, which need not have reported. Returns whether that fits what was decided.
    pub fn place(&mut self, host: HostId, first: Rank, count: u32, now: Time) -> bool {
        let placed = self
            .order(Entry::Placed { host, first, count }, now)
            .is_some();
        self.close_if_urgent(now);
        self.arm();
        placed
    }

    /// Ends the job.
    pub fn stop(&mut self, code: u8, now: Time) {
        self.order(Entry::JobEnds(Ending::Asked { code }), now);
        self.close(now);
        self.arm();
    }

    /// A signal of the user asks programs to end, and is about to be passed on. Pass it on when this is
    /// [told](Action::Append): then nobody who ends of it is started again.
    pub fn interrupt(&mut self, signal: u8, now: Time) {
        self.order(Entry::Interrupted { signal }, now);
        self.close(now);
        self.arm();
    }

    /// A frame came on a connection that is known to be of the agent of `from`.
    pub fn handle_frame(&mut self, from: HostId, frame: FromAgent, now: Time) {
        if frame.agent.host != from {
            return;
        }
        match frame.said {
            // Only who is a member passes on.
            Said::Passed(inner) if self.members.is_here(frame.agent) => {
                if inner.agent.host != from {
                    self.hear(*inner, Some(from), now);
                }
            }
            Said::Passed(_) => self.dismiss(frame.agent),
            _ => self.hear(frame, None, now),
        }
        self.close_if_urgent(now);
        self.arm();
    }

    /// The host of this agent answers, and says that nobody listens where the agent did.
    pub fn handle_refused(&mut self, agent: AgentId, now: Time) {
        self.end_host(agent, HostEnd::Refused, now);
        self.close_if_urgent(now);
        self.arm();
    }

    /// Time has passed. All frames that have arrived were handled before.
    pub fn handle_tick(&mut self, now: Time) {
        let late = self
            .armed
            .is_some_and(|due| now.since(due) > self.pace.late());
        if late {
            // It was us who did not listen (Lifeguard). Verdicts do not depend on this.
            for watch in self.watches.values_mut() {
                watch.heard = now;
                watch.asked = None;
            }
        }
        let over = |watch: &&Watch| watch.verdict_at(&self.pace) <= now;
        let silent: Vec<AgentId> = self
            .watches
            .values()
            .filter(over)
            .map(|watch| watch.agent)
            .collect();
        for agent in silent {
            self.end_host(agent, HostEnd::Silent, now);
            self.close_if_urgent(now);
        }
        let due = |watch: &&Watch| watch.ask_at(&self.pace) <= now;
        let quiet: Vec<HostId> = self
            .watches
            .values()
            .filter(due)
            .map(|watch| watch.agent.host)
            .collect();
        for host in quiet {
            self.look_for(host, now);
        }
        if self
            .batch
            .closes_at(&self.pace)
            .is_some_and(|due| due <= now)
        {
            self.close(now);
        }
        self.armed = None;
        self.arm();
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to call [`handle_tick`](Self::handle_tick), at the latest.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        self.armed
    }

    /// All that was decided; told or not.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Whether all that was decided was told.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.batch.is_empty()
    }

    /// How many epochs are kept for those who may not have them.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    fn hear(&mut self, frame: FromAgent, by: Option<HostId>, now: Time) {
        let agent = frame.agent;
        if !self.members.is_here(agent) {
            return match frame.said {
                Said::Hello { number, locator } => self.meet(agent, number, locator, by, now),
                _ => self.dismiss(agent),
            };
        }
        let told = self.members.epoch();
        let Some(watch) = self.watches.get_mut(&agent.host) else {
            return;
        };
        if by.is_some() {
            watch.via = by.map(|host| (host, now));
        }
        // Nobody knows more than was told.
        watch.applied = watch.applied.max(frame.epoch.min(told));
        match frame.said {
            Said::Hello { number, .. } => {
                if number > watch.beat {
                    watch.hello = Some(number);
                    watch.beat = number;
                    self.welcome(now);
                }
            }
            Said::Beat {
                number,
                late,
                reports,
            } => self.answer(agent.host, number, late, reports, now),
            Said::Report { number, report } => self.take(agent, number, report, now),
            Said::Unreachable { process } => {
                let state = self.members.state(process.rank);
                if let Some(state) = state.filter(|state| state.life == process.incarnation) {
                    self.look_for(state.host, now);
                }
            }
            Said::Refused { agent } => self.end_host(agent, HostEnd::Refused, now),
            Said::Passed(_) => {}
        }
        self.trim();
    }

    /// An agent that is not here says hello.
    fn meet(
        &mut self,
        agent: AgentId,
        number: u64,
        locator: String,
        by: Option<HostId>,
        now: Time,
    ) {
        if let Some(host) = self.members.host(agent.host) {
            if agent.life <= host.life {
                return self.dismiss(agent);
            }
            if host.standing == HostStanding::Here {
                // Somebody says that a new life has begun. The old one may still run: it ends like any other.
                return self.look_for(agent.host, now);
            }
        }
        if agent.life == 0 || locator.len() > MAX_LOCATOR {
            return;
        }
        if self
            .order(Entry::HostJoined { agent, locator }, now)
            .is_none()
        {
            return;
        }
        let mut watch = Watch::new(agent, now);
        watch.hello = Some(number);
        watch.beat = number;
        watch.reports = Some(0);
        watch.via = by.map(|host| (host, now));
        self.watches.insert(agent.host, watch);
        // Whoever waits for others to begin waits no longer than for the last of them.
        let expected = |host: HostId| {
            let host = self.members.host(host);
            host.is_some_and(|host| host.standing == HostStanding::Expected)
        };
        if !self.members.hosts().any(expected) {
            self.close(now);
        }
    }

    /// Tells an agent that its life is over, if it is.
    fn dismiss(&mut self, agent: AgentId) {
        let Some(host) = self.members.host(agent.host) else {
            return;
        };
        let how = match host.standing {
            HostStanding::Ended(how) if agent.life == host.life => how,
            _ if agent.life < host.life => HostEnd::Silent,
            _ => return,
        };
        let epoch = self.members.epoch();
        let said = Order::Over { how };
        let frame = FromRoot {
            to: agent,
            epoch,
            said,
        };
        self.actions.push_back(Action::Send(agent.host, frame));
    }

    fn answer(&mut self, host: HostId, number: u64, late: Duration, reports: u64, now: Time) {
        let epoch = self.members.epoch();
        let Some(watch) = self.watches.get_mut(&host) else {
            return;
        };
        // An older beat was on its way for long: it says nothing of now. The latest may come a second time, by another
        // way, because its answer was not heard: answered, it counts no more than the first time.
        if number < watch.beat {
            return;
        }
        let applied = watch.applied;
        let resend = applied < watch.told && number > watch.beat;
        let behind = epoch.0.saturating_sub(applied.0) > MAX_BEHIND;
        if number > watch.beat {
            watch.beat = number;
            watch.heard = now;
            watch.late = late;
            watch.asked = None;
            watch.told = epoch;
            if !behind {
                watch.granted = now;
            }
        }
        if behind {
            return self.resend(host, applied, now);
        }
        let taken = *watch.reports.get_or_insert(reports);
        let grant = Order::Grant {
            number,
            age: Duration::ZERO,
            reports: taken,
        };
        self.send(host, grant, now);
        if resend {
            self.resend(host, applied, now);
        }
    }

    /// Sends again what an agent had been told before its latest beat but one, and does not have.
    fn resend(&mut self, host: HostId, applied: Epoch, now: Time) {
        let lacks = self.kept.iter().filter(|news| news.epoch > applied);
        let lacks: Vec<News> = lacks.take(MAX_RESENT).cloned().collect();
        for news in lacks {
            self.send(host, Order::News(news), now);
        }
    }

    /// Puts a decision in the log, unless it contradicts those before it: then it is no news. Every decision passes here.
    fn order(&mut self, entry: Entry, now: Time) -> Option<Vec<Change>> {
        let mut changes = vec![];
        self.members.apply(&entry, &mut changes).ok()?;
        self.batch.push(entry, now);
        Some(changes)
    }

    /// Tells what was decided if it may not wait: the end of the job, or more than an epoch takes. Only between events, so that
    /// a death and what follows from it are of one epoch.
    fn close_if_urgent(&mut self, now: Time) {
        if self.batch.is_full() || self.batch.ends_job() {
            self.close(now);
        }
    }

    /// Issues the next epoch.
    fn close(&mut self, now: Time) {
        let Some(epoch) = self.members.epoch().next() else {
            return;
        };
        let entries = self.batch.take();
        if entries.is_empty() {
            return;
        }
        self.members.set_epoch(epoch);
        let news = News { epoch, entries };
        self.actions.push_back(Action::Append(news.clone()));
        self.kept.push_back(news.clone());
        let welcomed = self.watches.values().filter(|watch| watch.hello.is_none());
        let hosts: Vec<HostId> = welcomed.map(|watch| watch.agent.host).collect();
        for host in hosts {
            self.send(host, Order::News(news.clone()), now);
        }
        self.welcome(now);
        self.trim();
    }

    /// Welcomes those who wait for it, once all that was decided is told.
    fn welcome(&mut self, now: Time) {
        if !self.batch.is_empty() {
            return;
        }
        let waiting = self.watches.values_mut();
        let waiting: Vec<(HostId, u64)> = waiting
            .filter_map(|watch| {
                let number = watch.hello.take()?;
                watch.heard = now;
                watch.granted = now;
                watch.told = self.members.epoch();
                // A second welcome may cross the first, with which the agent joined: only its own word says that it has more.
                if !std::mem::replace(&mut watch.is_welcome, true) {
                    watch.applied = self.members.epoch();
                }
                Some((watch.agent.host, number))
            })
            .collect();
        for (host, number) in waiting {
            let members = Box::new(self.members.clone());
            self.send(host, Order::Welcome { number, members }, now);
        }
    }

    /// Forgets what everybody has.
    fn trim(&mut self) {
        let applied = self.watches.values().map(|watch| watch.applied).min();
        let applied = applied.unwrap_or(self.members.epoch());
        while self.kept.front().is_some_and(|news| news.epoch <= applied) {
            self.kept.pop_front();
        }
    }

    fn arm(&mut self) {
        let watches = self.watches.values();
        let due = watches.map(|watch| watch.verdict_at(&self.pace).min(watch.ask_at(&self.pace)));
        let due = due.chain(self.batch.closes_at(&self.pace)).min();
        self.armed = match (self.armed, due) {
            (Some(armed), Some(due)) => Some(armed.min(due)),
            (armed, due) => armed.or(due),
        };
    }
}
