//! Names as they are now: each is kept by the rank that its hash says, and by the next one when that is gone.
//!
//! While all processes live and their connections hold, what they see of each name could have happened one call after another.
//! With connections that break, a name gets two owners (`names-cut`, review A5); with deaths, too, and what was remembered of a
//! name outlives its holder (`names-death`, review B4). An unbind has no answer, and what is remembered may be wrong while a forget
//! is under way (docs/wire.md §7.5, §7.7): neither is held against the present protocol.

mod asker;
mod object;

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::id::Address;
use mizzen_proto::time::Time;
use mizzen_proto::wire::Name;

use super::size::job_size;
use crate::campaign::Scenario;
use crate::faults::{Fault, Faults};
use crate::ids::{HostId, Life, MachineId, Place};
use crate::kernel::run;
use crate::linear::{Done, Judgement, judge};
use crate::options::Options;
use crate::tally::Marks;
use crate::world::{Layout, Seat, Truth, Violation, World};
use asker::{Asker, NAMES, Note};
use object::{OneName, Operation};

/// Nobody dies, and connections hold.
pub const WHOLE: Scenario = Scenario {
    name: "names",
    about: "names while all live and connections hold: linear, nothing waits, what is remembered is true",
    expected: &[],
    sometimes: &[
        "a fetch was answered from memory",
        "a fetch was given up",
        "a host paused",
        "a way was cut",
    ],
    run: |seed, record| run(Names::new(seed, whole()), seed, record),
};

/// Nobody dies, and connections break.
pub const CUT: Scenario = Scenario {
    name: "names-cut",
    about: "names with connections that break: a name gets two owners (review A5)",
    expected: &[ONE_OWNER, LINEAR, REMEMBERED],
    sometimes: &["a connection broke", "a question went to another holder"],
    run: |seed, record| {
        let faults = Faults::of(&[
            Fault::Break,
            Fault::CutOneWay,
            Fault::Partition,
            Fault::Slow,
        ]);
        let options = Options {
            faults,
            ..Options::default()
        };
        run(Names::new(seed, options), seed, record)
    },
};

/// Processes and hosts die and come back.
pub const DEATH: Scenario = Scenario {
    name: "names-death",
    about: "names with deaths: two owners, and memories that outlive their holder (review B4)",
    expected: &[ONE_OWNER, LINEAR, REMEMBERED],
    sometimes: &[
        "a machine crashed",
        "a machine started again",
        "a question went to another holder",
    ],
    run: |seed, record| {
        let faults = Faults::of(&[Fault::Crash, Fault::PowerLoss, Fault::Restart, Fault::Slow]);
        let options = Options { faults, ..whole() };
        run(Names::new(seed, options), seed, record)
    },
};

const ONE_OWNER: &str = "a name has one owner";
const LINEAR: &str = "names are linear";
const REMEMBERED: &str = "what is remembered of a name is true at last";
const ENDS: &str = "every question ends";

fn whole() -> Options {
    Options {
        faults: Faults::of(&[
            Fault::CutOneWay,
            Fault::Partition,
            Fault::Pause,
            Fault::Drift,
            Fault::Slow,
        ]),
        // Longer than all outages together can be.
        silence: Duration::from_secs(30),
        dialling: Duration::from_secs(30),
        ..Options::default()
    }
}

#[derive(Debug)]
struct Names {
    hosts: u32,
    machines: u32,
    options: Options,
    lives: BTreeMap<MachineId, Life>,
    /// Calls of each life that have not returned.
    open: BTreeMap<(Place, u64), (Time, &'static str, Option<Address>)>,
    history: BTreeMap<&'static str, Vec<Done<Operation>>>,
    deaths: u32,
}

impl Names {
    fn new(seed: u64, options: Options) -> Self {
        let (hosts, machines) = job_size(&mut Rng::with_seed(seed));
        Self {
            hosts,
            machines,
            options,
            lives: BTreeMap::new(),
            open: BTreeMap::new(),
            history: BTreeMap::new(),
            deaths: 0,
        }
    }

    fn add(
        &mut self,
        name: &'static str,
        called: Time,
        returned: Option<Time>,
        operation: Operation,
    ) {
        let done = Done {
            called,
            returned,
            operation,
        };
        self.history.entry(name).or_default().push(done);
    }

    /// A call returned; `operation` says what it was from what it was about.
    fn close(
        &mut self,
        now: Time,
        place: Place,
        call: u64,
        operation: impl FnOnce(Option<Address>) -> Operation,
    ) {
        if let Some((called, name, address)) = self.open.remove(&(place, call)) {
            self.add(name, called, Some(now), operation(address));
        }
    }

    /// Binds whose outcome nobody knows may have taken effect.
    fn close_unknown(&mut self, place: Place, call: u64) {
        if let Some((called, name, Some(address))) = self.open.remove(&(place, call)) {
            self.add(name, called, None, Operation::Bind(address));
        }
    }

