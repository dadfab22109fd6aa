//! Operations as stages, each a schedule of some of the members.
//!
//! Members that are all alike need one stage or two. Members on several hosts go by levels: those of a host first, through memory; then who leads the hosts of a
//! cluster; then who leads the clusters, all with each other at once, since what is far is waited for once; and back.

use core::ops::Range;

use super::layout::Layout;
use super::schedule::{Fold, Member, Round, Runs, runs};
use super::shapes;

/// A part of an operation: when a member has done one, it begins the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// What its blocks are.
    pub space: Space,
    /// What the member does.
    pub rounds: Vec<Round>,
}

/// What the blocks of a stage are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// There are none.
    Nothing,
    /// One: all data.
    Whole,
    /// So many parts of the data ([`part`](super::schedule::part)).
    Parts(u32),
    /// So many copies of the data, of which the member's own is this one. When the stage is done, the data are all copies, combined in their order.
    Copies(u32, u32),
    /// One for each member of the group, as the operation has them.
    Members,
    /// The same, but those that come go elsewhere than those that are sent were: what is sent is the other member's, and so is what comes.
    Pairs,
}

/// What members do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Nobody leaves before all have come.
    Barrier,
    /// All get what one has.
    Broadcast(Member),
    /// One gets what all have, combined.
    Reduce(Member),
    /// All get what all have, combined.
    AllReduce,
    /// One gets what each has.
    Gather(Member),
    /// Each gets its own of what one has.
    Scatter(Member),
    /// All get what each has.
    AllGather,
    /// Each gets its own of what each has.
    AllToAll,
    /// Each gets its own of what all have, combined.
    ReduceScatter,
    /// Each gets what those up to itself have, combined.
    Scan,
    /// Each gets what those before it have, combined; the first keeps its own.
    ExclusiveScan,
}

/// How an operation is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Way {
    /// Among those who are alike.
    pub shape: Shape,
    /// By host and cluster.
    pub by_levels: bool,
}

/// How members that are all alike go about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// In a circulant graph, with all data each time: few rounds.
    Exchange,
    /// Cut into parts, in a circulant graph: few rounds, each byte goes where it must.
    Circulant,
    /// Cut into parts, in a ring: a round for each member, and neighbours only.
    Ring,
    /// Up a tree, or down.
    Tree,
    /// Straight from one to the other.
    Flat,
}

/// Whether the order in which members' data are combined may be any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// It is that of the members.
    Members,
    /// Any.
    Any,
}

/// The ways of an operation that come to what it should, for this layout and order.
#[must_use]
pub fn ways(layout: &Layout, operation: Operation, order: Order) -> Vec<Way> {
    use Shape::{Circulant, Exchange, Flat, Ring, Tree};
    let any = order == Order::Any;
    let shapes: &[Shape] = match operation {
        Operation::Barrier | Operation::Scan | Operation::ExclusiveScan => &[Exchange],
        Operation::Broadcast(_) => &[Tree, Circulant, Ring],
        Operation::Reduce(_) if any => &[Tree, Circulant, Ring],
        Operation::Reduce(_) => &[Tree],
        Operation::AllReduce if any => &[Exchange, Circulant, Ring, Tree],
        Operation::AllReduce => &[Exchange, Tree],
        // Of two that cost the same the first is chosen: what does not pass others is less work.
        Operation::Gather(_) | Operation::Scatter(_) => &[Flat, Tree],
        Operation::AllGather => &[Circulant, Ring],
        Operation::AllToAll => &[Flat],
        Operation::ReduceScatter if any => &[Circulant, Ring, Tree],
        Operation::ReduceScatter => &[Tree],
    };
    let is_flat = layout.hosts() == layout.size() && layout.clusters() == 1;
    let combines = matches!(
        operation,
        Operation::Reduce(_) | Operation::AllReduce | Operation::ReduceScatter
    );
    let may_go_by_levels = layout.hosts() > 1
        && !is_flat
        && !matches!(
            operation,
            Operation::AllToAll | Operation::Scan | Operation::ExclusiveScan
        )
        && (any || !combines || layout.is_in_order());
    let way = |by_levels: bool| {
        move |shape: &Shape| Way {
            shape: *shape,
            by_levels,
        }
    };
    let flat = shapes.iter().map(way(false));
    let levels = shapes.iter().filter(|shape| {
        // Those who lead hosts combine whole data and hand out parts by tree.
        !matches!(operation, Operation::ReduceScatter) || **shape == Tree
    });
    let levels = levels.map(way(true)).filter(|_| may_go_by_levels);
    flat.chain(levels).collect()
}

