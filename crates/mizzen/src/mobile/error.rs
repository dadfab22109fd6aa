//! Why a mobile task has no result.

use std::any::Any;

use mizzen_core::{Error, ErrorScope, Rank, ServiceError};

/// Why a mobile task has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JourneyError {
    /// Its step panicked.
    #[error("the task {task:?} panicked at rank {rank}: {message}")]
    Panicked {
        /// Its kind.
        task: &'static str,
        /// Where.
        rank: Rank,
        /// What the panic said.
        message: String,
    },
    /// It cannot be serialised, or not be read again.
    #[error("the task {task:?} or its result cannot go to another process: {cause}")]
    Encoding {
        /// Its kind.
        task: &'static str,
        /// What is wrong.
        cause: String,
    },
}

impl From<JourneyError> for Error {
    fn from(error: JourneyError) -> Self {
        Self::Service(Box::new(error))
    }
}

impl ServiceError for JourneyError {
    fn scope(&self) -> ErrorScope {
        ErrorScope::Message
    }

    fn lost(&self) -> Option<Rank> {
        None
    }

    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }
}
