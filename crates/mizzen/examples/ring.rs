//! Threads of several processes pass a token around: three threads in each process, three laps.
//!
//! `mizzen run -n 4 -- target/release/examples/ring`

use mizzen::Deck;

const THREADS: u32 = 3;
const LAPS: u32 = 3;

fn main() -> mizzen::Result<()> {
    let deck = Deck::join()?;
    let first = deck.rank().0 * THREADS;
    std::thread::scope(|threads| {
        let places: Vec<_> = (first..first + THREADS)
            .map(|place| {
                let deck = &deck;
                threads.spawn(move || pass(deck, place))
            })
            .collect();
        places
            .into_iter()
            .try_for_each(|place| place.join().expect("a place in the ring does not panic"))
    })
}

/// One place of the ring: takes the token from the place before and hands it to the next, `LAPS` times.
fn pass(deck: &Deck, place: u32) -> mizzen::Result<()> {
    let places = deck.size() * THREADS;
    let inbox = deck.mailbox()?;
    deck.bind(&format!("place {place}"), &inbox)?;
    // Waits until the next place, in this process or another, has bound its name.
    let next = deck.fetch(&format!("place {}", (place + 1) % places))?;
    if place == 0 {
        next.send(&1u32)?;
    }
    for lap in 1..=LAPS {
        let hops = inbox.receive::<u32>()?;
        if place == 0 {
            println!(
                "lap {lap}: the token passed {hops} threads of {} processes",
                deck.size()
            );
        }
        if place != 0 || lap < LAPS {
            next.send(&(hops + 1))?;
        }
    }
    Ok(())
}
