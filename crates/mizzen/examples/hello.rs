//! Every process says who it is: the smallest program.
//!
//! `mizzen run -n 4 -- target/release/examples/hello`

use mizzen::Deck;

fn main() -> mizzen::Result<()> {
    let deck = Deck::join()?;
    println!("hello from {deck}");
    Ok(())
}
