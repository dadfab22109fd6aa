//! One session between two lives, which outlives connections (docs/wire-sessions.md, docs/design/sessions.md).
//!
//! It lies between a [`Link`](crate::link::Link) and the driver: the link's frames are numbered here, kept by the engine until
//! the peer has acknowledged them, and sent again over the next connection when one is lost. The link itself runs from the
//! beginning to the end as if there were one connection that never breaks. Payload is not here: the session says which kept
//! frame to send, which may be freed, and from which byte on a body goes.
//!
//! ```text
//!   ours:   open ──leave, bye came──▶ bye said ──acknowledged──▶ ┐
//!   theirs: open ─────bye came─────────────────────────────────▶ ┴ over
//!   both:   ────────verdict, broken rule, refused as ended─────────▶ over
//! ```
//!
//! Which connection carries it is the subject of the private module `connections`.
//!
//! The engine calls a command or a handler, then [`Session::poll_output`] until there is nothing. Bodies are told here
//! before anything else happens: [`Session::expect_body`] when the link accepts one, and at once when it announces a pushed one.

mod accepted;
mod bodies;
mod check;
mod connections;
mod error;
mod frame;
mod kept;
mod limits;
mod options;
mod outbox;
mod outcome;

use crate::id::BodyId;
use crate::time::Time;
use crate::wire::FRAME_MAX;
use accepted::{Accepted, Turn as Order};
use bodies::Bodies;
use check::check;
use connections::{Age, Connections, Stage};
use frame::Stamped;
use kept::{Kept, charge};
use outbox::{Outbox, Pending};

pub use error::SessionError;
pub use frame::{
    Expected, GREETING_MAX, Greeting, Refusal, SESSION_VERSION, STAMP, SessionFrame, Stamp, Turn,
};
pub use limits::{
    ACKNOWLEDGE_WITHIN, CONNECTION_STEP, EXPECTED_MAX, KEPT_MAX, KEPT_OVERHEAD, OTHERS_TURN,
    PAUSE_MAX, PAUSE_MIN, SENDING_MAX, SILENCE_MAX, TAKEN_MAX,
};
pub use options::{ByteOrder, ClusterId, Dialling, JobId, MemoryForm, SessionOptions};
pub use outcome::{
    Account, ConnectionId, End, KeepRefused, Numbers, Output, Received, TooManyBodies,
};

/// The session between this process and one life of another.
#[derive(Debug)]
pub struct Session {
    options: SessionOptions,
    end: Option<End>,
    connections: Connections,
    kept: Kept,
    accepted: Accepted,
    bodies: Bodies,
    outbox: Outbox,
    /// What its first greeting told.
    peer_form: Option<MemoryForm>,
}

impl Session {
    /// A session that was never connected. The only end that can [dial](Dialling::Here) does so at its first
    /// [`handle_timeout`](Self::handle_timeout).
    ///
    /// # Panics
    /// When `options` could never keep a frame, or number one.
    pub fn new(options: SessionOptions) -> Self {
        assert!(
            options.kept_max >= charge(FRAME_MAX as u32),
            "a frame must fit what may be kept, or it could wait for ever"
        );
        assert!(options.first_number > 0, "0 is what does not count");
        Self {
            end: None,
            connections: Connections::new(options.seed),
            kept: Kept::new(options.kept_max, options.first_number),
            accepted: Accepted::new(options.kept_max, options.first_number),
            bodies: Bodies::default(),
            outbox: Outbox::default(),
            peer_form: None,
            options,
        }
    }

    // Commands.

    /// Numbers the next frame of the link, of `len` bytes, which the engine keeps from now on and until [`Output::Free`].
    /// [`Output::Transmit`] says when to send it.
    ///
    /// # Errors
    /// It has no number, and the caller still has it.
    pub fn keep(&mut self, len: u32, now: Time) -> Result<u64, KeepRefused> {
        if self.end.is_some() {
            return Err(KeepRefused::Over);
        }
        let number = self.kept.keep(len)?;
        self.settle(now);
        Ok(number)
    }

    /// [Keeps](Self::keep) a frame that is sent at once, over this connection and with this stamp: for an engine that has it in its
    /// hands, and finds the session [ready](Self::is_ready).
    ///
    /// # Errors
    /// It has no number, and the caller still has it.
    pub fn keep_sent(&mut self, len: u32, now: Time) -> Result<(ConnectionId, Stamp), KeepRefused> {
        let Some((connection, _)) = self.connections.current().filter(|_| self.is_ready()) else {
            return Err(KeepRefused::Full);
        };
        self.kept.keep(len)?;
        let number = self.kept.poll_given().unwrap_or_default();
        self.connections.expect_sign(now);
        Ok((connection, self.stamp(number)))
    }

