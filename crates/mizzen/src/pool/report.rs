//! What happened in a map.

use core::fmt;
use std::collections::BTreeMap;
use std::time::Duration;

use std::any::Any;

use mizzen_core::{Error, Gone, Rank, ServiceError};

/// What [`map_reported`](crate::Pool::map_reported) returns.
#[derive(Clone, Debug)]
pub struct Outcome<R> {
    /// The results, in the order of the items.
    pub results: Vec<R>,
    /// Who did what.
    pub report: Report,
}

/// What happened to the items of one process. Its `Display` form is a sentence for people.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Items whose results were delivered.
    pub items: usize,
    /// How many of them each process ran.
    pub by_rank: BTreeMap<Rank, usize>,
    /// Items that were run again because the process that had them was lost.
    pub rerun: usize,
    /// Results that came a second time, and were dropped.
    pub dropped: usize,
    /// Processes that were lost, or left, while they had items of ours.
    pub lost: Vec<Gone>,
    /// Items of others that this process ran.
    pub helped: usize,
    /// Whether it was ended before all items were run.
    pub cancelled: bool,
    /// From the call to its return.
    pub time: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} items in {:.2?}", self.items, self.time)?;
        for (number, (rank, count)) in self.by_rank.iter().enumerate() {
            let before = if number == 0 { ": " } else { ", " };
            write!(f, "{before}{count} by rank {rank}")?;
        }
        if self.helped > 0 {
            write!(f, "; {} for others", self.helped)?;
        }
        for gone in &self.lost {
            write!(f, "; {gone}")?;
        }
        if self.rerun > 0 {
            write!(f, "; {} items were run again", self.rerun)?;
        }
        if self.cancelled {
            f.write_str("; it was ended before all were run")?;
        }
        Ok(())
    }
}

/// Why a map failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The function panicked.
    #[error("item {index} made the pool's function panic at rank {rank}: {message}")]
    Panicked {
        /// The position of the item.
        index: usize,
        /// Where it ran.
        rank: Rank,
        /// What the panic said.
        message: String,
    },
    /// A result is longer than one message may be, and was made in another process.
    #[error(
        "the result of item {index} at rank {rank} has {bytes} bytes, more than the {limit} that one message may have; make items with smaller results"
    )]
    TooLong {
        /// The position of the item.
        index: usize,
        /// Where it ran.
        rank: Rank,
        /// How long the result is.
        bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// An item or a result could not be serialised or deserialised.
    #[error("item {index} or its result cannot go to another process and back: {cause}")]
    Encoding {
        /// The position of the item.
        index: usize,
        /// What is wrong.
        cause: String,
    },
}

impl From<PoolError> for Error {
    fn from(error: PoolError) -> Self {
        Self::Service(Box::new(error))
    }
}

impl ServiceError for PoolError {
    fn as_any(&self) -> &(dyn Any + Send + Sync) {
        self
    }
}
