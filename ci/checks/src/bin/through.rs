//! What a gateway costs: `through ROUNDS RELAY SINK`, on three ranks in a row of which the first and the last share no network.
//!
//! In each round the times of both links and of the way through the gateway are taken, in turn: so that what disturbs one disturbs all. Beside them, the same
//! bytes through a bare relay, which reads and writes 64 KiB at a time on rank 1 (listening at RELAY; rank 2 at SINK), and stored and forwarded: rank 1
//! takes whole messages and sends them on. Prints medians, and what they are of each other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use mizzen::{Deck, Mailbox, MailboxRef};

/// The long message, and how many of them make a measurement.
const LONG: usize = 64 << 20;
const MESSAGES: usize = 4;
/// What the bare relay reads and writes at a time.
const PIECE: usize = 64 << 10;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rounds, relay, sink] = &arguments[..] else {
        anyhow::bail!("through ROUNDS RELAY SINK");
    };
    let deck = Deck::join()?;
    ensure!(deck.size() == 3, "three ranks in a row");
    let bare = Bare::listen(&deck, relay, sink)?;
    let mut place = Place::find(&deck)?;
    let mut taken: Vec<(&str, Vec<f64>)> = Vec::new();
    for _ in 0..rounds.parse::<usize>()? {
        for (name, what) in MEASURES {
            let figure = place.measure(what, &bare)?;
            match taken.iter_mut().find(|(known, _)| *known == name) {
                Some((_, figures)) => figures.push(figure),
                None => taken.push((name, vec![figure])),
            }
        }
    }
    if deck.rank() == 0 {
        report(&mut taken);
    }
    deck.finish()?;
    Ok(())
}

/// What is measured.
#[derive(Clone, Copy)]
enum What {
    /// One way, in microseconds: between two ranks, so many bytes, so many times.
    Latency(u32, u32, usize, usize),
    /// Gigabits a second: between two ranks.
    Rate(u32, u32),
    /// The same from 0 to 2, stored at 1 and sent on.
    Stored,
    /// The same through the bare relay.
    Bare,
}

const MEASURES: [(&str, What); 11] = [
    ("8 B, left", What::Latency(0, 1, 8, 300)),
    ("8 B, right", What::Latency(1, 2, 8, 300)),
    ("8 B, through", What::Latency(0, 2, 8, 300)),
    ("64 KiB, left", What::Latency(0, 1, 65_000, 100)),
    ("64 KiB, right", What::Latency(1, 2, 65_000, 100)),
    ("64 KiB, through", What::Latency(0, 2, 65_000, 100)),
    ("64 MiB, left", What::Rate(0, 1)),
    ("64 MiB, right", What::Rate(1, 2)),
    ("64 MiB, through", What::Rate(0, 2)),
    ("64 MiB, stored", What::Stored),
    ("64 MiB, bare relay", What::Bare),
];

fn report(taken: &mut [(&str, Vec<f64>)]) {
    for (name, figures) in taken.iter_mut() {
        figures.sort_by(f64::total_cmp);
        let at = |part: usize| figures[(figures.len() - 1) * part / 4];
        let unit = if name.starts_with("64 MiB") {
            "Gbit/s"
        } else {
            "us"
        };
        println!(
            "{name:>18}: {:9.2} {unit} ({:.2} to {:.2})",
            at(2),
            at(1),
            at(3)
        );
    }
    let of = |name: &str| {
        let found = taken.iter().find(|(known, _)| *known == name);
        found.map_or(f64::NAN, |(_, figures)| figures[(figures.len() - 1) / 2])
    };
    for size in ["8 B", "64 KiB"] {
        let sum = of(&format!("{size}, left")) + of(&format!("{size}, right"));
        println!(
            "{size} through the gateway: {:.2} of both links",
            of(&format!("{size}, through")) / sum
        );
    }
    let slower = of("64 MiB, left").min(of("64 MiB, right"));
    let through = of("64 MiB, through");
    println!(
        "64 MiB through the gateway: {:.2} of the slower link, {:.2} of a bare relay, {:.2} of stored and forwarded",
        through / slower,
        through / of("64 MiB, bare relay"),
        through / of("64 MiB, stored")
    );
}

/// The sockets of the bare relay.
struct Bare {
    listener: Option<TcpListener>,
    relay: String,
    sink: String,
}

impl Bare {
    fn listen(deck: &Deck, relay: &str, sink: &str) -> Result<Self> {
        let at = match deck.rank().0 {
            1 => Some(relay),
            2 => Some(sink),
            _ => None,
        };
        let listener = at.map(TcpListener::bind).transpose()?;
        Ok(Self {
            listener,
            relay: relay.into(),
            sink: sink.into(),
        })
    }

