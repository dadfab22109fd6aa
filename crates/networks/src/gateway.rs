//! What hands on: a thread with a driver for each network of its host, and the machine that decides.
//!
//! A fragment goes on from the buffer of the driver that it came with, while it is there; only if it has to wait it is copied into memory of our own, of
//! which there is as much as [`Memory`] says. Words go past all that waits: the newest for each circuit replaces the one before.

mod hands;
mod options;
mod shared;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use self::hands::Hands;
pub use self::options::{GatewayOptions, Memory};
use self::shared::Shared;
use crate::directory::GatewayAt;

/// A gateway at work, until it is dropped.
///
/// ```
/// use mizzen_networks::{Directory, Gateway, GatewayOptions, Memory, Ways};
/// use mizzen_proto::boot::Span;
/// use mizzen_proto::membership::{AgentId, HostId};
///
/// // Without a driver it hands nothing on; an agent gives it one for each network of its host.
/// let agent = AgentId::new(HostId(0), 1);
/// let ways = Ways::new(&[Span { network: "sci".into(), hosts: vec![(0, 2)], trusted: false }]);
/// let options = GatewayOptions { agent, ways, directory: Directory::new()?, drivers: vec![], memory: Memory::default() };
/// let gateway = Gateway::start(options)?;
/// assert_eq!(gateway.at().text(), "");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Gateway {
    at: GatewayAt,
    wake: OwnedFd,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Begins to hand on.
    ///
    /// # Errors
    ///
    /// If the system refuses a descriptor or a thread, or a network cannot wake one.
    pub fn start(options: GatewayOptions) -> io::Result<Self> {
        let at = GatewayAt {
            agent: options.agent,
            at: BTreeMap::from_iter(
                options
                    .drivers
                    .iter()
                    .map(|(name, driver)| (name.clone(), driver.locator().clone())),
            ),
        };
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let mut fds = vec![
            wake.try_clone()?,
            options.directory.as_fd().try_clone_to_owned()?,
        ];
        for (name, driver) in &options.drivers {
            let fd = driver.wakeup();
            let fd = fd.ok_or_else(|| {
                io::Error::other(format!("the network {name} cannot wake a thread"))
            })?;
            fds.push(fd.try_clone_to_owned()?);
        }
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("mizzen-gateway".into())
            .spawn(move || run(Hands::new(options, &theirs), &fds, &theirs))?;
        Ok(Self {
            at,
            wake,
            shared,
            thread: Some(thread),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn at(&self) -> &GatewayAt {
        &self.at
    }

    /// How many fragments it has handed on.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// The most bytes of fragments that it held at a time.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.shared.held.load(Ordering::Relaxed)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread: looks while something moves, and a while longer; then sleeps.
fn run(mut hands: Hands<'_>, fds: &[OwnedFd], shared: &Shared) {
    let mut last = Instant::now();
    while !shared.stop.load(Ordering::Acquire) {
        match hands.turn() {
            // All networks are gone: there is nothing to hand on.
            Err(_) => return,
            Ok(true) => last = Instant::now(),
            // Others may wait for this core, and on what they do it waits.
            Ok(false) if last.elapsed() < SPIN => std::thread::yield_now(),
            Ok(false) => {
                let mut ready: Vec<PollFd<'_>> = fds
                    .iter()
                    .map(|fd| PollFd::new(fd, PollFlags::IN))
                    .collect();
                let nap = Timespec::try_from(hands.nap()).ok();
                // Interrupted, it looks once more.
                let _ = poll(&mut ready, nap.as_ref());
                last = Instant::now();
            }
        }
    }
}

/// How long it looks for more before it sleeps: a round trip.
const SPIN: Duration = Duration::from_micros(50);
