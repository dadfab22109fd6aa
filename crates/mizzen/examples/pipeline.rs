//! Frames of 8 MiB go from a source through stages to a sink, each a process that looks at them and hands them on. All work at the same
//! time, on different frames, and no byte is copied between them.
//!
//! `mizzen run -n 4 -- target/release/examples/pipeline`

use std::time::{Instant, SystemTime};

use mizzen::{Borrowed, Deck, Mailbox, MailboxRef};

/// Values of a frame: 8 MiB.
const VALUES: usize = 1 << 20;
const FRAMES: u64 = 200;

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
        _ => collect(&inbox)?,
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
    deck.set_lending_limit((deck.size() as usize + 2) * VALUES * 8);
    for number in 0..FRAMES {
        let mut frame = deck.lend_unzeroed::<u64>(VALUES)?;
        frame.fill(number);
        next.post_lent(&[number, now()], frame)?;
    }
    Ok(())
}

/// A stage: reads the frame, and passes the same memory to the next one.
fn hand_on(inbox: &Mailbox, next: &MailboxRef) -> mizzen::Result<()> {
    for _ in 0..FRAMES {
        let (header, frame) = inbox.receive_lent::<[u64; 2], u64>()?;
        look_at(header[0], &frame);
        next.post_lent(&header, frame)?;
    }
    Ok(())
}

/// The sink: dropping a frame gives it back to the source.
fn collect(inbox: &Mailbox) -> mizzen::Result<()> {
    let (mut first, mut on_the_way) = (None, 0);
    for expected in 0..FRAMES {
        let ([number, begun], frame) = inbox.receive_lent::<[u64; 2], u64>()?;
        assert_eq!(number, expected, "frames keep their order");
        look_at(number, &frame);
        first.get_or_insert_with(Instant::now);
        on_the_way += now().saturating_sub(begun);
    }
    let took = first.map_or(0.0, |first| first.elapsed().as_secs_f64());
    let each = took / (FRAMES - 1) as f64;
    let alone = on_the_way as f64 / 1e6 / FRAMES as f64;
    println!(
        "{:.0} frames/s: one came every {:.1} ms, and was on its way for {:.1} ms, so {:.1} were at once",
        1.0 / each,
        each * 1e3,
        alone * 1e3,
        alone / each
    );
    Ok(())
}

/// What a stage works: it reads every value.
fn look_at(number: u64, frame: &Borrowed<u64>) {
    let is_right = frame.iter().all(|value| *value == number);
    assert!(is_right, "frame {number} is as the source filled it");
}

/// Microseconds of the clock that all processes of a host share.
fn now() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.map_or(0, |time| time.as_micros() as u64)
}
