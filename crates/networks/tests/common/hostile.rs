//! A gateway that does not hand on what it got: a driver around that of one of its networks.
//!
//! This file has unsafe code because it implements the lending functions of [`Driver`], which gateways do not use.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use mizzen_driver::{
    BodyId, Caps, ConnectError, Driver, DriverError, Event, Locator, Part, PartMut, PeerId, Refused,
};

/// What is sent instead of a frame.
pub(crate) type Deed = Arc<dyn Fn(PeerId, &[u8]) -> Vec<Vec<u8>> + Send + Sync>;

pub(crate) struct Hostile {
    honest: Box<dyn Driver>,
    deed: Deed,
    /// What there was no room for.
    waiting: VecDeque<(PeerId, Vec<u8>)>,
}

impl Hostile {
    pub(crate) fn new(honest: Box<dyn Driver>, deed: Deed) -> Self {
        Self {
            honest,
            deed,
            waiting: VecDeque::new(),
        }
    }

    /// Whether all that waited was sent. To who is gone nothing is.
    fn flush(&mut self) -> bool {
        while let Some((peer, bytes)) = self.waiting.pop_front() {
            let sent = self.honest.send_frame(peer, &[IoSlice::new(&bytes)]);
            if matches!(sent, Err(Refused::Busy { .. })) {
                self.waiting.push_front((peer, bytes));
                return false;
            }
        }
        true
    }
}

impl Driver for Hostile {
    fn caps(&self) -> &Caps {
        self.honest.caps()
    }

    fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        self.honest.wakeup()
    }

    fn locator(&self) -> &Locator {
        self.honest.locator()
    }

    fn connect(&mut self, peer: PeerId, at: &Locator) -> Result<(), ConnectError> {
        self.honest.connect(peer, at)
    }

    fn disconnect(&mut self, peer: PeerId) {
        self.honest.disconnect(peer);
    }

    fn send_frame(&mut self, peer: PeerId, frame: &[IoSlice<'_>]) -> Result<(), Refused> {
        let bytes: Vec<u8> = frame
            .iter()
            .flat_map(|slice| slice.iter().copied())
            .collect();
        if !self.flush() {
            return Err(Refused::Busy { peer });
        }
        let sent = (self.deed)(peer, &bytes).into_iter();
        self.waiting.extend(sent.map(|bytes| (peer, bytes)));
        self.flush();
        Ok(())
    }

    unsafe fn send_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[Part],
    ) -> Result<(), Refused> {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { self.honest.send_body(peer, body, parts) }
    }

    unsafe fn recv_body(
        &mut self,
        peer: PeerId,
        body: BodyId,
        parts: &[PartMut],
    ) -> Result<(), Refused> {
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { self.honest.recv_body(peer, body, parts) }
    }

    fn poll(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, DriverError> {
        self.flush();
        self.honest.poll(budget, sink)
    }
}
