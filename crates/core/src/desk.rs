//! Who keeps the names of a job without agents: a job of one, or one whose ranks are threads. The machine is that of the agents.

use std::sync::Mutex;

use mizzen_proto::boot::Death;
use mizzen_proto::registry::{Alone, Answer, Question};

use crate::error::Departure;
use crate::lock::lock;
use crate::rank::ProcessId;

/// The names of a job of this OS process.
#[derive(Debug)]
pub(crate) struct Desk(Mutex<Alone>);

/// Answers, and whose they are.
pub(crate) type Answers = Vec<(ProcessId, Answer)>;

impl Desk {
    pub(crate) fn new(size: u32) -> Self {
        Self(Mutex::new(Alone::new(size)))
    }

    /// A rank asks: what it is answered, and what others are that waited for this.
    pub(crate) fn ask(&self, from: ProcessId, question: Question) -> Answers {
        self.with(|names| names.handle_question(from, question))
    }

    /// A rank has left or failed: its names are free.
    pub(crate) fn end(&self, process: ProcessId, how: Departure) -> Answers {
        let how = match how {
            Departure::Left => Death::Exit(0),
            _ => Death::Exit(1),
        };
        self.with(|names| names.handle_ended(process, how))
    }

    fn with(&self, act: impl FnOnce(&mut Alone)) -> Answers {
        let mut names = lock(&self.0);
        act(&mut names);
        core::iter::from_fn(|| names.poll_answer()).collect()
    }
}
