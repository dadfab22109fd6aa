//! The keys that came of a handshake, and their successors.
//!
//! Each end replaces the key that it seals with after so many packets, or when it is asked to, by itself; the bit that is sent along, the *phase*, says
//! whether that happened an odd number of times. It is not replaced before the other end has something that was sealed with it, and all that was sealed with
//! the key before, so the other end needs three at most: for a packet of another phase, its number tells whether it is of the last key or of the next.

use std::fmt;

use rustls::quic::{Keys, PacketKey, Secrets};

use crate::error::SealError;

/// Bytes by which a sealed packet is longer.
pub const SEAL: usize = 16;

/// What seals packets for the other end of a link, and opens those from there.
///
/// See the example of [`Shaking`](super::Shaking).
pub struct Seal {
    sealing: Sealing,
    opening: Opening,
}

struct Sealing {
    key: Box<dyn PacketKey>,
    next: Secrets,
    phase: bool,
    /// The first number that was sealed with this key, and how many were.
    first: Option<u64>,
    count: u64,
    most: u64,
    /// It is to be replaced as soon as it may be.
    is_old: bool,
}

struct Opening {
    last: Option<Box<dyn PacketKey>>,
    key: Box<dyn PacketKey>,
    next: Box<dyn PacketKey>,
    after: Secrets,
    phase: bool,
    /// The least number that was opened with `key`.
    first: Option<u64>,
    /// What did not open.
    refused: u64,
}

impl Seal {
    pub(super) fn new(keys: Keys, next: Secrets) -> Self {
        let (local, remote) = (keys.local.packet, keys.remote.packet);
        let mut after = next.clone();
        let sealing = Sealing {
            most: MOST.min(local.confidentiality_limit() / 2),
            key: local,
            next,
            phase: false,
            first: None,
            count: 0,
            is_old: false,
        };
        let opening = Opening {
            last: None,
            key: remote,
            next: after.next_packet_keys().remote,
            after,
            phase: false,
            first: None,
            refused: 0,
        };
        Self { sealing, opening }
    }

    /// Has a key replaced after so many packets, at the latest.
    #[must_use]
    pub fn most(mut self, packets: u64) -> Self {
        self.sealing.most = self.sealing.most.min(packets.max(1));
        self
    }

    /// The key that seals is old enough: it is replaced as soon as it may be.
    pub fn rotate(&mut self) {
        self.sealing.is_old = true;
    }

    /// Seals `contents`, of which only the other end will make something, and only with this number and this header. The other end has taken all
    /// packets before the one numbered `taken`. Returns the phase, which is to be sent along.
    ///
    /// A number is used once: numbers of one link grow.
    ///
    /// # Errors
    ///
    /// [`SealError::Broken`] if it is longer than anything that can be sealed.
    pub fn seal(
        &mut self,
        number: u64,
        taken: u64,
        header: &[u8],
        contents: &mut Vec<u8>,
    ) -> Result<bool, SealError> {
        let sealing = &mut self.sealing;
        let is_due = sealing.is_old || sealing.count >= sealing.most;
        // It has one of this key, so it knows it, and all of the key before.
        let may_be = sealing.first.is_some_and(|first| first < taken);
        // A key is not used for longer, whatever the other end says that it has.
        if is_due && may_be || sealing.count >= sealing.key.confidentiality_limit() {
            sealing.replace();
        }
        sealing.first.get_or_insert(number);
        sealing.count += 1;
        let tag = sealing.key.encrypt_in_place(number, header, contents);
        let tag = tag.map_err(|_| SealError::Broken)?;
        contents.extend_from_slice(tag.as_ref());
        Ok(sealing.phase)
    }

    /// Opens what the other end sealed. What does not open is to be left, as if it had not come.
    ///
    /// # Errors
    ///
    /// [`SealError::Broken`] if it was not sealed so by the other end, [`SealError::Worn`] if that happened too often.
    pub fn open<'a>(
        &mut self,
        number: u64,
        phase: bool,
        header: &[u8],
        contents: &'a mut [u8],
    ) -> Result<&'a [u8], SealError> {
        let opening = &mut self.opening;
        let is_later = opening.first.is_none_or(|first| number > first);
        let key = match (phase == opening.phase, is_later) {
            (true, _) => Some(&opening.key),
            (false, true) => Some(&opening.next),
            (false, false) => opening.last.as_ref(),
        };
        let opened = key.and_then(|key| key.decrypt_in_place(number, header, contents).ok());
        let Some(opened) = opened else {
            opening.refused += 1;
            return Err(match opening.refused < opening.key.integrity_limit() {
                true => SealError::Broken,
                false => SealError::Worn,
            });
        };
        if phase == opening.phase {
            opening.first = Some(opening.first.map_or(number, |first| first.min(number)));
        } else if is_later {
            opening.replace(number);
        }
        Ok(opened)
    }

    /// How many packets came that did not open.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.opening.refused
    }
}

impl Sealing {
    fn replace(&mut self) {
        self.key = self.next.next_packet_keys().local;
        self.phase = !self.phase;
        self.first = None;
        self.count = 0;
        self.is_old = false;
    }
}

impl Opening {
    fn replace(&mut self, number: u64) {
        let next = self.after.next_packet_keys().remote;
        let key = std::mem::replace(&mut self.next, next);
        self.last = Some(std::mem::replace(&mut self.key, key));
        self.phase = !self.phase;
        self.first = Some(number);
    }
}

/// Without keys.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal")
            .field("sealed", &self.sealing.count)
            .field("refused", &self.opening.refused)
            .finish_non_exhaustive()
    }
}

/// How many packets are sealed with one key: half of what AES-GCM allows for packets of 64 KiB (RFC 9001, appendix B).
const MOST: u64 = 1 << 22;
