//! Attackers that come a thousand times: what they cost is bounded, and those who are linked hardly notice.

use std::io::IoSlice;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_driver::{Driver, PeerId};
use mizzen_tcp::Records::Sealed;
use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::{ConnectionTrafficSecrets, ContentType, ProtocolVersion};

use crate::bench::{Bench, DIALLER, ME, OTHER, Other, frame, hello};
use crate::common::Job;
use crate::pair::TAMPERED;

const FLOOD: usize = 1000;
const MAX_STRANGERS: usize = 256;

/// Two that are linked without anybody in between.
struct Linked {
    a: Bench,
    b: Bench,
}

impl Linked {
    fn new() -> Self {
        let job = Arc::new(Job::new([7; 16]));
        let patient =
            |options: mizzen_tcp::TcpOptions| options.hello_patience(Duration::from_secs(60));
        let mut a = Bench::of(&job, ME, Sealed, patient);
        let mut b = Bench::of(&job, OTHER, Sealed, patient);
        a.driver.connect(OTHER, b.driver.locator()).unwrap();
        while a.seen.is_empty() || b.seen.is_empty() {
            a.poll();
            b.poll();
        }
        a.expect_connected(OTHER);
        b.expect_connected(ME);
        Self { a, b }
    }

    /// The median of some round trips.
    fn round_trip(&mut self) -> Duration {
        let mut times: Vec<Duration> = (0..1000).map(|_| self.one_round_trip()).collect();
        times.sort_unstable();
        times[times.len() / 2]
    }

    fn one_round_trip(&mut self) -> Duration {
        let start = Instant::now();
        send(&mut self.a, &mut self.b, OTHER);
        send(&mut self.b, &mut self.a, ME);
        start.elapsed()
    }

    /// Lets `b` see to everybody who has come.
    fn settle(&mut self) {
        for _ in 0..2000 {
            self.b.poll();
            assert!(self.b.driver.strangers() <= MAX_STRANGERS);
        }
        assert!(self.b.seen.is_empty(), "{:?}", self.b.seen);
    }

    /// A thousand callers, each of whom says this.
    fn flood(&mut self, say: impl Fn() -> Vec<u8>) -> Vec<TcpStream> {
        let mut callers = Vec::new();
        for _ in 0..FLOOD {
            callers.push(self.b.stranger(&say()));
            self.b.poll();
            assert!(self.b.driver.strangers() <= MAX_STRANGERS);
        }
        self.settle();
        callers
    }

    /// How much longer a round trip takes with the flood there than without, by the medians of alternating rounds.
    fn slowdown(&mut self, say: impl Fn() -> Vec<u8>) -> f64 {
        let (mut quiet, mut flooded) = (Vec::new(), Vec::new());
        self.round_trip();
        for _ in 0..7 {
            quiet.push(self.round_trip());
            let callers = self.flood(&say);
            flooded.push(self.round_trip());
            assert_eq!(self.b.driver.strangers(), MAX_STRANGERS);
            drop(callers);
            self.settle();
        }
        quiet.sort_unstable();
        flooded.sort_unstable();
        let (quiet, flooded) = (quiet[3], flooded[3]);
        let slowdown = flooded.as_secs_f64() / quiet.as_secs_f64();
        eprintln!("round trip {quiet:?}, with {FLOOD} callers {flooded:?}: {slowdown:.3}");
        slowdown
    }
}

/// Sends a frame, and waits until it is there.
fn send(from: &mut Bench, to: &mut Bench, whom: PeerId) {
    let frame = [IoSlice::new(&[7; 64])];
    from.driver.send_frame(whom, &frame).unwrap();
    let mut has_come = false;
    while !has_come {
        to.driver.poll(16, &mut |_| has_come = true).unwrap();
    }
}

/// What this process has in memory, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

#[test]
fn a_thousand_callers_that_say_nothing_do_not_slow_a_link() {
    let mut linked = Linked::new();
    let slowdown = linked.slowdown(Vec::new);
    assert!(slowdown < 1.5, "{slowdown}");
}

#[test]
fn a_thousand_callers_that_begin_a_handshake_and_stop_do_not_slow_a_link() {
    let mut linked = Linked::new();
    let config = linked.b.job.credentials(PeerId(61)).client_config();
    let name = mizzen_identity::server_name();
    let slowdown = linked.slowdown(|| {
        let mut flight = Vec::new();
        let mut tls = rustls::ClientConnection::new(Arc::clone(&config), name.clone()).unwrap();
        tls.write_tls(&mut flight).unwrap();
        flight
    });
    assert!(slowdown < 1.5, "{slowdown}");
}

