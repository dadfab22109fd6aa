//! The viewer: asks the holders of the tiles for their parts of a picture, all at once, and puts them together.

use core::fmt;
use std::time::{Duration, Instant};

use mizzen::{Deck, Message, RawClient, Result};

use super::ask::Ask;
use super::place::Map;
use super::service::NAME;
use super::view::View;

/// Asks the holders, each by its own client.
#[derive(Debug)]
pub(crate) struct Viewer {
    holders: Vec<RawClient>,
    rank: usize,
}

/// What a picture took.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) tiles: usize,
    /// Bytes that were decompressed, where they lie.
    compressed: u64,
    /// Bytes of pixels that came from other processes.
    moved: usize,
    pub(crate) took: Duration,
}

impl Viewer {
    pub(crate) fn new(deck: &Deck) -> Result<Self> {
        let holders = (0..deck.size()).map(|rank| deck.raw_client_at(rank, NAME));
        Ok(Self {
            holders: holders.collect::<Result<_>>()?,
            rank: deck.rank().0 as usize,
        })
    }

    /// The pixels of the picture, three bytes each.
    pub(crate) fn show(&mut self, map: Map, view: &View) -> Result<(Vec<u8>, Cost)> {
        let started = Instant::now();
        let ranks = self.holders.len() as u32;
        let parts = view.parts(map);
        let mut calls = Vec::with_capacity(parts.len());
        for part in &parts {
            let holder = part.place.owner(ranks).0 as usize;
            let mut request = Message::new();
            request.pack_safer(&Ask::new(view, part));
            calls.push((holder, self.holders[holder].start(&mut request)?));
        }
        let [width, height] = view.pixels().map(|count| count as usize);
        let mut pixels = vec![0; 3 * width * height];
        let (mut compressed, mut moved) = (0, 0);
        for (part, (holder, call)) in parts.iter().zip(calls) {
            let mut answer = self.holders[holder].wait(call)?;
            compressed += answer.unpack_express::<u64>()?;
            let ([left, top], [across, down]) =
                (part.first, part.count.map(|count| count as usize));
            let rows = pixels.chunks_exact_mut(3 * width).skip(top as usize);
            for row in rows.take(down) {
                answer.unpack_cheaper(&mut row[3 * left as usize..][..3 * across])?;
            }
            answer.finish()?;
            if holder != self.rank {
                moved += 3 * across * down;
            }
        }
        let cost = Cost {
            tiles: parts.len(),
            compressed,
            moved,
            took: started.elapsed(),
        };
        Ok((pixels, cost))
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mega = |bytes: f64| bytes / 1e6;
        write!(
            f,
            "{} tiles, {:.2} MB of JPEG decompressed where they lie, {:.2} MB of pixels moved, {:.2?}",
            self.tiles,
            mega(self.compressed as f64),
            mega(self.moved as f64),
            self.took
        )
    }
}
