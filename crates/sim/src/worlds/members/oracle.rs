//! What must hold, whatever happens: the numbers are those of docs/design/membership.md.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use mizzen_proto::boot::Death;
use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::{
    AgentId, Change, Entry, HostEnd, HostId as Host, HostStanding, Members, News, Notice, Standing,
    Why,
};
use mizzen_proto::time::Time;

use super::message::Note;
use super::plan::Plan;
use crate::ids::{HostId, Life, MachineId, Place};
use crate::tally::Marks;
use crate::world::{Truth, Violation};

pub(super) const SAME: &str = "1 same verdicts at the same epoch";
pub(super) const GAPS: &str = "2 no epoch missing";
pub(super) const FENCED: &str = "3 no verdict while processes may run";
pub(super) const ENDED: &str = "4 nothing taken from an ended life";
pub(super) const LIVES: &str = "5 never two lives of a rank";
pub(super) const HEARD: &str = "9 all who live hear all verdicts";
pub(super) const FALSE: &str = "11 no death without a reason";

#[derive(Debug)]
pub(super) struct Oracle {
    plan: Rc<Plan>,
    /// What the root decided, and what that means, by epoch.
    pub(super) log: Members,
    changes: BTreeMap<u64, Vec<Change>>,
    /// The epoch of each verdict on a life that is to be fenced.
    verdicts: BTreeMap<ProcessId, u64>,
    /// The latest epoch that each life knows.
    known: BTreeMap<Place, u64>,
    alive: BTreeSet<Place>,
    /// When each host was paused last, and until when.
    pauses: BTreeMap<u32, Vec<Span>>,
    cuts: BTreeMap<(u32, u32), Vec<Span>>,
    /// Who was pronounced while its host stood still, and when: it is refused everywhere, and must end when the host goes on.
    doomed: BTreeMap<Place, Time>,
    /// When the latest life of each machine ended.
    ended: BTreeMap<MachineId, Time>,
    /// When the latest epoch was told.
    appended: Time,
}

impl Oracle {
    pub(super) fn new(plan: Rc<Plan>) -> Self {
        Self {
            plan,
            log: Members::default(),
            changes: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            known: BTreeMap::new(),
            alive: BTreeSet::new(),
            pauses: BTreeMap::new(),
            cuts: BTreeMap::new(),
            doomed: BTreeMap::new(),
            ended: BTreeMap::new(),
            appended: Time(0),
        }
    }

    pub(super) fn handle_truth(&mut self, now: Time, truth: Truth) -> Result<(), Violation> {
        self.check_doomed(now)?;
        match truth {
            Truth::Started(place) => {
                let twice = self.alive.iter().any(|one| one.machine == place.machine);
                self.alive.insert(place);
                if twice {
                    return Err(Violation::new(LIVES, format!("{place}")));
                }
            }
            Truth::Ended(place) => {
                self.alive.remove(&place);
                self.ended.insert(place.machine, now);
            }
            Truth::Paused(HostId(host)) => {
                self.pauses.entry(host).or_default().push(Span::since(now))
            }
            Truth::Resumed(HostId(host)) => close(self.pauses.entry(host).or_default(), now),
            Truth::Cut(from, to) => {
                let cuts = self.cuts.entry((from.0, to.0)).or_default();
                if cuts.last().is_none_or(|span| span.end.is_some()) {
                    cuts.push(Span::since(now));
                }
            }
            Truth::Healed(from, to) => close(self.cuts.entry((from.0, to.0)).or_default(), now),
            Truth::Calm => {}
        }
        Ok(())
    }

    pub(super) fn handle_note(
        &mut self,
        now: Time,
        place: Place,
        note: Note,
    ) -> Result<(), Violation> {
        self.check_doomed(now)?;
        match note {
            Note::Appended(news) => self.handle_appended(now, &news),
            Note::Joined(epoch) => {
                self.known.insert(place, epoch);
                let told = self.log.epoch().0;
                if epoch > told {
                    return Err(Violation::new(
                        SAME,
                        format!("{place} knows {epoch} of {told}"),
                    ));
                }
                Ok(())
            }
            Note::Told(notice) => self.handle_told(place, &notice),
            Note::Gap => Err(Violation::new(GAPS, format!("{place} refuses its news"))),
            Note::Took(from) => self.handle_took(place, from),
            Note::Fenced(Why::LeaseOver) => self.check_reason(now, self.plan.host(place.machine)),
            Note::Fenced(Why::Contradiction) => {
                Err(Violation::new(SAME, format!("{place}: a contradiction")))
            }
            Note::Fenced(_) | Note::Finished | Note::Name(_) => Ok(()),
        }
    }

