//! The session of one link: frames until they are acknowledged, the memory of bodies until they are taken, and the driver's
//! connection that carries both at present. Only who has the port touches it.
//!
//! The session itself decides ([`mizzen_proto::session`]); `carrying.rs` does what it says.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use mizzen_driver::{Locator, Part, PartMut};
use mizzen_proto::id::BodyId;
use mizzen_proto::session::{
    ACKNOWLEDGE_WITHIN, ConnectionId, Dialling, JobId, KeepRefused, MemoryForm, Output, Session,
    SessionOptions, TooManyBodies,
};
use mizzen_proto::time::Time;
use mizzen_proto::wire::{is_message, is_post};

use super::parts::{len_of, slice};
use super::spares::Spares;
use crate::error::{Sureness, Untaken};
use crate::message::{Flags, form};
use crate::rank::ProcessId;

/// Who has a session with whom, and where the other is dialled, if we know.
pub(super) struct Meeting {
    pub(super) job: JobId,
    pub(super) me: ProcessId,
    pub(super) peer: ProcessId,
    pub(super) at: Option<Locator>,
    /// How numbers lie in our memory.
    pub(super) form: MemoryForm,
}

pub(super) struct NetSession {
    pub(super) session: Session,
    /// Frames that have numbers and were not acknowledged.
    kept: VecDeque<Vec<u8>>,
    /// The number of the first of them.
    first: u64,
    /// Memory for the next, lent by the engine while somebody posts.
    pub(super) spares: Spares,
    /// Bodies that the peer has not taken.
    sending: BTreeMap<BodyId, Sending>,
    /// Bodies that have a place of ours, and are not all there.
    receiving: BTreeMap<BodyId, Place>,
    /// The driver's connection, and whether the peer has yet to greet on it.
    connection: Option<(ConnectionId, bool)>,
    connections: u64,
    /// The attempt that the driver makes for us.
    attempt: Option<u64>,
    at: Option<Locator>,
    /// What the driver had no room for.
    pub(super) held: Option<Output>,
    /// A frame found no room among the kept ones.
    pub(super) is_full: bool,
    /// When somebody looks at the session again without being asked.
    pub(super) armed: Option<Time>,
    /// When the last connection was lost, if there is none.
    lost_at: Option<Time>,
    /// When to ask whether the peer has left, because there is no connection; and how long to wait before that is asked again.
    ask_at: Option<Time>,
    ask_pause: Duration,
}

/// A body of ours.
struct Sending {
    parts: Vec<Part>,
    /// Whether the driver reads it.
    is_given: bool,
    /// Whether the network had all of it once.
    was_sent: bool,
    /// Whether the peer says that it has it. It is believed when the driver is done with it, too.
    is_taken: bool,
}

/// Where a body goes.
struct Place {
    parts: Vec<PartMut>,
    /// Whether the driver writes it.
    is_given: bool,
    /// The first byte that the present connection brings.
    from: u64,
}

/// What is left of a session that is over.
pub(super) struct Ended {
    /// Messages of one frame that the peer did not take.
    pub(super) untaken: Untaken,
    /// Bodies that the network had all of: their messages were posted, whether or not the peer lived to take them.
    pub(super) sent: Vec<BodyId>,
    /// Whether the peer may have taken those.
    pub(super) sent_bodies: Sureness,
}

/// How long after a connection was lost the agent is first asked whether the peer has left: a word that was not heard, because
/// the connection was lost before, is not said again by one that is gone.
const ASK_FIRST: Duration = Duration::from_millis(100);
/// The longest time until it is asked again.
const ASK_LAST: Duration = Duration::from_secs(4);

/// How long a peer may take to acknowledge before its silence is told.
const SILENT: Duration = Duration::from_secs(1);
/// How many kept frames there may be room for while there is none.
const FEW: usize = 16;

