//! Messages through a lane, and the sleep of those who wait for them.

use loom::sync::Arc;
use loom::sync::atomic::Ordering;
use loom::thread;
use mizzen_lane::{
    Arrival, Bell, Call, Exact, Producer, Refused, Region, Returns, Ring, Shape, Watch,
    call_after_publish, call_quietly, is_awake_and_last,
};

use crate::Futex;

fn model(body: impl Fn() + Sync + Send + 'static) {
    crate::model(3, body);
}

fn take(consumer: &mut mizzen_lane::Consumer) -> Arrival {
    loop {
        if let Some(arrival) = consumer.poll().expect("the sender is honest") {
            return arrival;
        }
        thread::yield_now();
    }
}

fn retry(mut attempt: impl FnMut() -> Result<(), Refused>) {
    while let Err(refused) = attempt() {
        assert_eq!(refused, Refused::Full);
        thread::yield_now();
    }
}

#[test]
fn short_messages_arrive_once_and_in_order_across_the_wrap() {
    model(|| {
        let ring = Ring::heap(Shape::new(2, 64));
        let (mut producer, mut consumer) = ring.ends();
        let sender = thread::spawn(move || {
            for number in 0..3u64 {
                retry(|| producer.try_short(number as u16, &number.to_ne_bytes()));
            }
        });
        for number in 0..3u64 {
            let Arrival::Short(short) = take(&mut consumer) else {
                panic!("a short message was sent")
            };
            assert_eq!(
                (short.tag, short.bytes()),
                (number as u16, &number.to_ne_bytes()[..])
            );
        }
        sender.join().unwrap();
    });
}

#[test]
fn eager_bytes_are_not_overwritten_while_they_are_read() {
    model(|| {
        let ring = Ring::heap(Shape::new(4, 64));
        let (mut producer, mut consumer) = ring.ends();
        let sender = thread::spawn(move || {
            // Five times 16 bytes through a ring of 64: the last one reuses the bytes of the first.
            for number in 0..5u8 {
                retry(|| producer.try_eager(0, 0, &[&[number; 16]]));
            }
        });
        for number in 0..5u8 {
            let Arrival::Eager(eager) = take(&mut consumer) else {
                panic!("an eager message was sent")
            };
            let mut bytes = [0; 2];
            eager.copy_out(0, &mut bytes[..1]);
            eager.copy_out(15, &mut bytes[1..]);
            assert_eq!(bytes, [number; 2]);
        }
        sender.join().unwrap();
    });
}

/// Takes a message of just that length straight out of the lane.
fn take_exact<const N: usize>(
    consumer: &mut mizzen_lane::Consumer,
    address: Option<u64>,
) -> [u8; N] {
    let mut target = [0; N];
    loop {
        match consumer.poll_exact(0, address, &mut target) {
            Exact::Taken => return target,
            Exact::Nothing => thread::yield_now(),
            Exact::Other => panic!("only such messages were sent"),
        }
    }
}

/// Takes two messages in whatever order: so many ones for address 1, and four twos for address 2.
fn take_both(consumer: &mut mizzen_lane::Consumer, len: usize) {
    let mut seen = 0;
    for _ in 0..2 {
        let (to, bytes) = match take(consumer) {
            Arrival::Short(short) => (short.to(), short.bytes_after_address().to_vec()),
            Arrival::Double(double) => double.split_address(),
            Arrival::Eager(eager) => {
                let mut bytes = vec![0; eager.len()];
                eager.copy_out(0, &mut bytes);
                (eager.to, bytes)
            }
            Arrival::Closed => panic!("nobody closed"),
        };
        let expected = if to == 1 { vec![1; len] } else { vec![2; 4] };
        assert_eq!(bytes, expected, "for {to}");
        seen |= to;
    }
    assert_eq!(seen, 3);
}

