//! Who gets a link: our dials, the strangers that dial us, and both at once.
//!
//! ```text
//! dial:      Connecting --answered--> Calling --good hello--> link
//!                 \--a proxy answered--> Asking --connected--> Calling
//!                 \--refused, late, bad hello--> next address, or the parked one, or ConnectFailed
//! stranger:  Accepted --good hello--> link, or Parked, or closed
//!                 \--late, bad hello, too many--> closed
//! ```
//!
//! When two processes dial each other, the dial of the lower id wins. The higher end drops its own dial
//! when the other's arrives. The lower end parks the other's: if its own dial fails after all, the
//! parked one becomes the link. So no order of arrival makes two links, or none.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mizzen_driver::{ConnectFailure, Event, LossReason, PeerId};

use crate::connection::Connection;
use crate::dial::Dial;
use crate::driver::{Peer, TcpDriver, Who};
use crate::handshake::{Greeting, Heard, Hello, MAX_STRANGERS, Stage};
use crate::listener::{self, Accepted};
use crate::poller::Ready;
use crate::slots::Key;
use crate::through::Answer;

impl TcpDriver {
    pub(crate) fn dial(&mut self, peer: PeerId, addresses: Vec<SocketAddr>) {
        let serial = self.next_serial();
        let dial = Dial {
            addresses: addresses.into(),
            serial,
            attempt: None,
            trying: None,
            parked: None,
            failure: ConnectFailure::Unreachable(std::io::ErrorKind::AddrNotAvailable),
        };
        self.peers.insert(peer, Peer::Dialling(dial));
        self.try_next_address(peer);
    }

    /// Gives up a dial, and what is parked behind it.
    pub(crate) fn drop_dial(&mut self, dial: &Dial) {
        [dial.attempt, dial.parked]
            .into_iter()
            .flatten()
            .for_each(|key| drop(self.remove_greeting(key)));
    }

