//! Who uses which part of the memory that all participants map.
//!
//! | part | bytes | used by |
//! | --- | --- | --- |
//! | `MEETING` | one page | `meeting.rs` |
//! | `TOLD` | 8 for each participant | `meeting.rs` |
//! | `LINES` | pairs of cache lines | `floor/line.rs` |
//! | `FUTEX` | one page | `floor/futex.rs` |
//! | `SLOTS` | two rings of 64-byte slots | `floor/ring.rs` |
//! | `CHUNKS` | two rings of 32 KiB | `floor/copy.rs` |
//! | `TURNS` | 1 KiB for each pair of threads | `floor/turns.rs` |

/// The most participants, or pairs of threads, of one job.
pub(crate) const MAX_PARTICIPANTS: u32 = 1024;

const PAGE: usize = 4096;

/// Pairs of lines.
pub(crate) const LINE_PAIRS: usize = 16;
/// Far enough apart that no prefetcher joins them.
pub(crate) const LINES_APART: usize = 256;
const LINES_BYTES: usize = 2 * LINE_PAIRS * LINES_APART;

pub(crate) const RING_SLOTS: usize = 1024;

pub(crate) const CHUNK_COUNT: usize = 16;
pub(crate) const CHUNK: usize = 32 << 10;

pub(crate) const MEETING: usize = 0;
pub(crate) const TOLD: usize = MEETING + PAGE;
pub(crate) const LINES: usize = TOLD + MAX_PARTICIPANTS as usize * 8;
pub(crate) const FUTEX: usize = LINES + LINES_BYTES.next_multiple_of(PAGE);
pub(crate) const SLOTS: usize = FUTEX + PAGE;
/// The positions of a ring are in the page before it.
pub(crate) const SLOTS_EACH: usize = PAGE + RING_SLOTS * 64;
pub(crate) const CHUNKS: usize = SLOTS + 2 * SLOTS_EACH;
pub(crate) const CHUNKS_EACH: usize = PAGE + CHUNK_COUNT * CHUNK;
pub(crate) const TURNS: usize = CHUNKS + 2 * CHUNKS_EACH;
pub(crate) const TURNS_EACH: usize = 1024;
/// All of it.
pub(crate) const BYTES: usize = TURNS + MAX_PARTICIPANTS as usize * TURNS_EACH;
