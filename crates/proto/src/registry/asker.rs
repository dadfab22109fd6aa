//! The questions of one process about names: all that a process keeps of them.
//!
//! It numbers questions and takes answers that fit them. How long to wait is up to the caller, which cancels what it does not want to wait
//! for any more. Nothing is remembered: the agent of the host does that, for all its processes, and under a lease.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Answer, MAX_OPEN, Name, NameFault, Outcome, Patience, Question, Refusal};
use crate::id::{MailboxId, RequestId};

/// The open questions of a process.
#[derive(Debug, Default)]
pub struct Asker {
    last: u64,
    open: BTreeMap<RequestId, Kind>,
}

/// Why nothing was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The name cannot be one.
    #[error("the name is {0}")]
    Name(#[from] NameFault),
    /// [`MAX_OPEN`] questions are open.
    #[error("too many questions about names are open")]
    TooMany,
}

/// An answer that was not asked for, or does not fit its question: the agent is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent gave an answer that does not fit a question")]
pub struct Misfit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Change,
    Fetch,
    Look,
    Near,
}

impl Kind {
    fn is_read(self) -> bool {
        matches!(self, Self::Fetch | Self::Look)
    }
}

impl Asker {
    /// Asks that a name mean a mailbox of this process.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn bind(&mut self, name: &str, mailbox: MailboxId) -> Result<Question, AskError> {
        let (request, name) = self.open(name, Kind::Change)?;
        Ok(Question::Bind {
            request,
            name,
            mailbox,
        })
    }

    /// Asks that a name mean this mailbox no longer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn unbind(&mut self, name: &str, mailbox: MailboxId) -> Result<Question, AskError> {
        let (request, name) = self.open(name, Kind::Change)?;
        Ok(Question::Unbind {
            request,
            name,
            mailbox,
        })
    }

    /// Asks what a name means: once somebody binds it, or at once.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn read(&mut self, name: &str, patience: Patience) -> Result<Question, AskError> {
        let kind = match patience {
            Patience::Wait => Kind::Fetch,
            Patience::Look => Kind::Look,
        };
        let (request, name) = self.open(name, kind)?;
        Ok(Question::Read {
            request,
            name,
            patience,
        })
    }

    /// Asks which names are like this one.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn near(&mut self, name: &str) -> Result<Question, AskError> {
        let (request, name) = self.open(name, Kind::Near)?;
        Ok(Question::Near { request, name })
    }

    /// A read is not wanted any more. Says what to tell the agent, unless it was answered.
    pub fn cancel(&mut self, request: RequestId) -> Option<Question> {
        if !self.open.get(&request)?.is_read() {
            return None;
        }
        self.open.remove(&request);
        Some(Question::Cancel { request })
    }

    /// The agent answers. Whether somebody waits for it: the answer to a read that was cancelled is none's.
    ///
    /// # Errors
    /// [`Misfit`], and nothing has changed.
    pub fn handle_answer(&mut self, answer: &Answer) -> Result<bool, Misfit> {
        let request = answer.request();
        let Some(kind) = self.open.get(&request).copied() else {
            // Cancelled while it was under way, if it was asked at all.
            return if (1..=self.last).contains(&request.0) {
                Ok(false)
            } else {
                Err(Misfit)
            };
        };
        let fits = match answer {
            Answer::Done { outcome, .. } => match outcome {
                Outcome::Refused(Refusal::QuestionsFull) => true,
                Outcome::Refused(Refusal::WaitingFull) => kind.is_read(),
                _ => kind == Kind::Change,
            },
            Answer::Found { .. } => kind.is_read(),
            Answer::Free { .. } => kind == Kind::Look,
            Answer::Near { .. } => kind == Kind::Near,
        };
        if !fits {
            return Err(Misfit);
        }
        self.open.remove(&request);
        Ok(true)
    }

    /// How many questions are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn open(&mut self, name: &str, kind: Kind) -> Result<(RequestId, Arc<str>), AskError> {
        let name = Name::new(name)?;
        if self.open.len() >= MAX_OPEN {
            return Err(AskError::TooMany);
        }
        self.last += 1;
        let request = RequestId(self.last);
        self.open.insert(request, kind);
        Ok((request, name.as_str().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_fits_its_question_or_is_refused() {
        let mut asker = Asker::default();
        let fetch = asker.read("sum", Patience::Wait).unwrap().request();
        let free = Answer::Free { request: fetch };
        assert_eq!(asker.handle_answer(&free), Err(Misfit), "a fetch waits");
        let never = Answer::Free {
            request: RequestId(9),
        };
        assert_eq!(asker.handle_answer(&never), Err(Misfit));
        assert_eq!(asker.len(), 1);
        let look = asker.read("sum", Patience::Look).unwrap().request();
        assert_eq!(
            asker.handle_answer(&Answer::Free { request: look }),
            Ok(true)
        );
    }

    #[test]
    fn the_answer_to_what_was_cancelled_is_nobodys() {
        let mut asker = Asker::default();
        let request = asker.read("sum", Patience::Look).unwrap().request();
        let cancel = Question::Cancel { request };
        assert_eq!(asker.cancel(request), Some(cancel));
        assert_eq!(asker.cancel(request), None);
        assert_eq!(asker.handle_answer(&Answer::Free { request }), Ok(false));
        assert!(asker.is_empty());
        let bind = asker.bind("sum", MailboxId(1)).unwrap().request();
        assert_eq!(asker.cancel(bind), None, "a bind is not taken back");
    }

    #[test]
    fn a_process_has_so_many_open_questions_and_no_more() {
        let mut asker = Asker::default();
        for _ in 0..MAX_OPEN {
            asker.read("sum", Patience::Wait).unwrap();
        }
        let more = asker.read("sum", Patience::Wait);
        assert_eq!(more, Err(AskError::TooMany));
        let empty = asker.read("", Patience::Wait);
        assert_eq!(empty, Err(AskError::Name(NameFault::Empty)));
    }
}
