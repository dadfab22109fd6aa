//! Round trips of eight bytes, by the same calls: blocking, awaited on the workers of the process, and awaited in another runtime.

use std::time::Instant;

use anyhow::Result;
use mizzen::{Deck, Mailbox, Message, Sender};

/// How often each is measured, in turn.
const RUNS: usize = 15;
const ROUNDS: u64 = 20_000;
/// Another runtime's thread sleeps and is woken for each message, so fewer are enough.
const WOKEN_ROUNDS: u64 = 2_000;

/// Rank 0 asks, rank 1 answers.
pub(super) fn round_trips(deck: &Deck) -> Result<()> {
    let mut inbox = deck.mailbox()?;
    let me = deck.rank().0;
    deck.bind(&format!("round trips {me}"), &inbox)?;
    let other = deck.fetch(&format!("round trips {}", 1 - me))?;
    let mut sender = other.sender()?;
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..RUNS {
        let started = Instant::now();
        for round in 0..ROUNDS {
            block(me == 0, round, &mut sender, &inbox)?;
        }
        times[0].push(started.elapsed().as_nanos() as u64 / ROUNDS);
        let started = Instant::now();
        let task = deck.spawn_async(async move {
            let (mut sender, mut inbox) = (sender, inbox);
            for round in 0..ROUNDS {
                wait(me == 0, round, &mut sender, &mut inbox).await?;
            }
            Ok::<_, mizzen::Error>((sender, inbox))
        });
        (sender, inbox) = task.join()??;
        times[1].push(started.elapsed().as_nanos() as u64 / ROUNDS);
        let started = Instant::now();
        smol::block_on(async {
            for round in 0..WOKEN_ROUNDS {
                wait(me == 0, round, &mut sender, &mut inbox).await?;
            }
            Ok::<_, mizzen::Error>(())
        })?;
        times[2].push(started.elapsed().as_nanos() as u64 / WOKEN_ROUNDS);
    }
    if me == 0 {
        let ratio = |run: usize| times[1][run] as f64 / times[0][run] as f64;
        let mut ratios: Vec<f64> = (0..RUNS).map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        times.iter_mut().for_each(|times| times.sort_unstable());
        let [blocking, ours, foreign] = times.map(|times| times[RUNS / 2]);
        println!(
            "a round trip of 8 B: {blocking} ns blocking, {ours} ns awaited by a task of the deck: {:.2} times as long \
             ({:.2} to {:.2} in the middle half of {RUNS} runs); {foreign} ns in another runtime, whose thread sleeps",
            ratios[RUNS / 2],
            ratios[RUNS / 4],
            ratios[RUNS * 3 / 4],
        );
    }
    Ok(())
}

fn question(round: u64) -> Message<'static> {
    let mut message = Message::new();
    message.pack_safer(&round);
    message
}

fn block(asks: bool, round: u64, sender: &mut Sender, inbox: &Mailbox) -> mizzen::Result<()> {
    if asks {
        sender.post(&mut question(round))?;
    }
    let heard = inbox.retrieve()?.unpack_express::<u64>()?;
    if !asks {
        sender.post(&mut question(heard))?;
    }
    assert_eq!(heard, round, "answers come in order");
    Ok(())
}

async fn wait(
    asks: bool,
    round: u64,
    sender: &mut Sender,
    inbox: &mut Mailbox,
) -> mizzen::Result<()> {
    if asks {
        sender.post_async(question(round)).await?;
    }
    let heard = inbox.retrieve_async().await?.unpack_express::<u64>()?;
    if !asks {
        sender.post_async(question(heard)).await?;
    }
    assert_eq!(heard, round, "answers come in order");
    Ok(())
}
