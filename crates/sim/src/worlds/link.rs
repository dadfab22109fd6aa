//! Links between processes over the network, as they are now.
//!
//! What a link accepted arrives exactly once and in order, or the link ended. The present protocol ends a link with its connection:
//! with faults that break connections, two processes that live are separated for good (`link-cut`).

mod speaker;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::time::Time;

use super::mesh::separated;
use super::size::job_size;
use crate::campaign::Scenario;
use crate::faults::{Fault, Faults};
use crate::ids::{HostId, Life, MachineId, Place};
use crate::kernel::run;
use crate::options::Options;
use crate::tally::Marks;
use crate::world::{Layout, Seat, Truth, Violation, World};
use speaker::{MAILBOXES, MESSAGES, Note, Speaker};

/// Links whose connections hold as long as both processes live.
pub const WHOLE: Scenario = Scenario {
    name: "link",
    about: "links over connections that hold: exactly once and in order, through pauses and deaths",
    expected: &[],
    sometimes: &[
        "a post waited for credit",
        "a body was declined",
        "a body arrived",
        "a machine crashed",
        "a host lost power",
        "a machine started again",
        "a way was cut",
        "a host paused",
    ],
    run: |seed, record| run(Links::new(seed, Connections::Hold), seed, record),
};

/// Links whose connections break.
pub const CUT: Scenario = Scenario {
    name: "link-cut",
    about: "links over connections that break: living pairs are separated for good (review A5)",
    expected: &[TOGETHER],
    sometimes: &["a connection broke", "a connection broke by silence"],
    run: |seed, record| run(Links::new(seed, Connections::Break), seed, record),
};

const EXACTLY_ONCE: &str = "exactly once and in order, or the link ended";
const TOGETHER: &str = "living pairs stay together";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connections {
    Hold,
    Break,
}

/// The oracles, and what they know.
#[derive(Debug)]
struct Links {
    hosts: u32,
    machines: u32,
    connections: Connections,
    lives: BTreeMap<MachineId, Life>,
    /// The last message accepted and delivered, by sender, receiver and mailbox.
    accepted: BTreeMap<(Place, Place, u64), u64>,
    delivered: BTreeMap<(Place, Place, u64), u64>,
    /// Bodies that arrived or were declined.
    bodies: BTreeMap<(Place, Place, u64), u32>,
    /// Machines that have something under way.
    busy: BTreeSet<MachineId>,
    is_calm: bool,
    /// Looked at anew only when something changed that counts: it takes long.
    is_done: bool,
}

impl Links {
    fn new(seed: u64, connections: Connections) -> Self {
        let (hosts, machines) = job_size(&mut Rng::with_seed(seed));
        Self {
            hosts,
            machines,
            connections,
            lives: BTreeMap::new(),
            accepted: BTreeMap::new(),
            delivered: BTreeMap::new(),
            bodies: BTreeMap::new(),
            busy: BTreeSet::new(),
            is_calm: false,
            is_done: false,
        }
    }

    fn look(&mut self) {
        self.is_done = self.is_calm && self.busy.is_empty() && self.missing().is_none();
    }

    /// Whether all of every link between two that live arrived.
    fn missing(&self) -> Option<String> {
        let places = || {
            let all = self.lives.iter();
            all.map(|(machine, life)| Place {
                machine: *machine,
                life: *life,
            })
        };
        for from in places() {
            for to in places().filter(|to| *to != from) {
                for mailbox in 1..=MAILBOXES {
                    let key = (from, to, mailbox);
                    let got = self.delivered.get(&key).copied().unwrap_or(0);
                    if got < MESSAGES {
                        return Some(format!("{to} got {got} of {MESSAGES} from {from}"));
                    }
                }
            }
        }
        None
    }
}

impl World for Links {
    type Machine = Speaker;

    fn layout(&self) -> Layout {
        let seat = |machine| Seat::on(HostId(machine % self.hosts));
        let seconds = Duration::from_secs;
        let holds = Options {
            faults: Faults::all().without(Fault::Break),
            // Longer than all outages together can be.
            silence: seconds(30),
            dialling: seconds(30),
            calm: seconds(120),
            ..Options::default()
        };
        Layout {
            hosts: self.hosts,
            machines: (0..self.machines).map(seat).collect(),
            options: match self.connections {
                Connections::Hold => holds,
                Connections::Break => Options::default(),
            },
        }
    }

    fn machine(&mut self, place: Place) -> Speaker {
        Speaker::new(place, self.machines)
    }

    fn handle_truth(&mut self, _: Time, truth: Truth) -> Result<(), Violation> {
        match truth {
            Truth::Started(place) => drop(self.lives.insert(place.machine, place.life)),
            Truth::Ended(place) => {
                self.lives.remove(&place.machine);
                self.busy.remove(&place.machine);
            }
            Truth::Calm => self.is_calm = true,
            _ => return Ok(()),
        }
        self.look();
        Ok(())
    }

    fn handle_note(&mut self, _: Time, me: Place, note: Note) -> Result<(), Violation> {
        let outcome = match note {
            Note::Accepted(to, mailbox, number) => {
                self.accepted.insert((me, to, mailbox), number);
                Ok(())
            }
            Note::Delivered(from, mailbox, number) => {
                let key = (from, me, mailbox);
                let last = self.delivered.insert(key, number).unwrap_or(0);
                let sent = self.accepted.get(&key).copied().unwrap_or(0);
                match number == last + 1 && number <= sent {
                    true => {
                        self.look();
                        Ok(())
                    }
                    false => Err(format!(
                        "{me} got {number} after {last} of {sent} from {from}"
                    )),
                }
            }
            Note::Body(from, number) => {
                let times = self.bodies.entry((from, me, number)).or_default();
                *times += 1;
                match times {
                    1 => Ok(()),
                    _ => Err(format!("{me} got body {number:x} of {from} again")),
                }
            }
            Note::Idle(true) => {
                self.busy.remove(&me.machine);
                self.look();
                Ok(())
            }
            Note::Idle(false) => {
                self.busy.insert(me.machine);
                Ok(())
            }
            Note::Broken(sentence) => Err(format!("{me}: {sentence}")),
        };
        outcome.map_err(|what| Violation::new(EXACTLY_ONCE, what))
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn finish(
        &mut self,
        _: Time,
        lives: &[Option<Speaker>],
        _: &mut Marks,
    ) -> Result<(), Violation> {
        let here = |(index, machine): (usize, &'_ Option<Speaker>)| {
            let machine_id = MachineId(index as u32);
            machine.as_ref()?;
            Some(Place {
                machine: machine_id,
                life: *self.lives.get(&machine_id)?,
            })
        };
        let places = lives.iter().enumerate().filter_map(here);
        let meshes = lives.iter().flatten().map(|speaker| &speaker.mesh);
        if let Some((one, two)) = separated(places.zip(meshes)) {
            let what = format!("{one} has no link to {two}");
            return Err(Violation::new(TOGETHER, what));
        }
        if let Some(what) = self.missing() {
            return Err(Violation::new(EXACTLY_ONCE, what));
        }
        match self.busy.first() {
            Some(machine) => Err(Violation::new(
                "nothing waits for ever",
                format!("{machine:?} has something under way"),
            )),
            None => Ok(()),
        }
    }
}
