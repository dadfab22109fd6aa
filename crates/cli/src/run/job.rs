//! The job, as the launcher sees it: what its user is told, and what it returns.
//!
//! What a death means is decided by the root, the agent of the first host. The launcher reads the root's log ([`Job::read`]), for its
//! sentences and its exit code, and tells the root what its user wants. It also keeps where processes listen.
//!
//! No IO: what happened goes in by `handle_*`, what is to be done comes out as [`Action`]s. A rank is, in turn:
//!
//! | state | moves on when |
//! | --- | --- |
//! | starting | the root says that it was started |
//! | running | the log says that it ended, or that its host did |
//! | ended | the log says that it is started again: then it is starting |

mod rank;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use mizzen_proto::boot::{Condition, Death, OnDeath, SignalOrigin, ToAgent, Unreachable};
use mizzen_proto::membership::{Ending, Entry, HostEnd, News, Pace};
use mizzen_proto::rollcall::{Attendance, Standing};
use mizzen_proto::time::Time;

use super::roll_call::Heard;
use crate::signals;
use rank::Rank;

/// All that is known of the processes.
#[derive(Debug)]
pub(crate) struct Job {
    policy: OnDeath,
    max_restarts: u32,
    pace: Pace,
    hosts: Vec<Host>,
    ranks: Vec<Rank>,
    /// Ranks that have not ended.
    alive: usize,
    /// Ranks that have not ended and have said that they wait.
    hinting: usize,
    restarts: u32,
    /// The signals that ask programs to end and were passed on, each once: who fails now is not started again.
    interrupts: Vec<Interrupt>,
    stopping: bool,
    exit_code: Option<u8>,
    /// The code of the first death that the job went on after, and whether anybody ended well: see
    /// [`exit_code`](Job::exit_code).
    accepted: Option<u8>,
    has_success: bool,
    /// Why the job was stopped, said when it has ended.
    verdict: Option<Verdict>,
    /// Signals that are passed on when the log has them.
    announced: Vec<(u8, SignalOrigin)>,
    /// Whether it was said that a host ended its processes by itself: the first one tells enough.
    said_fenced: bool,
}

#[derive(Debug)]
struct Host {
    name: String,
    /// Whether the log says that its agent is there.
    joined: bool,
    /// How its link to the launcher ended: a clause.
    closed: Option<String>,
    /// Whether the log says that its agent has ended.
    ended: bool,
}

/// Why the job was stopped.
#[derive(Debug)]
enum Verdict {
    Sentence(String),
    /// A host was lost. Why, may be known only when its remote shell has ended.
    HostLost {
        host: usize,
        how: HostEnd,
        tail: String,
    },
}

/// A signal that asks programs to end.
#[derive(Debug, Clone, Copy)]
struct Interrupt {
    number: u8,
    /// How many processes had not ended when it came.
    alive: usize,
}

/// What the launcher has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Broadcast(ToAgent),
    Tell(usize, ToAgent),
    Say(String),
}

impl Job {
    /// `places` has the host of each rank.
    pub(crate) fn new(
        places: &[usize],
        hosts: Vec<String>,
        policy: OnDeath,
        max_restarts: u32,
        pace: Pace,
    ) -> Self {
        let hosts: Vec<Host> = hosts.into_iter().map(Host::new).collect();
        let ranks: Vec<Rank> = places.iter().copied().map(Rank::new).collect();
        let alive = ranks.len();
        Self {
            policy,
            max_restarts,
            pace,
            hosts,
            ranks,
            alive,
            hinting: 0,
            restarts: 0,
            interrupts: Vec::new(),
            stopping: false,
            exit_code: None,
            accepted: None,
            has_success: false,
            verdict: None,
            announced: Vec::new(),
            said_fenced: false,
        }
    }

