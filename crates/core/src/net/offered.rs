//! What a message from another host, whose body has yet to come, can do for who unpacks it.

use std::sync::Arc;

use mizzen_driver::PartMut;
use mizzen_proto::id::OfferId;

use super::lending::NetOffered;
use super::streaming::NetStream;
use crate::error::UnpackError;
use crate::message::{Offered, Streaming};

impl Offered for NetOffered {
    fn len(&self) -> usize {
        self.head.len() + self.body_len
    }

    fn head(&self) -> &[u8] {
        &self.head
    }

    fn max_parts(&self) -> usize {
        let hub = self.link.hub.upgrade();
        hub.map_or(1, |hub| hub.limits().max_parts)
    }

    fn receive(&mut self, parts: &mut [&mut [u8]]) -> Result<(), UnpackError> {
        self.start(parts.iter_mut().map(|part| PartMut::of(part)).collect())?;
        self.wait()
    }

    fn start_receiving(&mut self, parts: Vec<PartMut>) -> Result<(), UnpackError> {
        self.start(parts)
    }

    fn poll_received(&mut self) -> Option<Result<(), UnpackError>> {
        self.poll()
    }

    fn received(&self) -> usize {
        self.bytes_received()
    }

    fn stop_receiving(&mut self) {
        self.stop();
    }

    fn into_stream(self: Box<Self>) -> Box<dyn Streaming> {
        Box::new(NetStream::new(*self))
    }

    fn is(&self, link: usize, offer: OfferId) -> bool {
        Arc::as_ptr(&self.link).addr() == link && self.offer == offer
    }
}
