//! What was measured: one line of the result.

use serde::{Deserialize, Serialize};

use super::plan::{Collective, Path, Plan, Test};

/// A line of the result. Its fields, in this order, are what `--json` prints.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) test: Test,
    pub(crate) path: Path,
    pub(crate) variant: String,
    /// What members of a group did together.
    pub(crate) operation: Option<Collective>,
    /// Bytes of a message; of a member's data, or of each of its blocks.
    pub(crate) size: Option<usize>,
    /// Pairs of threads; threads of each process that were members of a group.
    pub(crate) threads: u32,
    pub(crate) processes: Option<u32>,
    pub(crate) runs: u32,
    pub(crate) p50_ns: Option<f64>,
    pub(crate) p99_ns: Option<f64>,
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) bytes_per_s: Option<f64>,
    /// Ours: the median over the runs.
    pub(crate) value: f64,
    pub(crate) value_min: f64,
    pub(crate) value_max: f64,
    pub(crate) unit: String,
    pub(crate) floor: f64,
    pub(crate) floor_min: f64,
    pub(crate) floor_max: f64,
    pub(crate) floor_name: String,
    /// The median over the runs of ours by the floor's.
    pub(crate) ratio: Option<f64>,
    pub(crate) ratio_min: Option<f64>,
    pub(crate) ratio_max: Option<f64>,
    /// The slowest pair's time, as times the median pair's.
    pub(crate) worst: Option<f64>,
    pub(crate) longest_gap_ns: Option<f64>,
    pub(crate) pinned: bool,
    pub(crate) noisy: bool,
}

/// What a side says to the front end, a line each.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Said {
    Figures(Box<Figures>),
    /// How fast one core copies a message of so many bytes, which helps to understand the figures.
    Copies {
        size: usize,
        bytes_per_s: f64,
    },
    /// A sentence about what disturbed the measurement.
    Disturbed(String),
    /// A run is done.
    Progress,
}

/// The values of all runs: each run measured the floor and ours, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    pub(crate) floor: Vec<f64>,
    pub(crate) ours: Vec<f64>,
}

impl Runs {
    pub(crate) fn push(&mut self, floor: f64, ours: f64) {
        self.floor.push(floor);
        self.ours.push(ours);
    }

    /// The same runs in another unit.
    pub(crate) fn map(&self, convert: impl Fn(f64) -> f64) -> Self {
        Self {
            floor: self.floor.iter().map(|value| convert(*value)).collect(),
            ours: self.ours.iter().map(|value| convert(*value)).collect(),
        }
    }

    /// How far apart the slow and the fast runs of the floor are: the tenth and the ninetieth of a hundred.
    pub(crate) fn floor_spread(&self) -> f64 {
        quantile(&self.floor, 0.9) / quantile(&self.floor, 0.1)
    }

    /// The line of the result, without what only some tests know.
    pub(crate) fn figures(&self, plan: &Plan, unit: &str, floor_name: &str) -> Figures {
        // A floor of nothing has no ratio.
        let ratios: Vec<f64> = self
            .ours
            .iter()
            .zip(&self.floor)
            .map(|(ours, floor)| ours / floor)
            .filter(|ratio| ratio.is_finite())
            .collect();
        let of_ratios = |share| (!ratios.is_empty()).then(|| quantile(&ratios, share));
        Figures {
            test: plan.test,
            path: plan.path,
            variant: plan.variant.to_string(),
            operation: None,
            size: None,
            threads: 1,
            processes: None,
            runs: self.ours.len() as u32,
            p50_ns: None,
            p99_ns: None,
            rate_per_s: None,
            bytes_per_s: None,
            value: quantile(&self.ours, 0.5),
            value_min: quantile(&self.ours, 0.0),
            value_max: quantile(&self.ours, 1.0),
            unit: unit.to_owned(),
            floor: quantile(&self.floor, 0.5),
            floor_min: quantile(&self.floor, 0.0),
            floor_max: quantile(&self.floor, 1.0),
            floor_name: floor_name.to_owned(),
            ratio: of_ratios(0.5),
            ratio_min: of_ratios(0.0),
            ratio_max: of_ratios(1.0),
            worst: None,
            longest_gap_ns: None,
            pinned: !plan.cores.is_empty(),
            noisy: false,
        }
    }
}

/// The value that a `share` of all values does not exceed, between two of them if it falls there; 0 if there is none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share * sorted.len().saturating_sub(1) as f64;
    let value = |index: f64| sorted.get(index as usize).copied().unwrap_or(0.0);
    let (below, above) = (value(place.floor()), value(place.ceil()));
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_among_the_values() {
        let values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(quantile(&values, 0.5), 3.0);
        assert_eq!(quantile(&values, 1.0), 5.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn the_median_of_an_even_number_favours_neither_half() {
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.5);
        assert_eq!(quantile(&[4.0, 1.0, 2.0, 9.0], 0.5), 3.0);
    }
}
