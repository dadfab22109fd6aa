//! Long messages whose sender is killed while it writes them.

use std::process::{Command, Stdio};

use mizzen::{Deck, Message, Result, UnpackError};
use rustix::process::{Pid, Signal, kill_process};

/// Read whole.
const FIRST: usize = 4 << 20;
/// One that takes its sender tens of milliseconds to write, and one that cannot be written to its end before it is read.
const LENGTHS: [usize; 2] = [60 << 20, 200 << 20];
const LENGTH: &str = "MIZZEN_TEST_LENGTH";

fn rank(deck: &Deck, length: usize) -> Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    if deck.rank() == 1 {
        let mut sender = deck.fetch("inbox 0")?.sender()?;
        sender.send(&std::process::id())?;
        for len in [FIRST, length] {
            sender.send(&vec![7u8; len][..])?;
        }
        return Ok(());
    }
    let pid = Pid::from_raw(inbox.receive()?).expect("a process number");
    let whole = inbox.receive_vec::<u8>()?;
    assert!(whole.len() == FIRST && whole.iter().all(|byte| *byte == 7));
    let mut target = vec![0u8; length];
    let mut half = inbox.retrieve()?;
    kill_process(pid, Signal::KILL).expect("it is there");
    half.unpack_cheaper(&mut target[..])?;
    let outcome = half.finish();
    assert!(
        matches!(
            outcome,
            Err(mizzen::Error::Unpack(UnpackError::PeerGone(_)))
        ),
        "{outcome:?}"
    );
    assert!(matches!(inbox.retrieve(), Err(error) if error.to_string().contains("rank 1")));
    println!("as expected");
    Ok(())
}

/// Each rank on a host of its own, with TCP between them.
const BETWEEN_HOSTS: [&str; 6] = [
    "--hosts",
    "h0=127.0.0.1,h1=127.0.0.1",
    "--remote-shell",
    "env",
    "--file",
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/networks/tcp.toml"),
];

/// Starts the test of this name again as both ranks of a job. They say "as expected".
fn run(test: &str, length: usize, options: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_mizzen"))
        .args(["run", "--no-label", "-n", "2", "--on-death", "continue"])
        .args(options)
        .arg("--")
        .arg(std::env::current_exe().expect("this program has a path"))
        .args([test, "--nocapture", "--include-ignored"])
        .env(LENGTH, length.to_string())
        .stdin(Stdio::null())
        .output()
        .expect("the launcher starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(said.contains("as expected"), "{length}: {said}{complained}");
}

/// Is a rank, if the launcher started this process.
fn be_a_rank(body: fn(&Deck, usize) -> Result<()>) {
    if std::env::var_os("MIZZEN_AGENT_FD").is_some() {
        let length = std::env::var(LENGTH).ok();
        let length = length.and_then(|text| text.parse().ok());
        let length = length.expect("the test says how long the message is");
        let outcome = Deck::join().and_then(|deck| body(&deck, length));
        std::process::exit(outcome.map_or(1, |()| 0));
    }
}

#[test]
fn a_message_whose_sender_is_killed_is_whole_or_an_error() {
    be_a_rank(rank);
    for length in LENGTHS {
        run("a_message_whose_sender_is_killed", length, &[]);
    }
}

/// Pieces of one message, all of them the same memory at either side: what else there is belongs to the path.
fn pieces(deck: &Deck, length: usize) -> Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    if deck.rank() == 1 {
        let piece: Vec<u64> = (0..PIECE as u64 / 8).map(number).collect();
        let mut message = Message::new();
        for _ in 0..length / PIECE {
            message.pack_cheaper(&piece[..]);
        }
        deck.fetch("inbox 0")?.post(&mut message)?;
    } else {
        let mut incoming = inbox.retrieve()?;
        let mut piece = vec![0u64; PIECE / 8];
        for _ in 0..length / PIECE {
            piece.fill(0);
            incoming.unpack_express_into(&mut piece[..])?;
            let is_right = |(came, at): (&u64, u64)| *came == number(at);
            assert!(piece.iter().zip(0..).all(is_right));
        }
        println!("as expected");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let told = ["VmHWM", "RssShmem"];
    let lines = status.lines();
    let memory: Vec<&str> = lines
        .filter(|line| told.iter().any(|name| line.starts_with(name)))
        .collect();
    println!(
        "rank {}: {}; arena {} KiB",
        deck.rank(),
        memory.join("; "),
        deck.arena_bytes() >> 10
    );
    assert!(deck.arena_bytes() <= 64 << 20);
    Ok(())
}

fn number(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Each side has 16 MiB of its own.
const PIECE: usize = 16 << 20;

#[test]
#[ignore = "moves 3 GiB; run it alone, to see how much memory that takes"]
fn three_gibibytes_go_through_little_memory() {
    be_a_rank(pieces);
    run("three_gibibytes_go_through_little_memory", 3 << 30, &[]);
}

#[test]
#[ignore = "moves 3 GiB over TCP; the receiver holds all of it, and says so"]
fn three_gibibytes_go_between_hosts() {
    be_a_rank(pieces);
    run("three_gibibytes_go_between_hosts", 3 << 30, &BETWEEN_HOSTS);
}

/// Both ranks post to each other first, in a scope, and read then.
fn crossing(deck: &Deck, length: usize) -> Result<()> {
    let me = deck.rank().0;
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {me}"), &inbox)?;
    let other = deck.fetch(&format!("inbox {}", 1 - me))?;
    let mine: Vec<u64> = (0..length as u64 / 8).map(number).collect();
    let mut theirs = vec![0u64; length / 8];
    deck.scope(|scope| {
        let mut message = Message::new();
        message.pack_cheaper(&mine[..]);
        let posted = scope.post(&other, message);
        let mut incoming = inbox.retrieve()?;
        incoming.unpack_cheaper(&mut theirs[..])?;
        incoming.finish()?;
        posted.wait()
    })?;
    assert!(theirs == mine);
    assert!(deck.arena_bytes() <= 64 << 20);
    if me == 0 {
        println!("as expected");
    }
    Ok(())
}

#[test]
#[ignore = "moves 2 GiB through the memory of one host; takes 4 GiB"]
fn a_gibibyte_crosses_another_in_a_scope() {
    be_a_rank(crossing);
    run("a_gibibyte_crosses_another_in_a_scope", 1 << 30, &[]);
}

#[test]
#[ignore = "moves 2 GiB over TCP; takes 4 GiB"]
fn a_gibibyte_crosses_another_between_hosts() {
    be_a_rank(crossing);
    run(
        "a_gibibyte_crosses_another_between_hosts",
        1 << 30,
        &BETWEEN_HOSTS,
    );
}
