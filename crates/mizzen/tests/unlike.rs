//! Hosts whose memory has another order of bytes: plain data is put right, or refused, whichever way it is sent and received.
//!
//! Rank 1 says over the wire that its order is the other. As it runs on the same machine, the test does for it what its processor
//! would do: a number lies in its memory with its bytes the other way round. What a number is then is what `to_be_bytes` and
//! `to_le_bytes` say: the reference, which knows nothing of how Mizzen does it.

use core::fmt::Debug;
use core::num::Wrapping;

use mizzen::zerocopy::{self, FromBytes, Immutable, IntoBytes, KnownLayout};
use mizzen::{Deck, Error, Mailbox, MailboxRef, Message, Plain, Result, UnpackError};

/// Longer than what goes in one frame, and than what is pushed: bodies come by each of their ways.
const LENGTHS: [usize; 5] = [1, 3, 1_000, 50_000, 1_300_000];

/// A number as this machine has it, and as one with the other order has it.
trait Number: Plain + Copy + Default + PartialEq + Debug + Send + 'static {
    fn of(seed: u64) -> Self;
    fn turned(self) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn of(seed: u64) -> Self {
                let wide = u128::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) | 1;
                Self::from_le_bytes(*wide.to_le_bytes().first_chunk().unwrap())
            }

            fn turned(self) -> Self {
                // Whichever of the two this machine has, the other one is written and read as if it were its own.
                let other = if cfg!(target_endian = "big") { self.to_le_bytes() } else { self.to_be_bytes() };
                Self::from_ne_bytes(other)
            }
        }
    )*};
}

numbers!(
    u8, i8, u16, i16, u32, i32, u64, i64, u128, i128, usize, isize
);

macro_rules! floats {
    ($($type:ty, $bits:ty);*) => {$(
        impl Number for $type {
            fn of(seed: u64) -> Self {
                seed as $type * 0.37 - 5.0
            }

            fn turned(self) -> Self {
                Self::from_bits(<$bits as Number>::turned(self.to_bits()))
            }
        }
    )*};
}

floats!(f32, u32; f64, u64);

impl<T: Number, const N: usize> Number for [T; N]
where
    [T; N]: Plain + Default,
{
    fn of(seed: u64) -> Self {
        core::array::from_fn(|index| T::of(seed + index as u64))
    }

    fn turned(self) -> Self {
        self.map(T::turned)
    }
}

impl<T: Number> Number for Wrapping<T>
where
    Wrapping<T>: Plain + Default,
{
    fn of(seed: u64) -> Self {
        Self(T::of(seed))
    }

    fn turned(self) -> Self {
        Self(self.0.turned())
    }
}

/// What one rank has: its mailbox, the other's, and how numbers lie in its memory.
struct Side {
    deck: Deck,
    inbox: Mailbox,
    other: MailboxRef,
}

impl Side {
    fn new(deck: Deck) -> Result<Self> {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox of {}", deck.rank()), &inbox)?;
        let other = deck.fetch(&format!("inbox of {}", 1 - deck.rank().0))?;
        Ok(Self { deck, inbox, other })
    }

    /// A number as it lies in this rank's memory.
    fn have<T: Number>(&self, number: T) -> T {
        match self.deck.rank().0 {
            0 => number,
            _ => number.turned(),
        }
    }

    fn values<T: Number>(&self, length: usize) -> Vec<T> {
        (0..length)
            .map(|index| self.have(T::of(index as u64)))
            .collect()
    }

    fn is_first(&self) -> bool {
        self.deck.rank() == 0
    }
}

fn between(body: impl Fn(Side) -> Result<()> + Sync) {
    mizzen::local_unlike(2, |deck| {
        let side = Side::new(deck)?;
        let deck = side.deck.clone();
        body(side)?;
        deck.finish()
    })
    .unwrap();
}