    /// Takes strangers in, a bounded number at a time.
    pub(crate) fn accept_strangers(&mut self) -> std::io::Result<()> {
        for _ in 0..ACCEPT_TURN {
            match listener::accept(&self.listener, self.far)? {
                Accepted::Connection(socket) => self.admit_stranger(socket),
                Accepted::Nobody => {
                    self.has_callers = false;
                    return Ok(());
                }
                Accepted::NoDescriptor => {
                    if !self.drop_oldest_stranger() {
                        // Nothing of ours to give up: come back when somebody else may have closed something.
                        self.has_callers = false;
                        self.accept_again = Some(Instant::now() + DESCRIPTOR_PATIENCE);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the greetings whose time is over.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.accept_again.is_some_and(|at| at <= now) {
            self.accept_again = None;
            self.has_callers = true;
        }
        while let Some(&(deadline, key)) = self.strangers.first() {
            if deadline > now {
                break;
            }
            self.remove_greeting(key);
        }
        while let Some(&(deadline, key)) = self.attempts.first() {
            if deadline > now {
                break;
            }
            self.fail_attempt(key, ConnectFailure::TimedOut);
        }
    }

    /// When something is to be done if nothing happens before.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let strangers = self.strangers.first().map(|&(deadline, _)| deadline);
        let attempts = self.attempts.first().map(|&(deadline, _)| deadline);
        let knock = self.knocks.next();
        [strangers, attempts, self.accept_again, self.pulse_at, knock]
            .into_iter()
            .flatten()
            .min()
    }

    /// Goes on with a greeting about which the network said something.
    pub(crate) fn handle_greeting(&mut self, key: Key, ready: Ready) {
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        match greeting.stage {
            Stage::Connecting { peer } => {
                if ready.writable {
                    self.handle_answered(key, peer);
                }
            }
            Stage::Asking { peer } => self.handle_proxy(key, peer),
            Stage::Calling { peer } => self.handle_answer(key, peer),
            Stage::Accepted => self.handle_stranger(key),
            Stage::Parked { hello } => {
                // Nothing may follow its hello before our answer, so this can only be the end.
                if ready.hung_up {
                    self.remove_greeting(key);
                    if let Some(Peer::Dialling(dial)) = self.peers.get_mut(&hello.from) {
                        dial.parked = dial.parked.filter(|&parked| parked != key);
                    }
                }
            }
        }
    }

    /// The network answered our dial: say hello, or ask the proxy for whom we want.
    fn handle_answered(&mut self, key: Key, peer: PeerId) {
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        if let Some(kind) = listener::failure(&greeting.socket) {
            return self.fail_attempt(key, ConnectFailure::Unreachable(kind));
        }
        let Some(through) = &self.through else {
            return self.call(key, peer);
        };
        let Some(Peer::Dialling(dial)) = self.peers.get(&peer) else {
            return;
        };
        let Some((address, until)) = dial.trying else {
            return;
        };
        let asked = greeting.ask(&through.request(&address.to_string()));
        self.advance_dial(key, peer, asked, until, Stage::Asking { peer });
    }

    /// The proxy said something.
    fn handle_proxy(&mut self, key: Key, peer: PeerId) {
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        match greeting.hear_proxy() {
            Ok(Answer::NotAll) => {}
            Ok(Answer::Connected) => self.call(key, peer),
            Ok(Answer::Refused { .. } | Answer::Nonsense) => {
                self.fail_attempt(key, ConnectFailure::Rejected);
            }
            Err(failure) => self.fail_attempt(key, failure),
        }
    }

    /// Who was dialled is at the other end, or so it is said: say hello.
    fn call(&mut self, key: Key, peer: PeerId) {
        let Some(Peer::Dialling(dial)) = self.peers.get(&peer) else {
            return;
        };
        let hello = Hello {
            from: self.me,
            to: peer,
            serial: dial.serial,
        };
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        let until = dial.trying.map_or(greeting.deadline, |(_, until)| until);
        let called = greeting.call(&self.security, peer, hello);
        self.advance_dial(key, peer, called, until, Stage::Calling { peer });
    }

    /// Somebody is there, who may take as long as the address may.
    fn advance_dial(
        &mut self,
        key: Key,
        peer: PeerId,
        said: Result<(), ConnectFailure>,
        until: Instant,
        next: Stage,
    ) {
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        match said {
            Ok(()) => {
                greeting.stage = next;
                self.attempts.remove(&(greeting.deadline, key));
                greeting.deadline = until;
                self.attempts.insert((greeting.deadline, key));
                match next {
                    Stage::Asking { .. } => self.handle_proxy(key, peer),
                    _ => self.handle_answer(key, peer),
                }
            }
            // An edge can come while the connection is still being made.
            Err(ConnectFailure::Unreachable(
                std::io::ErrorKind::NotConnected | std::io::ErrorKind::WouldBlock,
            )) if matches!(greeting.stage, Stage::Connecting { .. }) => {}
            Err(failure) => self.fail_attempt(key, failure),
        }
    }

    /// The peer that we dialled said something.
    fn handle_answer(&mut self, key: Key, peer: PeerId) {
        let me = self.me;
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        let heard = match greeting.listen(&self.security) {
            Heard::NotAll => return,
            Heard::Nothing => None,
            Heard::All(hello) => Some(hello),
        };
        match heard.filter(|hello| hello.from == peer && hello.to == me) {
            None => self.fail_attempt(key, ConnectFailure::Rejected),
            Some(hello) => {
                let parked = match self.peers.remove(&peer) {
                    Some(Peer::Dialling(dial)) => dial.parked,
                    _ => None,
                };
                self.open(key, hello, true);
                if let Some(parked) = parked {
                    // Overtaken, unless the peer has given up the link meanwhile and dialled again.
                    self.decide_parked(parked);
                }
            }
        }
    }

    /// Somebody who dialled us said something.
    fn handle_stranger(&mut self, key: Key) {
        let me = self.me;
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        let heard = match greeting.listen(&self.security) {
            Heard::NotAll => return,
            Heard::Nothing => None,
            Heard::All(hello) => Some(hello),
        };
        match heard.filter(|hello| hello.to == me && hello.from != me) {
            None => drop(self.remove_greeting(key)),
            Some(hello) => self.decide(key, hello),
        }
    }

    /// Whether a peer that said a good hello gets a link.
    fn decide(&mut self, key: Key, hello: Hello) {
        match self.peers.get_mut(&hello.from) {
            Some(Peer::Dialling(dial)) if self.me < hello.from => {
                let replaced = dial.parked.replace(key);
                if let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) {
                    greeting.stage = Stage::Parked { hello };
                    self.strangers.remove(&(greeting.deadline, key));
                }
                if let Some(replaced) = replaced {
                    self.remove_greeting(replaced);
                }
            }
            // The other's dial wins; ours is dropped when the answer is out, and goes on if it is not.
            Some(Peer::Dialling(_)) => self.welcome(key, hello),
            Some(&mut Peer::Linked(old)) => {
                let known = self.connections.get_mut(old).and_then(Who::serial);
                if known.is_some_and(|known| hello.serial <= known) {
                    return drop(self.remove_greeting(key));
                }
                self.lose(old, LossReason::Replaced);
                self.welcome(key, hello);
            }
            None => self.welcome(key, hello),
        }
    }

    fn decide_parked(&mut self, key: Key) {
        if let Some(Who::Greeting(Greeting {
            stage: Stage::Parked { hello },
            ..
        })) = self.connections.get_mut(key)
        {
            let hello = *hello;
            self.decide(key, hello);
        }
    }

    /// Answers a good hello, and opens the link.
    fn welcome(&mut self, key: Key, hello: Hello) {
        let answer = Hello {
            from: self.me,
            to: hello.from,
            serial: self.next_serial(),
        };
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        if greeting.answer(&self.security, answer).is_err() {
            return drop(self.remove_greeting(key));
        }
        if let Some(Peer::Dialling(dial)) = self.peers.remove(&hello.from) {
            self.drop_dial(&dial);
        }
        self.open(key, hello, false);
    }

    /// Turns a greeting into a link.
    fn open(&mut self, key: Key, hello: Hello, dialled: bool) {
        let Some(Who::Greeting(greeting)) = self.connections.get_mut(key) else {
            return;
        };
        self.strangers.remove(&(greeting.deadline, key));
        self.attempts.remove(&(greeting.deadline, key));
        let there = listener::other_end(&greeting.socket);
        let from = there.filter(|_| !dialled);
        there
            .into_iter()
            .for_each(|there| self.knocks.end(there.ip()));
        let records = self.security.records;
        self.connections.replace(key, |who| match who {
            Who::Greeting(greeting) => Who::Linked(Box::new(Connection::new(
                greeting.into_wire(records),
                hello.from,
                hello.serial,
                from,
            ))),
            linked @ Who::Linked(_) => linked,
        });
        self.peers.insert(hello.from, Peer::Linked(key));
        let peer = hello.from;
        self.events.push_back(Event::Connected { peer, dialled });
        // What came with the hello has no edge of its own.
        self.enqueue(key);
    }

    fn admit_stranger(&mut self, socket: OwnedFd) {
        if self.strangers.len() >= MAX_STRANGERS {
            self.drop_oldest_stranger();
        }
        let greeting = Greeting::accepted(socket, self.hello_patience);
        let deadline = greeting.deadline;
        let key = self.connections.insert(Who::Greeting(greeting));
        self.strangers.insert((deadline, key));
        if self.watch(key).is_err() {
            self.remove_greeting(key);
        }
    }

    fn drop_oldest_stranger(&mut self) -> bool {
        let oldest = self.strangers.first().copied();
        oldest.is_some_and(|(_, key)| self.remove_greeting(key).is_some())
    }

    /// Gives up the attempt, and goes on with the next: at the same address, if nobody has answered there and there is time.
    fn fail_attempt(&mut self, key: Key, failure: ConnectFailure) {
        let Some(greeting) = self.remove_greeting(key) else {
            return;
        };
        let (Stage::Connecting { peer } | Stage::Asking { peer } | Stage::Calling { peer }) =
            greeting.stage
        else {
            return;
        };
        if let Some(Peer::Dialling(dial)) = self.peers.get_mut(&peer) {
            let is_unanswered = matches!(greeting.stage, Stage::Connecting { .. })
                && failure == ConnectFailure::TimedOut;
            dial.attempt = None;
            dial.failure = failure;
            let has_time = |&(_, until): &(_, Instant)| is_unanswered && Instant::now() < until;
            dial.trying = dial.trying.filter(has_time);
            self.try_next_address(peer);
        }
    }

    fn try_next_address(&mut self, peer: PeerId) {
        while let Some(Peer::Dialling(dial)) = self.peers.get_mut(&peer) {
            let now = Instant::now();
            let next = dial.trying.take().or_else(|| {
                let address = dial.addresses.pop_front()?;
                // Where there are others to try, one that does not answer at once is not waited for.
                let hurry = if dial.addresses.is_empty() { 1 } else { 4 };
                Some((address, now + self.dial_patience / hurry))
            });
            let Some((address, until)) = next else {
                return self.fail_dial(peer);
            };
            let at = self.through.as_ref().map_or(address, |through| through.at);
            match listener::dial(at, self.far) {
                Err(error) => dial.failure = ConnectFailure::Unreachable(error.kind()),
                Ok(socket) => {
                    dial.trying = next;
                    let patience = until.saturating_duration_since(now).min(UNANSWERED);
                    let greeting = Greeting::dialled(socket, peer, patience);
                    let deadline = greeting.deadline;
                    let key = self.connections.insert(Who::Greeting(greeting));
                    dial.attempt = Some(key);
                    self.attempts.insert((deadline, key));
                    match self.watch(key) {
                        Ok(()) => return,
                        Err(error) => {
                            self.remove_greeting(key);
                            if let Some(Peer::Dialling(dial)) = self.peers.get_mut(&peer) {
                                dial.trying = None;
                                dial.failure = ConnectFailure::Unreachable(error.kind());
                            }
                        }
                    }
                }
            }
        }
    }

    /// No address is left: the parked dial of the peer takes over, if there is one.
    fn fail_dial(&mut self, peer: PeerId) {
        let Some(Peer::Dialling(dial)) = self.peers.remove(&peer) else {
            return;
        };
        if let Some(parked) = dial.parked {
            self.decide_parked(parked);
        }
        if !self.peers.contains_key(&peer) {
            self.events.push_back(Event::ConnectFailed {
                peer,
                reason: dial.failure,
            });
        }
    }

    fn remove_greeting(&mut self, key: Key) -> Option<Greeting> {
        match self.connections.get_mut(key) {
            Some(Who::Greeting(_)) => {}
            _ => return None,
        }
        let Some(Who::Greeting(greeting)) = self.connections.remove(key) else {
            return None;
        };
        self.strangers.remove(&(greeting.deadline, key));
        self.attempts.remove(&(greeting.deadline, key));
        Some(greeting)
    }
}

/// How soon an address that does not answer is dialled anew. What is sent while a cable is out is lost, and the system repeats it after
/// one second, then two: too late for a cable that is back.
const UNANSWERED: Duration = Duration::from_millis(400);
/// Strangers taken in by one poll.
const ACCEPT_TURN: usize = 64;
/// How long to wait for a descriptor when there is none.
const DESCRIPTOR_PATIENCE: Duration = Duration::from_millis(100);
