//! Programs that hang, each in its own way: `hangs NAME`, run by `ci/hangs` with four ranks. The lines that somebody waits at end with
//! `//: NAME`, which is how the script knows them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mizzen::group::Sum;
use mizzen::{Deck, Mailbox, MailboxRef, Message, select};
use rustix::process::{Signal, getpid, kill_process};

/// Nobody waits for the script for longer than this: then the job ends, whatever it shows.
const LONGEST: Duration = Duration::from_secs(90);

fn main() -> Result<()> {
    let name = std::env::args().nth(1).context("usage: hangs NAME")?;
    let rank = std::env::var("MIZZEN_RANK").unwrap_or_default();
    if name == "unjoined" && rank == "3" {
        sleep();
    }
    let deck = Deck::join()?;
    std::thread::spawn(|| {
        sleep();
        std::process::exit(3);
    });
    match &name[..] {
        "late" => late(&deck),
        "asleep" => asleep(&deck),
        "stopped" => stopped(&deck),
        "stopped-by-tree" => stopped_by_tree(&deck),
        "unjoined" => unjoined(&deck),
        "never-sent" => never_sent(&deck),
        "two" => two(&deck),
        "four" => four(&deck),
        "other-group" => other_group(&deck),
        "call" => call(&deck),
        "service" => service(&deck),
        "calls" => calls(&deck),
        "full" => full(&deck),
        "both-full" => both_full(&deck),
        "long" => long(&deck),
        "lent" => lent(&deck),
        "name" => unbound(&deck),
        "anybody" => anybody(&deck),
        "several" => several(&deck),
        "posted" => posted(&deck),
        "thread" => thread(&deck),
        "finish" => finish(deck),
        "cable" => cable(&deck),
        "cable-barrier" => cable_barrier(&deck),
        "far-stopped" => far_stopped(&deck),
        _ => bail!("no hang is called {name}"),
    }
}

/// One rank comes late to a barrier: it computes.
fn late(deck: &Deck) -> Result<()> {
    deck.barrier()?;
    if deck.rank() == 3 {
        compute();
    }
    Ok(deck.barrier()?) //: late
}

/// One rank comes late: it sleeps.
fn asleep(deck: &Deck) -> Result<()> {
    let mut group = deck.group()?;
    if deck.rank() == 1 {
        sleep();
    }
    group.all_reduce_value(1_u64, Sum)?; //: asleep
    Ok(())
}

/// One rank is stopped by a signal.
fn stopped(deck: &Deck) -> Result<()> {
    deck.barrier()?;
    if deck.rank() == 2 {
        kill_process(getpid(), Signal::STOP)?;
    }
    Ok(deck.barrier()?) //: stopped
}

/// One rank is stopped by a signal, in an operation that goes by messages: others wait for those who wait for it.
fn stopped_by_tree(deck: &Deck) -> Result<()> {
    let mut group = deck.group()?;
    let mut data = vec![1_u64; 4096];
    group.all_reduce(&mut data, Sum)?;
    if deck.rank() == 0 {
        kill_process(getpid(), Signal::STOP)?;
    }
    group.all_reduce(&mut data, Sum)?; //: stopped-by-tree
    Ok(())
}

/// One rank never joins the job.
fn unjoined(deck: &Deck) -> Result<()> {
    Ok(deck.barrier()?) //: unjoined
}

/// A message that is waited for is never sent.
fn never_sent(deck: &Deck) -> Result<()> {
    let (inbox, _) = meet(deck)?;
    if deck.rank() == 1 {
        inbox.retrieve_from(0)?; //: never-sent
    }
    compute();
    Ok(())
}

/// Two wait for each other.
fn two(deck: &Deck) -> Result<()> {
    let (inbox, _) = meet(deck)?;
    match deck.rank().0 {
        0 => drop(inbox.retrieve_from(1)?), //: two-first
        1 => drop(inbox.retrieve_from(0)?), //: two-second
        _ => deck.barrier()?,               //: two-others
    }
    Ok(())
}

