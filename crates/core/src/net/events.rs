//! What the driver reports, and what becomes of it. All of this runs in the thread that holds the port.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use mizzen_driver::{Event, LossReason, Way};
use mizzen_proto::id::{BodyId, MailboxId, OfferId};
use mizzen_proto::link::{Action, Link};
use mizzen_proto::membership::Admission;
use mizzen_proto::session::{Greeting, Received, Refusal};
use mizzen_proto::wire::Frame;

use super::catching::Catch;
use super::engine::{Engine, Later};
use super::id::FLAGS;
use super::lending::NetOffered;
use super::link::{Control, Hub, NetLink, StalledBody, UNREAD_MAX};
use super::outcome::Outcome;
use super::session::{Meeting, NetSession};
use super::timers::now;
use crate::delivery::{Account, Delivery};
use crate::error::{Departure, Gone};
use crate::lock::lock;
use crate::message::{Flags, Payload};
use crate::rank::ProcessId;

/// The peer broke a rule, or a message makes no sense.
struct Misbehaved;

impl Engine {
    pub(super) fn handle(
        &self,
        process: Option<&dyn Control>,
        later: &mut Later,
        event: Event<'_>,
        catch: Option<&mut Catch<'_>>,
    ) {
        let peer = ProcessId::from_u64(event.peer().0);
        match event {
            Event::Connected { dialled, .. } => {
                return self.handle_connected(process, later, peer, dialled);
            }
            Event::ConnectFailed { reason, .. } => {
                self.handle_failed(later, peer);
                let mut failures = lock(&self.failures);
                let failed = failures.entry(peer).or_default();
                failed.count += 1;
                failed.cause = reason.to_string();
                self.met.notify_all();
                return;
            }
            _ => (),
        }
        let Some(link) = self.find(later, peer) else {
            return;
        };
        match event {
            Event::Frame { bytes, .. } => {
                let handled = self.handle_bytes(process, later, &link, bytes, catch);
                if handled.is_err() {
                    link.lock().is_condemned = true;
                    later.end.push((Arc::clone(&link), Departure::Misbehaved));
                }
                // Where the next most likely comes from.
                later.hot = Some(link);
            }
            Event::BodySent { body, .. } => self.body_sent(&link, BodyId(body.0)),
            Event::BodyReceived { body, .. } => self.body_received(later, &link, BodyId(body.0)),
            Event::BodyWaiting { body, .. } => self.body_waiting(later, link, BodyId(body.0)),
            Event::BodyFailed {
                body,
                way,
                in_place,
                ..
            } => self.body_cut(later, &link, BodyId(body.0), way, in_place),
            Event::Writable { .. } => self.mark(&link),
            Event::Lost { reason, .. } => {
                let has_misbehaved = matches!(reason, LossReason::Violation(_));
                self.handle_lost(process, later, &link, has_misbehaved);
            }
            Event::Connected { .. } | Event::ConnectFailed { .. } => (),
        }
    }

    /// The link to a peer. It is often that of the frame before.
    fn find(&self, later: &mut Later, peer: ProcessId) -> Option<Arc<NetLink>> {
        match later.hot.take() {
            Some(hot) if hot.peer == peer && !hot.is_ended() => Some(hot),
            _ => self.link(peer),
        }
    }

    /// A connection is no more. That ends nothing, unless it is known that the peer is gone, or nobody would ever say so.
    fn handle_lost(
        &self,
        process: Option<&dyn Control>,
        later: &mut Later,
        link: &Arc<NetLink>,
        has_misbehaved: bool,
    ) {
        let ended = {
            let mut session = link.session();
            let ended = session.disconnect(now());
            self.arm(later, link, &mut session);
            ended
        };
        for body in ended {
            link.end_taken(body);
        }
        let known = process.and_then(|process| process.gone(link.peer));
        let (has_left, is_condemned) = {
            let state = link.lock();
            (state.has_left, state.is_condemned)
        };
        let gone = match known {
            _ if has_misbehaved => Gone::new(link.peer, Departure::Misbehaved),
            Some(gone) => gone,
            // It ends by our own decision.
            None if is_condemned => return,
            None if has_left => Gone::new(link.peer, Departure::Left),
            None if !self.has_launcher(process) => Gone::new(link.peer, Departure::ConnectionLost),
            None => return self.mark(link),
        };
        self.end(process, link, gone);
    }

