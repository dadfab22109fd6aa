//! Where a process of the job is, and what it sees of the others without a network.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use mizzen::{Deck, Rank};
use mizzen_checks::Mapped;

/// What all processes of the job know.
pub(super) struct Place {
    pub(super) deck: Deck,
    pub(super) hosts: u32,
    pub(super) folder: PathBuf,
    pub(super) board: Board,
}

/// Words that all processes see: they are on one machine, whatever the network says.
pub(super) struct Board(Mapped);

impl Board {
    const WORDS: usize = 1 << 12;

    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let file = folder.join("board");
        let file = file.to_str().context("a folder with a plain name")?;
        Ok(Self(Mapped::open(file, Self::WORDS)?))
    }

    /// Who became heir of a host: its rank and one.
    pub(super) fn heir_of(&self, host: u32) -> &AtomicU64 {
        self.0.word(host as usize)
    }
}

impl Place {
    pub(super) fn host_of(&self, rank: Rank) -> u32 {
        rank.0 / (self.deck.size() / self.hosts)
    }

    pub(super) fn ranks_of(&self, host: u32) -> impl Iterator<Item = Rank> {
        let each = self.deck.size() / self.hosts;
        (host * each..(host + 1) * each).map(Rank)
    }

    pub(super) fn is_over(&self) -> bool {
        self.folder.join("stop").exists()
    }
}

/// The time of day, in milliseconds.
pub(super) fn now() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}
