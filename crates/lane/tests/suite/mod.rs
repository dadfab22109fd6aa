//! The lane suite: what every memory that carries lanes must pass. The including test file provides
//! `lane_and_memory(shape)`, which gives the sender's and the receiver's view of one fresh lane, and the memory that each
//! of them writes.

use super::lane_and_memory;
use mizzen_lane::{
    Arrival, Consumer, Exact, LaneError, Producer, Refused, Ring, SHORT_MAX, SLOT_MAX, Shape,
};

const SHAPE: Shape = Shape::new(16, 4096);

fn lane(shape: Shape) -> (Ring, Ring) {
    let (sender, receiver, ..) = lane_and_memory(shape);
    (sender, receiver)
}

fn open() -> (Producer, Consumer) {
    let (sender, receiver) = lane(SHAPE);
    (sender.producer(), receiver.consumer())
}

fn bytes_of(arrival: Arrival) -> Vec<u8> {
    match arrival {
        Arrival::Short(short) => short.bytes().to_vec(),
        Arrival::Double(double) => double.bytes,
        Arrival::Eager(eager) => {
            let mut bytes = vec![0; eager.len()];
            eager.copy_out(0, &mut bytes);
            bytes
        }
        Arrival::Closed => panic!("the lane is open"),
    }
}

/// Whom a message of a shared lane is for, and its payload.
fn addressed(arrival: Arrival) -> (u64, Vec<u8>) {
    match arrival {
        Arrival::Short(short) => (short.to(), short.bytes_after_address().to_vec()),
        Arrival::Double(double) => double.split_address(),
        Arrival::Eager(eager) => (eager.to, bytes_of(Arrival::Eager(eager))),
        Arrival::Closed => panic!("the lane is open"),
    }
}

fn next(consumer: &mut Consumer) -> Vec<u8> {
    bytes_of(
        consumer
            .poll()
            .expect("the sender is honest")
            .expect("a message is there"),
    )
}

/// Bytes that differ by message and by place, so that a torn or shifted message is seen.
fn pattern(number: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| {
            (number
                .wrapping_mul(0x9e37_79b9)
                .wrapping_add(at as u64 * 31)
                >> 3) as u8
        })
        .collect()
}

#[test]
fn a_new_lane_is_empty() {
    let (_producer, mut consumer) = open();
    assert!(!consumer.is_ready());
    assert!(consumer.poll().unwrap().is_none());
}

#[test]
fn every_short_length_arrives_as_sent() {
    let (mut producer, mut consumer) = open();
    for len in 0..=SHORT_MAX {
        producer.try_short(len as u16, &pattern(7, len)).unwrap();
        assert!(consumer.is_ready());
        assert_eq!(next(&mut consumer), pattern(7, len));
    }
}

#[test]
fn only_the_message_that_was_asked_for_is_taken_exactly() {
    let (mut producer, mut consumer) = open();
    for len in 0..=SHORT_MAX {
        let message = pattern(3, len);
        producer.try_short(5, &message).unwrap();
        let mut target = vec![0; len];
        let another_tag = consumer.poll_exact(4, None, &mut target);
        let longer = consumer.poll_exact(5, None, &mut vec![0; len + 1]);
        assert_eq!((another_tag, longer), (Exact::Other, Exact::Other));
        assert_eq!(consumer.poll_exact(5, None, &mut target), Exact::Taken);
        assert_eq!(target, message);
        assert_eq!(
            consumer.poll_exact(5, None, &mut target),
            Exact::Nothing,
            "it is taken once"
        );
    }
    producer.try_eager(5, 0, [[1; 8]]).unwrap();
    let eager = consumer.poll_exact(5, None, &mut [0; 8]);
    assert_eq!(eager, Exact::Other, "not a short one");
}

#[test]
fn every_length_beyond_a_slot_is_taken_exactly_and_is_gone() {
    let (mut producer, mut consumer) = open();
    // The byte ring goes round many times.
    for len in SLOT_MAX + 1..=SHAPE.eager_max() {
        let message = pattern(len as u64, len);
        producer.try_eager(5, 9, [&message]).unwrap();
        let mut target = vec![0; len];
        let others = [
            consumer.poll_exact(4, None, &mut target),
            consumer.poll_exact(5, Some(8), &mut target),
            consumer.poll_exact(5, None, &mut vec![0; len + 1]),
        ];
        assert_eq!(others, [Exact::Other; 3], "{len} bytes");
        assert_eq!(consumer.poll_exact(5, Some(9), &mut target), Exact::Taken);
        assert_eq!(target, message);
        assert_eq!(
            consumer.poll_exact(5, None, &mut target),
            Exact::Nothing,
            "it is taken once"
        );
    }
    let count = (SHAPE.eager_max() - SLOT_MAX) as u64;
    assert_eq!(consumer.peek().taken(), count);
}

