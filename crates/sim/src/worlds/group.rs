//! Groups (`mizzen_proto::group`): members that carry operations out together, over links that delay, and the death of any of them at any step.
//!
//! 1 to 64 members anywhere do a few operations one after another, each in any of its ways, while messages are late and members slow; who is ahead sends what
//! others want only later. Without a death, all come to what the reference says, and nothing is left over. With one, nobody waits for ever, all name who was
//! lost, and nobody has done an operation that waits for all after the first that failed.
//!
//! The schedules are the real ones. Who takes what, tells whom, and when, is as in `crates/mizzen/src/group/seat.rs`, which has threads and mailboxes.

mod member;
mod packet;
mod plan;

use std::collections::BTreeSet;
use std::rc::Rc;

use mizzen_proto::time::Time;

use self::member::Member;
use self::packet::{Cause, Note};
use self::plan::{Deaths, Plan};
use crate::campaign::Scenario;
use crate::ids::Place;
use crate::kernel::run;
use crate::symbols::Element;
use crate::tally::Marks;
use crate::world::{Layout, Truth, Violation, World};

/// What members do together.
pub const SCENARIO: Scenario = Scenario {
    name: "group",
    about: "collective operations with delays and deaths: as the reference says, or failed at all by the same loss",
    expected: &[],
    sometimes: &[
        "all was done",
        "a member was three operations ahead",
        "something came before it was wanted",
        "a post waited for its reader",
        "a group was in several clusters",
        "a group had more than 32 members",
        "a member died at a step",
        "a machine crashed",
        "a host lost power",
        "a survivor missed something",
        "a survivor was told",
        "a survivor saw another leave first",
        "an operation was done at some and failed at others",
        "all was done although one had died",
        "a host paused",
        "a way was cut",
    ],
    run: |seed, record| run(Groups::new(seed), seed, record),
};

const REFERENCE: &str = "as the reference says";
const NOBODY_FAILS: &str = "nobody fails where nobody dies";
const NOBODY_HANGS: &str = "nobody waits for ever";
const NOTHING_LEFT: &str = "nothing is left over";
const SAME_LOSS: &str = "all name who was lost";
const CUT: &str = "nobody is past what failed";
const DONE: &str = "what nobody misses anything for is done";

#[derive(Debug)]
struct Groups {
    plan: Rc<Plan>,
    dead: BTreeSet<u32>,
    ends: Vec<End>,
    /// How many have not ended, of those that live.
    under_way: usize,
    /// What the first who was done had, by operation: all have the same, where all end alike.
    results: Vec<Option<Vec<Element>>>,
}

/// What became of a member.
#[derive(Debug, Default, Clone)]
struct End {
    /// How many operations it did.
    done: usize,
    /// Whom it named when the next one failed, and how it knew.
    lost: Option<(u32, Cause)>,
    has_ended: bool,
}

impl Groups {
    fn new(seed: u64) -> Self {
        let plan = Rc::new(Plan::new(seed));
        Self {
            dead: BTreeSet::new(),
            ends: vec![End::default(); plan.size() as usize],
            under_way: plan.size() as usize,
            results: vec![None; plan.steps.len()],
            plan,
        }
    }

    fn handle_done(
        &mut self,
        me: u32,
        operation: usize,
        data: Vec<Element>,
    ) -> Result<(), Violation> {
        let task = &self.plan.steps[operation].task;
        let reference = task.check(me, &data);
        reference.map_err(|what| Violation::new(REFERENCE, what))?;
        if task.ends_alike() {
            let first = self.results[operation].get_or_insert_with(|| data.clone());
            if *first != data {
                let what = format!("member {me} has other bits than others after {operation}");
                return Err(Violation::new(REFERENCE, what));
            }
        }
        self.ends[me as usize].done = operation + 1;
        Ok(())
    }

    fn survivors(&self) -> impl Iterator<Item = (u32, &End)> {
        let all = (0..).zip(&self.ends);
        all.filter(|(member, _)| !self.dead.contains(member))
    }

