use mizzen::{Deck, Result, Sender};

fn send(deck: &Deck, sender: &mut Sender) -> Result<f32> {
    let tile = deck.lend::<f32>(1024)?;
    sender.post_lent(&7u32, tile)?;
    Ok(tile[0])
}

fn main() {}