    /// Whether somebody says which processes died. A process that leaves is no longer asked.
    fn has_launcher(&self, process: Option<&dyn Control>) -> bool {
        if let Some(process) = process {
            let has_launcher = process.has_launcher();
            self.has_launcher.store(has_launcher, Ordering::Relaxed);
        }
        self.has_launcher.load(Ordering::Relaxed)
    }

    /// An attempt to connect found nobody.
    fn handle_failed(&self, later: &mut Later, peer: ProcessId) {
        let Some(link) = self.link(peer) else { return };
        let mut session = link.session();
        if let Some(number) = session.take_attempt() {
            session.session.handle_dial_failed(number, now());
            self.arm(later, &link, &mut session);
        }
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
        let received_through = link.session().session.received_through();
        if let Some((gone, posted_to)) = link.end(gone) {
            lock(&self.ended).insert(link.peer, received_through);
            self.note_untaken(gone, link.lock().untaken);
            if let Some(process) = process {
                process.link_ended(gone, posted_to.into_iter().collect());
            }
        }
        self.met.notify_all();
    }

    fn handle_connected(
        &self,
        process: Option<&dyn Control>,
        later: &mut Later,
        peer: ProcessId,
        dialled: bool,
    ) {
        let link = self.link(peer);
        if link.is_none() {
            if let Err(refusal) = self.admit(process, peer) {
                // Only who was dialled refuses.
                later.refuse.push((peer, refusal.filter(|_| !dialled)));
                return;
            }
        }
        let is_new = link.is_none();
        let link = link.unwrap_or_else(|| self.begin(peer));
        {
            let mut session = link.session();
            session.connect(dialled, now());
            self.arm(later, &link, &mut session);
        }
        self.mark(&link);
        if let (true, Some(process)) = (is_new, process) {
            self.has_launcher(Some(process));
            process.connected(self.channel, link);
        }
        self.met.notify_all();
    }

    /// Whether a process with which there is no link may have one; if not, what it is told.
    fn admit(&self, process: Option<&dyn Control>, peer: ProcessId) -> Result<(), Option<Refusal>> {
        let ended = lock(&self.ended).get(&peer).copied();
        // Perhaps it has not heard that our session is over, or that we leave.
        let is_over = |received_through| Refusal::Ended { received_through };
        let Some(process) = process else {
            return Err(Some(is_over(ended.unwrap_or(0))));
        };
        match process.admission(peer) {
            Some(Admission::Admit) if process.gone(peer).is_none() => Ok(()),
            Some(Admission::Admit) => Err(ended.map(is_over)),
            Some(Admission::Ended) => {
                let received_through = ended.unwrap_or(0);
                Err(Some(Refusal::Fenced { received_through }))
            }
            // It dials again, and by then the end of the life before it was told.
            Some(Admission::NotYet) | None => Err(None),
        }
    }

    /// A link to a peer that just connected for the first time.
    fn begin(&self, peer: ProcessId) -> Arc<NetLink> {
        let at = lock(&self.failures)
            .get(&peer)
            .and_then(|failures| failures.at.clone());
        let session = NetSession::new(Meeting {
            job: self.job,
            me: self.me,
            peer,
            at,
            form: self.form,
        });
        let link = NetLink::new(
            self.weak.clone(),
            self.limits().can_push,
            self.options(peer),
            session,
        );
        self.links
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(peer, Arc::clone(&link));
        link
    }

    /// What came over a connection: a greeting, or a frame with its stamp. Never inlined: `ci/instructions` counts what it takes.
    #[inline(never)]
    fn handle_bytes(
        &self,
        process: Option<&dyn Control>,
        later: &mut Later,
        link: &Arc<NetLink>,
        bytes: &[u8],
        catch: Option<&mut Catch<'_>>,
    ) -> Result<(), Misbehaved> {
        let now = now();
        let mut session = link.session();
        let Some(connection) = session.connection() else {
            return Ok(());
        };
        let handled = if session.await_greeting().is_some() {
            let greeting = Greeting::decode(bytes).map_err(|_| Misbehaved)?;
            session.session.handle_greeting(connection, &greeting, now);
            Ok(())
        } else {
            let received = session.session.handle_frame(connection, bytes, now);
            match received.map_err(|_| Misbehaved)? {
                Received::Nothing => Ok(()),
                Received::Frame { frame, .. } => {
                    let frame = Frame::decode(frame).map_err(|_| Misbehaved)?;
                    self.handle_frame(process, link, &mut session, frame, catch)
                }
                Received::Bye => self.handle_frame(process, link, &mut session, Frame::Bye, None),
            }
        };
        if let Some(through) = session.session.poll_free() {
            if session.free(through, |frame| later.spares.put(frame)) {
                self.mark(link);
            }
        }
        if session.session.has_output() {
            self.mark(link);
        } else if !session.is_watched(now) {
            self.arm(later, link, &mut session);
        }
        handled
    }

