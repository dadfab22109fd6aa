//! Lent buffers: handed over, not copied.
//!
//! Buffers are made before the clock starts: what is timed is that they change hands and are given back, not how long the
//! program takes to fill and to read them.

use anyhow::Context;
use mizzen::{Deck, Lent as Buffer, Mailbox};

use super::outlet::Outlet;
use crate::bench::carrier::Carrier;

/// The most buffers made ahead, and the most bytes of them.
const AHEAD: usize = 16;
const AHEAD_BYTES: usize = 64 << 20;

pub(crate) struct Lent<O> {
    deck: Deck,
    outlet: O,
    inbox: Mailbox,
    size: usize,
    ahead: Vec<Buffer<u8>>,
    header: u64,
}

impl<O> Lent<O> {
    pub(crate) fn new(deck: Deck, outlet: O, inbox: Mailbox, size: usize) -> Self {
        Self {
            deck,
            outlet,
            inbox,
            size,
            ahead: Vec::new(),
            header: 0,
        }
    }
}

impl<O: Outlet> Carrier for Lent<O> {
    fn prepare(&mut self, messages: u64) -> anyhow::Result<u64> {
        let most = (AHEAD_BYTES / self.size).clamp(1, AHEAD);
        let wanted = usize::try_from(messages).unwrap_or(most).min(most);
        while self.ahead.len() < wanted {
            self.ahead.push(self.deck.lend_unzeroed(self.size)?);
        }
        Ok(wanted as u64)
    }

    #[inline]
    fn send(&mut self) -> anyhow::Result<()> {
        let buffer = self.ahead.pop().context("no buffer was made ahead")?;
        Ok(self.outlet.post_lent(self.header, buffer)?)
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<()> {
        let (header, _given_back) = self.inbox.receive_lent::<u64, u8>()?;
        self.header = header;
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.header = mark;
    }

    fn marked(&self) -> u64 {
        self.header
    }
}
