//! Links begin and end with the bootstrap: who is there, hellos, and losses.

use std::io::{self, IoSlice};
use std::time::Instant;

use mizzen_driver::{ConnectFailure, Event, LossReason, PeerId, Refused};

use crate::driver::OfiDriver;
use crate::heard::Heard;
use crate::hello::Hello;
use crate::incoming::WINDOW;
use crate::link::{Link, Stage};
use crate::outgoing::Remote;
use crate::patience;

impl OfiDriver {
    /// Polls the bootstrap; says whether it had something to say.
    pub(crate) fn poll_bootstrap(&mut self) -> io::Result<bool> {
        let heard = &mut self.heard;
        let mut listen = |event: Event<'_>| heard.extend(Heard::from(event));
        let polled = self.bootstrap.0.poll(MAX_HEARD, &mut listen);
        polled.map_err(|error| error.cause)?;
        let has_heard = !self.heard.is_empty();
        while let Some(heard) = self.heard.pop_front() {
            self.handle_heard(heard);
        }
        Ok(has_heard)
    }

    /// Brings links up, and reports those that are.
    pub(crate) fn poll_greeting(&mut self) -> bool {
        let mut did = false;
        let mut index = 0;
        while let Some(&slot) = self.greeting.get(index) {
            let link = self.links[slot].as_deref_mut();
            let polled = link.map(|link| {
                let port = &mut self.ports[link.port];
                (link.poll_up(port), link.peer, link.dialled)
            });
            self.mark(slot);
            match polled {
                Some((Ok(true), peer, dialled)) => {
                    self.greeting.swap_remove(index);
                    self.asked.remove(&peer);
                    self.reports
                        .push_back(Event::Connected { peer, dialled }.into());
                    did = true;
                    continue;
                }
                Some((Err(cause), ..)) => self.fail(slot, cause.kind()),
                _ => {}
            }
            index += 1;
        }
        did
    }

    /// Gives up on those whose links do not come up.
    pub(crate) fn expire(&mut self) {
        if self.greeting.is_empty() {
            return;
        }
        let now = Instant::now();
        for slot in self.greeting.clone() {
            let late = self.link(slot).filter(|link| link.until <= now);
            if let Some((peer, is_open)) = late.map(|link| (link.peer, link.is_open())) {
                if is_open {
                    self.patience.grow(peer);
                }
                self.leave(peer);
                self.give_up(slot, ConnectFailure::TimedOut);
            }
        }
    }

    /// Ends what the bootstrap has with a peer, and forgets what it said of it.
    pub(crate) fn leave(&mut self, peer: PeerId) {
        self.bootstrap.0.disconnect(peer);
        self.heard.retain(|heard| heard.peer() != peer);
    }

    fn handle_heard(&mut self, heard: Heard) {
        match heard {
            Heard::Connected(peer, dialled) => self.greet(peer, dialled),
            Heard::ConnectFailed(peer, reason) => {
                if self.asked.remove(&peer) {
                    let failed = Event::ConnectFailed { peer, reason };
                    self.reports.push_back(failed.into());
                }
            }
            Heard::Frame(peer, bytes) => self.handle_hello(peer, bytes.as_deref()),
            Heard::Writable(peer) => {
                if let Some(&slot) = self.peers.get(&peer) {
                    self.say_hello(slot);
                }
            }
            Heard::Lost(peer, reason) => self.handle_loss(peer, reason),
        }
    }

    /// The bootstrap has a link: ours begins.
    fn greet(&mut self, peer: PeerId, dialled: bool) {
        let until = Instant::now() + patience::MOST;
        let renewed = self.renew_port(peer);
        let port = self.ports.choose(peer);
        let key = self.random.next_u64();
        let link = Box::new(Link::new(peer, dialled, port, key, until));
        let slot = self.free.pop().unwrap_or_else(|| {
            self.links.push(None);
            self.links.len() - 1
        });
        self.links[slot] = Some(link);
        self.greeting.push(slot);
        // A bootstrap that keeps the contract has reported the loss of an older link.
        self.peers.insert(peer, slot);
        let room = self.ports.join(port) * usize::from(WINDOW) + ROOM_FOR_CONTROL;
        let expected = self.ports[port].expect(room);
        if let Err(cause) = renewed.and(expected) {
            self.fail(slot, cause.kind());
        }
        self.say_hello(slot);
    }

