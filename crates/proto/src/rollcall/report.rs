//! What all answers together say.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ends::Graph;
use super::present::{Kind, Operation, Place, Present, Wait};
use crate::boot::Condition;

/// What is known of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attendance {
    /// Which rank.
    pub rank: u32,
    /// How it is, apart from its waits.
    alone: Standing,
    /// What it answered.
    pub present: Present,
}

/// How a rank is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// A signal has stopped it, or a debugger.
    Stopped,
    /// It is in a call of the operating system that cannot be interrupted.
    Stuck,
    /// It runs, and does not answer.
    Silent,
    /// Its host does not answer.
    Unheard,
    /// It has not joined the job.
    Unjoined,
    /// It has left the job, or ended.
    Left,
    /// No thread of it waits for others, and some thread runs.
    Computes,
    /// No thread of it waits for others, and none runs: it waits for something else.
    Sleeps,
    /// Threads of it wait.
    Waits,
}

/// Why nothing happens in a job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Report {
    /// How long the longest wait has been, in milliseconds; nothing if nobody waits.
    pub longest: Option<u64>,
    /// Where the waiting ends, the odd one out first.
    pub ends: Vec<End>,
    /// Ranks that do the same, those nearest to the first end first.
    pub classes: Vec<Class>,
}

/// What others wait for in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// What it is.
    pub cause: Cause,
    /// Its ranks: one; those of a cycle, or of a session; or several that wait for the same.
    pub ranks: Vec<u32>,
    /// Who waits for whom in a cycle, or the wait of its rank, if it waits.
    pub steps: Vec<Step>,
    /// For how long a session has been down, in milliseconds.
    pub down: Option<u64>,
    /// All ranks that wait for it in the end.
    pub held: Vec<u32>,
}

/// What can hold others up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The connection between two ranks is down.
    Session,
    /// Ranks that wait for each other.
    Cycle,
    /// A rank, and how it is.
    Rank(Standing),
    /// What carries out the calls of a rank, and how that is.
    Service(Standing),
}

/// A wait, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Who waits.
    pub rank: u32,
    /// For what.
    pub wait: Wait,
}

/// Ranks that do the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Who.
    pub ranks: Vec<u32>,
    /// How they are.
    pub standing: Standing,
    /// What they wait for, as the one that has waited longest says it.
    pub wait: Option<Wait>,
    /// The shortest of these waits, in milliseconds.
    pub shortest: u64,
}

impl Attendance {
    /// What is known of a rank whose host says how it is. `present`: what it answered itself.
    #[must_use]
    pub fn new(rank: u32, condition: Condition, present: Option<Present>) -> Self {
        let alone = match (condition, &present) {
            (Condition::Stopped, _) => Standing::Stopped,
            (Condition::Ended, _) => Standing::Left,
            (Condition::Stuck, _) => Standing::Stuck,
            (_, None) => Standing::Silent,
            (Condition::Computes, Some(_)) => Standing::Computes,
            (Condition::Sleeps | Condition::Unknown, Some(_)) => Standing::Sleeps,
        };
        Self {
            rank,
            alone,
            present: present.unwrap_or_default(),
        }
    }

    /// What is known of a rank that nobody can be asked about.
    #[must_use]
    pub fn absent(rank: u32, standing: Standing) -> Self {
        Self {
            rank,
            alone: standing,
            present: Present::default(),
        }
    }

    /// How it is.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.standing_with(self.present.waits.first())
    }

    /// How it is, or a part of it that has this wait.
    fn standing_with(&self, wait: Option<&Wait>) -> Standing {
        match (wait, self.alone) {
            // Its waits are those of before it was stopped.
            (_, Standing::Stopped | Standing::Left) | (None, _) => self.alone,
            (Some(_), _) => Standing::Waits,
        }
    }
}

impl Standing {
    /// Whether a rank that is so makes nothing of a connection to it.
    fn is_unable(self) -> bool {
        !matches!(self, Self::Computes | Self::Sleeps | Self::Waits)
    }
}

impl Report {
    /// What these answers say, one of each rank.
    ///
    /// ```
    /// use mizzen_proto::boot::Condition;
    /// use mizzen_proto::rollcall::{Attendance, Cause, Kind, Present, Report, Standing, Wait};
    ///
    /// let wait = Wait {
    ///     kind: Kind::Message,
    ///     what: "for a message of rank 1".to_owned(),
    ///     whom: vec![1],
    ///     at: None,
    ///     millis: 12_000,
    ///     thread: "main".to_owned(),
    ///     serves: false,
    ///     operation: None,
    /// };
    /// let waits = Present { waits: vec![wait], ..Present::default() };
    /// let report = Report::of(&[
    ///     Attendance::new(0, Condition::Sleeps, Some(waits)),
    ///     Attendance::new(1, Condition::Stopped, None),
    /// ]);
    /// assert_eq!(report.ends[0].cause, Cause::Rank(Standing::Stopped));
    /// assert_eq!((&report.ends[0].ranks[..], &report.ends[0].held[..]), (&[1][..], &[0][..]));
    /// ```
    #[must_use]
    pub fn of(all: &[Attendance]) -> Self {
        let map = Map::new(all);
        let mut ends = map.ends();
        ends.sort_by_key(|end| {
            let own = usize::from(end.steps.len() == 1);
            let weight = end.held.len() + own.max(end.steps.len());
            (core::cmp::Reverse(weight), end.cause, end.ranks.clone())
        });
        let waits = all.iter().flat_map(|one| &one.present.waits);
        Self {
            longest: waits.map(|wait| wait.millis).max(),
            classes: map.classes(ends.first()),
            ends,
        }
    }