/// Messages of two slots and of one, through a lane of four: two begin at an even slot, one at an odd one and goes through the bytes.
#[test]
fn messages_of_two_slots_arrive_whole_across_the_wrap() {
    model(|| {
        let ring = Ring::heap(Shape::new(4, 256));
        let (mut producer, mut consumer) = ring.ends();
        let sender = thread::spawn(move || {
            retry(|| producer.try_short(0, &[1; LONG]));
            retry(|| producer.try_short(0, &[2; 8]));
            retry(|| producer.try_short(0, &[3; LONG]));
            retry(|| producer.try_short(0, &[4; LONG]));
        });
        assert_eq!(take_exact::<LONG>(&mut consumer, None), [1; LONG]);
        assert_eq!(take_exact::<8>(&mut consumer, None), [2; 8]);
        assert_eq!(take_exact::<LONG>(&mut consumer, None), [3; LONG]);
        let Arrival::Double(double) = take(&mut consumer) else {
            panic!("it began at an even slot")
        };
        assert_eq!(double.bytes, [4; LONG]);
        sender.join().unwrap();
    });
}

/// Two threads, one of whose messages takes two slots if it comes first, and bytes if not.
#[test]
fn two_threads_claim_two_slots_and_one_without_tearing() {
    model(|| {
        let ring = Ring::heap(Shape::new(4, 256));
        let (producer, mut consumer) = ring.shared_ends_calling(|_| ());
        let other = producer.clone();
        let first = thread::spawn(move || other.try_short(1, 1, &[1; LONG]).map(drop));
        let second = thread::spawn(move || producer.try_short(2, 2, &[2; 4]).map(drop));
        take_both(&mut consumer, LONG);
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
}

/// Of bytes that go round, five times 60 through a ring of 256: the last one reuses those of the first.
const LONG: usize = 60;

#[test]
fn bytes_of_messages_in_hand_and_of_those_gone_are_not_overwritten() {
    model(|| {
        let ring = Ring::heap(Shape::new(4, 256));
        let (mut producer, mut consumer) = ring.ends();
        let sender = thread::spawn(move || {
            for number in 0..5u8 {
                retry(|| producer.try_eager(0, 0, [[number; LONG]]));
            }
        });
        let mut last = None;
        for number in 0..5u8 {
            if number % 2 == 1 {
                assert_eq!(take_exact::<LONG>(&mut consumer, None), [number; LONG]);
                continue;
            }
            let Arrival::Eager(eager) = take(&mut consumer) else {
                panic!("an eager message was sent")
            };
            let mut byte = [0; 1];
            eager.copy_out(LONG - 1, &mut byte);
            assert_eq!(byte, [number]);
            // It stays in hand until the next one is: whoever always has one in hand does not stop the sender.
            last = Some(eager);
        }
        drop(last);
        sender.join().unwrap();
    });
}

/// Long enough to be announced before it is written to its end, in three steps.
const GROWING: usize = 104;

/// The last reuses the bytes of the first, which is taken at the same time.
#[test]
fn a_message_is_copied_out_while_it_is_written() {
    model(|| {
        let ring = Ring::heap(Shape::new(4, 512));
        let (mut producer, mut consumer) = ring.ends();
        for number in 0..3u8 {
            producer.try_eager(0, 0, [[number; GROWING]]).unwrap();
        }
        let sender = thread::spawn(move || {
            for number in 3..5u8 {
                retry(|| producer.try_eager(0, 0, [[number; GROWING]]));
            }
        });
        for number in 0..5u8 {
            assert_eq!(
                take_exact::<GROWING>(&mut consumer, None),
                [number; GROWING]
            );
        }
        sender.join().unwrap();
    });
}

#[test]
fn who_reads_in_place_gets_a_message_that_grows_when_it_is_whole() {
    model(|| {
        let ring = Ring::heap(Shape::new(4, 512));
        let (mut producer, mut consumer) = ring.ends();
        let sender = thread::spawn(move || {
            retry(|| producer.try_eager(0, 0, [[1; GROWING]]));
        });
        let Arrival::Eager(eager) = take(&mut consumer) else {
            panic!("an eager message was sent")
        };
        let mut bytes = [0; GROWING];
        eager.copy_out(0, &mut bytes);
        assert_eq!(bytes, [1; GROWING]);
        sender.join().unwrap();
    });
}

/// Of two threads that share a lane one writes a message that grows.
#[test]
fn a_message_that_grows_holds_back_the_one_behind_it() {
    model(|| {
        let ring = Ring::heap(Shape::new(4, 512));
        let (producer, mut consumer) = ring.shared_ends_calling(|_| ());
        let other = producer.clone();
        let first = thread::spawn(move || {
            other.try_eager(0, 1, [[1; GROWING]]).map(drop).unwrap();
        });
        let second = thread::spawn(move || producer.try_short(0, 2, &[2; 4]).map(drop).unwrap());
        take_both(&mut consumer, GROWING);
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// Two messages in hand, dropped by two threads at once: whoever is last gives both back.
#[test]
fn two_who_drop_messages_at_once_leave_nothing_behind() {
    model(|| {
        let ring = Ring::heap(Shape::new(2, 256));
        let (mut producer, mut consumer) = ring.ends();
        for _ in 0..2 {
            producer.try_eager(0, 0, [[1; LONG]]).unwrap();
        }
        let droppers = [take(&mut consumer), take(&mut consumer)]
            .map(|message| thread::spawn(move || drop(message)));
        for dropper in droppers {
            dropper.join().unwrap();
        }
        for _ in 0..2 {
            producer.try_eager(0, 0, [[2; LONG]]).unwrap();
        }
    });
}

#[test]
fn bytes_that_are_copied_out_and_gone_are_not_overwritten_before() {
    model(|| {
        let ring = Ring::heap(Shape::new(4, 256));
        let (mut producer, mut consumer) = ring.ends();
        let sender = thread::spawn(move || {
            for number in 0..5u8 {
                retry(|| producer.try_eager(0, 0, [[number; LONG]]));
            }
        });
        for number in 0..5u8 {
            assert_eq!(take_exact::<LONG>(&mut consumer, None), [number; LONG]);
        }
        sender.join().unwrap();
    });
}

#[test]
fn an_eager_message_may_be_dropped_by_another_thread() {
    model(|| {
        let ring = Ring::heap(Shape::new(2, 64));
        let (mut producer, mut consumer) = ring.ends();
        producer.try_eager(0, 0, &[&[1; 16]]).unwrap();
        producer.try_short(0, b"x").unwrap();
        let Arrival::Eager(eager) = take(&mut consumer) else {
            panic!("an eager message was sent")
        };
        let dropper = thread::spawn(move || {
            let mut bytes = [0; 1];
            eager.copy_out(0, &mut bytes);
            assert_eq!(bytes, [1]);
        });
        take(&mut consumer);
        // Slot 0 is free only when the other thread has dropped the message that it describes.
        retry(|| producer.try_eager(0, 0, &[&[2; 16]]));
        let Arrival::Eager(eager) = take(&mut consumer) else {
            panic!("an eager message was sent")
        };
        let mut bytes = [0; 1];
        eager.copy_out(0, &mut bytes);
        assert_eq!(bytes, [2]);
        dropper.join().unwrap();
    });
}

#[test]
fn a_lent_buffer_is_reused_only_after_its_reader_is_done() {
    model(|| {
        let ring = Ring::heap(Shape::new(2, 64));
        let buffer = Region::heap(64);
        let returns = Returns::new(Region::heap(64), 1);
        let (mut producer, mut consumer) = ring.ends();
        let (theirs, given_back) = (buffer.clone(), returns.clone());
        let lender = thread::spawn(move || {
            for loan in 1..=2u64 {
                // SAFETY: loom reports an access that is not ordered.
                unsafe { buffer.copy_in(0, &[loan as u8]) };
                retry(|| producer.try_short(0, &loan.to_ne_bytes()));
                while !returns.is_back(0, loan) {
                    thread::yield_now();
                }
            }
        });
        for loan in 1..=2u64 {
            let Arrival::Short(short) = take(&mut consumer) else {
                panic!("a short message was sent")
            };
            assert_eq!(short.bytes(), loan.to_ne_bytes());
            let mut byte = [0];
            // SAFETY: as above.
            unsafe { theirs.copy_out(0, &mut byte) };
            assert_eq!(byte, [loan as u8]);
            given_back.give_back(0, loan);
        }
        lender.join().unwrap();
    });
}

#[test]
fn a_receiver_that_goes_to_sleep_is_always_woken() {
    sleep_and_wake(None, call_after_publish, |producer| {
        producer.try_short(0, b"x")
    });
}

#[test]
fn a_receiver_that_sleeps_while_a_message_grows_is_woken_by_its_end() {
    sleep_and_wake(None, call_after_publish, |producer| {
        producer.try_eager(0, 0, [[1; GROWING]])
    });
}

/// Loom has no fence in other threads: here both sides make one, so this checks the agreement through the watch.
#[test]
fn a_receiver_that_fences_for_all_is_always_woken() {
    sleep_and_wake(Some(|| ()), call_quietly, |producer| {
        producer.try_short(0, b"x")
    });
}

fn sleep_and_wake(
    everywhere: Option<fn()>,
    call: fn(&Watch) -> Call,
    send: fn(&mut Producer) -> Result<(), Refused>,
) {
    model(move || {
        let ring = Ring::heap(Shape::new(2, 512));
        let watch = Watch::new(Region::heap(64), 0, everywhere);
        let bell = Bell::new(Region::heap(64), 0);
        let futex = Arc::new(Futex::new());
        let (mut producer, mut consumer) = ring.ends();
        let (their_watch, their_bell, their_futex) =
            (watch.clone(), bell.clone(), Arc::clone(&futex));
        let sender = thread::spawn(move || {
            for _ in 0..2 {
                retry(|| send(&mut producer));
                if let Call::Bell(number) = call(&their_watch) {
                    assert_eq!(number, 0);
                    their_bell.raise();
                    their_futex.wake();
                }
            }
        });
        for _ in 0..2 {
            while consumer.poll().unwrap().is_none() {
                let count = bell.count();
                watch.announce_sleep(0);
                if !consumer.is_ready() {
                    futex.sleep_while(bell.word(), count);
                }
                watch.announce_awake();
            }
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_sender_that_waits_for_room_is_always_woken() {
    model(|| {
        let ring = Ring::heap(Shape::new(2, 64));
        let bell = Bell::new(Region::heap(64), 0);
        let futex = Arc::new(Futex::new());
        let (their_bell, their_futex) = (bell.clone(), Arc::clone(&futex));
        let (mut producer, mut consumer) = ring.ends_calling(move |_| {
            their_bell.raise();
            their_futex.wake();
        });
        let receiver = thread::spawn(move || {
            for _ in 0..3 {
                take(&mut consumer);
            }
        });
        for _ in 0..3 {
            while producer.try_short(0, b"x").is_err() {
                let count = bell.count();
                producer.ring().room().wait(0);
                if producer.try_short(0, b"x").is_ok() {
                    producer.ring().room().stop_waiting();
                    break;
                }
                futex.sleep_while(bell.word(), count);
                producer.ring().room().stop_waiting();
            }
        }
        receiver.join().unwrap();
    });
}

#[test]
fn a_close_comes_after_everything_sent_before_it() {
    model(|| {
        let ring = Ring::heap(Shape::new(2, 64));
        let (mut producer, mut consumer) = ring.ends();
        let sender = thread::spawn(move || {
            retry(|| producer.try_short(0, b"last"));
            retry(|| producer.try_close());
        });
        assert!(matches!(take(&mut consumer), Arrival::Short(_)));
        assert!(matches!(take(&mut consumer), Arrival::Closed));
        sender.join().unwrap();
    });
}

#[test]
fn a_send_to_a_receiver_that_closes_is_read_or_reported() {
    model(|| {
        let ring = Ring::heap(Shape::new(2, 64));
        let watch = Watch::new(Region::heap(64), 0, None);
        let (mut producer, mut consumer) = ring.ends();
        let their_watch = watch.clone();
        let sender = thread::spawn(move || {
            producer.try_short(0, b"x").unwrap();
            call_after_publish(&their_watch) == Call::Closed
        });
        watch.announce_closed();
        // The fence of a sleep announcement orders the close before the last look.
        loom::sync::atomic::fence(Ordering::SeqCst);
        let read = consumer.poll().unwrap().is_some();
        let reported = sender.join().unwrap();
        assert!(
            read || reported,
            "a message may be read or reported as lost, never neither"
        );
    });
}

#[test]
fn two_threads_share_a_lane_without_losing_or_tearing() {
    model(|| {
        let ring = Ring::heap(Shape::new(2, 64));
        let (producer, mut consumer) = ring.shared_ends_calling(|_| ());
        let other = producer.clone();
        let first = thread::spawn(move || retry(|| other.try_eager(1, 1, &[&[1; 4]]).map(drop)));
        let second = thread::spawn(move || retry(|| producer.try_short(2, 2, &[2; 4]).map(drop)));
        take_both(&mut consumer, 4);
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// Two senders to two receivers over one lane; the receiver of the later slot sleeps. Whoever fills the gap
/// must wake it, or nobody would.
#[test]
fn a_receiver_behind_a_gap_is_woken_by_whoever_fills_it() {
    fill_gap(None);
}

/// The same with receivers that fence for all: who is last calls nobody. As above, both sides make a fence here.
#[test]
fn a_receiver_behind_a_gap_that_fences_for_all_is_woken() {
    fill_gap(Some(|| ()));
}

fn fill_gap(everywhere: Option<fn()>) {
    model(move || {
        let ring = Ring::heap(Shape::new(2, 64));
        let watches = [0, 1].map(|_| Watch::new(Region::heap(64), 0, everywhere));
        for watch in &watches {
            watch.announce_awake();
        }
        let bell = Bell::new(Region::heap(64), 0);
        let futex = Arc::new(Futex::new());
        let (producer, mut consumer) = ring.shared_ends_calling(|_| ());
        let send = |to: u64| {
            let (producer, watches) = (producer.clone(), watches.clone());
            let (bell, futex) = (bell.clone(), Arc::clone(&futex));
            move || {
                let mut published = producer.try_short(0, to, b"").unwrap();
                if is_awake_and_last(&watches[to as usize], &published) {
                    return;
                }
                let mut target = Some(to);
                while let Some(to) = target {
                    if let Call::Bell(_) = call_after_publish(&watches[to as usize]) {
                        bell.raise();
                        futex.wake();
                    }
                    target = published.following();
                }
            }
        };
        let first = thread::spawn(send(0));
        let second = thread::spawn(send(1));
        // The receiver of mailbox 1 waits for its message; mailbox 0 is nobody's business.
        let mut mine = false;
        while !mine {
            while let Some(arrival) = consumer.poll().unwrap() {
                let Arrival::Short(short) = arrival else {
                    panic!("a short message was sent")
                };
                mine |= short.to() == 1;
            }
            if mine {
                break;
            }
            let count = bell.count();
            watches[1].announce_sleep(0);
            if !consumer.is_ready() {
                futex.sleep_while(bell.word(), count);
            }
            watches[1].announce_awake();
        }
        first.join().unwrap();
        second.join().unwrap();
    });
}
