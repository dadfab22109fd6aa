//! Operations that all members of a group do together: the time of one, at the slowest member, beside what the bare machine takes to hand over as much from
//! one member to another.

use std::time::{Duration, Instant};

use anyhow::ensure;
use mizzen::Lent;
use mizzen::group::{Group, Sum};
use mizzen_proto::group::plan::Way;
use rustix::thread::{sched_getaffinity, sched_setaffinity};

use super::found::Found;
use super::{messages, watched};
use crate::bench::carrier::Carrier;
use crate::bench::figures::{Runs, Said};
use crate::bench::machine;
use crate::bench::plan::Collective;
use crate::bench::side::{Side, pin};

/// How long one run of one of the two takes.
const RUN: Duration = Duration::from_millis(20);
/// A trial that takes this long tells how many rounds a run has.
const TRIAL: Duration = Duration::from_millis(4);

/// Measures all operations of the plan, in step with the other members.
pub(crate) fn all(side: &mut Side, group: &mut Group) -> anyhow::Result<()> {
    for operation in side.plan.operations.clone() {
        for size in sizes(operation, &side.plan.sizes) {
            watched(side, |side| measure(side, group, operation, size))?;
        }
    }
    Ok(())
}

/// A barrier has no data.
pub(super) fn sizes(operation: Collective, sizes: &[usize]) -> Vec<usize> {
    match operation {
        Collective::Barrier => vec![0],
        _ => sizes.to_vec(),
    }
}

fn measure(
    side: &mut Side,
    group: &mut Group,
    operation: Collective,
    size: usize,
) -> anyhow::Result<Found> {
    let mut ours = Ours::new(side, group, operation, size)?;
    ours.check()?;
    let (mut floor, floor_name) = Floor::new(side, size.max(8))?;
    let floor_rounds = rounds_of_a_run(side, &mut floor)?;
    let our_rounds = rounds_of_a_run(side, &mut ours)?;
    let mut runs = Runs::default();
    for _ in 0..side.plan.runs {
        let bare = floor.run(side, floor_rounds)?;
        runs.push(bare, ours.run(side, our_rounds)?);
        side.say(&Said::Progress)?;
    }
    let mut figures = runs.figures(&side.plan, "ns", floor_name);
    figures.operation = Some(operation);
    figures.size = Some(size);
    figures.processes = Some(side.plan.processes);
    figures.threads = side.plan.members_each;
    Ok(Found { runs, figures })
}

/// What is timed.
pub(super) trait Timed {
    /// Nanoseconds for each of so many rounds, the same at all members.
    fn run(&mut self, side: &mut Side, rounds: u64) -> anyhow::Result<f64>;
}

/// How many rounds take about as long as a run should, after they have been warmed up.
pub(super) fn rounds_of_a_run(side: &mut Side, timed: &mut dyn Timed) -> anyhow::Result<u64> {
    let mut rounds = 2;
    loop {
        let took = timed.run(side, rounds)? * rounds as f64;
        if took >= TRIAL.as_nanos() as f64 {
            let wanted = (rounds as f64 * RUN.as_nanos() as f64 / took).ceil();
            return Ok(wanted.max(1.0) as u64);
        }
        rounds *= 3;
    }
}

/// What the bare machine takes to hand over as much between the first two members, while the others sleep.
struct Floor {
    /// Of the first two.
    carrier: Option<Box<dyn Carrier>>,
    /// Where they are meanwhile: two that spin on one core would wait for each other's time to be over.
    core: Option<usize>,
}

impl Floor {
    fn new(side: &mut Side, size: usize) -> anyhow::Result<(Self, &'static str)> {
        if side.number < 2 {
            let (carrier, name) = messages::floor(side, size)?;
            let core = machine::two_cores().map(|cores| cores[side.number]);
            let carrier = Some(carrier);
            return Ok((Self { carrier, core }, name));
        }
        if side.plan.path.is_network() {
            // The two agree on a port.
            side.meeting.agree(0);
        }
        let (carrier, core) = (None, None);
        Ok((Self { carrier, core }, ""))
    }
}

impl Timed for Floor {
    fn run(&mut self, side: &mut Side, rounds: u64) -> anyhow::Result<f64> {
        let anywhere = sched_getaffinity(None)?;
        if let Some(core) = self.core {
            pin(core)?;
        }
        side.meeting.meet();
        let started = Instant::now();
        match &mut self.carrier {
            Some(carrier) if side.is_first() => carrier.serve(rounds)?,
            Some(carrier) => carrier.answer(rounds)?,
            None => (),
        }
        let took = started.elapsed();
        sched_setaffinity(None, &anywhere)?;
        if self.carrier.is_none() {
            side.meeting.meet_asleep();
        } else {
            side.meeting.meet();
        }
        // A round is two messages.
        let each = took.as_nanos() as f64 / rounds as f64 / 2.0;
        Ok(side.meeting.gather(each)[0])
    }
}

