//! What two linked processes of a host tell each other over their socket. Descriptors travel beside the packet.

use crate::rank::{MailboxId, ProcessId};

/// The version of this format and of the pair segment's layout: processes of one job come from one build or two that
/// agree on it.
const VERSION: u8 = 5;
/// Bytes of the longest packet: a frame about a name, and the kind.
pub(super) const MAX_PACKET: usize = 1024;

/// Number of a sender's lane, chosen by the sender's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LaneNumber(pub(super) u64);

/// A packet.
#[derive(Debug, PartialEq)]
pub(super) enum Packet {
    /// The first packet each way, with the pair segment, the watches and the bells.
    Hello(ProcessId),
    /// A sender opened a lane, whose memory comes along.
    OpenLane {
        lane: LaneNumber,
        mailbox: MailboxId,
    },
    /// The lane is open; its receiver's line is this one of the pair segment.
    LaneOpened { lane: LaneNumber, line: u32 },
    /// There is no such mailbox, or no line free.
    LaneRefused { lane: LaneNumber, full: bool },
    /// The receiver dropped the lane.
    LaneClosed { lane: LaneNumber },
    /// The sender will not touch the lane again.
    LaneDone { lane: LaneNumber },
    /// A slab of the arena, whose memory comes along.
    Slab { number: u32, bytes: u64 },
    /// The slab is gone; what was borrowed of it may be kept.
    SlabGone { number: u32 },
    /// Others hand on our buffers to you: keep the slabs that we show you, also when we are gone.
    Handed,
    /// Please show this slab of yours to another process, to which I hand on a buffer of it.
    ShowTo { number: u32, to: ProcessId },
    /// It was shown; that process has this place in our arena. Place 0: it cannot be shown.
    Shown {
        number: u32,
        to: ProcessId,
        place: u32,
    },
    /// Please drain your lane.
    Remind,
    /// I leave the job.
    Bye,
}

impl Packet {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        match self {
            Self::Hello(process) => {
                out.extend([0, VERSION]);
                out.extend(process.to_u64().to_le_bytes());
            }
            Self::OpenLane { lane, mailbox } => {
                out.push(1);
                out.extend(lane.0.to_le_bytes());
                out.extend(mailbox.0.to_le_bytes());
            }
            Self::LaneOpened { lane, line } => {
                out.push(2);
                out.extend(lane.0.to_le_bytes());
                out.extend(line.to_le_bytes());
            }
            Self::LaneRefused { lane, full } => {
                out.push(3);
                out.extend(lane.0.to_le_bytes());
                out.push(u8::from(*full));
            }
            Self::LaneClosed { lane } => {
                out.push(4);
                out.extend(lane.0.to_le_bytes());
            }
            Self::LaneDone { lane } => {
                out.push(5);
                out.extend(lane.0.to_le_bytes());
            }
            Self::Slab { number, bytes } => {
                out.push(6);
                out.extend(number.to_le_bytes());
                out.extend(bytes.to_le_bytes());
            }
            Self::SlabGone { number } => {
                out.push(10);
                out.extend(number.to_le_bytes());
            }
            Self::Handed => out.push(11),
            Self::ShowTo { number, to } => {
                out.push(12);
                out.extend(number.to_le_bytes());
                out.extend(to.to_u64().to_le_bytes());
            }
            Self::Shown { number, to, place } => {
                out.push(13);
                out.extend(number.to_le_bytes());
                out.extend(to.to_u64().to_le_bytes());
                out.extend(place.to_le_bytes());
            }
            Self::Remind => out.push(8),
            Self::Bye => out.push(9),
        }
        out
    }

    /// The packet in `bytes`, or `None` if they are no packet.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let mut fields = Fields(rest);
        let packet = match kind {
            0 => {
                let version = fields.byte()?;
                let process = ProcessId::from_u64(fields.word()?);
                (version == VERSION).then_some(Self::Hello(process))?
            }
            1 => Self::OpenLane {
                lane: LaneNumber(fields.word()?),
                mailbox: MailboxId(fields.word()?),
            },
            2 => Self::LaneOpened {
                lane: LaneNumber(fields.word()?),
                line: fields.half()?,
            },
            3 => Self::LaneRefused {
                lane: LaneNumber(fields.word()?),
                full: fields.byte()? != 0,
            },
            4 => Self::LaneClosed {
                lane: LaneNumber(fields.word()?),
            },
            5 => Self::LaneDone {
                lane: LaneNumber(fields.word()?),
            },
            6 => Self::Slab {
                number: fields.half()?,
                bytes: fields.word()?,
            },
            8 => Self::Remind,
            9 => Self::Bye,
            10 => Self::SlabGone {
                number: fields.half()?,
            },
            11 => Self::Handed,
            12 => Self::ShowTo {
                number: fields.half()?,
                to: ProcessId::from_u64(fields.word()?),
            },
            13 => Self::Shown {
                number: fields.half()?,
                to: ProcessId::from_u64(fields.word()?),
                place: fields.half()?,
            },
            _ => return None,
        };
        fields.0.is_empty().then_some(packet)
    }
}

/// Reads a packet, and checks that one that was taken is written as it was read. For `crate::fuzzing`.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn check(bytes: &[u8]) {
    if let Some(packet) = Packet::decode(bytes) {
        assert_eq!(Packet::decode(&packet.encode()), Some(packet));
    }
}

/// Fields taken from the front of a packet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn half(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_comes_back_and_no_truncation_does() {
        let lane = LaneNumber(7);
        for packet in [
            Packet::Hello(ProcessId::from_u64(0x2_0000_0003)),
            Packet::OpenLane {
                lane,
                mailbox: MailboxId(9),
            },
            Packet::LaneOpened { lane, line: 3 },
            Packet::LaneRefused { lane, full: true },
            Packet::LaneClosed { lane },
            Packet::LaneDone { lane },
            Packet::Slab {
                number: 4,
                bytes: 1 << 22,
            },
            Packet::SlabGone { number: 4 },
            Packet::Handed,
            Packet::ShowTo {
                number: 4,
                to: ProcessId::from_u64(0x2_0000_0003),
            },
            Packet::Shown {
                number: 4,
                to: ProcessId::from_u64(0x2_0000_0003),
                place: 5,
            },
            Packet::Remind,
            Packet::Bye,
        ] {
            let bytes = packet.encode();
            assert!(bytes.len() <= MAX_PACKET);
            assert_eq!(Packet::decode(&bytes), Some(packet));
            for end in 0..bytes.len() {
                assert_eq!(Packet::decode(&bytes[..end]), None, "truncated to {end}");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(Packet::decode(&longer), None, "with a byte too many");
        }
        assert_eq!(Packet::decode(&[]), None);
        assert_eq!(Packet::decode(&[250, 1, 2]), None);
    }
}
