//! Every member of a channel sends every other one messages of several lengths, each checked: `channels MESSAGES [CHANNEL …]`, on the channels that are named, or
//! on all that a process is on. At last every other member sends some more and leaves at once: those must come, too. The program is the same whatever networks
//! there are.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use mizzen::group::Sum;
use mizzen::{Channel, Deck, Mailbox, Rank, Topology};

/// Short ones, of one frame, pushed, and offered.
const LENGTHS: [usize; 4] = [8, 5_000, 300_000, 3_000_000];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let messages: u64 = arguments.next().context("how many messages?")?.parse()?;
    let deck = Deck::join()?;
    let asked: Vec<String> = arguments.collect();
    let mut own = deck.channels();
    own.retain(|name| asked.is_empty() || asked.contains(name));
    let mut came = 0;
    for name in &own {
        let channel = deck.channel(name)?;
        came += exchange(&deck, &channel, messages).with_context(|| format!("on {name}"))?;
    }
    let (rank, host) = (deck.rank(), deck.host());
    let topology = deck.topology()?;
    let here = topology.host_of(rank).context("it is somewhere")?;
    ensure!(
        here.name == host && here.contains(rank),
        "it is told to be elsewhere"
    );
    let everybody: usize = topology
        .hosts()
        .iter()
        .map(|host| host.ranks().count())
        .sum();
    ensure!(everybody == deck.size() as usize, "all are somewhere");
    let cheapest = deck
        .ranks()
        .map(|other| topology.cheapest_channel(other).unwrap_or("none"));
    let cheapest: Vec<&str> = cheapest.collect();
    println!(
        "rank {rank} in cluster {}: cheapest {}",
        here.cluster,
        cheapest.join(", ")
    );
    boards(&deck, &topology).context("of boards of clusters")?;
    // Groups go over the default channel, and find out first how fast it is: on the others, nothing of that may be carried.
    if own.iter().any(|name| name == "default") {
        together(&deck).context("in groups")?;
    }
    let mut inboxes = Vec::new();
    for name in &own {
        let channel = deck.channel(name)?;
        let inbox = channel.mailbox()?;
        deck.bind(&format!("last words on {name} to {rank}"), &inbox)?;
        inboxes.push((channel, inbox));
    }
    for (channel, inbox) in &inboxes {
        came += last_words(&deck, channel, inbox)?;
    }
    println!(
        "rank {rank} on {host}: {came} messages came whole and in order on {}",
        own.join(", ")
    );
    Ok(())
}

/// All do something together: everybody, those of a cluster, and those on each channel.
fn together(deck: &Deck) -> Result<()> {
    let mut all = deck.group()?;
    let sum = all.all_reduce_value(u64::from(deck.rank()) + 1, Sum)?;
    let size = u64::from(deck.size());
    ensure!(sum == size * (size + 1) / 2, "all came to {sum}");
    let mut data = vec![deck.rank().0; 100_000];
    all.broadcast(size as u32 - 1, &mut data)?;
    ensure!(
        data.iter().all(|rank| u64::from(*rank) == size - 1),
        "a wrong broadcast"
    );
    let mut near = all.by_cluster()?;
    let ranks = near.all_gather(&[deck.rank().0])?;
    ensure!(
        ranks[near.member().index()] == [deck.rank().0],
        "a wrong place"
    );
    // All ask for the same channels in the same order, whether they are on them or not.
    let names: Vec<String> = all.broadcast_value(0, Some(deck.channels()))?;
    for name in &names {
        let Some(mut group) = all.on_channel(name)? else {
            continue;
        };
        let members = group.all_reduce_value(1, Sum)?;
        ensure!(members == group.size(), "{members} members on {name}");
    }
    Ok(())
}