/// While they come, too, the link is served: no round trip takes longer than what a poll does for strangers.
#[test]
fn a_link_is_served_while_a_thousand_handshakes_begin() {
    let mut linked = Linked::new();
    let (at, job) = (linked.b.address(), Arc::clone(&linked.b.job));
    linked.round_trip();
    let quiet = linked.round_trip();
    let attack = std::thread::spawn(move || {
        let config = job.credentials(PeerId(61)).client_config();
        let call = |_| {
            let mut other = Other::client(TcpStream::connect(at).unwrap(), Arc::clone(&config));
            let flight = other.take_sealed();
            other.write(&flight);
            other
        };
        (0..FLOOD).map(call).collect::<Vec<_>>()
    });
    let mut times = Vec::new();
    while !attack.is_finished() {
        times.push(linked.one_round_trip());
        assert!(linked.b.driver.strangers() <= MAX_STRANGERS);
    }
    times.sort_unstable();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    eprintln!("round trip {quiet:?}; during the attack {median:?}, at most {longest:?}");
    assert!(longest < Duration::from_secs(1));
    drop(attack.join());
    linked.settle();
}

#[test]
fn a_thousand_handshakes_of_64_kibibytes_take_bounded_memory() {
    let mut bench = Bench::with(Sealed, |options| {
        options.hello_patience(Duration::from_secs(60))
    });
    // The beginning of a message of 64 KiB less one, but for its last bytes.
    let first = [&[22, 3, 3, 0x3e, 0x84, 1, 0, 0xff, 0xff][..], &[0; 16_000]].concat();
    let rest = [&[22, 3, 3, 0x3e, 0x80][..], &[0; 16_000]]
        .concat()
        .repeat(3);
    let bytes = [first, rest].concat();
    let before = resident();
    let mut callers = Vec::new();
    for _ in 0..FLOOD {
        callers.push(bench.stranger(&bytes));
        bench.poll();
        assert!(bench.driver.strangers() <= MAX_STRANGERS);
    }
    (0..2000).for_each(|_| bench.poll());
    assert_eq!(bench.driver.strangers(), MAX_STRANGERS);
    let grown = resident().saturating_sub(before);
    eprintln!("{grown} bytes for {MAX_STRANGERS} strangers");
    // What they said, twice over: it is copied once more while a record is incomplete.
    assert!(grown < MAX_STRANGERS * 2 * 80 * 1024, "{grown}");
    drop(callers);
    (0..2000).for_each(|_| bench.poll());
    assert_eq!(bench.driver.strangers(), 0);
}

/// The oldest stranger goes when too many come. A peer says all it has to say at once, so it is not among the oldest for
/// long, however many come.
#[test]
fn a_peer_gets_in_during_a_flood() {
    let mut bench = Bench::new(Sealed);
    let config = bench.job.credentials(OTHER).client_config();
    let mut callers = Vec::new();
    let mut other = bench.client(config);
    other.say(&hello(DIALLER, Sealed, OTHER, ME, 1));
    while bench.seen.is_empty() {
        (0..16).for_each(|_| callers.push(bench.stranger(&[22])));
        assert!(callers.len() < 4096, "the flood kept a peer out");
        bench.poll();
        other.step();
    }
    bench.expect_connected(OTHER);
    bench.hear(&mut other, 40);
    other.say(&frame(b"through"));
    bench.expect_frame(b"through");
}

/// Records without content are handed out to nobody, so no budget bounds them.
#[test]
fn a_thousand_records_of_nothing_cost_the_link() {
    let mut bench = Bench::new(Sealed);
    let mut config = (*bench.job.credentials(OTHER).client_config()).clone();
    config.enable_secret_extraction = true;
    let mut other = bench.client(Arc::new(config));
    other.say(&hello(DIALLER, Sealed, OTHER, ME, 1));
    bench.hear(&mut other, 40);
    bench.expect_connected(OTHER);
    let Other {
        tls, mut stream, ..
    } = other;
    let (mut encrypter, first) = encrypter(tls);
    let seal = |number| seal_nothing(&mut *encrypter, number);
    let bytes: Vec<u8> = (first..first + 1000).flat_map(seal).collect();
    std::io::Write::write_all(&mut stream, &bytes).unwrap();
    bench.expect_lost(TAMPERED);
}

/// What seals for this end from now on.
fn encrypter(tls: rustls::Connection) -> (Box<dyn MessageEncrypter>, u64) {
    let Some(rustls::SupportedCipherSuite::Tls13(suite)) = tls.negotiated_cipher_suite() else {
        panic!("TLS 1.3 is all there is");
    };
    let (sequence, secrets) = tls.dangerous_extract_secrets().unwrap().tx;
    let ConnectionTrafficSecrets::Aes128Gcm { key, iv } = secrets else {
        panic!("both ends like this one most");
    };
    let mut encrypter = suite.aead_alg.encrypter(key, iv);
    // It insists on all numbers in turn.
    (0..sequence).for_each(|number| drop(seal_nothing(&mut *encrypter, number)));
    (encrypter, sequence)
}

fn seal_nothing(encrypter: &mut dyn MessageEncrypter, sequence: u64) -> Vec<u8> {
    let nothing = OutboundPlainMessage {
        typ: ContentType::ApplicationData,
        version: ProtocolVersion::TLSv1_2,
        payload: OutboundChunks::Single(&[]),
    };
    encrypter.encrypt(nothing, sequence).unwrap().encode()
}
