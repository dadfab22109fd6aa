//! What is to be done before anything else is sent, in its order.

use std::collections::VecDeque;

use super::frame::{Expected, Greeting, Refusal, SessionFrame, Turn};
use super::outcome::{ConnectionId, Output};

/// It holds what one event causes, and is emptied after each: at most one output for each body, and a few more.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: VecDeque<Pending>,
    /// What need not be kept any more; it comes before everything else, so that it needs no place in the queue.
    freed: Option<u64>,
}

#[derive(Debug)]
pub(super) enum Pending {
    Output(Output),
    /// A greeting is written when its turn comes: only then is the older connection closed, and known how far its bodies came.
    Greet(ConnectionId, Turn),
}

impl Outbox {
    pub(super) fn free(&mut self, through: u64) {
        self.freed = Some(through);
    }

    pub(super) fn push(&mut self, output: Output) {
        self.queue.push_back(Pending::Output(output));
    }

    pub(super) fn greet(&mut self, connection: ConnectionId, turn: Turn) {
        self.queue.push_back(Pending::Greet(connection, turn));
    }

    /// Puts a greeting in front of everything else, and before it the places that it promises.
    pub(super) fn push_greeting(&mut self, connection: ConnectionId, greeting: Greeting) {
        let place = |&Expected { body, in_place }: &Expected| Output::ReceiveBody {
            connection,
            body,
            from: in_place,
        };
        let places: Vec<_> = greeting.expected.iter().map(place).collect();
        let frame = SessionFrame::Greeting(greeting);
        let send = Output::Send { connection, frame };
        self.queue.push_front(Pending::Output(send));
        for place in places.into_iter().rev() {
            self.queue.push_front(Pending::Output(place));
        }
    }

    pub(super) fn refuse(&mut self, connection: ConnectionId, refusal: Refusal) {
        let frame = SessionFrame::Refusal(refusal);
        self.push(Output::Send { connection, frame });
        self.push(Output::Close { connection });
    }

    pub(super) fn close(&mut self, connection: ConnectionId) {
        self.purge(connection);
        self.push(Output::Close { connection });
    }

    /// Forgets what was to be done with a connection that is no more.
    pub(super) fn purge(&mut self, connection: ConnectionId) {
        self.queue.retain(|pending| match pending {
            Pending::Output(output) => output.connection() != Some(connection),
            Pending::Greet(greeted, _) => *greeted != connection,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.freed.is_none()
    }

    pub(super) fn poll_free(&mut self) -> Option<u64> {
        self.freed.take()
    }

    pub(super) fn poll(&mut self) -> Option<Pending> {
        if let Some(through) = self.freed.take() {
            return Some(Pending::Output(Output::Free { through }));
        }
        let pending = self.queue.pop_front();
        if self.queue.is_empty() {
            // An idle session has no memory beside its own.
            self.queue = VecDeque::new();
        }
        pending
    }
}