    fn accept(&self) -> Result<TcpStream> {
        let listener = self.listener.as_ref().context("a rank that listens")?;
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

struct Place {
    rank: u32,
    inbox: Mailbox,
    others: Vec<MailboxRef>,
    /// Where all meet before each measurement.
    gate: Mailbox,
    gates: Vec<MailboxRef>,
    memory: Vec<u8>,
}

impl Place {
    fn find(deck: &Deck) -> Result<Self> {
        let rank = deck.rank().0;
        let (inbox, gate) = (deck.mailbox()?, deck.mailbox()?);
        deck.bind(&format!("rank {rank}"), &inbox)?;
        deck.bind(&format!("gate {rank}"), &gate)?;
        let others = (0..3).map(|other| deck.fetch(&format!("rank {other}")));
        let gates = (0..3).map(|other| deck.fetch(&format!("gate {other}")));
        Ok(Self {
            rank,
            others: others.collect::<Result<_, _>>()?,
            inbox,
            gates: gates.collect::<Result<_, _>>()?,
            gate,
            // Touched before the clock starts.
            memory: vec![1; LONG],
        })
    }

    /// One measurement, on all ranks; the figure is rank 0's to know.
    fn measure(&mut self, what: What, bare: &Bare) -> Result<f64> {
        let (from, to) = match what {
            What::Latency(from, to, ..) | What::Rate(from, to) => (from, to),
            What::Stored | What::Bare => (0, 2),
        };
        self.meet()?;
        let figure = match what {
            What::Latency(_, _, size, times) => self.latency(from, to, size, times)?,
            What::Rate(..) => self.rate(from, to)?,
            What::Stored => self.stored()?,
            What::Bare => self.bare(bare)?,
        };
        // Rank 0 prints.
        match (from, self.rank) {
            (0, _) => Ok(figure),
            (_, rank) if rank == from => {
                self.others[0].send(&figure)?;
                Ok(figure)
            }
            (_, 0) => Ok(self.inbox.receive()?),
            _ => Ok(figure),
        }
    }

    /// All three are here.
    fn meet(&mut self) -> Result<()> {
        if self.rank == 0 {
            self.gate.receive::<u8>()?;
            self.gate.receive::<u8>()?;
            self.gates[1].send(&0_u8)?;
            self.gates[2].send(&0_u8)?;
        } else {
            self.gates[0].send(&0_u8)?;
            self.gate.receive::<u8>()?;
        }
        // What the others have left to do for that is done.
        std::thread::sleep(Duration::from_millis(2));
        Ok(())
    }

    fn latency(&mut self, from: u32, to: u32, size: usize, times: usize) -> Result<f64> {
        let start = Instant::now();
        for _ in 0..times {
            if self.rank == from {
                self.others[to as usize].send(&self.memory[..size])?;
                self.take(size)?;
            } else if self.rank == to {
                self.take(size)?;
                self.others[from as usize].send(&self.memory[..size])?;
            }
        }
        Ok(start.elapsed().as_secs_f64() * 1e6 / times as f64 / 2.0)
    }

    fn rate(&mut self, from: u32, to: u32) -> Result<f64> {
        let start = Instant::now();
        if self.rank == from {
            for _ in 0..MESSAGES {
                self.others[to as usize].send(&self.memory[..])?;
            }
            self.inbox.receive::<u8>()?;
        } else if self.rank == to {
            self.take_all()?;
            self.others[from as usize].send(&0_u8)?;
        }
        Ok(gigabits(start))
    }

    fn stored(&mut self) -> Result<f64> {
        let start = Instant::now();
        match self.rank {
            0 => {
                for _ in 0..MESSAGES {
                    self.others[1].send(&self.memory[..])?;
                }
                self.inbox.receive::<u8>()?;
            }
            1 => {
                for _ in 0..MESSAGES {
                    self.take(LONG)?;
                    self.others[2].send(&self.memory[..])?;
                }
            }
            _ => {
                self.take_all()?;
                self.others[0].send(&0_u8)?;
            }
        }
        Ok(gigabits(start))
    }

    fn bare(&mut self, bare: &Bare) -> Result<f64> {
        let start = Instant::now();
        match self.rank {
            0 => {
                let mut stream = TcpStream::connect(&bare.relay)?;
                for _ in 0..MESSAGES {
                    stream.write_all(&self.memory)?;
                }
                self.inbox.receive::<u8>()?;
            }
            1 => {
                let mut from = bare.accept()?;
                let mut to = TcpStream::connect(&bare.sink)?;
                let mut piece = vec![0; PIECE];
                loop {
                    let length = from.read(&mut piece)?;
                    if length == 0 {
                        break;
                    }
                    to.write_all(&piece[..length])?;
                }
            }
            _ => {
                let mut stream = bare.accept()?;
                for _ in 0..MESSAGES {
                    stream.read_exact(&mut self.memory)?;
                }
                self.others[0].send(&0_u8)?;
            }
        }
        Ok(gigabits(start))
    }

    fn take(&mut self, size: usize) -> Result<()> {
        let mut message = self.inbox.retrieve()?;
        message.unpack_express_into(&mut self.memory[..size])?;
        message.finish()?;
        Ok(())
    }

    fn take_all(&mut self) -> Result<()> {
        (0..MESSAGES).try_for_each(|_| self.take(LONG))
    }
}

fn gigabits(start: Instant) -> f64 {
    (MESSAGES * LONG * 8) as f64 / 1e9 / start.elapsed().as_secs_f64()
}
