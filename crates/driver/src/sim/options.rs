//! How a simulated network behaves.

/// How a simulated network behaves.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// The longest delay of a delivery, in ticks.
    pub max_delay: u64,
    /// How often a frame is refused though there is room, in a thousand.
    pub busy_per_mille: u64,
    /// The longest piece that a body travels in.
    pub max_piece: usize,
    /// The most deliveries that one poll takes from one peer.
    pub max_batch: u64,
}

impl SimOptions {
    /// No delays, no chance refusals, long pieces.
    #[must_use]
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            max_delay: 0,
            busy_per_mille: 0,
            max_piece: 64 * 1024,
            max_batch: 64,
        }
    }

    /// Delays of up to 20 ticks, one frame in five refused, pieces and batches of any size.
    #[must_use]
    pub fn rough(seed: u64) -> Self {
        Self {
            seed,
            max_delay: 20,
            busy_per_mille: 200,
            max_piece: 16 * 1024,
            max_batch: 5,
        }
    }
}