#[test]
fn every_length_is_taken_with_its_first_bytes_apart_or_stays() {
    const FIRST: usize = 16;
    let (mut producer, mut consumer) = open();
    for len in 0..=SHAPE.eager_max() {
        let message = pattern(len as u64, len);
        match len {
            ..=SHORT_MAX => producer.try_short(5, &message).unwrap(),
            _ => producer.try_eager(5, 0, [&message]).unwrap(),
        }
        let room = || vec![0; SHAPE.eager_max()];
        let other = consumer.poll_split::<FIRST, _>(|tag| tag == 4, room);
        assert!(other.is_none(), "{len} bytes of another tag");
        let taken = consumer.poll_split::<FIRST, _>(|tag| tag == 5, room);
        if len < FIRST {
            assert!(taken.is_none(), "{len} bytes are too few");
            assert_eq!(next(&mut consumer), message);
            continue;
        }
        let (tag, first, rest, behind) = taken.unwrap();
        assert_eq!((tag, behind), (5, len - FIRST));
        assert_eq!(first, message[..FIRST]);
        assert_eq!(rest[..behind], message[FIRST..]);
        assert!(!consumer.is_ready(), "it is taken once");
    }
    let count = SHAPE.eager_max() as u64 + 1;
    assert_eq!(consumer.peek().taken(), count);
}

#[test]
fn a_message_that_is_longer_than_the_room_for_it_stays() {
    let (mut producer, mut consumer) = open();
    for len in [100, 500] {
        let message = pattern(len as u64, len);
        producer.try_eager(5, 0, [&message]).unwrap();
        let small = consumer.poll_split::<16, _>(|_| true, || vec![0; len - 17]);
        assert!(small.is_none());
        assert_eq!(next(&mut consumer), message);
    }
}

/// A lane as large as those of programs, where messages are announced before they are written to their end.
const LARGE: Shape = Shape::new(64, 128 << 10);

#[test]
fn messages_are_taken_whole_while_another_thread_writes_them() {
    let (sender, receiver) = lane(LARGE);
    let (mut producer, mut consumer) = (sender.producer(), receiver.consumer());
    let len_of = |number: usize| 2000 + number * 7919 % (LARGE.eager_max() - 2000);
    const COUNT: usize = 3000;
    let writer = std::thread::spawn(move || {
        for number in 0..COUNT {
            let message = pattern(number as u64, len_of(number));
            let (first, second) = message.split_at(message.len() / 3);
            while producer.try_eager(5, 9, [first, second]) == Err(Refused::Full) {
                std::thread::yield_now();
            }
        }
    });
    for number in 0..COUNT {
        let (expected, mut target) = (
            pattern(number as u64, len_of(number)),
            vec![0; len_of(number)],
        );
        // Some are taken as they come, others in place.
        loop {
            let is_there = if number % 5 == 4 {
                let arrival = consumer.poll().expect("the sender is honest");
                arrival.is_some_and(|arrival| {
                    target = bytes_of(arrival);
                    true
                })
            } else {
                consumer.poll_exact(5, Some(9), &mut target) == Exact::Taken
            };
            if is_there {
                break;
            }
            std::thread::yield_now();
        }
        assert!(target == expected, "message {number}");
    }
    writer.join().unwrap();
}

