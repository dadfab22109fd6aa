//! What waits for room at one peer: messages to its mailboxes over the shared lane, and over lanes of senders' own.
//!
//! | what | changed under |
//! | --- | --- |
//! | the backlog of a route, and the credits it holds back | the route's own lock |
//! | a sender's lane and its backlog, while the sender left it here | the lane's own lock |
//! | the lists of both, and the mark that there is something | the lock of the lists, inside of those above |
//!
//! While a backlog is not empty, it has all credits of its route: whoever posts finds none, and comes to wait behind it. How
//! all of it moves on is `moving_on.rs`.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mizzen_lane::{Call, Watch};

use super::backlog::{Backlog, Queued, Waiting};
use super::lane_out::LaneOut;
use super::mailbox_lane::MailboxLane;
use crate::lock::lock;
use crate::message::AnyTicket;
use crate::rank::MailboxId;

/// What a process knows of a mailbox of the peer to which it posts.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) mailbox: MailboxId,
    pub(crate) watch: Watch,
    pub(crate) credits: AtomicU32,
    pub(crate) closed: AtomicBool,
    /// The mailbox's own lane, if it is in this OS process: opened by the first post. It takes no credits, because it is bounded itself.
    pub(super) own: Option<OnceLock<Option<MailboxLane>>>,
    /// Messages that found no credits, or no room in the lane.
    pub(super) waiting: Mutex<RouteBacklog>,
}

impl Route {
    /// The route to a mailbox that grants so many messages.
    pub(super) fn new(mailbox: MailboxId, watch: Watch, credits: u32) -> Self {
        Self {
            mailbox,
            watch,
            credits: AtomicU32::new(credits),
            closed: AtomicBool::new(false),
            own: None,
            waiting: Mutex::default(),
        }
    }

    /// The same to a mailbox that has a lane of its own.
    pub(super) fn with_own_lane(self) -> Self {
        Self {
            own: Some(OnceLock::new()),
            ..self
        }
    }

    /// Takes a credit, if it takes any. `false`: there is none, or others wait already.
    #[inline]
    pub(crate) fn take_credit(&self) -> bool {
        if !self.takes_credits() {
            return self.credits.load(Ordering::Acquire) > 0;
        }
        let less = |now: u32| now.checked_sub(1);
        // Acquire pairs with the release in `add_credits`: what the receiver did before is done.
        self.credits
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, less)
            .is_ok()
    }

    /// How many messages went over the mailbox's own lane.
    pub(super) fn sent(&self) -> u64 {
        let lane = self.own.as_ref().and_then(|own| own.get()?.as_ref());
        lane.map_or(0, MailboxLane::sent)
    }

    /// How many credits a message has taken that was `paid` for.
    pub(crate) fn price(&self, paid: bool) -> u32 {
        u32::from(paid && self.takes_credits())
    }

    #[inline]
    fn takes_credits(&self) -> bool {
        self.own.is_none()
    }

    /// Credits come back: for what waits, or for anybody. Those who find some post at once, so what waits is not left alone
    /// meanwhile.
    pub(crate) fn add_credits(&self, credits: u32, window: u32) {
        let mut waiting = lock(&self.waiting);
        let Some(credits) = waiting.add_credits(credits, window) else {
            return;
        };
        // A peer that returns more than it got is broken; the window is never exceeded.
        let grown = |now: u32| Some(now.saturating_add(credits).min(window));
        let _ = self
            .credits
            .fetch_update(Ordering::Release, Ordering::Relaxed, grown);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.watch.call() == Call::Closed
    }
}

/// What waits at one link.
#[derive(Debug, Default)]
pub(super) struct Behind {
    pub(super) lists: Mutex<Lists>,
    /// Blocks of ours that were handed over with messages of which the peer will never hear, because it ended.
    pub(super) unheard: Mutex<Vec<AnyTicket>>,
}

#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) routes: Vec<Arc<Route>>,
    pub(super) lanes: Vec<Arc<LaneBehind>>,
}

/// What waits for a mailbox's credits, or for room in the shared lane.
#[derive(Debug, Default)]
pub(super) struct RouteBacklog {
    pub(super) backlog: Backlog<Queued<Waiting>>,
    /// Credits that only what waits here may use.
    pub(super) held: u32,
    /// How many of them are turns of operations.
    pub(super) turns: usize,
}

impl RouteBacklog {
    /// The receiver returned credits: for what waits here, or for anybody.
    fn add_credits(&mut self, credits: u32, window: u32) -> Option<u32> {
        if self.backlog.is_empty() {
            return Some(credits);
        }
        self.held = self.held.saturating_add(credits).min(window);
        None
    }
}

/// A sender's own lane, with what waits for room in it. The sender has left it here for whoever looks for messages.
#[derive(Debug)]
pub(crate) struct LaneBehind(pub(super) Mutex<LaneState>);

#[derive(Debug)]
pub(super) struct LaneState {
    /// `None`: the sender has it back.
    pub(super) lane: Option<LaneOut>,
    pub(super) backlog: Backlog<Waiting>,
    /// The sender does not come back: the lane is closed when nothing waits for it.
    pub(super) is_abandoned: bool,
}

impl Behind {
    /// How many messages wait that would go over the shared lane.
    pub(super) fn messages(&self) -> u64 {
        let routes = lock(&self.lists).routes.clone();
        let waiting = routes
            .iter()
            .map(|route| lock(&route.waiting).backlog.len());
        waiting.sum::<usize>() as u64
    }
}

impl Lists {
    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.lanes.is_empty()
    }
}
