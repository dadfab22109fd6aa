//! A message may be on its way into it until the scope ends.

use mizzen::{Deck, Mailbox, Result};

fn receive(deck: &Deck, inbox: &Mailbox) -> Result<f64> {
    let mut row = [0.0f64; 100];
    deck.scope(|scope| {
        let posted = scope.post_receive(inbox, &mut row);
        let first = row[0];
        posted.wait()?;
        Ok(first)
    })
}

fn main() {
    let _ = receive;
}