    /// Reads what the root decided.
    pub(crate) fn read(&mut self, news: &News) -> Vec<Action> {
        let mut actions = vec![];
        for (i, entry) in news.entries.iter().enumerate() {
            // What follows from a death is told with it.
            let after = &news.entries[i + 1..];
            actions.extend(self.read_entry(entry, after));
        }
        actions
    }

    fn read_entry(&mut self, entry: &Entry, after: &[Entry]) -> Vec<Action> {
        match entry {
            Entry::Placed { .. } => vec![],
            Entry::HostJoined { agent, .. } => {
                if let Some(host) = self.hosts.get_mut(agent.host.0 as usize) {
                    host.joined = true;
                }
                vec![]
            }
            Entry::HostEnded { agent, how } => self.read_host_ended(agent.host.0 as usize, *how),
            Entry::Left { process } => self.handle_left(process.rank.0, process.incarnation.0),
            Entry::Ended { process, how } => {
                let (rank, incarnation) = (process.rank.0, process.incarnation.0);
                let decided = decided(rank, after);
                self.handle_exited(rank, incarnation, *how, decided)
            }
            Entry::Restarted { process, .. } => self.begin(process.rank.0, process.incarnation.0),
            Entry::JobEnds(ending) => match ending {
                // Those were told with who died, and the job's end by itself needs no words.
                Ending::Process { .. } | Ending::Host { .. } | Ending::Done => vec![],
                Ending::Asked { code } => self.stop(None, *code),
            },
            Entry::Interrupted { signal } => {
                let number = *signal;
                let known = self.announced.iter().position(|(one, _)| *one == number);
                let known = known.map(|at| self.announced.remove(at));
                let origin = known.map_or(SignalOrigin::Process, |(_, origin)| origin);
                vec![Action::Broadcast(ToAgent::Signal { number, origin })]
            }
        }
    }

    /// A signal is to be passed on. Those that ask programs to end are told to the root first, so that it starts nobody again.
    pub(crate) fn pass_on(&mut self, number: u8, origin: SignalOrigin) -> Vec<Action> {
        if !signals::asks_to_end(number) || self.stopping {
            return vec![Action::Broadcast(ToAgent::Signal { number, origin })];
        }
        self.announced.push((number, origin));
        vec![Action::Tell(ROOT, ToAgent::Interrupt { number })]
    }

    /// Ends the job for a reason that is not a process's.
    pub(crate) fn stop(&mut self, why: Option<String>, code: u8) -> Vec<Action> {
        self.stop_for(why.map(Verdict::Sentence), code)
    }

    fn stop_for(&mut self, why: Option<Verdict>, code: u8) -> Vec<Action> {
        if self.stopping {
            return vec![];
        }
        self.stopping = true;
        self.exit_code.get_or_insert(code);
        self.verdict = why;
        vec![Action::Broadcast(ToAgent::Stop { code })]
    }

    /// Ends the job because of a signal that was passed on.
    pub(crate) fn stop_by_signal(&mut self, number: u8) -> Vec<Action> {
        let interrupts = &self.interrupts;
        let came = interrupts.iter().find(|signal| signal.number == number);
        let ended = came.map_or(self.alive, |signal| signal.alive);
        let sentence = words::ended_by_signal(number, ended, self.ranks.len());
        self.stop(Some(sentence), code(Death::Signal(number)))
    }

    pub(crate) fn handle_started(&mut self, rank: u32, incarnation: u32, pid: u32) {
        let state = self.ranks.get_mut(rank as usize);
        if let Some(state) = state.filter(|state| state.incarnation == incarnation) {
            state.pid = Some(pid);
        }
    }