    /// The present life of a machine.
    pub(super) fn life_of(&self, machine: MachineId) -> Option<Place> {
        self.alive
            .iter()
            .find(|place| place.machine == machine)
            .copied()
    }

    /// What of all that a campaign must have seen was decided.
    pub(super) fn count(&self, marks: &mut Marks) {
        for host in self.log.hosts().filter_map(|host| self.log.host(host)) {
            match host.standing {
                HostStanding::Ended(HostEnd::Silent) => marks.add("a host was pronounced silent"),
                HostStanding::Ended(HostEnd::Refused) => marks.add("a host was pronounced absent"),
                HostStanding::Here if host.life > 1 => marks.add("a host came back in a new life"),
                _ => {}
            }
        }
    }

    /// At the end, on a whole network. `epochs`: what each life that may know something says it knows.
    pub(super) fn finish(&self, now: Time, epochs: &BTreeMap<Place, u64>) -> Result<(), Violation> {
        let told = self.log.epoch().0;
        for (place, epoch) in epochs {
            if *epoch != told && !self.is_fresh(now) {
                return Err(Violation::new(
                    HEARD,
                    format!("{place} knows {epoch} of {told}"),
                ));
            }
        }
        for (index, host) in self.plan.ranks.iter().enumerate() {
            let rank = mizzen_proto::id::Rank(index as u32);
            let machine = self.plan.process(rank);
            let lives: Vec<Life> = self
                .alive
                .iter()
                .filter(|place| place.machine == machine)
                .map(|place| place.life)
                .collect();
            let state = self.log.state(rank);
            let decided = state.filter(|state| !matches!(state.standing, Standing::Ended(_)));
            let decided = decided.map(|state| Life(state.life.0));
            let reported = self.log.host(Host(*host)).is_some_and(|host| host.life > 0);
            let ends = self.log.ending().is_some();
            if let Some(life) = lives.first().filter(|life| decided != Some(**life) || ends) {
                let what = format!("rank {rank} lives on in life {}", life.0);
                return Err(Violation::new(LIVES, what));
            }
            // Processes leave to the very end.
            let ended = self.ended.get(&machine);
            let recently = ended.is_some_and(|ended| now.since(*ended) < self.plan.pace.suspect);
            if decided.is_some() && reported && lives.is_empty() && !ends && !recently {
                let what = format!("rank {rank} is dead, and nobody was told");
                return Err(Violation::new(HEARD, what));
            }
        }
        Ok(())
    }

    /// Whether the latest epoch was told so lately that not all need have it.
    fn is_fresh(&self, now: Time) -> bool {
        now.since(self.appended) < self.plan.pace.suspect
    }

