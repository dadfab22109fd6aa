//! Handing on: a borrowed buffer goes to the next process, in the memory of its owner.
//!
//! The owner must know all who may hold it, so that the death of any of them gives it back, and the next process must know the slab in
//! which it lies. So who hands it on first asks the owner to show the slab to the next one: once for each slab and process.
//! After that, nobody asks anybody: the holder says in its own table to whom it hands on, and posts; the owner follows when it
//! looks for memory (`crates/lane/src/whereabouts.rs`).
//!
//! An owner that is gone shows nothing. What it lent is then copied, once, into a buffer of our own.

use crate::error::PostError;
use crate::link::MemoryLink;
use crate::links::{Links, WithLinks};
use crate::memory::{Buffer, Holding, Lease, Made, Place, Purpose, SlabId};
use crate::message::{LentPiece, Message};
use crate::wait::Until;

impl MemoryLink {
    /// Prepares the lent pieces of a message for this peer.
    pub(crate) fn show_lent(
        &self,
        around: &dyn WithLinks,
        message: &mut Message<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        for piece in message.lent_pieces() {
            self.show_piece(around, piece, until)?;
        }
        Ok(())
    }

    fn show_piece(
        &self,
        around: &dyn WithLinks,
        piece: &mut LentPiece,
        until: Until,
    ) -> Result<(), PostError> {
        let links = around.links();
        let held = match piece.buffer().ok_or(PostError::LentTwice)? {
            Buffer::Made(Made(block)) => return self.show_block(&links.arena, block),
            Buffer::Borrowed(Lease(held)) => held,
        };
        if let Some(place) = self.place_of_peer(links, held) {
            held.loan.hand_on(place);
            return Ok(());
        }
        // Its owner is gone, or cannot reach the peer.
        let bytes = held.loan.as_bytes();
        let mut block = links.take_block(around.progress(), bytes.len(), Purpose::Lend, until)?;
        block.as_mut_bytes().copy_from_slice(bytes);
        self.counts.note_long(bytes.len());
        self.show_slab(&links.arena, block.slab())?;
        piece.replace(Buffer::Made(Made(block)));
        Ok(())
    }

    /// The number that the owner of a buffer gave our peer, after showing it the buffer's slab.
    fn place_of_peer(&self, links: &Links, held: &Holding) -> Option<Place> {
        let slab = SlabId(held.loan.slab());
        if held.owner != links.me {
            let owner = links.linked(held.owner)?;
            return owner.ask_to_show(slab, self.peer);
        }
        // It came over a network, or went round and is our own.
        links.arena.admit_self(links.me)?;
        if self.peer == links.me {
            return links.arena.admit_self(links.me);
        }
        self.try_show_slab(&links.arena, slab).ok()?;
        self.borrower.admit(&links.arena)
    }

    /// Gives away the lent pieces of a message that was posted.
    pub(crate) fn give_lent(&self, links: &Links, message: &mut Message<'_>) {
        for piece in message.lent_pieces() {
            match piece.take() {
                Some(Buffer::Made(Made(block))) => self.give(&links.arena, block),
                Some(Buffer::Borrowed(Lease(held))) => {
                    held.loan.handed_on();
                    // If the peer ended, and the message never went.
                    self.take_back_unheard(&links.arena);
                }
                None => (),
            }
        }
    }

    /// The message was not posted: what it would have handed on is ours again, unless its owner took it back meanwhile.
    pub(crate) fn keep_lent(links: &Links, message: &mut Message<'_>) {
        for piece in message.lent_pieces() {
            if let Some(Buffer::Borrowed(Lease(held))) = piece.buffer() {
                if !links.keep(held) {
                    drop(piece.take());
                }
            }
        }
    }
}
