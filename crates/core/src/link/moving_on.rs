//! Posting what found no room before.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use mizzen_lane::Refused;

use super::backlog::{Backlog, Queued, Waiting};
use super::behind::{LaneBehind, LaneState, Route, RouteBacklog};
use super::lane_out::{LaneOut, try_send};
use super::memory::MemoryLink;
use crate::bells::REACTOR_BELL;
use crate::crash;
use crate::lock::{lock, try_lock};
use crate::memory::Arena;
use crate::message::AnyTicket;
use crate::message::Encoded;

impl MemoryLink {
    /// Sends what found no room before, as far as there is some now. Called by everybody who looks for messages.
    #[inline]
    pub(crate) fn send_unsent(&self) {
        if self.has_unsent() {
            self.try_send_unsent();
        }
    }

    #[cold]
    fn try_send_unsent(&self) {
        if self.has_unsent_notices() {
            self.send_notices();
        }
        if self.has_behind() {
            self.move_on();
        }
    }

    /// Keeps a message for a mailbox until it can be posted. `refund` credits were taken for it. `None`: too much waits there
    /// already. Otherwise, whether nothing waited there before.
    pub(crate) fn leave_behind(
        &self,
        route: &Arc<Route>,
        message: &impl Encoded,
        refund: u32,
    ) -> Option<bool> {
        let mut waiting = lock(&route.waiting);
        let flags = message.flags();
        let is_early = flags.is_ticket() && waiting.turns > 0;
        if is_early || !Waiting::may_wait(flags) || !waiting.backlog.has_room(message.len()) {
            return None;
        }
        let entry = Queued::Message(Waiting::of(message));
        self.counts.left_behind.add(1);
        Some(self.queue_up(route, &mut waiting, (message.len(), entry), refund))
    }

    /// Adds an entry of so many bytes to what waits for a mailbox: whether nothing did before.
    pub(super) fn queue_up(
        &self,
        route: &Arc<Route>,
        waiting: &mut RouteBacklog,
        (len, entry): (usize, Queued<Waiting>),
        refund: u32,
    ) -> bool {
        let is_first = waiting.backlog.is_empty();
        if is_first {
            // Acquire pairs with the release of who returned them: what the receiver did before is done.
            waiting.held = route.credits.swap(0, Ordering::Acquire);
        }
        waiting.held += refund;
        waiting.backlog.push(len, entry);
        if is_first {
            let mut lists = lock(&self.behind.lists);
            lists.routes.push(Arc::clone(route));
            self.mark_behind(true);
        }
        is_first
    }

    /// Whether something waits for a mailbox: what is posted to it then waits behind it.
    pub(crate) fn is_behind(&self, route: &Route) -> bool {
        self.has_behind() && !lock(&route.waiting).backlog.is_empty()
    }

    /// A task waits until less waits for a mailbox. `false`: it need not.
    pub(crate) fn await_room(&self, route: &Route, waker: &Waker) -> bool {
        let is_over = self.fate.is_ended() || route.is_closed();
        !is_over && lock(&route.waiting).backlog.await_less(waker)
    }

    /// How many messages to the peer wait for room.
    pub(crate) fn waiting(&self) -> u64 {
        let lanes = if self.has_behind() {
            lock(&self.behind.lists).lanes.clone()
        } else {
            return 0;
        };
        let waiting = lanes.iter().map(|lane| lock(&lane.0).backlog.len());
        self.behind.messages() + waiting.sum::<usize>() as u64
    }

    /// Posts what waits, as far as there is room. Whether anything went.
    pub(crate) fn move_on(&self) -> bool {
        let (routes, lanes) = {
            let lists = lock(&self.behind.lists);
            (lists.routes.clone(), lists.lanes.clone())
        };
        let mut moved = false;
        for route in routes {
            moved |= self.move_route_on(&route);
        }
        for lane in lanes {
            // Its sender does the same just now.
            if let Some(state) = try_lock(&lane.0) {
                moved |= self.move_lane_on(&lane, state);
            }
        }
        moved
    }

    /// A message that waited will never go.
    fn note_unheard(&self, message: Option<Waiting>) {
        // There may be a million of them that hand over nothing, and others wait to be told of the peer's end.
        if let Some(message) = message.filter(Waiting::hands_over) {
            lock(&self.behind.unheard).extend(message.tickets());
        }
    }

    /// Takes back what was handed over with messages that never went to a peer that ended. What is not handed over yet is asked
    /// for by whoever does so.
    pub(crate) fn take_back_unheard(&self, arena: &Arena) {
        if self.fate.is_ended() {
            lock(&self.behind.unheard).retain(|ticket| match ticket {
                AnyTicket::Own(ticket) => !arena.take_back(ticket.number, ticket.loan),
                AnyTicket::Handed(handed) => {
                    self.give_back_handed(*handed);
                    false
                }
            });
        }
    }

    pub(super) fn move_route_on(&self, route: &Arc<Route>) -> bool {
        let mut waiting = lock(&route.waiting);
        let before = waiting.backlog.is_empty();
        let mut moved = false;
        let (is_ended, is_closed) = (self.fate.is_ended(), route.is_closed());
        // Who has a turn takes it itself.
        while let Some(Queued::Message(message)) = waiting.backlog.front() {
            // What nobody will read is lost, as it would be at the receiver; but that gives back what it was lent.
            let is_lost = is_ended || is_closed && !message.hands_over();
            if !is_lost {
                if waiting.held == 0 && !is_closed {
                    break;
                }
                match self.attempt(route, message) {
                    Ok(()) => (),
                    Err(Refused::Full) => break,
                    Err(_) => {
                        self.cut_off();
                        break;
                    }
                }
                waiting.held = waiting.held.saturating_sub(route.price(true));
            }
            moved = true;
            let gone = waiting.backlog.pop();
            if let (true, Some(Queued::Message(gone))) = (is_lost, gone) {
                self.note_unheard(Some(gone));
            }
        }
        if !before {
            self.let_go_if_empty(route, &mut waiting);
        }
        let posters = waiting.backlog.take_posters();
        drop(waiting);
        posters.into_iter().for_each(Waker::wake);
        moved
    }

