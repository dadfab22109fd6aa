//! What must hold of names, whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use mizzen_proto::id::{Address, ProcessId};
use mizzen_proto::membership::{AgentId, Change, Entry, HostId, Members, News, Standing};
use mizzen_proto::registry::{Bound, FencingNumber, Outcome, Registry, Sizes};
use mizzen_proto::time::Time;

use super::super::calls::{Call, NameNote, Return, name};
use super::super::plan::Plan;
use super::object::{OneName, Operation};
use crate::ids::Place;
use crate::linear::{Done, Judgement, judge};
use crate::tally::Marks;
use crate::world::{Truth, Violation};

pub(super) const LINEAR: &str = "names are linear";
pub(super) const OWNER: &str = "a name has one owner";
pub(super) const GROWS: &str = "fencing numbers grow";
pub(super) const COPIES: &str = "what is answered is kept by three";
pub(super) const ENDS: &str = "no call waits for ever";
pub(super) const DEAD: &str = "what the dead bound is free at last";
pub(super) const BOUNDS: &str = "tables are bounded";

#[derive(Debug)]
pub(in super::super) struct Oracle {
    plan: Rc<Plan>,
    log: Members,
    open: BTreeMap<(Place, u64), Open>,
    history: BTreeMap<u32, Vec<Done<Operation>>>,
    /// Addresses of each life that a name may mean.
    may_mean: BTreeMap<ProcessId, BTreeSet<(u32, Address)>>,
    /// Whose names are free: pronounced, or known to us to have ended.
    gone: BTreeSet<ProcessId>,
    /// Who may believe that it owns a name, and since when.
    owners: BTreeMap<u32, (Address, Time)>,
    /// The highest number of each name that somebody was told.
    numbers: BTreeMap<u32, FencingNumber>,
    /// What agents keep, or kept once.
    kept: BTreeSet<(AgentId, u32, FencingNumber)>,
    /// Agents that have ended or were pronounced: nobody gets anything of them any more.
    ended: BTreeSet<AgentId>,
    /// How many binds may have been lost with all who kept them.
    lost: u32,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    called: Time,
    /// It may take effect since then: since it was called, or since what it had done was lost.
    since: Time,
    number: u32,
    call: Call,
    /// The highest that was told before.
    floor: Option<FencingNumber>,
    /// Whether it moves a name that it was told to own.
    moves: bool,
    /// What others may be told before who asked is, and since when.
    held: Option<(Time, Bound)>,
}

impl Oracle {
    pub(in super::super) fn new(plan: Rc<Plan>) -> Self {
        Self {
            plan,
            log: Members::default(),
            open: BTreeMap::new(),
            history: BTreeMap::new(),
            may_mean: BTreeMap::new(),
            gone: BTreeSet::new(),
            owners: BTreeMap::new(),
            numbers: BTreeMap::new(),
            kept: BTreeSet::new(),
            ended: BTreeSet::new(),
            lost: 0,
        }
    }

    pub(in super::super) fn handle_truth(&mut self, now: Time, truth: Truth) {
        if let Truth::Ended(place) = truth {
            if let Some(process) = self.plan.life(place) {
                self.end(now, process);
                let calls: Vec<u64> = self.calls_of(place);
                for call in calls {
                    self.close_unknown(place, call);
                }
            }
            if let Some(host) = self.plan.host_of_agent(place.machine) {
                self.end_agent(now, AgentId::new(HostId(host), place.life.0 + 1));
            }
        }
    }

    pub(in super::super) fn handle_news(&mut self, now: Time, news: &News) {
        let changes = self.log.apply_news(news).unwrap_or_default();
        for change in changes {
            if let Change::Ended { process, .. } | Change::Left { process } = change {
                self.end(now, process);
            }
        }
        for entry in &news.entries {
            if let Entry::HostEnded { agent, .. } = entry {
                self.end_agent(now, *agent);
            }
        }
    }

    pub(in super::super) fn handle_note(
        &mut self,
        now: Time,
        place: Place,
        note: NameNote,
    ) -> Result<(), Violation> {
        match note {
            NameNote::Calls(call, number, what) => {
                self.handle_call(now, place, call, number, what);
                Ok(())
            }
            NameNote::Returns(call, returned) => match self.open.remove(&(place, call)) {
                Some(open) => self.handle_return(now, place, open, returned),
                None => Err(Violation::new(ENDS, format!("{place} returned twice"))),
            },
            NameNote::GivesUp(call) => {
                self.open.remove(&(place, call));
                Ok(())
            }
            NameNote::Keeps(agent, number, bound) => {
                if let Some(bound) = bound {
                    self.kept.insert((agent, number, bound.number));
                }
                Ok(())
            }
            NameNote::Holds(number, bound, keepers) => {
                self.hold(now, number, bound);
                // The holder itself says so after this.
                let has = |agent: &AgentId| self.kept.contains(&(*agent, number, bound.number));
                match keepers.iter().find(|agent| !has(agent)) {
                    Some(agent) => {
                        let text = name(number);
                        let what = format!(
                            "{place} answers {bound:?} for {text:?}, which {agent:?} never had"
                        );
                        Err(Violation::new(COPIES, what))
                    }
                    None => Ok(()),
                }
            }
        }
    }

