//! What members agree on when some of them are gone, and what they propose: the protocol is `mizzen_proto::group::agreement`.

use std::collections::BTreeMap;

use mizzen_proto::group::agreement::{self, Agreement};
use mizzen_proto::group::schedule::Member;
use serde::{Deserialize, Serialize};

use super::roster::Record;

/// What a member proposes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Proposal {
    /// What it called, and where.
    pub(super) name: String,
    pub(super) call: String,
    pub(super) flags: u64,
    /// How many operations it has done.
    pub(super) done: u64,
    /// How it is known in the group that is made of the survivors.
    pub(super) record: Record,
}

/// What all survivors have come to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// Those that all have set.
    pub(super) flags: u64,
    /// How many operations all have done.
    pub(super) done: u64,
    pub(super) survivors: Vec<(Member, Record)>,
    /// Two that called different things.
    pub(super) differ: Option<[(Member, String); 2]>,
}

pub(super) type Word = agreement::Word<Proposal, Answer>;
pub(super) type Told = agreement::Told<Proposal, Answer>;

/// The agreements of a group, by number: all members call them in the same order.
#[derive(Debug)]
pub(super) struct Agreements {
    me: Member,
    size: u32,
    called: u64,
    known: BTreeMap<u64, Agreement<Proposal, Answer>>,
}

impl Agreements {
    pub(super) fn new(me: Member, size: u32) -> Self {
        Self {
            me,
            size,
            called: 0,
            known: BTreeMap::new(),
        }
    }

    /// Whether there were any.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// This member calls the next one.
    pub(super) fn call(&mut self, proposal: Proposal) -> (u64, Told) {
        self.called += 1;
        let number = self.called;
        // Others may be in the one before, but not earlier.
        self.known.retain(|of, _| *of + 1 >= number);
        let told = self.of(number).propose(proposal, answer);
        (number, told)
    }

    /// A member has told something.
    pub(super) fn hear(&mut self, number: u64, from: Member, word: Word) -> Told {
        // Nobody is further ahead, since it would need this member, and who is further behind needs it no more.
        let is_near = number >= self.called.max(1) - u64::from(self.called > 1);
        if !is_near || number > self.called + 1 {
            return Vec::new();
        }
        self.of(number).hear(from, word, answer)
    }

    /// A member is gone, in the latest agreement.
    pub(super) fn lose(&mut self, member: Member) -> (u64, Told) {
        let number = self.called;
        (number, self.of(number).lose(member, answer))
    }

    pub(super) fn answer(&self, number: u64) -> Option<&Answer> {
        self.known.get(&number)?.answer()
    }

    /// Whom this member waits for.
    pub(super) fn awaited(&self, number: u64) -> Vec<Member> {
        let known = self.known.get(&number);
        known.map_or_else(Vec::new, Agreement::awaited)
    }

    fn of(&mut self, number: u64) -> &mut Agreement<Proposal, Answer> {
        let (me, size) = (self.me, self.size);
        let new = || Agreement::new(me, size);
        self.known.entry(number).or_insert_with(new)
    }
}

fn answer(proposals: &BTreeMap<Member, Proposal>) -> Answer {
    let mut all = proposals.iter();
    let first = all.next();
    let other = first.and_then(|(_, first)| all.find(|(_, other)| other.name != first.name));
    let differ = first.zip(other).map(|(first, other)| {
        [first, other].map(|(member, proposal)| (*member, proposal.call.clone()))
    });
    let all = || proposals.values();
    Answer {
        flags: all().fold(u64::MAX, |flags, of| flags & of.flags),
        done: all().map(|of| of.done).min().unwrap_or(0),
        survivors: proposals
            .iter()
            .map(|(member, of)| (*member, of.record))
            .collect(),
        differ,
    }
}
