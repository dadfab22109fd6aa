//! Does with the driver what a link and its session have to do. All of this runs in the thread that has the port.

use std::io::IoSlice;

use mizzen_driver::{Driver, Refused};
use mizzen_proto::id::BodyId;
use mizzen_proto::session::{ConnectionId, End, KeepRefused, Output};
use mizzen_proto::time::Time;

use super::giving::{give_body, place_body};
use super::id::driver_id;
use super::link::{NetLink, OUTBOX_MAX, State};
use super::outcome::Outcome;
use super::session::NetSession;
use crate::error::Departure;

/// What became of something that the session said.
enum Carried {
    Done,
    /// Kept frames are freed, and others wait for the room.
    Room,
    /// The driver has no room: to be said again.
    Busy(Output),
}

impl NetLink {
    /// Gives the driver what waits for it.
    ///
    /// # Errors
    ///
    /// How the link must end.
    pub(super) fn serve(&self, driver: &mut dyn Driver, now: Time) -> Result<(), Departure> {
        let mut session = self.session();
        let to = driver_id(self.peer);
        let mut is_gathering = false;
        let served = loop {
            let (new, was_full) = self.prepare(&mut session, driver, now)?;
            if new > 1 && !is_gathering {
                is_gathering = true;
                driver.gather(to);
            }
            let carried = self.carry(&mut session, driver, now);
            if was_full {
                self.changed.tell();
            }
            match carried {
                Ok(true) => (),
                Ok(false) => break Ok(()),
                Err(how) => break Err(how),
            }
        };
        if is_gathering {
            driver.flush(to);
        }
        served
    }

    /// Moves what waits to the session: how many frames and bodies, and whether posters waited for that.
    fn prepare(
        &self,
        session: &mut NetSession,
        driver: &mut dyn Driver,
        now: Time,
    ) -> Result<(usize, bool), Departure> {
        let mut state = self.lock();
        let State {
            link: Some(link),
            bodies,
            announced,
            is_condemned: false,
            ..
        } = &mut *state
        else {
            return Ok((0, false));
        };
        if bodies.place_wanted(self.peer, link, announced, session, driver, now) {
            self.changed.tell();
        }
        if bodies.pushed.has_unwanted() {
            bodies
                .pushed
                .place_unwanted(self.peer, link, session, driver);
        }
        if !state.behind.is_empty() {
            self.move_on(&mut state);
            state.leave_if_due();
        }
        state.transmit();
        let was_full = state.outbox.len() >= OUTBOX_MAX;
        let max_parts = driver.caps().max_parts;
        let mut new = 0;
        for (body, parts) in state.bodies.take_asked(max_parts) {
            let sent = session.send_body(body, parts, None, now);
            sent.map_err(|_| Departure::Misbehaved)?;
            new += 1;
        }
        while let Some(first) = state.outbox.front_mut() {
            // What is pushed is lent until it is there. While nobody takes it, its poster had better copy it.
            if first.pushes.is_some() && !session.is_linked() {
                break;
            }
            let number = match session.keep(&mut first.frame, now) {
                Ok(number) => number,
                Err(KeepRefused::Full) => {
                    session.is_full = true;
                    break;
                }
                // The peer, or this process, has said bye: nobody takes more.
                Err(_) => {
                    state.drop_outbox();
                    break;
                }
            };
            new += 1;
            let pushes = first.pushes;
            state.outbox.pop_front();
            if let Some((offer, body)) = pushes {
                let parts = state.bodies.take_pushed(offer, body, max_parts);
                let sent = session.send_body(body, parts, Some(number), now);
                sent.map_err(|_| Departure::Misbehaved)?;
                new += 1;
            }
        }
        if state.says_bye && state.outbox.is_empty() {
            session.session.leave(now);
        }
        Ok((new, was_full))
    }

    /// Does what the session says. Whether more can be kept then.
    fn carry(
        &self,
        session: &mut NetSession,
        driver: &mut dyn Driver,
        now: Time,
    ) -> Result<bool, Departure> {
        let mut has_room = false;
        loop {
            let held = session.held.take();
            let Some(output) = held.or_else(|| session.session.poll_output(now)) else {
                return Ok(has_room);
            };
            match self.carry_one(session, driver, output, now)? {
                Carried::Done => (),
                Carried::Room => has_room = true,
                Carried::Busy(output) => {
                    session.held = Some(output);
                    return Ok(false);
                }
            }
        }
    }

