//! The connections of an agent with other agents: who is let in, who is dialled, what comes and goes.
//!
//! | a connection is | until |
//! | --- | --- |
//! | being made | both sides have proved who they are, or its time is over |
//! | open | it breaks, says what is no frame, or is the oldest of too many with the same agent |
//!
//! An agent that shares no network with this one is reached through the launcher, in a job with gateways.
//!
//! Of several connections with one agent the latest is spoken on, and all are listened to: the older may be dead, or be
//! the one that the other side speaks on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use mizzen_identity::Credentials;
use mizzen_proto::boot::FRAME_HEADER;
use mizzen_proto::membership::{AgentId, HostId, Spoken};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::connection::{Connection, Moved};
use crate::events::{self, EVENTS};

/// All connections.
pub(crate) struct Net {
    epoll: OwnedFd,
    listener: TcpListener,
    credentials: Credentials,
    /// After which time without an acknowledgement a connection is given up.
    patience: Duration,
    connections: BTreeMap<u64, Entry>,
    /// The latest open connection with each host.
    links: BTreeMap<HostId, u64>,
    /// Where the agent of a host was met: only there a refusal says that it is gone.
    met: BTreeMap<HostId, BTreeSet<IpAddr>>,
    next: u64,
    /// Whether what is for agents that share no network with this one goes through the launcher.
    may_pass: bool,
    /// Agents that are reached so, and those that are gone.
    passed: BTreeSet<HostId>,
    gone: BTreeSet<HostId>,
    /// What the launcher is to pass on.
    to_pass: Vec<(HostId, Vec<u8>)>,
}

struct Entry {
    connection: Connection,
    /// Until when it must be open; `None` if it is.
    deadline: Option<Instant>,
    dial: Option<Dial>,
    is_watching_room: bool,
}

/// A connection that we make.
struct Dial {
    host: HostId,
    address: SocketAddr,
    /// Where to try next.
    others: VecDeque<SocketAddr>,
    /// Whether there is no other address, so that a refusal can only be the agent's.
    is_only: bool,
    is_refused: bool,
    /// Whether somebody is there.
    has_answered: bool,
    /// What is said first.
    first: Vec<Spoken>,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// An agent is there.
    Opened(AgentId),
    /// It says something.
    Spoken(AgentId, Spoken),
    /// The last connection with it broke.
    Lost(AgentId),
    /// The agent of this host was dialled in vain.
    Failed {
        host: HostId,
        /// Whether its host says that nobody listens where it did.
        is_refused: bool,
    },
}

