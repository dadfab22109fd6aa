//! A sender that changes a message while it is unpacked: what was checked is what is used.

use std::cell::RefCell;
use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::Incoming;
use crate::fuzzing::{SharedMemory, Victim};
use crate::memory::LoanTicket;
use crate::message::Flags;

thread_local! {
    /// Whose memory is written while a [`Changed`] is deserialised.
    static VICTIM: RefCell<Option<Rc<Victim>>> = const { RefCell::new(None) };
}

/// A string whose sender overwrites it after it was checked as UTF-8 and before it is copied.
#[derive(Debug)]
struct Changed(Vec<u8>);

impl<'de> Deserialize<'de> for Changed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Overwrites;
        impl Visitor<'_> for Overwrites {
            type Value = Changed;

            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Changed, E> {
                VICTIM.with_borrow(|victim| {
                    let victim = victim.as_ref().expect("the test has set it");
                    victim.write(SharedMemory::Slab(0), 1, &[0xff; TEXT.len()]);
                });
                Ok(Changed(core::hint::black_box(text).as_bytes().to_vec()))
            }
        }
        deserializer.deserialize_str(Overwrites)
    }
}

const TEXT: &str = "plain text, checked and then copied";

/// A message in a block of the hostile peer's memory, which it can write at any time.
fn post_block(victim: &mut Victim, flags: Flags, bytes: &[u8]) {
    victim.write(SharedMemory::Slab(0), 0, bytes);
    let ticket = LoanTicket {
        slab: 0,
        number: 0,
        offset: 0,
        len: bytes.len() as u64,
        loan: 1,
    };
    let tag = flags.with(Flags::LONG).0;
    assert!(victim.post(SharedMemory::SharedLane, tag, None, &ticket.to_bytes()));
}

/// The message that was posted: the mailbox may first hear that its peer is gone.
fn next<'m>(victim: &Victim) -> Incoming<'m> {
    let found = (0..4).find_map(|_| victim.next().ok().flatten());
    found.expect("the message was posted")
}

#[test]
fn a_string_is_copied_before_it_is_checked() {
    let mut victim = Victim::new();
    let text = postcard::to_allocvec(TEXT).unwrap();
    post_block(&mut victim, Flags::SINGLE.with(Flags::VALUE), &text);
    let victim = Rc::new(victim);
    let mut message = next(&victim);
    VICTIM.set(Some(Rc::clone(&victim)));
    let Changed(bytes) = message.unpack_value().unwrap();
    VICTIM.set(None);
    assert_eq!(String::from_utf8(bytes).as_deref(), Ok(TEXT));
}

#[test]
fn a_detached_message_does_not_change_any_more() {
    let mut victim = Victim::new();
    let text = postcard::to_allocvec(TEXT).unwrap();
    post_block(&mut victim, Flags::SINGLE.with(Flags::VALUE), &text);
    let message = next(&victim);
    let mut message = message.detach().unwrap();
    victim.write(SharedMemory::Slab(0), 1, &[0xff; TEXT.len()]);
    assert_eq!(message.unpack_value::<String>().unwrap(), TEXT);
}

#[test]
fn the_first_entries_of_a_table_are_those_that_were_checked() {
    let mut victim = Victim::new();
    // Two pieces of one byte each, of which the second grows after the table was read.
    post_block(&mut victim, Flags::default(), &[2, 4, 4, 7, 8]);
    let mut message = next(&victim);
    victim.write(SharedMemory::Slab(0), 1, &[200, 200]);
    assert_eq!(message.unpack_express::<u8>().unwrap(), 7);
    assert_eq!(message.unpack_express::<u8>().unwrap(), 8);
}

#[test]
fn a_table_that_changes_after_it_was_checked_is_refused() {
    let mut victim = Victim::new();
    // Five pieces of one byte each, of which the last grows after the table was read.
    post_block(
        &mut victim,
        Flags::default(),
        &[5, 4, 4, 4, 4, 4, 7, 8, 9, 10, 11],
    );
    let mut message = next(&victim);
    victim.write(SharedMemory::Slab(0), 5, &[200]);
    for value in 7..11 {
        assert_eq!(message.unpack_express::<u8>().unwrap(), value);
    }
    assert!(message.unpack_express::<u8>().is_err());
    assert!(message.unpack_value::<Vec<u8>>().is_err());
    assert!(message.unpack_vec::<u8>().is_err());
}