/// All wait in a ring.
fn four(deck: &Deck) -> Result<()> {
    let (inbox, _) = meet(deck)?;
    inbox.retrieve_from((deck.rank().0 + 1) % deck.size())?; //: four
    Ok(())
}

/// One rank is in an operation of another group.
fn other_group(deck: &Deck) -> Result<()> {
    let mut all = deck.group()?;
    let half = all.split(Some(deck.rank().0 / 2), 0)?;
    let mut half = half.context("a colour was given")?;
    all.barrier()?;
    if deck.rank() == 3 {
        half.barrier()?; //: other-group-half
    }
    Ok(all.barrier()?) //: other-group-all
}

/// A call is never answered.
fn call(deck: &Deck) -> Result<()> {
    let service = deck.serve("slow", |()| sleep());
    let _service = (deck.rank() == 1).then_some(service).transpose()?;
    deck.barrier()?;
    if deck.rank() == 0 {
        let mut slow = deck.client_at::<(), ()>(1, "slow")?;
        slow.call(&())?; //: call
    }
    Ok(deck.barrier()?) //: call-others
}

/// A call is never answered, because its service waits for a message.
fn service(deck: &Deck) -> Result<()> {
    let (inbox, _) = meet(deck)?;
    let inbox = Mutex::new(inbox);
    let wait = move |()| {
        let inbox = inbox.lock().expect("nobody panics");
        inbox.receive::<u64>().is_ok() //: service
    };
    let _service = deck.serve(&format!("wait {}", deck.rank()), wait)?;
    deck.barrier()?;
    if deck.rank() == 3 {
        let mut waiting = deck.client::<(), bool>("wait 2")?;
        waiting.call(&())?; //: service-caller
    }
    Ok(deck.barrier()?) //: service-others
}

/// Two ranks call each other, each holding what the other's call needs.
fn calls(deck: &Deck) -> Result<()> {
    let kept = Arc::new(Mutex::new(()));
    let needed = Arc::clone(&kept);
    let _service = deck.serve("both", move |()| {
        let _kept = needed.lock();
    })?;
    deck.barrier()?;
    if deck.rank() < 2 {
        let _kept = kept.lock();
        std::thread::sleep(Duration::from_millis(300));
        let mut other = deck.client_at::<(), ()>(1 - deck.rank().0, "both")?;
        other.call(&())?; //: calls
    }
    compute();
    Ok(())
}

/// Nobody reads what is posted.
fn full(deck: &Deck) -> Result<()> {
    let (_inbox, others) = meet(deck)?;
    if deck.rank() == 2 {
        loop {
            others[3].send(&[7_u64; 512])?; //: full
        }
    }
    compute();
    Ok(())
}

/// Two post to each other, and neither reads.
fn both_full(deck: &Deck) -> Result<()> {
    let (_inbox, others) = meet(deck)?;
    if deck.rank() < 2 {
        let other = &others[1 - deck.rank().0 as usize];
        loop {
            other.send(&[7_u64; 512])?; //: both-full
        }
    }
    sleep();
    Ok(())
}

/// A message that is longer than what may be unread goes to one who does not read it.
fn long(deck: &Deck) -> Result<()> {
    let (_inbox, others) = meet(deck)?;
    if deck.rank() == 0 {
        let data = vec![7_u64; 16 << 20];
        others[1].send(&data[..])?; //: long
    }
    sleep();
    Ok(())
}

/// All that may be lent is with one who does not give it back.
fn lent(deck: &Deck) -> Result<()> {
    let (inbox, others) = meet(deck)?;
    if deck.rank() == 0 {
        deck.set_lending_limit(1 << 20);
        let buffer = deck.lend::<u8>(1 << 20)?;
        others[2].post_lent(&0_u64, buffer)?;
        deck.lend::<u8>(1 << 20)?; //: lent
    }
    let _kept = match deck.rank().0 {
        2 => Some(inbox.receive_lent::<u64, u8>()?),
        _ => None,
    };
    compute();
    Ok(())
}