impl NetSession {
    pub(super) fn new(meeting: Meeting) -> Self {
        let Meeting {
            job,
            me,
            peer,
            at,
            form,
        } = meeting;
        let seed = RandomState::new().hash_one(peer.to_u64());
        let mut options = SessionOptions::new(me, peer, job, seed);
        options.form = form;
        // Who was dialled does not know where the other listens; the other sees to it that there is a connection.
        options.dialling = match at {
            Some(_) => Dialling::Here,
            None => Dialling::There,
        };
        Self {
            session: Session::new(options),
            kept: VecDeque::new(),
            first: 1,
            spares: Spares::default(),
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            connection: None,
            connections: 0,
            attempt: None,
            at,
            held: None,
            is_full: false,
            armed: None,
            lost_at: None,
            ask_at: None,
            ask_pause: ASK_FIRST,
        }
    }

    /// What messages of the peer are marked with.
    pub(super) fn unlike(&self) -> Flags {
        form::flags_of(self.session.options().form, self.session.peer_form())
    }

    // Connections.

    /// The driver has a connection to the peer.
    pub(super) fn connect(&mut self, dialled: bool, now: Time) {
        self.connections += 1;
        let connection = ConnectionId(self.connections);
        self.connection = Some((connection, !dialled));
        (self.ask_at, self.ask_pause) = (None, ASK_FIRST);
        self.lost_at = None;
        if !dialled {
            return;
        }
        let number = self.attempt.take().or_else(|| self.first_attempt(now));
        // An attempt that nobody wants has no number; the session then closes the connection.
        let number = number.unwrap_or_default();
        self.session.handle_dialled(number, connection, now);
    }

    /// The attempt that was made before there was a session.
    fn first_attempt(&mut self, now: Time) -> Option<u64> {
        if self.connections > 1 {
            return None;
        }
        self.session.handle_timeout(now);
        match self.session.poll_output(now) {
            Some(Output::Dial { number }) => Some(number),
            _ => None,
        }
    }

    /// The driver has it no more. How far its bodies came was said before. Returns those of ours that have ended with it.
    pub(super) fn disconnect(&mut self, now: Time) -> Vec<BodyId> {
        self.held = None;
        if let Some((connection, _)) = self.connection.take() {
            self.session.handle_lost(connection, now);
            self.ask_at = Some(now + self.ask_pause);
            self.lost_at = Some(now);
        }
        for place in self.receiving.values_mut() {
            place.is_given = false;
        }
        let sending = core::mem::take(&mut self.sending);
        let (taken, sending): (BTreeMap<_, _>, _) =
            sending.into_iter().partition(|(_, body)| body.is_taken);
        self.sending = sending;
        for body in self.sending.values_mut() {
            body.is_given = false;
        }
        taken.into_keys().collect()
    }

    /// For how long nothing has gone over the session: because a connection was lost, or because the peer does not acknowledge what
    /// was sent, which it does at once whatever its program does.
    pub(super) fn down_for(&self, now: Time) -> Option<Duration> {
        let silent = self.session.silent_since().map(|since| now.since(since));
        let silent = silent.filter(|silent| *silent >= SILENT);
        let lost = self.lost_at.map(|lost| now.since(lost));
        lost.into_iter().chain(silent).max()
    }

    /// Whether the driver has a connection.
    pub(super) fn is_linked(&self) -> bool {
        self.connection.is_some()
    }

    pub(super) fn connection(&self) -> Option<ConnectionId> {
        self.connection.map(|(connection, _)| connection)
    }

    /// The driver's connection, if the peer has yet to greet on it; it is about to.
    pub(super) fn await_greeting(&mut self) -> Option<ConnectionId> {
        match &mut self.connection {
            Some((connection, awaits @ true)) => {
                *awaits = false;
                Some(*connection)
            }
            _ => None,
        }
    }