    pub(in super::super) fn finish(
        &mut self,
        now: Time,
        registries: &[(Place, &Registry)],
        marks: &mut Marks,
    ) -> Result<(), Violation> {
        for (place, registry) in registries {
            self.check_tables(*place, registry)?;
        }
        if self.log.ending().is_none() {
            self.check_waiting(now)?;
        }
        let open: Vec<(Place, u64)> = self.open.keys().copied().collect();
        for (place, call) in open {
            self.close_unknown(place, call);
        }
        for _ in 0..self.lost {
            marks.add("a bind that was not told was lost with all who kept it");
        }
        for (number, history) in std::mem::take(&mut self.history) {
            match judge::<OneName>(history) {
                Judgement::Linear => (),
                Judgement::Unknown => marks.add("a history of a name was too hard to judge"),
                Judgement::NotLinear => {
                    let what = format!("no order explains what was seen of {:?}", name(number));
                    return Err(Violation::new(LINEAR, what));
                }
            }
        }
        Ok(())
    }

    fn handle_call(&mut self, now: Time, place: Place, call: u64, number: u32, what: Call) {
        let mut moves = false;
        if let (Call::Bind(address) | Call::Unbind(address), Some(process)) =
            (what, self.plan.life(place))
        {
            let owner = self.owners.get(&number);
            if owner.is_some_and(|owner| owner.0.process == process) {
                self.owners.remove(&number);
                moves = matches!(what, Call::Bind(_));
            }
            if let Call::Bind(_) = what {
                self.may_mean
                    .entry(process)
                    .or_default()
                    .insert((number, address));
                if self.gone.contains(&process) {
                    // Pronounced while it stood still: what it still does may be undone at any time.
                    self.add(number, now, None, Operation::MayUnbind(address));
                }
            }
        }
        let floor = self.numbers.get(&number).copied();
        let open = Open {
            called: now,
            since: now,
            number,
            call: what,
            floor,
            moves,
            held: None,
        };
        self.open.insert((place, call), open);
    }

    fn handle_return(
        &mut self,
        now: Time,
        place: Place,
        open: Open,
        returned: Return,
    ) -> Result<(), Violation> {
        let number = open.number;
        let operation = match (open.call, returned) {
            (Call::Bind(address), Return::Done(Outcome::Bound(fence))) => {
                self.check_number(place, open, fence, true)?;
                self.own(now, number, address)?;
                Operation::Bind(address)
            }
            (_, Return::Done(Outcome::Taken(by))) => Operation::Taken(by),
            (Call::Unbind(address), Return::Done(Outcome::Unbound(Some(fence)))) => {
                self.check_number(place, open, fence, true)?;
                self.forget(place, number, address);
                Operation::Unbind(address)
            }
            (Call::Unbind(address), Return::Done(Outcome::Unbound(None))) => {
                self.forget(place, number, address);
                Operation::MayUnbind(address)
            }
            (Call::Fetch | Call::Look, Return::Found(bound)) => {
                self.check_number(place, open, bound.number, false)?;
                Operation::Found(bound.address)
            }
            (Call::Look, Return::Free) => Operation::Free,
            (call, Return::Done(Outcome::Refused(_))) => {
                // Done once, and refused when asked again, because the process had gone.
                self.add_unknown(open.since, number, call);
                return Ok(());
            }
            (call, returned) => {
                let what = format!("{place} got {returned:?} for {call:?}");
                return Err(Violation::new(LINEAR, what));
            }
        };
        self.add(number, open.since, Some(now), operation);
        Ok(())
    }

    fn check_number(
        &mut self,
        place: Place,
        open: Open,
        number: FencingNumber,
        is_change: bool,
    ) -> Result<(), Violation> {
        let grows = match open.floor {
            Some(floor) if is_change => number > floor,
            Some(floor) => number >= floor,
            None => true,
        };
        if !grows {
            let what = format!("{place} got {number:?} after {:?}", open.floor);
            return Err(Violation::new(GROWS, what));
        }
        let highest = self.numbers.entry(open.number).or_insert(number);
        *highest = number.max(*highest);
        Ok(())
    }

    fn own(&mut self, now: Time, number: u32, address: Address) -> Result<(), Violation> {
        if self.gone.contains(&address.process) {
            return Ok(());
        }
        let before = self.owners.insert(number, (address, now));
        match before.filter(|(one, _)| one.process != address.process) {
            Some((other, _)) => {
                let what = format!("{:?} is {other}'s and {address}'s", name(number));
                Err(Violation::new(OWNER, what))
            }
            None => Ok(()),
        }
    }

