//! The job, as the launcher sees it, and what it decides.
//!
//! No IO: what happened goes in by `handle_*`, what is to be done comes out as [`Action`]s. A rank is, in turn:
//!
//! | state | moves on when |
//! | --- | --- |
//! | starting | its agent says `Started` |
//! | running | its agent says `Exited`, or is lost |
//! | ended | it failed and the policy is to restart it: then it is starting again |

mod rank;
mod words;

use std::time::Duration;

use mizzen_proto::boot::{Death, OnDeath, ToAgent, Unreachable};
use mizzen_proto::time::Time;

use crate::signals;
use rank::{Rank, deal};

/// All that is known of the processes.
#[derive(Debug)]
pub(crate) struct Job {
    policy: OnDeath,
    max_restarts: u32,
    hosts: Vec<String>,
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
    verdict: Option<String>,
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
    /// Deals `size` ranks to hosts in blocks, the first ones getting what is left over.
    pub(crate) fn new(size: u32, hosts: Vec<String>, policy: OnDeath, max_restarts: u32) -> Self {
        let ranks: Vec<Rank> = deal(size, hosts.len()).map(Rank::new).collect();
        let alive = ranks.len();
        Self {
            policy,
            max_restarts,
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
        }
    }

    /// Ends the job for a reason that is not a process's.
    pub(crate) fn stop(&mut self, why: Option<String>, code: u8) -> Vec<Action> {
        if self.stopping {
            return vec![];
        }
        self.stopping = true;
        self.exit_code.get_or_insert(code);
        self.verdict = why;
        vec![Action::Broadcast(ToAgent::Stop)]
    }

    /// Ends the job because of a signal that was passed on.
    pub(crate) fn stop_by_signal(&mut self, number: u8) -> Vec<Action> {
        let interrupts = &self.interrupts;
        let came = interrupts.iter().find(|signal| signal.number == number);
        let ended = came.map_or(self.alive, |signal| signal.alive);
        let sentence = words::ended_by_signal(number, ended, self.ranks.len());
        self.stop(Some(sentence), code(Death::Signal(number)))
    }