/// An operation of the group, and the data of this member.
pub(super) struct Ours<'g> {
    group: &'g mut Group,
    operation: Collective,
    /// This member's data, or its block.
    own: Vec<f64>,
    /// The same, where it is lent.
    lent: Lent<f64>,
    /// A block for each member, where there are such.
    all: Vec<f64>,
    others: Vec<f64>,
}

impl<'g> Ours<'g> {
    pub(super) fn new(
        side: &Side,
        group: &'g mut Group,
        operation: Collective,
        size: usize,
    ) -> anyhow::Result<Self> {
        let (len, members) = (size.div_ceil(8), group.size() as usize);
        let blocks = match operation {
            Collective::Gather
            | Collective::Scatter
            | Collective::AllGather
            | Collective::AllToAll
            | Collective::ReduceScatter => len * members,
            _ => 0,
        };
        let is_lent = matches!(
            operation,
            Collective::BroadcastLent | Collective::AllReduceLent
        );
        Ok(Self {
            group,
            operation,
            lent: side.deck.lend(if is_lent { len } else { 0 })?,
            own: vec![1.0; len],
            all: vec![1.0; blocks],
            others: match operation {
                Collective::AllToAll => vec![0.0; blocks],
                _ => Vec::new(),
            },
        })
    }

    /// Does it once, with each member as the root in its turn.
    #[inline]
    fn perform(&mut self, round: u64) -> mizzen::Result<()> {
        let group = &mut *self.group;
        let root = (round % u64::from(group.size())) as u32;
        let is_root = group.member() == root;
        match self.operation {
            Collective::Barrier => group.barrier(),
            Collective::Broadcast => group.broadcast(root, &mut self.own),
            Collective::BroadcastLent => group.broadcast_lent(root, &mut self.lent),
            Collective::AllReduceLent => group.all_reduce_lent(&mut self.lent, Sum),
            Collective::Reduce => group.reduce(root, &mut self.own, Sum),
            Collective::AllReduce => group.all_reduce(&mut self.own, Sum),
            Collective::Gather => {
                group.gather_into(root, &self.own, is_root.then_some(&mut self.all))
            }
            Collective::Scatter => {
                group.scatter_into(root, is_root.then_some(&self.all), &mut self.own)
            }
            Collective::AllGather => group.all_gather_into(&self.own, &mut self.all),
            Collective::AllToAll => group.all_to_all_into(&self.all, &mut self.others),
            Collective::ReduceScatter => group.reduce_scatter_into(&self.all, &mut self.own, Sum),
            Collective::Scan => group.scan(&mut self.own, Sum),
        }
    }

    /// Does it in this way from now on; in whichever is chosen, if none is given.
    pub(super) fn force(&mut self, way: Option<Way>) {
        self.group.force(way);
    }

    /// It comes to what it should.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        let (me, size) = (self.group.member().0, self.group.size());
        let own = f64::from(me + 1);
        self.own.fill(own);
        self.lent.fill(own);
        let block = self.all.len() / size as usize;
        for (member, block) in (1..).zip(self.all.chunks_mut(block.max(1))) {
            block.fill(f64::from(member));
        }
        self.perform(0)?;
        let sum = f64::from(size * (size + 1) / 2);
        let has = self.own.first().copied();
        let last = self.all.last().copied();
        let (found, expected) = match self.operation {
            Collective::Barrier => (None, None),
            Collective::Broadcast | Collective::Scatter if me > 0 => {
                let from_root = self.operation == Collective::Broadcast;
                (has, Some(if from_root { 1.0 } else { own }))
            }
            Collective::BroadcastLent => (self.lent.first().copied(), Some(1.0)),
            Collective::AllReduceLent => (self.lent.first().copied(), Some(sum)),
            Collective::Reduce if me == 0 => (has, Some(sum)),
            Collective::AllReduce => (has, Some(sum)),
            Collective::Scan => (has, Some(f64::from((me + 1) * (me + 2) / 2))),
            Collective::Gather if me == 0 => (last, Some(f64::from(size))),
            Collective::AllGather => (last, Some(f64::from(size))),
            Collective::AllToAll => (self.others.last().copied(), Some(own)),
            Collective::ReduceScatter => (has, Some(own * f64::from(size))),
            _ => (None, None),
        };
        ensure!(
            found == expected,
            "{} came to {found:?} where {expected:?} was expected",
            self.operation.name()
        );
        // Sums of sums stay numbers.
        self.own.fill(0.0);
        self.lent.fill(0.0);
        self.all.fill(0.0);
        Ok(())
    }
}

impl Timed for Ours<'_> {
    fn run(&mut self, side: &mut Side, rounds: u64) -> anyhow::Result<f64> {
        side.meeting.meet();
        let started = Instant::now();
        for round in 0..rounds {
            self.perform(round)?;
        }
        let each = started.elapsed().as_nanos() as f64 / rounds as f64;
        let slowest = side.meeting.gather(each).into_iter();
        Ok(slowest.fold(0.0, f64::max))
    }
}
