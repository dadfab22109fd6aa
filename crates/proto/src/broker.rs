//! Introductions: how the processes of a job come to know each other. A machine, driven by the agent of a host.
//!
//! Two processes of this host are introduced: each gets one end of a new socket. Where a process of another host listens, somebody
//! else has to say.
//!
//! When two ask for each other at the same time they are introduced once: the second request is assumed to have crossed the
//! answer to the first. Any other request between two that know each other connects them anew, so that every request has an
//! answer even if the agent does not yet know what the one that asks has seen.
//!
//! | a rank of this host is | moves on when |
//! | --- | --- |
//! | expected | it is started |
//! | running | it leaves or ends |
//! | left | |
//! | dead | it is started again, if the job does that |

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::boot::{OnDeath, ToProcess, Unreachable};

/// Who waits for whom, and who knows whom.
#[derive(Debug)]
pub struct Broker {
    size: u32,
    on_death: OnDeath,
    /// The ranks of this host.
    here: BTreeMap<u32, Standing>,
    /// Pairs of living processes of this host, the smaller rank first; with the one that was not asked, as long as a
    /// request of its own may be crossing the introduction.
    introduced: BTreeMap<(u32, u32), Option<u32>>,
    /// By the rank that is waited for: a process of another host, or one of ours that is started later or again.
    waiting: BTreeMap<u32, BTreeSet<u32>>,
    /// Who asked for whom when there was no descriptor left.
    postponed: BTreeSet<(u32, u32)>,
    /// No more restarts: the job is ending.
    ending: bool,
    actions: VecDeque<Action>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Expected,
    Running,
    Left,
    Dead,
}

/// How a process of this host departed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// It left the job, or ended with exit code 0.
    Left,
    /// It failed.
    Died,
}

/// What whoever drives the broker has to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Give these two the two ends of a new socket. What prevents it is told by
    /// [`handle_no_descriptor`](Broker::handle_no_descriptor) or [`handle_gone`](Broker::handle_gone).
    Introduce {
        /// Who asked.
        rank: u32,
        /// For whom.
        target: u32,
    },
    /// Send a packet to a process of this host.
    Post {
        /// To whom.
        rank: u32,
        /// What.
        packet: ToProcess,
    },
    /// Ask where this process of another host listens.
    Locate {
        /// Whom to look for.
        rank: u32,
    },
}

impl Broker {
    /// The broker of a host with these ranks, none of which was started yet.
    #[must_use]
    pub fn new(size: u32, on_death: OnDeath, here: &[u32]) -> Self {
        Self {
            size,
            on_death,
            here: here
                .iter()
                .map(|rank| (*rank, Standing::Expected))
                .collect(),
            introduced: BTreeMap::new(),
            waiting: BTreeMap::new(),
            postponed: BTreeSet::new(),
            ending: false,
            actions: VecDeque::new(),
        }
    }

    /// A process of ours wants to be connected to `target`.
    pub fn handle_reach(&mut self, rank: u32, target: u32) {
        if target >= self.size || target == rank {
            return self.refuse(rank, target, Unreachable::NoSuchRank);
        }
        match self.here.get(&target) {
            Some(Standing::Running) => self.handle_reach_here(rank, target),
            Some(Standing::Left) => self.refuse(rank, target, Unreachable::Left),
            Some(Standing::Dead) if !self.comes_back() => {
                self.refuse(rank, target, Unreachable::Dead);
            }
            Some(Standing::Expected | Standing::Dead) => {
                self.waiting.entry(target).or_default().insert(rank);
            }
            None => {
                let waiting = self.waiting.entry(target).or_default();
                waiting.insert(rank);
                if waiting.len() == 1 {
                    self.actions.push_back(Action::Locate { rank: target });
                }
            }
        }
    }

    /// A process of another host listens there. `current` is the life of it that the log has: an answer about an earlier one is older
    /// than what some of those who wait have heard, so it is asked for again.
    pub fn handle_located(&mut self, rank: u32, incarnation: u32, locator: &str, current: u32) {
        if incarnation < current && self.waiting.contains_key(&rank) {
            return self.actions.push_back(Action::Locate { rank });
        }
        for waiting in self.waiting.remove(&rank).unwrap_or_default() {
            let packet = ToProcess::Address {
                rank,
                incarnation,
                locator: locator.to_owned(),
            };
            let rank = waiting;
            self.actions.push_back(Action::Post { rank, packet });
        }
    }

    /// A process cannot be reached.
    pub fn handle_unreachable(&mut self, rank: u32, reason: Unreachable) {
        for waiting in self.waiting.remove(&rank).unwrap_or_default() {
            self.refuse(waiting, rank, reason);
        }
    }

