//! The engine: owns the driver, and lets whoever waits pump it.

use core::mem::swap;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mizzen_driver::{Caps, ConnectError, Driver, Locator};
use mizzen_lane::{Alarm, Handover};
use mizzen_proto::link::LinkOptions;
use mizzen_proto::session::{JobId, MemoryForm, Refusal, STAMP, SessionFrame};
use mizzen_proto::wire::{FRAME_MAX, OFFER_HEADER, POST_HEADER};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use super::catching::Catch;
use super::id::driver_id;
use super::link::{Control, Hub, Limits, NetLink, Run, StalledBody};
use super::pushed::PATIENCE;
use super::session::NetSession;
use super::spares::Spares;
use super::timers::{Timers, is_due, nap, now};
use crate::error::{Departure, Gone, ReachError, Untaken};
use crate::lock::lock;
use crate::rank::{ChannelId, Incarnation, MailboxId, ProcessId, Rank};
use crate::threads::Ours;

/// This process's attachment to a network, and its links to the peers there.
pub(crate) struct Engine {
    pub(super) weak: Weak<Self>,
    pub(super) process: Weak<dyn Control>,
    pub(super) me: ProcessId,
    pub(super) job: JobId,
    /// How numbers lie in our memory.
    pub(super) form: MemoryForm,
    /// Which channel its links are for; none, if several may use them.
    pub(super) channel: Option<ChannelId>,
    locator: String,
    frame_max: usize,
    limits: Limits,
    /// The port, and the links with something for the driver, left by threads that found it taken.
    pub(super) handover: Handover<Port, NetLink>,
    /// Whether bodies stand in the driver, or links are about to end, so that our thread must not sleep for long.
    must_look: AtomicBool,
    pub(super) links: RwLock<BTreeMap<ProcessId, Arc<NetLink>>>,
    /// How often connecting to a peer came to nothing, why it did last, and where it was dialled.
    pub(super) failures: Mutex<BTreeMap<ProcessId, Failures>>,
    /// Sessions that are over, and the last number that was accepted in each: what a peer is told that has not heard of it.
    pub(super) ended: Mutex<BTreeMap<ProcessId, u64>>,
    /// Whether somebody says which processes died; if not, a lost connection is a lost peer.
    pub(super) has_launcher: AtomicBool,
    pub(super) alarm: Alarm,
    /// Peers that are gone and did not take all.
    pub(super) untaken: Mutex<Vec<(Gone, Untaken)>>,
    /// A link came or went, or a connect failed.
    pub(super) met: Condvar,
    wake: OwnedFd,
    stop: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What only the holder of the lock touches.
pub(super) struct Port {
    pub(super) driver: Box<dyn Driver>,
    /// What the events of one poll leave to be done with the driver after it.
    pub(super) later: Later,
}

#[derive(Default)]
pub(super) struct Later {
    /// Links that end by our own decision.
    pub(super) end: Vec<(Arc<NetLink>, Departure)>,
    /// Processes that connected and are not welcome, and what they are told, if anything.
    pub(super) refuse: Vec<(ProcessId, Option<Refusal>)>,
    /// Those who were told so, and until when they may read it.
    refused: Vec<(ProcessId, Instant)>,
    /// Pushed bodies that stand in the driver.
    pub(super) stalled: Vec<StalledBody>,
    /// Links whose peers have died, and until when the network may bring what they sent before.
    pub(super) lost: Vec<(Arc<NetLink>, Gone, Instant)>,
    pub(super) timers: Timers,
    pub(super) spares: Spares,
    /// The link of the last frame, unless something else came after it.
    pub(super) hot: Option<Arc<NetLink>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    pub(super) count: u64,
    pub(super) cause: String,
    /// Where the peer was dialled last.
    pub(super) at: Option<Locator>,
}

/// Events taken from the driver in one turn: enough to empty a socket buffer of short frames, few enough that the port
/// is soon free.
const BUDGET: usize = 64;
/// How often a waiting thread looks at the network at a time: about a microsecond long.
const LOOKS: u32 = 4;
/// Messages up to here are copied rather than pushed, where they can be.
const COPIED: usize = 96 * 1024;
/// How long the engine's thread leaves the network to others before it looks whether they are still there. A thread that
/// stops looking and does not sleep delays what comes meanwhile by this much, once.
const ASIDE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 1_000_000,
};
/// Looks without frames that wait after which the thread sleeps as long as it likes.
const QUIET: u32 = 20;
/// How long the thread sleeps while frames wait, or bodies stand in the driver.
const STANDING: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: PATIENCE.as_nanos() as i64,
};
/// How long a leaving process waits for peers that take nothing of what it sent, where nobody says who died.
const LEAVE_ALONE: Duration = Duration::from_secs(2);
/// How long what a dead process sent before may be on its way.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a process that is told that its session is over may take to hear it.
const REFUSAL: Duration = Duration::from_secs(1);
/// How long a thread that waits for a connection sleeps before it asks the driver again.
const CONNECT_NAP: Duration = Duration::from_millis(20);

