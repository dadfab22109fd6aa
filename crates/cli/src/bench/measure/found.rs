//! What a measurement returns.

use crate::bench::figures::{Figures, Runs};

/// What one measurement found.
pub(crate) struct Found {
    pub(crate) runs: Runs,
    pub(crate) figures: Figures,
}