    fn say_hello(&mut self, slot: usize) {
        let Some(link) = self.links[slot].as_deref_mut() else {
            return;
        };
        let Stage::Greeting { is_said } = &mut link.stage else {
            return;
        };
        if *is_said {
            return;
        }
        let hello = Hello {
            key: link.key,
            slot: slot as u32,
            window: WINDOW,
            format: self.domain.info().addr_format(),
            provider: self.domain.info().provider(),
            name: self.ports[link.port].endpoint().name().to_vec(),
        };
        let sent = self
            .bootstrap
            .0
            .send_frame(link.peer, &[IoSlice::new(&hello.encode())]);
        match sent {
            Ok(()) => *is_said = true,
            // `Writable` or `Lost` will come.
            Err(Refused::Busy { .. } | Refused::NotConnected { .. }) => {}
            // A bootstrap whose frames are shorter than a hello cannot serve.
            Err(_) => self.fail(slot, io::ErrorKind::Unsupported),
        }
    }

    fn handle_hello(&mut self, peer: PeerId, bytes: Option<&[u8]>) {
        let Some(&slot) = self.peers.get(&peer) else {
            return;
        };
        let Some(link) = self.links[slot].as_deref_mut() else {
            return;
        };
        if !matches!(link.stage, Stage::Greeting { .. }) {
            return self.lose(slot, LossReason::Violation("a second hello"));
        }
        let info = self.domain.info();
        let is_of_ours =
            |hello: &Hello| hello.provider == info.provider() && hello.format == info.addr_format();
        let hello = bytes.and_then(Hello::decode).filter(is_of_ours);
        let endpoint = self.ports[link.port].endpoint();
        let insert = |hello: &Hello| endpoint.insert(&hello.name).ok();
        let Some((hello, address)) = hello.and_then(|hello| insert(&hello).map(|at| (hello, at)))
        else {
            self.leave(peer);
            return self.give_up(slot, ConnectFailure::Rejected);
        };
        let remote = Remote {
            address,
            key: hello.key,
            slot: hello.slot,
            window: hello.window,
        };
        link.open(slot, remote, self.patience.with(peer));
    }

    fn handle_loss(&mut self, peer: PeerId, reason: LossReason) {
        let Some(&slot) = self.peers.get(&peer) else {
            return;
        };
        if self.link(slot).is_some_and(|link| link.is_up) {
            let link = self.links[slot].as_deref();
            let had_bodies = link.is_some_and(|link| link.bodies.endpoint().is_some());
            self.end(slot, reason);
            if matches!(reason, LossReason::Silent | LossReason::Broken(_)) {
                self.patience.begin(peer);
                self.prepare_return(peer, had_bodies);
            }
        } else {
            self.give_up(
                slot,
                ConnectFailure::Unreachable(io::ErrorKind::ConnectionReset),
            );
        }
    }

    /// Ends a link that was not open; whoever asked for it is told.
    fn give_up(&mut self, slot: usize, reason: ConnectFailure) {
        let Some(peer) = self.link(slot).map(|link| link.peer) else {
            return;
        };
        self.close(slot);
        if self.asked.remove(&peer) {
            let failed = Event::ConnectFailed { peer, reason };
            self.reports.push_back(failed.into());
        }
    }

    /// Ends a link that the bootstrap still has.
    pub(crate) fn lose(&mut self, slot: usize, reason: LossReason) {
        let Some(link) = self.links.get(slot).and_then(Option::as_deref) else {
            return;
        };
        let (peer, is_up) = (link.peer, link.is_up);
        if matches!(link.stage, Stage::Gone(_)) {
            return;
        }
        self.leave(peer);
        if is_up {
            self.end(slot, reason);
        } else {
            self.give_up(slot, ConnectFailure::Rejected);
        }
    }
}

/// Events taken from the bootstrap at a time.
const MAX_HEARD: usize = 64;
/// Messages without credits that a few busy links send at once.
const ROOM_FOR_CONTROL: usize = 32;