/// A name that nobody binds.
fn unbound(deck: &Deck) -> Result<()> {
    deck.barrier()?;
    if deck.rank() == 2 {
        deck.fetch("reslts")?; //: name
    }
    Ok(deck.barrier()?) //: name-others
}

/// One rank waits for a message of anybody, and nobody sends one.
fn anybody(deck: &Deck) -> Result<()> {
    let (inbox, _) = meet(deck)?;
    if deck.rank() == 1 {
        inbox.receive::<u64>()?; //: anybody
    }
    Ok(deck.barrier()?) //: anybody-others
}

/// One rank waits for two mailboxes.
fn several(deck: &Deck) -> Result<()> {
    let (mut first, _) = meet(deck)?;
    let mut second = deck.mailbox()?;
    if deck.rank() == 0 {
        select([&mut first, &mut second]).retrieve()?; //: several
    }
    let mut value = [7_u64; 4096];
    deck.group()?.broadcast(0, &mut value)?; //: several-others
    Ok(())
}

/// A receive that was posted, and in which nothing comes.
fn posted(deck: &Deck) -> Result<()> {
    let (inbox, _) = meet(deck)?;
    if deck.rank() == 3 {
        let mut receive = inbox.post_receive_from(2, vec![0_u64; 8])?;
        receive.wait()?; //: posted
    }
    sleep();
    Ok(())
}

/// Another thread than the first waits.
fn thread(deck: &Deck) -> Result<()> {
    let (inbox, _) = meet(deck)?;
    if deck.rank() == 2 {
        let read = move || inbox.retrieve_from(1).map(drop); //: thread
        let reader = std::thread::Builder::new().name("reader".to_owned());
        let joined = reader.spawn(read)?.join();
        joined.ok().context("the reader does not panic")??;
    }
    compute();
    Ok(())
}

/// One rank does not finish.
fn finish(deck: Deck) -> Result<()> {
    deck.barrier()?;
    if deck.rank() == 2 {
        compute();
    }
    Ok(deck.finish()?) //: finish
}

/// The cable between the hosts of two ranks is pulled while one waits for the other.
fn cable(deck: &Deck) -> Result<()> {
    let (inbox, others) = meet(deck)?;
    let me = deck.rank().0;
    if me == 0 || me == 3 {
        let other = 3 - me;
        for round in 0_u64.. {
            if me == 0 {
                others[other as usize].send(&round)?;
            }
            inbox.retrieve_from(other)?; //: cable
            if me == 3 {
                others[other as usize].send(&round)?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    sleep();
    Ok(())
}

/// The same in operations of all.
fn cable_barrier(deck: &Deck) -> Result<()> {
    loop {
        deck.barrier()?; //: cable-barrier
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A rank of another host is stopped.
fn far_stopped(deck: &Deck) -> Result<()> {
    let (inbox, others) = meet(deck)?;
    if deck.rank() == 3 {
        kill_process(getpid(), Signal::STOP)?;
    }
    if deck.rank() == 0 {
        others[3].send(&1_u64)?;
        inbox.retrieve_from(3)?; //: far-stopped
    }
    deck.barrier()?;
    Ok(())
}

/// A mailbox of this rank, and those of all: everybody is there when this returns.
fn meet(deck: &Deck) -> Result<(Mailbox, Vec<MailboxRef>)> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    let mut others = Vec::new();
    for rank in deck.ranks() {
        others.push(deck.fetch(&format!("inbox {rank}"))?);
    }
    // So that there is a way to each when something is cut.
    for other in &others {
        let mut message = Message::new();
        message.pack_safer(&0_u64);
        other.post(&mut message)?;
    }
    for _ in deck.ranks() {
        inbox.receive::<u64>()?;
    }
    deck.barrier()?;
    Ok((inbox, others))
}

fn sleep() {
    std::thread::sleep(LONGEST);
}

fn compute() {
    let begun = Instant::now();
    while begun.elapsed() < LONGEST {
        std::hint::spin_loop();
    }
}
