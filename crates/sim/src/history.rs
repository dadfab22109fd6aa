//! What happened: a hash of all of it, and its lines if somebody reads them.

use std::hash::Hasher;

use mizzen_proto::time::Time;

/// Whether a history is written down. Without, it is only hashed, which is many times faster; the same seed gives the lines later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// Only its hash.
    Hash,
    /// Each line.
    Lines,
}

/// The history of one run.
#[derive(Debug)]
pub(crate) struct History {
    hash: TraceHasher,
    lines: Option<Vec<String>>,
}

impl History {
    pub(crate) fn new(record: Record) -> Self {
        Self {
            hash: TraceHasher::default(),
            lines: (record == Record::Lines).then(Vec::new),
        }
    }

    /// Something happened. `hash` takes what tells it from other things, `line` says it to people.
    pub(crate) fn add(
        &mut self,
        now: Time,
        hash: impl FnOnce(&mut TraceHasher),
        line: impl FnOnce() -> String,
    ) {
        self.hash.write_u64(now.0);
        hash(&mut self.hash);
        if let Some(lines) = &mut self.lines {
            let micros = now.0 / 1000;
            let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
            lines.push(format!("{seconds:4}.{rest:06}  {}", line()));
        }
    }

    pub(crate) fn into_parts(self) -> (u64, Vec<String>) {
        (self.hash.finish(), self.lines.unwrap_or_default())
    }
}

/// A hash that is the same with every compiler, unlike std's.
#[derive(Debug)]
pub(crate) struct TraceHasher(u64);

impl Default for TraceHasher {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for TraceHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