    /// Whether another report, of another time, shows the same hang.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let shape = |report: &Self| -> Vec<_> {
            let ends = report.ends.iter().take(COMPARED);
            ends.map(|end| (end.cause, end.ranks.clone(), end.held.clone()))
                .collect()
        };
        shape(self) == shape(other)
    }
}

/// How many ends are looked at to see whether two reports say the same: the first ones are what is printed.
const COMPARED: usize = 8;

/// The parts of a rank that wait on their own: its own threads, and those that carry out calls and tasks.
const PARTS: usize = 2;

/// The graph of ranks and sessions.
struct Map<'a> {
    all: &'a [Attendance],
    places: BTreeMap<u32, usize>,
    graph: Graph,
    /// The nodes of sessions that are down and waited for, behind those of ranks; the lower rank first.
    sessions: BTreeMap<(u32, u32), (usize, u64)>,
}

impl<'a> Map<'a> {
    fn new(all: &'a [Attendance]) -> Self {
        let places = (0..).zip(all).map(|(place, one)| (one.rank, place));
        let mut map = Self {
            all,
            places: places.collect(),
            graph: Graph::new(all.len() * PARTS),
            sessions: BTreeMap::new(),
        };
        let mut down: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for one in all {
            for session in &one.present.down {
                let since = down.entry(pair(one.rank, session.rank)).or_default();
                *since = (*since).max(session.millis);
            }
        }
        for (place, one) in all.iter().enumerate() {
            for wait in &one.present.waits {
                let from = map.node(place, wait.serves);
                for whom in wait.whom.iter().filter(|whom| **whom != one.rank) {
                    map.add(from, *whom, wait.kind, &down);
                }
            }
        }
        map
    }

    /// The node of a rank, or of what carries out its calls and tasks.
    fn node(&self, place: usize, serves: bool) -> usize {
        place + if serves { self.all.len() } else { 0 }
    }

