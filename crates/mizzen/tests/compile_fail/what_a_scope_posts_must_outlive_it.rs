use mizzen::{Deck, MailboxRef, Message};

fn send(deck: &Deck, to: &MailboxRef) {
    deck.scope(|scope| {
        let halo = vec![0.0f64; 4096];
        let mut message = Message::new();
        message.pack_cheaper(&halo[..]);
        scope.post(to, message);
    });
}

fn main() {}
