//! Names: binding and fetching. Whoever keeps them is asked, which is the agent of this host. Here are only the questions that wait for
//! an answer, and what this process has bound.

mod bound;

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mizzen_proto::id::RequestId;
use mizzen_proto::registry::{Answer, AskError, Asker, Outcome, Patience, Question};
use tracing::warn;

use self::bound::OurNames;
use crate::blocking::block_in_place;
use crate::error::{BindError, FetchError};
use crate::lock::lock;
use crate::rank::{Address, MailboxId, ProcessId};
use crate::roll::{Kind, WaitsFor};
use crate::wait::Noted;

/// Who takes questions about names to whoever keeps them, and knows what is here.
pub(crate) trait Courier {
    /// Asks. The answer comes to [`Names::handle_answer`].
    fn ask(&self, question: Question) -> Result<(), NobodyKeeps>;

    /// Whether one of our mailboxes is there.
    fn has_mailbox(&self, mailbox: MailboxId) -> bool;

    /// Has the user told that a call waits for long.
    fn remark(&self, waited: Duration, what: &str);
}

/// Nobody keeps names for this process any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NobodyKeeps;

/// The open questions of this process, and what it has bound.
#[derive(Debug)]
pub(crate) struct Names {
    me: ProcessId,
    questions: Mutex<Questions>,
    answered: Condvar,
    ours: Mutex<OurNames>,
}

#[derive(Debug, Default)]
struct Questions {
    asker: Asker,
    /// Those that somebody waits for, with their answers.
    awaited: HashMap<RequestId, Option<Answer>>,
    /// Whether no answer will come any more.
    is_closed: bool,
}

/// Why there is no answer.
enum NoAnswer {
    Invalid(String),
    Refused(String),
    TimedOut,
}

impl Names {
    pub(crate) fn new(me: ProcessId) -> Self {
        Self {
            me,
            questions: Mutex::default(),
            answered: Condvar::new(),
            ours: Mutex::default(),
        }
    }

    /// Binds `name` to one of our mailboxes.
    pub(crate) fn bind(
        &self,
        courier: &dyn Courier,
        name: &str,
        address: Address,
    ) -> Result<(), BindError> {
        let mailbox = address.mailbox;
        let taken = |owner: ProcessId| BindError::Taken {
            name: name.to_owned(),
            owner: owner.rank,
        };
        {
            let mut ours = lock(&self.ours);
            let before = ours.mailbox_of(name).filter(|before| *before != mailbox);
            // Those who keep names would let us move it.
            if before.is_some_and(|before| courier.has_mailbox(before)) {
                return Err(taken(self.me));
            }
            ours.insert(name, mailbox);
        }
        let question = |asker: &mut Asker| asker.bind(name, mailbox);
        let waits = || format!("for the name {name:?} to be bound, at the hosts that keep it");
        let bound = match self.ask(courier, None, question, &waits) {
            Ok(Answer::Done { outcome, .. }) => match outcome {
                Outcome::Bound(_) => Ok(()),
                Outcome::Taken(owner) => Err(taken(owner.process)),
                Outcome::Refused(why) => Err(NoAnswer::Refused(why.to_string()).of_bind(name)),
                Outcome::Unbound(_) => Err(NoAnswer::misfit().of_bind(name)),
            },
            Ok(_) => Err(NoAnswer::misfit().of_bind(name)),
            Err(error) => Err(error.of_bind(name)),
        };
        if bound.is_err() {
            lock(&self.ours).remove(name, mailbox);
        }
        bound
    }

    /// Whether this process bound the name.
    pub(crate) fn has_bound(&self, name: &str) -> bool {
        lock(&self.ours).mailbox_of(name).is_some()
    }

    /// Frees a name that means one of our mailboxes. Nobody waits for that: what this process asks later comes later.
    pub(crate) fn unbind(&self, courier: &dyn Courier, name: &str, mailbox: MailboxId) {
        lock(&self.ours).remove(name, mailbox);
        let question = |asker: &mut Asker| asker.unbind(name, mailbox);
        if let Ok(question) = self.open(question, false) {
            let _ = courier.ask(question);
        }
    }

