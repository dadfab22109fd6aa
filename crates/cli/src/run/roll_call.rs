//! Roll-calls of the launcher: which are made, who has answered, and how often the user is told.
//!
//! No IO: frames go in by `handle_*`. One roll-call is under way at a time, for whoever wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use mizzen_proto::boot::Condition;
use mizzen_proto::rollcall::{Present, Report};

#[derive(Debug)]
pub(super) struct RollCalls {
    /// After how long a wait is worth one. `None`: only who asks is told.
    after: Option<Duration>,
    last: u32,
    under_way: Option<UnderWay>,
    /// When one is due, because somebody waits for long.
    due: Option<Instant>,
    said: Option<Said>,
}

#[derive(Debug)]
struct UnderWay {
    deadline: Instant,
    /// Hosts that have not said that they are done.
    awaited: BTreeSet<usize>,
    heard: Heard,
    /// Whether the user is told, because somebody waits for long.
    is_overdue: bool,
}

/// What was heard of each rank: its life, how it is, and what it answered.
pub(super) type Heard = BTreeMap<u32, (u32, Condition, Option<Present>)>;

/// The last report that the user was told.
#[derive(Debug)]
struct Said {
    at: Instant,
    /// How long there is no other.
    pause: Duration,
    report: Report,
}

/// A roll-call that is over.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) heard: Heard,
    pub(super) is_overdue: bool,
}

impl RollCalls {
    pub(super) fn new(after: Option<Duration>) -> Self {
        Self {
            after,
            last: 0,
            under_way: None,
            due: None,
            said: None,
        }
    }

    /// Begins one at these hosts: its number. None if one is under way.
    pub(super) fn begin(&mut self, hosts: BTreeSet<usize>, now: Instant) -> Option<u32> {
        if self.under_way.is_some() {
            return None;
        }
        self.last = self.last.wrapping_add(1);
        self.under_way = Some(UnderWay {
            deadline: now + PATIENCE,
            awaited: hosts,
            heard: BTreeMap::new(),
            is_overdue: false,
        });
        Some(self.last)
    }

    /// A process says that it waits for long. Unless the user was told just now why, one is due soon: others have begun to wait a
    /// little later, and note it once a second.
    pub(super) fn handle_overdue(&mut self, now: Instant) {
        let is_quiet = |said: &Said| now >= said.at + said.pause;
        if self.after.is_some() && self.said.as_ref().is_none_or(is_quiet) {
            self.due.get_or_insert(now + SETTLE);
        }
    }

    /// Whether one is to be begun now, to tell the user.
    pub(super) fn poll_due(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    /// The user is told what the one that is under way shows.
    pub(super) fn tell_user(&mut self) {
        if let Some(under_way) = &mut self.under_way {
            under_way.is_overdue = true;
        }
    }

    /// A host says how one of its ranks is. What it answered is foreign: what makes no sense is no answer.
    pub(super) fn handle_present(
        &mut self,
        call: u32,
        rank: u32,
        incarnation: u32,
        condition: Condition,
        present: Option<&[u8]>,
    ) {
        if let Some(under_way) = self.under_way.as_mut().filter(|_| call == self.last) {
            let present = present.and_then(|present| Present::decode(present).ok());
            let heard = (incarnation, condition, present);
            under_way.heard.insert(rank, heard);
        }
    }

    /// A host has told of all its ranks, or cannot.
    pub(super) fn handle_called(&mut self, host: usize, call: Option<u32>) {
        if let Some(under_way) = &mut self.under_way {
            if call.is_none_or(|call| call == self.last) {
                under_way.awaited.remove(&host);
            }
        }
    }

    /// The one that is over: when all have answered, or in time.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Over> {
        let is_over = |call: &mut UnderWay| call.awaited.is_empty() || now >= call.deadline;
        let UnderWay {
            heard, is_overdue, ..
        } = self.under_way.take_if(is_over)?;
        Some(Over { heard, is_overdue })
    }

