use mizzen::{Deck, Message, Result};

fn send(deck: &Deck) -> Result<()> {
    let mut tile = deck.lend::<f32>(1024)?;
    let mut message = Message::new();
    message.pack_lent(tile);
    tile[0] = 1.0;
    Ok(())
}

fn main() {}