    /// A process of ours ended or left: it knows nobody any more.
    pub fn handle_exit(&mut self, rank: u32, how: Departure) {
        let Some(standing) = self.here.get_mut(&rank) else {
            return;
        };
        // Who has left ends later, whichever way.
        let how = match *standing {
            Standing::Left => Departure::Left,
            _ => how,
        };
        *standing = match how {
            Departure::Left => Standing::Left,
            Departure::Died => Standing::Dead,
        };
        self.introduced.retain(|(a, b), _| *a != rank && *b != rank);
        self.waiting.retain(|_, waiting| {
            waiting.remove(&rank);
            !waiting.is_empty()
        });
        self.postponed.retain(|(asking, _)| *asking != rank);
        match how {
            Departure::Left => self.handle_unreachable(rank, Unreachable::Left),
            Departure::Died if !self.comes_back() => {
                self.handle_unreachable(rank, Unreachable::Dead);
            }
            Departure::Died => {}
        }
    }

    /// A process of ours was started, perhaps again: those who waited meet it.
    pub fn handle_started(&mut self, rank: u32) {
        let Some(standing) = self.here.get_mut(&rank) else {
            return;
        };
        *standing = Standing::Running;
        for waiting in self.waiting.remove(&rank).unwrap_or_default() {
            self.introduce(waiting, rank);
        }
    }

    /// There was no descriptor left for an introduction. Those under way to other processes come back soon.
    pub fn handle_no_descriptor(&mut self, rank: u32, target: u32) {
        self.introduced.remove(&pair(rank, target));
        self.postponed.insert((rank, target));
    }

    /// One of two that were to be introduced has ended, and [`handle_exit`](Self::handle_exit) follows: only then is known whether it
    /// comes back.
    pub fn handle_gone(&mut self, rank: u32, target: u32) {
        self.introduced.remove(&pair(rank, target));
        self.waiting.entry(target).or_default().insert(rank);
    }

    /// Tries again what there was no descriptor for.
    pub fn retry(&mut self) {
        for (rank, target) in std::mem::take(&mut self.postponed) {
            self.handle_reach(rank, target);
        }
    }

    /// Nobody is started again from now on.
    pub fn give_up(&mut self) {
        self.ending = true;
        let is_over = |rank: &u32| {
            let standing = self.here.get(rank);
            matches!(standing, Some(Standing::Dead | Standing::Expected))
        };
        let waited_for: Vec<u32> = self.waiting.keys().copied().filter(is_over).collect();
        for rank in waited_for {
            self.handle_unreachable(rank, Unreachable::Dead);
        }
    }

