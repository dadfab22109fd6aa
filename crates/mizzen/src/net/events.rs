//! What the driver reports, and what becomes of it. All of this runs in the thread that holds the port.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use mizzen_driver::{Event, LossReason, Way};
use mizzen_proto::id::{BodyId, MailboxId, OfferId};
use mizzen_proto::link::{Action, Direction};
use mizzen_proto::wire::Frame;

use super::Offered;
use super::bodies::Outcome;
use super::engine::{Engine, Later, lock};
use super::link::{NetAccount, NetLink, UNREAD_MAX};
use super::pushed::Standing;
use crate::error::Departure;
use crate::mailbox::{Account, Delivery};
use crate::message::{Flags, Payload};
use crate::process::{Path, Process};
use crate::rank::ProcessId;

/// The peer broke a rule, or a message makes no sense.
struct Misbehaved;

impl Engine {
    pub(super) fn handle(
        &self,
        process: Option<&Arc<Process>>,
        later: &mut Later,
        event: Event<'_>,
    ) {
        let peer = ProcessId::from_u64(event.peer().0);
        match event {
            Event::Connected { .. } => return self.handle_connected(process, later, peer),
            Event::ConnectFailed { reason, .. } => {
                let mut failures = lock(&self.failures);
                let failed = failures.entry(peer).or_default();
                failed.count += 1;
                failed.cause = reason.to_string();
                self.met.notify_all();
                return;
            }
            _ => (),
        }
        let Some(link) = self.link(peer) else { return };
        match event {
            Event::Frame { bytes, .. } => {
                if self.handle_frame(process, later, &link, bytes).is_err() {
                    link.lock().is_condemned = true;
                    later.end.push((link, Departure::Misbehaved));
                }
            }
            Event::BodySent { body, .. } => self.body_sent(&link, BodyId(body.0)),
            Event::BodyReceived { body, .. } => self.body_received(later, &link, BodyId(body.0)),
            Event::BodyWaiting { body, .. } => self.body_waiting(later, link, BodyId(body.0)),
            Event::BodyFailed { body, way, .. } => body_failed(&link, BodyId(body.0), way),
            Event::Writable { .. } => self.mark(&link),
            Event::Lost { reason, .. } => {
                let how = match reason {
                    LossReason::Violation(_) => Departure::Misbehaved,
                    _ => Departure::ConnectionLost,
                };
                self.end(process, &link, how);
            }
            Event::Connected { .. } | Event::ConnectFailed { .. } => (),
        }
    }

    /// A link is over, and the driver done with it: everyone who depends on the peer is told.
    pub(super) fn end(&self, process: Option<&Arc<Process>>, link: &Arc<NetLink>, how: Departure) {
        {
            let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
            if links
                .get(&link.peer)
                .is_some_and(|known| Arc::ptr_eq(known, link))
            {
                links.remove(&link.peer);
            }
        }
        if let Some((gone, posted_to)) = link.end(how) {
            if let Some(process) = process {
                for mailbox in posted_to.into_iter().filter(|_| gone.is_failure()) {
                    if let Some(core) = process.mailbox(mailbox) {
                        process.tell_gone(&core, gone);
                    }
                }
                process.peer_gone(gone);
            }
        }
        self.met.notify_all();
    }

    fn handle_connected(&self, process: Option<&Arc<Process>>, later: &mut Later, peer: ProcessId) {
        let Some(process) = process
            .filter(|process| peer.rank.0 < process.size && process.peers.gone(peer).is_none())
        else {
            // We leave, or the peer is a life that is over.
            later.refuse.push(peer);
            return;
        };
        let link = Arc::new(NetLink::new(self, self.options(peer)));
        self.links
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(peer, Arc::clone(&link));
        self.mark(&link);
        process.peers.add_if_better(Path::Net(link));
        self.met.notify_all();
    }

    fn handle_frame(
        &self,
        process: Option<&Arc<Process>>,
        later: &mut Later,
        link: &Arc<NetLink>,
        bytes: &[u8],
    ) -> Result<(), Misbehaved> {
        let frame = Frame::decode(bytes).map_err(|_| Misbehaved)?;
        let mut state = link.lock();
        if state.is_condemned {
            return Ok(());
        }
        // Every answer is caused by a frame that comes here, and by nobody else: it is bounded here. What waits in the
        // protocol itself is soon moved to the outbox.
        if state.outbox.len() >= UNREAD_MAX {
            return Err(Misbehaved);
        }
        let Some(protocol) = &mut state.link else {
            return Ok(());
        };
        match protocol.handle_frame(frame).map_err(|_| Misbehaved)? {
            Action::Nothing | Action::Greeted | Action::Pong { .. } => (),
            Action::Deliver { to, message, .. } => {
                state.posted_to.insert(to);
                drop(state);
                let (flags, message) = split_flags(message)?;
                let payload = Payload::Owned(message.to_vec());
                return self.deliver(process, link, to, flags, payload, message.len() + FLAGS);
            }
            Action::Announce {
                to,
                offer,
                body_len,
                head,
                pushed,
                ..
            } => {
                state.posted_to.insert(to);
                state.announced.insert(offer, to);
                if pushed {
                    state.bodies.pushed.announce(offer, body_len);
                }
                drop(state);
                let offered =
                    |head: &[u8]| Offered::new(Arc::clone(link), offer, head, body_len, pushed);
                let (flags, head) = split_flags(head)?;
                let payload = Payload::Offered(offered(head));
                return self.deliver(process, link, to, flags, payload, head.len() + FLAGS);
            }
            Action::SendBody { offer, body } => state.bodies.ask(offer, body),
            Action::OfferDeclined { offer } => {
                state.bodies.end_offer(offer, Outcome::Declined);
                link.changed.notify_all();
            }
            Action::Retracted { offer } => {
                let to = state.announced.remove(&offer);
                drop(state);
                if let Some(process) = process {
                    retracted(process, link, to, offer);
                }
                state = link.lock();
            }
            Action::CreditArrived { .. } | Action::MailboxGone { .. } => link.changed.notify_all(),
            Action::Returned => (),
            Action::Name(name) => {
                drop(state);
                if let Some(process) = process {
                    process.handle_name(link.peer, name);
                }
                return Ok(());
            }
            Action::Left => {
                state.has_left = true;
                if !state.bodies.is_receiving() {
                    later.end.push((Arc::clone(link), Departure::Left));
                }
            }
        }
        state.transmit();
        if !state.outbox.is_empty() || state.bodies.has_asked() {
            drop(state);
            self.mark(link);
        }
        Ok(())
    }

