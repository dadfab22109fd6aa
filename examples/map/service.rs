//! The holder of tiles: decompresses and scales a part where the tile lives, and answers with its pixels.

use std::sync::Arc;

use mizzen::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use mizzen::{Deck, Message, Request, Result, Service};

use super::tiles::{Place, TILE, Tiles};
use super::view::{MAX_SCALE, MIN_SCALE, Part, View};
use super::{jpeg, scale};

pub(crate) const NAME: &str = "map: tiles";

/// A part of a picture that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "mizzen::zerocopy")]
#[repr(C)]
pub(crate) struct Ask {
    pub(crate) scale: f64,
    /// Where on the map the picture begins.
    pub(crate) start: [u32; 2],
    pub(crate) tile: [u32; 2],
    /// Columns and rows of the picture.
    pub(crate) first: [u32; 2],
    pub(crate) count: [u32; 2],
}

impl Ask {
    pub(crate) fn new(view: &View, part: &Part) -> Self {
        Self {
            scale: view.scale,
            start: view.start,
            tile: part.place.0,
            first: part.first,
            count: part.count,
        }
    }

    /// Whether the answer has a bounded size.
    fn is_sound(&self) -> bool {
        let most = |axis: usize| (f64::from(TILE[axis]) * self.scale).ceil() as u32 + 1;
        (MIN_SCALE..=MAX_SCALE).contains(&self.scale)
            && (0..2).all(|axis| (1..=most(axis)).contains(&self.count[axis]))
    }
}

/// Answers for the tiles of this process as long as the service is held.
pub(crate) fn serve(deck: &Deck, tiles: &Arc<Tiles>) -> Result<Service> {
    let tiles = Arc::clone(tiles);
    // A request that makes no sense is dropped: who made it is told that there is no answer.
    deck.serve_raw(NAME, move |request| {
        answer(&tiles, request).unwrap_or_default()
    })
}

fn answer(tiles: &Tiles, request: Request) -> Result<()> {
    let (mut incoming, reply) = request.open();
    let ask: Ask = incoming.unpack_express()?;
    incoming.finish()?;
    let found = tiles.compressed(Place(ask.tile)).filter(|_| ask.is_sound());
    let Some(file) = found else { return Ok(()) };
    let Some(pixels) = scale::part(&jpeg::decode(file)?, &ask) else {
        return Ok(());
    };
    let mut message = Message::new();
    message.pack_safer(&(file.len() as u64));
    // A piece for each row: it goes straight into that row of the picture.
    for row in pixels.chunks_exact(3 * ask.count[0] as usize) {
        message.pack_cheaper(row);
    }
    reply.send(&mut message);
    Ok(())
}
