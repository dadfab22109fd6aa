//! Posting to a peer on a network.

use std::io::IoSlice;
use std::sync::Arc;

use mizzen_driver::Driver;
use mizzen_lane::Parts;
use mizzen_proto::id::{MailboxId, OfferId, StreamId};
use mizzen_proto::link::{Plan, Refused};
use mizzen_proto::wire::{BODY_MAX, Frame};

use super::bodies::Lending;
use super::engine::{Engine, driver_id};
use super::events::FLAGS;
use super::link::{Expired, NetLink, OUTBOX_MAX, State};
use super::sharing::TOGETHER;
use crate::error::{ArenaError, PostError};
use crate::memory::Purpose;
use crate::message::{Flags, Mark};
use crate::process::Process;
use crate::process::post::Until;

/// A message as it goes over a network: lent pieces are their bytes.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) flags: Flags,
    pub(crate) table: &'a [u8],
    pub(crate) pieces: &'a [&'a [u8]],
}

/// Where a message is cut into head and body.
struct Cut<'a> {
    /// The flags, little-endian.
    flags: [u8; FLAGS],
    /// The table, if it fits the head.
    head_table: &'a [u8],
    head: &'a [&'a [u8]],
    /// The table, if it does not.
    body_table: &'a [u8],
    body: &'a [&'a [u8]],
    head_len: u64,
    body_len: u64,
}

/// Leading pieces of a long message that together are at most this long go along with its announcement: what a receiver
/// wants to see before it decides where the rest shall go.
const HEAD_PIECES: usize = 4096;
/// Slices of a frame that is sent without being joined first; more pieces are joined.
const GATHERED: usize = 6;

impl<'a> Outgoing<'a> {
    /// A message of one plain piece.
    pub(crate) fn single(piece: &'a [&'a [u8]; 1], mark: Mark) -> Self {
        Self {
            flags: mark.single(),
            table: &[],
            pieces: piece,
        }
    }

    fn cut(&self, head_max: u64) -> Cut<'a> {
        let mut head_len = FLAGS;
        let fits = (FLAGS + self.table.len()) as u64 <= head_max;
        let (head_table, body_table): (&[u8], &[u8]) = if fits {
            (self.table, &[])
        } else {
            (&[], self.table)
        };
        head_len += head_table.len();
        let mut pieces = 0;
        for piece in self.pieces {
            let longer = head_len + piece.len();
            // A head that held no table would be taken for a table.
            if !fits || longer > HEAD_PIECES.min(head_max as usize) {
                break;
            }
            head_len = longer;
            pieces += 1;
        }
        let (head, body) = self.pieces.split_at(pieces);
        let body_len = body_table.len() + body.iter().map(|piece| piece.len()).sum::<usize>();
        Cut {
            flags: self.flags.0.to_le_bytes(),
            head_table,
            head,
            body_table,
            body,
            head_len: head_len as u64,
            body_len: body_len as u64,
        }
    }
}

impl<'a> Cut<'a> {
    /// The pieces of the body.
    fn each_piece(&self, take: impl FnMut(&'a [u8])) {
        let table = (!self.body_table.is_empty()).then_some(self.body_table);
        table
            .into_iter()
            .chain(self.body.iter().copied())
            .for_each(take);
    }

    fn push_head(&self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&self.flags);
        frame.extend_from_slice(self.head_table);
        self.head
            .iter()
            .for_each(|piece| frame.extend_from_slice(piece));
    }

    fn post_frame(&self, to: MailboxId, stream: StreamId) -> Vec<u8> {
        let header = post_header(to, stream);
        let len = header.len() as u64 + self.head_len + self.body_len;
        let mut frame = Vec::with_capacity(len as usize);
        frame.extend_from_slice(&header);
        self.push_head(&mut frame);
        self.each(|piece| frame.extend_from_slice(piece));
        frame
    }

    fn offer_frame(
        &self,
        to: MailboxId,
        stream: StreamId,
        offer: OfferId,
        pushed: bool,
    ) -> Vec<u8> {
        let (body_len, head): (u64, &[u8]) = (self.body_len, &[]);
        let frame = if pushed {
            Frame::Push {
                to,
                stream,
                offer,
                body_len,
                head,
            }
        } else {
            Frame::Offer {
                to,
                stream,
                offer,
                body_len,
                head,
            }
        };
        let header = frame.header();
        let mut frame = Vec::with_capacity(header.len() + self.head_len as usize);
        frame.extend_from_slice(&header);
        self.push_head(&mut frame);
        frame
    }
}

