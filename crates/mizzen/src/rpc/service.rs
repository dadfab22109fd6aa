//! What is served: its mailbox, who is served, and what does the work.

use core::fmt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::find;
use super::handler::Handler;
use super::request::{Asked, Body};
use super::session::Session;
use super::wire::{HEADER, Header, Kind};
use crate::address::MailboxRef;
use crate::error::{Error, RetrieveError};
use crate::lock::{lock, try_lock};
use crate::mailbox::{Core, Mailbox, Taken};
use crate::message::{Flags, Payload};
use crate::process::{Handle, Process};
use crate::rank::ProcessId;
use crate::tasks::{Seat, Source};

/// A service of this process, from [`Deck::serve`](crate::Deck::serve) and its kin. It is served until this is dropped: keep it.
#[must_use = "the service ends when this is dropped"]
pub struct Service {
    process: Handle,
    name: String,
    address: MailboxRef,
    served: Arc<Served>,
    source: Arc<dyn Source>,
}

impl Service {
    pub(super) fn start(
        process: &Handle,
        name: &str,
        handler: impl Handler + 'static,
    ) -> Result<Self, Error> {
        let mailbox = Mailbox::new(process.clone(), process.open_mailbox()?);
        let (address, full_address) = (mailbox.address(), mailbox.full_address());
        let served = Arc::new(Served {
            core: Arc::clone(mailbox.core()),
            desk: Mutex::new(Desk {
                mailbox,
                sessions: HashMap::new(),
                last: None,
            }),
            handler: Box::new(handler),
            pace: Pace::new(),
        });
        find::announce(process, name, full_address)?;
        let source: Arc<dyn Source> = Arc::clone(&served) as _;
        process.crew().add_source(Arc::clone(&source));
        Ok(Self {
            process: process.clone(),
            name: name.to_owned(),
            address,
            served,
            source,
        })
    }