    pub(crate) fn handle_ready(
        &mut self,
        rank: u32,
        incarnation: u32,
        locator: String,
    ) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![];
        };
        let is_over = state.incarnation == incarnation && state.ended.is_some();
        // Its agent may be quicker than the log: then it is of a life that was not heard of.
        if incarnation < state.incarnation || is_over {
            return vec![];
        }
        state.locator = Some((incarnation, locator.clone()));
        let waiting = std::mem::take(&mut state.waiting);
        let answer = ToAgent::Located {
            rank,
            incarnation,
            locator,
        };
        waiting
            .into_iter()
            .map(|host| Action::Tell(host, answer.clone()))
            .collect()
    }

    fn handle_left(&mut self, rank: u32, incarnation: u32) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![];
        };
        if state.incarnation != incarnation {
            return vec![];
        }
        state.left = true;
        self.refuse_waiting(rank, Unreachable::Left)
    }

    /// A process wants to reach this life of another, or a later one.
    pub(crate) fn handle_locate(
        &mut self,
        host: usize,
        rank: u32,
        incarnation: u32,
    ) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![Action::Tell(
                host,
                ToAgent::Unreachable {
                    rank,
                    reason: Unreachable::NoSuchRank,
                },
            )];
        };
        let known = state.locator.as_ref();
        let known = known.filter(|(life, _)| *life >= incarnation.max(state.incarnation));
        let gone = state.gone().filter(|_| state.incarnation >= incarnation);
        let answer = match (known, gone) {
            (_, Some(reason)) => ToAgent::Unreachable { rank, reason },
            (Some((incarnation, locator)), None) => ToAgent::Located {
                rank,
                incarnation: *incarnation,
                locator: locator.clone(),
            },
            (None, None) => {
                state.waiting.insert(host);
                return vec![];
            }
        };
        vec![Action::Tell(host, answer)]
    }

    /// A process says that it waits for long; `text` is a predicate without a full stop.
    ///
    /// If it alone waits, that others have ended may be the reason.
    pub(crate) fn handle_waiting(&mut self, rank: u32, text: &str, now: Time) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![];
        };
        let text = words::printable(text);
        if state.ended.is_some() || self.stopping || text.is_empty() {
            return vec![];
        }
        if !std::mem::replace(&mut state.hinting, true) {
            self.hinting += 1;
        }
        let too_soon = |last| now.since(last) < HINT_INTERVAL;
        if state.hinted.is_some_and(too_soon) {
            return vec![];
        }
        state.hinted = Some(now);
        let host = &self.hosts[state.host].name;
        let others = self.ranks.len() - 1;
        let tail = match self.ranks.len() - self.alive {
            ended if self.hinting == 1 => words::have_ended(ended, others),
            _ => String::new(),
        };
        vec![Action::Say(format!("rank {rank} on {host} {text}{tail}."))]
    }

    pub(crate) fn handle_path(&mut self, rank: u32, text: &str) -> Vec<Action> {
        let Some(state) = self.ranks.get(rank as usize) else {
            return vec![];
        };
        let (host, text) = (&self.hosts[state.host].name, words::printable(text));
        vec![Action::Say(format!("rank {rank} on {host} {text}."))]
    }

    /// A process ended, and this was decided.
    fn handle_exited(
        &mut self,
        rank: u32,
        incarnation: u32,
        how: Death,
        decided: Decided,
    ) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![];
        };
        if state.incarnation != incarnation || state.ended.is_some() {
            return vec![];
        }
        state.ended = Some(how);
        self.alive -= 1;
        self.hinting -= usize::from(std::mem::take(&mut state.hinting));
        if how == Death::Exit(0) {
            self.has_success = true;
            return self.refuse_waiting(rank, Unreachable::Left);
        }
        if self.stopping {
            return vec![];
        }
        let subject = self.describe(rank, how);
        if let Some(last) = self.interrupts.last() {
            return match self.cause(how) {
                Some(number) => self.stop_by_signal(number),
                None => {
                    let subject = format!("{subject} after {}", signals::name(last.number));
                    self.fail(rank, how, &subject)
                }
            };
        }
        match decided {
            Decided::GoesOn => self.go_on(rank, how, &subject),
            Decided::Restarts(incarnation) => vec![Action::Say(format!(
                "{subject}; started it again (incarnation {incarnation})."
            ))],
            Decided::Stops => {
                let out_of_restarts =
                    self.policy == OnDeath::Restart && self.restarts >= self.max_restarts;
                let tail = match out_of_restarts && how != Death::HostLost {
                    true => format!(", after {} restarts (see --max-restarts)", self.restarts),
                    false => String::new(),
                };
                self.fail(rank, how, &format!("{subject}{tail}"))
            }
        }
    }

    /// The link to the agent of a host is gone; `why` is a clause. What becomes of the host's processes the root says, unless it is
    /// the root's host, or one that never joined.
    pub(crate) fn handle_closed(&mut self, host: usize, why: String) -> Vec<Action> {
        let joined = self.hosts[host].joined;
        self.hosts[host].closed = Some(why);
        if host == ROOT || !joined {
            return self.handle_host_lost(host, HostEnd::Refused);
        }
        vec![]
    }

    /// Nothing was heard of the root for as long as others may live without it.
    pub(crate) fn handle_root_silent(&mut self) -> Vec<Action> {
        let clause = words::silent_for(self.pace.lease);
        self.hosts[ROOT].closed.get_or_insert(clause);
        self.handle_host_lost(ROOT, HostEnd::Refused)
    }

    /// An agent ended its processes by itself; `text` is a predicate.
    pub(crate) fn handle_fenced(&mut self, host: usize, text: &str) -> Vec<Action> {
        if self.stopping || std::mem::replace(&mut self.said_fenced, true) {
            return vec![];
        }
        let (name, text) = (&self.hosts[host].name, words::printable(text));
        vec![Action::Say(format!("host {name} {text}."))]
    }

    fn read_host_ended(&mut self, host: usize, how: HostEnd) -> Vec<Action> {
        let Some(state) = self.hosts.get_mut(host) else {
            return vec![];
        };
        state.ended = true;
        if how == HostEnd::Left {
            // What it was never told to start ends with it.
            self.end_all_of(host);
            return vec![];
        }
        self.handle_host_lost(host, how)
    }

    /// A host is gone, and its processes with it.
    fn handle_host_lost(&mut self, host: usize, how: HostEnd) -> Vec<Action> {
        let lost = self.living_on(host);
        if lost.is_empty() && (host != ROOT || self.alive == 0) {
            return vec![];
        }
        // Without the root nobody decides.
        let goes_on = self.policy == OnDeath::Continue && host != ROOT;
        let mut actions = vec![];
        if !goes_on && !self.stopping {
            let tail = words::ended_others(self.alive - lost.len());
            actions = self.stop_for(Some(Verdict::HostLost { host, how, tail }), LOST_HOST);
        } else if !self.stopping {
            let lost = self.words_of_loss(host, how);
            actions.push(Action::Say(format!("{lost}; the others go on.")));
        }
        for rank in lost {
            let incarnation = self.ranks[rank as usize].incarnation;
            let said = self.handle_exited(rank, incarnation, Death::HostLost, Decided::GoesOn);
            let is_said = |action: &Action| matches!(action, Action::Say(_));
            actions.extend(said.into_iter().filter(|action| !is_said(action)));
        }
        actions
    }

    fn living_on(&self, host: usize) -> Vec<u32> {
        let ranks = (0..).zip(&self.ranks);
        let living = ranks.filter(|(_, rank)| rank.host == host && rank.ended.is_none());
        living.map(|(rank, _)| rank).collect()
    }

    fn end_all_of(&mut self, host: usize) {
        for rank in self.living_on(host) {
            let state = &mut self.ranks[rank as usize];
            state.ended = Some(Death::HostLost);
            self.alive -= 1;
            self.hinting -= usize::from(std::mem::take(&mut state.hinting));
        }
    }

    /// "host h2 was lost: …".
    fn words_of_loss(&self, host: usize, how: HostEnd) -> String {
        let Host { name, closed, .. } = &self.hosts[host];
        let why = match (closed, how) {
            // That its agent then ended is a consequence.
            (_, HostEnd::Silent) => words::silent_for(self.pace.verdict()),
            (Some(closed), _) => closed.clone(),
            (None, _) => "its agent has ended".to_owned(),
        };
        format!("host {name} was lost: {why}")
    }

    pub(crate) fn handle_signal(&mut self, number: u8) {
        let known = self.interrupts.iter().any(|known| known.number == number);
        if signals::asks_to_end(number) && !known {
            let alive = self.alive;
            self.interrupts.push(Interrupt { number, alive });
        }
    }

    /// Whether no process is left, and none will be started.
    pub(crate) fn is_over(&self) -> bool {
        self.alive == 0
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// What the launcher returns. A job that was told to go on when processes fail succeeds without those that were
    /// killed, or lost with their host, as long as somebody ends well. A process that exits with another code than 0 says
    /// itself that something is wrong, perhaps because it cannot go on without the others: so that counts.
    pub(crate) fn exit_code(&self) -> u8 {
        let accepted = self.accepted.filter(|_| !self.has_success);
        self.exit_code.or(accepted).unwrap_or(0)
    }

    pub(crate) fn verdict(&mut self) -> Option<String> {
        match self.verdict.take()? {
            Verdict::Sentence(sentence) => Some(sentence),
            Verdict::HostLost { host, how, tail } => {
                Some(format!("{}{tail}", self.words_of_loss(host, how)))
            }
        }
    }

    /// Hosts that are gone.
    pub(crate) fn gone(&self) -> Vec<usize> {
        let hosts = self.hosts.iter().enumerate();
        let gone = hosts.filter(|(_, host)| host.ended || host.closed.is_some());
        gone.map(|(index, _)| index).collect()
    }

    /// Ranks that have ended, and how: predicates.
    pub(crate) fn ended(&self) -> BTreeMap<u32, String> {
        let ranks = (0..).zip(&self.ranks);
        let ended = ranks.filter_map(|(rank, state)| Some((rank, state.ended?)));
        ended.map(|(rank, how)| (rank, words::death(how))).collect()
    }

    /// The process id of each rank on its host.
    pub(crate) fn pids(&self) -> Vec<Option<u32>> {
        self.ranks.iter().map(|rank| rank.pid).collect()
    }

    /// Whether a host has a rank.
    pub(crate) fn is_on(&self, rank: u32, host: usize) -> bool {
        let rank = self.ranks.get(rank as usize);
        rank.is_some_and(|rank| rank.host == host)
    }

    /// How each rank is, by what its host says of it and by what is known here.
    pub(crate) fn attendance(&self, mut heard: Heard) -> Vec<Attendance> {
        let ranks = (0..).zip(&self.ranks);
        let of = ranks.map(|(rank, state)| {
            let heard = heard.remove(&rank);
            let heard = heard.filter(|(life, ..)| *life == state.incarnation);
            if state.gone().is_some() {
                return Attendance::absent(rank, Standing::Left);
            }
            let Some((life, condition, present)) = heard else {
                return Attendance::absent(rank, Standing::Unheard);
            };
            let has_joined = state.locator.as_ref().is_some_and(|(of, _)| *of == life);
            match (has_joined, condition) {
                (true, _) | (false, Condition::Stopped) => {
                    Attendance::new(rank, condition, present)
                }
                (false, _) => Attendance::absent(rank, Standing::Unjoined),
            }
        });
        of.collect()
    }

    /// How many ranks there are.
    pub(crate) fn size(&self) -> u32 {
        u32::try_from(self.ranks.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn ranks_of(&self, host: usize) -> Vec<u32> {
        (0..)
            .zip(&self.ranks)
            .filter(|(_, rank)| rank.host == host)
            .map(|(i, _)| i)
            .collect()
    }

    fn fail(&mut self, rank: u32, how: Death, subject: &str) -> Vec<Action> {
        let mut actions = self.refuse_waiting(rank, Unreachable::Dead);
        let sentence = format!("{subject}{}", words::ended_others(self.alive));
        actions.extend(self.stop(Some(sentence), code(how)));
        actions
    }

    fn go_on(&mut self, rank: u32, how: Death, subject: &str) -> Vec<Action> {
        let counted = match how {
            Death::Exit(_) => &mut self.exit_code,
            Death::Signal(_) | Death::HostLost => &mut self.accepted,
        };
        counted.get_or_insert(code(how));
        let mut actions = self.refuse_waiting(rank, Unreachable::Dead);
        let tail = words::others_go_on(self.alive);
        actions.push(Action::Say(format!("{subject}{tail}")));
        actions
    }

    /// A new life of a process begins.
    fn begin(&mut self, rank: u32, incarnation: u32) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![];
        };
        if state.ended.take().is_none() {
            return vec![];
        }
        self.restarts += 1;
        self.alive += 1;
        state.incarnation = incarnation;
        state.pid = None;
        state.left = false;
        // After a key of the terminal, which reaches a process before the root is told of it, this is nobody's wish.
        match self.interrupts.last().copied() {
            Some(signal) => self.stop_by_signal(signal.number),
            None => vec![],
        }
    }

    fn refuse_waiting(&mut self, rank: u32, reason: Unreachable) -> Vec<Action> {
        let waiting = std::mem::take(&mut self.ranks[rank as usize].waiting);
        waiting
            .into_iter()
            .map(|host| Action::Tell(host, ToAgent::Unreachable { rank, reason }))
            .collect()
    }

    /// The signal that was passed on and had this end as its consequence.
    fn cause(&self, how: Death) -> Option<u8> {
        let mut numbers = self.interrupts.iter().map(|signal| signal.number);
        // By the code that shells return for a signal, programs say that they handled it and ended.
        numbers.find(|number| {
            how == Death::Signal(*number) || how == Death::Exit(code(Death::Signal(*number)))
        })
    }

    fn describe(&self, rank: u32, how: Death) -> String {
        let state = &self.ranks[rank as usize];
        let host = &self.hosts[state.host].name;
        let pid = state
            .pid
            .map_or(String::new(), |pid| format!(" (pid {pid})"));
        let what = words::death(how);
        format!("rank {rank} on {host}{pid} {what}")
    }
}

