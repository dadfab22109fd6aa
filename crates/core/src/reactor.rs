//! The thread that wakes async tasks: it sleeps on one bell, which senders raise for every mailbox that a task awaits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use mizzen_shm::futex;

use crate::bells::{Bells, REACTOR_BELL};
use crate::delivery::Looker;
use crate::links::Links;
use crate::mailboxes::Mailboxes;

/// A lost ring costs at most this much.
const NAP: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Reactor {
    stop: Arc<AtomicBool>,
    bells: Arc<Bells>,
    thread: Option<JoinHandle<()>>,
}

impl Reactor {
    pub(crate) fn start(
        bells: Arc<Bells>,
        mailboxes: Arc<Mailboxes>,
        links: Arc<Links>,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mine) = (Arc::clone(&stop), Arc::clone(&bells));
        let run = move || {
            let Some(bell) = mine.of_reactor() else {
                return;
            };
            while !stopped.load(Ordering::Acquire) {
                let count = bell.count();
                let (_, links) = links.all();
                for core in mailboxes.all() {
                    core.wake_task(Looker::Reactor, &links);
                }
                drop(links);
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
        self.bells.ring(REACTOR_BELL);
        if let Some(thread) = self.thread.take() {
            // The reactor may hold the last reference to the process and so run this itself.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}
