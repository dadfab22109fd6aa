//! What must hold of introductions, whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mizzen_proto::boot::Unreachable;
use mizzen_proto::id::ProcessId;

use super::message::{Answer, Note};
use super::plan::Plan;
use crate::ids::Place;
use crate::world::{Truth, Violation};

pub(super) const ANSWERED: &str = "every question is answered once the network is whole";
pub(super) const ONCE: &str = "no question is answered twice";
pub(super) const LIVES: &str =
    "no answer names a life that was known to have ended when it was asked for";
pub(super) const TRUE: &str = "who cannot be reached is gone, in the way that is told";
pub(super) const BOUNDS: &str = "tables are bounded";

#[derive(Debug)]
pub(super) struct Oracle {
    plan: Rc<Plan>,
    alive: BTreeSet<ProcessId>,
    left: BTreeSet<u32>,
    /// Who is said not to come back.
    dead: BTreeSet<u32>,
    /// How often each life asked for each rank, and how often it was told of it.
    asked: BTreeMap<(ProcessId, u32), u32>,
    told: BTreeMap<(ProcessId, u32), u32>,
    /// How often a life was introduced to another.
    met: BTreeMap<(ProcessId, ProcessId), u32>,
    /// For each life and rank that it asks for, the life that the agent knew of when it took the latest question.
    known: BTreeMap<(ProcessId, u32), u32>,
}

impl Oracle {
    pub(super) fn new(plan: Rc<Plan>) -> Self {
        Self {
            plan,
            alive: BTreeSet::new(),
            left: BTreeSet::new(),
            dead: BTreeSet::new(),
            asked: BTreeMap::new(),
            told: BTreeMap::new(),
            met: BTreeMap::new(),
            known: BTreeMap::new(),
        }
    }

    pub(super) fn handle_truth(&mut self, truth: Truth) -> Result<(), Violation> {
        match truth {
            Truth::Started(place) => {
                let Some(process) = self.plan.process(place) else {
                    return Ok(());
                };
                self.alive.insert(process);
                if self.dead.contains(&process.rank.0) {
                    let what = format!("{process} is started, and was told to be dead");
                    return Err(Violation::new(TRUE, what));
                }
            }
            Truth::Ended(place) => {
                if let Some(process) = self.plan.process(place) {
                    self.alive.remove(&process);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn handle_note(&mut self, place: Place, note: Note) -> Result<(), Violation> {
        let me = self.plan.process(place);
        match (note, me) {
            (Note::Takes(process, target, life), _) => {
                self.known.insert((process, target), life);
                Ok(())
            }
            (Note::Tells(process, Answer::Address(of)), _) => self.check_life(process, of),
            (Note::Tells(..), _) => Ok(()),
            (Note::Grown(entries), _) => {
                let what = format!("{place} keeps {entries} entries");
                Err(Violation::new(BOUNDS, what))
            }
            (Note::Asks(target), Some(me)) => {
                *self.asked.entry((me, target)).or_default() += 1;
                Ok(())
            }
            (Note::Leaves, Some(me)) => {
                self.left.insert(me.rank.0);
                Ok(())
            }
            (Note::Hears(answer), Some(me)) => self.handle_answer(me, answer),
            (_, None) => Ok(()),
        }
    }

    fn handle_answer(&mut self, me: ProcessId, answer: Answer) -> Result<(), Violation> {
        let rank = match answer {
            Answer::Peer(peer) => return self.handle_met(me, peer),
            Answer::Address(process) => process.rank.0,
            Answer::Unreachable(rank, reason) => {
                self.check_reason(me, rank, reason)?;
                rank
            }
        };
        let told = self.told.entry((me, rank)).or_default();
        *told += 1;
        let asked = self.asked.get(&(me, rank)).copied().unwrap_or(0);
        if *told > asked {
            let what = format!("{me} asked {asked} times for rank {rank}, and was told {told}");
            return Err(Violation::new(ONCE, what));
        }
        Ok(())
    }

    /// All who wait are told with one answer: it must do for the last question.
    fn check_life(&self, asker: ProcessId, of: ProcessId) -> Result<(), Violation> {
        let known = self.known.get(&(asker, of.rank.0)).copied().unwrap_or(0);
        if of.incarnation.0 < known {
            let what = format!("{asker} is told of {of}; life {known} was known of");
            return Err(Violation::new(LIVES, what));
        }
        Ok(())
    }

    /// Two are introduced as often as one of them asked, and not more often.
    fn handle_met(&mut self, me: ProcessId, peer: ProcessId) -> Result<(), Violation> {
        let met = self.met.entry((me, peer)).or_default();
        *met += 1;
        let asked = |one: ProcessId, other: ProcessId| {
            let asked = self.asked.get(&(one, other.rank.0));
            asked.copied().unwrap_or(0)
        };
        let asked = asked(me, peer) + asked(peer, me);
        if *met > asked {
            let what = format!("{me} and {peer} asked {asked} times, and were introduced {met}");
            return Err(Violation::new(ONCE, what));
        }
        Ok(())
    }

    fn check_reason(
        &mut self,
        me: ProcessId,
        rank: u32,
        reason: Unreachable,
    ) -> Result<(), Violation> {
        let lives = self.alive.iter().any(|process| process.rank.0 == rank);
        let holds = match reason {
            Unreachable::NoSuchRank => rank >= self.plan.size() || rank == me.rank.0,
            Unreachable::Left => self.left.contains(&rank),
            Unreachable::Dead => {
                self.dead.insert(rank);
                !lives
            }
        };
        match holds {
            true => Ok(()),
            false => {
                let what = format!("{me} is told {reason:?} of rank {rank}");
                Err(Violation::new(TRUE, what))
            }
        }
    }
}
