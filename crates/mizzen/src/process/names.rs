//! Names: binding and fetching, with the holder of each name found by its hash.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mizzen_proto::id::RequestId;
use mizzen_proto::names::{Directory, DirectoryLimits, NameCache, Reply, shard_of};
use mizzen_proto::wire::{Frame, Keep, Name, NameFrame, NameRefusal};

use super::{Path, Process};
use crate::error::{BindError, FetchError, Gone, ReachError};
use crate::lock::lock;
use crate::rank::{Address, Rank};
use crate::tasks::without_place;

/// The names this process holds for the job, those it remembers, and the questions it waits for.
#[derive(Debug)]
pub(crate) struct Names {
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
    holder: Rank,
    answer: Option<Answer>,
}

#[derive(Clone, Debug)]
enum Answer {
    Bound,
    Conflict(Address),
    Found(Address, Keep),
    Refused(NameRefusal),
    Lost(Gone),
}

impl Names {
    pub(crate) fn new() -> Self {
        Self {
            directory: Mutex::new(Directory::new(DirectoryLimits::default())),
            cache: Mutex::new(NameCache::new()),
            questions: Mutex::default(),
            answered: Condvar::new(),
            bound: Mutex::default(),
        }
    }
}

impl Process {
    /// Binds `name` to one of our mailboxes.
    pub(crate) fn bind(self: &Arc<Self>, name: &str, address: Address) -> Result<(), BindError> {
        // Noted before it is asked for: if the holder dies or comes back meanwhile, it is bound again.
        lock(&self.names.bound).insert(name.to_owned(), address);
        let bound = self.ask_to_bind(name, address);
        if bound.is_err() {
            lock(&self.names.bound).remove(name);
        }
        bound
    }

    /// Whether this process bound the name.
    pub(crate) fn has_bound(&self, name: &str) -> bool {
        lock(&self.names.bound).contains_key(name)
    }