    /// A body is to be sent, because the peer asked for it, or behind the kept frame `push` that announces it. Its memory stays
    /// lent until [`Output::Taken`], or until the session is over.
    ///
    /// # Errors
    /// More are under way than a link allows.
    pub fn send_body(
        &mut self,
        body: BodyId,
        len: u64,
        push: Option<u64>,
        now: Time,
    ) -> Result<(), TooManyBodies> {
        self.bodies.send(body, len, push)?;
        self.settle(now);
        Ok(())
    }

    /// A body was asked for, or will come behind its push; call it before the frame that asks is [kept](Self::keep).
    ///
    /// # Errors
    /// More are under way than a link allows.
    pub fn expect_body(&mut self, body: BodyId, len: u64, now: Time) -> Result<(), TooManyBodies> {
        self.bodies.expect(body, len)?;
        self.settle(now);
        Ok(())
    }

    /// Says bye behind everything that was kept: when the link does.
    pub fn leave(&mut self, now: Time) {
        if self.end.is_some() {
            return;
        }
        if self.connections.is_untouched() && self.kept.is_empty() {
            // The peer never heard of this session.
            self.finish(End::Left);
            return;
        }
        self.kept.say_bye();
        self.settle(now);
    }

    // Input.

    /// An attempt to connect succeeded.
    pub fn handle_dialled(&mut self, number: u64, connection: ConnectionId, now: Time) {
        let is_present = self.connections.end_attempt(number);
        let age = Age::new(number, self.options.local);
        let is_free = self.connections.current().is_none() && age > self.connections.newest();
        if self.end.is_some() || !is_present || !is_free {
            self.push(Output::Close { connection });
            return;
        }
        let may_send = self.kept.was_never_sent();
        let since = now;
        self.connections
            .take(connection, age, Stage::Asked { since, may_send });
        self.kept.rewind();
        self.outbox.greet(connection, Turn::Ask);
    }

    /// An attempt to connect found nobody.
    pub fn handle_dial_failed(&mut self, number: u64, now: Time) {
        self.connections.end_attempt(number);
        self.settle(now);
    }

    /// The first frame of a connection that was dialled by somebody else. Its sender has proved to be [`Greeting::from`].
    pub fn handle_greeting(&mut self, connection: ConnectionId, greeting: &Greeting, now: Time) {
        if let Err(refusal) = self.check_ask(greeting) {
            self.outbox.refuse(connection, refusal);
            return;
        }
        if let Some(older) = self.connections.drop_current() {
            self.outbox.close(older);
        }
        if let Some(number) = self.connections.abandon() {
            self.push(Output::Abandon { number });
        }
        self.kept.rewind();
        if let Err(error) = self.resume(greeting) {
            self.push(Output::Close { connection });
            self.finish(End::Broken(error));
            return;
        }
        if self.is_complete() {
            let received_through = self.accepted.tell();
            self.outbox
                .refuse(connection, Refusal::Ended { received_through });
            self.finish(End::Left);
            return;
        }
        let age = Age::new(greeting.connection, greeting.from);
        self.connections.take(connection, age, Stage::Open);
        self.outbox.greet(connection, Turn::Answer);
        self.settle(now);
    }