    fn handle_frame(
        &self,
        process: Option<&dyn Control>,
        link: &Arc<NetLink>,
        session: &mut NetSession,
        frame: Frame<'_>,
        catch: Option<&mut Catch<'_>>,
    ) -> Result<(), Misbehaved> {
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
                let (flags, message) = split_flags(message, session.unlike())?;
                let bytes = message.len() + FLAGS;
                let is_caught =
                    catch.is_some_and(|catch| catch.take(link.peer, to, flags, message));
                if !is_caught {
                    drop(state);
                    let payload = Payload::Owned(message.to_vec());
                    return self.deliver(process, link, to, flags, payload, bytes);
                }
                if let Some(protocol) = &mut state.link {
                    protocol.consumed(to, bytes as u64);
                }
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
                    let body = Link::pushed_body(offer);
                    let expected = session.session.expect_body(body, body_len, now());
                    expected.map_err(|_| Misbehaved)?;
                }
                drop(state);
                let offered =
                    |head: &[u8]| NetOffered::new(Arc::clone(link), offer, head, body_len, pushed);
                let (flags, head) = split_flags(head, session.unlike())?;
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
                link.changed.tell();
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
                link.changed.tell();
            }
            Action::Returned => link.move_on(&mut state),
            // The session says bye, too, and is over when both have heard it.
            Action::Left => state.has_left = true,
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

    /// The driver is done with a body. It has ended when the peer has it.
    fn body_sent(&self, link: &Arc<NetLink>, body: BodyId) {
        if link.session().handle_sent(body, true) {
            link.end_taken(body);
            self.mark(link);
        }
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
        let mut session = link.session();
        let Some(connection) = session.connection() else {
            return;
        };
        let is_taken = session
            .session
            .handle_body_received(connection, body, now());
        self.end_received(link, &mut session, body, is_taken);
        self.arm(later, link, &mut session);
    }

    /// A connection is about to be lost, and with it what a body lacks; the next goes on from there.
    fn body_cut(
        &self,
        later: &mut Later,
        link: &Arc<NetLink>,
        body: BodyId,
        way: Way,
        in_place: usize,
    ) {
        let mut session = link.session();
        match way {
            Way::Sending => {
                if session.handle_sent(body, false) {
                    link.end_taken(body);
                }
            }
            Way::Receiving => {
                if session.handle_body_cut(body, in_place as u64) {
                    self.end_received(link, &mut session, body, true);
                }
            }
        }
        self.arm(later, link, &mut session);
    }

    /// A body is all there. One that comes after this process has said bye is not taken: the peer was told so.
    fn end_received(
        &self,
        link: &Arc<NetLink>,
        session: &mut NetSession,
        body: BodyId,
        is_taken: bool,
    ) {
        session.end_receiving(body);
        let mut state = link.lock();
        let Some(protocol) = &mut state.link else {
            return;
        };
        let _ = protocol.handle_body_received(body);
        let outcome = match is_taken {
            true => Outcome::Done,
            false => Outcome::Lost,
        };
        if let Some(len) = state.bodies.end_body(body, outcome) {
            state.taken(len);
        }
        state.transmit();
        drop(state);
        link.changed.tell();
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

/// What a message says about itself, with what is known of the memory it comes from; and the rest of it.
fn split_flags(message: &[u8], unlike: Flags) -> Result<(Flags, &[u8]), Misbehaved> {
    let (flags, rest) = message.split_first_chunk::<FLAGS>().ok_or(Misbehaved)?;
    let flags = Flags(u16::from_le_bytes(*flags));
    if flags.without(Flags::ON_WIRE) != Flags::default() {
        return Err(Misbehaved);
    }
    Ok((flags.with(Flags::FOREIGN).with(unlike), rest))
}
