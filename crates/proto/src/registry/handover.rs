//! From one view to the next: what goes to new holders, and when they may begin.
//!
//! | an agent that applies another view | says `Ready` when |
//! | --- | --- |
//! | answers nothing any more as a holder, and forgets all leases and remembered answers | at once |
//! | hands each name that it keeps or owns to the holder, unless that was the holder before | all is taken |
//! | forgets the names that it has not to keep any more | all is taken |
//!
//! The coordinator, the first agent of the view, says `Established` when all of the view are ready. Why nothing is answered twice:
//! docs/design/names-at-agents.md.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::front::Owned;
use super::keeping::Kept;
use super::outbox::{Outbox, Repeat, Timer};
use super::view::Placement;
use super::{Bound, FencingNumber, MAX_HANDED, MAX_KEPT, Record, Said};
use crate::id::Address;
use crate::membership::AgentId;
use crate::time::Time;

#[derive(Debug, Default)]
pub(super) struct Handover {
    /// What the new holders have not taken.
    batches: BTreeMap<u64, Batch>,
    last_batch: u64,
    /// Binds that were under way: done when the view is established, if the name is free or its owner's.
    wishes: BTreeSet<(Arc<str>, Address)>,
    /// What is forgotten when all is taken.
    leaving: Vec<Arc<str>>,
    ready: Option<Repeat>,
    /// At the coordinator: who is ready.
    all_ready: BTreeSet<AgentId>,
}

#[derive(Debug)]
struct Batch {
    to: AgentId,
    records: Vec<Record>,
    repeat: Repeat,
}

/// What came before: where it was, whether it was established, and what our processes were about to bind.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) placement: Option<Placement>,
    pub(super) established: bool,
    pub(super) binds: Vec<(Arc<str>, Address)>,
}

impl Handover {
    /// The view has changed: `out` knows the new one.
    pub(super) fn begin(
        &mut self,
        before: &Before,
        kept: &mut Kept,
        owned: &Owned,
        out: &mut Outbox,
        now: Time,
    ) {
        self.batches.clear();
        self.wishes.clear();
        self.leaving.clear();
        self.all_ready.clear();
        self.ready = None;
        let me = out.me;
        let mut handed: BTreeMap<AgentId, Vec<Record>> = BTreeMap::new();
        let mut names: BTreeMap<Arc<str>, Bound> = kept
            .iter()
            .map(|(name, bound, _)| (Arc::clone(name), *bound))
            .collect();
        for (name, bound) in owned.iter() {
            let known = names.entry(Arc::clone(name)).or_insert(*bound);
            *known = (*known).max(*bound);
        }
        for (name, bound) in names {
            let holders = out.holders(&name);
            let Some(to) = holders.first().copied() else {
                continue;
            };
            let earlier = before.holders(&name);
            if to == me {
                kept.merge(&name, bound);
                if earlier != holders {
                    kept.doubt(&name);
                }
            } else if earlier.first() != Some(&to) {
                let name = Arc::clone(&name);
                handed.entry(to).or_default().push(Record { name, bound });
            }
            if !holders.contains(&me) {
                self.leaving.push(name);
            }
        }
        for (name, address) in &before.binds {
            match out.holder(name) {
                Some(to) if to == me => self.wish(name, *address),
                // Who holds the name as before knows what it did.
                Some(to) if before.holders(name).first() != Some(&to) => {
                    let (name, number) = (Arc::clone(name), FencingNumber::WISH);
                    let bound = Bound {
                        number,
                        address: *address,
                    };
                    handed.entry(to).or_default().push(Record { name, bound });
                }
                _ => {}
            }
        }
        for (to, records) in handed {
            for records in records.chunks(MAX_HANDED) {
                self.last_batch += 1;
                let records = records.to_vec();
                let repeat = Repeat::new(&out.pace, now);
                let batch = Batch {
                    to,
                    records,
                    repeat,
                };
                batch.tell(self.last_batch, out);
                self.batches.insert(self.last_batch, batch);
            }
        }
        self.go_on(kept, out, now);
    }

    /// Takes what another hands over.
    pub(super) fn take(&mut self, record: &Record, kept: &mut Kept) {
        if record.bound.number == FencingNumber::WISH {
            self.wish(&record.name, record.bound.address);
        } else {
            kept.merge(&record.name, record.bound);
        }
    }

    /// The binds that were under way, when all is here.
    pub(super) fn take_wishes(&mut self) -> BTreeSet<(Arc<str>, Address)> {
        std::mem::take(&mut self.wishes)
    }

    /// A batch was taken.
    pub(super) fn handle_handed(
        &mut self,
        from: AgentId,
        number: u64,
        kept: &mut Kept,
        out: &mut Outbox,
        now: Time,
    ) {
        if self.batches.get(&number).is_some_and(|one| one.to == from) {
            self.batches.remove(&number);
            self.go_on(kept, out, now);
        }
    }

    /// An agent is ready. Returns whether all are.
    pub(super) fn handle_ready(&mut self, from: AgentId, out: &mut Outbox) -> bool {
        let Some(placement) = &out.placement else {
            return false;
        };
        if placement.coordinator() != Some(out.me) || !placement.has(from) {
            return false;
        }
        if out.established {
            // Its word came late, or ours did not come.
            out.send(from, Said::Established);
            return false;
        }
        self.all_ready.insert(from);
        self.all_ready.len() == placement.agents().len()
    }

    pub(super) fn handle_timer(&mut self, timer: &Timer, out: &mut Outbox, now: Time) {
        match timer {
            Timer::Batch(number) => {
                if let Some(batch) = self.batches.get_mut(number) {
                    if batch.repeat.due <= now {
                        batch.repeat = batch.repeat.next(&out.pace, now);
                        batch.tell(*number, out);
                    }
                }
            }
            Timer::Ready => {
                let due = self.ready.filter(|one| one.due <= now && !out.established);
                if let Some(repeat) = due {
                    self.say_ready(repeat.next(&out.pace, now), out);
                }
            }
            _ => {}
        }
    }

    /// Whether this agent has handed over everything.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.is_some()
    }

    fn wish(&mut self, name: &Arc<str>, address: Address) {
        if self.wishes.len() < MAX_KEPT {
            self.wishes.insert((Arc::clone(name), address));
        }
    }

    fn go_on(&mut self, kept: &mut Kept, out: &mut Outbox, now: Time) {
        if !self.batches.is_empty() || self.ready.is_some() {
            return;
        }
        for name in self.leaving.drain(..) {
            kept.drop_name(&name);
        }
        self.say_ready(Repeat::new(&out.pace, now), out);
    }

    fn say_ready(&mut self, repeat: Repeat, out: &mut Outbox) {
        self.ready = Some(repeat);
        let coordinator = out.placement.as_ref().and_then(Placement::coordinator);
        if let Some(coordinator) = coordinator {
            out.send(coordinator, Said::Ready);
        }
        if coordinator != Some(out.me) {
            out.set_timer(repeat.due, Timer::Ready);
        }
    }
}

impl Before {
    /// Who kept a name, if that is known to have been so at all.
    fn holders(&self, name: &str) -> Vec<AgentId> {
        let placement = self.placement.as_ref().filter(|_| self.established);
        placement.map_or_else(Vec::new, |placement| placement.holders(name))
    }
}

impl Batch {
    fn tell(&self, number: u64, out: &mut Outbox) {
        let records = self.records.clone();
        out.send(self.to, Said::Hand { number, records });
        out.set_timer(self.repeat.due, Timer::Batch(number));
    }
}
