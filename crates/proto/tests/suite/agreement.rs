//! Members agree while others die, in random orders of what they hear.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mizzen_proto::group::agreement::{Agreement, HEIRS, Told, Word};
use mizzen_proto::group::schedule::Member;

/// Who proposed.
type Answer = Vec<u32>;
type Said = Word<u32, Answer>;

fn answer(proposals: &BTreeMap<Member, u32>) -> Answer {
    proposals.values().copied().collect()
}

/// What is under way to a member.
enum Event {
    Word(Member, Said),
    Gone(Member),
}

/// What becomes of those that have their answer: they listen no more.
#[derive(Clone, Copy, PartialEq)]
enum After {
    /// And are there: nobody may wait for them.
    Away,
    /// And have left: others find that out.
    Left,
}

struct World {
    random: u64,
    members: Vec<Agreement<u32, Answer>>,
    /// By sender and receiver: in order.
    ways: BTreeMap<(u32, u32), VecDeque<Event>>,
    dead: BTreeSet<u32>,
    proposed: BTreeSet<u32>,
    after: After,
}

impl World {
    fn draw(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    fn tell(&mut self, from: u32, told: Told<u32, Answer>) {
        // Who dies while it tells has told some of them.
        let dies = self.dead.contains(&from);
        let until = if dies {
            self.draw(told.len() + 1)
        } else {
            told.len()
        };
        for (to, word) in told.into_iter().take(until) {
            let way = self.ways.entry((from, to.0)).or_default();
            way.push_back(Event::Word(Member(from), word));
        }
    }

    /// A member dies: of what it said last, some is lost on each way, and then all others are told.
    fn kill(&mut self, who: u32) {
        self.dead.insert(who);
        for to in 0..self.members.len() as u32 {
            let len = self.ways.get(&(who, to)).map_or(0, VecDeque::len);
            let kept = self.draw(len + 1);
            let way = self.ways.entry((who, to)).or_default();
            way.truncate(kept);
            way.push_back(Event::Gone(Member(who)));
        }
    }

    fn listens(&self, member: u32) -> bool {
        !self.dead.contains(&member) && self.members[member as usize].answer().is_none()
    }

    fn step(&mut self) -> bool {
        let size = self.members.len() as u32;
        let late = (0..size).filter(|of| !self.dead.contains(of) && !self.proposed.contains(of));
        let late: Vec<u32> = late.collect();
        let ways = self
            .ways
            .iter()
            .filter(|((_, to), way)| !way.is_empty() && self.listens(*to));
        let ways: Vec<(u32, u32)> = ways.map(|(way, _)| *way).collect();
        let choices = late.len() + ways.len();
        if choices == 0 {
            return false;
        }
        let choice = self.draw(choices);
        if let Some(who) = late.get(choice).copied() {
            self.proposed.insert(who);
            let told = self.members[who as usize].propose(100 + who, answer);
            self.tell(who, told);
            return true;
        }
        let way = ways[choice - late.len()];
        let event = self.ways.get_mut(&way).and_then(VecDeque::pop_front);
        let member = &mut self.members[way.1 as usize];
        let told = match event {
            Some(Event::Word(from, word)) => member.hear(from, word, answer),
            Some(Event::Gone(member_gone)) => member.lose(member_gone, answer),
            None => Vec::new(),
        };
        self.tell(way.1, told);
        true
    }

    /// Those that wait find out who has left.
    fn find_left(&mut self) -> bool {
        let size = self.members.len() as u32;
        let mut found = false;
        for member in (0..size).filter(|of| self.listens(*of)).collect::<Vec<_>>() {
            for awaited in self.members[member as usize].awaited() {
                let has_left = !self.dead.contains(&awaited.0) && !self.listens(awaited.0);
                if has_left {
                    let told = self.members[member as usize].lose(awaited, answer);
                    self.tell(member, told);
                    found = true;
                }
            }
        }
        found
    }
}

fn run(seed: u64, most_deaths: usize, after: After) -> (usize, bool) {
    let mut world = World {
        random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        members: Vec::new(),
        ways: BTreeMap::new(),
        dead: BTreeSet::new(),
        proposed: BTreeSet::new(),
        after,
    };
    let size = 1 + world.draw(9) as u32;
    world.members = (0..size)
        .map(|me| Agreement::new(Member(me), size))
        .collect();
    let deaths = world.draw(most_deaths.min(size as usize - 1) + 1);
    let mut at: Vec<usize> = (0..deaths).map(|_| world.draw(8 * size as usize)).collect();
    let mut steps = 0;
    loop {
        assert!(steps < 100_000, "seed {seed}: it does not end");
        if at.first().is_some_and(|_| at.contains(&steps)) {
            at.retain(|of| *of != steps);
            let alive = (0..size)
                .filter(|of| !world.dead.contains(of))
                .collect::<Vec<_>>();
            // Leaders are what matters.
            let choice = world.draw(alive.len().min(3));
            world.kill(alive[choice]);
        }
        steps += 1;
        let moved = world.step() || world.after == After::Left && world.find_left();
        if !moved && at.is_empty() {
            break;
        }
    }
    let alive = (0..size).filter(|of| !world.dead.contains(of));
    let answers: Vec<Option<&Answer>> = alive
        .map(|of| world.members[of as usize].answer())
        .collect();
    let all_have_one = answers.iter().all(Option::is_some);
    let mut known = answers.iter().flatten();
    let first = known.next();
    assert!(
        known.all(|answer| Some(answer) == first),
        "seed {seed}: {answers:?}"
    );
    (world.dead.len(), all_have_one)
}

#[test]
fn all_that_live_come_to_the_same_answer() {
    for seed in 1..=20_000 {
        let (dead, all_have_one) = run(seed, HEIRS, After::Away);
        assert!(
            all_have_one,
            "seed {seed}: with {dead} dead, some wait for ever"
        );
    }
}

#[test]
fn any_number_may_die_if_those_with_an_answer_leave() {
    for seed in 1..=20_000 {
        let (dead, all_have_one) = run(seed, 8, After::Left);
        assert!(
            all_have_one,
            "seed {seed}: with {dead} dead, some wait for ever"
        );
    }
}

#[test]
fn one_member_agrees_with_itself() {
    let mut alone = Agreement::new(Member(0), 1);
    assert!(alone.propose(7, answer).is_empty());
    assert_eq!(alone.answer(), Some(&vec![7]));
}
