//! What is served: its mailbox, who is served, and what does the work.

use core::fmt;
use core::marker::PhantomData;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mizzen_core::service::SHORT_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::debug;

use super::find;
use super::handler::{Handler, Plain, Watching};
use super::request::{Asked, Body, open};
use super::session::Session;
use super::wire::{HEADER, Header, Kind};
use mizzen_core::Endpoint;
use mizzen_core::Mailbox;
use mizzen_core::MailboxRef;
use mizzen_core::service::Next;
use mizzen_core::service::{Counted, Rows, summary};
use mizzen_core::service::{Pace, Source, Worker};
use mizzen_core::service::{lock, try_lock};
use mizzen_core::{Error, Gone, RetrieveError};
use mizzen_core::{ProcessId, Rank};

/// A service of this process, from [`Deck::serve`](crate::Deck::serve) and its variants. It is served until this is
/// dropped, so keep it.
#[must_use = "the service ends when this is dropped"]
pub struct Service {
    process: Endpoint,
    name: String,
    address: MailboxRef,
    served: Arc<Served>,
    source: Arc<dyn Source>,
}

impl Service {
    /// Serves a function from arguments to a result.
    pub(crate) fn of_function<A, R>(
        process: &Endpoint,
        name: &str,
        function: impl Fn(A) -> R + Send + Sync + 'static,
    ) -> Result<Self, Error>
    where
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        Self::start(process, name, Plain(function, PhantomData))
    }

    /// The same, and a function that is told of every process of the job that dies or leaves.
    pub(crate) fn of_all<A, R>(
        process: &Endpoint,
        name: &str,
        function: impl Fn(A) -> R + Send + Sync + 'static,
        lost: impl Fn(Gone) + Send + Sync + 'static,
    ) -> Result<Self, Error>
    where
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        let handler = Watching(Plain(function, PhantomData), lost);
        let service = Self::start(process, name, handler)?;
        if let Some(mailbox) = &lock(&service.served.sessions).mailbox {
            let others = (0..process.size())
                .map(Rank)
                .filter(|rank| *rank != process.id().rank);
            others.for_each(|rank| mailbox.depend_on(rank));
        }
        Ok(service)
    }

    pub(super) fn start(
        process: &Endpoint,
        name: &str,
        handler: impl Handler + 'static,
    ) -> Result<Self, Error> {
        let mailbox = Mailbox::open_in(process)?;
        let (address, full_address) = (mailbox.address(), mailbox.full_address());
        let served = Arc::new(Served {
            sessions: Mutex::new(Sessions {
                mailbox: Some(mailbox),
                sessions: HashMap::new(),
                last: None,
                calls: 0,
            }),
            name: name.to_owned(),
            handler: Box::new(handler),
            pace: Pace::new(),
        });
        find::announce(process, name, full_address)?;
        let source: Arc<dyn Source> = Arc::clone(&served) as _;
        process.workers().add_source(Arc::clone(&source));
        process.add_counted(&(Arc::clone(&served) as Arc<dyn Counted>));
        debug!(parent: process.span(), service = name, "service begun");
        Ok(Self {
            process: process.clone(),
            name: name.to_owned(),
            address,
            served,
            source,
        })
    }

    /// Its address. Whoever receives it in a message can [call](crate::Deck::client_of) this service, whatever its name is.
    #[must_use]
    pub fn address(&self) -> MailboxRef {
        self.address.clone()
    }

    /// Workers let go of what they looked at last when they look again, and they are called for that. What the function
    /// holds, maybe the last `Deck`, is then dropped here and not there, where the end of the program would not wait for it.
    fn wait_for_workers(&self) {
        // One for `served`, one for `source`.
        const OURS: usize = 2;
        let started = Instant::now();
        while Arc::strong_count(&self.served) > OURS && started.elapsed() < LETTING_GO {
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let counts = || summary(&*self.served);
        debug!(parent: self.process.span(), service = self.name, counts = counts(), "service ended");
        self.process.workers().remove_source(&self.source);
        let mut sessions = lock(&self.served.sessions);
        find::withdraw(&self.process, &self.name, self.address.full_address());
        for (_, session) in sessions.sessions.drain() {
            session.stop();
        }
        sessions.last = None;
        let mailbox = sessions.mailbox.take();
        drop(sessions);
        drop(mailbox);
        self.wait_for_workers();
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A worker that has not let go by then carries out a call, and lets go after it.
const LETTING_GO: Duration = Duration::from_millis(20);

/// A service as workers see it.
struct Served {
    sessions: Mutex<Sessions>,
    name: String,
    handler: Box<dyn Handler>,
    pace: Pace,
}

/// Where requests are taken.
struct Sessions {
    /// None when the service has ended: workers may still hold what they looked at.
    mailbox: Option<Mailbox>,
    sessions: HashMap<(ProcessId, u32), Arc<Session>>,
    /// Who asked last: most likely it asks next.
    last: Option<((ProcessId, u32), Arc<Session>)>,
    /// Calls and notices that were taken.
    calls: u64,
}

/// What a look at the sessions found.
enum Todo<'a> {
    Answer(Asked<'a>),
    Hear(Gone),
}

impl Sessions {
    /// The next call. Words of clients about themselves are seen to here.
    #[inline]
    fn next<'a>(&mut self, slot: &'a mut [u8; SHORT_MAX]) -> Option<Todo<'a>> {
        let (session, header, body) = loop {
            let mailbox = self.mailbox.as_ref()?;
            let next = match mailbox.try_take(slot)? {
                Ok(next) => next,
                Err(RetrieveError::PeerGone(gone)) => {
                    self.last = None;
                    self.sessions.retain(|(client, _), session| {
                        let stays = *client != gone.process();
                        if !stays {
                            session.close();
                        }
                        stays
                    });
                    return Some(Todo::Hear(gone));
                }
                Err(_) => continue,
            };
            let len = match next {
                Next::Short { len, .. } => len,
                Next::Other(_) => 0,
            };
            let Some((source, header, body)) = open(mailbox, next, &slot[..]) else {
                continue;
            };
            let key = (source, header.session);
            if let Kind::Call | Kind::Notify = header.kind {
                if let Some(session) = self.session(key) {
                    // Borrowed again, for as long as the caller needs it.
                    let body = match body {
                        Body::Value(_) => None,
                        other => Some(other.keep()),
                    };
                    break (session, header, body.ok_or(len));
                }
                continue;
            }
            self.hear(key, header, &body);
        };
        let body = match body {
            Ok(body) => body,
            Err(len) => Body::Value(slot.get(HEADER..len)?),
        };
        self.calls += 1;
        Some(Todo::Answer(Asked {
            session,
            header,
            body,
        }))
    }

    /// What a client says about itself.
    #[cold]
    fn hear(&mut self, key: (ProcessId, u32), header: Header, body: &Body<'_>) {
        match header.kind {
            Kind::Open => self.open_session(key, body),
            Kind::Cancel => {
                if let Some(session) = self.session(key) {
                    session.cancel(header.call);
                }
            }
            Kind::Close => {
                self.last = None;
                if let Some(session) = self.sessions.remove(&key) {
                    session.close();
                }
            }
            _ => (),
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
    fn open_session(&mut self, key: (ProcessId, u32), body: &Body<'_>) {
        let address = match body {
            Body::Value(address) => address,
            Body::Owned(address) => &address[..],
            Body::Pieces(_) => return,
        };
        // A client that names nonsense is not served.
        let process = self.mailbox.as_ref().map(Mailbox::process);
        let Some(process) = process else {
            return;
        };
        if let Some(client) = MailboxRef::from_bytes(address, process) {
            let session = Session::new(process.clone(), key.1, client);
            self.sessions.insert(key, Arc::new(session));
        }
    }
}

impl Served {
    /// The watch of a mailbox that is closed may be another's already.
    fn set_bell(&self, bell: Option<u32>) {
        if let Some(mailbox) = &lock(&self.sessions).mailbox {
            mailbox.set_bell(bell);
        }
    }
}

impl Counted for Served {
    fn count(&self, rows: &mut Rows) {
        let (calls, clients) = {
            let sessions = lock(&self.sessions);
            (sessions.calls, sessions.sessions.len() as u64)
        };
        rows.object(
            format_args!("service {}", self.name),
            &[("calls", calls), ("clients", clients)],
        );
    }
}

impl Source for Served {
    #[inline]
    fn look(&self, worker: &dyn Worker) -> bool {
        let Some(mut sessions) = try_lock(&self.sessions) else {
            return false;
        };
        let mut slot = [0; SHORT_MAX];
        let Some(todo) = sessions.next(&mut slot) else {
            return false;
        };
        drop(sessions);
        let asked = match todo {
            Todo::Answer(asked) => asked,
            Todo::Hear(gone) => {
                self.handler.lost(gone);
                return true;
            }
        };
        if self.pace.is_slow() {
            worker.step_aside();
        }
        // What the program's types do while they are read or written may panic, too: that costs the call, not the worker.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            self.pace.time(|| self.handler.handle(asked))
        }));
        true
    }

    #[inline]
    fn is_likely(&self) -> bool {
        try_lock(&self.sessions)
            .is_some_and(|sessions| sessions.mailbox.as_ref().is_some_and(Mailbox::is_likely))
    }

    fn watch(&self, bell: u32) {
        self.set_bell(Some(bell));
    }

    fn is_ready(&self) -> bool {
        lock(&self.sessions)
            .mailbox
            .as_ref()
            .is_some_and(Mailbox::is_ready)
    }

    fn unwatch(&self) {
        self.set_bell(None);
    }
}