/// The bytes of the body.
impl Parts for Cut<'_> {
    fn len(&self) -> usize {
        self.body_len as usize
    }

    fn each(&self, take: impl FnMut(&[u8])) {
        self.each_piece(take);
    }
}

impl NetLink {
    /// Posts a message. Returns when its memory may be used again: a short one is copied, the body of a longer one is
    /// pushed, and that of a very long one sent when its receiver has a place for it.
    pub(crate) fn post(
        self: &Arc<Self>,
        process: &Arc<Process>,
        to: MailboxId,
        stream: StreamId,
        message: Outgoing<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        let Some(engine) = self.engine.upgrade().filter(|_| !self.is_ended()) else {
            return Err(self.peer_gone());
        };
        let cut = message.cut(engine.head_max());
        if cut.head_len + cut.body_len <= engine.eager_max() {
            self.post_eager(process, &engine, to, stream, &cut, until)
        } else {
            self.post_long(process, &engine, to, stream, &cut, until)
        }
    }

    fn post_eager(
        self: &Arc<Self>,
        process: &Arc<Process>,
        engine: &Engine,
        to: MailboxId,
        stream: StreamId,
        cut: &Cut<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        let queue = |state: &mut State, _: Plan| {
            state.outbox.push_back(cut.post_frame(to, stream));
        };
        if self.sharing.note(stream) {
            self.wait_to_pay(process, to, cut, until, queue)?;
            if self.lock().outbox.len() >= TOGETHER {
                self.push();
            } else {
                engine.linger(self);
            }
            return Ok(());
        }
        if cut.head.len() + cut.body.len() <= GATHERED {
            if let Some(mut port) = engine.try_port() {
                let mut state = self.lock();
                state.transmit();
                let is_next = state.outbox.is_empty();
                let paid = is_next.then(|| self.pay(&mut state, to, cut, false, |_, _| ()));
                drop(state);
                // Nobody else sends while we have the port, so frames queued meanwhile come after this one.
                if let Some(Some(Ok(_))) = paid {
                    if !send_now(&mut *port.driver, self, to, stream, cut) {
                        let mut state = self.lock();
                        state.outbox.push_front(cut.post_frame(to, stream));
                    }
                }
                engine.release(port, Some(process));
                if let Some(Some(paid)) = paid {
                    return paid.map(|_| ());
                }
            }
        }
        self.wait_to_pay(process, to, cut, until, queue)?;
        self.push();
        Ok(())
    }

    fn post_long(
        self: &Arc<Self>,
        process: &Arc<Process>,
        engine: &Engine,
        to: MailboxId,
        stream: StreamId,
        cut: &Cut<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        let rank = self.peer.rank;
        let offer = |lending: Lending| {
            let (mut lending, mut offered) = (Some(lending), None);
            self.wait_to_pay(process, to, cut, until, |state, plan| {
                let (offer, body) = match plan {
                    Plan::Offer(offer) => (offer, None),
                    Plan::Push(offer, body) => (offer, Some(body)),
                    // It is longer than `eager_max`.
                    Plan::Eager => return,
                };
                if let Some(lending) = lending.take() {
                    let frame = cut.offer_frame(to, stream, offer, body.is_some());
                    state.outbox.push_back(frame);
                    state.bodies.offer(offer, lending);
                    offered = Some(offer);
                    body.into_iter()
                        .for_each(|body| state.bodies.ask(offer, body));
                }
            })?;
            offered.ok_or_else(|| self.peer_gone())
        };
        if let Until::Now = until {
            // Nobody waits for the receiver, so the body must outlive this call.
            let block = process.take_block(cut.len(), Purpose::LongMessage, until);
            let mut block = block.map_err(|error| match error {
                ArenaError::AllOut { .. } => PostError::Busy { rank },
                error => PostError::Memory(error),
            })?;
            block.fill(cut);
            offer(Lending::owned(block))?;
            self.push();
            return Ok(());
        }
        let mut pieces = Vec::with_capacity(cut.body.len() + 1);
        cut.each_piece(|piece| pieces.push(piece));
        // More pieces than the driver takes are joined first.
        let joined = (pieces.len() > engine.max_parts).then(|| pieces.concat());
        if let Some(joined) = &joined {
            pieces = vec![joined];
        }
        self.send_borrowed(process, engine, &pieces, until.deadline(), offer)
    }