    /// One of our mailboxes is no more: its names are free.
    pub(crate) fn handle_closed(&self, courier: &dyn Courier, mailbox: MailboxId) {
        let names = lock(&self.ours).take_of(mailbox);
        for name in names {
            self.unbind(courier, &name, mailbox);
        }
    }

    /// What `name` means, waiting until someone binds it. Without patience nobody waits: only for those who keep it.
    pub(crate) fn fetch(
        &self,
        courier: &dyn Courier,
        name: &str,
        patience: Option<Duration>,
    ) -> Result<Address, FetchError> {
        self.fetch_saying(courier, name, patience, &|| self.missing(courier, name))
    }

    /// The same. `waits` is what the user is told that this waits for, if it takes long.
    pub(crate) fn fetch_saying(
        &self,
        courier: &dyn Courier,
        name: &str,
        patience: Option<Duration>,
        waits: &dyn Fn() -> String,
    ) -> Result<Address, FetchError> {
        let started = Instant::now();
        let (how, limit) = match patience {
            Some(Duration::ZERO) => (Patience::Look, Some(ANSWER)),
            patience => (Patience::Wait, patience),
        };
        let question = |asker: &mut Asker| asker.read(name, how);
        let name = || name.to_owned();
        match self.ask(courier, limit, question, waits) {
            Ok(Answer::Found { bound, .. }) => Ok(bound.address),
            Ok(Answer::Free { .. }) | Err(NoAnswer::TimedOut) => Err(FetchError::Unbound {
                waited: started.elapsed(),
                near: self.near(courier, &name()),
                name: name(),
            }),
            Ok(Answer::Done {
                outcome: Outcome::Refused(why),
                ..
            }) => Err(NoAnswer::Refused(why.to_string()).of_fetch(name())),
            Ok(_) => Err(NoAnswer::misfit().of_fetch(name())),
            Err(error) => Err(error.of_fetch(name())),
        }
    }

    /// Whoever keeps names answers.
    pub(crate) fn handle_answer(&self, answer: Answer) {
        let mut questions = lock(&self.questions);
        match questions.asker.handle_answer(&answer) {
            Ok(_) => {
                if let Some(awaited) = questions.awaited.get_mut(&answer.request()) {
                    *awaited = Some(answer);
                }
            }
            Err(misfit) => warn!(rank = %self.me, "{misfit}"),
        }
        drop(questions);
        self.answered.notify_all();
    }

    /// No answer will come any more: the agent is gone, or this process has left.
    pub(crate) fn close(&self) {
        lock(&self.questions).is_closed = true;
        self.answered.notify_all();
    }

    /// Asks and waits for the answer, for at most `limit`.
    fn ask(
        &self,
        courier: &dyn Courier,
        limit: Option<Duration>,
        question: impl FnMut(&mut Asker) -> Result<Question, AskError>,
        waits: &dyn Fn() -> String,
    ) -> Result<Answer, NoAnswer> {
        let question = self.open(question, true)?;
        let request = question.request();
        let answer = match courier.ask(question) {
            Ok(()) => self.wait_for(courier, request, limit, waits),
            Err(NobodyKeeps) => Err(NoAnswer::nobody()),
        };
        let mut questions = lock(&self.questions);
        questions.awaited.remove(&request);
        if answer.is_err() {
            let cancelled = questions.asker.cancel(request);
            drop(questions);
            if let Some(cancel) = cancelled {
                let _ = courier.ask(cancel);
            }
        }
        answer
    }

    /// Opens a question. A process that has too many open waits until one is answered.
    fn open(
        &self,
        mut question: impl FnMut(&mut Asker) -> Result<Question, AskError>,
        is_awaited: bool,
    ) -> Result<Question, NoAnswer> {
        let mut questions = lock(&self.questions);
        loop {
            if questions.is_closed {
                return Err(NoAnswer::nobody());
            }
            match question(&mut questions.asker) {
                Ok(question) => {
                    if is_awaited {
                        questions.awaited.insert(question.request(), None);
                    }
                    return Ok(question);
                }
                Err(AskError::Name(fault)) => return Err(NoAnswer::Invalid(fault.to_string())),
                Err(AskError::TooMany) => questions = self.sleep(questions, ANSWER),
            }
        }
    }

