//! Collective operations on symbols instead of numbers, as `mizzen_proto::group` plans them: what is missing, doubled, out of order or out of place shows.
//!
//! A [`Task`] is an operation with its reference; a [`Part`] is what one member does of it, round by round. How what is sent gets to the other member is its
//! user's affair.

use std::ops::Range;
use std::rc::Rc;

use mizzen_proto::group::layout::Layout;
use mizzen_proto::group::plan::{Operation, Order, Space, Stage, Way, stages};
use mizzen_proto::group::schedule::{Fold, Member, Round, Transfer, part};

/// What a member had at a place when the operation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol {
    /// Whose it was.
    pub member: u32,
    /// Where it was.
    pub place: u32,
}

/// What was combined, in this order. Without anything, it was never written.
pub type Element = Vec<Symbol>;

/// What members do together, and on how much. The same at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    operation: Operation,
    order: Order,
    size: u32,
    /// Where each member's block is, if members have blocks.
    blocks: Vec<Range<usize>>,
    len: usize,
}

/// What one member does of a task.
#[derive(Debug)]
pub struct Part {
    task: Rc<Task>,
    me: u32,
    stages: Vec<Stage>,
    /// Which stage, and which of its rounds.
    at: (usize, usize),
    data: Vec<Element>,
    /// What is sent, if it is not where what comes goes.
    from: Option<Vec<Element>>,
    copies: Vec<Vec<Element>>,
}

impl Task {
    /// An operation of so many members on data of this length, or on blocks of these, where members have blocks. All blocks of an all-to-all are as long as
    /// the first.
    pub fn new(
        operation: Operation,
        order: Order,
        size: u32,
        length: impl Fn(Member) -> usize,
    ) -> Self {
        let has_blocks = matches!(
            operation,
            Operation::Gather(_)
                | Operation::Scatter(_)
                | Operation::AllGather
                | Operation::AllToAll
                | Operation::ReduceScatter
        );
        let first = length(Member(0));
        let mut end = 0;
        let mut block = |member| {
            let start = end;
            end += match operation {
                _ if !has_blocks => 0,
                Operation::AllToAll => first,
                _ => length(Member(member)),
            };
            start..end
        };
        let blocks = (0..size).map(&mut block).collect();
        Self {
            operation,
            order,
            size,
            blocks,
            len: if has_blocks { end } else { first },
        }
    }

    /// Whether nobody can have done its part before all have begun theirs.
    pub fn waits_for_all(&self) -> bool {
        matches!(
            self.operation,
            Operation::Barrier
                | Operation::AllReduce
                | Operation::AllGather
                | Operation::AllToAll
                | Operation::ReduceScatter
        )
    }

    /// Whether all members end with the same bits.
    pub fn ends_alike(&self) -> bool {
        self.operation == Operation::AllReduce
    }

    /// Whether a member's data are what the operation should have come to. What it leaves open may be anything.
    ///
    /// # Errors
    /// What is wrong, as a sentence.
    pub fn check(&self, me: u32, data: &[Element]) -> Result<(), String> {
        let wrong = data.iter().enumerate().find(|(at, element)| {
            let expected = self.expected(me, *at);
            expected.is_some_and(|expected| !self.is_alike(element, &expected))
        });
        match wrong {
            Some((at, element)) => Err(format!(
                "member {me} of {} has {element:?} at {at} after {:?}",
                self.size, self.operation
            )),
            None => Ok(()),
        }
    }

    /// What a member should have at a place, if it should have something there.
    fn expected(&self, me: u32, at: usize) -> Option<Element> {
        let is_own = self.blocks[me as usize].contains(&at);
        let of = |member: u32, place: usize| Symbol {
            member,
            place: place as u32,
        };
        let combined = |members: Range<u32>| members.map(|member| of(member, at)).collect();
        let whose = self.blocks.iter().position(|block| block.contains(&at));
        let whose = whose.unwrap_or(0);
        match self.operation {
            Operation::Broadcast(root) => Some(vec![of(root.0, at)]),
            Operation::Scatter(root) if is_own => Some(vec![of(root.0, at)]),
            Operation::Reduce(root) if root.0 == me => Some(combined(0..self.size)),
            Operation::AllReduce => Some(combined(0..self.size)),
            Operation::ReduceScatter if is_own => Some(combined(0..self.size)),
            Operation::Gather(root) if root.0 == me => Some(vec![of(whose as u32, at)]),
            Operation::AllGather => Some(vec![of(whose as u32, at)]),
            // The block for itself does not travel.
            Operation::AllToAll if !is_own => {
                let within = at - self.blocks[whose].start;
                Some(vec![of(
                    whose as u32,
                    self.blocks[me as usize].start + within,
                )])
            }
            Operation::Scan => Some(combined(0..me + 1)),
            Operation::ExclusiveScan if me > 0 => Some(combined(0..me)),
            _ => None,
        }
    }

    fn is_alike(&self, element: &Element, expected: &Element) -> bool {
        let is_scan = matches!(self.operation, Operation::Scan | Operation::ExclusiveScan);
        if self.order == Order::Members || is_scan {
            return element == expected;
        }
        let mut sorted = element.clone();
        sorted.sort_unstable();
        sorted == *expected
    }

