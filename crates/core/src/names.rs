//! Names: binding and fetching, with the holder of each name found by its hash.

use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mizzen_proto::id::RequestId;
use mizzen_proto::names::{Directory, DirectoryLimits, NameCache, Reply, shard_of};
use mizzen_proto::wire::{Frame, Keep, Name, NameFrame, NameRefusal};

use crate::blocking::block_in_place;
use crate::error::{BindError, FetchError, Gone, ReachError};
use crate::lock::lock;
use crate::near::near;
use crate::rank::{Address, MailboxId, ProcessId, Rank};

/// Who carries frames about names, and knows who is there.
pub(crate) trait Courier {
    /// Whether no life of a rank is known to be there, or to come.
    fn is_gone(&self, rank: Rank) -> bool;

    /// Whether one of our mailboxes is there.
    fn has_mailbox(&self, mailbox: MailboxId) -> bool;

    /// A process turned out to be gone.
    fn note_gone(&self, gone: Gone);

    /// Sends a frame to a process, to which a path is opened if need be, within `patience`.
    fn send(
        &self,
        to: Rank,
        frame: NameFrame<'_>,
        patience: Option<Duration>,
    ) -> Result<(), ReachError>;

    /// Answers a process that asked, if it is still there.
    fn answer(&self, to: ProcessId, frame: NameFrame<'_>);

    /// Has the user told that a call waits for long.
    fn remark(&self, waited: Duration, what: &str);
}

/// The names this process holds for the job, those it remembers, and the questions it waits for.
#[derive(Debug)]
pub(crate) struct Names {
    me: ProcessId,
    size: u32,
    directory: Mutex<Directory>,
    cache: Mutex<NameCache>,
    questions: Mutex<Questions>,
    answered: Condvar,
    /// What we have bound, to bind it again when a holder was started anew.
    bound: Mutex<HashMap<String, Address>>,
}

#[derive(Debug, Default)]
struct Questions {
    last: u64,
    open: HashMap<RequestId, Question>,
}

#[derive(Debug)]
struct Question {
    name: String,
    holder: Rank,
    outcome: Option<Outcome>,
}

/// What became of a question.
#[derive(Clone, Debug)]
enum Outcome {
    Answered(Answer),
    /// The holder is gone.
    Lost(Gone),
    /// Another process holds the name now.
    Moved,
}

#[derive(Clone, Debug)]
enum Answer {
    Bound,
    Conflict(Address),
    Found(Address, Keep),
    Refused(NameRefusal),
}

impl Names {
    pub(crate) fn new(me: ProcessId, size: u32) -> Self {
        Self {
            me,
            size,
            directory: Mutex::new(Directory::new(DirectoryLimits::default())),
            cache: Mutex::new(NameCache::new()),
            questions: Mutex::default(),
            answered: Condvar::new(),
            bound: Mutex::default(),
        }
    }

    /// Binds `name` to one of our mailboxes.
    pub(crate) fn bind(
        &self,
        courier: &dyn Courier,
        name: &str,
        address: Address,
    ) -> Result<(), BindError> {
        let before = {
            let mut bound = lock(&self.bound);
            // Noted before it is asked for: if the holder dies or comes back meanwhile, it is bound again.
            match bound.get(name) {
                Some(other) if *other != address && courier.has_mailbox(other.mailbox) => None,
                _ => Some(bound.insert(name.to_owned(), address)),
            }
        };
        let Some(before) = before else {
            return Err(BindError::Taken {
                name: name.to_owned(),
                owner: self.me.rank,
            });
        };
        let bound = self.ask_to_bind(courier, name, address);
        if bound.is_err() && before != Some(address) {
            lock(&self.bound).remove(name);
        }
        bound
    }

    /// Whether this process bound the name.
    pub(crate) fn has_bound(&self, name: &str) -> bool {
        lock(&self.bound).contains_key(name)
    }

    pub(crate) fn ask_to_bind(
        &self,
        courier: &dyn Courier,
        name: &str,
        address: Address,
    ) -> Result<(), BindError> {
        let text = || name.to_owned();
        let valid = Name::new(name).map_err(|fault| BindError::Invalid {
            name: text(),
            cause: fault.to_string(),
        })?;
        let ask = |request| NameFrame::Bind {
            request,
            name: valid,
            address,
        };
        let waits = |holder| format!("for rank {holder} to keep the name {name:?}");
        let mut answer = self.ask(courier, valid, ask, None, &waits);
        if let Some(stale) = self.stale_of_ours(name, address, &answer) {
            let free = NameFrame::Unbind {
                name: valid,
                address: stale,
            };
            let _ = self.send_to_holder(courier, self.holder_of(courier, valid), free);
            answer = self.ask(courier, valid, ask, None, &waits);
        }
        match answer {
            Ok(Answer::Bound | Answer::Found(..)) => Ok(()),
            Ok(Answer::Conflict(owner)) => Err(BindError::Taken {
                name: text(),
                owner: owner.process.rank,
            }),
            Ok(Answer::Refused(reason)) => Err(BindError::Refused {
                name: text(),
                cause: reason.to_string(),
            }),
            Err(Failure::Reach(ReachError::Gone(gone))) => {
                Err(BindError::HolderGone { name: text(), gone })
            }
            Err(Failure::Reach(error)) => Err(BindError::Refused {
                name: text(),
                cause: error.to_string(),
            }),
            Err(Failure::TimedOut(waited)) => Err(BindError::Refused {
                name: text(),
                cause: format!("no answer within {waited:.1?}"),
            }),
        }
    }

