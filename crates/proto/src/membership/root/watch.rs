//! What the root remembers of one agent that is here. None of it is in the log.

use std::time::Duration;

use crate::membership::{AgentId, Epoch, HostId, Pace};
use crate::time::Time;

/// One life of one agent, as the root sees it.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) agent: AgentId,
    /// The hello that waits for its welcome.
    pub(super) hello: Option<u64>,
    /// Whether it was welcomed.
    pub(super) is_welcome: bool,
    /// The latest beat: older ones come late, and renew nothing.
    pub(super) beat: u64,
    /// When it came: the silence since then makes suspicious.
    pub(super) heard: Time,
    /// When a beat was answered last: the agent ends its processes within a lease from then, if it hears nothing more.
    pub(super) granted: Time,
    /// By how much its clock was late.
    pub(super) late: Duration,
    /// The epoch that it has.
    pub(super) applied: Epoch,
    /// The epoch that was sent to it when its latest beat came.
    pub(super) told: Epoch,
    /// How many of its reports were taken; a root that takes over learns it from a beat.
    pub(super) reports: Option<u64>,
    /// Who passed on its latest word that came so, and when.
    pub(super) via: Option<(HostId, Time)>,
    /// When others were asked last to look for it.
    pub(super) asked: Option<Time>,
}

impl Watch {
    pub(super) fn new(agent: AgentId, now: Time) -> Self {
        Self {
            agent,
            hello: None,
            is_welcome: false,
            beat: 0,
            heard: now,
            granted: now,
            late: Duration::ZERO,
            applied: Epoch::default(),
            told: Epoch::default(),
            reports: None,
            via: None,
            asked: None,
        }
    }

    /// When its silence is a verdict. Never sooner than it has ended its processes, whatever was late.
    pub(super) fn verdict_at(&self, pace: &Pace) -> Time {
        self.granted + pace.verdict()
    }

    /// When others are asked to look for it. Who says that it is starved gets twice the time.
    pub(super) fn ask_at(&self, pace: &Pace) -> Time {
        let patience = if self.late > pace.late() { 2 } else { 1 };
        let first = self.heard + pace.suspect * patience;
        self.asked
            .map_or(first, |asked| first.max(asked + pace.rehome))
    }

    /// Who passes frames on to it, if somebody did lately.
    pub(super) fn passer(&self, pace: &Pace, now: Time) -> Option<HostId> {
        let (host, when) = self.via?;
        (now.since(when) < pace.suspect).then_some(host)
    }
}
