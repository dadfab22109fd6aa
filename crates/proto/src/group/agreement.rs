//! How members come to one answer although some of them die meanwhile.
//!
//! The member with the lowest number that is not gone *leads*. The others tell it what they propose. When it has heard all that are not gone, it makes an answer,
//! lets all others *take* it, and when all have, it is *final*. If the leader dies, the next one leads. Whoever has taken an answer tells it with its proposal, and
//! the new leader takes that one up: if one was final anywhere, all that live have taken it.
//!
//! Who has a final answer goes on and listens no more. So it first tells the answer to those that lead next, if the leader should die before it has told all; and
//! these tell all. Members may be lost to that in any number, but with more than [`HEIRS`] that die one after the other, while the first tells its answer, others
//! wait for those that went on, until they come back to the group or leave it.
//!
//! Two things are asked of the world: what one member says to another comes in order; and who is said to be gone is, and what it said before has come.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::schedule::Member;

/// So many of those that lead next pass a final answer on to all.
pub const HEIRS: usize = 2;

/// One agreement, as a member sees it: on an answer `A` made of proposals `P`.
#[derive(Debug, Clone)]
pub struct Agreement<P, A> {
    me: Member,
    size: u32,
    gone: BTreeSet<Member>,
    /// What was proposed, this member's too, and who had taken which answer then.
    proposals: BTreeMap<Member, P>,
    /// The answer that was taken last, and who led then.
    taken: Option<(Member, A)>,
    /// Whom this member leads, and who of them has taken the answer.
    followers: Option<BTreeSet<Member>>,
    /// Who was told the proposal.
    told: Option<Member>,
    answer: Option<A>,
}

/// What members tell each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word<P, A> {
    /// To the leader: what the sender proposes, and the answer that it has taken before, with who led.
    Propose(P, Option<(Member, A)>),
    /// From the leader: this is the answer, unless somebody has died.
    Take(A),
    /// To the leader: the sender has taken it.
    Taken,
    /// It is the answer.
    Final(A),
}

/// What is to be told, and to whom.
pub type Told<P, A> = Vec<(Member, Word<P, A>)>;

impl<P: Clone, A: Clone> Agreement<P, A> {
    /// An agreement of so many members, of whom this is one.
    #[must_use]
    pub fn new(me: Member, size: u32) -> Self {
        Self {
            me,
            size,
            gone: BTreeSet::new(),
            proposals: BTreeMap::new(),
            taken: None,
            followers: None,
            told: None,
            answer: None,
        }
    }

    /// The answer, if it is final.
    #[must_use]
    pub fn answer(&self) -> Option<&A> {
        self.answer.as_ref()
    }

    /// Whose words this member waits for.
    #[must_use]
    pub fn awaited(&self) -> Vec<Member> {
        let leader = self.leader();
        if leader != self.me {
            return vec![leader];
        }
        let is_awaited = |member: &Member| match &self.followers {
            Some(followers) => !followers.contains(member),
            None => !self.proposals.contains_key(member),
        };
        self.others().filter(is_awaited).collect()
    }

    /// This member proposes something. `answer` makes an answer of all proposals.
    pub fn propose(
        &mut self,
        proposal: P,
        answer: impl Fn(&BTreeMap<Member, P>) -> A,
    ) -> Told<P, A> {
        self.proposals.insert(self.me, proposal);
        self.advance(answer)
    }

    /// A member is gone.
    pub fn lose(
        &mut self,
        member: Member,
        answer: impl Fn(&BTreeMap<Member, P>) -> A,
    ) -> Told<P, A> {
        let leader = self.leader();
        if member == self.me || !self.gone.insert(member) {
            return Vec::new();
        }
        self.proposals.remove(&member);
        match &self.answer {
            Some(answer) if leader == member && self.leader() != self.me => {
                vec![(self.leader(), Word::Final(answer.clone()))]
            }
            Some(_) => Vec::new(),
            None => self.advance(answer),
        }
    }

