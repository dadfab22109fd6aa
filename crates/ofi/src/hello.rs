//! What each end says to the other over the bootstrap, once, before the fabric carries anything.
//!
//! The bootstrap has authenticated the peer, so only the peer learns the secrets: whoever presents a key to us was given it
//! in one of our hellos.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::endpoint::MAX_NAME;
use crate::message::MAX_FRAGMENTS;

/// How to reach the sender through the fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    /// What is to be presented with every message.
    pub(crate) key: u64,
    /// The sender's number for this link.
    pub(crate) slot: u32,
    /// How many `Frame` and `More` the sender holds for the receiver.
    pub(crate) window: u16,
    /// The format of `name`, and the provider that understands it.
    pub(crate) format: u32,
    pub(crate) provider: String,
    /// The endpoint for messages.
    pub(crate) name: Vec<u8>,
}

impl Hello {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let wire = Wire {
            magic: MAGIC,
            version: U16::new(VERSION),
            window: U16::new(self.window),
            slot: U32::new(self.slot),
            format: U32::new(self.format),
            key: U64::new(self.key),
            provider_len: U16::new(self.provider.len() as u16),
            name_len: U16::new(self.name.len() as u16),
        };
        let mut bytes = wire.as_bytes().to_vec();
        bytes.extend_from_slice(self.provider.as_bytes());
        bytes.extend_from_slice(&self.name);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (wire, rest) = Wire::read_from_prefix(bytes).ok()?;
        let provider_len = usize::from(wire.provider_len.get());
        let name_len = usize::from(wire.name_len.get());
        let window = wire.window.get();
        let is_ours = wire.magic == MAGIC && wire.version.get() == VERSION;
        let is_sound = provider_len <= MAX_PROVIDER && name_len <= MAX_NAME && name_len > 0;
        let is_enough = usize::from(window) >= MAX_FRAGMENTS && window <= MAX_WINDOW;
        if !is_ours || !is_sound || !is_enough || rest.len() != provider_len + name_len {
            return None;
        }
        let (provider, name) = rest.split_at(provider_len);
        Some(Self {
            key: wire.key.get(),
            slot: wire.slot.get(),
            window,
            format: wire.format.get(),
            provider: std::str::from_utf8(provider).ok()?.to_owned(),
            name: name.to_vec(),
        })
    }

    /// The longest hello.
    pub(crate) const MAX_LEN: usize = size_of::<Wire>() + MAX_PROVIDER + MAX_NAME;
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    magic: [u8; 4],
    version: U16,
    window: U16,
    slot: U32,
    format: U32,
    key: U64,
    provider_len: U16,
    name_len: U16,
}

const MAGIC: [u8; 4] = *b"MzOf";
const VERSION: u16 = 1;
/// Names of providers, with those that they are layered upon.
const MAX_PROVIDER: usize = 64;
/// Far less than a counter of 16 bits can tell apart.
const MAX_WINDOW: u16 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            key: 1 << 63 | 5,
            slot: 3,
            window: 32,
            format: 2,
            provider: "tcp;ofi_rxm".to_owned(),
            name: vec![2, 0, 1, 2, 127, 0, 0, 1],
        }
    }

    #[test]
    fn a_hello_comes_back_as_it_went() {
        assert_eq!(Hello::decode(&hello().encode()), Some(hello()));
        assert!(hello().encode().len() <= Hello::MAX_LEN);
    }

    #[test]
    fn a_hello_that_is_cut_or_stretched_is_refused() {
        let mut bytes = hello().encode();
        (0..bytes.len()).for_each(|len| assert_eq!(Hello::decode(&bytes[..len]), None));
        bytes.push(0);
        assert_eq!(Hello::decode(&bytes), None);
    }

    #[test]
    fn a_hello_of_another_kind_is_refused() {
        for at in [0, 4, 7, 24, 26] {
            let mut bytes = hello().encode();
            bytes[at] ^= 0x7f;
            assert_eq!(Hello::decode(&bytes), None, "byte {at}");
        }
        let mut narrow = hello();
        narrow.window = MAX_FRAGMENTS as u16 - 1;
        assert_eq!(Hello::decode(&narrow.encode()), None);
    }
}