    /// Its address: pack it into a message, and whoever unpacks it can [call](crate::Deck::client_of) this service, whatever its
    /// name is.
    #[must_use]
    pub fn address(&self) -> MailboxRef {
        self.address.clone()
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.crew().remove_source(&self.source);
        let mut desk = lock(&self.served.desk);
        find::withdraw(&self.process, &self.name, desk.mailbox.full_address());
        for (_, session) in desk.sessions.drain() {
            session.say(0, Kind::Stopped);
        }
        desk.last = None;
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A service as workers see it.
struct Served {
    core: Arc<Core>,
    desk: Mutex<Desk>,
    handler: Box<dyn Handler>,
    pace: Pace,
}

/// Where requests are taken.
struct Desk {
    mailbox: Mailbox,
    sessions: HashMap<(ProcessId, u32), Arc<Session>>,
    /// Who asked last: most likely it asks next.
    last: Option<((ProcessId, u32), Arc<Session>)>,
}

impl Desk {
    /// The next call. Words of clients about themselves are seen to here.
    fn next(&mut self, process: &Arc<Process>) -> Option<Asked> {
        loop {
            let taken = match self.mailbox.try_take()? {
                Ok(taken) => taken,
                Err(RetrieveError::PeerGone(gone)) => {
                    self.last = None;
                    self.sessions
                        .retain(|(client, _), _| *client != gone.process());
                    continue;
                }
                Err(_) => continue,
            };
            let source = taken.source;
            let Some((header, body)) = open(&self.mailbox, taken) else {
                continue;
            };
            let key = (source, header.session);
            match header.kind {
                Kind::Call | Kind::Notify => {
                    if let Some(session) = self.session(key) {
                        return Some(Asked {
                            session,
                            header,
                            body,
                        });
                    }
                }
                Kind::Open => self.open_session(process, key, &body),
                Kind::Cancel => {
                    if let Some(session) = self.session(key) {
                        session.cancel(header.call);
                    }
                }
                Kind::Close => {
                    self.last = None;
                    self.sessions.remove(&key);
                }
                _ => (),
            }
        }
    }

    #[inline]
    fn session(&mut self, key: (ProcessId, u32)) -> Option<Arc<Session>> {
        if let Some((last, session)) = &self.last {
            if *last == key {
                return Some(Arc::clone(session));
            }
        }
        let session = Arc::clone(self.sessions.get(&key)?);
        self.last = Some((key, Arc::clone(&session)));
        Some(session)
    }

    #[cold]
    fn open_session(&mut self, process: &Arc<Process>, key: (ProcessId, u32), body: &Body) {
        let Body::Compact(payload) = body else {
            return;
        };
        let mut address = [0; 16];
        if payload.len() != HEADER + address.len() {
            return;
        }
        payload.copy_out(HEADER, &mut address);
        // A client that names nonsense, or is gone already, is not served.
        let Some(client) = MailboxRef::from_bytes(&address, Arc::clone(process)) else {
            return;
        };
        if let Ok(reply) = client.sender() {
            let session = Arc::new(Session::new(key.1, reply));
            self.sessions.insert(key, session);
        }
    }
}

/// A message of a client to a service, or back.
pub(super) fn open(mailbox: &Mailbox, taken: Taken) -> Option<(Header, Body)> {
    let simple = matches!(
        taken.payload,
        Payload::Short { .. } | Payload::Eager(_) | Payload::Owned(_)
    );
    if taken.flags.has(Flags::SINGLE) {
        let mut header = [0; HEADER];
        if !simple || taken.payload.len() < HEADER {
            return None;
        }
        taken.payload.copy_out(0, &mut header);
        return Some((Header::decode(&header)?, Body::Compact(taken.payload)));
    }
    let mut incoming = mailbox.open(taken).ok()?;
    let header: [u8; HEADER] = incoming.unpack_express().ok()?;
    Some((Header::decode(&header)?, Body::Pieces(Box::new(incoming))))
}

impl Source for Served {
    #[inline]
    fn look(&self, process: &Arc<Process>, seat: &Seat) -> bool {
        let Some(mut desk) = try_lock(&self.desk) else {
            return false;
        };
        let Some(asked) = desk.next(process) else {
            return false;
        };
        drop(desk);
        if self.pace.is_slow() {
            seat.step_aside();
        }
        self.pace.time(|| self.handler.handle(asked));
        true
    }

    #[inline]
    fn is_likely(&self) -> bool {
        try_lock(&self.desk).is_some_and(|desk| desk.mailbox.is_likely())
    }

    fn watch(&self, bell: u32) {
        self.core.watch.announce_sleep(bell);
    }

    fn is_ready(&self, _: &Arc<Process>) -> bool {
        lock(&self.desk).mailbox.is_ready()
    }

    fn unwatch(&self) {
        self.core.watch.announce_awake();
    }
}

/// How long calls of a service take. While one is carried out by the worker that also looks for what comes next, nobody looks:
/// that is right for calls shorter than waking another worker, and for no others.
struct Pace {
    nanoseconds: AtomicU32,
    calls: AtomicU32,
}

impl Pace {
    /// About what it costs to wake another worker and come back.
    const SLOW: Duration = Duration::from_micros(20);
    /// Quick calls are timed only this often: reading the clock takes as long as some of them.
    const TIMED_EVERY: u32 = 32;

    fn new() -> Self {
        Self {
            // Unknown: slow until it was seen to be quick.
            nanoseconds: AtomicU32::new(u32::MAX),
            calls: AtomicU32::new(0),
        }
    }

    #[inline]
    fn is_slow(&self) -> bool {
        self.nanoseconds.load(Ordering::Relaxed) > Self::SLOW.as_nanos() as u32
    }

    #[inline]
    fn time(&self, call: impl FnOnce()) {
        let count = self.calls.load(Ordering::Relaxed).wrapping_add(1);
        self.calls.store(count, Ordering::Relaxed);
        if count % Self::TIMED_EVERY != 0 && !self.is_slow() {
            return call();
        }
        let started = Instant::now();
        call();
        let took = u32::try_from(started.elapsed().as_nanos()).unwrap_or(u32::MAX);
        let known = self.nanoseconds.load(Ordering::Relaxed);
        // A slow one counts for the next few.
        let faded = if known == u32::MAX { 0 } else { known / 8 * 7 };
        self.nanoseconds
            .store(took.max(faded).min(u32::MAX - 1), Ordering::Relaxed);
    }
}
