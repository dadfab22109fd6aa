//! A process with a session to every other: the engine that a session needs, without payload.

use std::collections::BTreeMap;
use std::time::Duration;

use mizzen_proto::id::{BodyId, Incarnation, ProcessId, Rank};
use mizzen_proto::session::{
    ConnectionId as SessionConnection, End, Greeting, JobId, KeepRefused, Output, Received,
    Session, SessionFrame, SessionOptions,
};
use mizzen_proto::time::Time;

use crate::ids::{ConnectionId, Life, MachineId, Place};
use crate::machine::{Context, Machine, Opened, Payload};

/// How many messages go over each session and in each direction.
const MESSAGES: u64 = 30;
/// Just above what a frame may have, so that it is full at times.
const KEPT: u64 = 140_000;
/// How much of a body arrives at once.
const CHUNK: u64 = 4 << 10;

/// The timer of a session has the number of the other machine.
const WORK: u64 = u64::MAX;

/// What goes between drivers: frames, and bodies in chunks, straight into place.
#[derive(Debug, Hash)]
pub(super) enum Wire {
    Frame(Vec<u8>),
    Chunk { body: u64, from: u64, len: u64 },
}

impl Payload for Wire {
    fn wire_len(&self) -> usize {
        match self {
            Wire::Frame(bytes) => bytes.len(),
            Wire::Chunk { len, .. } => *len as usize,
        }
    }
}

#[derive(Debug, Hash)]
pub(super) enum Note {
    Accepted(Place, u64),
    Delivered(Place, u64),
    /// The body of that message has come.
    Body(Place, u64),
    Ended(Place, Ended),
    Broken(String),
}

/// How a session ended, and what its account lists.
#[derive(Debug, Hash)]
pub(super) struct Ended {
    pub(super) left: bool,
    pub(super) is_exact: bool,
    pub(super) unacknowledged: Vec<u64>,
    pub(super) never_sent: Vec<u64>,
    pub(super) bodies: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Speaker {
    me: Place,
    talks: BTreeMap<MachineId, Talk>,
    /// Who was dialled, and with which number.
    dialled: BTreeMap<ConnectionId, (MachineId, u64)>,
    /// Who dialled, and has not greeted.
    strangers: BTreeMap<ConnectionId, Place>,
    /// Whose session a connection was given to.
    given: BTreeMap<ConnectionId, Place>,
}

/// One session, and what its engine has in hand.
#[derive(Debug)]
struct Talk {
    peer: Place,
    session: Session,
    kept: BTreeMap<u64, Vec<u8>>,
    posted: Vec<u64>,
    sending: BTreeMap<BodyId, u64>,
    places: BTreeMap<BodyId, Filling>,
}

#[derive(Debug)]
struct Filling {
    number: u64,
    len: u64,
    filled: u64,
    connection: Option<SessionConnection>,
}

fn process(place: Place) -> ProcessId {
    ProcessId::new(Rank(place.machine.0), Incarnation(place.life.0))
}

impl Speaker {
    pub(super) fn new(me: Place, size: u32, seed: u64) -> Self {
        let others = (0..size)
            .map(MachineId)
            .filter(|other| *other != me.machine);
        let first = |machine| Place {
            machine,
            life: Life(0),
        };
        let talks = others.map(|other| (other, Talk::new(me, first(other), seed)));
        Self {
            me,
            talks: talks.collect(),
            dialled: BTreeMap::new(),
            strangers: BTreeMap::new(),
            given: BTreeMap::new(),
        }
    }

    /// The life and the end of the session with each other machine.
    pub(super) fn sessions(&self) -> impl Iterator<Item = (Place, Option<End>)> {
        self.talks
            .values()
            .map(|talk| (talk.peer, talk.session.end()))
    }

    /// A life was met. Whether it is the one that the session is with, from now on.
    fn meet(&mut self, place: Place, context: &mut Context<'_, Self>) -> bool {
        let Some(talk) = self.talks.get_mut(&place.machine) else {
            return false;
        };
        if place.life > talk.peer.life {
            talk.session.handle_verdict();
            self.flush(place.machine, context);
            let seed = context.rng().u64(..);
            let talk = Talk::new(self.me, place, seed);
            self.talks.insert(place.machine, talk);
        }
        self.talks[&place.machine].peer == place
    }

