//! What the check programs share: checksums, memory.

pub mod allocated;
mod mapped;

pub use mapped::Mapped;

/// A checksum that notices every changed, missing, shifted or swapped word; four words at a time.
#[must_use]
pub fn checksum(bytes: &[u8], seed: u64) -> u64 {
    const PRIMES: [u64; 4] = [
        0x9e37_79b1_85eb_ca87,
        0xc2b2_ae3d_27d4_eb4f,
        0x1656_67b1_9e37_79f9,
        0x85eb_ca77_c2b2_ae63,
    ];
    let mut sums = [seed, seed ^ 1, seed ^ 2, seed ^ 3];
    let mut blocks = bytes.chunks_exact(32);
    for block in &mut blocks {
        for (lane, word) in block.chunks_exact(8).enumerate() {
            let word = word.try_into().map_or(0, u64::from_le_bytes);
            sums[lane] = (sums[lane] ^ word)
                .wrapping_mul(PRIMES[lane])
                .rotate_left(29);
        }
    }
    let mut sum = bytes.len() as u64;
    for lane in sums {
        sum = (sum ^ lane).wrapping_mul(PRIMES[0]).rotate_left(31);
    }
    for byte in blocks.remainder() {
        sum = (sum ^ u64::from(*byte))
            .wrapping_mul(PRIMES[1])
            .rotate_left(11);
    }
    sum ^ (sum >> 29)
}

/// The most memory this process has used, in MiB.
#[must_use]
pub fn peak_memory_mib() -> u64 {
    status_kib("VmHWM:") / 1024
}

/// A line of `/proc/self/status`, in KiB.
#[must_use]
pub fn status_kib(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(key))
        .unwrap_or("0");
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Descriptors that this process has open.
#[must_use]
pub fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}