/// Each cluster has a board under the same name, kept by its first rank. Everybody writes on all of them, and nobody takes another cluster's name.
fn boards(deck: &Deck, topology: &Topology) -> Result<()> {
    let (me, mine) = (deck.rank(), topology.my_cluster());
    let first = deck.ranks().find(|rank| topology.is_in_my_cluster(*rank));
    let board = deck.mailbox()?;
    if first == Some(me) {
        deck.bind(&format!("{mine}:board"), &board)?;
    }
    for cluster in topology.clusters() {
        let name = format!("{cluster}:board");
        if cluster != mine {
            let refused = deck.bind(&name, &board);
            ensure!(refused.is_err(), "{name} was bound from {mine}");
        }
        let kept = topology
            .hosts()
            .iter()
            .filter(|host| host.cluster == cluster);
        if kept.flat_map(|host| host.ranks()).next().is_some() {
            deck.fetch(&name)?.send(&me.0)?;
        }
    }
    if first == Some(me) {
        for rank in deck.ranks() {
            ensure!(
                board.retrieve_from(rank)?.unpack_express::<u32>()? == rank.0,
                "a wrong rank"
            );
        }
        println!("{mine}:board heard of all {} ranks", deck.size());
    }
    Ok(())
}

/// Every other member sends the next one something, as its last words; that one takes its time.
fn last_words(deck: &Deck, channel: &Channel, inbox: &Mailbox) -> Result<u64> {
    let members: Vec<Rank> = channel.members().collect();
    let place = members.iter().position(|member| *member == deck.rank());
    let place = place.context("a member")?;
    let (name, me) = (channel.name(), deck.rank());
    if place % 2 == 0 {
        if let Some(next) = members.get(place + 1) {
            let address = deck.fetch(&format!("last words on {name} to {next}"))?;
            for number in 0..LAST {
                address.send(&contents(me, 4 * number + 1)[..])?;
            }
        }
        return Ok(0);
    }
    let before = members[place - 1];
    for number in 0..LAST {
        std::thread::sleep(Duration::from_millis(1));
        let came = inbox.retrieve_from(before)?.unpack_vec::<u8>()?;
        ensure!(
            came == contents(before, 4 * number + 1),
            "of the last words of rank {before} on {name}, number {number} is lost, out of order or torn"
        );
    }
    Ok(LAST)
}

/// How many last words there are: more than is under way at a time.
const LAST: u64 = 400;

/// How many messages came to this member.
fn exchange(deck: &Deck, channel: &Channel, messages: u64) -> Result<u64> {
    let name = |rank: Rank| format!("{} of {rank}", channel.name());
    let me = deck.rank();
    ensure!(
        channel.contains(me),
        "a channel that it is on has it as a member"
    );
    let inbox = channel.mailbox()?;
    deck.bind(&name(me), &inbox)?;
    let others: Vec<Rank> = channel.members().filter(|rank| *rank != me).collect();
    let mut senders = Vec::new();
    for rank in &others {
        senders.push(deck.fetch(&name(*rank))?.sender()?);
    }
    for number in 0..messages {
        for sender in &mut senders {
            sender.send(&contents(me, number)[..])?;
        }
        take(&inbox, number, &others)?;
    }
    Ok(messages * others.len() as u64)
}

/// Takes the next message of each of the others.
fn take(inbox: &Mailbox, number: u64, others: &[Rank]) -> Result<()> {
    for rank in others {
        let came = inbox.retrieve_from(*rank)?.unpack_vec::<u8>()?;
        ensure!(
            came == contents(*rank, number),
            "message {number} of rank {rank} is lost, out of order or torn"
        );
    }
    Ok(())
}

/// What a rank's message with this number holds.
fn contents(rank: Rank, number: u64) -> Vec<u8> {
    let length = LENGTHS[number as usize % LENGTHS.len()];
    let seed = number.wrapping_mul(31).wrapping_add(u64::from(rank.0));
    (0..length as u64)
        .map(|at| (at.wrapping_mul(7) ^ seed) as u8)
        .collect()
}