    /// What to do next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether there is something to [`retry`](Self::retry), soon.
    #[must_use]
    pub fn wants_retry(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// How many entries its tables have: at most one in each for each rank of this host and each rank it may ask for.
    #[must_use]
    pub fn entries(&self) -> usize {
        let waiting: usize = self.waiting.values().map(BTreeSet::len).sum();
        self.introduced.len() + waiting + self.postponed.len()
    }

    fn handle_reach_here(&mut self, rank: u32, target: u32) {
        match self.introduced.get_mut(&pair(rank, target)) {
            Some(crossing) if *crossing == Some(rank) => {
                *crossing = None;
                // Should the other be ending just now, this request still has an answer.
                self.waiting.entry(target).or_default().insert(rank);
            }
            _ => self.introduce(rank, target),
        }
    }

    fn introduce(&mut self, rank: u32, target: u32) {
        self.introduced.insert(pair(rank, target), Some(target));
        self.actions.push_back(Action::Introduce { rank, target });
    }

    fn refuse(&mut self, rank: u32, target: u32, reason: Unreachable) {
        let packet = ToProcess::Unreachable {
            rank: target,
            reason,
        };
        self.actions.push_back(Action::Post { rank, packet });
    }

    /// Whether a rank that failed comes back.
    fn comes_back(&self) -> bool {
        self.on_death == OnDeath::Restart && !self.ending
    }
}

fn pair(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks 0 to 3 run here, 4 and 5 elsewhere.
    fn broker(on_death: OnDeath) -> Broker {
        let mut broker = Broker::new(6, on_death, &[0, 1, 2, 3]);
        (0..4).for_each(|rank| broker.handle_started(rank));
        assert_eq!(done(&mut broker), []);
        broker
    }

    fn done(broker: &mut Broker) -> Vec<Action> {
        std::iter::from_fn(|| broker.poll_action()).collect()
    }

    fn introduce(rank: u32, target: u32) -> Action {
        Action::Introduce { rank, target }
    }

    fn refused(rank: u32, target: u32, reason: Unreachable) -> Action {
        let packet = ToProcess::Unreachable {
            rank: target,
            reason,
        };
        Action::Post { rank, packet }
    }

    #[test]
    fn two_that_ask_for_each_other_at_once_are_introduced_once() {
        let mut broker = broker(OnDeath::Stop);
        broker.handle_reach(0, 1);
        broker.handle_reach(1, 0);
        assert_eq!(done(&mut broker), [introduce(0, 1)]);
        // The second request of the same side is a new one.
        broker.handle_reach(1, 0);
        assert_eq!(done(&mut broker), [introduce(1, 0)]);
    }

    #[test]
    fn a_crossing_request_is_answered_even_if_the_other_ends() {
        let mut broker = broker(OnDeath::Continue);
        broker.handle_reach(0, 1);
        broker.handle_reach(1, 0);
        broker.handle_exit(0, Departure::Died);
        let refusal = refused(1, 0, Unreachable::Dead);
        assert_eq!(done(&mut broker), [introduce(0, 1), refusal]);
    }

    #[test]
    fn who_is_not_started_yet_is_waited_for() {
        let mut broker = Broker::new(2, OnDeath::Stop, &[0, 1]);
        broker.handle_started(0);
        broker.handle_reach(0, 1);
        assert_eq!(done(&mut broker), []);
        broker.handle_started(1);
        assert_eq!(done(&mut broker), [introduce(0, 1)]);
    }

    #[test]
    fn the_dead_are_waited_for_only_if_they_come_back() {
        for (on_death, waits) in [(OnDeath::Continue, false), (OnDeath::Restart, true)] {
            let mut broker = broker(on_death);
            broker.handle_exit(2, Departure::Died);
            broker.handle_reach(0, 2);
            assert_eq!(done(&mut broker).is_empty(), waits);
            broker.handle_started(2);
            assert_eq!(done(&mut broker).len(), usize::from(waits));
        }
    }

    #[test]
    fn nobody_waits_for_the_dead_of_a_job_that_ends() {
        let mut broker = broker(OnDeath::Restart);
        broker.handle_exit(2, Departure::Died);
        broker.handle_reach(0, 2);
        broker.give_up();
        assert_eq!(done(&mut broker), [refused(0, 2, Unreachable::Dead)]);
    }

    #[test]
    fn who_left_has_left_however_it_ends() {
        let mut broker = broker(OnDeath::Restart);
        broker.handle_exit(2, Departure::Left);
        broker.handle_exit(2, Departure::Died);
        broker.handle_reach(0, 2);
        assert_eq!(done(&mut broker), [refused(0, 2, Unreachable::Left)]);
    }

    #[test]
    fn another_host_is_asked_once_for_all_who_wait() {
        let mut broker = broker(OnDeath::Stop);
        broker.handle_reach(0, 4);
        broker.handle_reach(1, 4);
        assert_eq!(done(&mut broker), [Action::Locate { rank: 4 }]);
        broker.handle_located(4, 2, "x", 2);
        assert_eq!(done(&mut broker).len(), 2);
    }

    #[test]
    fn an_answer_about_a_life_that_has_ended_is_asked_for_again() {
        let mut broker = broker(OnDeath::Restart);
        broker.handle_reach(0, 4);
        assert_eq!(done(&mut broker), [Action::Locate { rank: 4 }]);
        // The log has the next life, and somebody who has heard of it asks.
        broker.handle_reach(1, 4);
        broker.handle_located(4, 0, "x", 1);
        assert_eq!(done(&mut broker), [Action::Locate { rank: 4 }]);
        broker.handle_located(4, 1, "y", 1);
        assert_eq!(done(&mut broker).len(), 2);
    }

    #[test]
    fn an_introduction_without_a_descriptor_is_tried_again() {
        let mut broker = broker(OnDeath::Stop);
        broker.handle_reach(0, 1);
        assert_eq!(done(&mut broker), [introduce(0, 1)]);
        broker.handle_no_descriptor(0, 1);
        assert!(broker.wants_retry());
        // The other's own request meanwhile is not taken for one that crossed.
        broker.handle_reach(1, 0);
        assert_eq!(done(&mut broker), [introduce(1, 0)]);
        broker.retry();
        assert!(!broker.wants_retry());
    }

    #[test]
    fn who_ended_unseen_is_told_of_when_it_is_known_whether_it_comes_back() {
        for (on_death, answer) in [
            (OnDeath::Continue, Some(refused(0, 1, Unreachable::Dead))),
            (OnDeath::Restart, None),
        ] {
            let mut broker = broker(on_death);
            broker.handle_reach(0, 1);
            assert_eq!(done(&mut broker), [introduce(0, 1)]);
            broker.handle_gone(0, 1);
            assert_eq!(done(&mut broker), []);
            broker.handle_exit(1, Departure::Died);
            assert_eq!(done(&mut broker), Vec::from_iter(answer));
            broker.handle_started(1);
            assert_eq!(done(&mut broker).is_empty(), on_death == OnDeath::Continue);
        }
    }

    #[test]
    fn what_the_dead_asked_for_is_not_tried_again() {
        let mut broker = broker(OnDeath::Restart);
        broker.handle_reach(0, 1);
        assert_eq!(done(&mut broker), [introduce(0, 1)]);
        broker.handle_no_descriptor(0, 1);
        broker.handle_exit(0, Departure::Died);
        broker.handle_started(0);
        broker.retry();
        assert_eq!(done(&mut broker), []);
    }

    #[test]
    fn strange_ranks_are_refused() {
        let mut broker = broker(OnDeath::Stop);
        broker.handle_reach(0, 6);
        broker.handle_reach(0, 0);
        let refusals = [6, 0].map(|target| refused(0, target, Unreachable::NoSuchRank));
        assert_eq!(done(&mut broker), refusals);
    }
}
