//! The simulated network itself: what machines may rely on, and nothing more.
//!
//! Each machine dials others and sends numbered messages over every connection it has. On one connection they arrive in order and
//! without a gap, from the life at its other end, until it is lost; then nothing arrives. Nothing passes a way that is cut. A
//! paused host does nothing, and then handles what arrived before its timers. Nobody is connected with a host that is on none of its
//! networks. When the network is whole, everybody hears something.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::time::Time;

use super::size::job_size;
use crate::campaign::Scenario;
use crate::ids::{ConnectionId, HostId, MachineId, Place};
use crate::kernel::run;
use crate::machine::{Context, Machine, Opened};
use crate::options::Options;
use crate::tally::Marks;
use crate::terrain::{Terrain, Way};
use crate::world::{Layout, Seat, Truth, Violation, World};

/// Messages over the bare network.
pub const SCENARIO: Scenario = Scenario {
    name: "network",
    about: "numbered messages over the bare network: the simulator's own promises",
    expected: &[],
    sometimes: &[
        "a connection broke",
        "a connection broke by silence",
        "something under way was lost",
        "a way was cut",
        "a partition",
        "a host paused",
        "a machine crashed",
        "a host lost power",
        "a machine started again",
        "a dial was refused",
    ],
    run: |seed, record| {
        let (hosts, machines) = job_size(&mut Rng::with_seed(seed));
        run(
            Exchange::new(hosts, machines, Terrain::default()),
            seed,
            record,
        )
    },
};

/// The same over two clusters with gateways between them.
pub const CLUSTERS: Scenario = Scenario {
    name: "clusters",
    about: "numbered messages over the bare networks of two clusters and their gateways: the simulator's own promises",
    expected: &[],
    sometimes: &[
        "a connection broke",
        "something under way was lost",
        "a way was cut",
        "a partition",
        "a host lost power",
        "a dial was refused",
    ],
    run: |seed, record| {
        let mut rng = Rng::with_seed(seed);
        let wan = Way::wan(rng.u64(1..100), rng.u32(..20_000));
        run(
            Exchange::new(10, 10, Terrain::two_clusters(wan)),
            seed,
            record,
        )
    },
};

#[derive(Debug)]
struct Exchange {
    hosts: u32,
    machines: u32,
    terrain: Terrain,
    /// Connections that a life was told of and not yet of their end, with what it got last.
    open: BTreeMap<(Place, ConnectionId), (Place, u64)>,
    paused: BTreeSet<HostId>,
    cut: BTreeSet<(HostId, HostId)>,
    /// When each machine last rang.
    rang: BTreeMap<MachineId, Time>,
    /// When each host last resumed.
    resumed: BTreeMap<HostId, Time>,
    is_calm: bool,
    /// Who got something after trouble ended.
    heard: BTreeMap<MachineId, u32>,
}

#[derive(Debug)]
struct Talker {
    machines: u32,
    sent: BTreeMap<ConnectionId, u64>,
}

#[derive(Debug, Hash)]
enum Note {
    Rang,
    Connected(ConnectionId, Place),
    Got(ConnectionId, Vec<u8>),
    Lost(ConnectionId),
}

const TICK: u64 = 0;

impl Machine for Talker {
    type Message = Vec<u8>;
    type Note = Note;

    fn start(&mut self, context: &mut Context<'_, Self>) {
        context.set_timer(TICK, Time(0));
    }

    fn receive(&mut self, from: ConnectionId, message: Vec<u8>, context: &mut Context<'_, Self>) {
        context.note(Note::Got(from, message));
    }

    fn timer(&mut self, _: u64, context: &mut Context<'_, Self>) {
        context.note(Note::Rang);
        let others = self.machines - 1;
        let step = context.rng().u32(1..=others);
        let other = MachineId((context.me().machine.0 + step) % self.machines);
        if self.sent.len() < 4 {
            context.dial(other);
        }
        let me = context.me().machine.0 as u8;
        for (connection, sent) in &mut self.sent {
            for _ in 0..context.rng().u32(..4) {
                *sent += 1;
                let mut message = sent.to_le_bytes().to_vec();
                message.push(me);
                context.send(*connection, message);
            }
        }
        let wait = Duration::from_millis(context.rng().u64(1..500));
        context.set_timer(TICK, context.now() + wait);
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        _: Opened,
        context: &mut Context<'_, Self>,
    ) {
        self.sent.insert(connection, 0);
        context.note(Note::Connected(connection, peer));
    }

    fn lost(&mut self, connection: ConnectionId, context: &mut Context<'_, Self>) {
        self.sent.remove(&connection);
        context.note(Note::Lost(connection));
    }

    fn refused(&mut self, _: ConnectionId, _: MachineId, context: &mut Context<'_, Self>) {
        context.sometimes("a dial was refused");
    }
}

impl Exchange {
    fn new(hosts: u32, machines: u32, terrain: Terrain) -> Self {
        Self {
            hosts,
            machines,
            terrain,
            open: BTreeMap::new(),
            paused: BTreeSet::new(),
            cut: BTreeSet::new(),
            rang: BTreeMap::new(),
            resumed: BTreeMap::new(),
            is_calm: false,
            heard: BTreeMap::new(),
        }
    }

    fn host(&self, machine: MachineId) -> HostId {
        HostId(machine.0 % self.hosts)
    }

