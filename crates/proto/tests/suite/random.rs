//! Random workloads on a pair of links, against what must be true of any (docs/wire.md §4.3, §5.4, §6).

use std::collections::BTreeMap;

use mizzen_proto::credit::Credits;
use mizzen_proto::id::{MailboxId, OfferId};
use mizzen_proto::link::{OFFERS_MAX, Plan, Refused};
use proptest::prelude::*;

use crate::pair::{Pair, Side};

#[derive(Debug, Clone)]
enum Op {
    Post {
        side: Side,
        mailbox: u64,
        head: usize,
        body: usize,
    },
    Step(Side),
    StepBody(Side, usize),
    Take(Side, u64),
    Pull(Side, u64),
    Retract(Side, u64),
    Close(Side, u64),
    Undo(Side, u64),
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::A), Just(Side::B)]
}

/// Mailboxes 0 to 2 exist, 3 does not.
fn op() -> impl Strategy<Value = Op> {
    let body = prop_oneof![Just(0), 1..60_usize, 61..2000_usize];
    let post = (side(), 0..4_u64, 8..225_usize, body);
    prop_oneof![
        30 => post.prop_map(|(side, mailbox, head, body)| Op::Post { side, mailbox, head, body }),
        30 => side().prop_map(Op::Step),
        10 => (side(), any::<usize>()).prop_map(|(side, pick)| Op::StepBody(side, pick)),
        20 => (side(), 0..3_u64).prop_map(|(side, mailbox)| Op::Take(side, mailbox)),
        10 => (side(), 1..700_u64).prop_map(|(side, len)| Op::Pull(side, len)),
        3 => (side(), 1..40_u64).prop_map(|(side, offer)| Op::Retract(side, offer)),
        1 => (side(), 0..3_u64).prop_map(|(side, mailbox)| Op::Close(side, mailbox)),
        2 => (side(), 0..3_u64).prop_map(|(side, mailbox)| Op::Undo(side, mailbox)),
    ]
}

/// What one end was told that it sent.
#[derive(Default)]
struct Sent {
    /// Serial numbers by mailbox, in the order of posting.
    order: BTreeMap<MailboxId, Vec<u64>>,
    /// The body that each must arrive with: of its own, or in its frame.
    bodies: BTreeMap<u64, Vec<u8>>,
    plans: BTreeMap<u64, Plan>,
}

fn serial(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload[..8].try_into().unwrap())
}

struct Run {
    pair: Pair,
    sent: [Sent; 2],
    serials: u64,
}

impl Run {
    fn new() -> Self {
        let mut pair = Pair::with_window(4);
        for end in [&mut pair.a, &mut pair.b] {
            end.mailboxes = (0..3).map(|n| (MailboxId(n), Default::default())).collect();
        }
        Self {
            pair,
            sent: Default::default(),
            serials: 0,
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Post {
                side,
                mailbox,
                head,
                body,
            } => self.post(side, MailboxId(mailbox), head, body),
            Op::Step(side) => {
                self.pair.step(side).expect("both ends keep the rules");
            }
            Op::StepBody(side, pick) => {
                self.pair.step_body(side, pick);
            }
            Op::Take(side, mailbox) => {
                self.pair.end(side).take(MailboxId(mailbox));
            }
            Op::Pull(side, len) => self.pair.end(side).pull(len as usize),
            Op::Retract(side, offer) => self.pair.end(side).link.retract(OfferId(offer)),
            Op::Close(side, mailbox) => {
                let mailbox = MailboxId(mailbox);
                let end = self.pair.end(side);
                if end.mailboxes.contains_key(&mailbox) {
                    end.close(mailbox);
                }
            }
            Op::Undo(side, mailbox) => {
                let link = &mut self.pair.end(side).link;
                let to = MailboxId(mailbox);
                if let Ok(plan) = link.post(to, 100, 1000) {
                    link.undo_post(to, 100, 1000, plan);
                }
            }
        }
    }

    fn post(&mut self, side: Side, to: MailboxId, head: usize, body: usize) {
        let number = self.serials;
        let mut head = vec![head as u8; head];
        head[..8].copy_from_slice(&number.to_le_bytes());
        let body = vec![number as u8; body];
        let plan = match self.pair.post(side, to, &head, &body) {
            Ok(plan) => plan,
            Err(Refused::NoCredit | Refused::Gone) => return,
            Err(Refused::HeadTooLong { .. }) => panic!("heads here fit"),
            Err(other) => panic!("{other}"),
        };
        self.serials += 1;
        let sent = &mut self.sent[side as usize];
        sent.order.entry(to).or_default().push(number);
        sent.bodies.insert(number, body);
        sent.plans.insert(number, plan);
    }

    /// Memory is bounded at every moment (docs/wire.md §6.2 and §5.6).
    fn check_bounds(&mut self) {
        for side in [Side::A, Side::B] {
            let end = self.pair.end(side);
            for waiting in end.mailboxes.values() {
                let bytes: usize = waiting.iter().map(|message| message.payload.len()).sum();
                assert!(waiting.len() <= 4 && bytes <= 1024);
            }
            assert!(end.link.offers_open() <= 2 * OFFERS_MAX);
            // Four mailboxes at either end.
            assert!(end.link.mailboxes_tracked() <= 8);
        }
    }

