//! Goes on talking while hosts are lost, and checks what survivors see: the verdicts, the names, and each other's messages.
//!
//! `mizzen run --hosts … -n N --on-death continue -- survivors HOSTS FOLDER`. Each process sends numbers to each other one, all the
//! time. They must come once each and in order, and none behind the news of their sender's end. The file `stop` in the folder ends
//! it: then all that those sent who are left must have come.
//!
//! What happens is printed, with the time of day in milliseconds, for the script that loses the hosts:
//!
//! ```text
//! lost 5 at 1763332233123: rank 5 died: its host was lost
//! names after host 2 answered in 12 ms
//! silence 31 ms
//! all of 48213 messages came
//! ```

mod names;
mod place;
mod talk;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use mizzen::Deck;

use place::{Board, Place};

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: survivors HOSTS FOLDER";
    let hosts: u32 = arguments.next().context(usage)?.parse()?;
    let folder = PathBuf::from(arguments.next().context(usage)?);
    let deck = Deck::join()?;
    ensure!(
        hosts > 0 && deck.size() % hosts == 0,
        "{hosts} hosts cannot have the same number of {} processes",
        deck.size()
    );
    let board = Board::open(&folder)?;
    let place = Place {
        deck,
        hosts,
        folder,
        board,
    };
    let rank = place.deck.rank();
    talk::talk(&place).inspect_err(|error| eprintln!("rank {rank}: {error:#}"))
}