/// What `me` does in an operation.
#[must_use]
pub fn stages(
    layout: &Layout,
    me: Member,
    operation: Operation,
    order: Order,
    way: Way,
) -> Vec<Stage> {
    let planner = Planner {
        me: me.0,
        layout,
        shape: way.shape,
        stages: Vec::new(),
    };
    match (operation, way.by_levels) {
        (Operation::Barrier, false) => planner.barrier(),
        (Operation::Barrier, true) => planner.barrier_by_levels(),
        (Operation::Broadcast(root), false) => planner.broadcast(root.0),
        (Operation::Broadcast(root), true) => planner.broadcast_by_levels(root),
        (Operation::Reduce(root), false) => planner.reduce(root.0, order),
        (Operation::Reduce(root), true) => planner.reduce_by_levels(root, order),
        (Operation::AllReduce, false) => planner.all_reduce(),
        (Operation::AllReduce, true) => planner.all_reduce_by_levels(),
        (Operation::Gather(root), false) => planner.gather(root.0),
        (Operation::Gather(root), true) => planner.gather_by_levels(root),
        (Operation::Scatter(root), false) => planner.scatter(root.0),
        (Operation::Scatter(root), true) => planner.gather_by_levels(root).turned(),
        (Operation::AllGather, false) => planner.all_gather(),
        (Operation::AllGather, true) => planner.all_gather_by_levels(),
        (Operation::AllToAll, _) => planner.all_to_all(),
        (Operation::ReduceScatter, false) => planner.reduce_scatter(),
        (Operation::ReduceScatter, true) => planner.reduce_scatter_by_levels(),
        (Operation::Scan, _) => planner.scan(),
        (Operation::ExclusiveScan, _) => planner.scan().shifted(),
    }
    .stages
}

/// The stages of one member, as far as they are known.
struct Planner<'l> {
    me: u32,
    layout: &'l Layout,
    shape: Shape,
    stages: Vec<Stage>,
}