impl Engine {
    /// Has the process `me` use the network that `driver` is attached to.
    pub(crate) fn start(
        process: Weak<dyn Control>,
        me: ProcessId,
        job: JobId,
        (form, channel): (MemoryForm, Option<ChannelId>),
        driver: Box<dyn Driver>,
    ) -> io::Result<Arc<Self>> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let wakeup = driver
            .wakeup()
            .ok_or_else(|| io::Error::other("the network cannot wake a thread"))?
            .try_clone_to_owned()?;
        let ours = wake.try_clone()?;
        let frame_max = (driver.caps().max_frame - STAMP).min(FRAME_MAX);
        let limits = limits_of(frame_max, driver.caps());
        let engine = Arc::new_cyclic(|weak| Self {
            weak: weak.clone(),
            process,
            me,
            job,
            form,
            channel,
            locator: driver.locator().as_str().to_owned(),
            frame_max,
            limits,
            handover: Handover::new(Port {
                driver,
                later: Later::default(),
            }),
            must_look: AtomicBool::new(false),
            links: RwLock::default(),
            failures: Mutex::default(),
            ended: Mutex::default(),
            has_launcher: AtomicBool::new(false),
            alarm: Alarm::default(),
            untaken: Mutex::default(),
            met: Condvar::new(),
            wake: ours,
            stop: AtomicBool::new(false),
            thread: Mutex::default(),
        });
        let weak = Arc::downgrade(&engine);
        let thread = std::thread::Builder::new()
            .name("mizzen-net".into())
            .spawn(move || {
                let _ours = Ours::enter();
                run(&weak, &wakeup, &wake);
            })?;
        *lock(&engine.thread) = Some(thread);
        Ok(engine)
    }

    /// Where peers reach this process.
    pub(crate) fn locator(&self) -> &str {
        &self.locator
    }

    /// The link to a peer, opened if need be. Waits until it is there, or there is none, or `deadline`.
    pub(crate) fn connect(
        &self,
        peer: ProcessId,
        locator: &str,
        deadline: Instant,
    ) -> Result<Arc<NetLink>, ReachError> {
        let no_path = |cause: String| ReachError::NoPath {
            rank: peer.rank,
            cause,
        };
        let at = Locator::new(locator).map_err(|error| no_path(error.to_string()))?;
        let before = {
            let mut failures = lock(&self.failures);
            let failures = failures.entry(peer).or_default();
            failures.at = Some(at.clone());
            failures.count
        };
        loop {
            if let Some(link) = self.link(peer) {
                return Ok(link);
            }
            let dialled = self.with_port(|port| port.driver.connect(driver_id(peer), &at));
            match dialled {
                // Already: it is about to be there, or an earlier loss is about to be reported. Ask again.
                Ok(()) | Err(ConnectError::Already { .. }) => (),
                Err(error) => return Err(no_path(error.to_string())),
            }
            self.pump(self.process.upgrade().as_deref());
            if let Some(link) = self.link(peer) {
                return Ok(link);
            }
            // It may have refused us meanwhile, and meant it.
            let process = self.process.upgrade();
            if let Some(gone) = process.and_then(|process| process.gone(peer)) {
                return Err(ReachError::Gone(gone));
            }
            let failures = self.failures(peer);
            if failures.count > before {
                return Err(no_path(failures.cause));
            }
            if Instant::now() >= deadline {
                // The attempt goes on. It may have succeeded where the peer sees it, which then waits for us to dial again if we
                // drop it; whoever comes next finds the link.
                return Err(no_path("no answer in time".into()));
            }
            let guard = lock(&self.failures);
            let _ = self.met.wait_timeout(guard, CONNECT_NAP);
        }
    }

    /// Leaves: what was posted goes out first, as long as peers take some of it now and then. A process that died in
    /// its program just goes.
    pub(crate) fn leave(&self, process: &dyn Control, how: Departure) {
        let patience = match process.has_launcher() {
            true => process.leave_patience(),
            false => LEAVE_ALONE,
        };
        let (mut taken, mut since) = (self.taken(), Instant::now());
        for link in self.all_links() {
            if how == Departure::Left {
                link.leave();
                self.mark(&link);
            } else {
                self.cut(&link, Departure::ConnectionLost);
            }
        }
        while !self.all_links().is_empty() && since.elapsed() < patience {
            self.pump(None);
            let now_taken = self.taken();
            if now_taken != taken {
                (taken, since) = (now_taken, Instant::now());
            }
            for link in self.all_links() {
                if let Some(gone) = process.gone(link.peer) {
                    self.cut_as(&link, gone);
                } else if self.with_port(|_| link.session().poll_ask(now())) {
                    process.ask_about(link.peer);
                }
            }
            let guard = lock(&self.failures);
            let _ = self.met.wait_timeout(guard, Duration::from_millis(2));
        }
        for link in self.all_links() {
            self.cut(&link, Departure::ConnectionLost);
        }
    }

    /// How much of what was sent the peers have taken, in a figure that changes when they take more.
    fn taken(&self) -> Vec<(ProcessId, u64, usize)> {
        let links = self.all_links().into_iter();
        self.with_port(|_| {
            let taken = links.map(|link| {
                let session = link.session();
                (
                    link.peer,
                    session.acknowledged(),
                    session.bodies_under_way(),
                )
            });
            taken.collect()
        })
    }

    /// A process is gone, says who may say so. What it sent before may still be on its way.
    pub(crate) fn pronounce(&self, gone: Gone) {
        self.met.notify_all();
        let Some(link) = self.link(gone.process()) else {
            return;
        };
        let process = self.process.upgrade();
        let mut port = self.handover.take();
        let is_linked = link.session().is_linked();
        // A host that is lost may turn out to have been slow: nothing that it says counts any more.
        if is_linked && !gone.is_host_lost() {
            let until = Instant::now() + LAST_WORDS;
            port.later.lost.push((link, gone, until));
            self.must_look.store(true, Ordering::Release);
            self.ring();
        } else if !link.is_ended() {
            port.driver.disconnect(driver_id(link.peer));
            self.end(process.as_deref(), &link, gone);
        }
        self.release(port, process.as_deref());
    }

    /// Moves what can be moved, unless another thread is doing it.
    pub(crate) fn pump(&self, process: Option<&dyn Control>) {
        self.look(process, 1, None);
    }

    /// The same for a thread that waits: looks a few times before it goes on to other things.
    pub(crate) fn watch(&self, process: &dyn Control) {
        self.look(Some(process), LOOKS, None);
    }

    /// The same for a thread that knows what it waits for.
    pub(super) fn catch(&self, process: &dyn Control, catch: &mut Catch<'_>) {
        self.look(Some(process), LOOKS, Some(catch));
    }

    fn look(&self, process: Option<&dyn Control>, looks: u32, catch: Option<&mut Catch<'_>>) {
        if let Some(mut port) = self.handover.try_take() {
            self.turn(&mut port, process, looks, catch);
            self.release(port, process);
        }
    }

    /// A thread looks at the network all the time from now on: ours need not.
    pub(super) fn add_poller(&self) {
        self.handover.add_looker();
    }

    /// It no longer does.
    pub(super) fn remove_poller(&self) {
        self.handover.remove_looker();
    }

    /// Called by one that is about to sleep: our thread must look from now on.
    pub(super) fn wake_if_aside(&self) {
        if self.handover.must_wake() {
            self.ring();
        }
    }

    /// How a peer is reached, in words for a user.
    pub(super) fn describe(&self, peer: ProcessId) -> Option<String> {
        self.with_port(|port| port.driver.describe(driver_id(peer)))
    }

    /// One of our mailboxes closed: peers that used it are told.
    pub(crate) fn close_mailbox(&self, mailbox: MailboxId) {
        let mut told = false;
        for link in self.all_links() {
            if link.close_mailbox(mailbox) {
                self.mark(&link);
                told = true;
            }
        }
        if told {
            self.kick();
        }
    }

    pub(super) fn link(&self, peer: ProcessId) -> Option<Arc<NetLink>> {
        self.links
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&peer)
            .cloned()
    }

    /// The latest life of a rank with which there is a link that has not ended.
    pub(super) fn linked(&self, rank: Rank) -> Option<ProcessId> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        let lives =
            ProcessId::new(rank, Incarnation(0))..=ProcessId::new(rank, Incarnation(u32::MAX));
        let mut lives = links.range(lives).rev();
        lives
            .find(|(_, link)| !link.is_ended())
            .map(|(peer, _)| *peer)
    }

    /// Whether there is a link.
    pub(super) fn has_links(&self) -> bool {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        !links.is_empty()
    }

    pub(super) fn options(&self, peer: ProcessId) -> LinkOptions {
        let mut options = LinkOptions::new(self.me, peer);
        options.frame_max = self.frame_max;
        options.eager_max = self.limits.eager_max;
        options
    }

    /// Releases the port and sees to what was marked while it was held.
    pub(super) fn release<'a>(&'a self, port: MutexGuard<'a, Port>, process: Option<&dyn Control>) {
        self.handover
            .release(port, |port| self.serve_marked(port, process));
    }

    /// Sees to the links that have something for the driver.
    pub(super) fn serve_marked(&self, port: &mut Port, process: Option<&dyn Control>) {
        while let Some(marked) = self.handover.take_marked() {
            let now = now();
            for link in marked {
                match link.serve(&mut *port.driver, now) {
                    Ok(()) => self.arm(&mut port.later, &link, &mut link.session()),
                    Err(how) => port.later.end.push((link, how)),
                }
            }
            self.do_later(port, process);
        }
    }

    /// Waits for the port, and lets `run` use it.
    pub(super) fn with_port<T>(&self, run: impl FnOnce(&mut Port) -> T) -> T {
        // Taken before the port and dropped after it: it may be the last reference, and a process that goes leaves.
        let process = self.process.upgrade();
        let mut port = self.handover.take();
        let outcome = run(&mut port);
        self.release(port, process.as_deref());
        outcome
    }

    fn turn(
        &self,
        port: &mut Port,
        process: Option<&dyn Control>,
        looks: u32,
        mut catch: Option<&mut Catch<'_>>,
    ) {
        let Port { driver, later } = port;
        let mut polled = Ok(0);
        for _ in 0..looks {
            polled = driver.poll(BUDGET, &mut |event| {
                self.handle(process, later, event, catch.as_deref_mut());
            });
            if !matches!(polled, Ok(0)) {
                break;
            }
        }
        if polled.is_err() {
            let all = self.all_links().into_iter();
            later
                .end
                .extend(all.map(|link| (link, Departure::ConnectionLost)));
            self.stop.store(true, Ordering::Release);
        }
        self.do_later(port, process);
        if is_due(&self.alarm) {
            self.handle_timers(process, &mut port.later);
        }
        self.serve_marked(port, process);
        if port.later.must_look() {
            self.keep_standing(port, process);
            self.end_lost(port, process);
            self.must_look
                .store(port.later.must_look(), Ordering::Release);
        }
    }

    /// Looks at the sessions whose time has come.
    fn handle_timers(&self, process: Option<&dyn Control>, later: &mut Later) {
        let now = now();
        while let Some(peer) = later.timers.pop_due(now) {
            let Some(link) = self.link(peer) else {
                continue;
            };
            let mut session = link.session();
            session.armed = None;
            // One that leaves asks by itself.
            if let Some(process) = process {
                if session.poll_ask(now) {
                    process.ask_about(peer);
                }
            }
            session.session.handle_timeout(now);
            self.mark(&link);
        }
        let _ = self.alarm.set(later.timers.next());
    }

    /// Has a session looked at in time.
    pub(super) fn arm(&self, later: &mut Later, link: &NetLink, session: &mut NetSession) {
        let Some(at) = session.next_timeout() else {
            return;
        };
        if session.armed.is_some_and(|armed| armed <= at) {
            return;
        }
        session.armed = Some(at);
        later.timers.push(at, link.peer);
        if self.alarm.set(later.timers.next()) {
            self.ring();
        }
    }

    /// Takes bodies that stood in the driver long enough out of its way.
    fn keep_standing(&self, port: &mut Port, process: Option<&dyn Control>) {
        let (now, driver) = (Instant::now(), &mut port.driver);
        port.later.stalled.retain(|standing| {
            let mut session = standing.link.session();
            let mut state = standing.link.lock();
            if now - standing.since < PATIENCE {
                return state.is_standing(standing.body);
            }
            let peer = standing.link.peer;
            !state.keep_standing(
                process.map(|process| process.links()),
                (&mut session, &mut **driver),
                peer,
                standing.body,
            )
        });
    }

    fn do_later(&self, port: &mut Port, process: Option<&dyn Control>) {
        if port.later.refuse.is_empty() && port.later.end.is_empty() {
            return;
        }
        for (peer, refusal) in core::mem::take(&mut port.later.refuse) {
            match refusal {
                None => port.driver.disconnect(driver_id(peer)),
                Some(refusal) => {
                    let refusal = SessionFrame::Refusal(refusal).to_vec();
                    let told = port
                        .driver
                        .send_frame(driver_id(peer), &[IoSlice::new(&refusal)]);
                    match told {
                        Ok(()) => port.later.refused.push((peer, Instant::now() + REFUSAL)),
                        Err(_) => port.driver.disconnect(driver_id(peer)),
                    }
                    self.must_look.store(true, Ordering::Release);
                }
            }
        }
        for (link, how) in port.later.end.drain(..) {
            if !link.is_ended() {
                port.driver.disconnect(driver_id(link.peer));
                self.end(process, &link, Gone::new(link.peer, how));
            }
        }
    }

    /// How long our thread may sleep, if not for ever.
    fn nap(&self) -> Option<Timespec> {
        let nap = nap(&self.alarm)?;
        Some(Timespec {
            tv_sec: nap.as_secs() as i64,
            tv_nsec: nap.subsec_nanos().into(),
        })
    }

    pub(super) fn ring(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn cut_as(&self, link: &Arc<NetLink>, gone: Gone) {
        let process = self.process.upgrade();
        let mut port = self.handover.take();
        // Only if the driver's link is this one, and not a later one to the same peer.
        if !link.is_ended() {
            port.driver.disconnect(driver_id(link.peer));
            self.end(process.as_deref(), link, gone);
        }
        self.release(port, process.as_deref());
    }

    /// Ends links whose peers have died when what they sent before has had its time, and connections of those who were refused.
    fn end_lost(&self, port: &mut Port, process: Option<&dyn Control>) {
        let now = Instant::now();
        let Port { driver, later } = port;
        later.lost.retain(|(link, gone, until)| {
            if link.is_ended() || link.session().is_linked() && now < *until {
                return !link.is_ended();
            }
            driver.disconnect(driver_id(link.peer));
            self.end(process, link, *gone);
            false
        });
        later.refused.retain(|&(peer, until)| {
            let is_over = now >= until;
            if is_over && self.link(peer).is_none() {
                driver.disconnect(driver_id(peer));
            }
            !is_over
        });
    }

    pub(super) fn all_links(&self) -> Vec<Arc<NetLink>> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        links.values().cloned().collect()
    }

    fn failures(&self, peer: ProcessId) -> Failures {
        lock(&self.failures).get(&peer).cloned().unwrap_or_default()
    }
}

