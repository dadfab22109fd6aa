//! What must hold between any two lives.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use mizzen_proto::session::End;
use mizzen_proto::time::Time;

use super::speaker::{Ended, Note, Speaker};
use crate::faults::Faults;
use crate::ids::{HostId, Life, MachineId, Place};
use crate::options::Options;
use crate::tally::Marks;
use crate::world::{Layout, Seat, Truth, Violation, World};

const EXACTLY_ONCE: &str = "exactly once and in order";
const ACCOUNT: &str = "what did not come is in the account";
const TOGETHER: &str = "living pairs stay together, and leave";
const ENDED: &str = "nothing is taken from a session that is over";
const RULES: &str = "nobody breaks a rule";

/// From whom to whom.
type Pair = (Place, Place);

/// The oracles, and what they know.
#[derive(Debug)]
pub(super) struct Sessions {
    seed: u64,
    hosts: u32,
    machines: u32,
    faults: Faults,
    lives: BTreeMap<MachineId, Life>,
    accepted: BTreeMap<Pair, Vec<u64>>,
    /// How many of those came.
    delivered: BTreeMap<Pair, usize>,
    bodies: BTreeSet<(Pair, u64)>,
    /// How the sender's session ended.
    ended: BTreeMap<Pair, Ended>,
}

impl Sessions {
    pub(super) fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::with_seed(seed);
        Self {
            seed,
            hosts: rng.u32(2..=4),
            machines: rng.u32(2..=5),
            faults,
            lives: BTreeMap::new(),
            accepted: BTreeMap::new(),
            delivered: BTreeMap::new(),
            bodies: BTreeSet::new(),
            ended: BTreeMap::new(),
        }
    }

    /// All pairs of lives that are there.
    fn pairs(&self) -> impl Iterator<Item = Pair> {
        let places = self
            .lives
            .iter()
            .map(|(&machine, &life)| Place { machine, life });
        let places: Vec<_> = places.collect();
        let both = places.clone().into_iter();
        both.flat_map(move |one| places.clone().into_iter().map(move |two| (one, two)))
            .filter(|(one, two)| one != two)
    }

    fn check_account(&self, pair: &Pair, ended: &Ended) -> Result<(), Violation> {
        let (from, to) = pair;
        let came = self.delivered.get(pair).copied().unwrap_or(0);
        let accepted = self.accepted.get(pair).map_or(&[][..], Vec::as_slice);
        for (at, number) in accepted.iter().enumerate() {
            let has_come = at < came;
            let is_unknown = ended.unacknowledged.contains(number);
            let was_never_sent = ended.never_sent.contains(number);
            let is_wrong = match has_come {
                true => was_never_sent || is_unknown && ended.is_exact,
                false => !was_never_sent && !is_unknown,
            };
            if is_wrong {
                let what =
                    format!("frame {number} from {from} to {to}: came: {has_come}, {ended:?}");
                return Err(Violation::new(ACCOUNT, what));
            }
        }
        let both = ended
            .bodies
            .iter()
            .find(|number| self.bodies.contains(&(*pair, **number)));
        match both {
            Some(number) if ended.left => {
                let what = format!("body {number} from {from} to {to} came, and is in the account");
                Err(Violation::new(ACCOUNT, what))
            }
            _ => Ok(()),
        }
    }
}

impl World for Sessions {
    type Machine = Speaker;

    fn layout(&self) -> Layout {
        let seat = |number| Seat::on(HostId(number % self.hosts));
        Layout {
            hosts: self.hosts,
            machines: (0..self.machines).map(seat).collect(),
            options: Options {
                faults: self.faults,
                ..Options::default()
            },
        }
    }

    fn machine(&mut self, place: Place) -> Speaker {
        Speaker::new(place, self.machines, self.seed)
    }

    fn handle_truth(&mut self, _: Time, truth: Truth) -> Result<(), Violation> {
        match truth {
            Truth::Started(place) => drop(self.lives.insert(place.machine, place.life)),
            Truth::Ended(place) => drop(self.lives.remove(&place.machine)),
            _ => {}
        }
        Ok(())
    }

    fn handle_note(&mut self, _: Time, me: Place, note: Note) -> Result<(), Violation> {
        match note {
            Note::Accepted(to, number) => {
                self.accepted.entry((me, to)).or_default().push(number);
            }
            Note::Delivered(from, number) => {
                if self.ended.contains_key(&(me, from)) {
                    let what = format!("{me} takes frame {number} of {from}");
                    return Err(Violation::new(ENDED, what));
                }
                let came = self.delivered.entry((from, me)).or_default();
                let accepted = self.accepted.get(&(from, me));
                let next = accepted.and_then(|accepted| accepted.get(*came));
                if next != Some(&number) {
                    let what = format!("{me} takes frame {number} of {from}, next is {next:?}");
                    return Err(Violation::new(EXACTLY_ONCE, what));
                }
                *came += 1;
            }
            Note::Body(from, number) => {
                if !self.bodies.insert(((from, me), number)) {
                    let what = format!("{me} gets body {number} of {from} twice");
                    return Err(Violation::new(EXACTLY_ONCE, what));
                }
            }
            Note::Ended(peer, ended) => drop(self.ended.insert((me, peer), ended)),
            Note::Broken(what) => {
                return Err(Violation::new(RULES, format!("{me}: {what}")));
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        let has_left = |pair| self.ended.get(&pair).is_some_and(|ended| ended.left);
        self.pairs().all(has_left)
    }

    fn finish(
        &mut self,
        _: Time,
        lives: &[Option<Speaker>],
        _: &mut Marks,
    ) -> Result<(), Violation> {
        for (pair, ended) in &self.ended {
            self.check_account(pair, ended)?;
        }
        for (one, two) in self.pairs() {
            let speaker = lives.get(one.machine.index()).and_then(Option::as_ref);
            let mut sessions = speaker.into_iter().flat_map(Speaker::sessions);
            let found = sessions.find(|(peer, _)| peer.machine == two.machine);
            if found != Some((two, Some(End::Left))) {
                let what = format!("{one} and {two}: {found:?}");
                return Err(Violation::new(TOGETHER, what));
            }
            let accepted = self.accepted.get(&(one, two)).map_or(0, Vec::len);
            let came = self.delivered.get(&(one, two)).copied().unwrap_or(0);
            if came != accepted {
                let what = format!("{came} of {accepted} came from {one} to {two}");
                return Err(Violation::new(TOGETHER, what));
            }
        }
        Ok(())
    }
}