    /// What a member has before the operation.
    fn start(&self, me: u32) -> Vec<Element> {
        let own = |element: usize| self.blocks[me as usize].contains(&element);
        let has = |element: usize| match self.operation {
            Operation::Barrier => false,
            Operation::Broadcast(root) | Operation::Scatter(root) => root.0 == me,
            Operation::Gather(_) | Operation::AllGather => own(element),
            _ => true,
        };
        let symbol = |place: usize| Symbol {
            member: me,
            place: place as u32,
        };
        let element = |at: usize| has(at).then(|| symbol(at)).into_iter().collect();
        (0..self.len).map(element).collect()
    }
}

impl Part {
    /// What `me` does of a task, in this way.
    pub fn new(task: &Rc<Task>, layout: &Layout, me: Member, way: Way) -> Self {
        let stages = stages(layout, me, task.operation, task.order, way);
        Self::of_stages(task, me, stages)
    }

    /// The same where it is planned elsewhere what `me` does.
    pub fn of_stages(task: &Rc<Task>, me: Member, stages: Vec<Stage>) -> Self {
        let start = task.start(me.0);
        let is_elsewhere = task.operation == Operation::AllToAll;
        Self {
            me: me.0,
            stages,
            at: (0, 0),
            data: if is_elsewhere {
                vec![vec![]; task.len]
            } else {
                start.clone()
            },
            from: is_elsewhere.then_some(start),
            copies: Vec::new(),
            task: Rc::clone(task),
        }
    }

    /// The round that the member is in; none if it has done all. The same until it is [ended](Self::end_round).
    ///
    /// # Panics
    /// If a copy of the data did not come.
    pub fn round(&mut self) -> Option<Round> {
        loop {
            let stage = self.stages.get(self.at.0)?;
            if let (0, Space::Copies(count, mine)) = (self.at.1, stage.space) {
                self.copies = vec![vec![vec![]; self.data.len()]; count as usize];
                self.copies[mine as usize] = self.data.clone();
            }
            if let Some(round) = stage.rounds.get(self.at.1) {
                return Some(round.clone());
            }
            if let Space::Copies(..) = stage.space {
                let mut copies = std::mem::take(&mut self.copies).into_iter();
                self.data = copies.next().unwrap_or_default();
                for copy in copies {
                    for (element, next) in self.data.iter_mut().zip(copy) {
                        assert!(!next.is_empty(), "a copy did not come");
                        element.extend(next);
                    }
                }
            }
            self.at = (self.at.0 + 1, 0);
        }
    }

    /// What goes out in a transfer of this round.
    ///
    /// # Panics
    /// If the member does not have it.
    pub fn read(&self, transfer: &Transfer) -> Vec<Element> {
        let mut all = Vec::new();
        for (copy, range) in self.places(transfer) {
            let data = match (copy, &self.from) {
                (None, Some(from)) => from,
                (None, None) => &self.data,
                (Some(copy), _) => &self.copies[copy],
            };
            all.extend_from_slice(&data[range]);
        }
        let is_written = all.iter().all(|element| !element.is_empty());
        assert!(is_written, "member {} sends what it does not have", self.me);
        all
    }

    /// Ends a round with what came in it, in the order of its receives.
    ///
    /// # Panics
    /// If that is not as long as what was expected.
    pub fn end_round(&mut self, round: &Round, came: Vec<Vec<Element>>) {
        for (transfer, came) in round.receives.iter().zip(came) {
            let mut came = came.into_iter();
            for (copy, range) in self.places(transfer) {
                let data = match copy {
                    None => &mut self.data,
                    Some(copy) => &mut self.copies[copy],
                };
                for element in &mut data[range] {
                    let mut next = came.next().expect("as long as what was sent");
                    match transfer.fold {
                        Fold::Replace => *element = next,
                        Fold::After => element.extend(next),
                        Fold::Before => {
                            next.append(element);
                            *element = next;
                        }
                    }
                }
            }
            assert!(came.next().is_none(), "as long as what was sent");
        }
        self.at.1 += 1;
    }

    /// What the blocks of this round are.
    pub fn space(&self) -> Space {
        self.stages
            .get(self.at.0)
            .map_or(Space::Nothing, |stage| stage.space)
    }

    /// What the member has.
    pub fn data(&self) -> &[Element] {
        &self.data
    }

    /// What the member does it for.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Where the elements of a transfer's blocks are: in which copy, if there are copies, and at which places.
    fn places(&self, transfer: &Transfer) -> Vec<(Option<usize>, Range<usize>)> {
        let (len, space) = (self.task.len, self.space());
        let blocks = transfer.blocks.iter().cloned().flatten();
        let place = |block: u32| match space {
            Space::Nothing => panic!("a block where there are none"),
            Space::Whole => {
                assert_eq!(block, 0, "there is one block");
                (None, 0..len)
            }
            Space::Parts(parts) => (None, part(len, parts, block)),
            Space::Copies(..) => (Some(block as usize), 0..len),
            Space::Members | Space::Pairs => (None, self.task.blocks[block as usize].clone()),
        };
        blocks.map(place).collect()
    }
}