impl Later {
    /// Whether something is to be done soon although nothing comes.
    fn must_look(&self) -> bool {
        !self.stalled.is_empty() || !self.lost.is_empty() || !self.refused.is_empty()
    }
}

impl Hub for Engine {
    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn mark(&self, link: &Arc<NetLink>) {
        self.handover.mark(link);
    }

    fn kick(&self) {
        // As in `with_port`.
        let process = self.process.upgrade();
        self.handover
            .kick(|port| self.serve_marked(port, process.as_deref()));
    }

    fn with_session(&self, link: &Arc<NetLink>, control: &dyn Control, run: Run<'_>) {
        let Some(mut port) = self.handover.try_take() else {
            return;
        };
        let Port { driver, later } = &mut *port;
        let mut session = link.session();
        let now = now();
        swap(&mut session.spares, &mut later.spares);
        run(&mut **driver, &mut session, now);
        swap(&mut session.spares, &mut later.spares);
        if !session.is_watched(now) {
            self.arm(later, link, &mut session);
        }
        drop(session);
        self.release(port, Some(control));
    }

    fn flush_soon(&self, link: &Arc<NetLink>) {
        if self.handover.mark_for_later(link) {
            self.ring();
        }
    }

    fn cut(&self, link: &Arc<NetLink>, how: Departure) {
        self.cut_as(link, Gone::new(link.peer, how));
    }