    /// Whether it is time to ask what became of a peer that cannot be reached.
    pub(super) fn poll_ask(&mut self, now: Time) -> bool {
        if self.ask_at.is_none_or(|at| at > now) {
            return false;
        }
        self.ask_pause = (self.ask_pause * 2).min(ASK_LAST);
        self.ask_at = Some(now + self.ask_pause);
        true
    }

    /// Whether somebody looks at the session before anything can be due of which a frame that came or went now is the cause.
    pub(super) fn is_watched(&self, now: Time) -> bool {
        self.armed.is_some_and(|at| at <= now + ACKNOWLEDGE_WITHIN)
    }

    /// When somebody must look, if nothing comes before.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        [self.session.next_timeout(), self.ask_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Where to dial.
    pub(super) fn at(&self) -> Option<&Locator> {
        self.at.as_ref()
    }

    pub(super) fn note_attempt(&mut self, number: u64) {
        self.attempt = Some(number);
    }

    /// The attempt is over, or no longer wanted.
    pub(super) fn take_attempt(&mut self) -> Option<u64> {
        self.attempt.take()
    }

    // Frames.

    /// Keeps a frame until it is acknowledged.
    pub(super) fn keep(&mut self, frame: &mut Vec<u8>, now: Time) -> Result<u64, KeepRefused> {
        let number = self.session.keep(frame.len() as u32, now)?;
        self.keep_bytes(core::mem::take(frame));
        Ok(number)
    }

    /// The bytes of the frame that was numbered last.
    pub(super) fn keep_bytes(&mut self, frame: Vec<u8>) {
        self.kept.push_back(frame);
    }

    /// Memory for a frame of so many bytes.
    pub(super) fn spare(&mut self, len: usize) -> Vec<u8> {
        self.spares.take(len)
    }

    /// Whether a frame would go at once.
    pub(super) fn is_ready(&self) -> bool {
        self.is_linked() && self.held.is_none() && self.session.is_ready()
    }

    /// A kept frame.
    pub(super) fn kept(&self, number: u64) -> Option<&[u8]> {
        let place = number.checked_sub(self.first)?;
        self.kept.get(place as usize).map(|frame| &frame[..])
    }

    /// Frames up to `through` need not be kept: calls `put_aside` with each. Whether others wait for the room.
    pub(super) fn free(&mut self, through: u64, mut put_aside: impl FnMut(Vec<u8>)) -> bool {
        while self.first <= through {
            self.kept.pop_front().into_iter().for_each(&mut put_aside);
            self.first += 1;
        }
        if self.kept.is_empty() && self.kept.capacity() > FEW {
            self.kept = VecDeque::new();
        }
        core::mem::take(&mut self.is_full)
    }

    // Bodies.

    /// A body goes to the peer, behind the kept frame `push` if that announces it.
    pub(super) fn send_body(
        &mut self,
        body: BodyId,
        parts: Vec<Part>,
        push: Option<u64>,
        now: Time,
    ) -> Result<(), TooManyBodies> {
        self.session.send_body(body, len_of(&parts), push, now)?;
        self.sending.insert(
            body,
            Sending {
                parts,
                is_given: false,
                was_sent: false,
                is_taken: false,
            },
        );
        Ok(())
    }

    /// The parts of a body from a byte on.
    pub(super) fn rest_to_send(&self, body: BodyId, from: u64) -> Option<Vec<Part>> {
        let sending = self.sending.get(&body)?;
        Some(slice(&sending.parts, from as usize, usize::MAX))
    }

    /// The driver reads a body from now on.
    pub(super) fn note_given(&mut self, body: BodyId) {
        if let Some(sending) = self.sending.get_mut(&body) {
            sending.is_given = true;
        }
    }

    /// The driver is done with a body; `was_sent` if the network has all of it. Whether it has ended.
    pub(super) fn handle_sent(&mut self, body: BodyId, was_sent: bool) -> bool {
        let Some(sending) = self.sending.get_mut(&body) else {
            return false;
        };
        sending.is_given = false;
        sending.was_sent |= was_sent;
        let is_taken = sending.is_taken;
        if is_taken {
            self.sending.remove(&body);
        }
        is_taken
    }

