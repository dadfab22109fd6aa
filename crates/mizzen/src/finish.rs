//! The orderly end of a job: nobody leaves before everybody has finished.
//!
//! Every process has a mailbox for this from the start, so it can be told without a name, and
//! before it has called [`Deck::finish`] itself. A process that has finished tells the *root*, the lowest rank that is still
//! there, and waits. The root waits until every other process has told it, has left or has died; then it releases those that
//! wait. If the root is gone, the next rank becomes the root, and is told again.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};

use mizzen_core::service::{Address, Caller, Kind, WaitsFor, reserved};
use mizzen_core::{
    Departure, Error, ErrorScope, Gone, Incarnation, Mailbox, MailboxRef, ProcessId, Rank,
    ReachError, RetrieveError, ServiceError,
};
use serde::{Deserialize, Serialize};

use crate::deck::Deck;

/// Why a job did not finish as one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// Some processes were lost before they finished. All others have finished.
    #[error("the job finished without all of its processes: {}", sentence(.gone))]
    Lost {
        /// Who was lost, in the order of the ranks.
        gone: Vec<Gone>,
    },
    /// The process that knows when all have finished cannot be reached.
    #[error("whether all have finished is not known: {0}")]
    Unreachable(ReachError),
    /// This process has finished before.
    #[error("`finish` was called twice in this process; call it once, at its end")]
    Twice,
}

impl From<FinishError> for Error {
    fn from(error: FinishError) -> Self {
        Self::Service(Box::new(error))
    }
}

impl ServiceError for FinishError {
    fn scope(&self) -> ErrorScope {
        ErrorScope::Job
    }

    fn lost(&self) -> Option<Rank> {
        match self {
            Self::Lost { gone } => gone.first().map(Gone::rank),
            Self::Unreachable(ReachError::Gone(gone)) => Some(gone.rank()),
            _ => None,
        }
    }

    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }
}

fn sentence(gone: &[Gone]) -> String {
    let all: Vec<String> = gone.iter().map(Gone::to_string).collect();
    all.join(", ")
}

impl Deck {
    /// Ends this process's part in the job in an orderly way: waits until every other process has called `finish` too, or is
    /// gone, and then leaves. Meanwhile it goes on serving its services, so nobody loses one that it still calls. Waiting
    /// uses no processor time.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let _service = deck.serve("twice", |x: u32| 2 * x)?;
    ///     let next = (deck.rank().0 + 1) % deck.size();
    ///     assert_eq!(deck.client_at::<u32, u32>(next, "twice")?.call(&21)?, 42);
    ///     // Whoever is called by others still serves them here.
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`FinishError::Lost`] if processes died before they had finished; all others have finished then.
    #[track_caller]
    pub fn finish(self) -> Result<(), Error> {
        let _call = Caller::enter();
        let inbox = self.process.take_reserved(reserved::FINISH);
        let inbox = inbox.ok_or(FinishError::Twice)?;
        Ok(Finish::new(&self, inbox).run()?)
    }
}

/// What is said about the end.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// To the root: the sender has finished.
    Finished,
    /// From the root: all have finished, or are gone. Those who were lost: rank, incarnation, how.
    Over(Vec<(u32, u32, u8)>),
}

/// How processes are lost, by their numbers in [`Word::Over`].
const LOSSES: [Departure; 4] = [
    Departure::Died,
    Departure::ConnectionLost,
    Departure::Misbehaved,
    Departure::Refused,
];

/// One process's wait for the end.
struct Finish<'d> {
    deck: &'d Deck,
    inbox: Mailbox,
    /// Who has told us that it has finished.
    finished: BTreeSet<Rank>,
    /// Who is gone, and how.
    gone: BTreeMap<Rank, Gone>,
    over: bool,
}

impl<'d> Finish<'d> {
    fn new(deck: &'d Deck, inbox: Mailbox) -> Self {
        let others = (0..deck.size()).map(Rank).filter(|r| *r != deck.rank());
        others.for_each(|rank| inbox.depend_on(rank));
        Self {
            deck,
            inbox,
            finished: BTreeSet::new(),
            gone: BTreeMap::new(),
            over: false,
        }
    }

    fn run(mut self) -> Result<(), FinishError> {
        let me = self.deck.rank();
        // The ranks before us are asked in turn; if all of them are gone, we are the root.
        for root in (0..me.0).map(Rank) {
            if self.ask(root)? {
                return self.outcome();
            }
        }
        self.gather();
        self.release();
        self.outcome()
    }