    fn control(&self) -> Option<Arc<dyn Control>> {
        self.process.upgrade()
    }
}

/// What frames of at most `frame_max` bytes, and these capabilities, mean for messages.
fn limits_of(frame_max: usize, caps: &Caps) -> Limits {
    let fits = frame_max - POST_HEADER;
    let eager_max = if caps.can_push {
        fits.min(COPIED)
    } else {
        fits
    };
    Limits {
        head_max: (frame_max - OFFER_HEADER) as u64,
        eager_max: eager_max as u64,
        max_parts: caps.max_parts,
        can_push: caps.can_push,
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.ring();
        let thread = self.thread.get_mut();
        if let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() {
            // The thread itself may hold the last reference.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl core::fmt::Debug for Engine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Engine")
            .field("me", &self.me)
            .field("locator", &self.locator)
            .finish_non_exhaustive()
    }
}

/// The thread of an engine: sleeps until the network has something, for as long as nobody else looks.
fn run(engine: &Weak<Engine>, wakeup: &OwnedFd, wake: &OwnedFd) {
    let mut quiet = 0;
    loop {
        let mut ready = [
            PollFd::new(wakeup, PollFlags::IN),
            PollFd::new(wake, PollFlags::IN),
        ];
        let soon = engine.upgrade().is_some_and(|engine| {
            engine.must_look.load(Ordering::Acquire) || engine.handover.looks_often()
        });
        let nap = match soon {
            true => Some(STANDING),
            false => engine.upgrade().and_then(|engine| engine.nap()),
        };
        if poll(&mut ready, nap.as_ref()).is_err_and(|errno| errno != rustix::io::Errno::INTR) {
            return;
        }
        // Empty if it was not rung.
        let _ = rustix::io::read(wake, &mut [0; 8]);
        let Some(engine) = engine.upgrade() else {
            return;
        };
        engine.alarm.wake();
        if engine.stop.load(Ordering::Acquire) {
            return;
        }
        if engine.handover.step_aside() {
            drop(engine);
            let _ = poll(&mut [PollFd::new(wake, PollFlags::IN)], Some(&ASIDE));
            continue;
        }
        if engine.handover.has_work() {
            quiet = 0;
        } else if quiet < QUIET {
            quiet += 1;
        } else if engine.handover.looks_often() {
            // What was marked before is seen below.
            engine.handover.look_seldom();
            quiet = 0;
        }
        let process = engine.process.upgrade();
        match engine.handover.try_take() {
            Some(mut port) => {
                engine.turn(&mut port, process.as_deref(), 1, None);
                engine.release(port, process.as_deref());
            }
            // Whoever has it sees to the network; look again when it is likely done.
            None => std::thread::yield_now(),
        }
    }
}
