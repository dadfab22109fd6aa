//! Frames of 8 MiB go from a source through stages to a sink, each a process that looks at them and hands them on. All work at the same
//! time, on different frames, and no byte is copied between them.
//!
//! `mizzen run -n 4 -- target/release/examples/pipeline`

use std::time::Instant;

use mizzen::{Borrowed, Deck, Mailbox, MailboxRef};

const FRAME: usize = 8 << 20;
const FRAMES: u32 = 200;

fn main() -> mizzen::Result<()> {
    let deck = Deck::join()?;
    let (rank, last) = (deck.rank().0, deck.size() - 1);
    let inbox = deck.mailbox()?;
    deck.bind(&format!("frames for {rank}"), &inbox)?;
    let next = || deck.fetch(&format!("frames for {}", rank + 1));
    match rank {
        _ if last == 0 => println!("start it with `mizzen run -n 4`: a pipeline has two ends"),
        0 => fill(&deck, &next()?)?,
        stage if stage < last => hand_on(&inbox, &next()?)?,
        _ => collect(&inbox, last)?,
    }
    // Who copied would have counted it.
    let counters = deck.counters();
    let copied = counters.iter().filter(|row| row.name == "bytes_copied");
    let copied: u64 = copied.map(|row| row.value).sum();
    println!("rank {rank} copied {copied} bytes");
    deck.finish()
}

/// The source: as many frames may be out as there are processes, and two more, so that nobody waits for memory.
fn fill(deck: &Deck, next: &MailboxRef) -> mizzen::Result<()> {
    deck.set_lending_limit((deck.size() as usize + 2) * FRAME);
    for number in 0..FRAMES {
        let mut frame = deck.lend_unzeroed::<u8>(FRAME)?;
        frame.fill(number as u8);
        next.post_lent(&number, frame)?;
    }
    Ok(())
}

/// A stage: reads the frame, and passes the same memory to the next one.
fn hand_on(inbox: &Mailbox, next: &MailboxRef) -> mizzen::Result<()> {
    for _ in 0..FRAMES {
        let (number, frame) = inbox.receive_lent::<u32, u8>()?;
        look_at(number, &frame);
        next.post_lent(&number, frame)?;
    }
    Ok(())
}

/// The sink: dropping a frame gives it back to the source.
fn collect(inbox: &Mailbox, hops: u32) -> mizzen::Result<()> {
    let mut begun = Instant::now();
    for expected in 0..FRAMES {
        let (number, frame) = inbox.receive_lent::<u32, u8>()?;
        assert_eq!(number, expected, "frames keep their order");
        look_at(number, &frame);
        if number == 0 {
            begun = Instant::now();
        }
    }
    let rate = f64::from(FRAMES - 1) / begun.elapsed().as_secs_f64();
    println!("{FRAMES} frames of 8 MiB over {hops} hops: {rate:.0} frames/s");
    Ok(())
}

/// What a stage works: it reads every value.
fn look_at(number: u32, frame: &Borrowed<u8>) {
    let is_right = frame.iter().all(|byte| *byte == number as u8);
    assert!(is_right, "frame {number} is as the source filled it");
}
