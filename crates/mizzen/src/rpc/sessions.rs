//! The clients of a service: where their calls are taken, and who asked last.

use std::collections::HashMap;
use std::sync::Arc;

use mizzen_core::{Gone, Mailbox, MailboxRef, ProcessId};

use super::request::Body;
use super::session::Session;
use super::wire::{Header, Kind};

/// Which client of which process.
pub(super) type Key = (ProcessId, u32);

/// Where the calls of a service are taken, and of whom.
pub(super) struct Sessions {
    /// None when the service has ended: workers may still hold what they looked at.
    mailbox: Option<Mailbox>,
    sessions: HashMap<Key, Arc<Session>>,
    /// Who asked last: most likely it asks next. A worker that answers it has this meanwhile.
    last: Option<(Key, Arc<Session>)>,
    /// Calls and notices that were taken.
    calls: u64,
}

impl Sessions {
    pub(super) fn new(mailbox: Mailbox) -> Self {
        Self {
            mailbox: Some(mailbox),
            sessions: HashMap::new(),
            last: None,
            calls: 0,
        }
    }

    /// The service ends: clients are told so. Gives its mailbox back, to be closed.
    pub(super) fn end(&mut self) -> Option<Mailbox> {
        for (_, session) in self.sessions.drain() {
            session.stop();
        }
        self.last = None;
        self.mailbox.take()
    }

    /// The client of a call that came, if it is one of those who are served. What a client says about itself is seen to here.
    #[inline]
    pub(super) fn called(
        &mut self,
        key: Key,
        header: &Header,
        body: &Body<'_>,
    ) -> Option<Arc<Session>> {
        if let Kind::Call | Kind::Notify = header.kind {
            self.calls += 1;
            return self.session(key);
        }
        self.hear(key, header, body);
        None
    }

    #[inline]
    fn session(&mut self, key: Key) -> Option<Arc<Session>> {
        match self.last.take() {
            Some((last, session)) if last == key => Some(session),
            _ => self.sessions.get(&key).cloned(),
        }
    }

    /// Takes back who asked last, and will most likely ask again: so it is counted neither up nor down.
    #[inline]
    pub(super) fn take_back(&mut self, last: Option<(Key, Arc<Session>)>) {
        // One that was closed meanwhile is nobody's any more.
        self.last = last.filter(|(_, session)| !session.is_closed());
    }

    /// A process is gone, and its clients with it.
    pub(super) fn lose(&mut self, gone: Gone) {
        self.last = None;
        self.sessions.retain(|(client, _), session| {
            let stays = *client != gone.process();
            if !stays {
                session.close();
            }
            stays
        });
    }

    /// What a client says about itself.
    #[cold]
    fn hear(&mut self, key: Key, header: &Header, body: &Body<'_>) {
        match header.kind {
            Kind::Open => self.open(key, body),
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

    fn open(&mut self, key: Key, body: &Body<'_>) {
        let address = match body {
            Body::Value(address) => address,
            Body::Owned(address) => &address[..],
            Body::Led(_) | Body::Pieces(_) | Body::Lent(..) => return,
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

    /// Where calls come. `None`: the service has ended.
    #[inline]
    pub(super) fn mailbox(&self) -> Option<&Mailbox> {
        self.mailbox.as_ref()
    }

    /// Calls and notices that were taken.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// How many clients there are.
    pub(super) fn clients(&self) -> usize {
        self.sessions.len()
    }
}
