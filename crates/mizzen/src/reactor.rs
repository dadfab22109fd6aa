//! The thread that wakes async tasks: it sleeps on one bell, which senders raise for every mailbox that a task awaits.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use mizzen_shm::futex;

use crate::mailbox::Looker;
use crate::process::Process;
use crate::process::bells::{REACTOR_BELL, bell, ring};

/// A lost ring costs at most this much.
const NAP: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Reactor {
    stop: Arc<AtomicBool>,
    bells: mizzen_lane::Region,
    thread: Option<JoinHandle<()>>,
}

impl Reactor {
    pub(crate) fn start(process: Weak<Process>) -> std::io::Result<Self> {
        let gone = || std::io::Error::other("the process has left its job");
        let bells = process.upgrade().ok_or_else(gone)?.bells.region.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mine) = (Arc::clone(&stop), bells.clone());
        let run = move || {
            let Some(bell) = bell(&mine, REACTOR_BELL) else {
                return;
            };
            while !stopped.load(Ordering::Acquire) {
                let count = bell.count();
                let Some(strong) = process.upgrade() else {
                    return;
                };
                let (_, links) = strong.links();
                for core in strong.all_mailboxes() {
                    core.wake_task(Looker::Reactor, &links);
                }
                drop(strong);
                futex::wait(bell.word(), count, Some(NAP));
            }
        };
        let thread = std::thread::Builder::new()
            .name("mizzen-reactor".into())
            .spawn(run)?;
        Ok(Self {
            stop,
            bells,
            thread: Some(thread),
        })
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        ring(&self.bells, REACTOR_BELL);
        if let Some(thread) = self.thread.take() {
            // The reactor may hold the last reference to the process and so run this itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