    fn deliver(
        &self,
        process: Option<&Arc<Process>>,
        link: &Arc<NetLink>,
        to: MailboxId,
        flags: Flags,
        payload: Payload,
        bytes: usize,
    ) -> Result<(), Misbehaved> {
        // A process that leaves reads nothing more, and says so by leaving.
        let Some(process) = process else {
            return Ok(());
        };
        let refused = match process.mailbox(to) {
            Some(core) => {
                let account = NetAccount {
                    link: Arc::clone(link),
                    mailbox: to,
                    bytes: bytes as u64,
                };
                let account = Some(Account::Net(account));
                let delivery = Delivery {
                    source: link.peer,
                    flags,
                    payload,
                    lender: None,
                    account,
                };
                let refused = core.deliver(delivery).map(|delivery| delivery.payload);
                process.wake(&core);
                refused
            }
            None => Some(payload),
        };
        if let Some(payload) = refused {
            // Declines, if it was an offer.
            drop(payload);
            if link.close_mailbox(to) {
                self.mark(link);
            }
        }
        Ok(())
    }

    fn body_sent(&self, link: &Arc<NetLink>, body: BodyId) {
        let mut state = link.lock();
        let Some(protocol) = &mut state.link else {
            return;
        };
        if let Ok(offer) = protocol.handle_body_sent(body) {
            state.bodies.end_offer(offer, Outcome::Done);
        }
        // It may have been the last before a bye, or have made room for another.
        state.transmit();
        drop(state);
        link.changed.notify_all();
        self.mark(link);
    }

    /// A pushed body has come before its reader.
    fn body_waiting(&self, later: &mut Later, link: Arc<NetLink>, body: BodyId) {
        if link.lock().is_standing(body) {
            later.standing.push(Standing {
                link,
                body,
                since: Instant::now(),
            });
        } else {
            link.lock().is_condemned = true;
            later.end.push((link, Departure::Misbehaved));
        }
    }

    fn body_received(&self, later: &mut Later, link: &Arc<NetLink>, body: BodyId) {
        let mut state = link.lock();
        let Some(protocol) = &mut state.link else {
            return;
        };
        let _ = protocol.handle_body_received(body);
        if let Some(len) = state.bodies.end_body(body, Outcome::Done) {
            state.taken(len);
        }
        if state.has_left && !state.bodies.is_receiving() {
            later.end.push((Arc::clone(link), Departure::Left));
        }
        state.transmit();
        drop(state);
        link.changed.notify_all();
        self.mark(link);
    }
}

fn body_failed(link: &NetLink, body: BodyId, way: Way) {
    let mut state = link.lock();
    let Some(protocol) = &mut state.link else {
        return;
    };
    match way {
        Way::Sending => {
            if let Ok(offer) = protocol.handle_body_failed(body, Direction::Outgoing) {
                state.bodies.end_offer(offer, Outcome::Lost);
            }
        }
        Way::Receiving => {
            let _ = protocol.handle_body_failed(body, Direction::Incoming);
            state.bodies.end_body(body, Outcome::Lost);
        }
    }
    drop(state);
    link.changed.notify_all();
}

/// The poster of an offer waited long enough: if nobody took it out of its mailbox, it never was there.
fn retracted(process: &Process, link: &NetLink, to: Option<MailboxId>, offer: OfferId) {
    let Some((to, core)) = to.and_then(|to| Some((to, process.mailbox(to)?))) else {
        return;
    };
    let removed = core.remove(|delivery| {
        matches!(&delivery.payload, Payload::Offered(offered) if offered.is(link, offer))
    });
    let Some(Account::Net(account)) = removed.and_then(|delivery| delivery.account) else {
        return;
    };
    if let Some(protocol) = &mut link.lock().link {
        protocol.consumed(to, account.bytes);
    }
}

/// Bytes of the flags in front of a message.
pub(super) const FLAGS: usize = 2;

fn split_flags(message: &[u8]) -> Result<(Flags, &[u8]), Misbehaved> {
    let (flags, rest) = message.split_first_chunk::<FLAGS>().ok_or(Misbehaved)?;
    let flags = Flags(u16::from_le_bytes(*flags));
    if flags.without(Flags::ON_WIRE) != Flags::default() {
        return Err(Misbehaved);
    }
    Ok((flags.with(Flags::FOREIGN), rest))
}
