//! The holder of tiles: decompresses and scales a part where the tile lives, and answers with its pixels.

use std::sync::Arc;

use mizzen::{Deck, Message, Request, Result, Service};

use super::ask::Ask;
use super::place::Place;
use super::tiles::Tiles;
use super::{jpeg, scale};

pub(crate) const NAME: &str = "map: tiles";

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
