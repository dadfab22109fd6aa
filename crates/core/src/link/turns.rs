//! Operations that wait for a mailbox among the messages that do.
//!
//! An operation keeps its message where it is, and has a turn in the route's backlog instead: what is posted after it waits
//! behind it. Nobody moves a turn on but its operation, which looks whether it is the first.

use std::sync::Arc;

use super::backlog::{Queued, Turn};
use super::behind::Route;
use super::memory::MemoryLink;
use crate::lock::lock;

impl MemoryLink {
    /// Takes a turn behind all that waits for a mailbox now. The caller sees to it that somebody moves its operation on.
    pub(crate) fn take_turn(&self, route: &Arc<Route>) -> Turn {
        let turn = Turn::new();
        let entry = Queued::Turn(turn.clone());
        let mut waiting = lock(&route.waiting);
        waiting.turns += 1;
        self.queue_up(route, &mut waiting, (0, entry), 0);
        turn
    }

    /// Whether an operation waits for its turn at a mailbox. What is long takes no memory then, of which the operation may need
    /// some before anybody can read what comes after it.
    pub(crate) fn has_turns(&self, route: &Route) -> bool {
        self.has_behind() && lock(&route.waiting).turns > 0
    }

    /// Takes a credit for the message whose turn it is. `false`: it is not the first, or there is none.
    pub(crate) fn pay_in_turn(&self, route: &Route, turn: &Turn) -> bool {
        let mut waiting = lock(&route.waiting);
        let is_first = waiting.backlog.front().is_some_and(|entry| entry.is(turn));
        let pays = is_first && waiting.held > 0;
        waiting.held -= route.price(pays);
        pays
    }

    /// The credit of a message that found no room.
    pub(crate) fn unpay_in_turn(&self, route: &Route) {
        lock(&route.waiting).held += route.price(true);
    }

    /// The message has gone, or will not: those behind it move on.
    pub(crate) fn end_turn(&self, route: &Arc<Route>, turn: &Turn) {
        let mut waiting = lock(&route.waiting);
        if waiting.backlog.remove(|entry| entry.is(turn)) {
            waiting.turns -= 1;
            self.let_go_if_empty(route, &mut waiting);
        }
        drop(waiting);
        self.move_route_on(route);
    }
}