    fn forget(&mut self, place: Place, number: u32, address: Address) {
        let process = self.plan.life(place);
        let means = process.and_then(|process| self.may_mean.get_mut(&process));
        if let Some(means) = means {
            means.remove(&(number, address));
        }
    }

    /// A life is over: its names are free, now or later.
    fn end(&mut self, now: Time, process: ProcessId) {
        if !self.gone.insert(process) {
            return;
        }
        self.owners.retain(|_, owner| owner.0.process != process);
        let means = self.may_mean.remove(&process).unwrap_or_default();
        for (number, address) in means {
            self.add(number, now, None, Operation::MayUnbind(address));
        }
    }

    /// Others may be told of a bind from now on. The owner's agent keeps what was told, so only a bind of who owned nothing counts.
    fn hold(&mut self, now: Time, number: u32, bound: Bound) {
        let bind = (number, Call::Bind(bound.address));
        let mut open = self.open.values_mut();
        if let Some(open) = open.find(|open| (open.number, open.call) == bind && !open.moves) {
            let since = open.held.map_or(now, |held| held.0);
            open.held = Some((since, bound));
        }
    }

    /// An agent is over. A bind may be lost if all who ever kept it are, and who asked was not told. It still asks.
    fn end_agent(&mut self, now: Time, agent: AgentId) {
        if !self.ended.insert(agent) {
            return;
        }
        let (kept, ended) = (&self.kept, &self.ended);
        let is_lost = |number: u32, bound: Bound| {
            let is_kept =
                |one: &&(AgentId, u32, FencingNumber)| (one.1, one.2) == (number, bound.number);
            let mut keepers = kept.iter().filter(is_kept);
            keepers.all(|one| ended.contains(&one.0))
        };
        let mut lost = vec![];
        for open in self.open.values_mut() {
            let held = open.held.filter(|held| is_lost(open.number, held.1));
            if let Some((held, bound)) = held {
                lost.push((open.number, open.since, held, bound));
                open.since = now;
                open.held = None;
            }
        }
        for (number, since, held, bound) in lost {
            self.lost += 1;
            self.add(number, since, Some(held), Operation::BindUntold(bound));
            self.add(number, now, None, Operation::MayLose(bound));
        }
    }

    fn calls_of(&self, place: Place) -> Vec<u64> {
        let keys = self.open.keys().filter(|key| key.0 == place);
        keys.map(|key| key.1).collect()
    }

    fn close_unknown(&mut self, place: Place, call: u64) {
        if let Some(open) = self.open.remove(&(place, call)) {
            self.add_unknown(open.since, open.number, open.call);
        }
    }

    fn add_unknown(&mut self, since: Time, number: u32, call: Call) {
        match call {
            Call::Bind(address) => self.add(number, since, None, Operation::Bind(address)),
            Call::Unbind(address) => self.add(number, since, None, Operation::MayUnbind(address)),
            Call::Fetch | Call::Look => {}
        }
    }

    fn add(&mut self, number: u32, called: Time, returned: Option<Time>, operation: Operation) {
        let done = Done {
            called,
            returned,
            operation,
        };
        self.history.entry(number).or_default().push(done);
    }

    /// Whether what was asked long ago was answered, as far as there is an answer.
    fn check_waiting(&self, now: Time) -> Result<(), Violation> {
        let patience = self.plan.pace.suspect * 2;
        let long = |since: Time| now.since(since) > patience;
        for ((place, _), open) in &self.open {
            let Some(process) = self.plan.life(*place) else {
                continue;
            };
            let owned = self.owners.get(&open.number);
            let has_answer = open.call != Call::Fetch || owned.is_some_and(|one| long(one.1));
            if !self.gone.contains(&process) && long(open.called) && has_answer {
                let what = format!("{place} waits since {:?}: {open:?}", open.called);
                return Err(Violation::new(ENDS, what));
            }
        }
        Ok(())
    }

    fn check_tables(&self, place: Place, registry: &Registry) -> Result<(), Violation> {
        let Sizes {
            kept,
            owned,
            cached,
            waiting,
            leases,
            asked,
            ..
        } = registry.sizes();
        let names = self.plan.names as usize;
        let most = names * self.plan.hosts as usize;
        let few = kept.max(owned).max(cached).max(asked) <= names;
        if !few || waiting.max(leases) > most {
            let what = format!("{place}: {:?}", registry.sizes());
            return Err(Violation::new(BOUNDS, what));
        }
        if self.log.ending().is_some() {
            return Ok(());
        }
        for number in 0..self.plan.names {
            let Some(bound) = registry.held(&name(number)) else {
                continue;
            };
            let process = bound.address.process;
            let state = self.log.state(process.rank);
            let runs = state.is_some_and(|state| {
                state.life == process.incarnation && state.standing == Standing::Running
            });
            let fresh = registry.placement().map(|one| one.epoch) != Some(self.log.epoch());
            if !runs && !fresh {
                let what = format!("{place} answers {bound:?}, who is gone");
                return Err(Violation::new(DEAD, what));
            }
        }
        Ok(())
    }
}