    /// Everything arrives and is read.
    fn settle(&mut self) {
        loop {
            self.pair.drive();
            let mut took = false;
            for side in [Side::A, Side::B] {
                for mailbox in (0..3).map(MailboxId) {
                    took |= self.pair.end(side).take(mailbox);
                }
            }
            if !took {
                return;
            }
        }
    }

    fn check(mut self) {
        for from in [Side::A, Side::B] {
            let sent = std::mem::take(&mut self.sent[from as usize]);
            for (&mailbox, order) in &sent.order {
                self.check_mailbox(from, mailbox, order);
            }
            self.check_bodies(from, &sent);
        }
        let (a, b) = (self.pair.a, self.pair.b);
        for end in [a, b] {
            assert_eq!(end.link.offers_open(), 0, "every offer has ended");
            assert!(end.offered.is_empty() && end.bodies.is_empty());
            for (_, unread) in end.link.handle_lost().unread {
                // All was read: less than half a window is not returned (docs/wire.md §6.5).
                assert!(unread.messages < 2 && unread.bytes < 512, "{unread:?}");
            }
        }
    }

    /// None lost, none twice, none out of order; what a closed mailbox did not read is accounted for.
    fn check_mailbox(&mut self, from: Side, mailbox: MailboxId, order: &[u64]) {
        let receiver = self.pair.end(from.other());
        let retracted: Vec<u64> = receiver
            .retracted
            .iter()
            .filter(|(to, _)| *to == mailbox)
            .map(|(_, payload)| serial(payload))
            .collect();
        let read: Vec<u64> = receiver
            .read
            .iter()
            .filter(|read| read.mailbox == mailbox)
            .map(|read| serial(&read.payload))
            .collect();
        let closed = !receiver.mailboxes.contains_key(&mailbox);
        let expected: Vec<u64> = order
            .iter()
            .copied()
            .filter(|number| !retracted.contains(number))
            .collect();
        let sender = self.pair.end(from);
        let mut gone = sender.gone.iter().filter(|(to, _)| *to == mailbox);
        if !closed {
            assert_eq!(read, expected);
            assert_eq!(gone.next(), None);
            return;
        }
        assert!(expected.starts_with(&read), "{read:?} of {expected:?}");
        let lost = order.len() - read.len() - retracted.len();
        let unread = gone.next().map_or(Credits::ZERO, |(_, unread)| *unread);
        assert_eq!(unread.messages as usize, lost);
        assert_eq!(gone.next(), None, "told once");
    }

    /// Every offer ended once: declined, or with its own body.
    fn check_bodies(&mut self, from: Side, sent: &Sent) {
        let declined = self.pair.end(from).declined.clone();
        let receiver = self.pair.end(from.other());
        let retracted = &receiver.retracted_reading;
        for read in &receiver.read {
            let number = serial(&read.payload);
            let body = &sent.bodies[&number];
            match sent.plans[&number] {
                Plan::Eager => assert!(read.payload.ends_with(body)),
                Plan::Offer(offer) if retracted.contains(&offer) => {
                    assert!(body.starts_with(read.body.as_deref().unwrap_or_default()));
                }
                Plan::Offer(offer) => {
                    assert_eq!(read.body.as_ref(), Some(body));
                    assert!(!declined.contains(&offer));
                }
                Plan::Push(..) => unreachable!("`post` does not push"),
            }
        }
        let offers = sent.plans.values().filter(|plan| **plan != Plan::Eager);
        let whole = |offer: OfferId| !retracted.contains(&offer);
        let with_body = receiver
            .read
            .iter()
            .filter(|read| read.offer.is_some_and(whole));
        assert_eq!(offers.count(), with_body.count() + declined.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // docs/wire.md §4.3, §5.4, §6.2 to §6.6
    #[test]
    fn nothing_is_lost_doubled_or_reordered(ops in prop::collection::vec(op(), 0..300)) {
        let mut run = Run::new();
        for op in ops {
            run.apply(op);
            run.check_bounds();
        }
        run.settle();
        run.check();
    }

    // docs/wire.md §8.2
    #[test]
    fn no_frames_panic_a_link(frames in prop::collection::vec(stray(), 0..100)) {
        let mut pair = Pair::with_window(4);
        for _ in 0..3 {
            let _ = pair.post(Side::A, MailboxId(1), &[0; 8], &[0; 500]);
        }
        for frame in frames {
            if pair.a.handle(&frame).is_err() {
                return Ok(());
            }
            while pair.a.link.poll_transmit().is_some() {}
        }
    }
}

/// A frame with small numbers, so that many refer to something.
fn stray() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(vec![
        0x03_u8, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x19, 0x28,
    ]);
    (kind, [0..3_u8, 0..5, 0..5, 0..5]).prop_map(|(kind, [small, a, b, c])| {
        let word = |low: u8| [low, 0, 0, 0, 0, 0, 0, 0];
        let mut bytes = vec![kind, 0, 0, 0];
        let has_small = matches!(kind, 0x10 | 0x11 | 0x15 | 0x19);
        bytes.extend([if has_small { small } else { 0 }, 0, 0, 0]);
        let words = match kind {
            0x11 | 0x19 => 3,
            0x12 | 0x15 => 2,
            _ => 1,
        };
        for low in &[a, b, c][..words] {
            bytes.extend(word(*low));
        }
        bytes
    })
}
