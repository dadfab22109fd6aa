//! Why a call failed.

use std::time::Duration;

use std::any::Any;

use mizzen_core::{Error, FetchError, Gone, MailboxError, Rank, ServiceError};

/// Why a call brought no result. An error that the service's function returns is not one of these: it is the result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// Nobody serves the name.
    #[error(
        "no process serves {service:?}{}; is it spelt the same where it is served, and is the `Service` that `serve` returned still held there?",
        .rank.map_or(String::new(), |rank| format!(" at rank {rank}"))
    )]
    NotServed {
        /// The name.
        service: String,
        /// Where it was looked for, if not everywhere.
        rank: Option<Rank>,
        /// What looking for it said.
        #[source]
        cause: FetchError,
    },
    /// The job has no such rank.
    #[error(
        "{service:?} cannot be called there: there is no rank {rank}, the job has {size} processes, numbered from 0"
    )]
    NoSuchRank {
        /// The service.
        service: String,
        /// The rank.
        rank: Rank,
        /// Processes of the job.
        size: u32,
    },
    /// The process that serves it is gone. Whether the call was carried out is not known.
    #[error("the call to {service:?} was not answered: {gone}")]
    PeerGone {
        /// The service.
        service: String,
        /// Who is gone.
        gone: Gone,
    },
    /// The process goes on, but does not serve it any more.
    #[error("rank {rank} does not serve {service:?} any more")]
    Stopped {
        /// The service.
        service: String,
        /// Where it was served.
        rank: Rank,
    },
    /// No answer came in time. The service was told that nobody waits any more.
    #[error("{service:?} at rank {rank} did not answer within {waited:.1?}")]
    TimedOut {
        /// The service.
        service: String,
        /// Where it is served.
        rank: Rank,
        /// How long we waited.
        waited: Duration,
    },
    /// The service's function panicked.
    #[error("{service:?} panicked at rank {rank}: {message}")]
    Panicked {
        /// The service.
        service: String,
        /// Where it is served.
        rank: Rank,
        /// What the panic said.
        message: String,
    },
    /// The service takes other arguments.
    #[error(
        "{service:?} at rank {rank} cannot read the arguments: {cause}; do both sides name the same types?"
    )]
    Refused {
        /// The service.
        service: String,
        /// Where it is served.
        rank: Rank,
        /// What was wrong.
        cause: String,
    },
    /// The service's function dropped the request without a reply.
    #[error("{service:?} at rank {rank} gave no answer")]
    Unanswered {
        /// The service.
        service: String,
        /// Where it is served.
        rank: Rank,
    },
    /// The answer is not what was expected.
    #[error(
        "the answer of {service:?} cannot be read: {cause}; do both sides name the same types?"
    )]
    Answer {
        /// The service.
        service: String,
        /// What was wrong.
        cause: Box<Error>,
    },
    /// The result is longer than one message may be.
    #[error(
        "the answer of {service:?} at rank {rank} has {bytes} bytes, more than the {limit} that one message may have; return it in several answers"
    )]
    AnswerTooLong {
        /// The service.
        service: String,
        /// Where it is served.
        rank: Rank,
        /// How long the answer is.
        bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// The result was there, but could not be posted.
    #[error("the answer of {service:?} could not be posted at rank {rank}: {cause}")]
    AnswerNotPosted {
        /// The service.
        service: String,
        /// Where it is served.
        rank: Rank,
        /// What posting it said.
        cause: String,
    },
    /// The call was cancelled, or its result was taken before.
    #[error("there is no such call to {service:?} under way any more")]
    NoSuchCall {
        /// The service.
        service: String,
    },
    /// Another client began the call.
    #[error(
        "this call was not begun by this client of {service:?}; wait for it with the client whose `start` returned it"
    )]
    OtherClient {
        /// The service of the client that was asked.
        service: String,
    },
    /// The request could not be posted.
    #[error("the call to {service:?} was not made: {cause}")]
    Post {
        /// The service.
        service: String,
        /// Why.
        cause: Box<Error>,
    },
    /// There is no mailbox for the answers.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
}

impl CallError {
    /// The process whose loss caused the error.
    #[must_use]
    pub fn lost(&self) -> Option<Rank> {
        match self {
            Self::PeerGone { gone, .. } => Some(gone.rank()),
            Self::Post { cause, .. } => cause.lost(),
            _ => None,
        }
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Service(Box::new(error))
    }
}

impl ServiceError for CallError {
    fn lost(&self) -> Option<Rank> {
        CallError::lost(self)
    }

    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }
}