    /// A later frame of a connection, or the first of one that was dialled here. What comes over another than the present
    /// connection has no effect.
    ///
    /// # Errors
    /// The peer broke a rule: the session is over.
    pub fn handle_frame<'a>(
        &mut self,
        connection: ConnectionId,
        bytes: &'a [u8],
        now: Time,
    ) -> Result<Received<'a>, SessionError> {
        let stage = match self.connections.current() {
            Some((current, stage)) if current == connection && self.end.is_none() => stage,
            _ => return Ok(Received::Nothing),
        };
        let received = match stage {
            Stage::Asked { .. } => self.handle_answer(bytes).map(|()| Received::Nothing),
            Stage::Open => self.handle_stamped(bytes, now),
        };
        if let Err(error) = received {
            self.finish(End::Broken(error));
        }
        self.settle(now);
        received
    }

    /// A connection is no more. One that is not the present one ends nothing.
    pub fn handle_lost(&mut self, connection: ConnectionId, now: Time) {
        if self.connections.is_current(connection) {
            self.connections.drop_current();
            self.outbox.purge(connection);
        }
        self.settle(now);
    }

    /// So many bytes of a body are in place, from its first on. To be said before a connection is [lost](Self::handle_lost), or when
    /// it is [closed](Output::Close). Whether that was all: then it is as [received](Self::handle_body_received).
    pub fn handle_body_progress(&mut self, body: BodyId, in_place: u64) -> bool {
        self.takes_bodies() && self.bodies.handle_progress(body, in_place)
    }

    /// All of a body is in place. Whether it is taken: after bye none is, so that the peer can know which were.
    pub fn handle_body_received(
        &mut self,
        connection: ConnectionId,
        body: BodyId,
        now: Time,
    ) -> bool {
        let is_taken = self.connections.is_current(connection)
            && self.takes_bodies()
            && self.bodies.handle_received(body);
        self.settle(now);
        is_taken
    }

    /// The peer's life is over, or this one, says who may say so.
    pub fn handle_verdict(&mut self) {
        self.finish(End::Verdict);
    }

    /// A frame was not one that the link understands, or may be sent.
    pub fn handle_violation(&mut self) {
        self.finish(End::Broken(SessionError::Link));
    }

    /// It is as late as [`next_timeout`](Self::next_timeout) said, or later.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.end.is_none() && self.connections.is_silent(now) {
            if let Some(silent) = self.connections.drop_current() {
                self.outbox.close(silent);
            }
        }
        self.accepted.handle_timeout(now);
        self.settle(now);
    }

    // Output.

    /// The next thing to do. The engine keeps what a driver does not take at once, and asks for no more until it did.
    pub fn poll_output(&mut self, now: Time) -> Option<Output> {
        while let Some(pending) = self.outbox.poll() {
            match pending {
                Pending::Output(output) => return Some(output),
                Pending::Greet(connection, turn) => self.greet(connection, turn),
            }
        }
        let (connection, stage) = self.connections.current()?;
        if self.end.is_some() {
            return None;
        }
        match stage {
            Stage::Asked { may_send, .. } => may_send
                .then(|| self.poll_transmit(connection, now))
                .flatten(),
            Stage::Open => self
                .poll_place(connection)
                .or_else(|| self.poll_taken(connection))
                .or_else(|| self.poll_transmit(connection, now))
                .or_else(|| self.poll_body(connection))
                .or_else(|| self.poll_acknowledge(connection)),
        }
    }

    /// The last number that need not be kept any more, if that is the next thing to do: what [`Output::Free`] says, for an engine
    /// that has just read a frame, and nothing to do with its driver.
    pub fn poll_free(&mut self) -> Option<u64> {
        self.outbox.poll_free()
    }

    /// Whether [`poll_output`](Self::poll_output) has something.
    pub fn has_output(&self) -> bool {
        if !self.outbox.is_empty() {
            return true;
        }
        match self.connections.current() {
            Some((_, stage)) if self.end.is_none() => match stage {
                Stage::Asked { may_send, .. } => may_send && self.kept.has_ungiven(),
                Stage::Open => {
                    self.kept.has_ungiven() || self.bodies.has_output() || self.accepted.is_due()
                }
            },
            _ => false,
        }
    }

    /// Whether there is an open connection, and nothing that should go before a new frame.
    pub fn is_ready(&self) -> bool {
        self.is_connected()
            && self.end.is_none()
            && self.outbox.is_empty()
            && !self.kept.has_ungiven()
            && !self.bodies.has_output()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, if nothing comes before.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.end.is_some() {
            return None;
        }
        let is_open = matches!(self.connections.current(), Some((_, Stage::Open)));
        let acknowledge = self.accepted.due_at().filter(|_| is_open);
        [self.connections.next_timeout(), acknowledge]
            .into_iter()
            .flatten()
            .min()
    }

    // Getters.

    /// Since when the peer has said nothing although it should, if there is a connection.
    pub fn silent_since(&self) -> Option<Time> {
        self.connections.silent_since()
    }

    /// Why the session is over, if it is.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// What the peer has not taken, so far or for good.
    pub fn account(&self) -> Account {
        let (unacknowledged, never_sent) = self.kept.account();
        Account {
            unacknowledged,
            never_sent,
            bodies: self.bodies.sending(),
            is_exact: matches!(self.end, Some(End::Left | End::PeerEnded | End::Fenced)),
        }
    }

    /// The last number that was taken: what [`is_flushed`](Self::is_flushed) is asked for.
    pub fn last_number(&self) -> u64 {
        self.kept.last()
    }

    /// Whether every frame up to `number` was acknowledged, and every body taken.
    pub fn is_flushed(&self, number: u64) -> bool {
        self.kept.acknowledged() >= number && !self.bodies.is_sending()
    }

    /// The last number that was accepted from the peer.
    pub fn received_through(&self) -> u64 {
        self.accepted.through()
    }

    /// Whether frames and bodies go.
    pub fn is_connected(&self) -> bool {
        matches!(self.connections.current(), Some((_, Stage::Open)))
    }

    /// What the kept frames count.
    pub fn kept_bytes(&self) -> u64 {
        self.kept.charged()
    }

    /// Who is at the two ends.
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// How numbers lie in the peer's memory; until it has greeted, as in ours.
    pub fn peer_form(&self) -> MemoryForm {
        self.peer_form.unwrap_or(self.options.form)
    }

    fn check(&self, greeting: &Greeting, turn: Turn) -> Result<(), SessionError> {
        check(&self.options, greeting, turn, self.peer_form)
    }

    fn check_ask(&self, greeting: &Greeting) -> Result<(), Refusal> {
        if self.check(greeting, Turn::Ask).is_err() {
            return Err(Refusal::Stranger);
        }
        if self.end.is_some() {
            let received_through = self.accepted.through();
            return Err(Refusal::Ended { received_through });
        }
        let newest = self.connections.newest();
        if Age::new(greeting.connection, greeting.from) <= newest {
            let newest = newest.number;
            return Err(Refusal::Superseded { newest });
        }
        if !self.connections.is_step(greeting.connection) {
            return Err(Refusal::Stranger);
        }
        Ok(())
    }

    /// What came instead of an answer is no reason to end the session: it may be another process, that listens where ours was.
    fn handle_answer(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        if let Ok(refusal) = Refusal::decode(bytes) {
            return self.handle_refusal(refusal);
        }
        let number = self.connections.newest().number;
        let greeting = Greeting::decode(bytes).ok().filter(|greeting| {
            greeting.connection == number && self.check(greeting, Turn::Answer).is_ok()
        });
        let Some(greeting) = greeting else {
            self.drop_asked();
            return Ok(());
        };
        self.resume(&greeting)?;
        self.connections.open();
        Ok(())
    }

    fn handle_refusal(&mut self, refusal: Refusal) -> Result<(), SessionError> {
        self.drop_asked();
        match refusal {
            Refusal::Superseded { newest } => self.connections.handle_superseded(newest),
            Refusal::Stranger => {}
            Refusal::Ended { received_through } => {
                self.acknowledge(received_through)?;
                let end = match self.is_complete() {
                    true => End::Left,
                    false => End::PeerEnded,
                };
                self.finish(end);
            }
            Refusal::Fenced { received_through } => {
                self.acknowledge(received_through)?;
                self.finish(End::Fenced);
            }
        }
        Ok(())
    }

    fn drop_asked(&mut self) {
        if let Some(asked) = self.connections.drop_current() {
            self.outbox.close(asked);
        }
    }

    /// Goes on from where the peer says it is.
    fn resume(&mut self, greeting: &Greeting) -> Result<(), SessionError> {
        self.accepted.check_oldest(greeting.oldest_kept)?;
        self.acknowledge(greeting.received_through)?;
        self.peer_form = Some(greeting.form);
        let taken = self
            .bodies
            .handle_expected(&greeting.expected, greeting.received_through)?;
        for body in taken {
            self.push(Output::Taken { body });
        }
        Ok(())
    }

    fn handle_stamped<'a>(
        &mut self,
        bytes: &'a [u8],
        now: Time,
    ) -> Result<Received<'a>, SessionError> {
        let (stamp, stamped) = Stamp::split(bytes)?;
        self.acknowledge(stamp.received_through)?;
        let is_more_expected = self.kept.is_in_flight();
        self.connections.handle_sign(now, is_more_expected);
        let len = (bytes.len() - STAMP) as u64;
        match stamped {
            Stamped::Acknowledge => Ok(Received::Nothing),
            Stamped::Taken(names) => {
                for body in names.iter() {
                    self.bodies.handle_taken(body)?;
                    self.push(Output::Taken { body });
                }
                Ok(Received::Nothing)
            }
            Stamped::Bye => match self.accepted.handle(stamp.number, 0, now)? {
                Order::Again => Ok(Received::Nothing),
                Order::Next => {
                    self.accepted.handle_bye();
                    self.kept.say_bye();
                    Ok(Received::Bye)
                }
            },
            Stamped::Frame(frame) => {
                let number = stamp.number;
                Ok(
                    match self.accepted.handle(number, len + KEPT_OVERHEAD, now)? {
                        Order::Again => Received::Nothing,
                        Order::Next => Received::Frame { number, frame },
                    },
                )
            }
        }
    }

    fn acknowledge(&mut self, through: u64) -> Result<(), SessionError> {
        if self.kept.handle_acknowledged(through)? {
            self.outbox.free(through);
        }
        Ok(())
    }

    /// What follows from any event: the end, or another attempt.
    fn settle(&mut self, now: Time) {
        if self.end.is_some() {
            return;
        }
        if self.is_complete() {
            self.finish_left();
            return;
        }
        if !self.needs_connection() {
            self.connections.cancel_plan();
            return;
        }
        self.connections.plan(self.options.local, now);
        if let Some(number) = self.connections.poll_dial(now) {
            self.push(Output::Dial { number });
        }
    }

    fn is_complete(&self) -> bool {
        self.accepted.has_bye() && self.kept.is_bye_acknowledged()
    }

    fn takes_bodies(&self) -> bool {
        self.end.is_none() && !self.kept.has_said_bye()
    }

    fn needs_connection(&self) -> bool {
        let has_something = !self.kept.is_empty()
            || !self.bodies.is_empty()
            || self.kept.has_said_bye()
            || self.accepted.has_bye();
        match self.options.dialling {
            Dialling::Both => has_something,
            Dialling::Here => true,
            Dialling::There => false,
        }
    }

    /// Both said bye. The one that still has to acknowledge it does, and the other closes (docs/wire-sessions.md §24.2).
    fn finish_left(&mut self) {
        if !self.accepted.is_due() {
            self.finish(End::Left);
            return;
        }
        if let Some((connection, Stage::Open)) = self.connections.current() {
            let frame = SessionFrame::Acknowledge(self.stamp(0));
            self.push(Output::Send { connection, frame });
        }
        self.conclude(End::Left);
    }

    fn finish(&mut self, end: End) {
        if self.end.is_some() {
            return;
        }
        if let Some(connection) = self.connections.drop_current() {
            self.outbox.close(connection);
        }
        self.conclude(end);
    }

    fn conclude(&mut self, end: End) {
        if let Some(number) = self.connections.abandon() {
            self.push(Output::Abandon { number });
        }
        self.end = Some(end);
        self.push(Output::Ended(end));
    }

    fn push(&mut self, output: Output) {
        self.outbox.push(output);
    }

    fn greet(&mut self, connection: ConnectionId, turn: Turn) {
        let options = &self.options;
        let greeting = Greeting {
            form: options.form,
            cluster: options.cluster,
            job: options.job,
            from: options.local,
            to: options.peer,
            connection: self.connections.newest().number,
            received_through: self.accepted.tell(),
            oldest_kept: self.kept.acknowledged().saturating_add(1),
            window: options.window,
            turn,
            expected: self.bodies.tell_expected(),
        };
        self.outbox.push_greeting(connection, greeting);
    }

    fn stamp(&mut self, number: u64) -> Stamp {
        let received_through = self.accepted.tell();
        Stamp {
            number,
            received_through,
        }
    }

    fn poll_place(&mut self, connection: ConnectionId) -> Option<Output> {
        let (body, from) = (self.bodies.poll_unplaced()?, 0);
        Some(Output::ReceiveBody {
            connection,
            body,
            from,
        })
    }

    fn poll_taken(&mut self, connection: ConnectionId) -> Option<Output> {
        let bodies = self.bodies.poll_taken()?;
        let frame = SessionFrame::Taken(self.stamp(0), bodies);
        Some(Output::Send { connection, frame })
    }

    fn poll_transmit(&mut self, connection: ConnectionId, now: Time) -> Option<Output> {
        let number = self.kept.poll_given()?;
        self.connections.expect_sign(now);
        let stamp = self.stamp(number);
        if !self.kept.is_bye(number) {
            return Some(Output::Transmit { connection, stamp });
        }
        let frame = SessionFrame::Bye(stamp);
        Some(Output::Send { connection, frame })
    }

    fn poll_body(&mut self, connection: ConnectionId) -> Option<Output> {
        if self.accepted.has_bye() {
            // The peer takes no more.
            return None;
        }
        let kept = &self.kept;
        let (body, from) = self.bodies.poll_waiting(|push| kept.was_given(push))?;
        Some(Output::SendBody {
            connection,
            body,
            from,
        })
    }

    fn poll_acknowledge(&mut self, connection: ConnectionId) -> Option<Output> {
        if !self.accepted.is_due() {
            return None;
        }
        let frame = SessionFrame::Acknowledge(self.stamp(0));
        Some(Output::Send { connection, frame })
    }
}
