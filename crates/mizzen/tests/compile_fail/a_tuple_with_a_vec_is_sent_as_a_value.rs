use mizzen::{Deck, Rank};

fn main() -> mizzen::Result<()> {
    let deck = Deck::join()?;
    let rows: (Rank, Vec<f64>) = (deck.rank(), vec![1.0]);
    deck.fetch("rows")?.send(&rows)
}