/// Everything that can be done with values of one type, to and fro.
fn all_ways<T: Number>() {
    between(|side| {
        let one = side.have(T::of(7));
        for sends in [side.is_first(), !side.is_first()] {
            if sends {
                side.other.send(&one)?;
                side.other.sender()?.send(&one)?;
            } else {
                assert!(are_same(&[side.inbox.receive::<T>()?], &[one]));
                assert!(are_same(&[side.inbox.receive::<T>()?], &[one]));
            }
            for length in LENGTHS {
                many(&side, sends, &side.values::<T>(length))?;
            }
        }
        Ok(())
    });
}

fn many<T: Number>(side: &Side, sends: bool, values: &[T]) -> Result<()> {
    let Side { deck, inbox, other } = side;
    let mut memory = vec![T::default(); values.len()];
    if sends {
        // Vectors, posted receives of both kinds, and pieces of every kind.
        for _ in 0..3 {
            other.send(values)?;
        }
        let mut message = Message::new();
        message
            .pack_safer(&values[0])
            .pack_cheaper(values)
            .pack_value(&"between")?
            .pack_cheaper(values);
        other.post(&mut message)?;
        let mut lent = deck.lend::<T>(values.len())?;
        lent.copy_from_slice(values);
        other.post_lent(&values[0], lent)?;
    } else {
        assert!(are_same(&inbox.receive_vec::<T>()?, values));
        let came = inbox.post_receive(memory.clone()).wait()?;
        assert!(are_same(&came.into_values(), values));
        deck.scope(|scope| scope.post_receive(inbox, &mut memory).wait().map(drop))?;
        assert!(are_same(&memory, values));
        memory.fill(T::default());
        let mut again = memory.clone();
        let mut message = inbox.retrieve()?;
        assert!(are_same(&[message.unpack_express::<T>()?], &values[..1]));
        message.unpack_cheaper(&mut memory[..])?;
        assert_eq!(message.unpack_value::<String>()?, "between");
        message.unpack_express_into(&mut again[..])?;
        message.finish()?;
        assert!(are_same(&memory, values) && are_same(&again, values));
        let (head, lent) = inbox.receive_lent::<T, T>()?;
        assert!(are_same(&[head], &values[..1]) && are_same(&lent, values));
    }
    Ok(())
}

/// Byte by byte: what is turned round may be no number.
fn are_same<T: Number>(one: &[T], other: &[T]) -> bool {
    one.as_bytes() == other.as_bytes()
}

#[test]
fn bytes_are_the_same() {
    all_ways::<u8>();
    all_ways::<i8>();
    all_ways::<[u8; 5]>();
}

#[test]
fn short_integers_are_put_right() {
    all_ways::<u16>();
    all_ways::<i16>();
    all_ways::<u32>();
    all_ways::<i32>();
}

#[test]
fn long_integers_are_put_right() {
    all_ways::<u64>();
    all_ways::<i64>();
    all_ways::<u128>();
    all_ways::<i128>();
}

#[test]
fn integers_as_long_as_addresses_are_put_right() {
    all_ways::<usize>();
    all_ways::<isize>();
}

#[test]
fn floating_point_numbers_are_put_right() {
    all_ways::<f32>();
    all_ways::<f64>();
}

#[test]
fn arrays_and_wrapped_numbers_are_put_right() {
    all_ways::<[f64; 3]>();
    all_ways::<[[u16; 2]; 2]>();
    all_ways::<Wrapping<u32>>();
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct Particle {
    position: [f64; 3],
    mass: f64,
}

/// Its order is part of its type.
#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Record {
    number: zerocopy::big_endian::U32,
}

/// A number whose order is not this machine's.
#[cfg(target_endian = "little")]
use zerocopy::big_endian::U32 as Other;
#[cfg(target_endian = "big")]
use zerocopy::little_endian::U32 as Other;

fn is_unlike<T>(outcome: Result<T>, name: &str) -> bool {
    matches!(outcome, Err(Error::Unpack(UnpackError::Unlike { name: found })) if found.contains(name))
}

