//! What reports and losses mean: entries of the log, and what follows by the job's policy.

use super::{Action, Root};
use crate::boot::{Death, OnDeath};
use crate::id::{Incarnation, ProcessId};
use crate::membership::{
    AgentId, Change, Ending, Entry, HostEnd, HostId, MAX_UNACKNOWLEDGED, Order, Report,
};
use crate::time::Time;

impl Root {
    pub(super) fn take(&mut self, agent: AgentId, number: u64, report: Report, now: Time) {
        let Some(watch) = self.watches.get_mut(&agent.host) else {
            return;
        };
        if watch.reports.and_then(|taken| taken.checked_add(1)) != Some(number) {
            return;
        }
        watch.reports = Some(number);
        let owns = |process: ProcessId| {
            let state = self.members.state(process.rank);
            state.is_some_and(|state| state.host == agent.host)
        };
        match report {
            Report::Started { process, pid } if owns(process) => {
                self.actions.push_back(Action::Started { process, pid });
            }
            Report::Left { process } if owns(process) => {
                self.order(Entry::Left { process }, now);
            }
            // Only the membership says that a host is lost.
            Report::Ended { process, how } if owns(process) && how != Death::HostLost => {
                if let Some(changes) = self.order(Entry::Ended { process, how }, now) {
                    self.follow(&changes, None, now);
                }
            }
            // What it was never told to start, because it came when the job ended, ends with it.
            Report::Bye if self.members.ending().is_some() => {
                self.end_host(agent, HostEnd::Left, now);
                // It waits for nothing else.
                self.dismiss(agent);
                return;
            }
            _ => {}
        }
        if number % ACKNOWLEDGED_AT_ONCE == 0 {
            self.acknowledge(agent.host, now);
        }
    }

    /// Acknowledges reports before the next beat comes: the latest one is answered again, which renews nothing.
    fn acknowledge(&mut self, host: HostId, now: Time) {
        let Some(watch) = self.watches.get(&host) else {
            return;
        };
        let grant = Order::Grant {
            number: watch.beat,
            age: now.since(watch.heard),
            reports: watch.reports.unwrap_or(0),
        };
        self.send(host, grant, now);
    }

    pub(super) fn end_host(&mut self, agent: AgentId, how: HostEnd, now: Time) {
        let Some(changes) = self.order(Entry::HostEnded { agent, how }, now) else {
            return;
        };
        self.watches.remove(&agent.host);
        let lost = (how != HostEnd::Left).then_some(Ending::Host {
            host: agent.host,
            how,
        });
        self.follow(&changes, lost, now);
        self.trim();
    }

    /// Decides what deaths mean to the job. `lost`: they are those of a host.
    fn follow(&mut self, changes: &[Change], lost: Option<Ending>, now: Time) {
        let goes_on = self.policy.on_death == OnDeath::Continue && !self.members.is_interrupted();
        if let Some(ending) = lost.filter(|_| !goes_on && !changes.is_empty()) {
            self.order(Entry::JobEnds(ending), now);
        }
        for change in changes {
            let Change::Ended { process, how } = *change else {
                continue;
            };
            if how == Death::Exit(0) || how == Death::HostLost {
                continue;
            }
            let restarts = self.policy.on_death == OnDeath::Restart;
            if goes_on || (restarts && self.restart(process, now)) {
                continue;
            }
            self.order(Entry::JobEnds(Ending::Process { process, how }), now);
        }
        if self.members.is_over() {
            self.order(Entry::JobEnds(Ending::Done), now);
        }
    }

    fn restart(&mut self, process: ProcessId, now: Time) -> bool {
        let Some(state) = self.members.state(process.rank) else {
            return false;
        };
        let next = process.incarnation.0.checked_add(1).map(Incarnation);
        let Some(next) = next.filter(|_| self.members.restarts() < self.policy.max_restarts) else {
            return false;
        };
        let entry = Entry::Restarted {
            process: ProcessId::new(process.rank, next),
            host: state.host,
        };
        self.order(entry, now).is_some()
    }
}

/// An agent may have [`MAX_UNACKNOWLEDGED`] reports under way: with so many it is told before it has to wait.
const ACKNOWLEDGED_AT_ONCE: u64 = MAX_UNACKNOWLEDGED as u64 / 4;
