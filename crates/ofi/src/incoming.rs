//! The receiving half of a link: what arrived and was not yet reported.

use std::collections::VecDeque;

use mizzen_driver::BodyId;

use crate::message::{Header, Kind, MAX_BODIES, MAX_FRAME, MAX_PAYLOAD, decode_body};
use crate::pool::BufferId;
use crate::port::Port;

#[derive(Debug, Default)]
pub(crate) struct Incoming {
    serial: u32,
    has_begun: bool,
    /// Parts of frames that arrived, that were taken, and of which the sender knows, in all.
    received: u16,
    taken: u16,
    told: u16,
    /// In the order of arrival; bounded by the window and by what bodies there can be.
    inbox: VecDeque<Item>,
    partial: Option<Partial>,
}

/// Something to be reported, or checked, in its turn.
#[derive(Debug)]
pub(crate) enum Item {
    /// A frame, in the buffer that it arrived in, behind the header.
    Frame {
        buffer: BufferId,
        len: usize,
    },
    /// A frame that came in several messages.
    Joined {
        bytes: Vec<u8>,
        messages: u16,
    },
    Offer {
        body: BodyId,
        len: usize,
    },
    Complete {
        body: BodyId,
        len: usize,
    },
}

/// A frame of which more is to come.
#[derive(Debug)]
struct Partial {
    bytes: Vec<u8>,
    total: usize,
    messages: u16,
}

/// What becomes of the buffer of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Free,
}

impl Incoming {
    /// Whether a message is the next of its link.
    pub(crate) fn check_serial(&mut self, header: &Header) -> Result<(), &'static str> {
        if header.serial != self.serial {
            return Err("a message out of order");
        }
        self.serial = self.serial.wrapping_add(1);
        self.has_begun = true;
        Ok(())
    }

    /// Takes a part of a frame, or something that is looked at in its turn.
    pub(crate) fn handle(
        &mut self,
        header: &Header,
        payload: &[u8],
        buffer: BufferId,
    ) -> Result<Fate, &'static str> {
        let len = header.len as usize;
        match header.kind {
            Kind::Frame => self.handle_frame(len, payload, buffer),
            Kind::More => self.handle_more(len, payload),
            kind => {
                let (body, len) = decode_body(payload).ok_or("a body that cannot be")?;
                let item = match kind {
                    Kind::Offer => Item::Offer { body, len },
                    _ => Item::Complete { body, len },
                };
                if self.inbox.len() >= usize::from(WINDOW) + MAX_INBOX_BODIES {
                    return Err("more bodies than there can be");
                }
                self.inbox.push_back(item);
                Ok(Fate::Free)
            }
        }
    }

    pub(crate) fn next(&mut self) -> Option<Item> {
        self.inbox.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inbox.is_empty()
    }

    /// The caller had this many messages.
    pub(crate) fn take(&mut self, messages: u16) {
        self.taken = self.taken.wrapping_add(messages);
    }

    /// Whether something has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(crate) fn taken(&self) -> u16 {
        self.taken
    }

    /// What to tell the sender with the next message.
    pub(crate) fn tell(&mut self) -> u16 {
        self.told = self.taken;
        self.taken
    }

    /// Whether so much was taken that the sender is to know, though there is nothing else to say.
    pub(crate) fn owes_credits(&self) -> bool {
        self.taken.wrapping_sub(self.told) >= WINDOW / 2
    }

    /// Lets go of everything.
    pub(crate) fn clear(&mut self, port: &mut Port) {
        for item in self.inbox.drain(..) {
            if let Item::Frame { buffer, .. } = item {
                port.release(buffer);
            }
        }
        self.partial = None;
    }

    fn handle_frame(
        &mut self,
        len: usize,
        payload: &[u8],
        buffer: BufferId,
    ) -> Result<Fate, &'static str> {
        if self.partial.is_some() {
            return Err("a frame within a frame");
        }
        if len > MAX_FRAME {
            return Err("a frame longer than any");
        }
        if payload.len() != len.min(MAX_PAYLOAD) {
            return Err("a frame of another length than it says");
        }
        self.count_message()?;
        if payload.len() == len {
            self.inbox.push_back(Item::Frame { buffer, len });
            return Ok(Fate::Kept);
        }
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(payload);
        self.partial = Some(Partial {
            bytes,
            total: len,
            messages: 1,
        });
        Ok(Fate::Free)
    }

    fn handle_more(&mut self, len: usize, payload: &[u8]) -> Result<Fate, &'static str> {
        let Some(mut partial) = self.partial.take() else {
            return Err("the rest of no frame");
        };
        let rest = partial.total - partial.bytes.len();
        if payload.len() != len || len != rest.min(MAX_PAYLOAD) {
            return Err("a frame of another length than it says");
        }
        self.count_message()?;
        partial.bytes.extend_from_slice(payload);
        partial.messages += 1;
        if partial.bytes.len() < partial.total {
            self.partial = Some(partial);
            return Ok(Fate::Free);
        }
        self.inbox.push_back(Item::Joined {
            bytes: partial.bytes,
            messages: partial.messages,
        });
        Ok(Fate::Free)
    }

    fn count_message(&mut self) -> Result<(), &'static str> {
        self.received = self.received.wrapping_add(1);
        if self.received.wrapping_sub(self.taken) > WINDOW {
            return Err("more than there is room for");
        }
        Ok(())
    }
}