/// What was decided about a death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    /// The others go on.
    GoesOn,
    /// It is started again, in this life.
    Restarts(u32),
    /// The job ends.
    Stops,
}

/// What the entries after a death say of it: all that follows from it is there.
fn decided(rank: u32, after: &[Entry]) -> Decided {
    let found = after.iter().find_map(|entry| match entry {
        Entry::Restarted { process, .. } if process.rank == rank => {
            Some(Decided::Restarts(process.incarnation.0))
        }
        Entry::JobEnds(Ending::Process { process, .. }) if process.rank == rank => {
            Some(Decided::Stops)
        }
        _ => None,
    });
    found.unwrap_or(Decided::GoesOn)
}

impl Host {
    fn new(name: String) -> Self {
        Self {
            name,
            joined: false,
            closed: None,
            ended: false,
        }
    }
}

/// The exit code that stands for a death, as shells have it.
fn code(how: Death) -> u8 {
    match how {
        Death::Exit(code) => code,
        Death::Signal(number) => 128_u8.saturating_add(number),
        Death::HostLost => LOST_HOST,
    }
}

/// The host whose agent is the root.
const ROOT: usize = 0;

/// Between two hints of one rank: a job that waits must not bury what it has printed.
const HINT_INTERVAL: Duration = Duration::from_secs(10);

/// The exit code for a host that was lost: that of `ssh`.
const LOST_HOST: u8 = 255;

#[cfg(test)]
mod tests;
