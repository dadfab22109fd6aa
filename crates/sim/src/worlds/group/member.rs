//! A member: its links, what came, and the operation that it is in.
//!
//! It does what a thread with a seat does: it looks at what came only when it waits for something, and leaves when all is done, or when it was told that the
//! group is over.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use mizzen_proto::group::schedule::{Member as Number, Round};
use mizzen_proto::time::Time;

use super::packet::{Cause, Note, Packet};
use super::plan::{Deaths, Plan};
use crate::ids::{ConnectionId, MachineId, Place};
use crate::machine::{Context, Machine, Opened};
use crate::symbols::{Element, Part};

#[derive(Debug)]
pub(super) struct Member {
    me: u32,
    plan: Rc<Plan>,
    peers: Vec<Peer>,
    by_connection: BTreeMap<ConnectionId, u32>,
    /// What came and was not looked at.
    inbox: VecDeque<(u32, Came)>,
    /// What was looked at before it was wanted.
    early: Vec<VecDeque<(usize, Vec<Element>)>>,
    /// Who is lost, and with which operation the group ends.
    notices: VecDeque<(usize, u32)>,
    state: State,
    /// The operation that it is in, or will be in next.
    operation: usize,
    /// How many steps it still takes before it dies.
    left: Option<u32>,
    sent: u64,
    taken: u64,
}

#[derive(Debug, Default)]
struct Peer {
    connection: Option<ConnectionId>,
    /// What was sent before there was a connection.
    unsent: Vec<Packet>,
    /// How many data were sent, and how many of them the other has taken.
    sent: u64,
    taken: u64,
    /// As the network knows it, and as the member has heard it.
    is_unreachable: bool,
    gone: Option<Departure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Departure {
    Died,
    Left,
}

#[derive(Debug)]
enum Came {
    Data(usize, Vec<Element>),
    Notice(usize, u32),
    Gone(Departure),
}

#[derive(Debug)]
enum State {
    /// It computes, until a timer rings.
    Busy,
    /// In an operation.
    Within(Box<Part>, Option<Open>),
    /// It misses something of a member that has left, and waits to be told why.
    Wondering {
        about: u32,
        until: Time,
    },
    /// The group is over for it, but it has not left.
    Lingering,
    Left,
}

/// A round under way.
#[derive(Debug)]
struct Open {
    round: Round,
    came: Vec<Vec<Element>>,
    /// Which message to each member of the round's sends it was.
    posts: Vec<u64>,
}

/// What a member that waits finds.
enum Found {
    Nothing,
    Something,
    /// The group ends with this operation, or has ended before.
    Notice(u32),
}

impl Member {
    pub(super) fn new(me: u32, plan: &Rc<Plan>) -> Self {
        let size = plan.size() as usize;
        Self {
            me,
            plan: Rc::clone(plan),
            peers: (0..size).map(|_| Peer::default()).collect(),
            by_connection: BTreeMap::new(),
            inbox: VecDeque::new(),
            early: vec![VecDeque::new(); size],
            notices: VecDeque::new(),
            state: State::Busy,
            operation: 0,
            left: match plan.deaths {
                Deaths::AtStep { member, step } if member == me => Some(step),
                _ => None,
            },
            sent: 0,
            taken: 0,
        }
    }

    /// How many data it sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// How many data it took.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Goes on until it has to wait.
    fn go_on(&mut self, context: &mut Context<'_, Self>) {
        loop {
            let moved = match std::mem::replace(&mut self.state, State::Busy) {
                State::Within(part, open) => self.work(part, open, context),
                State::Wondering { about, until } => self.wonder(about, until, context),
                state => {
                    self.state = state;
                    false
                }
            };
            if !moved {
                return;
            }
        }
    }

    fn begin(&mut self, context: &mut Context<'_, Self>) {
        self.step(context);
        if let Some(lost) = self.find_notice() {
            return self.hear_of(lost, context);
        }
        let step = &self.plan.steps[self.operation];
        let part = step.part(&self.plan.places, Number(self.me));
        self.state = State::Within(Box::new(part), None);
        self.go_on(context);
    }

    /// A round, as far as it gets.
    fn work(
        &mut self,
        mut part: Box<Part>,
        open: Option<Open>,
        context: &mut Context<'_, Self>,
    ) -> bool {
        let open = match open {
            Some(open) => Some(open),
            None => part.round().map(|round| self.post(&part, round, context)),
        };
        let Some(mut open) = open else {
            self.done(&part, context);
            return false;
        };
        while let Some(receive) = open.round.receives.get(open.came.len()) {
            let from = receive.member.0;
            if let Some((operation, data)) = self.early[from as usize].pop_front() {
                assert_eq!(operation, self.operation, "members are not matched");
                self.step(context);
                self.taken += 1;
                self.send(from, Packet::Taken, context);
                open.came.push(data);
                continue;
            }
            if let Some(departure) = self.peers[from as usize].gone {
                self.lose(from, departure, context);
                return true;
            }
            match self.hear(context) {
                Found::Something => (),
                Found::Notice(lost) => {
                    self.hear_of(lost, context);
                    return false;
                }
                Found::Nothing => {
                    self.state = State::Within(part, Some(open));
                    return false;
                }
            }
        }
        let posts = open.round.sends.iter().zip(&open.posts);
        for (to, number) in posts.map(|(send, number)| (send.member.index(), *number)) {
            let peer = &mut self.peers[to];
            if peer.is_unreachable {
                // It need not have it; who misses something of it finds out.
                continue;
            }
            if self
                .plan
                .held
                .is_some_and(|held| number > peer.taken + held)
            {
                context.sometimes("a post waited for its reader");
                self.state = State::Within(part, Some(open));
                return false;
            }
        }
        part.end_round(&open.round, open.came);
        self.state = State::Within(part, None);
        true
    }