    /// Whose node it is; none: a session's.
    fn of(&self, node: usize) -> Option<&'a Attendance> {
        let count = self.all.len();
        (node < count * PARTS).then(|| &self.all[node % count])
    }

    /// The waits of a node.
    fn waits_of(&self, node: usize) -> impl Iterator<Item = &'a Wait> {
        let serves = node >= self.all.len();
        let waits = self.of(node).map(|one| &one.present.waits[..]);
        let waits = waits.unwrap_or_default().iter();
        waits.filter(move |wait| wait.serves == serves)
    }

    fn add(&mut self, from: usize, whom: u32, kind: Kind, down: &BTreeMap<(u32, u32), u64>) {
        let place = self.places.get(&whom).copied();
        let (Some(place), Some(one)) = (place, self.of(from)) else {
            return;
        };
        // A call is answered by threads of their own, as long as the process does anything at all.
        let is_able = !self.all[place].alone.is_unable();
        let to = self.node(place, kind == Kind::Answer && is_able);
        let between = pair(one.rank, whom);
        let broken = down.get(&between);
        // To one that stands still, the connection is lost sooner or later.
        match broken.filter(|_| is_able) {
            None => self.graph.add(from, to),
            Some(millis) => {
                let graph = &mut self.graph;
                let session = self.sessions.entry(between);
                let (node, _) = *session.or_insert_with(|| (graph.add_node(), *millis));
                graph.add(from, node);
            }
        }
    }

    fn ends(&self) -> Vec<End> {
        let mut ends = Vec::new();
        for (between, (node, millis)) in &self.sessions {
            ends.push(End {
                cause: Cause::Session,
                ranks: vec![between.0, between.1],
                steps: vec![],
                down: Some(*millis),
                held: self.held(&[*node]),
            });
        }
        for cycle in self.graph.cycles() {
            let next = cycle.iter().cycle().skip(1);
            let steps = cycle.iter().zip(next);
            let steps = steps.filter_map(|(from, to)| self.step(*from, *to));
            ends.push(End {
                cause: Cause::Cycle,
                ranks: self.ranks(cycle.iter().copied()),
                steps: steps.collect(),
                down: None,
                held: self.held(&cycle),
            });
        }
        let mut alone: Vec<End> = Vec::new();
        for node in 0..self.all.len() * PARTS {
            let Some(one) = self.of(node) else {
                continue;
            };
            let is_awaited = self.graph.is_awaited(node);
            let first = self.waits_of(node).next();
            if self.graph.waits(node) || !is_awaited && first.is_none() {
                continue;
            }
            let standing = one.standing_with(first);
            let cause = match node < self.all.len() || !is_awaited {
                true => Cause::Rank(standing),
                false => Cause::Service(standing),
            };
            let step = |wait: &Wait| Step {
                rank: one.rank,
                wait: wait.clone(),
            };
            let end = End {
                cause,
                ranks: vec![one.rank],
                steps: first.map(step).into_iter().collect(),
                down: None,
                held: self.held(&[node]),
            };
            // Many that wait for the same, and for nobody in particular, are one.
            let is_alike = |other: &&mut End| {
                other.held.is_empty() && end.held.is_empty() && is_same(&other.steps, &end.steps)
            };
            match alone.iter_mut().find(is_alike) {
                Some(other) => other.ranks.extend(end.ranks),
                None => alone.push(end),
            }
        }
        ends.extend(alone);
        ends
    }

    /// The ranks that wait for these in the end.
    fn held(&self, nodes: &[usize]) -> Vec<u32> {
        let far = self.graph.distances(nodes);
        let held = far.iter().filter(|(_, far)| **far > 0);
        let mut held = self.ranks(held.map(|(node, _)| *node));
        held.sort_unstable();
        held.dedup();
        held
    }

    /// The ranks of nodes; sessions are none.
    fn ranks(&self, nodes: impl Iterator<Item = usize>) -> Vec<u32> {
        let ranks = nodes.filter_map(|node| self.of(node));
        ranks.map(|one| one.rank).collect()
    }

    /// The wait of one rank for another.
    fn step(&self, from: usize, to: usize) -> Option<Step> {
        let whom = self.of(to)?.rank;
        let mut waits = self.waits_of(from);
        let wait = waits.find(|wait| wait.whom.contains(&whom))?;
        Some(Step {
            rank: self.of(from)?.rank,
            wait: wait.clone(),
        })
    }

    fn nodes_of(&self, end: &End) -> Vec<usize> {
        if let (Cause::Session, [a, b]) = (end.cause, &end.ranks[..]) {
            let session = self.sessions.get(&pair(*a, *b));
            return session.map(|(node, _)| *node).into_iter().collect();
        }
        let serves = matches!(end.cause, Cause::Service(_));
        let places = end.ranks.iter().filter_map(|rank| self.places.get(rank));
        places.map(|place| self.node(*place, serves)).collect()
    }

    fn classes(&self, first: Option<&End>) -> Vec<Class> {
        let nodes = first.map_or_else(Vec::new, |end| self.nodes_of(end));
        let far = self.graph.distances(&nodes);
        let mut classes: BTreeMap<Key<'_>, (usize, Class)> = BTreeMap::new();
        for (place, one) in self.all.iter().enumerate() {
            let waits = one.present.waits.iter().map(Some);
            let none = one.present.waits.is_empty().then_some(None);
            for wait in waits.chain(none) {
                let node = self.node(place, wait.is_some_and(|wait| wait.serves));
                let far = far.get(&node).copied().unwrap_or(usize::MAX);
                let standing = one.standing_with(wait);
                let (nearest, class) = classes
                    .entry(Key::of(standing, wait))
                    .or_insert_with(|| (far, Class::new(standing)));
                *nearest = (*nearest).min(far);
                class.add(one.rank, wait);
            }
        }
        let mut classes: Vec<(usize, Class)> = classes.into_values().collect();
        classes.sort_by_key(|(far, class)| {
            let longest = class.wait.as_ref().map_or(0, |wait| wait.millis);
            (*far, core::cmp::Reverse(longest), class.ranks[0])
        });
        classes.into_iter().map(|(_, class)| class).collect()
    }
}

/// What ranks of one class have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    standing: Standing,
    wait: Option<Alike<'a>>,
}

/// What waits that are alike have in common.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike<'a> {
    kind: Kind,
    what: &'a str,
    whom: &'a [u32],
    at: &'a Option<Place>,
    operation: &'a Option<Operation>,
}

impl<'a> Key<'a> {
    fn of(standing: Standing, wait: Option<&'a Wait>) -> Self {
        let wait = wait.map(|wait| Alike {
            kind: wait.kind,
            what: &wait.what,
            whom: &wait.whom,
            at: &wait.at,
            operation: &wait.operation,
        });
        Self { standing, wait }
    }
}

impl Class {
    fn new(standing: Standing) -> Self {
        Self {
            ranks: vec![],
            standing,
            wait: None,
            shortest: 0,
        }
    }

    fn add(&mut self, rank: u32, wait: Option<&Wait>) {
        if self.ranks.last() != Some(&rank) {
            self.ranks.push(rank);
        }
        let Some(wait) = wait else {
            return;
        };
        match &mut self.wait {
            None => (self.wait, self.shortest) = (Some(wait.clone()), wait.millis),
            Some(known) => {
                self.shortest = self.shortest.min(wait.millis);
                if known.millis < wait.millis {
                    *known = wait.clone();
                }
            }
        }
    }
}

fn is_same(a: &[Step], b: &[Step]) -> bool {
    let key = |step: &Step| {
        let Wait { kind, what, at, .. } = &step.wait;
        (*kind, what.clone(), at.clone(), step.wait.operation.clone())
    };
    a.iter().map(key).eq(b.iter().map(key))
}

fn pair(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}
