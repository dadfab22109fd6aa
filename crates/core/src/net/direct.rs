//! Posting without a detour: a short message goes to the driver straight from its pieces, and is copied while the network already
//! carries it, to be kept until the peer has it.

use std::io::IoSlice;
use std::sync::Arc;

use mizzen_driver::Driver;
use mizzen_proto::id::{MailboxId, StreamId};
use mizzen_proto::session::{Output, STAMP, Stamp};
use mizzen_proto::time::Time;
use mizzen_proto::wire::POST_HEADER;

use super::cut::{Cut, post_header};
use super::id::{FLAGS, driver_id};
use super::link::{Control, Hub, NetLink};
use super::session::NetSession;
use crate::error::PostError;

/// Pieces of a message that are given to the driver one by one; more are joined first.
const GATHERED: usize = 6;

impl NetLink {
    /// Posts a short message, if this thread gets the port and nothing goes before it. `None`: nothing was done.
    pub(super) fn post_now(
        self: &Arc<Self>,
        control: &dyn Control,
        hub: &dyn Hub,
        (to, stream): (MailboxId, StreamId),
        cut: &Cut<'_>,
    ) -> Option<Result<(), PostError>> {
        if cut.head.len() + cut.body.len() > GATHERED {
            return None;
        }
        let mut posted = None;
        hub.with_session(self, control, &mut |driver, session, now| {
            if session.is_ready() {
                posted = self.pay_directly(to, cut);
            }
            if let Some(Ok(())) = posted {
                if !self.send_directly(driver, session, (to, stream), cut, now) {
                    hub.mark(self);
                }
            }
        });
        posted
    }

    fn pay_directly(&self, to: MailboxId, cut: &Cut<'_>) -> Option<Result<(), PostError>> {
        let mut state = self.lock();
        state.transmit();
        if !state.outbox.is_empty() || state.is_condemned {
            return None;
        }
        let paid = self.pay(&mut state, to, cut, false, |_, _| ())?;
        Some(paid.map(|_| ()))
    }

    /// Sends what was paid for. What others queue meanwhile comes after it: they do not have the port. `false`: there is more to
    /// be done for it.
    fn send_directly(
        &self,
        driver: &mut dyn Driver,
        session: &mut NetSession,
        (to, stream): (MailboxId, StreamId),
        cut: &Cut<'_>,
        now: Time,
    ) -> bool {
        let Ok((connection, stamp)) = session.session.keep_sent(cut.post_len() as u32, now) else {
            let frame = cut.post_frame(to, stream);
            self.lock().queue_first(frame);
            return false;
        };
        let is_sent = self.transmit_directly(driver, &stamp, (to, stream), cut);
        let frame = session.spare(cut.post_len());
        session.keep_bytes(cut.post_frame_in(frame, to, stream));
        if !is_sent {
            session.held = Some(Output::Transmit { connection, stamp });
        }
        is_sent
    }

    /// `false` if the driver has no room, or is about to say why not.
    fn transmit_directly(
        &self,
        driver: &mut dyn Driver,
        stamp: &Stamp,
        (to, stream): (MailboxId, StreamId),
        cut: &Cut<'_>,
    ) -> bool {
        let mut before = [0; STAMP + POST_HEADER + FLAGS];
        before[..STAMP].copy_from_slice(&stamp.to_bytes());
        before[STAMP..STAMP + POST_HEADER].copy_from_slice(&post_header(to, stream));
        before[STAMP + POST_HEADER..].copy_from_slice(&cut.flags);
        let mut slices = [IoSlice::new(&[]); GATHERED + 2];
        slices[0] = IoSlice::new(&before);
        // One of the two is empty; if it is the body's, the head has no pieces.
        let table = match cut.head_table.is_empty() {
            true => cut.body_table,
            false => cut.head_table,
        };
        slices[1] = IoSlice::new(table);
        let mut used = 2;
        for piece in cut.head.iter().chain(cut.body) {
            slices[used] = IoSlice::new(piece);
            used += 1;
        }
        driver
            .send_frame(driver_id(self.peer), &slices[..used])
            .is_ok()
    }
}
