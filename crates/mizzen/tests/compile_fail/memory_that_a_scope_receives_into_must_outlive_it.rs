//! The scope's end waits for the message, and so must the memory be there until then.

use mizzen::{Deck, Mailbox, Result};

fn receive(deck: &Deck, inbox: &Mailbox) -> Result<()> {
    deck.scope(|scope| {
        let mut row = [0.0f64; 100];
        scope.post_receive(inbox, &mut row);
        Ok(())
    })
}

fn main() {
    let _ = receive;
}
