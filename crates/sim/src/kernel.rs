//! Runs one history: takes what happens next, lets a machine handle it, does what the machine wants done.

mod strikes;

use std::hash::{Hash, Hasher};
use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::time::Time;

use crate::agenda::{Agenda, Class};
use crate::clock::Clock;
use crate::connection::{EndState, Item, Side};
use crate::event::Event;
use crate::faults::{Fault, Faults};
use crate::history::{History, Record};
use crate::ids::{ConnectionId, HostId, Life, MachineId, Place};
use crate::machine::{Command, Context, Machine, Opened, Payload};
use crate::network::{Ends, Leaving, Network};
use crate::options::{Options, draw};
use crate::tally::{Marks, Traffic};
use crate::world::{Report, Seat, Truth, Violation, World};

/// Runs the history of one seed.
pub fn run<W: World>(world: W, seed: u64, record: Record) -> Report {
    let mut kernel = Kernel::new(world, seed, record);
    let outcome = kernel.run();
    kernel.into_report(outcome)
}

type Message<W> = <<W as World>::Machine as Machine>::Message;
type Note<W> = <<W as World>::Machine as Machine>::Note;

struct Kernel<W: World> {
    world: W,
    options: Options,
    faults: Faults,
    now: Time,
    is_calm: bool,
    agenda: Agenda<Event>,
    network: Network<Message<W>>,
    hosts: Vec<Host>,
    seats: Vec<SeatState>,
    /// The machines that live now, by number.
    lives: Vec<Option<W::Machine>>,
    next_connection: u64,
    next_timer: u64,
    /// How far apart the faults of each kind are, by kind.
    between: Vec<Duration>,
    /// The ways that each fault cut.
    outages: Vec<Vec<(HostId, HostId)>>,
    /// For faults; machines have another, so that a change of theirs leaves the faults where they were.
    rng: Rng,
    load: Rng,
    history: History,
    marks: Marks,
    events: u64,
    /// The room for what machines want done, used again each time.
    commands: Vec<Command<Message<W>, Note<W>>>,
}

#[derive(Debug, Default)]
struct Host {
    clock: Clock,
    is_paused: bool,
    is_down: bool,
    /// What happened to its machines while it was paused.
    held: Vec<Event>,
}

#[derive(Debug)]
struct SeatState {
    seat: Seat,
    lives: u32,
    started: Time,
    /// Who spawned the present life.
    parent: Option<Place>,
    /// By key, with the number of the setting that counts.
    timers: Vec<(u64, u64)>,
    traffic: Traffic,
}

