//! A process that binds and fetches names, as `crates/core/src/names.rs` does it with threads that wait.
//!
//! A question goes to the first rank, from the one that the hash of the name says, that is not held to be gone. When that rank is
//! gone, the next is asked; when it comes back, it is asked again. Each process binds again what a holder kept for it.

use std::collections::BTreeMap;
use std::time::Duration;

use mizzen_proto::id::{Address, Incarnation, MailboxId, ProcessId, Rank, RequestId};
use mizzen_proto::names::{Directory, DirectoryLimits, NameCache, shard_of};
use mizzen_proto::time::Time;
use mizzen_proto::wire::{Frame, Name, NameFrame};

use super::super::mesh::{DIAL_AGAIN, Mesh};
use crate::ids::{ConnectionId, MachineId, Place};
use crate::machine::{Context, Machine, Opened};

/// The names that are bound and fetched.
pub(super) const NAMES: [&str; 3] = ["sum", "max", "tile0"];
/// How long a fetch waits for somebody to bind.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many calls each life makes.
const CALLS: u32 = 12;

const DIAL: u64 = 0;
const WORK: u64 = 1;
/// Of the question with this number above.
const PATIENCE_ENDS: u64 = 1 << 32;

/// What an observer of the calls sees. Calls have numbers within a life.
#[derive(Debug, Hash)]
pub(super) enum Note {
    Binds(u64, &'static str, Address),
    Fetches(u64, &'static str),
    Unbinds(&'static str, Address),
    Bound(u64),
    Taken(u64, Address),
    Found(u64, Address),
    /// It was refused, or nobody bound the name in time.
    Failed(u64),
}

#[derive(Debug)]
pub(super) struct Asker {
    me: ProcessId,
    size: u32,
    pub(super) mesh: Mesh,
    directory: Directory,
    pub(super) cache: NameCache,
    /// What we have bound, to bind it again when a holder is gone or back.
    bound: BTreeMap<&'static str, Address>,
    pub(super) questions: BTreeMap<RequestId, Question>,
    last_request: u64,
    last_mailbox: u64,
    calls: u32,
    /// For ranks that were not met yet.
    waiting: BTreeMap<MachineId, Vec<Vec<u8>>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    name: &'static str,
    holder: Rank,
    what: Asked,
    /// The call that waits for it.
    call: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// By a user; then once more if a name of ours was in the way.
    Bind(Address, Attempt),
    /// By ourselves: nobody waits for it.
    BindAgain(Address),
    Fetch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Second,
}

impl Asker {
    pub(super) fn new(place: Place, size: u32) -> Self {
        Self {
            me: ProcessId::new(Rank(place.machine.0), Incarnation(place.life.0)),
            size,
            mesh: Mesh::new(size),
            directory: Directory::new(DirectoryLimits::default()),
            cache: NameCache::new(),
            bound: BTreeMap::new(),
            questions: BTreeMap::new(),
            last_request: 0,
            last_mailbox: 0,
            calls: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Whether all calls were made, and all have ended.
    pub(super) fn is_done(&self) -> bool {
        self.calls >= CALLS && self.questions.is_empty()
    }

    /// What a name means to those who ask here.
    pub(super) fn kept(&self, name: &str) -> Option<Address> {
        self.directory.lookup(valid(name))
    }

    /// What this process was told that a name is bound to, of its own.
    pub(super) fn owned(&self, name: &str) -> Option<Address> {
        let mut asked = self.questions.values();
        let is_asking =
            asked.any(|question| question.name == name && question.what != Asked::Fetch);
        self.bound.get(name).filter(|_| !is_asking).copied()
    }

    /// Who is asked for a name.
    pub(super) fn holder_of(&self, name: &str) -> Rank {
        let first = shard_of(valid(name), self.size);
        let chain = (0..self.size).map(|step| Rank((first.0 + step) % self.size));
        let here = |rank: &Rank| *rank == self.me.rank || !self.mesh.is_gone(MachineId(rank.0));
        chain.into_iter().find(here).unwrap_or(self.me.rank)
    }

    // What users do.

    fn call(&mut self, context: &mut Context<'_, Self>) {
        let name = NAMES[context.rng().usize(..NAMES.len())];
        let is_asking = self
            .questions
            .values()
            .any(|question| question.name == name);
        if self.calls >= CALLS || is_asking {
            return;
        }
        self.calls += 1;
        match (self.bound.get(name).copied(), context.rng().u32(..3)) {
            (Some(address), 0) => self.unbind(name, address, context),
            (None, 0 | 1) => self.bind(name, context),
            _ => self.fetch(name, context),
        }
    }

    fn bind(&mut self, name: &'static str, context: &mut Context<'_, Self>) {
        self.last_mailbox += 1;
        let address = Address {
            process: self.me,
            mailbox: MailboxId(self.last_mailbox),
        };
        self.bound.insert(name, address);
        let call = self.last_request + 1;
        context.note(Note::Binds(call, name, address));
        self.ask(name, Asked::Bind(address, Attempt::First), call, context);
    }

    fn unbind(&mut self, name: &'static str, address: Address, context: &mut Context<'_, Self>) {
        self.bound.remove(name);
        context.note(Note::Unbinds(name, address));
        let holder = self.holder_of(name);
        let name = valid(name);
        self.send(holder, NameFrame::Unbind { name, address }, context);
    }

    fn fetch(&mut self, name: &'static str, context: &mut Context<'_, Self>) {
        if self.cache.lookup(valid(name)).is_some() {
            return context.sometimes("a fetch was answered from memory");
        }
        let call = self.last_request + 1;
        context.note(Note::Fetches(call, name));
        self.ask(name, Asked::Fetch, call, context);
        context.set_timer(PATIENCE_ENDS + call, context.now() + PATIENCE);
    }

    // Questions.

    fn ask(&mut self, name: &'static str, what: Asked, call: u64, context: &mut Context<'_, Self>) {
        self.last_request += 1;
        let (request, holder) = (RequestId(self.last_request), self.holder_of(name));
        let question = Question {
            name,
            holder,
            what,
            call,
        };
        self.questions.insert(request, question);
        let name = valid(name);
        let frame = match what {
            Asked::Fetch => NameFrame::Fetch { request, name },
            Asked::Bind(address, _) | Asked::BindAgain(address) => NameFrame::Bind {
                request,
                name,
                address,
            },
        };
        self.send(holder, frame, context);
    }

    /// The holder is gone, or another one holds the name now.
    fn ask_anew(&mut self, request: RequestId, context: &mut Context<'_, Self>) {
        if let Some(question) = self.questions.remove(&request) {
            context.sometimes("a question went to another holder");
            self.ask(question.name, question.what, question.call, context);
        }
    }

    fn handle_answer(&mut self, frame: NameFrame<'_>, context: &mut Context<'_, Self>) {
        let request = match frame {
            NameFrame::Forget { name } => return self.cache.handle_forget(name),
            NameFrame::Bound { request }
            | NameFrame::Conflict { request, .. }
            | NameFrame::Refused { request, .. }
            | NameFrame::Found { request, .. } => request,
            _ => return,
        };
        let Some(question) = self.questions.remove(&request) else {
            return;
        };
        let (name, call) = (question.name, question.call);
        match (question.what, frame) {
            (Asked::BindAgain(_), _) => (),
            (Asked::Bind(..), NameFrame::Bound { .. }) => context.note(Note::Bound(call)),
            (Asked::Bind(address, Attempt::First), NameFrame::Conflict { holder: stale, .. })
                if stale.process == self.me =>
            {
                // A mailbox of ours that was dropped with its name.
                context.sometimes("a name of ours was in the way");
                let (holder, valid) = (self.holder_of(name), valid(name));
                let free = NameFrame::Unbind {
                    name: valid,
                    address: stale,
                };
                self.send(holder, free, context);
                self.ask(name, Asked::Bind(address, Attempt::Second), call, context);
            }
            (Asked::Bind(..), NameFrame::Conflict { holder, .. }) => {
                self.bound.remove(name);
                context.note(Note::Taken(call, holder));
            }
            (Asked::Fetch, NameFrame::Found { address, keep, .. }) => {
                self.cache.handle_found(valid(name), address, keep);
                context.cancel_timer(PATIENCE_ENDS + call);
                context.note(Note::Found(call, address));
            }
            (Asked::Bind(..), _) => {
                self.bound.remove(name);
                context.note(Note::Failed(call));
            }
            (Asked::Fetch, _) => {
                context.cancel_timer(PATIENCE_ENDS + call);
                context.note(Note::Failed(call));
            }
        }
    }

    fn give_up(&mut self, call: u64, context: &mut Context<'_, Self>) {
        let mut open = self.questions.iter();
        let Some((&request, &question)) = open.find(|(_, question)| question.call == call) else {
            return;
        };
        self.questions.remove(&request);
        let name = valid(question.name);
        let cancel = NameFrame::Cancel { request, name };
        self.send(question.holder, cancel, context);
        context.sometimes("a fetch was given up");
        context.note(Note::Failed(call));
    }

    // Frames.

    fn send(&mut self, to: Rank, frame: NameFrame<'_>, context: &mut Context<'_, Self>) {
        if to == self.me.rank {
            return self.handle(self.me, frame, context);
        }
        let bytes = Frame::Name(frame).to_vec();
        match self.mesh.connection(MachineId(to.0)) {
            Some(connection) => context.send(connection, bytes),
            None => self.waiting.entry(MachineId(to.0)).or_default().push(bytes),
        }
    }

    fn handle(&mut self, from: ProcessId, frame: NameFrame<'_>, context: &mut Context<'_, Self>) {
        let answer = self.directory.handle_frame(from, frame);
        self.send_replies(context);
        if let Some(answer) = answer {
            self.handle_answer(answer, context);
        }
    }

    fn send_replies(&mut self, context: &mut Context<'_, Self>) {
        while let Some(reply) = self.directory.poll_reply() {
            let Frame::Name(frame) = reply.frame() else {
                continue;
            };
            if reply.to == self.me {
                self.handle_answer(frame, context);
                continue;
            }
            let machine = MachineId(reply.to.rank.0);
            let is_there = |place: Place| place.life.0 == reply.to.incarnation.0;
            if let Some(connection) = self.mesh.connection(machine) {
                if self.mesh.peer_of(connection).is_some_and(is_there) {
                    context.send(connection, Frame::Name(frame).to_vec());
                }
            }
        }
    }

    // Who is there.

    fn lose(&mut self, gone: Place, context: &mut Context<'_, Self>) {
        let (rank, machine) = (Rank(gone.machine.0), gone.machine);
        let process = ProcessId::new(rank, Incarnation(gone.life.0));
        self.waiting.remove(&machine);
        self.cache.handle_process_gone(process);
        self.directory.handle_process_gone(process);
        self.send_replies(context);
        let asked = self.questions.iter();
        let lost: Vec<RequestId> = asked
            .filter(|(_, question)| question.holder == rank)
            .map(|(request, _)| *request)
            .collect();
        for request in lost {
            self.ask_anew(request, context);
        }
        self.bind_again(rank, context);
    }

    fn meet_again(&mut self, rank: Rank, context: &mut Context<'_, Self>) {
        let asked: Vec<_> = self
            .questions
            .iter()
            .map(|(key, one)| (*key, *one))
            .collect();
        for (request, question) in asked {
            if self.holder_of(question.name) != question.holder {
                let name = valid(question.name);
                let cancel = NameFrame::Cancel { request, name };
                self.send(question.holder, cancel, context);
                self.ask_anew(request, context);
            }
        }
        self.bind_again(rank, context);
    }

    /// A holder is gone or back: what it held for us goes to whoever holds it now.
    fn bind_again(&mut self, holder: Rank, context: &mut Context<'_, Self>) {
        for (name, address) in self.bound.clone() {
            let first = shard_of(valid(name), self.size);
            let distance = |rank: Rank| (rank.0 + self.size - first.0) % self.size;
            if distance(holder) <= distance(self.holder_of(name)) {
                self.ask(name, Asked::BindAgain(address), 0, context);
            }
        }
    }
}

impl Machine for Asker {
    type Message = Vec<u8>;
    type Note = Note;

    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.set_timer(DIAL, Time(0));
        context.set_timer(WORK, Time(0));
    }

    fn receive(&mut self, from: ConnectionId, message: Vec<u8>, context: &mut Context<'_, Self>) {
        let Some(peer) = self.mesh.peer_of(from) else {
            return;
        };
        let from = ProcessId::new(Rank(peer.machine.0), Incarnation(peer.life.0));
        if let Ok(Frame::Name(frame)) = Frame::decode(&message) {
            self.handle(from, frame, context);
        }
    }

    fn timer(&mut self, key: u64, context: &mut Context<'_, Self>) {
        match key {
            DIAL => {
                self.mesh.dial(context);
                context.set_timer(DIAL, context.now() + DIAL_AGAIN);
            }
            WORK => {
                self.call(context);
                if self.calls < CALLS {
                    let wait = Duration::from_millis(context.rng().u64(1..1500));
                    context.set_timer(WORK, context.now() + wait);
                }
            }
            _ => self.give_up(key - PATIENCE_ENDS, context),
        }
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        _: Opened,
        context: &mut Context<'_, Self>,
    ) {
        let was_gone = self.mesh.is_gone(peer.machine);
        let met = self.mesh.connected(connection, peer, context);
        if let Some(gone) = met.gone {
            self.lose(gone, context);
        }
        let Some(peer) = met.peer else { return };
        for bytes in self.waiting.remove(&peer.machine).unwrap_or_default() {
            context.send(connection, bytes);
        }
        if was_gone || met.gone.is_some() {
            self.meet_again(Rank(peer.machine.0), context);
        }
    }

    fn lost(&mut self, connection: ConnectionId, context: &mut Context<'_, Self>) {
        if let Some(gone) = self.mesh.lost(connection) {
            self.lose(gone, context);
        }
    }

    fn refused(&mut self, connection: ConnectionId, to: MachineId, _: &mut Context<'_, Self>) {
        self.mesh.refused(connection, to);
    }
}

fn valid(name: &str) -> Name<'_> {
    Name::new(name).expect("the names of this world are short")
}