/// Messages of frames that a peer may have with us: four of the longest frames, and some.
pub(crate) const WINDOW: u16 = 32;
/// Offers and completions that can be under way at once.
const MAX_INBOX_BODIES: usize = 2 * MAX_BODIES;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: Kind, len: usize) -> Header {
        Header {
            key: 0,
            slot: 0,
            serial: 0,
            kind,
            taken: 0,
            len: len as u32,
        }
    }

    fn handle(
        incoming: &mut Incoming,
        kind: Kind,
        len: usize,
        payload: usize,
    ) -> Result<Fate, &'static str> {
        incoming.handle(
            &header(kind, len),
            &vec![7; payload],
            BufferId::from_index(0),
        )
    }

    #[test]
    fn a_frame_in_pieces_is_joined() {
        let mut incoming = Incoming::default();
        let len = MAX_PAYLOAD + 10;
        assert_eq!(
            handle(&mut incoming, Kind::Frame, len, MAX_PAYLOAD),
            Ok(Fate::Free)
        );
        assert!(incoming.is_empty());
        assert_eq!(handle(&mut incoming, Kind::More, 10, 10), Ok(Fate::Free));
        let Some(Item::Joined { bytes, messages: 2 }) = incoming.next() else {
            panic!("not joined");
        };
        assert_eq!(bytes.len(), len);
    }

    #[test]
    fn lengths_that_do_not_agree_are_violations() {
        for (kind, len, payload) in [
            (Kind::Frame, 10, 9),
            (Kind::Frame, 10, 11),
            (Kind::Frame, MAX_FRAME + 1, MAX_PAYLOAD),
            (Kind::Frame, u32::MAX as usize, MAX_PAYLOAD),
            (Kind::More, 10, 10),
            (Kind::Offer, 16, 15),
            (Kind::Complete, 16, 17),
        ] {
            assert!(
                handle(&mut Incoming::default(), kind, len, payload).is_err(),
                "{kind:?} {len}"
            );
        }
        let mut incoming = Incoming::default();
        handle(&mut incoming, Kind::Frame, MAX_FRAME, MAX_PAYLOAD).expect("a first piece");
        assert!(handle(&mut incoming, Kind::Frame, 1, 1).is_err());
        assert!(handle(&mut incoming, Kind::More, 1, 1).is_err());
    }

    #[test]
    fn a_peer_keeps_to_its_window() {
        let mut incoming = Incoming::default();
        for _ in 0..WINDOW {
            assert_eq!(handle(&mut incoming, Kind::Frame, 0, 0), Ok(Fate::Kept));
        }
        assert!(handle(&mut incoming, Kind::Frame, 0, 0).is_err());
    }

    #[test]
    fn a_message_out_of_order_is_a_violation() {
        let mut incoming = Incoming::default();
        let mut header = header(Kind::Credit, 0);
        assert_eq!(incoming.check_serial(&header), Ok(()));
        assert!(incoming.check_serial(&header).is_err());
        header.serial = 2;
        assert!(incoming.check_serial(&header).is_err());
        header.serial = 1;
        assert_eq!(incoming.check_serial(&header), Ok(()));
    }
}
