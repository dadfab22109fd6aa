//! How long the parts of a frame, and bodies, may be.

/// The longest frame, header included (docs/wire.md §2.1). It bounds what a receiver must hold for a frame
/// that it did not ask for; longer data goes in bodies.
pub const FRAME_MAX: usize = 128 << 10;

/// The longest header of any kind, so that one fits a small array on the stack.
pub const HEADER_MAX: usize = 32;

/// The longest body, 1 TiB (docs/wire.md §5.2): above any memory we know, below any overflow when a few
/// lengths are added.
pub const BODY_MAX: u64 = 1 << 40;

/// How many bytes of a body one Pull asks for at most (docs/wire.md §5.10): whoever sends them may have to copy them.
pub const PULL_MAX: u32 = 4 << 20;

/// The longest body that is pushed, 2 MiB (docs/wire.md §5.8): longer ones are asked for, which costs them little.
pub const PUSH_MAX: u64 = 2 << 20;

/// What one end may have pushed that the other has not taken, 4 MiB (docs/wire.md §5.9). It bounds the memory
/// that a receiver needs for bodies nobody reads.
pub const PUSH_WINDOW: u64 = 4 << 20;