    /// Begins a round: what it sends is what the member has now.
    fn post(&mut self, part: &Part, round: Round, context: &mut Context<'_, Self>) -> Open {
        let mut posts = Vec::new();
        for send in &round.sends {
            self.step(context);
            let (to, operation) = (send.member.0, self.operation);
            let data = part.read(send);
            self.peers[to as usize].sent += 1;
            posts.push(self.peers[to as usize].sent);
            self.sent += 1;
            self.send(to, Packet::Data { operation, data }, context);
        }
        Open {
            came: Vec::new(),
            posts,
            round,
        }
    }

    fn done(&mut self, part: &Part, context: &mut Context<'_, Self>) {
        context.note(Note::Done(self.operation, part.data().to_vec()));
        self.operation += 1;
        if self.operation == self.plan.steps.len() {
            return self.leave(context);
        }
        self.state = State::Busy;
        self.think(context);
    }

    /// Computes for a while, often not at all.
    fn think(&mut self, context: &mut Context<'_, Self>) {
        let most = self.plan.thought.as_nanos() as u64;
        let thought = match context.rng().bool() {
            true => context.rng().u64(..=most),
            false => 0,
        };
        let at = context.now() + Duration::from_nanos(thought);
        context.set_timer(GO_ON, at);
    }

    /// Takes the next of what came.
    fn hear(&mut self, context: &mut Context<'_, Self>) -> Found {
        let Some((from, came)) = self.inbox.pop_front() else {
            return Found::Nothing;
        };
        match came {
            Came::Data(operation, data) => {
                if operation > self.operation {
                    context.sometimes("something came before it was wanted");
                }
                if operation > self.operation + 2 {
                    context.sometimes("a member was three operations ahead");
                }
                self.early[from as usize].push_back((operation, data));
            }
            Came::Notice(operation, lost) => {
                self.notices.push_back((operation, lost));
                if let Some(lost) = self.find_notice() {
                    return Found::Notice(lost);
                }
            }
            Came::Gone(departure) => self.peers[from as usize].gone = Some(departure),
        }
        Found::Something
    }

    fn find_notice(&mut self) -> Option<u32> {
        let holds = |(from, _): &(usize, u32)| *from <= self.operation;
        let at = self.notices.iter().position(holds)?;
        Some(self.notices.remove(at)?.1)
    }

    /// It misses something of a member that is gone.
    fn lose(&mut self, member: u32, departure: Departure, context: &mut Context<'_, Self>) {
        if departure == Departure::Died {
            context.sometimes("a survivor missed something");
            return self.tell_lost(member, context);
        }
        // Who leaves in the middle of something has mostly been told of a loss that is still to be told here.
        context.sometimes("a survivor saw another leave first");
        let until = context.now() + LONG;
        context.set_timer(GO_ON, until);
        self.state = State::Wondering {
            about: member,
            until,
        };
    }

    fn wonder(&mut self, about: u32, until: Time, context: &mut Context<'_, Self>) -> bool {
        loop {
            let has_died = |peer: &Peer| peer.gone == Some(Departure::Died);
            if let Some(died) = self.peers.iter().position(has_died) {
                self.tell_lost(died as u32, context);
                return false;
            }
            if let Some((_, lost)) = self.notices.pop_front() {
                self.hear_of(lost, context);
                return false;
            }
            if context.now() >= until {
                self.tell_lost(about, context);
                return false;
            }
            match self.hear(context) {
                Found::Something => (),
                Found::Notice(lost) => {
                    self.hear_of(lost, context);
                    return false;
                }
                Found::Nothing => {
                    self.state = State::Wondering { about, until };
                    return false;
                }
            }
        }
    }

    fn hear_of(&mut self, lost: u32, context: &mut Context<'_, Self>) {
        context.sometimes("a survivor was told");
        self.end(lost, Cause::Told, context);
    }

    fn tell_lost(&mut self, member: u32, context: &mut Context<'_, Self>) {
        self.end(member, Cause::Missed, context);
        for other in self.others() {
            self.step(context);
            let notice = Packet::Lost {
                operation: self.operation,
                member,
            };
            self.send(other, notice, context);
        }
    }

    /// The group is over for this member: it leaves, at once or later.
    fn end(&mut self, lost: u32, cause: Cause, context: &mut Context<'_, Self>) {
        context.note(Note::Failed {
            operation: self.operation,
            lost,
            cause,
        });
        self.state = State::Lingering;
        self.think(context);
    }

