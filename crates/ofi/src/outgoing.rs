//! The sending half of a link: numbering, credits, and what the provider did not take yet.
//!
//! A message that holds part of a frame takes one credit of the receiver's window, which comes back when the
//! receiver's caller has had the message. Control messages take none: their number is bounded by that of bodies.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use crate::endpoint::{Address, Posted};
use crate::message::{Header, Kind, MAX_FRAGMENTS, MAX_PAYLOAD};
use crate::pool::BufferId;
use crate::port::{MAX_INJECT, Port};

#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Our own number for the link, by which the port knows whose a message was.
    owner: usize,
    to: Remote,
    serial: u32,
    /// Credits used and credits returned, in all.
    sent: u16,
    returned: u16,
    /// Copied, but not taken by the provider; bounded by credits and bodies.
    outbox: VecDeque<(BufferId, usize)>,
    /// Messages that the provider has yet to let go of.
    in_flight: usize,
    wants_room: bool,
}

/// The other end, as it said hello.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote {
    pub(crate) address: Address,
    pub(crate) key: u64,
    pub(crate) slot: u32,
    pub(crate) window: u16,
}

/// No credits for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Outgoing {
    pub(crate) fn new(owner: usize, to: Remote) -> Self {
        Self {
            owner,
            to,
            serial: 0,
            sent: 0,
            returned: 0,
            outbox: VecDeque::new(),
            in_flight: 0,
            wants_room: false,
        }
    }

    /// Sends a frame of `len` bytes if there are credits for all of it; `taken` goes along.
    pub(crate) fn send_frame(
        &mut self,
        port: &mut Port,
        taken: u16,
        frame: &[IoSlice<'_>],
        len: usize,
    ) -> Result<io::Result<()>, Full> {
        let messages = len.div_ceil(MAX_PAYLOAD).max(1);
        if self.room() < messages {
            self.wants_room = true;
            return Err(Full);
        }
        self.sent = self.sent.wrapping_add(messages as u16);
        if messages == 1 {
            return Ok(self.post(port, self.header(Kind::Frame, taken, len), frame, len));
        }
        Ok(self.send_pieces(port, taken, frame, len))
    }

    /// Sends a control message.
    pub(crate) fn say(
        &mut self,
        port: &mut Port,
        taken: u16,
        kind: Kind,
        payload: &[u8],
    ) -> io::Result<()> {
        let header = self.header(kind, taken, payload.len());
        self.post(port, header, &[IoSlice::new(payload)], payload.len())
    }

    /// Offers the provider what it did not take.
    pub(crate) fn flush(&mut self, port: &mut Port) -> io::Result<()> {
        while let Some(&(buffer, len)) = self.outbox.front() {
            match port.send(self.to.address, buffer, len, self.owner)? {
                Posted::Yes => self.outbox.pop_front(),
                Posted::Again => return Ok(()),
            };
            self.in_flight += 1;
        }
        Ok(())
    }

    /// Whether something waits for [`flush`](Self::flush).
    pub(crate) fn is_stuck(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The provider has let go of a message.
    pub(crate) fn handle_sent(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The other end says how many credits it has returned in all; says whether a caller waits for them.
    pub(crate) fn handle_taken(&mut self, taken: u16) -> Result<bool, &'static str> {
        let used = self.sent.wrapping_sub(self.returned);
        if taken.wrapping_sub(self.returned) > used {
            return Err("more was taken than was sent");
        }
        self.returned = taken;
        Ok(self.wants_room && self.room() >= MAX_FRAGMENTS)
    }

    /// Whether to report that there is room: once after a refusal, and only if it is still true.
    pub(crate) fn confirm_room(&mut self) -> bool {
        let is_true = self.wants_room && self.room() >= MAX_FRAGMENTS;
        self.wants_room = self.wants_room && !is_true;
        is_true
    }

    /// Gives up what was not sent; says how many messages the provider still has.
    pub(crate) fn close(&mut self, port: &mut Port) -> usize {
        self.outbox
            .drain(..)
            .for_each(|(buffer, _)| port.discard(buffer));
        self.in_flight
    }

    /// How many messages the provider still has.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(crate) fn address(&self) -> Address {
        self.to.address
    }

    fn room(&self) -> usize {
        usize::from(
            self.to
                .window
                .saturating_sub(self.sent.wrapping_sub(self.returned)),
        )
    }

    fn header(&self, kind: Kind, taken: u16, len: usize) -> Header {
        Header {
            key: self.to.key,
            slot: self.to.slot,
            serial: 0,
            kind,
            taken,
            len: u32::try_from(len).expect("shorter than the longest frame"),
        }
    }

    /// Cuts a frame into messages.
    fn send_pieces(
        &mut self,
        port: &mut Port,
        taken: u16,
        frame: &[IoSlice<'_>],
        len: usize,
    ) -> io::Result<()> {
        let mut joined = Vec::with_capacity(len);
        frame
            .iter()
            .for_each(|slice| joined.extend_from_slice(slice));
        for (number, piece) in joined.chunks(MAX_PAYLOAD).enumerate() {
            let header = match number {
                0 => self.header(Kind::Frame, taken, len),
                _ => self.header(Kind::More, taken, piece.len()),
            };
            self.post(port, header, &[IoSlice::new(piece)], piece.len())?;
        }
        Ok(())
    }

    /// Numbers a message and sends it, behind those that wait.
    fn post(
        &mut self,
        port: &mut Port,
        mut header: Header,
        payload: &[IoSlice<'_>],
        len: usize,
    ) -> io::Result<()> {
        header.serial = self.serial;
        self.serial = self.serial.wrapping_add(1);
        let header = header.encode();
        let total = header.len() + len;
        if self.outbox.is_empty() && total <= port.max_inject() {
            let mut message = [0; MAX_INJECT];
            let mut end = header.len();
            message[..end].copy_from_slice(&header);
            for slice in payload {
                message[end..end + slice.len()].copy_from_slice(slice);
                end += slice.len();
            }
            if port.inject(self.to.address, &message[..end])? == Posted::Yes {
                return Ok(());
            }
        }
        let filled = port.fill(&header, payload)?;
        self.outbox.push_back(filled);
        self.flush(port)
    }
}
