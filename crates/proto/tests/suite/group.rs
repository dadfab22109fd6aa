//! Schedules of groups, carried out without a network: members are lists of what was combined, so what is missing, doubled or out of order shows. Nothing is
//! held in between: what is sent has to be received at the same time.

use std::collections::BTreeMap;

use mizzen_proto::group::cost::{Costs, choose};
use mizzen_proto::group::layout::Layout;
use mizzen_proto::group::plan::{Operation, Order, Space, Stage, Way, stages, ways};
use mizzen_proto::group::schedule::{Fold, Member, Round, Transfer, part};
use proptest::prelude::*;

/// An element: of whom it consists, in this order. Without anybody, it was never written.
type Element = Vec<u32>;

/// One member, as it carries its stages out.
struct Machine {
    me: u32,
    stages: Vec<Stage>,
    /// Which stage, and which of its rounds.
    at: (usize, usize),
    /// What is under way in this round.
    open: Option<Open>,
    data: Vec<Element>,
    /// Where each member's block is, if members have blocks.
    blocks: Vec<std::ops::Range<usize>>,
    /// What is sent, if it is not where what comes goes.
    from: Option<Vec<Element>>,
    copies: Vec<Vec<Element>>,
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
    /// The elements of a transfer's blocks, by their places.
    fn places(&self, space: Space, transfer: &Transfer) -> Vec<(usize, std::ops::Range<usize>)> {
        let len = self.data.len();
        let blocks = transfer.blocks.iter().cloned().flatten();
        let place = |block: u32| match space {
            Space::Nothing => panic!("a block where there are none"),
            Space::Whole => {
                assert_eq!(block, 0);
                (0, 0..len)
            }
            Space::Parts(parts) => (0, part(len, parts, block)),
            Space::Copies(..) => (1 + block as usize, 0..len),
            Space::Members | Space::Pairs => (0, self.blocks[block as usize].clone()),
        };
        blocks.map(place).collect()
    }

    fn read(&self, space: Space, transfer: &Transfer) -> Vec<Element> {
        let mut all = Vec::new();
        for (copy, range) in self.places(space, transfer) {
            let data = match (copy, &self.from) {
                (0, Some(from)) => from,
                (0, None) => &self.data,
                (copy, _) => &self.copies[copy - 1],
            };
            all.extend_from_slice(&data[range]);
        }
        let written = all.iter().all(|element| !element.is_empty());
        assert!(written, "member {} sends what it does not have", self.me);
        all
    }

    fn space(&self) -> Space {
        self.stages[self.at.0].space
    }

    /// Begins the next round, if there is one.
    fn begin(&mut self) -> bool {
        while self.open.is_none() {
            let Some(stage) = self.stages.get(self.at.0) else {
                return false;
            };
            if self.at.1 == 0 {
                if let Space::Copies(count, mine) = stage.space {
                    self.copies = vec![vec![vec![]; self.data.len()]; count as usize];
                    self.copies[mine as usize] = self.data.clone();
                }
            }
            let Some(round) = stage.rounds.get(self.at.1).cloned() else {
                if let Space::Copies(..) = stage.space {
                    let mut copies = std::mem::take(&mut self.copies).into_iter();
                    self.data = copies.next().unwrap();
                    for copy in copies {
                        for (element, next) in self.data.iter_mut().zip(copy) {
                            assert!(!next.is_empty(), "a copy did not come");
                            element.extend(next);
                        }
                    }
                }
                self.at = (self.at.0 + 1, 0);
                continue;
            };
            self.messages += round.sends.len() as u32;
            self.open = Some(Open {
                sent: vec![false; round.sends.len()],
                came: vec![None; round.receives.len()],
                crossed: self.crossed,
                round,
            });
        }
        true
    }

