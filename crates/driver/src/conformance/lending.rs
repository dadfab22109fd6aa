//! Memory lent to the drivers of a fleet.
//!
//! This file has unsafe code because it lends: every buffer of a body lives in the fleet, which
//! drops its drivers first, and it is looked at only when the contract says that it is free.
#![allow(unsafe_code)]

use super::Harness;
use super::fleet::{Fleet, Seen};
use crate::{BodyId, Driver, Part, PartMut, Refused};

impl<H: Harness> Fleet<H> {
    /// Lends memory to receive a body into, in parts of these lengths.
    pub(super) fn expect(
        &mut self,
        at: usize,
        from: usize,
        body: BodyId,
        lens: &[usize],
    ) -> Result<(), Refused> {
        let peer = self.id(from);
        let mut memory: Vec<Vec<u8>> = lens
            .iter()
            .map(|&len| vec![BLANK; len + 2 * GUARD])
            .collect();
        let part = |part: &mut Vec<u8>| {
            let end = part.len() - GUARD;
            PartMut::of(&mut part[GUARD..end])
        };
        let parts: Vec<PartMut> = memory.iter_mut().map(part).collect();
        // SAFETY: the vectors go into `received` or `retired` below and are not looked at before the
        // contract frees them; their heap memory stays where it is when the vectors move.
        unsafe { self.driver(at).recv_body(peer, body, &parts)? };
        if let Some(old) = self.received.insert((at, from, body), memory) {
            self.retired.push(old);
        }
        Ok(())
    }

    /// Lends memory to send a body from, in these parts.
    pub(super) fn give(
        &mut self,
        from: usize,
        to: usize,
        body: BodyId,
        memory: Vec<Vec<u8>>,
    ) -> Result<(), Refused> {
        let peer = self.id(to);
        let parts: Vec<Part> = memory.iter().map(|part| Part::of(part)).collect();
        // SAFETY: as in `expect`; nobody writes the vectors in the meantime.
        unsafe { self.driver(from).send_body(peer, body, &parts)? };
        if let Some(old) = self.sent.insert((from, to, body), memory) {
            self.retired.push(old);
        }
        Ok(())
    }

    /// As `give`, for a body that may not have been asked for.
    pub(super) fn push(
        &mut self,
        from: usize,
        to: usize,
        body: BodyId,
        memory: Vec<Vec<u8>>,
    ) -> Result<(), Refused> {
        let peer = self.id(to);
        let parts: Vec<Part> = memory.iter().map(|part| Part::of(part)).collect();
        // SAFETY: as in `give`.
        unsafe { self.driver(from).push_body(peer, body, &parts)? };
        if let Some(old) = self.sent.insert((from, to, body), memory) {
            self.retired.push(old);
        }
        Ok(())
    }

    /// Offers a body that is longer than any memory, which must be refused.
    pub(super) fn pretend_to_give(
        &mut self,
        from: usize,
        to: usize,
        len: usize,
    ) -> Result<(), Refused> {
        let (peer, byte) = (self.id(to), [0]);
        // SAFETY: the caller expects a refusal, and then no part is touched; a driver that accepts this
        // fails its case at once and is dropped before it is polled.
        unsafe {
            self.driver(from)
                .send_body(peer, BodyId(0), &[Part::new(byte.as_ptr(), len)])
        }
    }

    /// Asks for a body that is longer than any memory, which must be refused.
    pub(super) fn pretend_to_expect(
        &mut self,
        at: usize,
        from: usize,
        len: usize,
    ) -> Result<(), Refused> {
        let (peer, mut byte) = (self.id(from), [0]);
        // SAFETY: as above.
        unsafe {
            self.driver(at)
                .recv_body(peer, BodyId(0), &[PartMut::new(byte.as_mut_ptr(), len)])
        }
    }

    /// Asks for a body and sends it, in one part.
    pub(super) fn transfer(&mut self, from: usize, to: usize, body: BodyId, bytes: Vec<u8>) {
        self.expect(to, from, body, &[bytes.len()])
            .expect("a body that the contract allows");
        self.give(from, to, body, vec![bytes])
            .expect("a body that the contract allows");
    }

    pub(super) fn has_body(&self, at: usize, from: usize, body: BodyId) -> bool {
        self.count(at, &Seen::BodyReceived(self.id(from), body)) > 0
    }

    pub(super) fn has_sent(&self, from: usize, to: usize, body: BodyId) -> bool {
        self.count(from, &Seen::BodySent(self.id(to), body)) > 0
    }

    pub(super) fn await_body(&mut self, from: usize, to: usize, body: BodyId) {
        self.until("a body arrives", |fleet| {
            fleet.has_body(to, from, body) && fleet.has_sent(from, to, body)
        });
    }

    /// The bytes of a body that arrived. Checks that nothing next to them was written.
    pub(super) fn body(&self, at: usize, from: usize, body: BodyId) -> Vec<u8> {
        assert!(
            self.has_body(at, from, body),
            "looked at {body} too early; {}",
            self.note
        );
        self.place_of(at, from, body)
    }

    /// The place of a body that arrived or failed, which the contract has freed. Checks that nothing next to it was written.
    pub(super) fn place_of(&self, at: usize, from: usize, body: BodyId) -> Vec<u8> {
        self.assert_guards(at, from, body);
        let parts = self.received[&(at, from, body)].iter();
        parts
            .flat_map(|part| &part[GUARD..part.len() - GUARD])
            .copied()
            .collect()
    }

    /// That nothing was written next to the places of a body, which the contract has freed.
    pub(super) fn assert_guards(&self, at: usize, from: usize, body: BodyId) {
        for part in &self.received[&(at, from, body)] {
            let guards = part[..GUARD].iter().chain(&part[part.len() - GUARD..]);
            assert!(
                guards.copied().all(|byte| byte == BLANK),
                "written outside of a part; {}",
                self.note
            );
        }
    }

    /// The memory of a body to be received, which the contract has freed.
    pub(super) fn reclaim_received(
        &mut self,
        at: usize,
        from: usize,
        body: BodyId,
    ) -> &mut Vec<Vec<u8>> {
        self.received
            .get_mut(&(at, from, body))
            .expect("a body that was expected")
    }

    /// The memory of a body to be sent, which the contract has freed.
    pub(super) fn reclaim_sent(
        &mut self,
        from: usize,
        to: usize,
        body: BodyId,
    ) -> &mut Vec<Vec<u8>> {
        self.sent
            .get_mut(&(from, to, body))
            .expect("a body that was given")
    }
}

/// Bytes on either side of a place that must stay as they are.
const GUARD: usize = 32;
/// What memory holds before a body arrives.
pub(super) const BLANK: u8 = 0xa5;