    /// If nothing waits for a mailbox any more, everybody may have its credits.
    pub(super) fn let_go_if_empty(&self, route: &Arc<Route>, waiting: &mut RouteBacklog) {
        if waiting.backlog.is_empty() {
            let held = core::mem::take(&mut waiting.held);
            route.credits.fetch_add(held, Ordering::Release);
            let mut lists = lock(&self.behind.lists);
            lists.routes.retain(|other| !Arc::ptr_eq(other, route));
            self.mark_behind(!lists.is_empty());
        }
    }

    /// A place for a sender's lane.
    pub(crate) fn empty_lane(&self) -> Arc<LaneBehind> {
        Arc::new(LaneBehind(Mutex::new(LaneState {
            lane: None,
            backlog: Backlog::default(),
            is_abandoned: false,
        })))
    }

    /// Takes over a sender's lane, which is full.
    pub(crate) fn leave_lane(&self, place: &Arc<LaneBehind>, lane: LaneOut) {
        lock(&place.0).lane = Some(lane);
        let mut lists = lock(&self.behind.lists);
        lists.lanes.push(Arc::clone(place));
        self.mark_behind(true);
    }

    /// Keeps a message behind those that wait for room in a sender's lane. `false`: too much waits there already.
    pub(crate) fn leave_in_lane(&self, lane: &LaneBehind, message: &impl Encoded) -> bool {
        let mut state = lock(&lane.0);
        let has_room = state.backlog.has_room(message.len());
        if has_room {
            state.backlog.push(message.len(), Waiting::of(message));
            self.counts.left_behind.add(1);
        }
        has_room
    }

    /// Gives a sender its lane back, if nothing waits for it any more.
    pub(crate) fn take_lane(&self, lane: &Arc<LaneBehind>) -> Option<LaneOut> {
        self.move_lane_on(lane, lock(&lane.0));
        let mut state = lock(&lane.0);
        if !state.backlog.is_empty() {
            return None;
        }
        let taken = state.lane.take();
        self.forget_lane(lane);
        taken
    }

    /// The sender of a lane is gone; what it posted goes on.
    pub(crate) fn abandon_lane(&self, lane: &Arc<LaneBehind>) {
        let mut state = lock(&lane.0);
        state.is_abandoned = true;
        self.move_lane_on(lane, state);
    }

    /// A task waits until less waits for room in a sender's lane. `false`: it need not.
    pub(crate) fn await_lane(&self, lane: &LaneBehind, waker: &Waker) -> bool {
        !self.fate.is_ended() && lock(&lane.0).backlog.await_less(waker)
    }

    fn move_lane_on(&self, lane: &Arc<LaneBehind>, mut state: MutexGuard<'_, LaneState>) -> bool {
        let mut moved = false;
        let LaneState {
            lane: Some(out),
            backlog,
            is_abandoned,
        } = &mut *state
        else {
            return false;
        };
        let is_ended = self.fate.is_ended();
        let is_lost = is_ended || out.is_closed();
        let mut will_be_called = false;
        while let Some(message) = backlog.front() {
            if !is_ended && is_lost && message.hands_over() {
                // The receiver gives back what it finds for a mailbox that is closed.
                let route = Route::new(out.mailbox, out.watch.clone(), 0);
                match self.attempt(&route, message) {
                    Ok(()) => (),
                    Err(Refused::Full) => break,
                    Err(_) => self.cut_off(),
                }
            } else if !is_lost {
                match try_send(&mut out.open.producer, message) {
                    Ok(()) => self.call(&out.watch),
                    Err(Refused::Full) if !will_be_called => {
                        // The receiver calls the reactor when it has made room, unless it just did so.
                        out.open.producer.ring().room().wait(REACTOR_BELL);
                        will_be_called = true;
                        continue;
                    }
                    Err(Refused::Full) => break,
                    Err(_) => {
                        self.cut_off();
                        break;
                    }
                }
            }
            moved = true;
            let gone = backlog.pop();
            if is_ended {
                self.note_unheard(gone);
            }
        }
        let posters = backlog.take_posters();
        if backlog.is_empty() {
            out.open.producer.ring().room().stop_waiting();
        }
        if backlog.is_empty() && *is_abandoned {
            if let Some(mut out) = state.lane.take() {
                self.close_lane(&mut out);
            }
            self.forget_lane(lane);
        }
        drop(state);
        posters.into_iter().for_each(Waker::wake);
        moved
    }

    /// A sender's lane is dropped: its receiver is told.
    pub(crate) fn close_lane(&self, lane: &mut LaneOut) {
        crash::point("sender.drop");
        // If the lane is full, its receiver learns of the end when it has caught up.
        if lane.open.producer.try_close().is_ok() {
            self.call(&lane.watch);
        }
    }

    fn forget_lane(&self, lane: &Arc<LaneBehind>) {
        let mut lists = lock(&self.behind.lists);
        lists.lanes.retain(|other| !Arc::ptr_eq(other, lane));
        self.mark_behind(!lists.is_empty());
    }
}
