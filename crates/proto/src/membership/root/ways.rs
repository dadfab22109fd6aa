//! How frames get to agents, and how agents are looked for.

use super::{Action, Root};
use crate::membership::{FromRoot, HostId, Order, PROBERS, Pace};
use crate::time::Time;

impl Root {
    /// Asks others to look for an agent, not more often than it takes.
    pub(super) fn look_for(&mut self, host: HostId, now: Time) {
        let pace = self.pace;
        let Some(watch) = self.watches.get_mut(&host) else {
            return;
        };
        if watch.asked.is_some_and(|asked| now < asked + pace.rehome) {
            return;
        }
        watch.asked = Some(now);
        let agent = watch.agent;
        let locator = self
            .members
            .host(host)
            .map_or("", |host| &host.locator)
            .to_owned();
        let others: Vec<HostId> = self.members.agents().map(|agent| agent.host).collect();
        // Those after it, each time others, so that everybody is asked in time.
        let shift = (watch_turn(now, pace) as usize).wrapping_mul(PROBERS);
        let after = others.partition_point(|other| *other <= host);
        let count = others.len();
        let asked = (0..count)
            .map(|i| others[(after + shift + i) % count])
            .filter(|other| *other != host)
            .take(PROBERS);
        for other in asked.collect::<Vec<_>>() {
            let locator = locator.clone();
            self.send(other, Order::Look { agent, locator }, now);
        }
    }

    /// Sends to an agent, also by way of who passed its words on lately.
    pub(super) fn send(&mut self, host: HostId, said: Order, now: Time) {
        let Some(watch) = self.watches.get(&host) else {
            return;
        };
        let epoch = self.members.epoch();
        let to = watch.agent;
        let passer = watch.passer(&self.pace, now);
        let passer = passer
            .and_then(|host| self.watches.get(&host))
            .map(|watch| watch.agent);
        let frame = FromRoot { to, epoch, said };
        if let Some(passer) = passer.filter(|_| !matches!(frame.said, Order::Look { .. })) {
            let said = Order::Pass(Box::new(frame.clone()));
            let frame = FromRoot {
                to: passer,
                epoch,
                said,
            };
            self.actions.push_back(Action::Send(passer.host, frame));
        }
        self.actions.push_back(Action::Send(host, frame));
    }
}

/// A number that changes with every time an agent can be looked for.
fn watch_turn(now: Time, pace: Pace) -> u64 {
    u64::try_from(u128::from(now.0) / pace.rehome.as_nanos().max(1)).unwrap_or(0)
}