    fn handle_appended(&mut self, now: Time, news: &News) -> Result<(), Violation> {
        self.appended = now;
        let before = self.log.clone();
        let changes = self.log.apply_news(news);
        let changes =
            changes.map_err(|_| Violation::new(SAME, format!("contradiction: {news:?}")))?;
        for change in &changes {
            let Change::Ended { process, how } = change else {
                continue;
            };
            if *how != Death::Exit(0) {
                self.verdicts.insert(*process, news.epoch.0);
            }
        }
        self.changes.insert(news.epoch.0, changes);
        for entry in &news.entries {
            match entry {
                Entry::HostEnded { agent, how } => self.check_host(now, *agent, *how)?,
                Entry::Ended { process, .. } => {
                    let place = self.place(*process);
                    let moved = before.state(process.rank).is_none();
                    if self.alive.contains(&place) || moved {
                        return Err(Violation::new(FENCED, format!("{place} lives")));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Oracle 3: whoever is pronounced cannot run, except in a host that stands still, whose frames everybody refuses.
    fn check_host(&mut self, now: Time, agent: AgentId, how: HostEnd) -> Result<(), Violation> {
        let host = agent.host.0;
        let place = Place {
            machine: MachineId(host),
            life: Life(agent.life - 1),
        };
        let lives = self.alive.contains(&place);
        match how {
            HostEnd::Refused if lives => {
                return Err(Violation::new(FENCED, format!("{place} lives")));
            }
            HostEnd::Refused | HostEnd::Left => return Ok(()),
            HostEnd::Silent => {}
        }
        let stood_still = self.since_pause(now, host) < self.plan.pace.kill;
        let runs = |place: &&Place| {
            let rank = self.plan.rank(place.machine);
            rank.is_some() && self.plan.host(place.machine) == host
        };
        let running: Vec<Place> = self.alive.iter().filter(runs).copied().collect();
        match running.first() {
            Some(process) if !stood_still => {
                let what = format!("{process} runs on host {host}, which is pronounced lost");
                return Err(Violation::new(FENCED, what));
            }
            _ => self
                .doomed
                .extend(running.iter().map(|place| (*place, now))),
        }
        if lives {
            self.check_reason(now, host)?;
        }
        Ok(())
    }

    /// For how long a host has not stood still, since it did.
    fn since_pause(&self, now: Time, host: u32) -> Duration {
        let last = self.pauses.get(&host).and_then(|pauses| pauses.last());
        match last.map(|span| span.end) {
            Some(Some(end)) => now.since(end),
            Some(None) => Duration::ZERO,
            None => Duration::MAX,
        }
    }

    fn check_doomed(&mut self, now: Time) -> Result<(), Violation> {
        self.doomed.retain(|place, _| self.alive.contains(place));
        let kill = self.plan.pace.kill;
        for (place, since) in &self.doomed {
            let runs = self.since_pause(now, self.plan.host(place.machine));
            if runs.min(now.since(*since)) > kill {
                let what = format!("{place} was pronounced while its host stood still, and runs");
                return Err(Violation::new(FENCED, what));
            }
        }
        Ok(())
    }

    /// Oracle 11: a host and the root were kept apart for a good part of the lease.
    fn check_reason(&self, now: Time, host: u32) -> Result<(), Violation> {
        let pace = self.plan.pace;
        let from = Time(now.0.saturating_sub(pace.verdict().as_nanos() as u64));
        let none = vec![];
        let spans = [
            self.pauses.get(&host),
            self.pauses.get(&0),
            self.cuts.get(&(host, 0)),
            self.cuts.get(&(0, host)),
        ];
        let spans = spans.into_iter().flat_map(|spans| spans.unwrap_or(&none));
        let mut spans: Vec<(Time, Time)> = spans
            .map(|span| (span.start.max(from), span.end.unwrap_or(now)))
            .filter(|(start, end)| start < end)
            .collect();
        spans.sort_unstable();
        let (mut reached, mut apart) = (from, Duration::ZERO);
        for (start, end) in spans {
            apart += end.since(start.max(reached));
            reached = reached.max(end);
        }
        if apart < pace.suspect / 2 {
            let what = format!("host {host} was kept from the root for {apart:?} only");
            return Err(Violation::new(FALSE, what));
        }
        Ok(())
    }

    fn handle_told(&mut self, place: Place, notice: &Notice) -> Result<(), Violation> {
        let epoch = notice.epoch.0;
        let known = self.known.insert(place, epoch);
        if known != epoch.checked_sub(1) {
            let what = format!("{place} knows {known:?} and is told {epoch}");
            return Err(Violation::new(GAPS, what));
        }
        if self.changes.get(&epoch) != Some(&notice.changes) {
            let what = format!(
                "{place} is told {notice:?}, decided was {:?}",
                self.changes.get(&epoch)
            );
            return Err(Violation::new(SAME, what));
        }
        Ok(())
    }

    fn handle_took(&self, place: Place, from: ProcessId) -> Result<(), Violation> {
        let known = self.known.get(&place).copied().unwrap_or(0);
        match self.verdicts.get(&from) {
            Some(epoch) if *epoch <= known => {
                let what =
                    format!("{place}, at epoch {known}, takes from {from:?}, ended at {epoch}");
                Err(Violation::new(ENDED, what))
            }
            _ => Ok(()),
        }
    }

    fn place(&self, process: ProcessId) -> Place {
        Place {
            machine: self.plan.process(process.rank),
            life: Life(process.incarnation.0),
        }
    }
}

/// From when to when something lasted.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: Time,
    end: Option<Time>,
}

impl Span {
    fn since(start: Time) -> Self {
        Self { start, end: None }
    }
}

fn close(spans: &mut [Span], now: Time) {
    if let Some(span) = spans.last_mut() {
        span.end.get_or_insert(now);
    }
}