#[test]
fn a_message_that_is_not_written_to_its_end_is_not_taken() {
    let (sender, receiver, memory, _) = lane_and_memory(LARGE);
    let (mut producer, mut consumer) = (sender.producer(), receiver.consumer());
    let message = pattern(1, 8000);
    producer.try_eager(5, 9, [&message]).unwrap();
    let peek = consumer.peek();
    // As if its sender had stopped in the middle: after the slot's payload, kind 5 instead of 2.
    let slot = |word: usize| memory.word(128 / 8 + word);
    let whole = slot(7).load(core::sync::atomic::Ordering::Relaxed);
    for written in [0, 4096, 7999, 8000, u64::MAX] {
        slot(2).store(written, core::sync::atomic::Ordering::Relaxed);
        slot(7).store(whole ^ 7 << 32, core::sync::atomic::Ordering::Relaxed);
        let taken = consumer.poll_exact(5, Some(9), &mut vec![0; 8000]);
        assert_eq!(taken, Exact::Nothing);
        assert!(matches!(consumer.poll(), Ok(None)));
        assert!(!consumer.is_ready() && !peek.is_ready());
    }
    slot(7).store(whole, core::sync::atomic::Ordering::Release);
    let mut target = vec![0; 8000];
    assert_eq!(consumer.poll_exact(5, Some(9), &mut target), Exact::Taken);
    assert_eq!(target, message);
}

#[test]
fn who_always_has_a_message_in_hand_does_not_stop_the_sender() {
    let (mut producer, mut consumer) = open();
    let message = pattern(1, 100);
    let mut last = None;
    for _ in 0..1000 {
        producer.try_eager(0, 0, [&message]).unwrap();
        last = consumer.poll().unwrap();
    }
    assert_eq!(bytes_of(last.unwrap()), message);
}

#[test]
fn a_full_byte_ring_takes_again_after_messages_were_copied_out() {
    let (mut producer, mut consumer) = open();
    let message = pattern(1, SHAPE.eager_max());
    let mut target = message.clone();
    for _ in 0..4 {
        producer.try_eager(0, 0, [&message]).unwrap();
    }
    for _ in 0..100 {
        let refused = producer.try_eager(0, 0, [&message]);
        assert_eq!(refused, Err(Refused::Full));
        assert_eq!(consumer.poll_exact(0, None, &mut target), Exact::Taken);
        producer.try_eager(0, 0, [&message]).unwrap();
    }
}

#[test]
fn a_short_message_of_a_shared_lane_is_taken_only_for_its_address() {
    let (sender, receiver) = lane(SHAPE);
    let (producer, mut consumer) = (sender.shared_producer(), receiver.consumer());
    for len in [0, 1, 8, 13, 48, 49, 56, 104] {
        let (message, mut target) = (pattern(9, len), vec![0; len]);
        let _published = producer.try_short(5, 77, &message).unwrap();
        let wrong = consumer.poll_exact(5, Some(78), &mut target);
        assert_eq!(wrong, Exact::Other);
        assert_eq!(consumer.poll_exact(5, Some(77), &mut target), Exact::Taken);
        assert_eq!(target, message);
    }
    let too_long = consumer.poll_exact(5, Some(77), &mut [0; 105]);
    assert_eq!(too_long, Exact::Nothing);
}

#[test]
fn a_short_message_beyond_two_slots_is_refused() {
    let (mut producer, _consumer) = open();
    assert_eq!(
        producer.try_short(0, &[0; SHORT_MAX + 1]),
        Err(Refused::TooLong)
    );
}

#[test]
fn a_message_of_two_slots_arrives_whole_wherever_it_begins() {
    let (mut producer, mut consumer) = open();
    let mut sent = 0;
    for number in 0..2000u64 {
        // One slot or two, in an order that lets both begin at odd and at even ones.
        let len = [8, 57, 64, 1, 112, 96, 56][(number % 7) as usize];
        let message = pattern(number, len);
        producer.try_short(3, &message).unwrap();
        sent += 1;
        if number % 3 == 0 {
            assert_eq!(next(&mut consumer), message);
        } else if number % 3 == 1 {
            let mut target = vec![0; len];
            assert_eq!(consumer.poll_exact(3, None, &mut target), Exact::Taken);
            assert_eq!(target, message);
        } else {
            let mut target = [0; SHORT_MAX];
            match consumer.poll_short(3, &mut target) {
                Some(taken) => assert_eq!(target[..taken], message),
                None => assert_eq!(
                    next(&mut consumer),
                    message,
                    "it came through the byte ring"
                ),
            }
        }
        assert!(!consumer.is_ready());
    }
    let peek = consumer.peek();
    assert_eq!(peek.taken(), sent);
    assert!(peek.passed() > sent, "some took two slots");
}