    /// What keeps `name` from being bound to `address`, if it is a mailbox of ours that was dropped with its name, or whose
    /// unbinding did not reach the keeper.
    fn stale_of_ours(
        &self,
        name: &str,
        address: Address,
        answer: &Result<Answer, Failure>,
    ) -> Option<Address> {
        let is_wanted = || lock(&self.bound).get(name) == Some(&address);
        match answer {
            Ok(Answer::Conflict(now)) if now.process == self.me && is_wanted() => Some(*now),
            _ => None,
        }
    }

    /// Frees a name that means one of our mailboxes.
    pub(crate) fn unbind(&self, courier: &dyn Courier, name: &str, address: Address) {
        {
            let mut bound = lock(&self.bound);
            if bound.get(name) == Some(&address) {
                bound.remove(name);
            }
        }
        if let Ok(name) = Name::new(name) {
            let holder = self.holder_of(courier, name);
            let _ = self.send_to_holder(courier, holder, NameFrame::Unbind { name, address });
        }
    }

    /// What `name` means, waiting until someone binds it.
    pub(crate) fn fetch(
        &self,
        courier: &dyn Courier,
        name: &str,
        patience: Option<Duration>,
    ) -> Result<Address, FetchError> {
        let waits = |keeper| self.missing(name, keeper);
        self.fetch_saying(courier, name, patience, &waits)
    }

    /// The same. `waits` is what the user is told that this waits for, if it takes long.
    pub(crate) fn fetch_saying(
        &self,
        courier: &dyn Courier,
        name: &str,
        patience: Option<Duration>,
        waits: &dyn Fn(Rank) -> String,
    ) -> Result<Address, FetchError> {
        let text = || name.to_owned();
        let valid = Name::new(name).map_err(|fault| FetchError::Invalid {
            name: text(),
            cause: fault.to_string(),
        })?;
        if let Some(address) = lock(&self.cache).lookup(valid) {
            return Ok(address);
        }
        let ask = |request| NameFrame::Fetch {
            request,
            name: valid,
        };
        match self.ask(courier, valid, ask, patience, waits) {
            Ok(Answer::Found(address, keep)) => {
                lock(&self.cache).handle_found(valid, address, keep);
                Ok(address)
            }
            Ok(Answer::Refused(reason)) => Err(FetchError::Refused {
                name: text(),
                cause: reason.to_string(),
            }),
            Ok(Answer::Bound | Answer::Conflict(_)) => Err(FetchError::Refused {
                name: text(),
                cause: "the keeper answered another question".into(),
            }),
            Err(Failure::Reach(ReachError::Gone(gone))) => {
                Err(FetchError::HolderGone { name: text(), gone })
            }
            Err(Failure::Reach(error)) => Err(FetchError::Refused {
                name: text(),
                cause: error.to_string(),
            }),
            Err(Failure::TimedOut(waited)) => Err(FetchError::Unbound {
                name: text(),
                waited,
                keeper: Some(self.holder_of(courier, valid)),
                near: self.near(name),
            }),
        }
    }

    /// Names like this one, among those that this process knows: it keeps, bound or fetched them.
    fn near(&self, name: &str) -> Vec<String> {
        /// Of each kind; a fetch that failed must not take long to say so.
        const LOOKED_AT: usize = 4096;
        let mut known: Vec<String> = {
            let directory = lock(&self.directory);
            let names = directory.bindings().map(|(name, _)| name.to_owned());
            names.take(LOOKED_AT).collect()
        };
        known.extend(lock(&self.bound).keys().take(LOOKED_AT).cloned());
        let cache = lock(&self.cache);
        known.extend(cache.names().take(LOOKED_AT).map(str::to_owned));
        drop(cache);
        near(name, known.iter().map(String::as_str))
    }

    /// An address that turned out to be closed is not to be given out again.
    pub(crate) fn forget_address(&self, address: Address) {
        lock(&self.cache).handle_address_gone(address);
    }

