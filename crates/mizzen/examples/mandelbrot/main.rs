//! The Mandelbrot set, computed by all processes: rank 0 hands out slices of rows to whoever asks, and paints them.
//!
//! `mizzen run -n 4 -- target/release/examples/mandelbrot --width 1600 --height 1200 --output mandelbrot.png`
//!
//! A worker asks with a message of its mailbox's address and, after the first time, the slice that it has computed: its
//! position and a lent buffer of pixels, which the master reads in place. The answer is the next slice, or an empty one.

mod fractal;
mod options;
mod palette;
mod picture;

use std::time::Instant;

use mizzen::{Deck, Incoming, Message};
use options::Options;
use picture::{Picture, Slice};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() {
    if let Err(error) = run() {
        fail(&*error);
    }
}

fn fail(error: &(dyn std::error::Error + Send + Sync)) -> ! {
    eprintln!("mandelbrot: {error}");
    std::process::exit(1);
}

fn run() -> Result<()> {
    let deck = Deck::join()?;
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        // All processes got the same arguments: one complaint is enough.
        Err(error) if deck.rank() == 0 => return Err(error),
        Err(_) => return Ok(()),
    };
    std::thread::scope(|threads| {
        let workers: Vec<_> = (0..options.threads)
            .map(|_| threads.spawn(|| work(&deck, &options)))
            .collect();
        if deck.rank() == 0 {
            // On failure, do not wait for the workers: they wait for answers.
            serve(&deck, &options).unwrap_or_else(|error| fail(&*error));
        }
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })
}

/// The master: answers workers until every slice is painted and every worker knows it.
fn serve(deck: &Deck, options: &Options) -> Result<()> {
    let started = Instant::now();
    let inbox = deck.mailbox()?;
    deck.bind("mandelbrot", &inbox)?;
    let mut picture = Picture::new(options);
    let mut rows_of = vec![0; deck.size() as usize];
    let mut working = deck.size() * options.threads;
    while working > 0 {
        let mut incoming: Incoming = inbox.retrieve()?;
        let worker = incoming.unpack_mailbox()?;
        if incoming.pieces_left() > 0 {
            let slice: Slice = incoming.unpack_express()?;
            picture.paint(slice, &incoming.unpack_lent::<u8>()?)?;
            rows_of[worker.rank().0 as usize] += slice.rows;
        }
        let next = picture.next_slice();
        working -= u32::from(next.is_empty());
        worker.send(&next)?;
    }
    picture.save()?;
    println!(
        "wrote {} in {:.2?} (processes: {}, threads in each: {}, rows by rank: {rows_of:?})",
        options.output.display(),
        started.elapsed(),
        deck.size(),
        options.threads,
    );
    Ok(())
}

/// A worker: computes what the master says, until it says no more.
fn work(deck: &Deck, options: &Options) -> Result<()> {
    let inbox = deck.mailbox()?;
    let mut master = deck.fetch("mandelbrot")?.sender()?;
    // If the master is lost, `receive` says so instead of waiting for ever.
    inbox.depend_on(master.rank());
    let mut request = Message::new();
    master.post(request.pack_mailbox(&inbox.address()))?;
    loop {
        let slice: Slice = inbox.receive()?;
        if slice.is_empty() {
            return Ok(());
        }
        let mut pixels = deck.lend::<u8>(slice.bytes(options))?;
        fractal::render(slice, options, &mut pixels);
        request.clear();
        request.pack_mailbox(&inbox.address());
        master.post(request.pack_safer(&slice).pack_lent(pixels))?;
    }
}
