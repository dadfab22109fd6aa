//! The beginning and the end: rank 0 learns what each process holds, and tells it when it is no longer needed.

use core::fmt;

use mizzen::{Deck, MailboxRef, Message, Rank, Result};

use super::tiles::Tiles;

const NAME: &str = "map: census";
/// What rank 0 says in the end.
const ENOUGH: u8 = 1;

/// What all processes hold, as rank 0 heard.
#[derive(Debug)]
pub(crate) struct Census {
    tiles_of: Vec<u64>,
    bytes: u64,
    others: Vec<MailboxRef>,
}

/// Rank 0 returns when all have drawn their tiles. The others tell it, and return `None` when they are dismissed; their workers
/// answer meanwhile.
pub(crate) fn take(deck: &Deck, tiles: &Tiles) -> Result<Option<Census>> {
    let inbox = deck.mailbox()?;
    let ours = [tiles.count() as u64, tiles.bytes() as u64];
    if deck.rank() != 0 {
        inbox.depend_on(Rank(0));
        let mut message = Message::new();
        message.pack_mailbox(&inbox.address()).pack_safer(&ours);
        deck.fetch(NAME)?.post(&mut message)?;
        inbox.receive::<u8>()?;
        return Ok(None);
    }
    for rank in 1..deck.size() {
        inbox.depend_on(Rank(rank));
    }
    deck.bind(NAME, &inbox)?;
    let mut census = Census {
        tiles_of: vec![0; deck.size() as usize],
        bytes: 0,
        others: Vec::new(),
    };
    census.count(Rank(0), ours);
    for _ in 1..deck.size() {
        let mut incoming = inbox.retrieve()?;
        census.others.push(incoming.unpack_mailbox()?);
        let theirs = incoming.unpack_express()?;
        census.count(incoming.source(), theirs);
    }
    Ok(Some(census))
}

impl Census {
    /// Nobody is asked for tiles any more.
    pub(crate) fn dismiss(self) -> Result<()> {
        self.others.iter().try_for_each(|other| other.send(&ENOUGH))
    }

    fn count(&mut self, rank: Rank, [tiles, bytes]: [u64; 2]) {
        self.tiles_of[rank.0 as usize] = tiles;
        self.bytes += bytes;
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tiles: u64 = self.tiles_of.iter().sum();
        let mega = self.bytes as f64 / 1e6;
        write!(
            f,
            "{tiles} tiles of {mega:.1} MB, by rank {:?}",
            self.tiles_of
        )
    }
}