    /// The peer has a body, it says. Whether it has ended: not while the driver reads it, whatever a peer says.
    pub(super) fn handle_taken(&mut self, body: BodyId) -> bool {
        let Some(sending) = self.sending.get_mut(&body) else {
            return false;
        };
        sending.is_taken = true;
        let is_over = !sending.is_given;
        if is_over {
            self.sending.remove(&body);
        }
        is_over
    }

    /// A body was asked for, and has a place.
    pub(super) fn expect_body(
        &mut self,
        body: BodyId,
        parts: Vec<PartMut>,
        now: Time,
    ) -> Result<(), TooManyBodies> {
        self.session.expect_body(body, len_of(&parts), now)?;
        self.place(body, parts, false);
        Ok(())
    }

    /// A body that was pushed has a place; `is_given` if the driver has it.
    pub(super) fn place(&mut self, body: BodyId, parts: Vec<PartMut>, is_given: bool) {
        let from = 0;
        self.receiving.insert(
            body,
            Place {
                parts,
                is_given,
                from,
            },
        );
    }

    /// The driver writes a body from now on.
    pub(super) fn note_placed(&mut self, body: BodyId) {
        if let Some(place) = self.receiving.get_mut(&body) {
            place.is_given = true;
        }
    }

    /// The places of a body from a byte on, which the present connection brings. `None`: it has none yet, or the driver has it.
    pub(super) fn rest_to_receive(&mut self, body: BodyId, from: u64) -> Option<Vec<PartMut>> {
        let place = self.receiving.get_mut(&body)?;
        if place.is_given {
            return None;
        }
        place.from = from;
        Some(slice(&place.parts, from as usize, usize::MAX))
    }

    #[cfg(test)]
    pub(super) fn is_receiving(&self) -> bool {
        !self.receiving.is_empty()
    }

    /// A body has no place any more.
    pub(super) fn end_receiving(&mut self, body: BodyId) {
        self.receiving.remove(&body);
    }

    /// The connection is about to be lost, and brought so many bytes of a body. Whether that was all.
    pub(super) fn handle_body_cut(&mut self, body: BodyId, in_place: u64) -> bool {
        let Some(place) = self.receiving.get(&body) else {
            return false;
        };
        let in_place = place.from + in_place;
        self.session.handle_body_progress(body, in_place)
    }

    /// The last number that the peer has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.first - 1
    }

    /// How many bodies the peer has not taken.
    pub(super) fn bodies_under_way(&self) -> usize {
        self.sending.len()
    }

    /// How many messages the peer has not acknowledged.
    pub(super) fn messages(&self) -> u64 {
        let kept = self.kept.iter();
        kept.filter(|frame| is_message(frame)).count() as u64
    }

    /// The session is over, and the driver done with it: what the peer did not take.
    pub(super) fn end(&mut self) -> Ended {
        self.session.handle_verdict();
        (self.connection, self.attempt, self.held) = (None, None, None);
        let sending = core::mem::take(&mut self.sending).into_iter();
        let sent = sending.filter(|(_, body)| body.was_sent);
        let sent = sent.map(|(body, _)| body).collect();
        self.receiving.clear();
        let account = self.session.account();
        let mut untaken = Untaken::default();
        let posts = (self.first..).zip(core::mem::take(&mut self.kept));
        for (number, _) in posts.filter(|(_, frame)| is_post(frame)) {
            if account.never_sent.contains(number) {
                untaken.add(1, Sureness::Certain);
            } else if account.unacknowledged.contains(number) {
                untaken.add(1, Sureness::of(account.is_exact));
            }
        }
        let sent_bodies = Sureness::of(account.is_exact);
        Ended {
            untaken,
            sent,
            sent_bodies,
        }
    }
}