#[test]
fn a_shared_lane_counts_messages_and_not_slots() {
    let (sender, receiver) = lane(SHAPE);
    let (producer, mut consumer) = (sender.shared_producer(), receiver.consumer());
    for number in 0..500u64 {
        let message = pattern(number, [8, 60, 104][(number % 3) as usize]);
        let position = producer.try_short(0, 7, &message).unwrap().position();
        assert_eq!(position.wrapping_add(1), producer.claimed());
        assert_eq!(producer.sent(), number + 1);
        let arrival = consumer.poll().unwrap().unwrap();
        assert_eq!(addressed(arrival), (7, message));
    }
    assert_eq!(consumer.peek().taken(), 500);
}

#[test]
fn a_full_lane_takes_no_message_of_two_slots() {
    let (sender, receiver) = lane(Shape::new(4, 4096));
    let (mut producer, mut consumer) = (sender.producer(), receiver.consumer());
    producer.try_short(0, &[1; 8]).unwrap();
    producer.try_short(0, &[2; 8]).unwrap();
    producer.try_short(0, &[3; 100]).unwrap();
    assert_eq!(producer.try_short(0, &[4; 100]), Err(Refused::Full));
    for len in [8, 8, 100] {
        assert_eq!(next(&mut consumer).len(), len);
    }
    producer.try_short(0, &[4; 100]).unwrap();
    assert_eq!(next(&mut consumer), [4; 100]);
}

#[test]
fn an_eager_message_beyond_the_limit_is_refused() {
    let (mut producer, _consumer) = open();
    let long = vec![0; SHAPE.eager_max() + 1];
    assert_eq!(producer.try_eager(0, 0, [&long]), Err(Refused::TooLong));
}

#[test]
fn parts_of_an_eager_message_are_joined() {
    let (mut producer, mut consumer) = open();
    producer
        .try_eager(0, 0, ["one", "", ", two", ", three"])
        .unwrap();
    assert_eq!(next(&mut consumer), b"one, two, three");
}

#[test]
fn an_empty_eager_message_arrives() {
    let (mut producer, mut consumer) = open();
    producer.try_eager(3, 9, [b""]).unwrap();
    let Some(Arrival::Eager(eager)) = consumer.poll().unwrap() else {
        panic!("an eager message was sent")
    };
    assert!(eager.is_empty());
    assert_eq!((eager.tag, eager.to), (3, 9));
}

#[test]
fn a_full_lane_refuses_and_takes_again_after_reading() {
    let (mut producer, mut consumer) = open();
    for number in 0..16u8 {
        producer.try_short(0, &[number]).unwrap();
    }
    assert_eq!(producer.try_short(0, &[16]), Err(Refused::Full));
    for number in 0..16u8 {
        assert_eq!(next(&mut consumer), [number]);
    }
    producer.try_short(0, &[16]).unwrap();
    assert_eq!(next(&mut consumer), [16]);
}

#[test]
fn a_full_byte_ring_refuses_and_takes_again_after_dropping() {
    let (mut producer, mut consumer) = open();
    let message = pattern(1, SHAPE.eager_max());
    for _ in 0..4 {
        producer.try_eager(0, 0, [&message]).unwrap();
    }
    assert_eq!(producer.try_eager(0, 0, [b"x"]), Err(Refused::Full));
    let held = consumer.poll().unwrap().unwrap();
    assert_eq!(
        producer.try_eager(0, 0, [b"x"]),
        Err(Refused::Full),
        "a message in hand keeps its bytes"
    );
    drop(held);
    producer.try_eager(0, 0, [b"x"]).unwrap();
}

#[test]
fn short_and_eager_messages_keep_one_order() {
    let (mut producer, mut consumer) = open();
    for number in 0..1000u64 {
        let message = pattern(number, (number as usize * 37) % 700);
        if message.len() <= SHORT_MAX {
            producer.try_short(0, &message).unwrap();
        } else {
            producer.try_eager(0, 0, [&message]).unwrap();
        }
        assert_eq!(next(&mut consumer), message);
    }
}

#[test]
fn messages_in_hand_may_be_dropped_in_any_order() {
    let (mut producer, mut consumer) = open();
    for round in 0..200u64 {
        let messages: Vec<_> = (0..4).map(|n| pattern(round * 4 + n, 900)).collect();
        for message in &messages {
            producer.try_eager(0, 0, [message]).unwrap();
        }
        let mut held: Vec<_> = (0..4).map(|_| consumer.poll().unwrap().unwrap()).collect();
        for (take, index) in [2usize, 0, 1, 0].into_iter().zip([2usize, 0, 3, 1]) {
            let arrival = held.remove(take.min(held.len() - 1));
            let bytes = bytes_of(arrival);
            assert!(messages.contains(&bytes), "round {round}, drop {index}");
        }
    }
}

