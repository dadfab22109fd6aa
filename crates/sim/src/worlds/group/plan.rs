//! What happens in one history: who is where, what they do, how much is held between two of them, and who dies.

use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::group::layout::Layout as Places;
use mizzen_proto::group::plan::{Operation, Order, Way, ways};
use mizzen_proto::group::probe::{probes, to_all};
use mizzen_proto::group::schedule::Member;

use crate::faults::{Fault, Faults};
use crate::ids::HostId;
use crate::options::Options;
use crate::symbols::{Part, Task};
use crate::tally::Marks;
use crate::world::{Layout, Seat};

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) places: Places,
    hosts: Vec<u32>,
    pub(super) steps: Vec<Step>,
    /// How many messages of one member to another are held before they are taken: with more under way, the round of the sender does not end. All, if it does not say.
    pub(super) held: Option<u64>,
    pub(super) deaths: Deaths,
    /// How long a member takes between two operations, at most.
    pub(super) thought: Duration,
    delay: Duration,
}

/// An operation of all members.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) operation: Operation,
    /// None: members measure what ways cost, and tell each other.
    way: Option<Way>,
    pub(super) task: Rc<Task>,
}

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deaths {
    None,
    /// One member, when it has sent and taken so much.
    AtStep {
        member: u32,
        step: u32,
    },
    /// Whomever a crash or a loss of power strikes.
    Anybody,
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let most = match rng.u32(..LARGE_ONE_IN) {
            0 => MEMBERS_MAX,
            _ => 10,
        };
        let size = rng.u32(1..=most);
        let clusters = rng.u32(1..=4);
        let hosts = rng.u32(1..=size.min(HOSTS_MAX));
        // By blocks, as processes are started, or anyhow.
        let host = match rng.bool() {
            true => (0..size).map(|member| member * hosts / size).collect(),
            false => (0..size).map(|_| rng.u32(..hosts)).collect::<Vec<u32>>(),
        };
        let cluster: Vec<u32> = (0..hosts).map(|_| rng.u32(..clusters)).collect();
        let places = Places::new(host.iter().map(|host| (cluster[*host as usize], *host)));
        let steps = (0..rng.u32(1..=STEPS_MAX)).map(|_| Step::new(&places, &mut rng));
        let steps: Vec<Step> = steps.collect();
        // Early steps are as likely as late ones, octave by octave.
        let steps_max = 1 << rng.u32(1..8);
        let deaths = match rng.u32(..8) {
            0..3 => Deaths::None,
            3..7 => Deaths::AtStep {
                member: rng.u32(..size),
                step: rng.u32(..steps_max),
            },
            _ => Deaths::Anybody,
        };
        Self {
            places,
            hosts: host,
            steps,
            held: rng
                .choice([None, None, Some(0), Some(1), Some(4)])
                .flatten(),
            deaths,
            thought: Duration::from_micros(1 << rng.u32(..18)),
            delay: Duration::from_micros(1 << rng.u32(6..=10)),
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.places.size()
    }

    pub(super) fn layout(&self) -> Layout {
        let ms = Duration::from_millis;
        let seat = |host: &u32| Seat {
            may_crash: self.deaths == Deaths::Anybody,
            ..Seat::on(HostId(*host))
        };
        let kinds = [
            Fault::CutOneWay,
            Fault::Partition,
            Fault::Pause,
            Fault::Drift,
            Fault::Slow,
            Fault::Crash,
            Fault::PowerLoss,
        ];
        Layout {
            hosts: self.hosts.iter().max().map_or(1, |last| last + 1),
            machines: self.hosts.iter().map(seat).collect(),
            options: Options {
                faults: Faults::of(&kinds),
                // Later than any cut is: links go on over the next connection, which is another world's affair.
                silence: Duration::from_secs(3),
                trouble: Duration::from_secs(2),
                // A ring of 64 in which everything is slow.
                calm: Duration::from_secs(600),
                delay: Duration::from_micros(20)..=self.delay,
                // What is late is late by less than a member waits for the reason why another left.
                learning: ms(100),
                outage: ms(1)..=ms(150),
                pause: ms(1)..=ms(150),
                between: ms(10)..=ms(1500),
                ..Options::default()
            },
        }
    }

    pub(super) fn mark(&self, marks: &mut Marks) {
        if self.places.clusters() > 1 {
            marks.add("a group was in several clusters");
        }
        if self.size() > 32 {
            marks.add("a group had more than 32 members");
        }
    }
}

impl Step {
    /// What a member does of it.
    pub(super) fn part(&self, places: &Places, me: Member) -> Part {
        if let Some(way) = self.way {
            return Part::new(&self.task, places, me, way);
        }
        let trips = probes(places, me).into_iter();
        let trips = trips.flat_map(|probe| [probe.round_trip(), probe.round_trip()]);
        let stages = trips.chain(to_all(places, me)).collect();
        Part::of_stages(&self.task, me, stages)
    }

    /// As it goes before the first choice of a group.
    fn probing(places: &Places) -> Self {
        let operation = Operation::Barrier;
        let task = Task::new(operation, Order::Any, places.size(), |_| 0);
        Self {
            operation,
            way: None,
            task: Rc::new(task),
        }
    }

    fn new(places: &Places, rng: &mut Rng) -> Self {
        let size = places.size();
        let root = Member(rng.u32(..size));
        let operation = match rng.u32(..12) {
            11 => return Self::probing(places),
            0 => Operation::Barrier,
            1 => Operation::Broadcast(root),
            2 => Operation::Reduce(root),
            3 => Operation::AllReduce,
            4 => Operation::Gather(root),
            5 => Operation::Scatter(root),
            6 => Operation::AllGather,
            7 => Operation::AllToAll,
            8 => Operation::ReduceScatter,
            9 => Operation::Scan,
            _ => Operation::ExclusiveScan,
        };
        let order = if rng.bool() {
            Order::Any
        } else {
            Order::Members
        };
        let way = rng.choice(ways(places, operation, order));
        // More parts than elements, or fewer; blocks of all lengths, or of none.
        let lengths: Vec<usize> = (0..size).map(|_| rng.usize(..4)).collect();
        let task = Task::new(operation, order, size, |member| lengths[member.index()]);
        Self {
            operation,
            way: Some(way.expect("every operation has a way")),
            task: Rc::new(task),
        }
    }
}

/// One group in so many is a large one: mistakes show in small ones too, and those are quick.
const LARGE_ONE_IN: u32 = 8;
const MEMBERS_MAX: u32 = 64;
const HOSTS_MAX: u32 = 12;
const STEPS_MAX: u32 = 8;