    /// Ends the round, if all of it is done.
    fn end(&mut self) -> bool {
        let is_over = |open: &Open| {
            open.sent.iter().all(|sent| *sent) && open.came.iter().all(Option::is_some)
        };
        if !self.open.as_ref().is_some_and(is_over) {
            return false;
        }
        let (open, space) = (self.open.take().unwrap(), self.space());
        for (transfer, came) in open.round.receives.iter().zip(open.came) {
            let (came, crossed) = came.unwrap();
            self.crossed = self.crossed.max(crossed);
            let mut came = came.into_iter();
            for (copy, range) in self.places(space, transfer) {
                let data = if copy == 0 {
                    &mut self.data
                } else {
                    &mut self.copies[copy - 1]
                };
                for element in &mut data[range] {
                    let next = came.next().expect("as long as what was sent");
                    match transfer.fold {
                        Fold::Replace => *element = next,
                        Fold::After => element.extend(next),
                        Fold::Before => {
                            *element = next.into_iter().chain(element.drain(..)).collect()
                        }
                    }
                }
            }
            assert!(came.next().is_none(), "as long as what was sent");
        }
        self.at.1 += 1;
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
                if machines[to].space() != Space::Pairs {
                    assert_eq!(receive.blocks, send.blocks);
                }
                let what = machines[me].read(machines[me].space(), send);
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
        assert!(
            !machine.begin(),
            "member {} waits for ever in {:?}",
            machine.me,
            machine.at
        );
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
    let lengths = (0..size).map(|member| {
        if operation == Operation::AllToAll {
            1
        } else if has_blocks {
            (member as usize + 1) % 3
        } else {
            0
        }
    });
    let mut blocks = Vec::new();
    let mut end = 0;
    for length in lengths {
        blocks.push(end..end + length);
        end += length;
    }
    let len = if has_blocks { end } else { 5 };
    let start = |me: u32| -> Vec<Element> {
        let own = |element: usize| blocks[me as usize].contains(&element);
        let has = |element: usize| match operation {
            Operation::Barrier => false,
            Operation::Broadcast(root) | Operation::Scatter(root) => root.0 == me,
            Operation::Gather(_) | Operation::AllGather => own(element),
            _ => true,
        };
        (0..len)
            .map(|element| if has(element) { vec![me] } else { vec![] })
            .collect()
    };
    let machine = |me: u32| Machine {
        me,
        stages: stages(&layout, Member(me), operation, order, way),
        at: (0, 0),
        open: None,
        data: if operation == Operation::AllToAll {
            vec![vec![]; len]
        } else {
            start(me)
        },
        blocks: blocks.clone(),
        from: (operation == Operation::AllToAll).then(|| start(me)),
        copies: vec![],
        crossed: 0,
        rounds: 0,
        messages: 0,
    };
    let mut machines: Vec<Machine> = (0..size).map(machine).collect();
    run(&mut machines, |member| places[member as usize].0);
    let what = || format!("{size} members in {places:?}, {operation:?}, {order:?}, {way:?}");
    let everybody: Element = (0..size).collect();
    let combined = |element: &Element, expected: &[u32]| {
        let mut sorted = element.clone();
        if order == Order::Any {
            sorted.sort_unstable();
        }
        assert_eq!(sorted, expected, "{}", what());
    };
    for machine in &machines {
        let me = machine.me;
        for (at, element) in machine.data.iter().enumerate() {
            let own = has_blocks && blocks[me as usize].contains(&at);
            let whose = blocks
                .iter()
                .position(|block| block.contains(&at))
                .unwrap_or(0) as u32;
            match operation {
                Operation::Barrier => (),
                Operation::Broadcast(root) => assert_eq!(*element, [root.0], "{}", what()),
                Operation::Reduce(root) if root.0 == me => combined(element, &everybody),
                Operation::AllReduce => combined(element, &everybody),
                Operation::Gather(root) if root.0 == me => {
                    assert_eq!(*element, [whose], "{}", what())
                }
                Operation::AllGather => assert_eq!(*element, [whose], "{}", what()),
                Operation::Scatter(root) if own => assert_eq!(*element, [root.0], "{}", what()),
                // The block for itself does not travel.
                Operation::AllToAll if !own => assert_eq!(*element, [whose], "{}", what()),
                Operation::ReduceScatter if own => combined(element, &everybody),
                Operation::Scan => assert_eq!(*element, (0..=me).collect::<Vec<_>>(), "{}", what()),
                Operation::ExclusiveScan if me > 0 => {
                    assert_eq!(*element, (0..me).collect::<Vec<_>>())
                }
                _ => (),
            }
        }
        if operation == Operation::AllReduce {
            assert_eq!(
                machine.data,
                machines[0].data,
                "the same bits at all: {}",
                what()
            );
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