    /// A frame about names came from a peer, or from ourselves.
    pub(crate) fn handle(&self, courier: &dyn Courier, from: ProcessId, frame: NameFrame<'_>) {
        let (answer, replies) = {
            let mut directory = lock(&self.directory);
            let answer = directory.handle_frame(from, frame);
            (answer, replies_of(&mut directory))
        };
        self.send_replies(courier, replies);
        match answer {
            Some(NameFrame::Bound { request }) => self.answer(request, Answer::Bound),
            Some(NameFrame::Conflict { request, holder }) => {
                self.answer(request, Answer::Conflict(holder))
            }
            Some(NameFrame::Found {
                request,
                address,
                keep,
            }) => self.answer(request, Answer::Found(address, keep)),
            Some(NameFrame::Refused { request, reason }) => {
                self.answer(request, Answer::Refused(reason))
            }
            Some(NameFrame::Forget { name }) => lock(&self.cache).handle_forget(name),
            _ => (),
        }
    }

    /// A process is gone: its names are free, its questions void, and ours to it will not be answered.
    pub(crate) fn lose(&self, courier: &dyn Courier, gone: Gone) {
        lock(&self.cache).handle_process_gone(gone.process());
        let replies = {
            let mut directory = lock(&self.directory);
            directory.handle_process_gone(gone.process());
            replies_of(&mut directory)
        };
        self.send_replies(courier, replies);
        let mut questions = lock(&self.questions);
        for question in questions
            .open
            .values_mut()
            .filter(|question| question.holder == gone.rank())
        {
            question.outcome.get_or_insert(Outcome::Lost(gone));
        }
        self.answered.notify_all();
    }

    /// A rank was started again: what others were asked for only while it was away is asked of it.
    pub(crate) fn handle_joined(&self, courier: &dyn Courier) {
        let mut questions = lock(&self.questions);
        for question in questions.open.values_mut() {
            let name = Name::new(&question.name);
            if name.is_ok_and(|name| self.holder_of(courier, name) != question.holder) {
                question.outcome.get_or_insert(Outcome::Moved);
            }
        }
        self.answered.notify_all();
    }

    /// Where to ask for `name` now: the first process, from the one its hash names on, that is not known to be gone.
    fn holder_of(&self, courier: &dyn Courier, name: Name<'_>) -> Rank {
        let first = shard_of(name, self.size);
        let chain = (0..self.size).map(|step| Rank((first.0 + step) % self.size));
        let here = |rank: &Rank| *rank == self.me.rank || !courier.is_gone(*rank);
        chain.into_iter().find(here).unwrap_or(self.me.rank)
    }

    /// Whether `name` is or was held by `rank`: it comes before or is the present holder.
    fn passes(&self, courier: &dyn Courier, name: Name<'_>, rank: Rank) -> bool {
        let (first, now) = (shard_of(name, self.size), self.holder_of(courier, name));
        let distance = |rank: Rank| (rank.0 + self.size - first.0) % self.size;
        distance(rank) <= distance(now)
    }

    /// What `holder` holds for us, or would hold if it were there.
    pub(crate) fn held_by(&self, courier: &dyn Courier, holder: Rank) -> HashMap<String, Address> {
        let mut held = lock(&self.bound).clone();
        held.retain(|name, _| Name::new(name).is_ok_and(|name| self.passes(courier, name, holder)));
        held
    }

    /// Before leaving: gives the names of others that we hold to whoever holds them next.
    pub(crate) fn hand_over(&self, courier: &dyn Courier) {
        /// A successor that does not answer by then is not waited for.
        const PATIENCE: Duration = Duration::from_secs(2);
        let held: Vec<_> = {
            let mut directory = lock(&self.directory);
            let bindings = directory
                .leave()
                .map(|(name, address)| (name.to_owned(), address));
            bindings
                .filter(|(_, address)| address.process != self.me)
                .collect()
        };
        for (text, address) in held {
            let Ok(name) = Name::new(&text) else { continue };
            let first = shard_of(name, self.size).0;
            let chain = (0..self.size).map(|step| Rank((first + step) % self.size));
            for next in chain.filter(|rank| *rank != self.me.rank) {
                if courier.is_gone(next) {
                    continue;
                }
                // Nobody waits for the answer: the number is no question's.
                let request = RequestId(0);
                let bind = NameFrame::Bind {
                    request,
                    name,
                    address,
                };
                match courier.send(next, bind, Some(PATIENCE)) {
                    Err(ReachError::Gone(gone)) => courier.note_gone(gone),
                    _ => break,
                }
            }
        }
    }

