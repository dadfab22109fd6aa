//! What the user's objects hold of a process: when the last of them is dropped, the process leaves its job.

use core::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Process;
use crate::error::Departure;

/// A reference of the user's. Threads of the runtime hold plain references, which do not keep the process in the job.
#[derive(Debug)]
pub(crate) struct Handle(Arc<Process>);

impl Handle {
    pub(crate) fn new(process: Arc<Process>) -> Self {
        process.handles.fetch_add(1, Ordering::Relaxed);
        Self(process)
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl Deref for Handle {
    type Target = Arc<Process>;

    fn deref(&self) -> &Arc<Process> {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            let dying = std::thread::panicking();
            self.0.leave(if dying {
                Departure::Died
            } else {
                Departure::Left
            });
        }
    }
}