#[test]
fn short_messages_pass_one_in_hand_until_the_lane_is_full() {
    let (mut producer, mut consumer) = open();
    producer.try_eager(0, 0, [b"held"]).unwrap();
    let held = consumer.poll().unwrap().unwrap();
    for number in 0..15u8 {
        producer.try_short(0, &[number]).unwrap();
        assert_eq!(next(&mut consumer), [number]);
    }
    assert_eq!(producer.try_short(0, b"x"), Err(Refused::Full));
    assert_eq!(bytes_of(held), b"held");
    producer.try_short(0, b"x").unwrap();
}

#[test]
fn a_close_is_seen_after_what_was_sent_before() {
    let (mut producer, mut consumer) = open();
    producer.try_short(0, b"last").unwrap();
    producer.try_close().unwrap();
    assert_eq!(next(&mut consumer), b"last");
    assert!(matches!(consumer.poll().unwrap(), Some(Arrival::Closed)));
    assert!(consumer.poll().unwrap().is_none());
}

#[test]
fn many_threads_share_a_lane_in_their_own_order() {
    const THREADS: u64 = 4;
    const EACH: u64 = 20_000;
    let (sender, receiver) = lane(Shape::new(64, 16384));
    let producer = sender.shared_producer();
    let mut consumer = receiver.consumer();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let producer = producer.clone();
            scope.spawn(move || {
                for number in 0..EACH {
                    let payload = [thread.to_ne_bytes(), number.to_ne_bytes()].concat();
                    let filler = pattern(number, if number % 3 == 0 { 200 } else { 8 });
                    loop {
                        let sent = if filler.len() > 32 {
                            producer.try_eager(0, thread, [&payload, &filler]).map(drop)
                        } else {
                            producer
                                .try_short(0, thread, &[&payload[..], &filler].concat())
                                .map(drop)
                        };
                        match sent {
                            Ok(()) => break,
                            Err(refused) => assert_eq!(refused, Refused::Full),
                        }
                        std::thread::yield_now();
                    }
                }
            });
        }
        let mut expected = [0u64; THREADS as usize];
        for _ in 0..THREADS * EACH {
            let (to, bytes) = loop {
                match consumer.poll().unwrap() {
                    Some(arrival) => break addressed(arrival),
                    None => std::thread::yield_now(),
                }
            };
            let number = expected[to as usize];
            assert_eq!(bytes[..8], to.to_ne_bytes());
            assert_eq!(bytes[8..16], number.to_ne_bytes());
            assert_eq!(
                bytes[16..],
                pattern(number, if number % 3 == 0 { 200 } else { 8 })
            );
            expected[to as usize] += 1;
        }
    });
}

#[test]
fn a_million_messages_cross_threads_unharmed() {
    const COUNT: u64 = 1_000_000;
    let (sender, receiver) = lane(Shape::new(64, 16384));
    let (mut producer, mut consumer) = (sender.producer(), receiver.consumer());
    let len = |number: u64| {
        if number % 16 == 0 {
            100 + (number % 3000) as usize
        } else {
            8 + (number % 49) as usize
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..COUNT {
                let mut message = vec![number as u8; len(number)];
                message[..8].copy_from_slice(&number.to_ne_bytes());
                loop {
                    let sent = if message.len() <= SHORT_MAX {
                        producer.try_short(0, &message)
                    } else {
                        producer.try_eager(0, 0, [&message])
                    };
                    if sent.is_ok() {
                        break;
                    }
                    std::thread::yield_now();
                }
            }
        });
        for number in 0..COUNT {
            let bytes = loop {
                match consumer.poll().unwrap() {
                    Some(arrival) => break bytes_of(arrival),
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(bytes.len(), len(number));
            assert_eq!(bytes[..8], number.to_ne_bytes());
            assert!(bytes[8..].iter().all(|byte| *byte == number as u8));
        }
    });
}