    /// Asks the holder of `name` and waits for its answer. If the holder is gone, its next life or successor is asked, as often as
    /// another one goes.
    fn ask<'a>(
        &self,
        courier: &dyn Courier,
        name: Name<'a>,
        frame: impl Fn(RequestId) -> NameFrame<'a>,
        patience: Option<Duration>,
        waits: &dyn Fn(Rank) -> String,
    ) -> Result<Answer, Failure> {
        let started = Instant::now();
        let (mut lost, mut tries) = (HashSet::new(), 0);
        loop {
            let left = patience.map(|patience| patience.saturating_sub(started.elapsed()));
            let gone = match self.ask_once(courier, name, &frame, left, waits) {
                Ok(Outcome::Answered(answer)) => return Ok(answer),
                Ok(Outcome::Moved) => continue,
                Ok(Outcome::Lost(gone)) | Err(Failure::Reach(ReachError::Gone(gone))) => gone,
                Err(Failure::TimedOut(_)) => return Err(Failure::TimedOut(started.elapsed())),
                Err(failure) => return Err(failure),
            };
            courier.note_gone(gone);
            tries += u32::from(!lost.insert(gone.process()));
            if tries > self.size.saturating_mul(2) {
                return Err(Failure::Reach(ReachError::Gone(gone)));
            }
        }
    }

    fn ask_once<'a>(
        &self,
        courier: &dyn Courier,
        name: Name<'a>,
        frame: impl Fn(RequestId) -> NameFrame<'a>,
        patience: Option<Duration>,
        waits: &dyn Fn(Rank) -> String,
    ) -> Result<Outcome, Failure> {
        let (request, holder) = {
            let mut questions = lock(&self.questions);
            questions.last += 1;
            let request = RequestId(questions.last);
            // Under the lock: who ends or comes back from now on finds the question.
            let holder = self.holder_of(courier, name);
            let question = Question {
                name: name.as_str().to_owned(),
                holder,
                outcome: None,
            };
            questions.open.insert(request, question);
            (request, holder)
        };
        let outcome = match self.send_to_holder(courier, holder, frame(request)) {
            Ok(()) => self.await_answer(courier, request, patience, &|| waits(holder)),
            Err(error) => Err(Failure::Reach(error)),
        };
        lock(&self.questions).open.remove(&request);
        if let Err(Failure::TimedOut(_)) | Ok(Outcome::Moved) = outcome {
            let _ = self.send_to_holder(courier, holder, NameFrame::Cancel { request, name });
        }
        outcome
    }

    fn await_answer(
        &self,
        courier: &dyn Courier,
        request: RequestId,
        patience: Option<Duration>,
        waits: &dyn Fn() -> String,
    ) -> Result<Outcome, Failure> {
        /// A name is usually bound by then; after this the user is told.
        const REMARK_AFTER: Duration = Duration::from_secs(5);
        let mut remarked = false;
        let started = Instant::now();
        let mut questions = lock(&self.questions);
        loop {
            let question = questions.open.get(&request);
            if let Some(outcome) = question.and_then(|question| question.outcome.clone()) {
                return Ok(outcome);
            }
            let waited = started.elapsed();
            let left = patience.map(|patience| patience.saturating_sub(waited));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Failure::TimedOut(waited));
            }
            if waited >= REMARK_AFTER && !remarked {
                remarked = true;
                drop(questions);
                courier.remark(waited, &waits());
                questions = lock(&self.questions);
                continue;
            }
            let nap = left.unwrap_or(REMARK_AFTER).min(REMARK_AFTER);
            let wait = || self.answered.wait_timeout(questions, nap);
            questions = block_in_place(wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// What a fetch that takes long waits for: which name is missing, who keeps it, and what may have been meant.
    fn missing(&self, name: &str, keeper: Rank) -> String {
        let meant = match &self.near(name)[..] {
            [] => String::new(),
            near => format!("; bound are {near:?}"),
        };
        format!("for somebody to bind the name {name:?}, which rank {keeper} keeps{meant}")
    }

    fn answer(&self, request: RequestId, answer: Answer) {
        if let Some(question) = lock(&self.questions).open.get_mut(&request) {
            question.outcome = Some(Outcome::Answered(answer));
        }
        self.answered.notify_all();
    }

    fn send_to_holder(
        &self,
        courier: &dyn Courier,
        holder: Rank,
        frame: NameFrame<'_>,
    ) -> Result<(), ReachError> {
        if holder == self.me.rank {
            self.handle(courier, self.me, frame);
            return Ok(());
        }
        courier.send(holder, frame, None)
    }

    fn send_replies(&self, courier: &dyn Courier, replies: Vec<Reply>) {
        for reply in replies {
            let Frame::Name(frame) = reply.frame() else {
                continue;
            };
            if reply.to == self.me {
                self.handle(courier, self.me, frame);
            } else {
                courier.answer(reply.to, frame);
            }
        }
    }
}

enum Failure {
    Reach(ReachError),
    TimedOut(Duration),
}

fn replies_of(directory: &mut Directory) -> Vec<Reply> {
    core::iter::from_fn(|| directory.poll_reply()).collect()
}