    /// Pays for a message, waiting for the receiver to return credits; then `queue` is called with the state locked.
    fn wait_to_pay(
        self: &Arc<Self>,
        process: &Arc<Process>,
        to: MailboxId,
        cut: &Cut<'_>,
        until: Until,
        mut queue: impl FnMut(&mut State, Plan),
    ) -> Result<Plan, PostError> {
        let rank = self.peer.rank;
        // What is pushed cannot be taken back, so who will not wait for long does not push.
        let may_push = self.can_push && !matches!(until, Until::Deadline(_));
        if let Some(paid) = self.pay(&mut self.lock(), to, cut, may_push, &mut queue) {
            return paid;
        }
        if let Until::Now = until {
            process.poll_networks();
            let paid = self.pay(&mut self.lock(), to, cut, may_push, &mut queue);
            return paid.unwrap_or(Err(PostError::Busy { rank }));
        }
        let paid = self.wait(process, until.deadline(), |state| {
            self.pay(state, to, cut, may_push, &mut queue)
        });
        match paid {
            Ok(paid) => paid,
            Err(Expired) => Err(PostError::TimedOut { rank }),
        }
    }

    /// Pays for a message, if that is possible now. `None`: there are no credits.
    fn pay(
        &self,
        state: &mut State,
        to: MailboxId,
        cut: &Cut<'_>,
        may_push: bool,
        queue: impl FnOnce(&mut State, Plan),
    ) -> Option<Result<Plan, PostError>> {
        let rank = self.peer.rank;
        // The link's own frames come before what is posted now.
        state.transmit();
        let Some(link) = &mut state.link else {
            return Some(Err(self.peer_gone()));
        };
        // The network is slower than we are, and the mailboxes together grant more than it holds.
        if state.outbox.len() >= OUTBOX_MAX {
            return None;
        }
        let planned = if may_push {
            link.post_or_push(to, cut.head_len, cut.body_len)
        } else {
            link.post(to, cut.head_len, cut.body_len)
        };
        match planned {
            Ok(plan) => {
                queue(state, plan);
                Some(Ok(plan))
            }
            Err(Refused::NoCredit | Refused::TooManyOffers) => None,
            Err(Refused::Gone) => Some(Err(PostError::Closed { rank })),
            Err(Refused::Leaving) => Some(Err(PostError::PeerGone(state.gone(self)))),
            Err(Refused::HeadTooLong { len, .. } | Refused::BodyTooLong { len }) => {
                Some(Err(PostError::Memory(ArenaError::TooLong {
                    bytes: len as usize,
                    limit: BODY_MAX as usize,
                })))
            }
        }
    }
}

/// Sends a short message from where it lies. `false` if the driver has no room, or no link any more.
fn send_now(
    driver: &mut dyn Driver,
    link: &NetLink,
    to: MailboxId,
    stream: StreamId,
    cut: &Cut<'_>,
) -> bool {
    let header = post_header(to, stream);
    let mut slices = [IoSlice::new(&[]); GATHERED + 4];
    slices[0] = IoSlice::new(&header);
    slices[1] = IoSlice::new(&cut.flags);
    slices[2] = IoSlice::new(cut.head_table);
    // If the table is here, the head has no pieces.
    slices[3] = IoSlice::new(cut.body_table);
    let mut used = 4;
    for piece in cut.head.iter().chain(cut.body) {
        slices[used] = IoSlice::new(piece);
        used += 1;
    }
    driver
        .send_frame(driver_id(link.peer), &slices[..used])
        .is_ok()
}

fn post_header(to: MailboxId, stream: StreamId) -> mizzen_proto::wire::HeaderBytes {
    let message = &[];
    Frame::Post {
        to,
        stream,
        message,
    }
    .header()
}
