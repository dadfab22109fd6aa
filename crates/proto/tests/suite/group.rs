//! Schedules of groups, carried out without a network, on symbols (`mizzen_sim::symbols`). Nothing is held in between: what is sent has to be received at the
//! same time. The simulator's world `group` carries them out with delays and deaths.

use std::collections::BTreeMap;
use std::rc::Rc;

use mizzen_proto::group::cost::{Costs, choose};
use mizzen_proto::group::layout::Layout;
use mizzen_proto::group::plan::{Operation, Order, Space, Way, ways};
use mizzen_proto::group::probe::{Findings, Level, probes, to_all};
use mizzen_proto::group::schedule::{Member, Round};
use mizzen_sim::symbols::{Element, Part, Task};
use proptest::prelude::*;

/// One member, as it carries its part out.
struct Machine {
    me: u32,
    part: Part,
    /// What is under way in this round.
    open: Option<Open>,
    /// How many clusters' borders what it knows has crossed, at most.
    crossed: u32,
    rounds: u32,
    messages: u32,
}

struct Open {
    round: Round,
    sent: Vec<bool>,
    /// What came: combined when the round is over.
    came: Vec<Option<(Vec<Element>, u32)>>,
    crossed: u32,
}

impl Machine {
    /// Begins the next round, if there is one.
    fn begin(&mut self) -> bool {
        if self.open.is_some() {
            return true;
        }
        let Some(round) = self.part.round() else {
            return false;
        };
        self.messages += round.sends.len() as u32;
        self.open = Some(Open {
            sent: vec![false; round.sends.len()],
            came: vec![None; round.receives.len()],
            crossed: self.crossed,
            round,
        });
        true
    }

    /// Ends the round, if all of it is done.
    fn end(&mut self) -> bool {
        let is_over = |open: &mut Open| {
            open.sent.iter().all(|sent| *sent) && open.came.iter().all(Option::is_some)
        };
        let Some(open) = self.open.take_if(is_over) else {
            return false;
        };
        let came = open.came.into_iter().flatten().map(|(came, crossed)| {
            self.crossed = self.crossed.max(crossed);
            came
        });
        let came = came.collect();
        self.part.end_round(&open.round, came);
        self.rounds += 1;
        true
    }
}

/// Lets all go on until nobody can.
fn run(machines: &mut [Machine], cluster: impl Fn(u32) -> u32) {
    loop {
        let mut moved = false;
        for me in 0..machines.len() {
            if !machines[me].begin() {
                continue;
            }
            let sends = machines[me].open.as_ref().unwrap().round.sends.clone();
            for (number, send) in sends.iter().enumerate() {
                if machines[me].open.as_ref().unwrap().sent[number] {
                    continue;
                }
                let to = send.member.index();
                assert_ne!(to, me, "nobody sends to itself");
                if !machines[to].begin() {
                    continue;
                }
                let open = machines[to].open.as_ref().unwrap();
                let mut waiting = open.round.receives.iter().zip(&open.came);
                let fits = waiting
                    .position(|(receive, came)| came.is_none() && receive.member.index() == me);
                let Some(fits) = fits else { continue };
                let receive = open.round.receives[fits].clone();
                assert_eq!(receive.fold, send.fold);
                if machines[to].part.space() != Space::Pairs {
                    assert_eq!(receive.blocks, send.blocks);
                }
                let what = machines[me].part.read(send);
                let open = machines[me].open.as_mut().unwrap();
                open.sent[number] = true;
                let crossed = open.crossed + u32::from(cluster(me as u32) != cluster(to as u32));
                machines[to].open.as_mut().unwrap().came[fits] = Some((what, crossed));
                moved = true;
            }
        }
        for machine in machines.iter_mut() {
            moved |= machine.end();
        }
        if !moved {
            break;
        }
    }
    for machine in machines {
        let me = machine.me;
        assert!(!machine.begin(), "member {me} waits for ever");
    }
}

/// Clusters and hosts of members, by number.
type Places = Vec<(u32, u32)>;

/// Carries an operation out and checks what it comes to. Rounds and messages of the busiest member, and how often what anybody knows has crossed a border.
fn check(places: &Places, operation: Operation, order: Order, way: Way) -> (u32, u32, u32) {
    let layout = Layout::new(places.iter().copied());
    let size = layout.size();
    let has_blocks = matches!(
        operation,
        Operation::Gather(_)
            | Operation::Scatter(_)
            | Operation::AllGather
            | Operation::AllToAll
            | Operation::ReduceScatter
    );
    let length = |member: Member| match has_blocks {
        true => (member.index() + 1) % 3,
        false => 5,
    };
    let task = Rc::new(Task::new(operation, order, size, length));
    let machine = |me: u32| Machine {
        me,
        part: Part::new(&task, &layout, Member(me), way),
        open: None,
        crossed: 0,
        rounds: 0,
        messages: 0,
    };
    let mut machines: Vec<Machine> = (0..size).map(machine).collect();
    run(&mut machines, |member| places[member as usize].0);
    let what = || format!("{size} members in {places:?}, {operation:?}, {order:?}, {way:?}");
    for machine in &machines {
        let data = machine.part.data();
        let checked = task.check(machine.me, data);
        assert!(checked.is_ok(), "{checked:?}: {}", what());
        if task.ends_alike() {
            let first = machines[0].part.data();
            assert_eq!(data, first, "the same bits at all: {}", what());
        }
    }
    let most = |of: fn(&Machine) -> u32| machines.iter().map(of).max().unwrap_or(0);
    (
        most(|machine| machine.rounds),
        most(|machine| machine.messages),
        most(|machine| machine.crossed),
    )
}

