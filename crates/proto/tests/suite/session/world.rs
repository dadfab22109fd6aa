//! Two ends, the connections between them, and whatever can happen to those.

use std::collections::VecDeque;

use mizzen_proto::session::{ConnectionId, Greeting, Output, SessionOptions, Stamp};
use mizzen_proto::time::Time;

use super::end::{End, options};
use super::pipe::{Item, Pipe};

/// One connection, known to both ends by its place in the list.
pub(super) struct Connection {
    pub(super) dialler: usize,
    pub(super) number: u64,
    pub(super) state: State,
    /// Towards each end.
    pub(super) pipes: [Pipe; 2],
    /// Which end has closed it, or was told that it is lost.
    pub(super) closed: [bool; 2],
    /// Nothing more gets through; both ends will be told.
    pub(super) is_broken: bool,
    /// What is sent towards an end vanishes, and nobody is told.
    pub(super) is_hole: [bool; 2],
    greeted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Dialling,
    Up,
    Dead,
}

pub(super) struct World {
    pub(super) now: Time,
    pub(super) ends: [End; 2],
    pub(super) connections: Vec<Connection>,
    pub(super) serial: u64,
    /// Frames of closed connections are given to the session all the same.
    pub(super) late: bool,
    /// After how many bytes towards each end the next connections are cut; those after them are not.
    pub(super) cuts: VecDeque<[Option<u64>; 2]>,
    pub(super) stale: u64,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        Self::with([options(0, seed), options(1, seed)])
    }

    pub(super) fn with(options: [SessionOptions; 2]) -> Self {
        Self {
            now: Time(0),
            ends: options.map(End::new),
            connections: Vec::new(),
            serial: 0,
            late: true,
            cuts: VecDeque::new(),
            stale: 0,
        }
    }

    pub(super) fn post(&mut self, side: usize, pad: usize, body: usize, push: bool) -> bool {
        let accepted = self.ends[side].post(self.serial, pad, body, push, self.now);
        self.serial += u64::from(accepted);
        if let Some((connection, stamp)) = self.ends[side].sent.take() {
            self.transmit(side, connection, stamp);
        }
        self.flush(side);
        accepted
    }

    pub(super) fn read(&mut self, side: usize, how: usize) -> bool {
        let was_there = self.ends[side].read(how, self.now);
        self.flush(side);
        was_there
    }

    pub(super) fn leave(&mut self, side: usize) {
        self.ends[side].leave(self.now);
        self.flush(side);
    }

    pub(super) fn verdict(&mut self, side: usize) {
        self.ends[side].session.handle_verdict();
        self.flush(side);
    }

    /// Does what the session says.
    pub(super) fn flush(&mut self, side: usize) {
        loop {
            let end = &mut self.ends[side];
            end.pump(self.now);
            let Some(output) = end.session.poll_output(self.now) else {
                break;
            };
            let at = |connection: ConnectionId| connection.0 as usize;
            match output {
                Output::Dial { number } => self.connections.push(Connection {
                    dialler: side,
                    number,
                    state: State::Dialling,
                    pipes: Default::default(),
                    closed: [false; 2],
                    is_broken: false,
                    is_hole: [false; 2],
                    greeted: false,
                }),
                Output::Abandon { .. } => {}
                Output::Close { connection } => {
                    end.tell_progress(connection);
                    self.connections[at(connection)].closed[side] = true;
                }
                Output::Send { connection, frame } => {
                    let bytes = frame.to_vec();
                    self.write(side, at(connection), |pipe| pipe.write_frame(&bytes));
                }
                Output::Transmit { connection, stamp } => self.transmit(side, connection, stamp),
                Output::SendBody {
                    connection,
                    body,
                    from,
                } => {
                    let bytes = end.lent[&body][from as usize..].to_vec();
                    self.write(side, at(connection), |pipe| {
                        pipe.write_body(body, from, &bytes)
                    });
                }
                Output::ReceiveBody {
                    connection,
                    body,
                    from,
                } => {
                    let place = end.places.get_mut(&body).unwrap();
                    let is_known = place.filled.len() as u64 == from;
                    assert!(is_known || end.is_leaving || end.byes > 0);
                    place.filled.truncate(from as usize);
                    place.connection = Some(connection);
                }
                Output::Free { through } => end.kept.retain(|&number, _| number > through),
                Output::Taken { body } => {
                    assert!(end.lent.remove(&body).is_some(), "taken twice");
                    end.link.handle_body_sent(body).unwrap();
                }
                Output::Ended(ending) => {
                    assert_eq!(end.ended.replace(ending), None, "ended twice");
                }
            }
        }
        let end = &self.ends[side];
        assert!(end.session.kept_bytes() <= end.session.options().kept_max);
    }

    fn transmit(&mut self, side: usize, connection: ConnectionId, stamp: Stamp) {
        let kept = &self.ends[side].kept[&stamp.number];
        let bytes = [&stamp.to_bytes()[..], kept].concat();
        self.write(side, connection.0 as usize, |pipe| pipe.write_frame(&bytes));
    }

    fn write(&mut self, side: usize, at: usize, write: impl FnOnce(&mut Pipe)) {
        let connection = &mut self.connections[at];
        assert!(!connection.closed[side], "closed, and written to");
        if !connection.is_broken && !connection.is_hole[1 - side] && !connection.closed[1 - side] {
            let pipe = &mut connection.pipes[1 - side];
            write(pipe);
            connection.is_broken |= pipe.is_cut();
        }
    }

    /// An attempt finds the other end.
    pub(super) fn connect(&mut self, at: usize) {
        let left = self.cuts.pop_front().unwrap_or_default();
        let connection = &mut self.connections[at];
        let (side, number) = (connection.dialler, connection.number);
        connection.state = State::Up;
        for (pipe, left) in connection.pipes.iter_mut().zip(left) {
            pipe.left = left;
            connection.is_broken |= pipe.is_cut();
        }
        let id = ConnectionId(at as u64);
        self.ends[side].session.handle_dialled(number, id, self.now);
        self.flush(side);
    }

    pub(super) fn fail(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        let (side, number) = (connection.dialler, connection.number);
        connection.state = State::Dead;
        self.ends[side].session.handle_dial_failed(number, self.now);
        self.flush(side);
    }

    /// Up to `count` bytes arrive at an end.
    pub(super) fn deliver(&mut self, at: usize, side: usize, count: usize) {
        for _ in 0..count {
            let connection = &mut self.connections[at];
            if connection.closed[side] && !self.late {
                connection.pipes[side].truncate(0);
            }
            if connection.pipes[side].len() == 0 {
                return;
            }
            let item = connection.pipes[side].read();
            let end = connection.pipes[side].body_end();
            for item in [item, end].into_iter().flatten() {
                self.handle(at, side, item);
            }
        }
    }

    fn handle(&mut self, at: usize, side: usize, item: Item) {
        let id = ConnectionId(at as u64);
        let connection = &mut self.connections[at];
        let is_closed = connection.closed[side];
        let end = &mut self.ends[side];
        match item {
            Item::Frame(frame) if side != connection.dialler && !connection.greeted => {
                connection.greeted = true;
                if !is_closed {
                    let greeting = Greeting::decode(&frame).unwrap();
                    end.session.handle_greeting(id, &greeting, self.now);
                }
            }
            Item::Frame(frame) => {
                let before = end.session.received_through();
                let received = end.session.handle_frame(id, &frame, self.now).unwrap();
                if is_closed {
                    self.stale += 1;
                    assert_eq!(
                        end.session.received_through(),
                        before,
                        "a late frame counted"
                    );
                }
                end.handle_received(received, self.now);
            }
            // A driver writes nowhere once it was told to close; nor is there a place once all is over.
            _ if is_closed || end.ended.is_some() => return,
            Item::Body(body, from, len) => {
                let place = &end.places[&body];
                assert_eq!(place.connection, Some(id), "a body without a place");
                assert_eq!((from, from + len), (place.filled.len() as u64, place.len));
            }
            Item::Byte(body, byte) => end.places.get_mut(&body).unwrap().filled.push(byte),
            Item::BodyEnd(body) => {
                if end.session.handle_body_received(id, body, self.now) {
                    end.body_received(body);
                } else {
                    assert!(end.is_leaving || end.byes > 0 || end.ended.is_some());
                }
            }
        }
        self.flush(side);
    }

    /// The cable is cut, and so much of what is on its way still arrives.
    pub(super) fn cut(&mut self, at: usize, arrive: [usize; 2]) {
        let connection = &mut self.connections[at];
        connection.is_broken = true;
        for (pipe, arrive) in connection.pipes.iter_mut().zip(arrive) {
            pipe.truncate(arrive);
        }
    }

    /// Whether an end can be told that a connection is lost.
    pub(super) fn is_lost(&self, at: usize, side: usize) -> bool {
        let connection = &self.connections[at];
        let other_closed = connection.closed[1 - side] && !connection.is_hole[side];
        connection.state == State::Up
            && !connection.closed[side]
            && (connection.is_broken || other_closed && connection.pipes[side].len() == 0)
    }

    pub(super) fn tell_lost(&mut self, at: usize, side: usize) {
        let id = ConnectionId(at as u64);
        self.connections[at].closed[side] = true;
        self.ends[side].tell_progress(id);
        self.ends[side].session.handle_lost(id, self.now);
        self.flush(side);
    }

    /// Time passes up to the next thing that an end waits for. Whether there was one.
    pub(super) fn sleep(&mut self) -> bool {
        let next = self
            .ends
            .iter()
            .filter_map(|end| end.session.next_timeout())
            .min();
        let Some(next) = next else {
            return false;
        };
        self.now = self.now.max(next);
        self.wake();
        true
    }

    pub(super) fn wake(&mut self) {
        for side in 0..2 {
            let session = &mut self.ends[side].session;
            if session.next_timeout().is_some_and(|at| at <= self.now) {
                session.handle_timeout(self.now);
                self.flush(side);
            }
        }
    }

    /// Everything that can happen without a fault and without time happens. Whether something did.
    pub(super) fn run(&mut self) -> bool {
        let mut did = false;
        for at in 0..self.connections.len() {
            if self.connections[at].state == State::Dialling {
                self.connect(at);
                did = true;
            }
            for side in 0..2 {
                if self.connections[at].pipes[side].len() > 0 {
                    self.deliver(at, side, usize::MAX);
                    did = true;
                }
                if self.is_lost(at, side) {
                    self.tell_lost(at, side);
                    did = true;
                }
            }
        }
        did
    }

    /// The network is whole from now on, and everybody reads, until nothing happens any more.
    pub(super) fn settle(&mut self) {
        for _ in 0..100_000 {
            let mut did = self.run();
            for side in 0..2 {
                did |= self.read(side, 2);
            }
            if !did && !self.sleep() {
                return;
            }
        }
        panic!("it never comes to rest");
    }
}
