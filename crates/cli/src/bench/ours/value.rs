//! Short messages as plain values: the fastest way through the public interface.

use mizzen::Mailbox;

use super::outlet::Outlet;
use crate::bench::carrier::Carrier;

/// A message of one value of `WORDS` words.
pub(crate) struct Value<O, const WORDS: usize> {
    outlet: O,
    inbox: Mailbox,
    separate: bool,
    outgoing: [u64; WORDS],
    incoming: [u64; WORDS],
}

impl<O, const WORDS: usize> Value<O, WORDS> {
    pub(crate) fn new(outlet: O, inbox: Mailbox, separate: bool) -> Self {
        Self {
            outlet,
            inbox,
            separate,
            outgoing: [0; WORDS],
            incoming: [0; WORDS],
        }
    }
}

impl<O: Outlet, const WORDS: usize> Carrier for Value<O, WORDS> {
    #[inline]
    fn send(&mut self) -> anyhow::Result<()> {
        Ok(self.outlet.send(&self.outgoing)?)
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<()> {
        self.incoming = self.inbox.receive()?;
        if !self.separate {
            self.outgoing = self.incoming;
        }
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.outgoing[0] = mark;
    }

    fn marked(&self) -> u64 {
        self.incoming[0]
    }
}
