//! Long messages: how much memory they take, and what becomes of them if their sender is killed while it writes them.

#[path = "../../ofi/tests/common/skip.rs"]
mod skip;

use std::process::{Command, Stdio};

use mizzen::{Deck, Mailbox, Message, Result, UnpackError};
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

/// Each rank on a host of its own, with a network between them.
fn between_hosts(file: &str) -> [String; 6] {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/networks");
    let file = format!("{folder}/{file}");
    let hosts = "h0=127.0.0.1,h1=127.0.0.1";
    ["--hosts", hosts, "--remote-shell", "env", "--file", &file].map(String::from)
}

/// Starts the test of this name again as both ranks of a job. They say "as expected".
fn run(test: &str, length: usize, options: &[String]) {
    run_with(test, length, options, &[]);
}

/// The same, with something in their environment.
fn run_with(test: &str, length: usize, options: &[String], with: &[(&str, &str)]) {
    let output = Command::new(env!("CARGO_BIN_EXE_mizzen"))
        .args(["run", "--no-label", "-n", "2", "--on-death", "continue"])
        .args(options)
        .arg("--")
        .arg(std::env::current_exe().expect("this program has a path"))
        .args([test, "--nocapture", "--include-ignored"])
        .env(LENGTH, length.to_string())
        .envs(with.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the launcher starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(
        output.status.success() || with.is_empty(),
        "{said}{complained}"
    );
    assert!(said.contains("as expected"), "{length}: {said}{complained}");
}

/// Is a rank, if the launcher started this process.
fn be_a_rank(body: fn(&Deck, usize) -> Result<()>) {
    if std::env::var_os("MIZZEN_AGENT_FD").is_some() {
        let outcome = Deck::join().and_then(|deck| body(&deck, number_of(LENGTH)));
        std::process::exit(outcome.map_or(1, |()| 0));
    }
}

/// A number that the test has put into the environment.
fn number_of(name: &str) -> usize {
    let text = std::env::var(name).expect("the test says it");
    text.parse().expect("a number")
}

#[test]
fn a_message_whose_sender_is_killed_is_whole_or_an_error() {
    be_a_rank(rank);
    for length in LENGTHS {
        run("a_message_whose_sender_is_killed", length, &[]);
    }
}

/// Pieces of one message, all of them in the same memory at either side: what else there is belongs to the path.
fn pieces(deck: &Deck, length: usize) -> Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    let library = match std::env::var_os(LIBRARY) {
        Some(_) => memory_of_library(deck, &inbox)?,
        None => 0,
    };
    let size = number_of(PIECE);
    let (count, words) = (length / size, size / 8);
    // Each piece begins a word later, so that none is taken for another.
    let most = words + count.min(SHIFTS);
    let mut memory = vec![0u64; most];
    if deck.rank() == 1 {
        let numbers = memory.iter_mut().zip(0..);
        numbers.for_each(|(word, at)| *word = number(at));
        let mut message = Message::new();
        for piece in 0..count {
            message.pack_cheaper(&memory[piece % SHIFTS..][..words]);
        }
        deck.fetch("inbox 0")?.post(&mut message)?;
    } else {
        let mut incoming = inbox.retrieve()?;
        for number_of_piece in 0..count {
            let piece = &mut memory[..words];
            piece.fill(0);
            incoming.unpack_express_into(piece)?;
            let first = (number_of_piece % SHIFTS) as u64;
            let is_right = |(came, at): (&u64, u64)| *came == number(at);
            assert!(piece.iter().zip(first..).all(is_right));
        }
        let again = incoming.reset();
        assert!(again.is_err_and(|error| error.to_string().contains("longer")));
        println!("as expected");
    }
    let peak = peak_memory();
    let ours = peak.saturating_sub(most * 8 + library);
    println!(
        "rank {}: {} KiB, of which {} KiB are not the program's, nor the {} KiB of a library; arena {} KiB",
        deck.rank(),
        peak >> 10,
        ours >> 10,
        library >> 10,
        deck.arena_bytes() >> 10
    );
    assert!(deck.arena_bytes() <= 64 << 20);
    if std::env::var_os(BOUNDED).is_some() {
        assert!(ours <= 64 << 20, "{} KiB", ours >> 10);
    }
    Ok(())
}

/// A network's library has memory of its own, which it takes when it first needs it, and which is the same for messages of any
/// length: what there is after one that is ten times shorter than the shortest here.
fn memory_of_library(deck: &Deck, inbox: &Mailbox) -> Result<usize> {
    let other = deck.fetch(&format!("inbox {}", 1 - deck.rank().0))?;
    let bytes = vec![1u8; 24 << 20];
    deck.scope(|scope| {
        let mut message = Message::new();
        message.pack_cheaper(&bytes[..]);
        let posted = scope.post(&other, message);
        inbox.receive_vec::<u8>()?;
        posted.wait()
    })?;
    Ok(peak_memory().saturating_sub(2 * bytes.len()))
}

/// The most memory that this process ever had, in bytes.
fn peak_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux says so");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
    let kib: usize = kib
        .and_then(|kib| kib.trim().parse().ok())
        .expect("a number");
    kib << 10
}

fn number(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// How long a piece is.
const PIECE: &str = "MIZZEN_TEST_PIECE";
/// Whether a side may have at most 64 MiB that are not its program's.
const BOUNDED: &str = "MIZZEN_TEST_BOUNDED";
/// Whether the memory of a network's library is not counted.
const LIBRARY: &str = "MIZZEN_TEST_LIBRARY";
/// How many pieces differ from each other.
const SHIFTS: usize = 1024;

#[test]
#[ignore = "moves 3 GiB; run it alone, to see how much memory that takes"]
fn three_gibibytes_go_through_little_memory() {
    be_a_rank(pieces);
    let test = "three_gibibytes_go_through_little_memory";
    run_with(test, 3 << 30, &[], &[(PIECE, "16777216")]);
}

#[test]
#[ignore = "moves 3 GiB over TCP, twice"]
fn three_gibibytes_go_between_hosts() {
    be_a_rank(pieces);
    let test = "three_gibibytes_go_between_hosts";
    for piece in ["16777216", "65536"] {
        let with = [(PIECE, piece), (BOUNDED, "yes")];
        run_with(test, 3 << 30, &between_hosts("tcp.toml"), &with);
    }
}

/// Long pieces go straight into their reader's memory; short ones, more of them than a driver takes at once, do not.
fn a_quarter_of_a_gibibyte(test: &str, file: &str, counted: &str) {
    be_a_rank(pieces);
    for piece in ["16777216", "65536"] {
        let with = [(PIECE, piece), (BOUNDED, "yes"), (counted, "yes")];
        run_with(test, 256 << 20, &between_hosts(file), &with);
    }
}

#[test]
fn a_long_message_over_tcp_takes_little_memory() {
    let test = "a_long_message_over_tcp_takes_little_memory";
    a_quarter_of_a_gibibyte(test, "tcp.toml", BOUNDED);
}

#[test]
fn a_long_message_over_tls_takes_little_memory() {
    let test = "a_long_message_over_tls_takes_little_memory";
    a_quarter_of_a_gibibyte(test, "tls.toml", BOUNDED);
}

#[test]
fn a_long_message_over_libfabric_takes_little_memory() {
    match mizzen_ofi::providers() {
        Ok(_) => {
            let test = "a_long_message_over_libfabric_takes_little_memory";
            a_quarter_of_a_gibibyte(test, "ofi.toml", LIBRARY);
        }
        Err(why) => skip::skip(&why),
    }
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
        &between_hosts("tcp.toml"),
    );
}
