//! The kinds of frames and their numbers (docs/wire.md §2.2).

/// Byte 0 of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// See [`Frame::Hello`](crate::wire::Frame::Hello).
    Hello = 0x01,
    /// See [`Frame::Bye`](crate::wire::Frame::Bye).
    Bye = 0x02,
    /// See [`Frame::Ping`](crate::wire::Frame::Ping).
    Ping = 0x03,
    /// See [`Frame::Pong`](crate::wire::Frame::Pong).
    Pong = 0x04,
    /// See [`Frame::Post`](crate::wire::Frame::Post).
    Post = 0x10,
    /// See [`Frame::Offer`](crate::wire::Frame::Offer).
    Offer = 0x11,
    /// See [`Frame::Accept`](crate::wire::Frame::Accept).
    Accept = 0x12,
    /// See [`Frame::Decline`](crate::wire::Frame::Decline).
    Decline = 0x13,
    /// See [`Frame::Retract`](crate::wire::Frame::Retract).
    Retract = 0x14,
    /// See [`Frame::Credit`](crate::wire::Frame::Credit).
    Credit = 0x15,
    /// See [`Frame::Gone`](crate::wire::Frame::Gone).
    Gone = 0x16,
    /// See [`Frame::Push`](crate::wire::Frame::Push).
    Push = 0x17,
    /// See [`Frame::Returned`](crate::wire::Frame::Returned).
    Returned = 0x18,
    /// See [`Frame::Pull`](crate::wire::Frame::Pull).
    Pull = 0x19,
}

impl FrameKind {
    /// Every kind of this version.
    pub const ALL: [FrameKind; 14] = [
        FrameKind::Hello,
        FrameKind::Bye,
        FrameKind::Ping,
        FrameKind::Pong,
        FrameKind::Post,
        FrameKind::Offer,
        FrameKind::Accept,
        FrameKind::Decline,
        FrameKind::Retract,
        FrameKind::Credit,
        FrameKind::Gone,
        FrameKind::Push,
        FrameKind::Returned,
        FrameKind::Pull,
    ];

    /// The kind with this number.
    pub const fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            0x01 => FrameKind::Hello,
            0x02 => FrameKind::Bye,
            0x03 => FrameKind::Ping,
            0x04 => FrameKind::Pong,
            0x10 => FrameKind::Post,
            0x11 => FrameKind::Offer,
            0x12 => FrameKind::Accept,
            0x13 => FrameKind::Decline,
            0x14 => FrameKind::Retract,
            0x15 => FrameKind::Credit,
            0x16 => FrameKind::Gone,
            0x17 => FrameKind::Push,
            0x18 => FrameKind::Returned,
            0x19 => FrameKind::Pull,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_the_number_it_is_decoded_from() {
        let known: Vec<_> = (0..=u8::MAX).filter_map(FrameKind::from_u8).collect();
        assert_eq!(known, FrameKind::ALL);
        for kind in FrameKind::ALL {
            assert_eq!(FrameKind::from_u8(kind as u8), Some(kind));
        }
    }
}