impl Net {
    pub(crate) fn new(
        listener: TcpListener,
        credentials: Credentials,
        patience: Duration,
        may_pass: bool,
    ) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        Ok(Self {
            epoll,
            listener,
            credentials,
            patience,
            connections: BTreeMap::new(),
            links: BTreeMap::new(),
            met: BTreeMap::new(),
            next: LISTENER + 1,
            may_pass,
            passed: BTreeSet::new(),
            gone: BTreeSet::new(),
            to_pass: Vec::new(),
        })
    }

    /// Connects to the agent of a host, and says this first. If it cannot be, [`Event::Failed`] tells.
    pub(crate) fn dial(
        &mut self,
        host: HostId,
        addresses: Vec<SocketAddr>,
        first: Vec<Spoken>,
        events: &mut Vec<Event>,
    ) {
        let is_only = addresses.len() == 1;
        let mut others: VecDeque<SocketAddr> = addresses.into();
        let Some(address) = others.pop_front() else {
            if self.may_pass {
                return self.pass_to(host, first, events);
            }
            return events.push(Event::Failed {
                host,
                is_refused: false,
            });
        };
        let dial = Dial {
            host,
            address,
            others,
            is_only,
            is_refused: false,
            has_answered: false,
            first,
        };
        self.connect(dial, events);
    }

    /// Whether the agent of a host is being dialled.
    pub(crate) fn is_dialling(&self, host: HostId) -> bool {
        let mut dials = self
            .connections
            .values()
            .filter_map(|entry| entry.dial.as_ref());
        dials.any(|dial| dial.host == host)
    }

    /// Something else to say to the agent of a host, once it is reached that is being dialled.
    pub(crate) fn say_first(&mut self, host: HostId, spoken: Vec<Spoken>) {
        let dials = self.connections.values_mut();
        let mut dials = dials.filter_map(|entry| entry.dial.as_mut());
        if let Some(dial) = dials.find(|dial| dial.host == host) {
            let room = MAX_FIRST.saturating_sub(dial.first.len());
            dial.first.extend(spoken.into_iter().take(room));
        }
    }

    pub(crate) fn is_linked(&self, host: HostId) -> bool {
        self.links.contains_key(&host) || self.passed.contains(&host)
    }

    /// Has the launcher pass on what is for the agent of a host, from now on.
    fn pass_to(&mut self, host: HostId, first: Vec<Spoken>, events: &mut Vec<Event>) {
        if self.gone.contains(&host) {
            return events.push(Event::Failed {
                host,
                is_refused: true,
            });
        }
        if self.passed.insert(host) {
            events.push(Event::Opened(AgentId::new(host, FIRST_LIFE)));
        }
        for spoken in first {
            self.send(host, &spoken, events);
        }
    }

    /// The launcher passes on what the agent of a host says. It knows who said it.
    pub(crate) fn handle_passed(&mut self, from: HostId, bytes: &[u8], events: &mut Vec<Event>) {
        if !self.may_pass {
            return;
        }
        let agent = AgentId::new(from, FIRST_LIFE);
        if let Ok(spoken) = Spoken::decode(bytes) {
            if self.passed.insert(from) {
                events.push(Event::Opened(agent));
            }
            events.push(Event::Spoken(agent, spoken));
        }
    }

    /// The launcher says that the agent of a host is gone.
    pub(crate) fn handle_not_passed(&mut self, host: HostId, events: &mut Vec<Event>) {
        self.gone.insert(host);
        if self.passed.remove(&host) {
            events.push(Event::Lost(AgentId::new(host, FIRST_LIFE)));
        }
    }

    /// What the launcher is to pass on, and to whom.
    pub(crate) fn take_passes(&mut self) -> Vec<(HostId, Vec<u8>)> {
        std::mem::take(&mut self.to_pass)
    }

    /// Says something to the agent of a host. Without a connection it is lost, like what is under way when one breaks.
    pub(crate) fn send(&mut self, host: HostId, spoken: &Spoken, events: &mut Vec<Event>) {
        let Some(key) = self.links.get(&host).copied() else {
            let mut bytes = Vec::new();
            if self.passed.contains(&host) && spoken.encode(&mut bytes).is_ok() {
                self.to_pass.push((host, bytes.split_off(FRAME_HEADER)));
            }
            return;
        };
        let Some(entry) = self.connections.get_mut(&key) else {
            return;
        };
        if !entry.connection.queue(spoken) {
            self.close(key, events);
        }
    }

    /// Writes what can be written.
    pub(crate) fn flush(&mut self, events: &mut Vec<Event>) {
        let mut broken = Vec::new();
        for (key, entry) in &mut self.connections {
            if entry.dial.is_some() && !entry.is_connected() {
                continue;
            }
            if !entry.connection.flush() {
                broken.push(*key);
            }
        }
        for key in broken {
            self.fail(key, events);
        }
        for (key, entry) in &mut self.connections {
            let wants = entry.connection.wants_room() || !entry.is_connected();
            if wants == entry.is_watching_room {
                continue;
            }
            entry.is_watching_room = wants;
            let flags = if wants {
                EventFlags::IN | EventFlags::OUT
            } else {
                EventFlags::IN
            };
            let _ = epoll::modify(
                &self.epoll,
                &entry.connection,
                EventData::new_u64(*key),
                flags,
            );
        }
    }

    /// Takes in all that has arrived.
    pub(crate) fn poll(&mut self, events: &mut Vec<Event>) -> Result<(), Errno> {
        let mut ready = Vec::with_capacity(EVENTS);
        for _ in 0..ROUNDS {
            events::wait(&self.epoll, &mut ready, Some(Duration::ZERO))?;
            // Those that only have room are no reason to look again.
            let is_news = |flags: EventFlags| flags.intersects(EventFlags::IN);
            let has_news = ready.iter().any(|event| is_news(event.flags));
            for event in ready.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    key => self.handle(key, events),
                }
            }
            if !has_news {
                break;
            }
        }
        Ok(())
    }

    /// Gives up what took too long.
    pub(crate) fn enforce(&mut self, now: Instant, events: &mut Vec<Event>) {
        let late = |entry: &Entry| entry.deadline.is_some_and(|deadline| deadline <= now);
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, entry)| late(entry))
            .map(|(key, _)| *key)
            .collect();
        for key in late {
            self.fail(key, events);
        }
    }

    /// When to call [`enforce`](Self::enforce).
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.connections
            .values()
            .filter_map(|entry| entry.deadline)
            .min()
    }

    fn connect(&mut self, mut dial: Dial, events: &mut Vec<Event>) {
        loop {
            match Connection::dial(dial.address, &self.credentials, self.patience) {
                Ok(connection) => {
                    let patience = DIAL;
                    return self.add(connection, Some(dial), patience);
                }
                Err(error) => {
                    let kind = error.kind();
                    match self.other_address(dial, kind) {
                        Ok(next) => dial = next,
                        Err(failed) => return events.push(failed),
                    }
                }
            }
        }
    }

    /// The next address to try, or that there is none.
    fn other_address(&self, mut dial: Dial, kind: io::ErrorKind) -> Result<Dial, Event> {
        let met = self.met.get(&dial.host);
        let is_there = dial.is_only || met.is_some_and(|met| met.contains(&dial.address.ip()));
        dial.is_refused |= kind == io::ErrorKind::ConnectionRefused && is_there;
        match dial.others.pop_front() {
            Some(address) => Ok(Dial {
                address,
                has_answered: false,
                ..dial
            }),
            None => Err(Event::Failed {
                host: dial.host,
                is_refused: dial.is_refused,
            }),
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let Ok((socket, _)) = self.listener.accept() else {
                return;
            };
            // Strangers may say nothing for ever: then those who came first go first.
            let strangers = self
                .connections
                .iter()
                .filter(|(_, entry)| entry.dial.is_none() && entry.deadline.is_some());
            let strangers: Vec<u64> = strangers.map(|(key, _)| *key).collect();
            if strangers.len() >= MAX_STRANGERS {
                self.connections.remove(&strangers[0]);
            }
            if let Ok(connection) = Connection::accept(socket, &self.credentials, self.patience) {
                self.add(connection, None, HANDSHAKE);
            }
        }
    }

    fn add(&mut self, connection: Connection, dial: Option<Dial>, patience: Duration) {
        let key = self.next;
        self.next += 1;
        let is_watching_room = dial.is_some();
        let flags = if is_watching_room {
            EventFlags::IN | EventFlags::OUT
        } else {
            EventFlags::IN
        };
        // Without a place in the epoll, its time runs out.
        let _ = epoll::add(&self.epoll, &connection, EventData::new_u64(key), flags);
        let entry = Entry {
            connection,
            deadline: Some(Instant::now() + patience),
            dial,
            is_watching_room,
        };
        self.connections.insert(key, entry);
    }

    fn handle(&mut self, key: u64, events: &mut Vec<Event>) {
        let Some(entry) = self.connections.get_mut(&key) else {
            return;
        };
        if entry.dial.is_some() && !entry.is_connected() {
            if let Some(kind) = entry.connection.failure() {
                self.fail_with(key, kind, events);
            }
            // There is nothing to be read before.
            return;
        }
        if let Some(dial) = entry.dial.as_mut().filter(|dial| !dial.has_answered) {
            dial.has_answered = true;
            entry.deadline = Some(Instant::now() + PROOF);
        }
        let moved = entry.connection.receive(&self.credentials);
        if let Moved::Proved(peer) = moved {
            self.open(key, peer, events);
        }
        if !self.take_frames(key, events) || moved == Moved::Over {
            self.fail(key, events);
        }
    }

    /// Whether all that came is frames.
    fn take_frames(&mut self, key: u64, events: &mut Vec<Event>) -> bool {
        let Some(entry) = self.connections.get_mut(&key) else {
            return true;
        };
        let Some(peer) = entry.connection.peer() else {
            return true;
        };
        loop {
            match entry.connection.next() {
                Ok(Some(spoken)) => events.push(Event::Spoken(peer, spoken)),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// The other side of a connection has proved who it is.
    fn open(&mut self, key: u64, peer: AgentId, events: &mut Vec<Event>) {
        let Some(entry) = self.connections.get_mut(&key) else {
            return;
        };
        let dial = entry.dial.take();
        if let Some(dial) = dial.as_ref().filter(|dial| dial.host != peer.host) {
            // Somebody else is there now.
            events.push(Event::Failed {
                host: dial.host,
                is_refused: false,
            });
            self.connections.remove(&key);
            return;
        }
        entry.deadline = None;
        if let Some(address) = entry.connection.address() {
            self.met.entry(peer.host).or_default().insert(address.ip());
        }
        self.links.insert(peer.host, key);
        let with_it = self.connections.iter();
        let with_it = with_it.filter(|(_, entry)| entry.connection.peer() == Some(peer));
        let with_it: Vec<u64> = with_it.map(|(key, _)| *key).collect();
        if with_it.len() > MAX_WITH_ONE {
            self.connections.remove(&with_it[0]);
        }
        events.push(Event::Opened(peer));
        for spoken in dial.map(|dial| dial.first).unwrap_or_default() {
            self.send(peer.host, &spoken, events);
        }
    }

    /// A connection is no use.
    fn fail(&mut self, key: u64, events: &mut Vec<Event>) {
        self.fail_with(key, io::ErrorKind::ConnectionReset, events);
    }

    fn fail_with(&mut self, key: u64, kind: io::ErrorKind, events: &mut Vec<Event>) {
        let dial = self
            .connections
            .get_mut(&key)
            .and_then(|entry| entry.dial.take());
        match dial {
            Some(dial) => {
                self.connections.remove(&key);
                match self.other_address(dial, kind) {
                    Ok(next) => self.connect(next, events),
                    Err(failed) => events.push(failed),
                }
            }
            None => self.close(key, events),
        }
    }

    fn close(&mut self, key: u64, events: &mut Vec<Event>) {
        let Some(entry) = self.connections.remove(&key) else {
            return;
        };
        let Some(peer) = entry.connection.peer() else {
            return;
        };
        if self.links.get(&peer.host) != Some(&key) {
            return;
        }
        let others = self.connections.iter().rev();
        let mut others = others.filter(|(_, entry)| entry.connection.peer() == Some(peer));
        if let Some((other, _)) = others.next() {
            self.links.insert(peer.host, *other);
        } else {
            self.links.remove(&peer.host);
            events.push(Event::Lost(peer));
        }
    }
}

impl Entry {
    /// Whether TCP has connected.
    fn is_connected(&self) -> bool {
        self.dial.is_none() || self.connection.address().is_some()
    }
}

impl AsFd for Net {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// An agent is started once in a job.
pub(crate) const FIRST_LIFE: u32 = 1;

const LISTENER: u64 = 0;

/// Rounds in which all that has arrived is taken in before time passes: enough for the beats of the largest job.
const ROUNDS: usize = 64;

/// Connections taken in one turn.
const ACCEPTS: usize = 64;

/// Connections of those who have not proved who they are: a job may start with many hosts at once, and who is dropped dials again.
const MAX_STRANGERS: usize = 256;

/// Connections with one agent: both may dial at once, and some may be dead.
const MAX_WITH_ONE: usize = 4;

/// Frames that wait until an agent is reached. What is lost is said again.
const MAX_FIRST: usize = 1024;

/// How long who came has to prove who it is.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// How long one address is tried. What is sent while a cable is out is lost, and TCP repeats it after a second only: a new attempt
/// finds a repaired cable sooner.
const DIAL: Duration = Duration::from_millis(500);

/// How long who answers there may take to prove who it is.
const PROOF: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
