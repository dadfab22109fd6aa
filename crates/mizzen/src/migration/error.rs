//! Why a task that moves has no result.

use std::any::Any;

use mizzen_core::{Error, Rank, ServiceError};

/// Why a task that moves has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteTaskError {
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
    /// It cannot be serialised or deserialised.
    #[error("the task {task:?} or its result cannot go to another process: {cause}")]
    Encoding {
        /// Its kind.
        task: &'static str,
        /// What is wrong.
        cause: String,
    },
}

impl From<RemoteTaskError> for Error {
    fn from(error: RemoteTaskError) -> Self {
        Self::Service(Box::new(error))
    }
}

impl ServiceError for RemoteTaskError {
    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }
}
