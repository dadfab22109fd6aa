//! The endpoint for messages, with its buffers.
//!
//! This file has unsafe code because it lends buffers to the provider; [`Pool`] knows which.
#![allow(unsafe_code)]

use std::io::{self, IoSlice};
use std::rc::Rc;

use crate::domain::Domain;
use crate::endpoint::{Address, Completion, Endpoint, Posted};
use crate::pool::{BufferId, Pool};

/// Where messages of all links come and go.
#[derive(Debug)]
pub(crate) struct Port {
    // Before the pools: closing it ends every use of their buffers.
    endpoint: Endpoint,
    receiving: Pool,
    sending: Pool,
    /// For each sending buffer, whose message it holds.
    owners: Vec<usize>,
    /// Buffers that the provider has yet to take for receiving.
    unposted: Vec<BufferId>,
    posted: usize,
    ended: Vec<Completion>,
}

/// Something that happened at the port.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arrival {
    /// A message of this length is in this buffer, to be released by [`Port::release`].
    Message { buffer: BufferId, len: usize },
    /// Something arrived that could not be received.
    Garbage,
    /// The message of this owner is on its way.
    Sent { owner: usize },
    /// The message of this owner is lost.
    Failed { owner: usize, kind: io::ErrorKind },
}

impl Port {
    pub(crate) fn open(domain: &Rc<Domain>) -> io::Result<Self> {
        let mut port = Self {
            endpoint: Endpoint::open(domain)?,
            receiving: Pool::new(),
            sending: Pool::new(),
            owners: Vec::new(),
            unposted: Vec::new(),
            posted: 0,
            ended: Vec::new(),
        };
        port.expect(Pool::SLAB)?;
        Ok(port)
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Has room for this many messages, as far as there is memory for them.
    pub(crate) fn expect(&mut self, messages: usize) -> io::Result<()> {
        while self.posted < messages.min(MAX_RECEIVING) {
            let buffer = self.receiving.take(&self.endpoint)?;
            self.posted += 1;
            self.post(buffer);
        }
        Ok(())
    }

    /// Sends a message that is copied at once, if it is short enough and the provider takes it.
    pub(crate) fn inject(&self, to: Address, message: &[u8]) -> io::Result<Posted> {
        self.endpoint.inject(to, message)
    }

    /// The longest message for [`inject`](Self::inject).
    pub(crate) fn max_inject(&self) -> usize {
        self.endpoint.domain().limits().inject.min(MAX_INJECT)
    }

    /// Copies a message into a buffer: the header and the slices, joined.
    pub(crate) fn fill(
        &mut self,
        header: &[u8],
        payload: &[IoSlice<'_>],
    ) -> io::Result<(BufferId, usize)> {
        let buffer = self.sending.take(&self.endpoint)?;
        let bytes = self.sending.bytes_mut(buffer);
        let mut end = header.len();
        bytes[..end].copy_from_slice(header);
        for slice in payload {
            bytes[end..end + slice.len()].copy_from_slice(slice);
            end += slice.len();
        }
        Ok((buffer, end))
    }

    /// Sends what was filled. Not taken, it is still the caller's.
    pub(crate) fn send(
        &mut self,
        to: Address,
        buffer: BufferId,
        len: usize,
        owner: usize,
    ) -> io::Result<Posted> {
        let (start, descriptor) = self.sending.lend(buffer);
        let context = context_of(buffer, Way::Out);
        // SAFETY: the buffer is lent until the completion with its context takes it back, and the pool is
        // dropped after the endpoint.
        let outcome = unsafe { self.endpoint.send(to, (start, len), descriptor, context) };
        match outcome {
            Ok(Posted::Yes) => {
                if self.owners.len() <= buffer.index() {
                    self.owners.resize(buffer.index() + 1, 0);
                }
                self.owners[buffer.index()] = owner;
            }
            Ok(Posted::Again) | Err(_) => {
                self.sending.take_back(buffer);
            }
        }
        outcome
    }

    /// Gives up a message that was filled and not sent.
    pub(crate) fn discard(&mut self, buffer: BufferId) {
        self.sending.release(buffer);
    }

    /// The bytes of a message that arrived.
    pub(crate) fn bytes(&self, buffer: BufferId, len: usize) -> &[u8] {
        self.receiving.bytes(buffer, len)
    }

    /// Lets the buffer of a message that arrived receive another.
    pub(crate) fn release(&mut self, buffer: BufferId) {
        self.post(buffer);
    }

    /// Makes progress, and adds what happened to `arrivals`.
    pub(crate) fn poll(&mut self, arrivals: &mut Vec<Arrival>) -> io::Result<()> {
        if !self.unposted.is_empty() {
            for buffer in std::mem::take(&mut self.unposted) {
                self.post(buffer);
            }
        }
        let mut ended = std::mem::take(&mut self.ended);
        let polled = self.endpoint.poll(&mut ended);
        arrivals.extend(
            ended
                .drain(..)
                .filter_map(|completion| self.handle(completion)),
        );
        self.ended = ended;
        polled
    }

    fn handle(&mut self, completion: Completion) -> Option<Arrival> {
        let (buffer, way) = buffer_of(completion.context)?;
        match way {
            Way::In if self.receiving.take_back(buffer) => {
                if completion.failure.is_some() || completion.len > Pool::LEN {
                    self.post(buffer);
                    return Some(Arrival::Garbage);
                }
                let len = completion.len;
                Some(Arrival::Message { buffer, len })
            }
            Way::Out if self.sending.take_back(buffer) => {
                self.sending.release(buffer);
                let owner = self.owners[buffer.index()];
                Some(match completion.failure {
                    None => Arrival::Sent { owner },
                    Some(kind) => Arrival::Failed { owner, kind },
                })
            }
            // Nothing of ours: not something that a provider should say.
            Way::In | Way::Out => None,
        }
    }

    /// Offers a buffer to the provider, now or at the next poll.
    fn post(&mut self, buffer: BufferId) {
        let (start, descriptor) = self.receiving.lend(buffer);
        let context = context_of(buffer, Way::In);
        // SAFETY: as in `send`; a lent buffer is not looked at.
        let posted = unsafe {
            self.endpoint
                .receive((start, Pool::LEN), descriptor, context)
        };
        if !matches!(posted, Ok(Posted::Yes)) {
            self.receiving.take_back(buffer);
            self.unposted.push(buffer);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

/// What a completion is recognised by; never 0, which is what providers say when they do not know.
fn context_of(buffer: BufferId, way: Way) -> usize {
    (buffer.index() + 1) << 1 | usize::from(way == Way::Out)
}

fn buffer_of(context: usize) -> Option<(BufferId, Way)> {
    let index = (context >> 1).checked_sub(1)?;
    let way = if context & 1 == 1 { Way::Out } else { Way::In };
    Some((BufferId::from_index(index), way))
}

/// Buffers for receiving, 16 MiB in all: beyond, messages wait with the provider.
const MAX_RECEIVING: usize = 1024;
/// The longest message that is put together on the stack.
pub(crate) const MAX_INJECT: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_names_its_buffer_and_is_never_zero() {
        for way in [Way::In, Way::Out] {
            for index in [0, 1, 1000] {
                let buffer = BufferId::from_index(index);
                let context = context_of(buffer, way);
                assert_ne!(context, 0);
                assert_eq!(buffer_of(context), Some((buffer, way)));
            }
        }
        assert_eq!(buffer_of(0), None);
    }
}
