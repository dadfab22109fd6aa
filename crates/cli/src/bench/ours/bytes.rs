//! Messages of any length: sent from the user's memory, received into it.

use mizzen::Mailbox;

use super::outlet::Outlet;
use crate::bench::buffers::Buffers;
use crate::bench::carrier::Carrier;

pub(crate) struct Bytes<O> {
    outlet: O,
    inbox: Mailbox,
    buffers: Buffers,
}

impl<O> Bytes<O> {
    pub(crate) fn new(outlet: O, inbox: Mailbox, buffers: Buffers) -> Self {
        Self {
            outlet,
            inbox,
            buffers,
        }
    }
}

impl<O: Outlet> Carrier for Bytes<O> {
    #[inline]
    fn send(&mut self) -> anyhow::Result<()> {
        Ok(self.outlet.send(self.buffers.outgoing())?)
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<()> {
        Ok(self.inbox.receive_into(self.buffers.incoming())?)
    }

    fn mark(&mut self, mark: u64) {
        self.buffers.mark(mark);
    }

    fn marked(&self) -> u64 {
        self.buffers.marked()
    }
}