/// All operations, with each of some members as the root.
fn operations(roots: impl IntoIterator<Item = u32>) -> Vec<Operation> {
    let mut all = vec![
        Operation::Barrier,
        Operation::AllReduce,
        Operation::AllGather,
        Operation::AllToAll,
        Operation::ReduceScatter,
        Operation::Scan,
        Operation::ExclusiveScan,
    ];
    for root in roots.into_iter().map(Member) {
        let of = [
            Operation::Broadcast,
            Operation::Reduce,
            Operation::Gather,
            Operation::Scatter,
        ];
        all.extend(of.map(|of| of(root)));
    }
    all
}

/// Every way of every operation. The largest number of rounds of each.
fn check_all(places: &Places, roots: impl IntoIterator<Item = u32>) {
    let layout = Layout::new(places.iter().copied());
    let (size, clusters) = (layout.size(), layout.clusters());
    let log = size.next_power_of_two().trailing_zeros();
    for operation in operations(roots) {
        for order in [Order::Any, Order::Members] {
            for way in ways(&layout, operation, order) {
                let (rounds, _, crossed) = check(places, operation, order, way);
                let what =
                    || format!("{operation:?} {order:?} {way:?} for {places:?}: {rounds} rounds");
                use mizzen_proto::group::plan::Shape;
                let bound = match way.shape {
                    _ if operation == Operation::AllToAll => size,
                    Shape::Ring => 2 * size + 6 * log + 2,
                    _ if way.by_levels => 6 * log + clusters + 2,
                    _ => 2 * log + 1,
                };
                assert!(rounds <= bound, "{}", what());
                // What is far is waited for once; to combine at one member and hand out from there takes twice, and so does a root that does not lead.
                let twice = operation == Operation::ReduceScatter
                    || matches!(operation, Operation::Reduce(_)) && order == Order::Members;
                if way.by_levels && !twice {
                    assert!(crossed <= 1, "{crossed} crossings: {}", what());
                }
            }
            for bytes in [0, 8, 4096, 1 << 20, 1 << 30] {
                let chosen = choose(&layout, operation, order, bytes, &Costs::default());
                assert!(chosen.is_some(), "{operation:?} {order:?}");
            }
        }
    }
}

#[test]
fn every_operation_of_1_to_64_members_comes_to_what_it_should() {
    for size in 1..=64 {
        let roots = [0, 1, size / 2, size - 1]
            .into_iter()
            .filter(|root| *root < size);
        check_all(&vec![(0, 0); size as usize], roots);
    }
}

#[test]
fn every_root_of_up_to_17_members_gets_what_it_should() {
    for size in 1..=17 {
        check_all(&vec![(0, 0); size as usize], 0..size);
    }
}

