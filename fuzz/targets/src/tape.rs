//! Bytes read as a program: what to do next, and with which values.
//!
//! Always from the front and of fixed length, so that seeds can be written by hand, and zero when the bytes are used up.

use arbitrary::Unstructured;

pub(crate) struct Tape<'a>(Unstructured<'a>);

impl<'a> Tape<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(Unstructured::new(data))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    pub(crate) fn short(&mut self) -> u16 {
        self.0.arbitrary().unwrap_or(0)
    }

    pub(crate) fn half(&mut self) -> u32 {
        self.0.arbitrary().unwrap_or(0)
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// A number that is small, or near a border, or anything: what a byte cannot say comes in eight.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..=0xdf => u64::from(small),
            border @ 0xe0..=0xef => (1 << (4 * (border & 0xf))) - 1,
            border @ 0xf0..=0xf7 => 1 << (8 * (border & 0x7)),
            0xf8 => u64::MAX,
            0xf9 => u64::MAX - 1,
            0xfa => 1 << 63,
            0xfb => u64::from(u32::MAX),
            _ => self.word(),
        }
    }

    /// Some bytes, their number first.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.short()).min(self.0.len());
        self.0.bytes(len).unwrap_or_default()
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }
}
