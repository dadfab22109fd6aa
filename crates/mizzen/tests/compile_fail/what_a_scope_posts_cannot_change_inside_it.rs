use mizzen::{Deck, MailboxRef, Message};

fn send(deck: &Deck, to: &MailboxRef) {
    let mut halo = vec![0.0f64; 4096];
    deck.scope(|scope| {
        let mut message = Message::new();
        message.pack_cheaper(&halo[..]);
        // Even if nobody waits for it.
        drop(scope.post(to, message));
        halo[0] = 1.0;
    });
}

fn main() {}