#[test]
fn hosts_in_clusters_come_to_the_same() {
    for (clusters, hosts, members) in [
        (1, 3, 2),
        (2, 1, 1),
        (2, 2, 3),
        (3, 3, 1),
        (4, 2, 4),
        (5, 1, 3),
    ] {
        let of = |member: u32| (member / (hosts * members), member / members);
        let places: Places = (0..clusters * hosts * members).map(of).collect();
        check_all(
            &places,
            [0, 1, places.len() as u32 - 1]
                .into_iter()
                .filter(|root| (*root as usize) < places.len()),
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn members_anywhere_come_to_the_same(
        hosts in proptest::collection::vec(0u32..4, 1..12),
        members in proptest::collection::vec(0usize..100, 1..40),
        root in any::<u32>(),
    ) {
        let place = |at: &usize| {
            let host = at % hosts.len();
            (hosts[host], host as u32)
        };
        let places: Places = members.iter().map(place).collect();
        check_all(&places, [root % places.len() as u32]);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn many_members_meet_and_share(size in 65u32..4096, hosts in 1u32..300, clusters in 1u32..5, root in any::<u32>()) {
        let place = |member: u32| {
            let host = member / size.div_ceil(hosts);
            (host % clusters, host)
        };
        let places: Places = (0..size).map(place).collect();
        let layout = Layout::new(places.iter().copied());
        for operation in [Operation::Barrier, Operation::Broadcast(Member(root % size))] {
            for way in ways(&layout, operation, Order::Any) {
                if way.shape != mizzen_proto::group::plan::Shape::Ring && (way.shape != mizzen_proto::group::plan::Shape::Circulant || size < 300) {
                    check(&places, operation, Order::Any, way);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn two_members_of_each_level_measure_it(places in proptest::collection::vec((0u32..3, 0u32..5), 1..20)) {
        // Hosts of two clusters have two numbers.
        let places: Places = places.iter().map(|(cluster, host)| (*cluster, 10 * cluster + host)).collect();
        let layout = Layout::new(places.iter().copied());
        let all: Vec<_> = (0..layout.size()).map(|me| probes(&layout, Member(me))).collect();
        for (me, own) in (0..).map(Member).zip(&all) {
            prop_assert!(own.is_sorted_by_key(|probe| probe.level));
            for probe in own {
                let (cluster, host) = places[me.index()];
                let (other_cluster, other_host) = places[probe.with.index()];
                let level = match (cluster == other_cluster, host == other_host) {
                    (true, true) => Level::Host,
                    (true, false) => Level::Cluster,
                    _ => Level::Far,
                };
                prop_assert_eq!(probe.level, level);
                let back = all[probe.with.index()].iter().filter(|other| other.level == level);
                let back: Vec<_> = back.map(|other| (other.with, other.leads)).collect();
                prop_assert_eq!(back, [(me, !probe.leads)]);
            }
            prop_assert_eq!(to_all(&layout, me).is_empty(), layout.size() == 1);
        }
        let found = |level| all.iter().flatten().filter(|probe| probe.level == level).count();
        let several = |count: u32| if count > 1 { 2 } else { 0 };
        let (widest_host, widest_cluster) = layout.widest();
        prop_assert_eq!(found(Level::Host), several(widest_host));
        prop_assert_eq!(found(Level::Cluster), several(widest_cluster));
        prop_assert_eq!(found(Level::Far), several(layout.clusters()));
    }
}

/// Four members on two cores move less in a tree; each with a core of its own, they do better in parts.
#[test]
fn members_that_share_cores_choose_what_is_less_work() {
    use mizzen_proto::group::plan::Shape;
    let layout = Layout::on_one_host(4);
    let chosen = |crowding| {
        let costs = Costs {
            crowding,
            ..Costs::default()
        };
        let operation = Operation::Broadcast(Member(0));
        choose(&layout, operation, Order::Any, 1 << 20, &costs).map(|way| way.shape)
    };
    assert_eq!(chosen(2_000), Some(Shape::Tree));
    assert_eq!(chosen(1_000), Some(Shape::Circulant));
}

/// Members of two hosts in turn: a tree of all of them would cross twice.
#[test]
fn what_crosses_less_is_chosen_of_two_that_take_as_long() {
    let layout = Layout::new([(0, 0), (0, 1), (0, 0), (0, 1)]);
    let operation = Operation::Broadcast(Member(0));
    let way = choose(&layout, operation, Order::Any, 8, &Costs::default());
    assert!(way.is_some_and(|way| way.by_levels), "{way:?}");
}

#[test]
fn what_was_not_measured_costs_what_it_usually_does() {
    let mut findings = Findings::default();
    findings.add(Level::Cluster, 20_000, 60_000, 50_000);
    let usual = Costs::default();
    let costs = findings.costs(&usual);
    assert_eq!(
        (costs.cluster.latency, costs.cluster.kilobyte),
        (10_000, 400)
    );
    assert_eq!(
        (costs.host, costs.far, costs.combining),
        (usual.host, usual.far, usual.combining)
    );
    findings.add_host(6, 4);
    assert_eq!(findings.costs(&usual).crowding, 1_500);
    assert_eq!(
        Findings::from(costs).costs(&Costs {
            combining: 1,
            ..usual
        }),
        costs
    );
}

/// A barrier of 10,000 processes on 200 hosts: what grows with the job grows as its logarithm.
#[test]
fn a_barrier_of_10_000_processes_is_logarithmic() {
    let mut seen = BTreeMap::new();
    for (size, hosts) in [(100, 2), (1_000, 20), (10_000, 200)] {
        let places: Places = (0..size)
            .map(|member| (0, member / (size / hosts)))
            .collect();
        let layout = Layout::new(places.iter().copied());
        let way = choose(
            &layout,
            Operation::Barrier,
            Order::Any,
            0,
            &Costs::default(),
        )
        .unwrap();
        let (rounds, messages, _) = check(&places, Operation::Barrier, Order::Any, way);
        println!(
            "{size} members on {hosts} hosts: {rounds} rounds, {messages} messages at the busiest ({way:?})"
        );
        seen.insert(size, (rounds, messages));
    }
    assert!(seen[&10_000].0 <= 2 * 6 + 8 && seen[&10_000].1 <= 6 + 8 + 6);
}