impl<W: World> Kernel<W> {
    fn new(world: W, seed: u64, record: Record) -> Self {
        let layout = world.layout();
        let options = layout.options;
        let mut rng = Rng::with_seed(seed);
        let faults = options.faults.some(&mut rng);
        let (network, load) = (rng.fork(), rng.fork());
        let drift = options.drift as i32;
        let host = |_| Host {
            clock: Clock::new(match faults.has(Fault::Drift) {
                true => rng.i32(-drift..=drift),
                false => 0,
            }),
            ..Host::default()
        };
        let hosts: Vec<Host> = (0..layout.hosts).map(host).collect();
        let seat = |seat: &Seat| SeatState {
            seat: *seat,
            lives: 0,
            started: Time(0),
            parent: None,
            timers: Vec::new(),
            traffic: Traffic::default(),
        };
        Self {
            world,
            faults,
            now: Time(0),
            is_calm: false,
            agenda: Agenda::new(),
            network: Network::new(
                layout.hosts,
                options.clone(),
                faults.has(Fault::Slow),
                network,
            ),
            hosts,
            seats: layout.machines.iter().map(seat).collect(),
            lives: layout.machines.iter().map(|_| None).collect(),
            next_connection: 0,
            next_timer: 0,
            between: Fault::ALL
                .map(|_| draw(&mut rng, &options.between))
                .to_vec(),
            outages: Vec::new(),
            options,
            rng,
            load,
            history: History::new(record),
            marks: Marks::default(),
            events: 0,
            commands: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), Violation> {
        let calm = Time(0) + self.options.trouble;
        let end = calm + self.options.calm;
        self.agenda.add(calm, Class::News, Event::Calm);
        self.agenda.add(end, Class::Timer, Event::End);
        for index in 0..self.seats.len() {
            let start = Event::Start(MachineId(index as u32));
            if self.seats[index].seat.starts {
                self.agenda.add(Time(0), Class::News, start);
            }
        }
        let faults: Vec<Fault> = self.faults.iter().filter(|kind| kind.strikes()).collect();
        for kind in faults {
            self.strike_later(kind);
        }
        while let Some((now, event)) = self.agenda.pop() {
            self.now = now;
            self.events += 1;
            if self.events > self.options.events_max {
                let what = format!("more than {} events", self.options.events_max);
                return Err(Violation::new("no livelock", what));
            }
            if matches!(event, Event::End) || self.is_calm && self.world.is_done() {
                break;
            }
            self.handle(event)?;
        }
        self.world.finish(self.now, &self.lives, &mut self.marks)
    }

    fn into_report(self, outcome: Result<(), Violation>) -> Report {
        let (hash, lines) = self.history.into_parts();
        Report {
            violation: outcome.err(),
            hash,
            lines,
            marks: self.marks,
            traffic: self.seats.iter().map(|seat| seat.traffic).collect(),
            events: self.events,
            ended: self.now,
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), Violation> {
        if let Some(host) = self.host_of(event) {
            if self.hosts[host.index()].is_paused {
                self.hosts[host.index()].held.push(event);
                return Ok(());
            }
        }
        match event {
            Event::Arrive(connection, side) => self.handle_arrive(connection, side),
            Event::Tell(connection, side) => match self.network.tell(connection, side) {
                Some(ends) => self.handle_lost(connection, ends),
                None => Ok(()),
            },
            Event::GiveUp(connection) => {
                match self.network.give_up(self.now, connection, &mut self.agenda) {
                    Some(ends) => self.handle_lost(connection, ends),
                    None => Ok(()),
                }
            }
            Event::Stalled(connection) => {
                if self
                    .network
                    .check_stalled(self.now, connection, &mut self.agenda)
                {
                    self.marks.add("a connection broke by silence");
                }
                Ok(())
            }
            Event::Timer(place, key, number) => self.handle_timer(place, key, number),
            Event::Start(machine) => self.start(machine, None),
            Event::Strike(kind) => self.strike(kind),
            Event::Heal(outage) => self.heal(outage),
            Event::Resume(host) => self.resume(host),
            Event::PowerOn(host) => self.power_on(host),
            Event::Calm => self.calm_down(),
            Event::End => Ok(()),
        }
    }

    /// Who does not get it while its host is paused.
    fn host_of(&self, event: Event) -> Option<HostId> {
        let at = |connection, side| Some(self.network.end(connection, side)?.host);
        match event {
            Event::Arrive(connection, side) => at(connection, side.other()),
            Event::Tell(connection, side) => at(connection, side),
            Event::GiveUp(connection) => at(connection, Side::DIALLER),
            Event::Timer(place, ..) => Some(self.seats[place.machine.index()].seat.host),
            Event::Start(machine) => Some(self.seats[machine.index()].seat.host),
            _ => None,
        }
    }

    // What comes to machines.

    fn handle_arrive(&mut self, connection: ConnectionId, side: Side) -> Result<(), Violation> {
        let arrived = self
            .network
            .arrive(self.now, connection, side, &mut self.agenda);
        let Some((ends, item)) = arrived else {
            return Ok(());
        };
        let (me, peer) = (ends.here.place, ends.there.place);
        match item {
            Item::Open => self.handle_open(connection, ends),
            Item::Opened => {
                self.log(me, "connects", &(connection, peer));
                self.with(me, |machine, context| {
                    machine.connected(connection, peer, Opened::Here, context);
                })
            }
            Item::End => self.handle_lost(connection, ends),
            Item::Refused => {
                let to = ends.there.place.machine;
                self.log(me, "finds nobody", &(connection, to));
                self.with(me, |machine, context| {
                    machine.nobody_listens(connection, to, context);
                })
            }
            Item::Message(message) => {
                let traffic = &mut self.seats[me.machine.index()].traffic;
                traffic.received += 1;
                traffic.bytes_received += message.wire_len() as u64;
                self.log(me, "gets", &(connection, &message));
                self.with(me, |machine, context| {
                    machine.receive(connection, message, context);
                })
            }
        }
    }

    fn handle_open(&mut self, connection: ConnectionId, ends: Ends) -> Result<(), Violation> {
        if self.hosts[ends.here.host.index()].is_down {
            // Nobody answers: the dialler gives up when it has waited long enough.
            return Ok(());
        }
        let listener = self.place(ends.here.place.machine);
        self.network
            .answer(self.now, connection, listener, &mut self.agenda);
        let Some(listener) = listener else {
            return Ok(());
        };
        let dialler = ends.there.place;
        self.log(listener, "accepts", &(connection, dialler));
        self.with(listener, |machine, context| {
            machine.connected(connection, dialler, Opened::There, context);
        })
    }

    /// A machine is told that a connection is no more, or was never made.
    fn handle_lost(&mut self, connection: ConnectionId, ends: Ends) -> Result<(), Violation> {
        let (me, to) = (ends.here.place, ends.there.place.machine);
        if ends.here.state == EndState::Open {
            self.log(me, "loses", &connection);
            return self.with(me, |machine, context| machine.lost(connection, context));
        }
        self.log(me, "is refused", &(connection, to));
        self.with(me, |machine, context| {
            machine.refused(connection, to, context);
        })
    }

    fn handle_timer(&mut self, place: Place, key: u64, number: u64) -> Result<(), Violation> {
        let timers = &mut self.seats[place.machine.index()].timers;
        let Some(at) = timers.iter().position(|timer| *timer == (key, number)) else {
            return Ok(());
        };
        timers.swap_remove(at);
        self.log(place, "rings", &key);
        self.with(place, |machine, context| machine.timer(key, context))
    }

    // Lives.

    fn start(&mut self, machine: MachineId, parent: Option<Place>) -> Result<(), Violation> {
        let state = &mut self.seats[machine.index()];
        if self.lives[machine.index()].is_some() || self.hosts[state.seat.host.index()].is_down {
            return Ok(());
        }
        let place = Place {
            machine,
            life: Life(state.lives),
        };
        state.lives += 1;
        state.started = self.now;
        state.parent = parent;
        state.timers.clear();
        if place.life > Life(0) {
            self.marks.add("a machine started again");
        }
        self.lives[machine.index()] = Some(self.world.machine(place));
        self.log(place, "starts", &());
        self.world.handle_truth(self.now, Truth::Started(place))?;
        self.with(place, |machine, context| machine.start(context))
    }

    fn end_life(&mut self, machine: MachineId, leaving: Leaving) -> Result<(), Violation> {
        let Some(place) = self.place(machine) else {
            return Ok(());
        };
        self.lives[machine.index()] = None;
        self.seats[machine.index()].timers.clear();
        self.log(place, "ends", &());
        self.network
            .handle_ended(self.now, place, leaving, &mut self.agenda);
        self.world.handle_truth(self.now, Truth::Ended(place))?;
        match self.seats[machine.index()].parent.take() {
            Some(parent) if leaving == Leaving::Closed => self.with(parent, |machine, context| {
                machine.child_ended(place, context)
            }),
            _ => Ok(()),
        }
    }

    /// The present life of a machine.
    fn place(&self, machine: MachineId) -> Option<Place> {
        self.lives[machine.index()].as_ref()?;
        let life = Life(self.seats[machine.index()].lives - 1);
        Some(Place { machine, life })
    }

    /// Lets a life handle something, if it is still there, and does what it wants done.
    fn with(
        &mut self,
        place: Place,
        handle: impl FnOnce(&mut W::Machine, &mut Context<'_, W::Machine>),
    ) -> Result<(), Violation> {
        if self.place(place.machine) != Some(place) {
            return Ok(());
        }
        let state = &self.seats[place.machine.index()];
        let clock = self.hosts[state.seat.host.index()].clock;
        let mut commands = std::mem::take(&mut self.commands);
        let Some(machine) = &mut self.lives[place.machine.index()] else {
            return Ok(());
        };
        let mut context = Context {
            now: clock.shown(self.now, state.started),
            me: place,
            rng: &mut self.load,
            next_connection: &mut self.next_connection,
            commands: &mut commands,
        };
        handle(machine, &mut context);
        for command in commands.drain(..) {
            self.apply(place, command)?;
        }
        self.commands = commands;
        Ok(())
    }

    fn apply(&mut self, me: Place, command: Command<Message<W>, Note<W>>) -> Result<(), Violation> {
        let index = me.machine.index();
        if self.place(me.machine) != Some(me) {
            // It ended itself before.
            return Ok(());
        }
        let host = self.seats[index].seat.host;
        match command {
            Command::Dial(connection, to) => {
                let there = self.seats[to.index()].seat.host;
                let (from, to) = ((me, host), (to, there));
                self.network
                    .dial(self.now, connection, from, to, &mut self.agenda);
            }
            Command::Send(connection, message) => {
                let bytes = message.wire_len() as u64;
                let sent = self
                    .network
                    .send(self.now, connection, me, message, &mut self.agenda);
                if sent {
                    let traffic = &mut self.seats[index].traffic;
                    traffic.sent += 1;
                    traffic.bytes_sent += bytes;
                }
            }
            Command::Close(connection) => {
                self.network
                    .close(self.now, connection, me, &mut self.agenda);
            }
            Command::SetTimer(key, at) => {
                let number = self.next_timer;
                self.next_timer += 1;
                let state = &mut self.seats[index];
                state.timers.retain(|timer| timer.0 != key);
                state.timers.push((key, number));
                let clock = self.hosts[host.index()].clock;
                let at = clock.true_time(at, state.started).max(self.now);
                self.agenda
                    .add(at, Class::Timer, Event::Timer(me, key, number));
            }
            Command::CancelTimer(key) => {
                self.seats[index].timers.retain(|timer| timer.0 != key);
            }
            Command::Note(note) => {
                self.log(me, "notes", &note);
                self.world.handle_note(self.now, me, note)?;
            }
            Command::Sometimes(mark) => self.marks.add(mark),
            Command::Spawn(machine) => {
                assert_eq!(self.seats[machine.index()].seat.host, host, "not its host");
                self.start(machine, Some(me))?;
            }
            Command::Kill(machine) => {
                assert_eq!(self.seats[machine.index()].seat.host, host, "not its host");
                self.end_life(machine, Leaving::Closed)?;
            }
        }
        Ok(())
    }

    // History.

    fn log<T: Hash + std::fmt::Debug>(&mut self, place: Place, verb: &str, what: &T) {
        let hash = |hasher: &mut crate::history::TraceHasher| {
            place.hash(hasher);
            hasher.write(verb.as_bytes());
            what.hash(hasher);
        };
        self.history
            .add(self.now, hash, || format!("{place} {verb} {what:?}"));
    }

    fn log_fault<T: Hash + std::fmt::Debug>(&mut self, verb: &str, what: &T) {
        let hash = |hasher: &mut crate::history::TraceHasher| {
            hasher.write(verb.as_bytes());
            what.hash(hasher);
        };
        self.history
            .add(self.now, hash, || format!("-- {verb} {what:?}"));
    }
}
