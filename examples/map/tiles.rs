//! The tiles of this process.

use std::collections::HashMap;

use mizzen::{Deck, Result, Task};

use super::place::{Map, Place};
use super::{chart, jpeg};

/// The tiles of one process, compressed.
#[derive(Debug)]
pub(crate) struct Tiles {
    held: HashMap<Place, Vec<u8>>,
}

impl Tiles {
    /// Draws and compresses the tiles that this process holds, by all its workers.
    pub(crate) fn draw(deck: &Deck, map: Map) -> Result<Self> {
        let ours = map
            .places()
            .filter(|place| place.owner(deck.size()) == deck.rank());
        let tasks: Vec<_> = ours
            .map(|place| (place, deck.spawn(move || jpeg::encode(&chart::draw(place)))))
            .collect();
        let joined = tasks
            .into_iter()
            .map(|(place, task): (_, Task<Result<Vec<u8>>>)| Ok((place, task.join()??)));
        Ok(Self {
            held: joined.collect::<Result<_>>()?,
        })
    }

    /// The tile as it is held; `None` if another process has it, or there is no such tile.
    pub(crate) fn compressed(&self, place: Place) -> Option<&[u8]> {
        self.held.get(&place).map(Vec::as_slice)
    }

    pub(crate) fn count(&self) -> usize {
        self.held.len()
    }

    /// Bytes of all, compressed.
    pub(crate) fn bytes(&self) -> usize {
        self.held.values().map(Vec::len).sum()
    }
}