    /// The first operation that failed at somebody, and what the others have done since.
    fn check_cut(&self, marks: &mut Marks) -> Result<(), Violation> {
        let failed = self.survivors().filter(|(_, end)| end.lost.is_some());
        let Some(first) = failed.map(|(_, end)| end.done).min() else {
            marks.add("all was done although one had died");
            return Ok(());
        };
        // Who died since may have told others before.
        let missed = |end: &&End| matches!(end.lost, Some((_, Cause::Missed)));
        let missed = self.ends.iter().filter(missed).map(|end| end.done).min();
        if missed.is_none_or(|missed| first < missed) {
            let what = format!("{first} failed, but nothing was missed before {missed:?}");
            return Err(Violation::new(DONE, what));
        }
        for (member, end) in self.survivors() {
            if end.done > first {
                marks.add("an operation was done at some and failed at others");
            }
            let since = self.plan.steps.iter().enumerate().take(end.done);
            let mut since = since.skip(first + 1);
            if let Some((number, step)) = since.find(|(_, step)| step.task.waits_for_all()) {
                let what = format!(
                    "member {member} has done {number}, {:?}, and {first} failed",
                    step.operation
                );
                return Err(Violation::new(CUT, what));
            }
        }
        Ok(())
    }
}

impl World for Groups {
    type Machine = Member;

    fn layout(&self) -> Layout {
        self.plan.layout()
    }

    fn machine(&mut self, place: Place) -> Member {
        Member::new(place.machine.0, &self.plan)
    }

    fn handle_truth(&mut self, _: Time, truth: Truth) -> Result<(), Violation> {
        if let Truth::Ended(place) = truth {
            let member = place.machine.0;
            self.dead.insert(member);
            self.under_way -= usize::from(!self.ends[member as usize].has_ended);
        }
        Ok(())
    }

    fn handle_note(&mut self, _: Time, place: Place, note: Note) -> Result<(), Violation> {
        let me = place.machine.0;
        match note {
            Note::Done(operation, data) => self.handle_done(me, operation, data),
            Note::Failed {
                operation,
                lost,
                cause,
            } => {
                if self.plan.deaths == Deaths::None {
                    let what = format!("member {me} lost member {lost} in {operation}");
                    return Err(Violation::new(NOBODY_FAILS, what));
                }
                self.ends[me as usize].lost = Some((lost, cause));
                Ok(())
            }
            Note::Ended => {
                self.ends[me as usize].has_ended = true;
                self.under_way -= 1;
                Ok(())
            }
        }
    }

    fn is_done(&self) -> bool {
        self.under_way == 0
    }

    fn finish(
        &mut self,
        _: Time,
        lives: &[Option<Member>],
        marks: &mut Marks,
    ) -> Result<(), Violation> {
        self.plan.mark(marks);
        let waits = self.survivors().find(|(_, end)| !end.has_ended);
        if let Some((member, end)) = waits {
            let what = format!(
                "member {member} of {} after {} of {} operations",
                self.plan.size(),
                end.done,
                self.plan.steps.len()
            );
            return Err(Violation::new(NOBODY_HANGS, what));
        }
        for (member, end) in self.survivors() {
            match end.lost {
                Some((lost, _)) if !self.dead.contains(&lost) => {
                    let what = format!("member {member} lost member {lost}, which lives");
                    return Err(Violation::new(SAME_LOSS, what));
                }
                None if end.done < self.plan.steps.len() => {
                    let what = format!("member {member} ended after {}", end.done);
                    return Err(Violation::new(NOBODY_HANGS, what));
                }
                _ => (),
            }
        }
        if !self.dead.is_empty() {
            return self.check_cut(marks);
        }
        let count = |of: fn(&Member) -> u64| lives.iter().flatten().map(of).sum::<u64>();
        let (sent, taken) = (count(Member::sent), count(Member::taken));
        if sent != taken {
            let what = format!("{sent} messages were sent, and {taken} taken");
            return Err(Violation::new(NOTHING_LEFT, what));
        }
        marks.add("all was done");
        Ok(())
    }
}