    /// The user is told this. If it is what was told the last time, it is longer until the next.
    pub(super) fn note_said(&mut self, report: &Report, now: Instant) {
        let first = self.after.unwrap_or(LONGEST_PAUSE);
        let pause = match &self.said {
            Some(said) if said.report.is_like(report) => (said.pause * 2).min(LONGEST_PAUSE),
            _ => first,
        };
        self.said = Some(Said {
            at: now,
            pause,
            report: report.clone(),
        });
    }

    /// When to poll at the latest.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let under_way = self.under_way.as_ref().map(|call| call.deadline);
        under_way.into_iter().chain(self.due).min()
    }
}

/// How long after the first who waits for long the roll is called.
const SETTLE: Duration = Duration::from_millis(1200);
/// How long hosts have to answer; their processes have less.
const PATIENCE: Duration = Duration::from_secs(4);
/// The longest time between two reports of a hang that lasts.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use mizzen_proto::rollcall::Attendance;

    use super::*;

    const AFTER: Duration = Duration::from_secs(10);

    fn report(rank: u32) -> Report {
        let wait = Present::default();
        let mut all = [Attendance::new(rank, Condition::Sleeps, Some(wait))];
        all[0].present.waits.push(mizzen_proto::rollcall::Wait {
            kind: mizzen_proto::rollcall::Kind::Message,
            what: "for a message".to_owned(),
            whom: vec![],
            at: None,
            millis: 10_000,
            thread: "main".to_owned(),
            serves: false,
            operation: None,
        });
        Report::of(&all)
    }

    /// Whether somebody who waits for long at that time has the roll called, a little later.
    fn is_due(calls: &mut RollCalls, now: Instant) -> bool {
        calls.handle_overdue(now);
        assert!(!calls.poll_due(now));
        calls.poll_due(now + SETTLE)
    }

    #[test]
    fn a_hang_that_lasts_is_told_less_and_less_often_and_another_at_once() {
        let (mut calls, start) = (RollCalls::new(Some(AFTER)), Instant::now());
        assert!(is_due(&mut calls, start));
        calls.note_said(&report(0), start);
        assert!(!is_due(&mut calls, start + AFTER / 2));
        assert!(is_due(&mut calls, start + AFTER));
        calls.note_said(&report(0), start + AFTER);
        assert!(!is_due(&mut calls, start + AFTER * 2));
        assert!(is_due(&mut calls, start + AFTER * 3));
        calls.note_said(&report(1), start + AFTER * 3);
        assert!(is_due(&mut calls, start + AFTER * 4));
    }

    #[test]
    fn a_job_that_is_not_to_be_watched_is_not() {
        assert!(!is_due(&mut RollCalls::new(None), Instant::now()));
    }

    #[test]
    fn it_is_over_when_all_hosts_have_answered_or_in_time() {
        let (mut calls, now) = (RollCalls::new(None), Instant::now());
        let hosts = BTreeSet::from([0, 1, 2]);
        let call = calls.begin(hosts.clone(), now).unwrap();
        assert_eq!(calls.begin(hosts.clone(), now), None);
        calls.handle_present(call, 4, 0, Condition::Sleeps, Some(&[9, 9]));
        calls.handle_present(call + 1, 5, 0, Condition::Sleeps, None);
        calls.handle_called(0, Some(call));
        calls.handle_called(1, Some(call + 1));
        calls.handle_called(2, None);
        assert!(calls.poll(now).is_none());
        let over = calls.poll(now + PATIENCE).unwrap();
        assert_eq!(
            over.heard,
            BTreeMap::from([(4, (0, Condition::Sleeps, None))])
        );
        assert!(!over.is_overdue);
        let call = calls.begin(hosts, now).unwrap();
        calls.tell_user();
        (0..3).for_each(|host| calls.handle_called(host, Some(call)));
        assert!(calls.poll(now).unwrap().is_overdue);
    }
}