impl Planner<'_> {
    fn size(&self) -> u32 {
        self.layout.size()
    }

    /// Among all.
    fn all(mut self, space: Space, rounds: Vec<Round>) -> Self {
        if !rounds.is_empty() {
            self.stages.push(Stage { space, rounds });
        }
        self
    }

    /// Among some, if this member is one of them: `make` is told its place and how many they are. `blocks_of` says which blocks of the group those of a
    /// place are.
    fn among(
        self,
        some: &[u32],
        space: impl Fn(u32, u32) -> Space,
        make: impl Fn(u32, u32) -> Vec<Round>,
        blocks_of: impl Fn(u32) -> Runs,
    ) -> Self {
        let Some(place) = some.iter().position(|member| *member == self.me) else {
            return self;
        };
        let (place, size) = (place as u32, some.len() as u32);
        let mut rounds = make(place, size);
        for round in &mut rounds {
            for transfer in round.sends.iter_mut().chain(&mut round.receives) {
                transfer.member = Member(some[transfer.member.index()]);
                let places = transfer.blocks.iter().cloned().flatten();
                transfer.blocks = joined(places.flat_map(&blocks_of));
            }
        }
        self.all(space(place, size), rounds)
    }

    fn barrier(self) -> Self {
        let rounds = shapes::barrier(self.me, self.size());
        self.all(Space::Nothing, rounds)
    }

    fn barrier_by_levels(self) -> Self {
        let (layout, me) = (self.layout, Member(self.me));
        let nothing = |_, _| Space::Nothing;
        let none = |_| vec![];
        let up = |place, size| shapes::reduce(place, size, 0, 0);
        let down = |place, size| shapes::broadcast(place, size, 0, 0);
        let near = layout.leaders_near(me);
        let host = layout.host_of(me);
        let mut plan = self.among(host, nothing, up, none);
        if layout.clusters() == 1 {
            plan = plan.among(&near, nothing, shapes::barrier, none);
        } else {
            plan = plan.among(&near, nothing, up, none);
            plan = plan.among(
                &layout.cluster_leaders(),
                nothing,
                shapes::exchange_flat,
                none,
            );
            plan = plan.among(&near, nothing, down, none);
        }
        plan.among(host, nothing, down, none)
    }

    fn broadcast(self, root: u32) -> Self {
        let all: Vec<u32> = (0..self.size()).collect();
        self.broadcast_among(&all, root)
    }

    /// Among members that are alike; `root` is a place.
    fn broadcast_among(self, some: &[u32], root: u32) -> Self {
        let parts = |_, size| Space::Parts(size);
        let gather = match self.shape {
            Shape::Circulant => shapes::all_gather,
            Shape::Ring => shapes::all_gather_ring,
            _ => {
                let tree = |place, size| shapes::broadcast(place, size, root, 1);
                return self.among(some, |_, _| Space::Whole, tree, own);
            }
        };
        let scatter = |place, size| shapes::scatter(place, size, root);
        let plan = self.among(some, parts, scatter, own);
        plan.among(some, parts, gather, own)
    }

    fn broadcast_by_levels(self, root: Member) -> Self {
        let layout = self.layout.led_by(root);
        let me = Member(self.me);
        let whole = |_, _| Space::Whole;
        let star = |place: u32, size: u32| star(place, size, true, Fold::Replace);
        let tree = |place, size| shapes::broadcast(place, size, 0, 1);
        let plan = self.among(&layout.cluster_leaders(), whole, star, first);
        let plan = plan.broadcast_among(&layout.leaders_near(me), 0);
        plan.among(layout.host_of(me), whole, tree, own)
    }

    fn reduce(self, root: u32, order: Order) -> Self {
        let (me, size) = (self.me, self.size());
        let scatter = match self.shape {
            Shape::Circulant => shapes::reduce_scatter(me, size),
            Shape::Ring => shapes::reduce_scatter_ring(me, size),
            _ if order == Order::Any => {
                return self.all(Space::Whole, shapes::reduce(me, size, root, 1));
            }
            _ => {
                let plan = self.all(Space::Whole, shapes::reduce(me, size, 0, 1));
                return plan.hop(0, root);
            }
        };
        let plan = self.all(Space::Parts(size), scatter);
        plan.all(Space::Parts(size), shapes::gather(me, size, root))
    }

    /// What one member has goes to another.
    fn hop(self, from: u32, to: u32) -> Self {
        let hop = |place: u32, size: u32| shapes::broadcast(place, size, 0, 1);
        let both = if from == to { vec![] } else { vec![from, to] };
        self.among(&both, |_, _| Space::Whole, hop, own)
    }

    fn reduce_by_levels(self, root: Member, order: Order) -> Self {
        let layout = match order {
            Order::Any => self.layout.led_by(root),
            Order::Members => self.layout.clone(),
        };
        let (me, whole) = (Member(self.me), |_, _| Space::Whole);
        let tree = |place, size| shapes::reduce(place, size, 0, 1);
        let star = |place: u32, size: u32| star(place, size, false, Fold::After);
        let plan = self.among(layout.host_of(me), whole, tree, own);
        let plan = plan.among(&layout.leaders_near(me), whole, tree, own);
        let leaders = layout.cluster_leaders();
        let plan = plan.among(&leaders, whole, star, first);
        plan.hop(leaders.first().copied().unwrap_or(root.0), root.0)
    }

    fn all_reduce(self) -> Self {
        let all: Vec<u32> = (0..self.size()).collect();
        self.all_reduce_among(&all)
    }

    fn all_reduce_among(self, some: &[u32]) -> Self {
        let (parts, whole) = (|_, size| Space::Parts(size), |_, _| Space::Whole);
        type Make = fn(u32, u32) -> Vec<Round>;
        let (scatter, gather): (Make, Make) = match self.shape {
            Shape::Circulant => (shapes::reduce_scatter, shapes::all_gather),
            Shape::Ring => (shapes::reduce_scatter_ring, shapes::all_gather_ring),
            Shape::Exchange => {
                let copies = |place, size| Space::Copies(size, place);
                return self.among(some, copies, shapes::all_gather, own);
            }
            Shape::Tree | Shape::Flat => {
                let up = |place, size| shapes::reduce(place, size, 0, 1);
                let down = |place, size| shapes::broadcast(place, size, 0, 1);
                return self
                    .among(some, whole, up, own)
                    .among(some, whole, down, own);
            }
        };
        let plan = self.among(some, parts, scatter, own);
        plan.among(some, parts, gather, own)
    }

    fn all_reduce_by_levels(self) -> Self {
        let (layout, me) = (self.layout, Member(self.me));
        let whole = |_, _| Space::Whole;
        let up = |place, size| shapes::reduce(place, size, 0, 1);
        let down = |place, size| shapes::broadcast(place, size, 0, 1);
        let copies = |place, size| Space::Copies(size, place);
        let (host, near) = (layout.host_of(me), layout.leaders_near(me));
        let mut plan = self.among(host, whole, up, own);
        if layout.clusters() == 1 {
            plan = plan.all_reduce_among(&near);
        } else {
            plan = plan.among(&near, whole, up, own);
            plan = plan.among(
                &layout.cluster_leaders(),
                copies,
                shapes::exchange_flat,
                own,
            );
            plan = plan.among(&near, whole, down, own);
        }
        plan.among(host, whole, down, own)
    }

    fn gather(self, root: u32) -> Self {
        let (me, size) = (self.me, self.size());
        let gather = match self.shape {
            Shape::Flat => shapes::gather_flat,
            _ => shapes::gather,
        };
        self.all(Space::Members, gather(me, size, root))
    }

    fn scatter(self, root: u32) -> Self {
        let (me, size) = (self.me, self.size());
        let scatter = match self.shape {
            Shape::Flat => shapes::scatter_flat,
            _ => shapes::scatter,
        };
        self.all(Space::Members, scatter(me, size, root))
    }

    fn gather_by_levels(self, root: Member) -> Self {
        let layout = self.layout.led_by(root);
        let leaders = layout.cluster_leaders();
        let gather = match self.shape {
            Shape::Flat => shapes::gather_flat,
            _ => shapes::gather,
        };
        let gather = |place, size| gather(place, size, 0);
        let flat = |place, size| shapes::gather_flat(place, size, 0);
        self.gathered(&layout, gather).among(
            &leaders,
            |_, _| Space::Members,
            flat,
            |place| of_cluster(&layout, leaders[place as usize]),
        )
    }

    /// Who leads a cluster has the blocks of all in it.
    fn gathered(self, layout: &Layout, gather: impl Fn(u32, u32) -> Vec<Round>) -> Self {
        let me = Member(self.me);
        let (host, near) = (layout.host_of(me), layout.leaders_near(me));
        let members = |_, _| Space::Members;
        let plan = self.among(host, members, &gather, |place| own(host[place as usize]));
        plan.among(&near, members, &gather, |place| {
            of_host(layout, near[place as usize])
        })
    }

    /// What was sent is received, and the other way round, from the end to the beginning.
    fn turned(mut self) -> Self {
        self.stages.reverse();
        for stage in &mut self.stages {
            stage.rounds.reverse();
            for round in &mut stage.rounds {
                core::mem::swap(&mut round.sends, &mut round.receives);
            }
        }
        self
    }

    fn all_gather(self) -> Self {
        let (me, size) = (self.me, self.size());
        let gather = match self.shape {
            Shape::Ring => shapes::all_gather_ring,
            _ => shapes::all_gather,
        };
        self.all(Space::Members, gather(me, size))
    }

    fn all_gather_by_levels(self) -> Self {
        let (layout, me, all) = (self.layout, Member(self.me), self.size());
        let members = |_, _| Space::Members;
        let (host, near) = (layout.host_of(me), layout.leaders_near(me));
        let leaders = layout.cluster_leaders();
        let down = |place, size| shapes::broadcast(place, size, 0, 1);
        let everything = |_| runs(0..all);
        let tree = |place, size| shapes::gather(place, size, 0);
        let gather = match self.shape {
            Shape::Ring => shapes::all_gather_ring,
            _ => shapes::all_gather,
        };
        if layout.clusters() == 1 {
            let plan = self.among(host, members, tree, |place| own(host[place as usize]));
            let of = |place: u32| of_host(layout, near[place as usize]);
            let plan = plan.among(&near, members, gather, of);
            return plan.among(host, members, down, everything);
        }
        let of = |place: u32| of_cluster(layout, leaders[place as usize]);
        let plan = self.gathered(layout, tree);
        let plan = plan.among(&leaders, members, shapes::exchange_flat, of);
        let plan = plan.among(&near, members, down, everything);
        plan.among(host, members, down, everything)
    }

    fn all_to_all(self) -> Self {
        let rounds = shapes::all_to_all(self.me, self.size());
        self.all(Space::Pairs, rounds)
    }

    fn reduce_scatter(self) -> Self {
        let (me, size) = (self.me, self.size());
        match self.shape {
            Shape::Circulant => self.all(Space::Members, shapes::reduce_scatter(me, size)),
            Shape::Ring => self.all(Space::Members, shapes::reduce_scatter_ring(me, size)),
            _ => {
                let plan = self.all(Space::Members, shapes::reduce(me, size, 0, size));
                plan.all(Space::Members, shapes::scatter(me, size, 0))
            }
        }
    }

    /// All is combined at member 0, and handed out from there.
    fn reduce_scatter_by_levels(self) -> Self {
        let (layout, size) = (self.layout, self.size());
        let (me, members) = (Member(self.me), |_, _| Space::Members);
        let everything = |_| runs(0..size);
        let tree = |place, size| shapes::reduce(place, size, 0, 1);
        let star = |place: u32, size: u32| star(place, size, false, Fold::After);
        let plan = self.among(layout.host_of(me), members, tree, everything);
        let plan = plan.among(&layout.leaders_near(me), members, tree, everything);
        let plan = plan.among(&layout.cluster_leaders(), members, star, everything);
        let back = Planner {
            me: plan.me,
            layout,
            shape: Shape::Tree,
            stages: Vec::new(),
        };
        let mut plan = plan;
        plan.stages
            .extend(back.gather_by_levels(Member(0)).turned().stages);
        plan
    }

    fn scan(self) -> Self {
        let rounds = shapes::scan(self.me, self.size(), 1);
        self.all(Space::Whole, rounds)
    }

    fn shifted(self) -> Self {
        let rounds = shapes::shift(self.me, self.size(), 1);
        self.all(Space::Whole, rounds)
    }
}