    /// A member has told something.
    pub fn hear(
        &mut self,
        from: Member,
        word: Word<P, A>,
        answer: impl Fn(&BTreeMap<Member, P>) -> A,
    ) -> Told<P, A> {
        if from.0 >= self.size || from == self.me || self.gone.contains(&from) {
            return Vec::new();
        }
        if let Some(answer) = &self.answer {
            return match word {
                Word::Propose(..) | Word::Take(_) => vec![(from, Word::Final(answer.clone()))],
                Word::Taken | Word::Final(_) => Vec::new(),
            };
        }
        match word {
            Word::Propose(proposal, taken) => {
                self.proposals.insert(from, proposal);
                if let Some((leader, answer)) = taken {
                    self.take(leader, answer);
                }
                self.advance(answer)
            }
            Word::Take(answer) => {
                self.take(from, answer);
                vec![(from, Word::Taken)]
            }
            Word::Taken => {
                if let Some(followers) = &mut self.followers {
                    followers.insert(from);
                }
                self.advance(answer)
            }
            Word::Final(answer) => {
                self.answer = Some(answer.clone());
                let heirs: Vec<Member> = self.heirs(from).collect();
                // Who may have to lead tells all, the others tell those.
                let told: Vec<Member> = if heirs.contains(&self.me) {
                    self.others().filter(|member| *member != from).collect()
                } else {
                    heirs
                };
                let word = |member| (member, Word::Final(answer.clone()));
                told.into_iter().map(word).collect()
            }
        }
    }

    /// The answer of a later leader counts.
    fn take(&mut self, leader: Member, answer: A) {
        if self
            .taken
            .as_ref()
            .is_none_or(|(before, _)| *before <= leader)
        {
            self.taken = Some((leader, answer));
        }
    }

    fn advance(&mut self, answer: impl Fn(&BTreeMap<Member, P>) -> A) -> Told<P, A> {
        let Some(own) = self
            .proposals
            .get(&self.me)
            .filter(|_| self.answer.is_none())
        else {
            return Vec::new();
        };
        let leader = self.leader();
        if leader != self.me {
            if self.told == Some(leader) {
                return Vec::new();
            }
            let word = Word::Propose(own.clone(), self.taken.clone());
            self.told = Some(leader);
            return vec![(leader, word)];
        }
        let mut told = Vec::new();
        if self.followers.is_none() {
            if self
                .others()
                .any(|member| !self.proposals.contains_key(&member))
            {
                return told;
            }
            let (_, answer) = match self.taken.take() {
                Some(taken) => taken,
                None => (self.me, answer(&self.proposals)),
            };
            told.extend(
                self.others()
                    .map(|member| (member, Word::Take(answer.clone()))),
            );
            self.taken = Some((self.me, answer));
            self.followers = Some(BTreeSet::new());
        }
        let is_taken =
            |followers: &BTreeSet<Member>| self.others().all(|of| followers.contains(&of));
        if let (Some((_, answer)), true) =
            (&self.taken, self.followers.as_ref().is_some_and(is_taken))
        {
            self.answer = Some(answer.clone());
            told.extend(
                self.others()
                    .map(|member| (member, Word::Final(answer.clone()))),
            );
        }
        told
    }

    fn leader(&self) -> Member {
        let mut all = (0..self.size).map(Member);
        all.find(|member| !self.gone.contains(member))
            .unwrap_or(self.me)
    }

    /// All others that are not gone.
    fn others(&self) -> impl Iterator<Item = Member> + '_ {
        let all = (0..self.size).map(Member);
        all.filter(|member| *member != self.me && !self.gone.contains(member))
    }

    /// Who leads when `leader` is gone, and then.
    fn heirs(&self, leader: Member) -> impl Iterator<Item = Member> + '_ {
        let all = (0..self.size).map(Member);
        all.filter(move |member| *member != leader && !self.gone.contains(member))
            .take(HEIRS)
    }
}