#[test]
fn own_types_are_refused_and_the_message_is_there_for_who_knows_its_numbers() {
    between(|side| {
        let Side { inbox, other, deck } = &side;
        if side.is_first() {
            for _ in 0..3 {
                other.send(&Particle::default())?;
            }
            let mut lent = deck.lend::<Particle>(2)?;
            lent.fill(Particle::default());
            other.post_lent(&1u32, lent)?;
            other.send(&Record { number: 77.into() })?;
            return Ok(());
        }
        assert!(is_unlike(inbox.receive::<Particle>(), "Particle"));
        let posted = inbox.post_receive(vec![Particle::default()]).wait();
        assert!(is_unlike(posted, "Particle"));
        // It did not fit the posted receive: it is the next message.
        let mut message = inbox.retrieve()?;
        assert!(is_unlike(message.unpack_vec::<Particle>(), "Particle"));
        let mut memory = [Particle::default()];
        let mut refused = message.unpack_cheaper(&mut memory[0]);
        assert!(is_unlike(
            core::mem::replace(&mut refused, Ok(())),
            "Particle"
        ));
        assert_eq!(inbox.receive::<[f64; 4]>()?, [0.0; 4]);
        let mut message = inbox.retrieve()?;
        assert_eq!(message.unpack_express::<u32>()?.turned(), 1);
        assert!(is_unlike(message.unpack_lent::<Particle>(), "Particle"));
        assert_eq!(message.unpack_lent::<[f64; 4]>()?[1], [0.0; 4]);
        let mut message = inbox.retrieve()?;
        let mut record = [0_u8; 4];
        assert!(is_unlike(message.unpack_express::<Record>(), "Record"));
        message.unpack_express_into(&mut record[..])?;
        assert_eq!(record, [0, 0, 0, 77]);
        Ok(())
    });
}

#[test]
fn numbers_of_a_fixed_order_stay_as_they_are() {
    between(|side| {
        let number = Other::new(0x0102_0304);
        if side.is_first() {
            side.other.send(&number)?;
            side.other.send(&[number; 3])?;
        } else {
            assert_eq!(side.inbox.receive::<Other>()?, number);
            let three = side.inbox.receive::<[Other; 3]>()?;
            assert_eq!(three, [number; 3]);
        }
        Ok(())
    });
}

#[test]
fn a_message_in_a_message_is_put_right_too() {
    between(|side| {
        if side.is_first() {
            let mut inner = Message::new();
            inner.pack_safer(&5u32).pack_safer(&6.5f64);
            let mut message = Message::new();
            message.pack_safer(&4u16).pack_message(&inner)?;
            side.other.post(&mut message)?;
        } else {
            let mut message = side.inbox.retrieve()?;
            assert_eq!(message.unpack_express::<u16>()?.turned(), 4);
            let mut inner = message.unpack_message()?;
            assert_eq!(inner.unpack_express::<u32>()?.turned(), 5);
            assert_eq!(inner.unpack_express::<f64>()?.turned(), 6.5);
        }
        Ok(())
    });
}

#[test]
fn values_addresses_and_calls_need_nothing() {
    mizzen::local_unlike(2, |deck| {
        let Side { deck, inbox, other } = Side::new(deck)?;
        let _service = match deck.rank().0 {
            0 => Some(deck.serve("twice", |number: u64| 2 * number)?),
            _ => None,
        };
        other.send_value(&(1u64, "one", vec![2.5f64]))?;
        let (number, word, list): (u64, String, Vec<f64>) = inbox.receive_value()?;
        assert_eq!((number, &word[..], list), (1, "one", vec![2.5]));
        // An address in a value, and one that answers there.
        let own = deck.mailbox()?;
        other.send_value(&own.address())?;
        inbox.receive_value::<MailboxRef>()?.send_value(&9u64)?;
        assert_eq!(own.receive_value::<u64>()?, 9);
        let answer: u64 = deck.client("twice")?.call(&21u64)?;
        assert_eq!(answer, 42);
        // The service is there until everybody has called it.
        deck.finish()
    })
    .unwrap();
}
