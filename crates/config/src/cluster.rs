//! Clusters: hosts that are near each other.

use std::collections::BTreeSet;

/// Hosts that are near each other, and that others may know by one name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cluster {
    /// What it is called. No other cluster of the file has this name.
    pub name: String,
    /// Its hosts. None of them is in another cluster.
    pub hosts: BTreeSet<String>,
}
