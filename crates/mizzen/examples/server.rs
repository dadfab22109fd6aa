//! A server on tokio: rank 0 adds up what the others send, reports now and then, and ends when all have said so.
//!
//! `mizzen run -n 4 -- target/release/examples/server`

use std::time::Duration;

use mizzen::{Deck, Mailbox, Result};

const REQUESTS: u64 = 1_000;

fn main() -> Result<()> {
    let deck = Deck::join()?;
    if deck.rank() != 0 {
        let requests = deck.fetch("requests")?;
        (0..REQUESTS).try_for_each(|number| requests.send(&number))?;
        return deck.fetch("done")?.send(&deck.rank().0);
    }
    let (requests, done) = (deck.mailbox()?, deck.mailbox()?);
    deck.bind("requests", &requests)?;
    deck.bind("done", &done)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let clients = u64::from(deck.size() - 1);
    let sum = runtime
        .expect("tokio starts")
        .block_on(serve(requests, done, clients))?;
    println!("{clients} clients, {sum} in all");
    Ok(())
}

async fn serve(mut requests: Mailbox, mut done: Mailbox, clients: u64) -> Result<u64> {
    let mut report = tokio::time::interval(Duration::from_millis(100));
    let (mut count, mut sum, mut ended) = (0, 0, 0);
    while count < clients * REQUESTS || ended < clients {
        // What is dropped here loses nothing.
        tokio::select! {
            request = requests.retrieve_async() => {
                sum += request?.unpack_express::<u64>()?;
                count += 1;
            }
            client = done.retrieve_async() => {
                println!("rank {} is done", client?.unpack_express::<u32>()?);
                ended += 1;
            }
            _ = report.tick() => println!("{count} requests so far"),
        }
    }
    Ok(sum)
}