    fn are_near(&self, one: Place, two: Place) -> bool {
        let (one, two) = (self.host(one.machine), self.host(two.machine));
        self.terrain.reaches(one, two)
    }

    /// Nothing gets through a cut, and what arrived comes before timers when a host goes on.
    fn check_arrival(&self, now: Time, me: Place, from: ConnectionId) -> Result<(), Violation> {
        let Some((peer, _)) = self.open.get(&(me, from)) else {
            return Ok(());
        };
        let (here, there) = (self.host(me.machine), self.host(peer.machine));
        if self.cut.contains(&(there, here)) {
            let what = format!("{me} got something of {peer}");
            return Err(Violation::new("nothing passes a cut", what));
        }
        let goes_on = self.resumed.get(&here) == Some(&now);
        if goes_on && self.rang.get(&me.machine) == Some(&now) {
            let what = format!("{me} rang before it got what was there");
            return Err(Violation::new("arrivals come before timers", what));
        }
        Ok(())
    }

    fn check_message(
        &mut self,
        me: Place,
        from: ConnectionId,
        message: &[u8],
    ) -> Result<(), String> {
        let Some((peer, last)) = self.open.get_mut(&(me, from)) else {
            return Err(format!(
                "{me} got something over {from:?}, which it does not have"
            ));
        };
        let (number, sender) = message.split_at(8);
        let number = number.try_into().map(u64::from_le_bytes).unwrap_or(0);
        if number != *last + 1 {
            return Err(format!("{me} got {number} after {last} over {from:?}"));
        }
        if u32::from(sender[0]) != peer.machine.0 {
            return Err(format!("{me} got from {} what is {peer}'s", sender[0]));
        }
        *last = number;
        if self.is_calm {
            *self.heard.entry(me.machine).or_default() += 1;
        }
        Ok(())
    }
}

impl World for Exchange {
    type Machine = Talker;

    fn layout(&self) -> Layout {
        let host = |machine| self.host(MachineId(machine));
        Layout {
            hosts: self.hosts,
            machines: (0..self.machines).map(|one| Seat::on(host(one))).collect(),
            options: Options {
                calm: Duration::from_secs(20),
                terrain: self.terrain.clone(),
                ..Options::default()
            },
        }
    }

    fn machine(&mut self, _: Place) -> Talker {
        Talker {
            machines: self.machines,
            sent: BTreeMap::new(),
        }
    }

    fn handle_truth(&mut self, now: Time, truth: Truth) -> Result<(), Violation> {
        match truth {
            Truth::Calm => self.is_calm = true,
            Truth::Ended(place) => self.open.retain(|key, _| key.0 != place),
            Truth::Paused(host) => drop(self.paused.insert(host)),
            Truth::Resumed(host) => {
                self.paused.remove(&host);
                self.resumed.insert(host, now);
            }
            Truth::Cut(from, to) => drop(self.cut.insert((from, to))),
            Truth::Healed(from, to) => drop(self.cut.remove(&(from, to))),
            Truth::Started(_) => (),
        }
        Ok(())
    }

    fn handle_note(&mut self, now: Time, me: Place, note: Note) -> Result<(), Violation> {
        if self.paused.contains(&self.host(me.machine)) {
            let what = format!("{me} notes {note:?}");
            return Err(Violation::new("a paused host does nothing", what));
        }
        if let Note::Got(connection, _) = &note {
            self.check_arrival(now, me, *connection)?;
        }
        let outcome = match note {
            Note::Rang => {
                self.rang.insert(me.machine, now);
                Ok(())
            }
            Note::Connected(_, peer) if !self.are_near(me, peer) => {
                let what = format!("{me} is connected with {peer}");
                return Err(Violation::new("nobody reaches another network", what));
            }
            Note::Connected(connection, peer) => {
                match self.open.insert((me, connection), (peer, 0)) {
                    None => Ok(()),
                    Some(_) => Err(format!("{me} was told twice of {connection:?}")),
                }
            }
            Note::Got(connection, message) => self.check_message(me, connection, &message),
            Note::Lost(connection) => match self.open.remove(&(me, connection)) {
                Some(_) => Ok(()),
                None => Err(format!("{me} lost {connection:?}, which it does not have")),
            },
        };
        outcome.map_err(|what| Violation::new("a connection keeps order", what))
    }

    fn is_done(&self) -> bool {
        self.heard.len() == self.machines as usize && self.heard.values().all(|times| *times > 2)
    }

    fn finish(
        &mut self,
        _: Time,
        lives: &[Option<Talker>],
        _: &mut Marks,
    ) -> Result<(), Violation> {
        let all = || (0..self.machines).map(MachineId);
        let lives = |machine: &MachineId| lives[machine.index()].is_some();
        let near = |one: MachineId, two: MachineId| {
            one != two && self.terrain.reaches(self.host(one), self.host(two))
        };
        let has_somebody = |one: &MachineId| all().any(|two| lives(&two) && near(*one, two));
        let mut silent = all().filter(|one| lives(one) && !self.heard.contains_key(one));
        match silent.find(has_somebody) {
            Some(machine) => Err(Violation::new(
                "a whole network carries messages",
                format!("{machine:?} heard nothing"),
            )),
            None => Ok(()),
        }
    }
}
