//! Calls that pass lent buffers.

use mizzen::{Borrowed, CallError, Deck, Error, Lent, Result, Service};

const LEN: usize = 200_000;

/// Says how many numbers there are and lends twice each of them; of none, nothing; of too many to lend, the words why.
fn serve_double(deck: &Deck) -> Result<Service> {
    let lender = deck.clone();
    deck.serve_lent("double", move |more: u64, numbers: Borrowed<u64>| {
        let count = numbers.len() as u64;
        if more == u64::MAX {
            return (count, None);
        }
        let mut doubled = lender.lend_unzeroed::<u64>(numbers.len()).unwrap();
        for (to, from) in doubled.iter_mut().zip(numbers.iter()) {
            *to = 2 * from + more;
        }
        (count, Some(doubled))
    })
}

fn numbers(deck: &Deck, len: usize) -> Result<Lent<u64>> {
    let mut numbers = deck.lend::<u64>(len)?;
    numbers
        .iter_mut()
        .zip(0..)
        .for_each(|(to, number)| *to = number);
    Ok(numbers)
}

fn double(deck: Deck) -> Result<()> {
    let _service = serve_double(&deck)?;
    let mut client = deck.client_at::<u64, u64>(1 - deck.rank().0, "double")?;
    for len in [1, 7, LEN, 100] {
        let (count, doubled) = client.call_lent::<u64>(&3, numbers(&deck, len)?)?;
        let doubled = doubled.expect("a buffer was lent");
        assert_eq!(count, len as u64);
        assert!(
            doubled
                .iter()
                .zip(0..)
                .all(|(got, number)| *got == 2 * number + 3)
        );
    }
    let (count, nothing) = client.call_lent::<u64>(&u64::MAX, numbers(&deck, 5)?)?;
    assert_eq!((count, nothing.is_none()), (5, true));
    deck.finish()
}

#[test]
fn buffers_go_there_and_others_come_back() {
    mizzen::local(2, double).unwrap();
}

#[test]
fn buffers_go_there_and_others_come_back_over_a_network() {
    mizzen::local_over_tcp(2, double).unwrap();
}

#[test]
fn on_one_host_no_byte_is_copied() {
    mizzen::local(2, |deck| {
        let _service =
            deck.serve_lent("same", |(): (), numbers: Borrowed<u64>| ((), Some(numbers)))?;
        let mut client = deck.client_at::<(), ()>(1 - deck.rank().0, "same")?;
        let copies = || {
            let rows = deck.counters();
            let copies = rows.iter().filter(|row| row.name == "copies");
            copies.map(|row| row.value).sum::<u64>()
        };
        let before = copies();
        for _ in 0..100 {
            let ((), same) = client.call_lent::<u64>(&(), numbers(&deck, LEN)?)?;
            let same = same.expect("it was handed on");
            assert_eq!((same.len(), same[LEN - 1]), (LEN, LEN as u64 - 1));
        }
        assert_eq!(copies(), before);
        // They come back: their memory is used again.
        assert!(deck.arena_bytes() <= 16 << 20, "{}", deck.arena_bytes());
        deck.finish()
    })
    .unwrap();
}

#[test]
fn who_takes_no_buffer_refuses_one_and_the_other_way_round() {
    mizzen::local(1, |deck| {
        let _plain = deck.serve("plain", |x: u64| x)?;
        let _lent = serve_double(&deck)?;
        let mut plain = deck.client::<u64, u64>("plain")?;
        let mut lent = deck.client::<u64, u64>("double")?;
        let mut words = deck.client::<u64, u64>("double")?;
        let refused = |error: Error| match error.service::<CallError>() {
            Some(CallError::Refused { cause, .. }) => cause.clone(),
            other => panic!("{other:?}"),
        };
        let error = plain.call_lent::<u64>(&1, numbers(&deck, 9)?).unwrap_err();
        assert!(refused(error).contains("lent"));
        let error = lent.call(&1).unwrap_err();
        assert!(refused(error).contains("lent"));
        // Numbers of another length.
        let three = deck.lend::<[u8; 3]>(5)?;
        refused(words.call_lent::<u64>(&1, three).unwrap_err());
        // All of them serve on.
        assert_eq!(plain.call(&4)?, 4);
        assert_eq!(lent.call_lent::<u64>(&0, numbers(&deck, 3)?)?.0, 3);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_panic_costs_the_call_and_not_the_buffer() {
    mizzen::local(1, |deck| {
        let _service = deck.serve_lent("none", |number: u64, lent: Borrowed<u64>| {
            assert!(number != 7, "seven");
            (number, Some(lent))
        })?;
        let mut client = deck.client::<u64, u64>("none")?;
        for _ in 0..50 {
            let error = client
                .call_lent::<u64>(&7, numbers(&deck, LEN)?)
                .unwrap_err();
            let told = error.service::<CallError>();
            assert!(matches!(told, Some(CallError::Panicked { .. })), "{error}");
        }
        assert_eq!(client.call_lent::<u64>(&8, numbers(&deck, LEN)?)?.0, 8);
        assert!(deck.arena_bytes() <= 16 << 20, "{}", deck.arena_bytes());
        Ok(())
    })
    .unwrap();
}
