//! The whole plate at rank 0, for its picture.

use mizzen::{Deck, Mailbox, Message, Rank, Result};

use super::block::{self, Block};

/// What rank 0 answers when it has all rows of all.
const THANKS: u8 = 1;

/// Brings the rows of all processes together. Rank 0 gets them, from the top, edges left and right included; the others none.
pub(crate) fn gather(deck: &Deck, blocks: &[Block], size: usize) -> Result<Vec<Vec<f64>>> {
    let ours = blocks.iter().flat_map(Block::whole_rows);
    if deck.rank() != 0 {
        let mut collector = deck.fetch(&name(deck.rank()))?.sender()?;
        let thanks = deck.mailbox()?;
        thanks.depend_on(Rank(0));
        collector.post(Message::new().pack_mailbox(&thanks.address()))?;
        for row in ours {
            collector.send(&row[..])?;
        }
        // Whoever leaves may be keeping the name that another is still looking for.
        thanks.receive::<u8>()?;
        return Ok(Vec::new());
    }
    let others = (1..deck.size()).map(Rank);
    let inboxes: Vec<_> = others
        .map(|rank| inbox(deck, rank))
        .collect::<Result<_>>()?;
    let mut rows: Vec<_> = ours.collect();
    let mut senders = Vec::new();
    for (rank, inbox) in (1..).zip(inboxes) {
        senders.push(inbox.retrieve()?.unpack_mailbox()?);
        for _ in block::share(size, rank, deck.size() as usize) {
            rows.push(inbox.receive_vec()?);
        }
    }
    senders.iter().try_for_each(|sender| sender.send(&THANKS))?;
    Ok(rows)
}

/// A mailbox for each, so that rows come in order.
fn inbox(deck: &Deck, rank: Rank) -> Result<Mailbox> {
    let inbox = deck.mailbox()?;
    inbox.depend_on(rank);
    deck.bind(&name(rank), &inbox)?;
    Ok(inbox)
}

fn name(rank: Rank) -> String {
    format!("laplace: rows of rank {rank}")
}