    fn leave(&mut self, context: &mut Context<'_, Self>) {
        context.note(Note::Ended);
        self.state = State::Left;
        for other in self.others() {
            self.part_from(other, context);
        }
    }

    /// Says that it leaves, behind all else.
    fn part_from(&mut self, member: u32, context: &mut Context<'_, Self>) {
        self.send(member, Packet::Leaving, context);
        if let Some(connection) = self.peers[member as usize].connection.take() {
            context.close(connection);
        }
    }

    fn send(&mut self, to: u32, packet: Packet, context: &mut Context<'_, Self>) {
        let peer = &mut self.peers[to as usize];
        match peer.connection {
            Some(connection) => context.send(connection, packet),
            None if peer.is_unreachable => (),
            None => peer.unsent.push(packet),
        }
    }

    /// A member is not there any more, as the network tells.
    fn is_gone(&mut self, member: u32, departure: Departure, context: &mut Context<'_, Self>) {
        let peer = &mut self.peers[member as usize];
        if std::mem::replace(&mut peer.is_unreachable, true) {
            return;
        }
        if let Some(connection) = peer.connection.take() {
            self.by_connection.remove(&connection);
        }
        self.inbox.push_back((member, Came::Gone(departure)));
        self.go_on(context);
    }

    fn others(&self) -> impl Iterator<Item = u32> + use<> {
        let me = self.me;
        (0..self.plan.size()).filter(move |other| *other != me)
    }

    /// Dies, if its time has come: whatever else it wants done is not done.
    fn step(&mut self, context: &mut Context<'_, Self>) {
        let Some(left) = &mut self.left else { return };
        if *left == 0 {
            context.sometimes("a member died at a step");
            context.kill(MachineId(self.me));
        }
        *left = left.saturating_sub(1);
    }

    /// Of two members the one with the lower number dials. The other only looks whether that one lives, as long as it was not dialled.
    fn knock(&self, context: &mut Context<'_, Self>) {
        let unmet = |member: &u32| {
            let peer = &self.peers[*member as usize];
            peer.connection.is_none() && !peer.is_unreachable
        };
        let lower: Vec<u32> = (0..self.me).filter(unmet).collect();
        for member in &lower {
            context.dial(MachineId(*member));
        }
        if !lower.is_empty() {
            context.set_timer(KNOCK, context.now() + KNOCK_AGAIN);
        }
    }
}

impl Machine for Member {
    type Message = Packet;
    type Note = Note;

    fn start(&mut self, context: &mut Context<'_, Self>) {
        for higher in self.me + 1..self.plan.size() {
            context.dial(MachineId(higher));
        }
        context.set_timer(KNOCK, context.now() + KNOCK_AGAIN);
        self.think(context);
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        packet: Packet,
        context: &mut Context<'_, Self>,
    ) {
        let Some(&from) = self.by_connection.get(&connection) else {
            return;
        };
        let came = match packet {
            Packet::Data { operation, data } => Came::Data(operation, data),
            Packet::Lost { operation, member } => Came::Notice(operation, member),
            Packet::Taken => {
                self.peers[from as usize].taken += 1;
                return self.go_on(context);
            }
            Packet::Leaving => return self.is_gone(from, Departure::Left, context),
        };
        self.inbox.push_back((from, came));
        self.go_on(context);
    }

    fn timer(&mut self, key: u64, context: &mut Context<'_, Self>) {
        match (key, &self.state) {
            (KNOCK, _) => self.knock(context),
            (_, State::Busy) => self.begin(context),
            (_, State::Lingering) => self.leave(context),
            _ => self.go_on(context),
        }
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        opened: Opened,
        context: &mut Context<'_, Self>,
    ) {
        let member = peer.machine.0;
        match (opened, member < self.me) {
            // It lives, and will dial.
            (Opened::Here, true) => return context.close(connection),
            (Opened::There, false) => return,
            _ => (),
        }
        self.by_connection.insert(connection, member);
        let known = &mut self.peers[member as usize];
        known.connection = Some(connection);
        for packet in std::mem::take(&mut known.unsent) {
            context.send(connection, packet);
        }
        if matches!(self.state, State::Left) {
            context.close(connection);
            known.connection = None;
        }
    }

    fn lost(&mut self, connection: ConnectionId, context: &mut Context<'_, Self>) {
        if let Some(&member) = self.by_connection.get(&connection) {
            self.is_gone(member, Departure::Died, context);
        }
    }

    fn refused(&mut self, _: ConnectionId, to: MachineId, context: &mut Context<'_, Self>) {
        if self.peers[to.index()].connection.is_none() {
            self.is_gone(to.0, Departure::Died, context);
        }
    }
}

/// The timers: of what the member does, and of looking for others.
const GO_ON: u64 = 0;
const KNOCK: u64 = 1;

/// How long it waits for a member's connection before it looks whether that one lives.
const KNOCK_AGAIN: Duration = Duration::from_millis(300);

/// How long it waits for the reason why a member left (`LONG` in `seat.rs`).
const LONG: Duration = Duration::from_secs(1);
