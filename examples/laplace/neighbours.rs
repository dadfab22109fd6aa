//! The halos: workers send their border rows to the workers above and below, wherever those are.
//!
//! A worker is a thread. Its neighbours are threads of the same process, of another, or of another host: the program is the
//! same, only the address differs.

use mizzen::{Deck, Mailbox, Rank, Result, Sender};

use super::block::{Block, Colour};

/// A worker's place among all: the threads of rank 0, then those of rank 1, and so on.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) worker: usize,
    pub(crate) workers: usize,
    /// In each process.
    pub(crate) threads: usize,
}

/// The paths to both neighbours; there is none beyond the plate's edges.
pub(crate) struct Neighbours {
    above: Option<Side>,
    below: Option<Side>,
}

/// The path to and from one neighbour. Having a mailbox for each, nobody has to say who they are.
struct Side {
    inbox: Mailbox,
    outbox: Sender,
}

impl Place {
    pub(crate) fn rank_of(self, worker: usize) -> Rank {
        Rank((worker / self.threads) as u32)
    }
}

impl Neighbours {
    pub(crate) fn meet(deck: &Deck, place: Place) -> Result<Self> {
        let Place {
            worker, workers, ..
        } = place;
        let above = (worker > 0).then(|| inbox(deck, worker, "above"));
        let below = (worker + 1 < workers).then(|| inbox(deck, worker, "below"));
        // All names are bound before any is fetched: nobody waits in a circle.
        let (above, below) = (above.transpose()?, below.transpose()?);
        let meet = |inbox: Mailbox, neighbour, from| {
            inbox.depend_on(place.rank_of(neighbour));
            let outbox = deck.fetch(&name(neighbour, from))?.sender()?;
            Ok::<_, mizzen::Error>(Side { inbox, outbox })
        };
        Ok(Self {
            above: above
                .map(|inbox| meet(inbox, worker - 1, "below"))
                .transpose()?,
            below: below
                .map(|inbox| meet(inbox, worker + 1, "above"))
                .transpose()?,
        })
    }

    /// Sends one colour of the border rows.
    pub(crate) fn send(&mut self, colour: Colour, block: &Block) -> Result<()> {
        if let Some(side) = &mut self.above {
            side.outbox.send(block.line(colour, 1))?;
        }
        if let Some(side) = &mut self.below {
            side.outbox.send(block.line(colour, block.rows()))?;
        }
        Ok(())
    }

    /// Receives one colour of the halos. They come in the order in which they were sent: red, black, red, …
    pub(crate) fn receive(&self, colour: Colour, block: &mut Block) -> Result<()> {
        if let Some(side) = &self.above {
            let mut incoming = side.inbox.retrieve()?;
            incoming.unpack_express_into(block.line_mut(colour, 0))?;
        }
        if let Some(side) = &self.below {
            let mut incoming = side.inbox.retrieve()?;
            incoming.unpack_express_into(block.line_mut(colour, block.rows() + 1))?;
        }
        Ok(())
    }
}

fn inbox(deck: &Deck, worker: usize, from: &str) -> Result<Mailbox> {
    let inbox = deck.mailbox()?;
    deck.bind(&name(worker, from), &inbox)?;
    Ok(inbox)
}

fn name(worker: usize, from: &str) -> String {
    format!("laplace: to worker {worker} from {from}")
}