    fn carry_one(
        &self,
        session: &mut NetSession,
        driver: &mut dyn Driver,
        output: Output,
        now: Time,
    ) -> Result<Carried, Departure> {
        let to = driver_id(self.peer);
        let is_present = |connection: ConnectionId| session.connection() == Some(connection);
        let given = match &output {
            &Output::Dial { number } => {
                match session.at().map(|at| driver.connect(to, at)) {
                    Some(Ok(())) => session.note_attempt(number),
                    // Also: the driver is about to report a loss, or a connection of the peer's. Later, then.
                    _ => session.session.handle_dial_failed(number, now),
                }
                return Ok(Carried::Done);
            }
            Output::Abandon { .. } => {
                if session.take_attempt().is_some() && !session.is_linked() {
                    driver.disconnect(to);
                }
                return Ok(Carried::Done);
            }
            &Output::Close { connection } => {
                if is_present(connection) {
                    driver.disconnect(to);
                    for body in session.disconnect(now) {
                        self.end_taken(body);
                    }
                }
                return Ok(Carried::Done);
            }
            &Output::Free { through } => {
                return Ok(match session.free(through, drop) {
                    true => Carried::Room,
                    false => Carried::Done,
                });
            }
            &Output::Taken { body } => {
                if session.handle_taken(body) {
                    self.end_taken(body);
                }
                return Ok(Carried::Room);
            }
            &Output::Ended(end) => {
                return Err(match end {
                    End::Left | End::PeerEnded => Departure::Left,
                    End::Verdict => Departure::ConnectionLost,
                    End::Fenced => Departure::Refused,
                    End::Broken(_) => Departure::Misbehaved,
                });
            }
            Output::Send { connection, frame } => match is_present(*connection) {
                true => driver.send_frame(to, &[IoSlice::new(&frame.to_vec())]),
                false => Ok(()),
            },
            Output::Transmit { connection, stamp } => match session.kept(stamp.number) {
                Some(frame) if is_present(*connection) => {
                    let stamp = stamp.to_bytes();
                    driver.send_frame(to, &[IoSlice::new(&stamp), IoSlice::new(frame)])
                }
                _ => Ok(()),
            },
            &Output::SendBody {
                connection,
                body,
                from,
            } => match session.rest_to_send(body, from) {
                Some(parts) if is_present(connection) => {
                    let given = give_body(self.peer, driver, body, &parts);
                    if given.is_ok() {
                        session.note_given(body);
                    }
                    given
                }
                _ => Ok(()),
            },
            &Output::ReceiveBody {
                connection,
                body,
                from,
            } if is_present(connection) => match session.rest_to_receive(body, from) {
                Some(parts) => {
                    let placed = place_body(self.peer, driver, body, &parts);
                    if placed.is_ok() {
                        session.note_placed(body);
                    }
                    placed
                }
                // A pushed body whose reader has not come yet, or was here first.
                None => Ok(()),
            },
            Output::ReceiveBody { .. } => Ok(()),
        };
        match given {
            // The loss of the connection is about to be reported.
            Ok(()) | Err(Refused::NotConnected { .. }) => Ok(Carried::Done),
            Err(Refused::Busy { .. } | Refused::TooManyBodies { .. }) => Ok(Carried::Busy(output)),
            Err(_) => Err(Departure::Misbehaved),
        }
    }

    /// The peer has a body, and the driver is done with it: its memory is its owner's again. Whether its message has all gone
    /// with it.
    pub(super) fn end_taken(&self, body: BodyId) -> bool {
        let mut state = self.lock();
        let Some(protocol) = &mut state.link else {
            return false;
        };
        let mut is_last = false;
        if let Ok(offer) = protocol.handle_body_sent(body) {
            is_last = protocol.has_ended(offer);
            let bodies = &mut state.bodies;
            bodies.end_sent(offer, body, Outcome::Done, is_last);
            self.move_on(&mut state);
        }
        drop(state);
        self.changed.tell();
        is_last
    }
}
