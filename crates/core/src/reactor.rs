//! The thread that wakes async tasks: it sleeps on one bell, which senders ring for every mailbox that a task awaits. It also
//! moves on what waits for room, and operations under way, if nobody else does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;

use mizzen_shm::futex;

use crate::bells::{Bells, REACTOR_BELL};
use crate::delivery::Looker;
use crate::link::MemoryLink;
use crate::links::Links;
use crate::mailboxes::Mailboxes;
use crate::operations::Operations;
use crate::threads::Ours;

/// A lost ring costs at most this much.
const NAP: Duration = Duration::from_millis(500);

/// How long to sleep while messages wait for room, if some just went; each time twice as long, up to so many times: then the
/// receiver is reminded.
const BEHIND_NAP: Duration = Duration::from_micros(500);
const BEHIND_NAPS: u32 = 5;

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
        operations: Arc<Operations>,
    ) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, mine) = (Arc::clone(&stop), Arc::clone(&bells));
        let run = move || {
            let Some(bell) = mine.of_reactor() else {
                return;
            };
            let mut naps = 0;
            while !stopped.load(Ordering::Acquire) {
                let count = bell.count();
                // Wakers are code of the program.
                wake_posters(&links);
                let (_, links) = links.all();
                for core in mailboxes.all() {
                    core.wake_task(Looker::Reactor, &links);
                }
                let moved = operations.move_on();
                naps = if moved { 0 } else { naps };
                let mut nap = move_on(&links, &mailboxes, &mut naps);
                if moved {
                    // There may be more at once.
                    continue;
                }
                if !operations.is_empty() && nap == NAP {
                    naps += 1;
                    nap = behind_nap(naps);
                }
                drop(links);
                let _ours = Ours::enter();
                futex::wait(bell.word(), count, Some(nap));
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

/// Tasks that found no memory ask again, not too soon.
fn wake_posters(links: &Links) {
    let posters = links.take_posters();
    if !posters.is_empty() {
        std::thread::sleep(BEHIND_NAP);
    }
    posters.into_iter().for_each(Waker::wake);
}

/// Posts what waits for room, and says how long to sleep: not for long, if something still waits. `naps` counts the sleeps since
/// something went.
fn move_on(links: &[Arc<MemoryLink>], mailboxes: &Mailboxes, naps: &mut u32) -> Duration {
    let behind: Vec<_> = links.iter().filter(|link| link.has_behind()).collect();
    if behind.is_empty() {
        *naps = 0;
        return NAP;
    }
    for link in behind {
        // First: looking for messages moves it on, too, and does not say so.
        let moved = link.move_on();
        // The peer's credits come with its messages.
        link.pump(mailboxes);
        if moved || link.move_on() || !link.has_behind() {
            *naps = 0;
        } else if *naps > BEHIND_NAPS {
            link.channel.remind();
        }
    }
    *naps += 1;
    behind_nap(*naps)
}

fn behind_nap(naps: u32) -> Duration {
    BEHIND_NAP * (1 << naps.min(BEHIND_NAPS))
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