    fn ask_to_bind(self: &Arc<Self>, name: &str, address: Address) -> Result<(), BindError> {
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
        match self.ask(valid, ask, None, &waits) {
            Ok(Answer::Bound | Answer::Found(..)) => Ok(()),
            Ok(Answer::Conflict(owner)) => Err(BindError::Taken {
                name: text(),
                owner: owner.process.rank,
            }),
            Ok(Answer::Refused(reason)) => Err(BindError::Refused {
                name: text(),
                cause: reason.to_string(),
            }),
            Ok(Answer::Lost(gone)) | Err(Failure::Reach(ReachError::Gone(gone))) => {
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

    /// Frees a name that means one of our mailboxes.
    pub(crate) fn unbind(self: &Arc<Self>, name: &str, address: Address) {
        lock(&self.names.bound).remove(name);
        if let Ok(name) = Name::new(name) {
            let _ = self.send_to_holder(
                shard_of(name, self.size),
                NameFrame::Unbind { name, address },
            );
        }
    }

    /// What `name` means, waiting until someone binds it.
    pub(crate) fn fetch(
        self: &Arc<Self>,
        name: &str,
        patience: Option<Duration>,
    ) -> Result<Address, FetchError> {
        let waits = |_| format!("for somebody to bind the name {name:?}");
        self.fetch_saying(name, patience, &waits)
    }

    /// The same. `waits` is what the user is told that this waits for, if it takes long.
    pub(crate) fn fetch_saying(
        self: &Arc<Self>,
        name: &str,
        patience: Option<Duration>,
        waits: &dyn Fn(Rank) -> String,
    ) -> Result<Address, FetchError> {
        let text = || name.to_owned();
        let valid = Name::new(name).map_err(|fault| FetchError::Invalid {
            name: text(),
            cause: fault.to_string(),
        })?;
        if let Some(address) = lock(&self.names.cache).lookup(valid) {
            return Ok(address);
        }
        let ask = |request| NameFrame::Fetch {
            request,
            name: valid,
        };
        match self.ask(valid, ask, patience, waits) {
            Ok(Answer::Found(address, keep)) => {
                lock(&self.names.cache).handle_found(valid, address, keep);
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
            Ok(Answer::Lost(gone)) | Err(Failure::Reach(ReachError::Gone(gone))) => {
                Err(FetchError::HolderGone { name: text(), gone })
            }
            Err(Failure::Reach(error)) => Err(FetchError::Refused {
                name: text(),
                cause: error.to_string(),
            }),
            Err(Failure::TimedOut(waited)) => Err(FetchError::Unbound {
                name: text(),
                waited,
            }),
        }
    }

    /// An address that turned out to be closed is not to be given out again.
    pub(crate) fn forget_address(&self, address: Address) {
        lock(&self.names.cache).handle_address_gone(address);
    }

    /// A frame about names came from a peer, or from ourselves.
    pub(crate) fn handle_name(
        self: &Arc<Self>,
        from: crate::rank::ProcessId,
        frame: NameFrame<'_>,
    ) {
        let (answer, replies) = {
            let mut directory = lock(&self.names.directory);
            let answer = directory.handle_frame(from, frame);
            (answer, replies_of(&mut directory))
        };
        self.send_replies(replies);
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
            Some(NameFrame::Forget { name }) => lock(&self.names.cache).handle_forget(name),
            _ => (),
        }
    }

    /// A process is gone: its names are free, its questions void, and ours to it will not be answered.
    pub(crate) fn names_lost(self: &Arc<Self>, gone: Gone) {
        lock(&self.names.cache).handle_process_gone(gone.process());
        let replies = {
            let mut directory = lock(&self.names.directory);
            directory.handle_process_gone(gone.process());
            replies_of(&mut directory)
        };
        self.send_replies(replies);
        let mut questions = lock(&self.names.questions);
        for question in questions
            .open
            .values_mut()
            .filter(|question| question.holder == gone.rank())
        {
            question.answer.get_or_insert(Answer::Lost(gone));
        }
        self.names.answered.notify_all();
    }

    /// Where to ask for `name` now: the first process, from the one its hash names on, that is not known to be gone.
    fn holder_of(&self, name: Name<'_>) -> Rank {
        let first = shard_of(name, self.size);
        let chain = (0..self.size).map(|step| Rank((first.0 + step) % self.size));
        let here = |rank: &Rank| *rank == self.id.rank || !self.peers.is_gone(*rank);
        chain.into_iter().find(here).unwrap_or(self.id.rank)
    }

    /// Whether `name` is or was held by `rank`: it comes before or is the present holder.
    fn passes(&self, name: Name<'_>, rank: Rank) -> bool {
        let (first, now) = (shard_of(name, self.size), self.holder_of(name));
        let distance = |rank: Rank| (rank.0 + self.size - first.0) % self.size;
        distance(rank) <= distance(now)
    }

    /// A holder died or was started again: what it held for us goes to whoever holds it now.
    pub(crate) fn bind_again(self: &Arc<Self>, holder: Rank) {
        let mut lost = lock(&self.names.bound).clone();
        lost.retain(|name, _| Name::new(name).is_ok_and(|name| self.passes(name, holder)));
        if lost.is_empty() {
            return;
        }
        let process = Arc::downgrade(self);
        // Binding waits for answers, which the caller's thread brings.
        let bind = move || {
            for (name, address) in lost {
                if let Some(process) = process.upgrade() {
                    // If it cannot be bound again, those who fetch it learn that it is not bound.
                    let _ = process.ask_to_bind(&name, address);
                }
            }
        };
        let _ = std::thread::Builder::new()
            .name("mizzen-names".into())
            .spawn(bind);
    }

    /// Before leaving: gives the names of others that we hold to whoever holds them next.
    pub(crate) fn hand_over_names(self: &Arc<Self>) {
        /// A successor that does not answer by then is not waited for.
        const PATIENCE: Duration = Duration::from_secs(2);
        let held: Vec<_> = {
            let directory = lock(&self.names.directory);
            let bindings = directory
                .bindings()
                .map(|(name, address)| (name.to_owned(), address));
            bindings
                .filter(|(_, address)| address.process != self.id)
                .collect()
        };
        for (text, address) in held {
            let Ok(name) = Name::new(&text) else { continue };
            let first = shard_of(name, self.size).0;
            let chain = (0..self.size).map(|step| Rank((first + step) % self.size));
            for next in chain.filter(|rank| *rank != self.id.rank) {
                if self.peers.is_gone(next) {
                    continue;
                }
                match self.reach_within(next, PATIENCE) {
                    Ok(path) => {
                        // Nobody waits for the answer: the number is no question's.
                        let request = RequestId(0);
                        if self
                            .send_name(
                                &path,
                                NameFrame::Bind {
                                    request,
                                    name,
                                    address,
                                },
                            )
                            .is_ok()
                        {
                            break;
                        }
                    }
                    Err(ReachError::Gone(gone)) => self.peers.note_gone(gone),
                    Err(_) => break,
                }
            }
        }
    }

    /// Asks the holder of `name` and waits for its answer. If the holder is gone, its next life or successor is asked.
    fn ask<'a>(
        self: &Arc<Self>,
        name: Name<'a>,
        frame: impl Fn(RequestId) -> NameFrame<'a>,
        patience: Option<Duration>,
        waits: &dyn Fn(Rank) -> String,
    ) -> Result<Answer, Failure> {
        let started = Instant::now();
        let mut tries = 0;
        loop {
            let left = patience.map(|patience| patience.saturating_sub(started.elapsed()));
            let holder = self.holder_of(name);
            let gone = match self.ask_once(holder, name, &frame, left, waits) {
                Ok(Answer::Lost(gone)) => gone,
                Err(Failure::Reach(ReachError::Gone(gone))) => gone,
                Err(Failure::TimedOut(_)) => return Err(Failure::TimedOut(started.elapsed())),
                outcome => return outcome,
            };
            self.peers.note_gone(gone);
            tries += 1;
            if tries > self.size.saturating_mul(2) {
                return Ok(Answer::Lost(gone));
            }
        }
    }

    fn ask_once<'a>(
        self: &Arc<Self>,
        holder: Rank,
        name: Name<'a>,
        frame: impl Fn(RequestId) -> NameFrame<'a>,
        patience: Option<Duration>,
        waits: &dyn Fn(Rank) -> String,
    ) -> Result<Answer, Failure> {
        let request = {
            let mut questions = lock(&self.names.questions);
            questions.last += 1;
            let request = RequestId(questions.last);
            questions.open.insert(
                request,
                Question {
                    holder,
                    answer: None,
                },
            );
            request
        };
        let outcome = match self.send_to_holder(holder, frame(request)) {
            Ok(()) => self.await_answer(request, patience, &|| waits(holder)),
            Err(error) => Err(Failure::Reach(error)),
        };
        lock(&self.names.questions).open.remove(&request);
        if let Err(Failure::TimedOut(_)) = outcome {
            let _ = self.send_to_holder(holder, NameFrame::Cancel { request, name });
        }
        outcome
    }

    fn await_answer(
        &self,
        request: RequestId,
        patience: Option<Duration>,
        waits: &dyn Fn() -> String,
    ) -> Result<Answer, Failure> {
        /// A name is usually bound by then; after this the user is told.
        const REMARK_AFTER: Duration = Duration::from_secs(5);
        let mut remarked = false;
        let started = Instant::now();
        let mut questions = lock(&self.names.questions);
        loop {
            if let Some(answer) = questions
                .open
                .get(&request)
                .and_then(|question| question.answer.clone())
            {
                return Ok(answer);
            }
            let waited = started.elapsed();
            let left = patience.map(|patience| patience.saturating_sub(waited));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Failure::TimedOut(waited));
            }
            if waited >= REMARK_AFTER && !remarked {
                remarked = true;
                self.remark(waited, &waits());
            }
            let nap = left.unwrap_or(REMARK_AFTER).min(REMARK_AFTER);
            let wait = || self.names.answered.wait_timeout(questions, nap);
            questions = without_place(wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn answer(&self, request: RequestId, answer: Answer) {
        if let Some(question) = lock(&self.names.questions).open.get_mut(&request) {
            question.answer = Some(answer);
        }
        self.names.answered.notify_all();
    }

    fn send_to_holder(
        self: &Arc<Self>,
        holder: Rank,
        frame: NameFrame<'_>,
    ) -> Result<(), ReachError> {
        if holder == self.id.rank {
            self.handle_name(self.id, frame);
            return Ok(());
        }
        let path = self.reach(holder)?;
        self.send_name(&path, frame)
    }

    fn send_name(self: &Arc<Self>, path: &Path, frame: NameFrame<'_>) -> Result<(), ReachError> {
        match path {
            Path::Memory(link) => link.channel.send_name(self.id, frame).map_err(|_| {
                let died = Gone::new(link.peer, crate::error::Departure::Died);
                ReachError::Gone(link.gone().unwrap_or(died))
            }),
            Path::Net(link) => link.send_name(frame),
        }
    }

    fn send_replies(self: &Arc<Self>, replies: Vec<Reply>) {
        for reply in replies {
            let Frame::Name(frame) = reply.frame() else {
                continue;
            };
            if reply.to == self.id {
                self.handle_name(self.id, frame);
            } else if let Some(path) = self
                .peers
                .known(reply.to.rank)
                .filter(|path| path.peer() == reply.to)
            {
                // Whoever asked has a path to us. A process that is gone by now needs no answer.
                let _ = self.send_name(&path, frame);
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