    /// The session that a connection was given to, if it is not that of an earlier life.
    fn talk_of(&mut self, connection: ConnectionId) -> Option<&mut Talk> {
        let place = self.given.get(&connection)?;
        let talk = self.talks.get_mut(&place.machine)?;
        (talk.peer == *place).then_some(talk)
    }

    /// Does what the session says.
    fn flush(&mut self, machine: MachineId, context: &mut Context<'_, Self>) {
        let Some(talk) = self.talks.get_mut(&machine) else {
            return;
        };
        while let Some(output) = talk.session.poll_output(context.now()) {
            match output {
                Output::Dial { number } => {
                    let connection = context.dial(machine);
                    self.dialled.insert(connection, (machine, number));
                }
                Output::Abandon { number } => {
                    self.dialled
                        .retain(|_, dialled| *dialled != (machine, number));
                }
                output => talk.handle_output(output, context),
            }
        }
        let key = u64::from(machine.0);
        match talk.session.next_timeout() {
            Some(at) => context.set_timer(key, at),
            None => context.cancel_timer(key),
        }
    }
}

impl Talk {
    fn new(me: Place, peer: Place, seed: u64) -> Self {
        let seed = seed ^ u64::from(me.machine.0) << 32 ^ u64::from(peer.machine.0);
        let options = SessionOptions {
            kept_max: KEPT,
            ..SessionOptions::new(process(me), process(peer), JobId([1; 16]), seed)
        };
        Self {
            peer,
            session: Session::new(options),
            kept: BTreeMap::new(),
            posted: Vec::new(),
            sending: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    fn work(&mut self, context: &mut Context<'_, Speaker>) {
        for _ in 0..context.rng().u32(..4) {
            self.post(context);
        }
        let is_done = self.posted.len() as u64 >= MESSAGES
            && self.session.is_flushed(self.session.last_number())
            && self.places.is_empty();
        if is_done && context.rng().u32(..4) == 0 {
            self.session.leave(context.now());
        }
    }

    fn post(&mut self, context: &mut Context<'_, Speaker>) {
        if self.posted.len() as u64 >= MESSAGES {
            return;
        }
        let len = context.rng().usize(6..12_000);
        let body: u32 = match context.rng().u32(..4) {
            0 => context.rng().u32(1..40_000),
            _ => 0,
        };
        let mut frame = vec![0x10; len];
        frame[1..5].copy_from_slice(&body.to_le_bytes());
        let now = context.now();
        let number = match self.session.keep(len as u32, now) {
            Ok(number) => number,
            Err(KeepRefused::Full) => return context.sometimes("the window was full"),
            Err(_) => return,
        };
        self.kept.insert(number, frame);
        self.posted.push(number);
        context.note(Note::Accepted(self.peer, number));
        if body > 0 {
            let (name, len) = (BodyId(1 << 63 | number), u64::from(body));
            self.sending.insert(name, len);
            if self
                .session
                .send_body(name, len, Some(number), now)
                .is_err()
            {
                context.note(Note::Broken("too many bodies".into()));
            }
        }
    }

    fn handle_output(&mut self, output: Output, context: &mut Context<'_, Speaker>) {
        match output {
            Output::Dial { .. } | Output::Abandon { .. } => {}
            Output::Close { connection } => {
                self.tell_progress(connection, context);
                context.close(ConnectionId(connection.0));
            }
            Output::Send { connection, frame } => {
                match &frame {
                    SessionFrame::Refusal(_) => context.sometimes("a greeting was refused"),
                    SessionFrame::Greeting(greeting) if greeting.received_through > 0 => {
                        context.sometimes("a session went on over another connection");
                    }
                    _ => {}
                }
                context.send(ConnectionId(connection.0), Wire::Frame(frame.to_vec()));
            }
            Output::Transmit { connection, stamp } => {
                let Some(kept) = self.kept.get(&stamp.number) else {
                    let sentence = format!("frame {} was freed, and is to be sent", stamp.number);
                    return context.note(Note::Broken(sentence));
                };
                let bytes = [&stamp.to_bytes()[..], kept].concat();
                context.send(ConnectionId(connection.0), Wire::Frame(bytes));
            }
            Output::SendBody {
                connection,
                body,
                from,
            } => {
                let len = self.sending.get(&body).copied().unwrap_or(0);
                for from in (from..len).step_by(CHUNK as usize) {
                    let (body, len) = (body.0, CHUNK.min(len - from));
                    let chunk = Wire::Chunk { body, from, len };
                    context.send(ConnectionId(connection.0), chunk);
                }
            }
            Output::ReceiveBody {
                connection,
                body,
                from,
            } => {
                if let Some(place) = self.places.get_mut(&body) {
                    (place.filled, place.connection) = (from, Some(connection));
                }
                if from > 0 {
                    context.sometimes("a body went on from its middle");
                }
            }
            Output::Free { through } => self.kept.retain(|number, _| *number > through),
            Output::Taken { body } => {
                if self.sending.remove(&body).is_none() {
                    context.note(Note::Broken(format!("body {body} was taken twice")));
                }
            }
            Output::Ended(end) => self.note_end(end, context),
        }
    }

    fn note_end(&self, end: End, context: &mut Context<'_, Speaker>) {
        if let End::Broken(error) = end {
            context.note(Note::Broken(error.to_string()));
        }
        let account = self.session.account();
        let listed = |is_listed: &dyn Fn(u64) -> bool| {
            let posted = self.posted.iter().copied();
            posted.filter(|number| is_listed(*number)).collect()
        };
        let ended = Ended {
            left: end == End::Left,
            is_exact: account.is_exact,
            unacknowledged: listed(&|number| account.unacknowledged.contains(number)),
            never_sent: listed(&|number| account.never_sent.contains(number)),
            bodies: account
                .bodies
                .iter()
                .map(|body| body.0 & !(1 << 63))
                .collect(),
        };
        if end == End::Verdict {
            context.sometimes("a verdict ended a session");
        }
        if !ended.unacknowledged.is_empty() || !ended.never_sent.is_empty() {
            context.sometimes("the account was not empty");
        }
        context.note(Note::Ended(self.peer, ended));
    }

    fn handle_received(&mut self, received: Received<'_>, context: &mut Context<'_, Speaker>) {
        let Received::Frame { number, frame } = received else {
            return;
        };
        context.note(Note::Delivered(self.peer, number));
        let len = frame.get(1..5).and_then(|len| len.try_into().ok());
        let len = u64::from(len.map_or(0, u32::from_le_bytes));
        if len == 0 {
            return;
        }
        let (filled, connection) = (0, None);
        let body = BodyId(1 << 63 | number);
        let place = Filling {
            number,
            len,
            filled,
            connection,
        };
        self.places.insert(body, place);
        if self.session.expect_body(body, len, context.now()).is_err() {
            context.note(Note::Broken("too many bodies".into()));
        }
    }

    fn handle_chunk(
        &mut self,
        connection: SessionConnection,
        body: BodyId,
        (from, len): (u64, u64),
        context: &mut Context<'_, Speaker>,
    ) {
        // A driver writes only where a place was given to this connection.
        let Some(place) = self.places.get_mut(&body) else {
            return;
        };
        if place.connection != Some(connection) {
            return;
        }
        if place.filled != from {
            let sentence = format!("body {body} goes on at {from}, not at {}", place.filled);
            return context.note(Note::Broken(sentence));
        }
        place.filled += len;
        if place.filled < place.len {
            return;
        }
        let number = place.number;
        if self
            .session
            .handle_body_received(connection, body, context.now())
        {
            self.places.remove(&body);
            context.sometimes("a body arrived");
            context.note(Note::Body(self.peer, number));
        }
    }

    fn tell_progress(&mut self, connection: SessionConnection, context: &mut Context<'_, Speaker>) {
        let (session, peer) = (&mut self.session, self.peer);
        self.places.retain(|body, place| {
            if place.connection != Some(connection) {
                return true;
            }
            place.connection = None;
            let is_whole = session.handle_body_progress(*body, place.filled);
            if is_whole {
                context.note(Note::Body(peer, place.number));
            }
            !is_whole
        });
    }
}

impl Machine for Speaker {
    type Message = Wire;
    type Note = Note;

    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.set_timer(WORK, Time(0));
    }

    fn receive(&mut self, from: ConnectionId, message: Wire, context: &mut Context<'_, Self>) {
        let (now, id) = (context.now(), SessionConnection(from.0));
        if let Some(place) = self.strangers.remove(&from) {
            let Wire::Frame(bytes) = message else {
                return context.note(Note::Broken("a body came before a greeting".into()));
            };
            let Ok(greeting) = Greeting::decode(&bytes) else {
                return context.note(Note::Broken("the first frame is no greeting".into()));
            };
            // That of an earlier life is refused by the session.
            self.meet(place, context);
            if let Some(talk) = self.talks.get_mut(&place.machine) {
                self.given.insert(from, talk.peer);
                talk.session.handle_greeting(id, &greeting, now);
            }
            return self.flush(place.machine, context);
        }
        let Some(talk) = self.talk_of(from) else {
            return;
        };
        let machine = talk.peer.machine;
        match message {
            Wire::Frame(bytes) => match talk.session.handle_frame(id, &bytes, now) {
                Ok(received) => talk.handle_received(received, context),
                Err(error) => context.note(Note::Broken(error.to_string())),
            },
            Wire::Chunk { body, from, len } => {
                talk.handle_chunk(id, BodyId(body), (from, len), context);
            }
        }
        self.flush(machine, context);
    }

    fn timer(&mut self, key: u64, context: &mut Context<'_, Self>) {
        if key != WORK {
            let machine = MachineId(key as u32);
            if let Some(talk) = self.talks.get_mut(&machine) {
                talk.session.handle_timeout(context.now());
            }
            return self.flush(machine, context);
        }
        let machines: Vec<_> = self.talks.keys().copied().collect();
        for machine in machines {
            if let Some(talk) = self.talks.get_mut(&machine) {
                talk.work(context);
            }
            self.flush(machine, context);
        }
        let wait = Duration::from_millis(context.rng().u64(50..800));
        context.set_timer(WORK, context.now() + wait);
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        opened: Opened,
        context: &mut Context<'_, Self>,
    ) {
        if opened == Opened::There {
            self.strangers.insert(connection, peer);
            return;
        }
        let dialled = self.dialled.remove(&connection);
        let Some((machine, number)) = dialled else {
            return context.close(connection);
        };
        let before = self.talks.get(&machine).map(|talk| talk.peer);
        if !self.meet(peer, context) || before != Some(peer) {
            // It was dialled for the session with an earlier life.
            return context.close(connection);
        }
        self.given.insert(connection, peer);
        if let Some(talk) = self.talks.get_mut(&machine) {
            let id = SessionConnection(connection.0);
            talk.session.handle_dialled(number, id, context.now());
        }
        self.flush(machine, context);
    }

    fn lost(&mut self, connection: ConnectionId, context: &mut Context<'_, Self>) {
        self.strangers.remove(&connection);
        let Some(talk) = self.talk_of(connection) else {
            return;
        };
        let (machine, id) = (talk.peer.machine, SessionConnection(connection.0));
        talk.tell_progress(id, context);
        talk.session.handle_lost(id, context.now());
        self.given.remove(&connection);
        self.flush(machine, context);
    }

    fn refused(&mut self, connection: ConnectionId, _: MachineId, context: &mut Context<'_, Self>) {
        let Some((machine, number)) = self.dialled.remove(&connection) else {
            return;
        };
        if let Some(talk) = self.talks.get_mut(&machine) {
            talk.session.handle_dial_failed(number, context.now());
        }
        self.flush(machine, context);
    }
}