    pub(crate) fn handle_started(&mut self, rank: u32, incarnation: u32, pid: u32) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![];
        };
        if state.incarnation != incarnation {
            return vec![];
        }
        state.pid = Some(pid);
        if incarnation == 0 {
            return vec![];
        }
        vec![Action::Broadcast(ToAgent::Joined { rank, incarnation })]
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
        if state.incarnation != incarnation || state.ended.is_some() {
            return vec![];
        }
        state.locator = Some(locator.clone());
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

    pub(crate) fn handle_left(&mut self, rank: u32, incarnation: u32) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![];
        };
        if state.incarnation != incarnation {
            return vec![];
        }
        state.left = true;
        self.refuse_waiting(rank, Unreachable::Left)
    }

    pub(crate) fn handle_locate(&mut self, host: usize, rank: u32) -> Vec<Action> {
        let Some(state) = self.ranks.get_mut(rank as usize) else {
            return vec![Action::Tell(
                host,
                ToAgent::Unreachable {
                    rank,
                    reason: Unreachable::NoSuchRank,
                },
            )];
        };
        let answer = match (&state.locator, state.gone()) {
            (_, Some(reason)) => ToAgent::Unreachable { rank, reason },
            (Some(locator), None) => ToAgent::Located {
                rank,
                incarnation: state.incarnation,
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
        let host = &self.hosts[state.host];
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
        let (host, text) = (&self.hosts[state.host], words::printable(text));
        vec![Action::Say(format!("rank {rank} on {host} {text}."))]
    }

    pub(crate) fn handle_exited(&mut self, rank: u32, incarnation: u32, how: Death) -> Vec<Action> {
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
        match self.policy {
            OnDeath::Stop => self.fail(rank, how, &subject),
            OnDeath::Continue => self.go_on(rank, how, &subject),
            OnDeath::Restart if how == Death::HostLost => self.fail(rank, how, &subject),
            OnDeath::Restart if self.restarts >= self.max_restarts => {
                let subject = format!(
                    "{subject}, after {} restarts (see --max-restarts)",
                    self.restarts
                );
                self.fail(rank, how, &subject)
            }
            OnDeath::Restart => self.restart(rank, how, &subject),
        }
    }

    /// The agent of a host is gone, and its processes with it. `why` is a clause.
    pub(crate) fn handle_host_lost(&mut self, host: usize, why: &str) -> Vec<Action> {
        let lost: Vec<u32> = (0..)
            .zip(&self.ranks)
            .filter(|(_, r)| r.host == host && r.ended.is_none())
            .map(|(i, _)| i)
            .collect();
        if lost.is_empty() {
            return vec![];
        }
        let name = &self.hosts[host];
        let mut actions = vec![];
        if self.policy != OnDeath::Continue && !self.stopping {
            let others = self.alive - lost.len();
            let tail = words::ended_others(others);
            actions = self.stop(
                Some(format!("host {name} was lost: {why}{tail}")),
                LOST_HOST,
            );
        } else if !self.stopping {
            actions.push(Action::Say(format!(
                "host {name} was lost: {why}; the others go on."
            )));
        }
        for rank in lost {
            let incarnation = self.ranks[rank as usize].incarnation;
            if self.stopping {
                self.handle_exited(rank, incarnation, Death::HostLost);
                continue;
            }
            let said = self.handle_exited(rank, incarnation, Death::HostLost);
            actions.extend(
                said.into_iter()
                    .filter(|action| !matches!(action, Action::Say(_))),
            );
        }
        actions
    }

    pub(crate) fn handle_signal(&mut self, number: u8) {
        let known = self.interrupts.iter().any(|known| known.number == number);
        if signals::asks_to_end(number) && !known {
            let alive = self.alive;
            self.interrupts.push(Interrupt { number, alive });
        }
    }

    pub(crate) fn handle_ask_last(&mut self, rank: u32, incarnation: u32) {
        let state = self.ranks.get_mut(rank as usize);
        if let Some(state) = state.filter(|state| state.incarnation == incarnation) {
            state.asks_last = true;
        }
    }

    /// Tells a process that asked that it is the only one left: who ended was not started again, and will not be.
    pub(crate) fn poll_last(&mut self) -> Option<Action> {
        if self.alive != 1 || self.stopping {
            return None;
        }
        let asks = |state: &Rank| state.ended.is_none() && state.asks_last;
        let rank = self.ranks.iter().position(asks)?;
        let state = &mut self.ranks[rank];
        state.asks_last = false;
        let rank = rank as u32;
        Some(Action::Tell(state.host, ToAgent::Last { rank }))
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
        self.verdict.take()
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
        let incarnation = self.ranks[rank as usize].incarnation;
        actions.push(Action::Broadcast(ToAgent::Died {
            rank,
            incarnation,
            how,
        }));
        actions
    }

    fn restart(&mut self, rank: u32, how: Death, subject: &str) -> Vec<Action> {
        self.restarts += 1;
        self.alive += 1;
        let state = &mut self.ranks[rank as usize];
        let died = ToAgent::Died {
            rank,
            incarnation: state.incarnation,
            how,
        };
        state.incarnation += 1;
        state.ended = None;
        state.pid = None;
        state.left = false;
        state.asks_last = false;
        state.locator = None;
        let incarnation = state.incarnation;
        vec![
            Action::Say(format!(
                "{subject}; started it again (incarnation {incarnation})."
            )),
            Action::Broadcast(died),
            Action::Tell(state.host, ToAgent::Restart { rank, incarnation }),
        ]
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
        let host = &self.hosts[state.host];
        let pid = state
            .pid
            .map_or(String::new(), |pid| format!(" (pid {pid})"));
        let what = words::death(how);
        format!("rank {rank} on {host}{pid} {what}")
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

/// Between two hints of one rank: a job that waits must not bury what it has printed.
const HINT_INTERVAL: Duration = Duration::from_secs(10);

/// The exit code for a host that was lost: that of `ssh`.
const LOST_HOST: u8 = 255;

#[cfg(test)]
mod tests;
