//! A message on its way to a network: a head, which travels with its announcement, and a body.

use mizzen_lane::Parts;
use mizzen_proto::id::{MailboxId, OfferId, StreamId};
use mizzen_proto::wire::{Frame, HeaderBytes, POST_HEADER};

use super::id::FLAGS;
use crate::message::Outgoing;

/// Where a message is cut into head and body.
pub(super) struct Cut<'a> {
    /// The flags, little-endian.
    pub(super) flags: [u8; FLAGS],
    /// The table, if it fits the head.
    pub(super) head_table: &'a [u8],
    pub(super) head: &'a [&'a [u8]],
    /// The table, if it does not.
    pub(super) body_table: &'a [u8],
    pub(super) body: &'a [&'a [u8]],
    pub(super) head_len: u64,
    pub(super) body_len: u64,
}

/// Leading pieces of a long message that together are at most this long go along with its announcement: what a receiver
/// wants to see before it decides where the rest shall go.
const HEAD_PIECES: usize = 4096;

impl<'a> Cut<'a> {
    /// The bytes of the flags.
    pub(super) const FLAGS: usize = FLAGS;

    pub(super) fn of(message: Outgoing<'a>, head_max: u64) -> Self {
        let mut head_len = FLAGS;
        let fits = (FLAGS + message.table.len()) as u64 <= head_max;
        let (head_table, body_table): (&[u8], &[u8]) = if fits {
            (message.table, &[])
        } else {
            (&[], message.table)
        };
        head_len += head_table.len();
        let mut pieces = 0;
        for piece in message.pieces {
            let longer = head_len + piece.len();
            // A head that held no table would be taken for a table.
            if !fits || longer > HEAD_PIECES.min(head_max as usize) {
                break;
            }
            head_len = longer;
            pieces += 1;
        }
        let (head, body) = message.pieces.split_at(pieces);
        let body_len = body_table.len() + body.iter().map(|piece| piece.len()).sum::<usize>();
        Cut {
            flags: message.flags.0.to_le_bytes(),
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
    pub(super) fn each_piece(&self, take: impl FnMut(&'a [u8])) {
        let table = (!self.body_table.is_empty()).then_some(self.body_table);
        table
            .into_iter()
            .chain(self.body.iter().copied())
            .for_each(take);
    }

    /// The same of bytes that were cut before.
    pub(super) fn of_bytes(
        flags: [u8; FLAGS],
        head: &'a [&'a [u8]; 1],
        body: &'a [&'a [u8]; 1],
    ) -> Self {
        Cut {
            flags,
            head_table: &[],
            head,
            body_table: &[],
            body,
            head_len: (FLAGS + head[0].len()) as u64,
            body_len: body[0].len() as u64,
        }
    }

    /// A copy of the head, without the flags.
    pub(super) fn copy_head(&self) -> Vec<u8> {
        let mut head = Vec::with_capacity(self.head_len as usize);
        self.push_head(&mut head);
        head.split_off(FLAGS)
    }

    /// A copy of the body.
    pub(super) fn copy_body(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.body_len as usize);
        self.each_piece(|piece| body.extend_from_slice(piece));
        body
    }

    fn push_head(&self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&self.flags);
        frame.extend_from_slice(self.head_table);
        self.head
            .iter()
            .for_each(|piece| frame.extend_from_slice(piece));
    }

    /// The length of [`post_frame`](Self::post_frame).
    pub(super) fn post_len(&self) -> usize {
        POST_HEADER + (self.head_len + self.body_len) as usize
    }

    pub(super) fn post_frame(&self, to: MailboxId, stream: StreamId) -> Vec<u8> {
        self.post_frame_in(Vec::new(), to, stream)
    }

    /// The same in memory that is there.
    pub(super) fn post_frame_in(
        &self,
        mut frame: Vec<u8>,
        to: MailboxId,
        stream: StreamId,
    ) -> Vec<u8> {
        frame.clear();
        frame.reserve_exact(self.post_len());
        frame.extend_from_slice(&post_header(to, stream));
        self.push_head(&mut frame);
        self.each(|piece| frame.extend_from_slice(piece));
        frame
    }

    pub(super) fn offer_frame(
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

pub(super) fn post_header(to: MailboxId, stream: StreamId) -> HeaderBytes {
    let message = &[];
    Frame::Post {
        to,
        stream,
        message,
    }
    .header()
}
