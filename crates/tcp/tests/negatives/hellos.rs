//! Good credentials, and something else than a good hello.

use mizzen_driver::{ConnectFailure, Event};
use mizzen_tcp::Records::{Clear, Sealed};

use crate::bench::{ACCEPTOR, BOTH, Bench, DIALLER, ME, OTHER, frame, hello};
use crate::pair::Pair;

/// The bits of a hello that mean something to the other end; the last eight bytes are any number.
const BITS: usize = 32 * 8;

#[test]
fn a_hello_with_any_bit_changed_is_refused() {
    let mut bench = Bench::new(Sealed);
    for bit in 0..BITS {
        let mut bytes = hello(DIALLER, Sealed, OTHER, ME, 1);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut other = bench.caller(OTHER);
        other.say(&bytes);
        bench.expect_refused(&mut other);
    }
}

#[test]
fn an_answer_with_any_bit_changed_is_refused() {
    let mut bench = Bench::new(Sealed);
    let server = bench.job.credentials(OTHER).server_config();
    for bit in 0..BITS {
        let mut bytes = hello(ACCEPTOR, Sealed, OTHER, ME, 1);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let mut other = bench.dialled(server.clone());
        bench.hear(&mut other, 40);
        other.say(&bytes);
        bench.expect_rejected(&mut other);
    }
}

#[test]
fn our_own_hello_sent_back_is_refused() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let server = bench.job.credentials(OTHER).server_config();
        let mut other = bench.dialled(server);
        let said = bench.hear(&mut other, 40);
        other.say(&said);
        bench.expect_rejected(&mut other);
    }
}

#[test]
fn half_a_hello_is_none() {
    let mut bench = Bench::new(Sealed);
    for len in [0, 1, 20, 39] {
        let mut other = bench.caller(OTHER);
        other.say(&hello(DIALLER, Sealed, OTHER, ME, 1)[..len]);
        other.stream.shutdown(std::net::Shutdown::Write).unwrap();
        bench.expect_refused(&mut other);
    }
}

#[test]
fn a_hello_that_is_not_sealed_is_refused() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.caller(OTHER);
        other.write(&hello(DIALLER, records, OTHER, ME, 1));
        bench.expect_refused(&mut other);
    }
}

#[test]
fn frames_instead_of_a_hello_are_refused() {
    for records in BOTH {
        let mut bench = Bench::new(records);
        let mut other = bench.caller(OTHER);
        other.say(&frame(&[1; 100]));
        bench.expect_refused(&mut other);
    }
}

#[test]
fn two_hellos_are_refused() {
    let mut bench = Bench::new(Sealed);
    let mut other = bench.caller(OTHER);
    let one = hello(DIALLER, Sealed, OTHER, ME, 1);
    other.say(&[one.clone(), one].concat());
    bench.expect_refused(&mut other);
}

/// Whoever talks an end into clear records gains nothing: the other says, under the seal, that its are sealed.
#[test]
fn ends_of_which_one_seals_and_one_does_not_have_no_link() {
    for (dialler, acceptor) in [(Sealed, Clear), (Clear, Sealed)] {
        let mut pair = Pair::new(dialler, acceptor);
        pair.dial();
        pair.go_on("a dial to fail", |pair| !pair.a.seen.is_empty());
        pair.a.expect(Event::ConnectFailed {
            peer: OTHER,
            reason: ConnectFailure::Rejected,
        });
        pair.b.expect_nothing();
        assert_eq!(pair.b.driver.strangers(), 0);
    }
}

/// A link that is sealed stays so: bytes that are not sealed cost it, and are not handed out.
#[test]
fn a_frame_that_is_not_sealed_costs_a_sealed_link() {
    let mut bench = Bench::new(Sealed);
    let mut other = bench.peer(1);
    other.say(&frame(b"sealed"));
    other.write(&frame(b"clear"));
    bench.expect_frame(b"sealed");
    bench.expect_lost(crate::pair::TAMPERED);
    bench.expect_nothing();
}
