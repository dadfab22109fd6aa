//! Messages of one piece, packed from the user's memory and unpacked into it, as one piece of several would be.

use mizzen::{Mailbox, Message};

use super::outlet::Outlet;
use crate::bench::buffers::Buffers;
use crate::bench::carrier::Carrier;

pub(crate) struct Packed<O> {
    outlet: O,
    inbox: Mailbox,
    buffers: Buffers,
}

impl<O> Packed<O> {
    pub(crate) fn new(outlet: O, inbox: Mailbox, buffers: Buffers) -> Self {
        Self {
            outlet,
            inbox,
            buffers,
        }
    }
}

impl<O: Outlet> Carrier for Packed<O> {
    #[inline]
    fn send(&mut self) -> anyhow::Result<()> {
        let mut message = Message::new();
        message.pack_cheaper(self.buffers.outgoing());
        Ok(self.outlet.post(&mut message)?)
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<()> {
        let mut incoming = self.inbox.retrieve()?;
        incoming.unpack_cheaper(self.buffers.incoming())?;
        Ok(incoming.finish()?)
    }

    fn mark(&mut self, mark: u64) {
        self.buffers.mark(mark);
    }

    fn marked(&self) -> u64 {
        self.buffers.marked()
    }
}