#[test]
fn the_rest_of_the_position_space_works_too() {
    // The slot count divides 2^32, so positions wrap cleanly; half a million laps of a tiny lane stay exact.
    let (sender, receiver) = lane(Shape::new(2, 64));
    let (mut producer, mut consumer) = (sender.producer(), receiver.consumer());
    for number in 0..1_000_000u64 {
        producer.try_short(0, &number.to_ne_bytes()).unwrap();
        assert_eq!(next(&mut consumer), number.to_ne_bytes());
    }
}

#[test]
fn a_sender_that_writes_nonsense_costs_it_the_lane_and_nothing_else() {
    use std::sync::atomic::Ordering::Release;
    for (kind, len, extent) in [
        (0u64, 0u64, 0u64),
        (9, 0, 0),
        (1, 113, 0),
        (1, 57, 0),
        (4, 0, 0),
        (1, 255, 0),
        (2, 0, u64::MAX),
        (2, 0, 4096 << 32 | 1),
    ] {
        let (_, receiver, memory, _) = lane_and_memory(SHAPE);
        let mut consumer = receiver.consumer();
        memory.word(17).store(extent, Release);
        memory.word(23).store(1 | kind << 32 | len << 40, Release);
        let split = consumer.poll_split::<16, _>(|_| true, || vec![0; 4096]);
        assert!(
            split.is_none(),
            "kind {kind}, length {len}, extent {extent}"
        );
        assert!(
            matches!(consumer.poll(), Err(LaneError::Corrupt)),
            "kind {kind}, length {len}, extent {extent}"
        );
        assert!(
            matches!(consumer.poll(), Err(LaneError::Corrupt)),
            "it stays so"
        );
    }
}

#[test]
fn a_receiver_that_writes_nonsense_is_noticed() {
    use std::sync::atomic::Ordering::Release;
    for position in [17, 1000, u64::from(u32::MAX), u64::MAX] {
        let (sender, _, _, released) = lane_and_memory(SHAPE);
        let mut producer = sender.producer();
        for _ in 0..16 {
            producer.try_short(0, b"x").unwrap();
        }
        released.word(0).store(position, Release);
        assert_eq!(
            producer.try_short(0, b"x"),
            Err(Refused::Corrupt),
            "position {position}"
        );
    }
}

#[test]
fn parts_that_are_longer_than_they_say_do_not_reach_beyond_their_place() {
    struct Liar;
    impl mizzen_lane::Parts for Liar {
        fn len(&self) -> usize {
            4
        }
        fn each(&self, mut take: impl FnMut(&[u8])) {
            take(b"abc");
            take(&[b'd'; 100]);
        }
    }
    let (sender, receiver, memory, _) = lane_and_memory(SHAPE);
    let (mut producer, mut consumer) = (sender.producer(), receiver.consumer());
    producer.try_eager(0, 0, Liar).unwrap();
    assert_eq!(next(&mut consumer), b"abcd");
    let bytes = SHAPE.sender_bytes() - 4096;
    let after = memory
        .word(bytes / 8)
        .load(std::sync::atomic::Ordering::Acquire);
    assert_eq!(after, u64::from_le_bytes(*b"abcd\0\0\0\0"));
}

#[test]
fn a_lane_says_once_that_it_is_used_and_loses_nothing() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let (sender, receiver) = lane(Shape::new(64, 4096));
    let said = Arc::new(AtomicU32::new(0));
    let by = Arc::clone(&said);
    let mut producer = sender.producer().once_used(move || {
        by.fetch_add(1, Ordering::Relaxed);
    });
    let mut consumer = receiver.consumer();
    // Twice so many as are in the lane at once, behind each other: short ones, and such as go through the byte ring.
    let mut read = 0;
    for number in 0..400u64 {
        let bytes = pattern(number, if number % 3 == 0 { 1000 } else { 8 });
        let sent = |producer: &mut Producer| match number % 3 {
            0 => producer.try_eager(0, 0, [&bytes]),
            _ => producer.try_short(0, &bytes),
        };
        while sent(&mut producer) == Err(Refused::Full) {
            assert!(read < number, "an empty lane takes a message");
            let len = if read % 3 == 0 { 1000 } else { 8 };
            assert_eq!(next(&mut consumer), pattern(read, len));
            read += 1;
        }
        let said = said.load(Ordering::Relaxed);
        // The byte ring was full before.
        assert_eq!(said, u32::from(number >= 12), "message {number}");
    }
    assert!(consumer.poll().unwrap().is_some());
}
