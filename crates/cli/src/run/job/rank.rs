//! One process of the job, and the host it belongs to.

use std::collections::BTreeSet;

use mizzen_proto::boot::{Death, Unreachable};
use mizzen_proto::time::Time;

#[derive(Debug)]
pub(super) struct Rank {
    pub(super) host: usize,
    pub(super) incarnation: u32,
    pub(super) pid: Option<u32>,
    pub(super) ended: Option<Death>,
    pub(super) left: bool,
    /// Where it listens, and in which life.
    pub(super) locator: Option<(u32, String)>,
    /// Whether it has said, in this life, that it waits.
    pub(super) hinting: bool,
    /// When its last hint was printed, in whichever life.
    pub(super) hinted: Option<Time>,
    /// Hosts whose processes want to reach it.
    pub(super) waiting: BTreeSet<usize>,
}

impl Rank {
    pub(super) fn new(host: usize) -> Self {
        Self {
            host,
            incarnation: 0,
            pid: None,
            ended: None,
            left: false,
            locator: None,
            hinting: false,
            hinted: None,
            waiting: BTreeSet::new(),
        }
    }

    pub(super) fn gone(&self) -> Option<Unreachable> {
        match self.ended {
            Some(Death::Exit(0)) => Some(Unreachable::Left),
            Some(_) => Some(Unreachable::Dead),
            None if self.left => Some(Unreachable::Left),
            None => None,
        }
    }
}