    /// Tells the root that we have finished, and waits for its word. `false` if it is gone.
    fn ask(&mut self, root: Rank) -> Result<bool, FinishError> {
        match self.tell(root, &Word::Finished) {
            Ok(()) => (),
            Err(ReachError::Gone(gone)) => {
                self.note_gone(gone);
                return Ok(false);
            }
            Err(error) => return Err(FinishError::Unreachable(error)),
        }
        self.wait_for(root);
        while !self.over && !self.gone.contains_key(&root) {
            self.hear();
        }
        Ok(self.over)
    }

    /// The root waits for all others.
    fn gather(&mut self) {
        let me = self.deck.rank();
        for rank in (0..self.deck.size()).map(Rank).filter(|r| *r != me) {
            if self.is_settled(rank) {
                continue;
            }
            // Of a process with which we have a link we hear how it goes; who left before needs no waiting for.
            match self.deck.process.reach(rank) {
                Ok(_) => (),
                Err(ReachError::Gone(gone)) => self.note_gone(gone),
                Err(_) => {
                    let life = ProcessId::new(rank, Incarnation(0));
                    self.note_gone(Gone::new(life, Departure::ConnectionLost));
                }
            }
            self.wait_for(rank);
            while !self.is_settled(rank) && !self.over {
                self.hear();
            }
        }
    }

    /// Tells all who wait that it is over. One that is gone meanwhile need not know.
    fn release(&self) {
        let lost = self.lost().into_iter().filter_map(|gone| {
            let how = LOSSES.iter().position(|how| *how == gone.how())?;
            let ProcessId { rank, incarnation } = gone.process();
            Some((rank.0, incarnation.0, how as u8))
        });
        let word = Word::Over(lost.collect());
        for rank in &self.finished {
            let _ = self.tell(*rank, &word);
        }
    }

    fn outcome(&self) -> Result<(), FinishError> {
        let gone = self.lost();
        if gone.is_empty() {
            return Ok(());
        }
        Err(FinishError::Lost { gone })
    }

    /// Who went otherwise than in order, and did not come back to finish.
    fn lost(&self) -> Vec<Gone> {
        let lost = self.gone.values().filter(|gone| gone.is_failure());
        lost.filter(|gone| !self.finished.contains(&gone.rank()))
            .copied()
            .collect()
    }

    fn is_settled(&self, rank: Rank) -> bool {
        self.finished.contains(&rank) || self.gone.contains_key(&rank)
    }

    fn note_gone(&mut self, gone: Gone) {
        // That it died is worth more than that it left: who left in order may still have failed.
        let known = self.gone.entry(gone.rank()).or_insert(gone);
        if gone.is_failure() {
            *known = gone;
        }
    }

    /// From now on this is what is waited for.
    fn wait_for(&mut self, rank: Rank) {
        let what = "for all processes to finish";
        let waits = WaitsFor::one(Kind::Other, rank, what);
        self.inbox.wait_for_what(waits);
    }

    /// Waits for one word, or for the news that somebody is gone.
    fn hear(&mut self) {
        let mut incoming = match self.inbox.retrieve() {
            Ok(incoming) => incoming,
            Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => return self.note_gone(gone),
            Err(_) => return,
        };
        match incoming.unpack_value() {
            Ok(Word::Finished) => {
                self.finished.insert(incoming.source());
            }
            Ok(Word::Over(lost)) => {
                for (rank, incarnation, how) in lost {
                    let life = ProcessId::new(Rank(rank), Incarnation(incarnation));
                    if let Some(how) = LOSSES.get(usize::from(how)) {
                        self.note_gone(Gone::new(life, *how));
                    }
                }
                self.over = true;
            }
            // Not a word of ours: nobody else knows this mailbox.
            Err(_) => (),
        }
    }

    fn tell(&self, rank: Rank, word: &Word) -> Result<(), ReachError> {
        let process = self.deck.process.reach(rank)?;
        let mailbox = reserved::FINISH;
        let address = Address { process, mailbox };
        let sent = MailboxRef::new(self.deck.process.clone(), address).send_value(word);
        // Whoever closed the mailbox has finished with another root, and leaves.
        sent.map_err(|_| {
            let gone = self.deck.process.gone(process);
            ReachError::Gone(gone.unwrap_or(Gone::new(process, Departure::Left)))
        })
    }
}