    /// The names of who died are free, sooner or later.
    fn handle_death(&mut self, now: Time, dead: Place) {
        let calls: Vec<u64> = self
            .open
            .keys()
            .filter(|key| key.0 == dead)
            .map(|key| key.1)
            .collect();
        for call in calls {
            self.close_unknown(dead, call);
        }
        let is_of_dead = |address: Address| {
            (address.process.rank.0, address.process.incarnation.0) == (dead.machine.0, dead.life.0)
        };
        for name in NAMES {
            let history = self.history.get(name);
            let bound: Vec<Address> = history
                .into_iter()
                .flatten()
                .filter_map(|done| match done.operation {
                    Operation::Bind(address) if is_of_dead(address) => Some(address),
                    _ => None,
                })
                .collect();
            for address in bound {
                self.add(name, now, None, Operation::Unbind(address));
            }
        }
    }

    /// Whether no two of the living have bound one name.
    fn check_owners(lives: &[Option<Asker>]) -> Result<(), Violation> {
        for name in NAMES {
            let owners: Vec<Address> = lives
                .iter()
                .flatten()
                .filter_map(|asker| asker.owned(name))
                .collect();
            if owners.len() > 1 {
                let what = format!("{name} belongs to {} and to {}", owners[0], owners[1]);
                return Err(Violation::new(ONE_OWNER, what));
            }
        }
        Ok(())
    }

    /// Whether what the living remember is what the holder says.
    fn check_remembered(&self, lives: &[Option<Asker>]) -> Result<(), Violation> {
        for (machine, asker) in lives.iter().enumerate() {
            let Some(asker) = asker else { continue };
            for text in NAMES {
                let Ok(name) = Name::new(text) else { continue };
                let Some(remembered) = asker.cache.lookup(name) else {
                    continue;
                };
                let holder = asker.holder_of(text).0 as usize;
                let kept = lives[holder].as_ref().and_then(|holder| holder.kept(text));
                if kept != Some(remembered) {
                    let what = format!(
                        "m{machine} remembers {text} as {remembered}, m{holder} keeps {kept:?}"
                    );
                    return Err(Violation::new(REMEMBERED, what));
                }
            }
        }
        Ok(())
    }
}

impl World for Names {
    type Machine = Asker;

    fn layout(&self) -> Layout {
        let seat = |machine| Seat::on(HostId(machine % self.hosts));
        Layout {
            hosts: self.hosts,
            machines: (0..self.machines).map(seat).collect(),
            options: self.options.clone(),
        }
    }

    fn machine(&mut self, place: Place) -> Asker {
        Asker::new(place, self.machines)
    }

    fn handle_truth(&mut self, now: Time, truth: Truth) -> Result<(), Violation> {
        match truth {
            Truth::Started(place) => drop(self.lives.insert(place.machine, place.life)),
            Truth::Ended(place) => {
                self.lives.remove(&place.machine);
                self.deaths += 1;
                self.handle_death(now, place);
            }
            _ => (),
        }
        Ok(())
    }

    fn handle_note(&mut self, now: Time, me: Place, note: Note) -> Result<(), Violation> {
        match note {
            Note::Binds(call, name, address) => {
                self.open.insert((me, call), (now, name, Some(address)));
            }
            Note::Fetches(call, name) => drop(self.open.insert((me, call), (now, name, None))),
            Note::Unbinds(name, address) => self.add(name, now, None, Operation::Unbind(address)),
            Note::Bound(call) => self.close(now, me, call, |address| {
                Operation::Bind(address.expect("only a bind is answered so"))
            }),
            Note::Taken(call, by) => self.close(now, me, call, |_| Operation::Taken(by)),
            Note::Found(call, address) => self.close(now, me, call, |_| Operation::Found(address)),
            Note::Failed(call) => self.close_unknown(me, call),
        }
        Ok(())
    }

    fn finish(
        &mut self,
        _: Time,
        lives: &[Option<Asker>],
        marks: &mut Marks,
    ) -> Result<(), Violation> {
        Self::check_owners(lives)?;
        let open: Vec<_> = self.open.keys().copied().collect();
        for (place, call) in open {
            self.close_unknown(place, call);
        }
        for (name, history) in std::mem::take(&mut self.history) {
            match judge::<OneName>(history) {
                Judgement::Linear => (),
                Judgement::Unknown => marks.add("a history of a name was too hard to judge"),
                Judgement::NotLinear => {
                    let what = format!("no order explains what was seen of {name:?}");
                    return Err(Violation::new(LINEAR, what));
                }
            }
        }
        self.check_remembered(lives)?;
        // Who died unmet is waited for until somebody tells: that is the launcher, which is not here.
        let waits = lives.iter().flatten().position(|asker| !asker.is_done());
        match waits.filter(|_| self.deaths == 0) {
            Some(machine) => Err(Violation::new(ENDS, format!("one of m{machine} does not"))),
            None => Ok(()),
        }
    }
}
