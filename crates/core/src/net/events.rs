//! What the driver reports, and what becomes of it. All of this runs in the thread that holds the port.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use mizzen_driver::{Event, LossReason, Way};
use mizzen_proto::id::{BodyId, MailboxId, OfferId};
use mizzen_proto::link::{Action, Direction};
use mizzen_proto::wire::Frame;

use super::engine::{Engine, Later};
use super::id::FLAGS;
use super::lending::NetOffered;
use super::link::{Control, Hub, NetLink, StalledBody, UNREAD_MAX};
use super::outcome::Outcome;
use crate::delivery::{Account, Delivery};
use crate::error::{Departure, Gone};
use crate::lock::lock;
use crate::message::{Flags, Payload};
use crate::rank::ProcessId;

/// The peer broke a rule, or a message makes no sense.
struct Misbehaved;

/// How long after a connection broke the launcher has to say that the peer died. It takes milliseconds: through the agent of
/// its host, the launcher and ours.
const DEATH_PATIENCE: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) fn handle(
        &self,
        process: Option<&dyn Control>,
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
            Event::BodyFailed { body, way, .. } => self.body_failed(&link, BodyId(body.0), way),
            Event::Writable { .. } => self.mark(&link),
            Event::Lost { reason, .. } => {
                let how = match reason {
                    LossReason::Violation(_) => Departure::Misbehaved,
                    _ => Departure::ConnectionLost,
                };
                self.handle_lost(process, later, link, how);
            }
            Event::Connected { .. } | Event::ConnectFailed { .. } => (),
        }
    }

    /// The driver is done with a link. A connection breaks a moment before the launcher says that the peer died, and of
    /// what: that is waited for.
    fn handle_lost(
        &self,
        process: Option<&dyn Control>,
        later: &mut Later,
        link: Arc<NetLink>,
        how: Departure,
    ) {
        let has_launcher = process.is_some_and(|process| process.has_launcher());
        let mut state = link.lock();
        let is_unclear = how == Departure::ConnectionLost && !state.has_left && !state.is_condemned;
        if is_unclear && has_launcher {
            state.is_condemned = true;
            drop(state);
            later.lost.push((link, Instant::now() + DEATH_PATIENCE));
            // Our thread sees to it, whoever heard of it.
            self.ring();
            return;
        }
        drop(state);
        self.end(process, &link, Gone::new(link.peer, how));
    }

    /// Ends links whose peers are known to have died by now, and those that nobody said anything about in time.
    pub(super) fn end_lost(&self, process: Option<&dyn Control>, later: &mut Later) {
        let now = Instant::now();
        later.lost.retain(|(link, deadline)| {
            let known = process.and_then(|process| process.gone(link.peer));
            let is_late = process.is_none() || now >= *deadline;
            let lost = || is_late.then_some(Gone::new(link.peer, Departure::ConnectionLost));
            let Some(gone) = known.or_else(lost) else {
                return true;
            };
            self.end(process, link, gone);
            false
        });
    }

    /// A link is over, and the driver done with it: everyone who depends on the peer is told.
    pub(super) fn end(&self, process: Option<&dyn Control>, link: &Arc<NetLink>, gone: Gone) {
        {
            let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
            if links
                .get(&link.peer)
                .is_some_and(|known| Arc::ptr_eq(known, link))
            {
                links.remove(&link.peer);
            }
        }
        if let Some((gone, posted_to)) = link.end(gone) {
            if let Some(process) = process {
                process.link_ended(gone, posted_to.into_iter().collect());
            }
        }
        self.met.notify_all();
    }

    fn handle_connected(&self, process: Option<&dyn Control>, later: &mut Later, peer: ProcessId) {
        let Some(process) = process.filter(|process| process.is_welcome(peer)) else {
            // We leave, or the peer is a life that is over.
            later.refuse.push(peer);
            return;
        };
        let link = NetLink::new(
            self.weak.clone(),
            self.limits().can_push,
            self.options(peer),
        );
        self.links
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(peer, Arc::clone(&link));
        self.mark(&link);
        process.connected(link);
        self.met.notify_all();
    }

    fn handle_frame(
        &self,
        process: Option<&dyn Control>,
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
                state.counts.messages_received += 1;
                state.counts.bytes_received += message.len() as u64;
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
                state.counts.messages_received += 1;
                state.counts.bytes_received += head.len() as u64 + body_len;
                state.posted_to.insert(to);
                state.announced.insert(offer, to);
                if pushed {
                    state.bodies.pushed.announce(offer, body_len);
                }
                drop(state);
                let offered =
                    |head: &[u8]| NetOffered::new(Arc::clone(link), offer, head, body_len, pushed);
                let (flags, head) = split_flags(head)?;
                let payload = Payload::Offered(Box::new(offered(head)));
                return self.deliver(process, link, to, flags, payload, head.len() + FLAGS);
            }
            Action::SendBody { offer, body } => state.bodies.ask(offer, body),
            Action::SendPart {
                offer,
                body,
                from,
                len,
            } => state.bodies.ask_part(offer, body, from, len),
            Action::OfferDeclined { offer } => {
                state.bodies.end_offer(offer, Outcome::Declined);
                link.move_on(&mut state);
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
            Action::CreditArrived { .. } | Action::MailboxGone { .. } => {
                link.move_on(&mut state);
                link.changed.notify_all();
            }
            Action::Returned => link.move_on(&mut state),
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
        process: Option<&dyn Control>,
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
        let mailboxes = process.mailboxes();
        let refused = match mailboxes.get(to) {
            Some(core) => {
                let account = Some(Account::Net {
                    link: Arc::clone(link) as _,
                    mailbox: to,
                    bytes: bytes as u64,
                });
                let delivery = Delivery {
                    source: link.peer,
                    flags,
                    payload,
                    lender: None,
                    account,
                };
                let refused = core.deliver(delivery);
                let refused = refused.map(|refused| refused.into_delivery().payload);
                mailboxes.wake(&core);
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
            let is_last = protocol.has_ended(offer);
            let bodies = &mut state.bodies;
            bodies.end_sent(offer, body, Outcome::Done, is_last);
            link.move_on(&mut state);
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
            later.stalled.push(StalledBody {
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

    fn body_failed(&self, link: &Arc<NetLink>, body: BodyId, way: Way) {
        let mut state = link.lock();
        let Some(protocol) = &mut state.link else {
            return;
        };
        match way {
            Way::Sending => {
                if let Ok(offer) = protocol.handle_body_failed(body, Direction::Outgoing) {
                    let is_last = protocol.has_ended(offer);
                    let bodies = &mut state.bodies;
                    bodies.end_sent(offer, body, Outcome::Lost, is_last);
                }
            }
            Way::Receiving => {
                let _ = protocol.handle_body_failed(body, Direction::Incoming);
                state.bodies.end_body(body, Outcome::Lost);
            }
        }
        // It may have made room for another.
        state.transmit();
        drop(state);
        link.changed.notify_all();
        self.mark(link);
    }
}

/// The poster of an offer waited long enough: if nobody took it out of its mailbox, it never was there.
fn retracted(control: &dyn Control, link: &NetLink, to: Option<MailboxId>, offer: OfferId) {
    let Some((to, core)) = to.and_then(|to| Some((to, control.mailboxes().get(to)?))) else {
        return;
    };
    let removed = core.remove(|delivery| {
        let at = core::ptr::from_ref(link).addr();
        matches!(&delivery.payload, Payload::Offered(offered) if offered.is(at, offer))
    });
    let Some(Account::Net { bytes, .. }) = removed.and_then(|delivery| delivery.account) else {
        return;
    };
    if let Some(protocol) = &mut link.lock().link {
        protocol.consumed(to, bytes);
    }
}

fn split_flags(message: &[u8]) -> Result<(Flags, &[u8]), Misbehaved> {
    let (flags, rest) = message.split_first_chunk::<FLAGS>().ok_or(Misbehaved)?;
    let flags = Flags(u16::from_le_bytes(*flags));
    if flags.without(Flags::ON_WIRE) != Flags::default() {
        return Err(Misbehaved);
    }
    Ok((flags.with(Flags::FOREIGN), rest))
}
