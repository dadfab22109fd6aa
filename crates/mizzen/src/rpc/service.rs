//! What is served: its mailbox, who is served, and what does the work.

use core::fmt;
use core::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_core::service::SHORT_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tracing::debug;

use super::find;
use super::handler::{Handler, Plain, Watching};
use super::request::{Asked, Body, open};
use super::sessions::Sessions;
use super::wire::{HEADER, Header};
use mizzen_core::Endpoint;
use mizzen_core::Mailbox;
use mizzen_core::MailboxRef;
use mizzen_core::service::Latch;
use mizzen_core::service::{Counted, Rows, summary};
use mizzen_core::service::{Pace, Source, Worker};
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
        if let Some(mailbox) = service.served.sessions.lock().mailbox() {
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
            sessions: Latch::new(Sessions::new(mailbox)),
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
        let mut sessions = self.served.sessions.lock();
        find::withdraw(&self.process, &self.name, self.address.full_address());
        let mailbox = sessions.end();
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
    sessions: Latch<Sessions>,
    name: String,
    handler: Box<dyn Handler>,
    pace: Pace,
}

/// Calls that a worker carries out before it looks what else is to be done.
const IN_A_ROW: u32 = 64;

impl Served {
    /// The watch of a mailbox that is closed may be another's already.
    fn set_bell(&self, bell: Option<u32>) {
        if let Some(mailbox) = self.sessions.lock().mailbox() {
            mailbox.set_bell(bell);
        }
    }
}

impl Counted for Served {
    fn count(&self, rows: &mut Rows) {
        let (calls, clients) = {
            let sessions = self.sessions.lock();
            (sessions.calls(), sessions.clients() as u64)
        };
        rows.object(
            format_args!("service {}", self.name),
            &[("calls", calls), ("clients", clients)],
        );
    }
}

/// What a look at a mailbox found.
enum Opened<'a> {
    Message(ProcessId, Header, Body<'a>),
    Nothing,
    Nonsense,
    Gone(Gone),
}

/// The next message, if it is not one of those that are taken quickly.
#[inline(never)]
fn open_next<'a>(mailbox: &Mailbox, slot: &'a mut [u8; SHORT_MAX]) -> Opened<'a> {
    match mailbox.try_take(slot) {
        None => Opened::Nothing,
        Some(Ok(next)) => match open(mailbox, next, slot) {
            Some((source, header, body)) => Opened::Message(source, header, body),
            None => Opened::Nonsense,
        },
        Some(Err(RetrieveError::PeerGone(gone))) => Opened::Gone(gone),
        Some(Err(_)) => Opened::Nonsense,
    }
}

impl Source for Served {
    fn look(&self, worker: &dyn Worker, looks: u32) -> bool {
        let mut slot = [0; SHORT_MAX];
        let mut last = None;
        for count in 0..IN_A_ROW {
            let Some(mut sessions) = self.sessions.try_lock() else {
                return count > 0;
            };
            sessions.take_back(last.take());
            let Some(mailbox) = sessions.mailbox() else {
                return count > 0;
            };
            let (source, header, body) = match mailbox.take_quickly(&mut slot, looks) {
                Some((len, source)) => match Header::decode(&slot[..len]) {
                    Some(header) => (source, header, Body::Value(&slot[HEADER..len])),
                    None => continue,
                },
                None => match open_next(mailbox, &mut slot) {
                    Opened::Message(source, header, body) => (source, header, body),
                    Opened::Nothing => return count > 0,
                    Opened::Nonsense => continue,
                    Opened::Gone(gone) => {
                        sessions.lose(gone);
                        drop(sessions);
                        self.handler.lost(gone);
                        return true;
                    }
                },
            };
            let key = (source, header.session);
            let Some(session) = sessions.called(key, &header, &body) else {
                continue;
            };
            drop(sessions);
            if self.pace.is_slow() {
                worker.step_aside();
            }
            let asked = Asked {
                session,
                header,
                body,
            };
            // What the program's types do while they are read or written may panic, too: that costs the call, not the worker.
            let handle = || self.pace.time(|| self.handler.handle(asked));
            let session = catch_unwind(AssertUnwindSafe(handle)).unwrap_or_default();
            if !worker.may_go_on() {
                return true;
            }
            last = session.map(|session| (key, session));
        }
        true
    }

    fn watch(&self, bell: u32) {
        self.set_bell(Some(bell));
    }

    fn is_ready(&self) -> bool {
        self.sessions
            .lock()
            .mailbox()
            .is_some_and(Mailbox::is_ready)
    }

    fn unwatch(&self) {
        self.set_bell(None);
    }
}