    fn wait_for(
        &self,
        courier: &dyn Courier,
        request: RequestId,
        limit: Option<Duration>,
        waits: &dyn Fn() -> String,
    ) -> Result<Answer, NoAnswer> {
        let mut remarked = false;
        let mut noted = Noted::default();
        let started = Instant::now();
        let mut questions = lock(&self.questions);
        loop {
            let awaited = questions.awaited.get_mut(&request);
            if let Some(answer) = awaited.and_then(Option::take) {
                return Ok(answer);
            }
            if questions.is_closed {
                return Err(NoAnswer::nobody());
            }
            let waited = started.elapsed();
            let left = limit.map(|limit| limit.saturating_sub(waited));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(NoAnswer::TimedOut);
            }
            if waited >= NOTED_AFTER {
                // What is missing is asked for, too.
                drop(questions);
                noted.keep_after(waited, || WaitsFor::some(Kind::Name, vec![], waits()));
                questions = lock(&self.questions);
                let awaited = questions.awaited.get(&request);
                if awaited.is_some_and(Option::is_some) || questions.is_closed {
                    continue;
                }
            }
            if waited >= REMARK_AFTER && !remarked {
                remarked = true;
                drop(questions);
                courier.remark(waited, &waits());
                questions = lock(&self.questions);
                continue;
            }
            let nap = left.unwrap_or(NAP).min(NAP);
            questions = self.sleep(questions, nap);
        }
    }

    fn sleep<'a>(
        &'a self,
        questions: MutexGuard<'a, Questions>,
        nap: Duration,
    ) -> MutexGuard<'a, Questions> {
        block_in_place(|| self.answered.wait_timeout(questions, nap))
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }

    /// What a fetch that takes long waits for: which name is missing, and what may have been meant.
    fn missing(&self, courier: &dyn Courier, name: &str) -> String {
        let meant = match &self.near(courier, name)[..] {
            [] => String::new(),
            near => format!("; bound are {near:?}"),
        };
        format!("for somebody to bind the name {name:?}{meant}")
    }

    /// Names like this one, among those that the agent of this host keeps.
    fn near(&self, courier: &dyn Courier, name: &str) -> Vec<String> {
        let question = |asker: &mut Asker| asker.near(name);
        match self.ask(courier, Some(ANSWER), question, &|| "for its agent".into()) {
            Ok(Answer::Near { names, .. }) => names.iter().map(|name| (**name).into()).collect(),
            _ => Vec::new(),
        }
    }
}

impl NoAnswer {
    fn nobody() -> Self {
        Self::Refused("this process has left its job, or the launcher's agent is gone".into())
    }

    fn misfit() -> Self {
        Self::Refused("the launcher's agent answered another question".into())
    }

    fn of_bind(self, name: &str) -> BindError {
        let name = name.to_owned();
        match self {
            Self::Invalid(cause) => BindError::Invalid { name, cause },
            Self::Refused(cause) => BindError::Refused { name, cause },
            Self::TimedOut => BindError::Refused {
                name,
                cause: "there was no answer in time".into(),
            },
        }
    }

    fn of_fetch(self, name: String) -> FetchError {
        match self {
            Self::Invalid(cause) => FetchError::Invalid { name, cause },
            Self::Refused(cause) => FetchError::Refused { name, cause },
            Self::TimedOut => FetchError::Refused {
                name,
                cause: "there was no answer in time".into(),
            },
        }
    }
}

/// How long those who keep names may take to say what they know, if nobody has to bind anything first.
const ANSWER: Duration = Duration::from_secs(5);

/// A name is usually bound by then; after this the user is told.
const REMARK_AFTER: Duration = Duration::from_secs(5);
/// When it is noted for those who ask why nothing happens: names are often waited for while a job starts.
const NOTED_AFTER: Duration = Duration::from_secs(1);
/// How long to sleep before looking whether the wait is long by now.
const NAP: Duration = Duration::from_millis(500);
