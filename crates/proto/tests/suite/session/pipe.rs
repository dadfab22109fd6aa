//! A connection as bytes on their way: it can be cut between any two of them, and lose one direction.

use std::collections::VecDeque;

use mizzen_proto::id::BodyId;

/// The bytes towards one end.
#[derive(Default)]
pub(super) struct Pipe {
    bytes: VecDeque<u8>,
    /// What has arrived of an item that is not whole.
    begun: Vec<u8>,
    /// How much of a body is still to come.
    body: Option<(BodyId, u64)>,
    /// How many bytes may still pass before the cable is cut.
    pub(super) left: Option<u64>,
    /// How many were put in.
    pub(super) written: u64,
}

/// What arrives.
pub(super) enum Item {
    Frame(Vec<u8>),
    /// A body begins, with this many bytes to come from this one on.
    Body(BodyId, u64, u64),
    Byte(BodyId, u8),
    /// All bytes of a body came.
    BodyEnd(BodyId),
}

const FRAME: u8 = 0;
const BODY: u8 = 1;

impl Pipe {
    pub(super) fn write_frame(&mut self, frame: &[u8]) {
        let len = (frame.len() as u32).to_le_bytes();
        self.write([&[FRAME][..], &len, frame].concat());
    }

    pub(super) fn write_body(&mut self, body: BodyId, from: u64, bytes: &[u8]) {
        let words = [body.0, from, bytes.len() as u64].map(u64::to_le_bytes);
        self.write([&[BODY][..], words.as_flattened(), bytes].concat());
    }

    fn write(&mut self, bytes: Vec<u8>) {
        self.written += bytes.len() as u64;
        let pass = self
            .left
            .map_or(bytes.len(), |left| left.min(bytes.len() as u64) as usize);
        if let Some(left) = &mut self.left {
            *left -= pass as u64;
        }
        self.bytes.extend(&bytes[..pass]);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_cut(&self) -> bool {
        self.left == Some(0)
    }

    /// The rest of what is on its way, from some byte on, is lost.
    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// One byte arrives; perhaps it completes something.
    pub(super) fn read(&mut self) -> Option<Item> {
        let byte = self.bytes.pop_front()?;
        if let Some((body, left)) = &mut self.body {
            *left -= 1;
            return Some(Item::Byte(*body, byte));
        }
        self.begun.push(byte);
        let word = |at: usize| u64::from_le_bytes(self.begun[at..at + 8].try_into().unwrap());
        match (self.begun[0], self.begun.len()) {
            (FRAME, len @ 5..) => {
                let frame = u32::from_le_bytes(self.begun[1..5].try_into().unwrap());
                if len < 5 + frame as usize {
                    return None;
                }
                Some(Item::Frame(self.begun.drain(..).skip(5).collect()))
            }
            (BODY, 25) => {
                let (body, from, len) = (BodyId(word(1)), word(9), word(17));
                self.begun.clear();
                self.body = Some((body, len));
                Some(Item::Body(body, from, len))
            }
            _ => None,
        }
    }

    /// To be asked after each byte.
    pub(super) fn body_end(&mut self) -> Option<Item> {
        let (body, _) = self.body.take_if(|(_, left)| *left == 0)?;
        Some(Item::BodyEnd(body))
    }
}