/// A place has the block of its number.
fn own(place: u32) -> Runs {
    runs(place..place + 1)
}

/// There is one block.
fn first(_: u32) -> Runs {
    runs(0..1)
}

/// The blocks of all members of a leader's host.
fn of_host(layout: &Layout, leader: u32) -> Runs {
    let host = layout.host_of(Member(leader)).iter();
    joined(host.map(|member| *member..*member + 1))
}

/// The blocks of all members of a leader's cluster.
fn of_cluster(layout: &Layout, leader: u32) -> Runs {
    let near = layout.leaders_near(Member(leader));
    joined(near.into_iter().flat_map(|leader| of_host(layout, leader)))
}

/// The first of some and each of the others, with nobody in between: all at once if the first sends, one after the other if it receives and combines.
fn star(place: u32, size: u32, is_out: bool, fold: Fold) -> Vec<Round> {
    let block = || runs(0..1);
    let one = Round::default();
    match (place, is_out) {
        (0, true) if size > 1 => {
            vec![(1..size).fold(one, |round, other| round.send(other, block(), fold))]
        }
        (0, true) => vec![],
        (0, false) => (1..size)
            .map(|other| Round::default().receive(other, block(), fold))
            .collect(),
        (_, true) => vec![one.receive(0, block(), fold)],
        (_, false) => vec![one.send(0, block(), fold)],
    }
}

/// Runs that follow each other as one.
fn joined(each: impl Iterator<Item = Range<u32>>) -> Runs {
    let mut all = Runs::new();
    for run in each {
        match all.last_mut() {
            Some(last) if last.end == run.start => last.end = run.end,
            _ => all.push(run),
        }
    }
    all
}
