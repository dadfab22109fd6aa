//! The rules of a link, one test or more for each paragraph of docs/wire.md §1, §4 to §6 and §8.

use crate::pair::{BOX, Pair, Side, process};
use mizzen_proto::ProtocolError;
use mizzen_proto::credit::Credits;
use mizzen_proto::id::{
    BodyId, Incarnation, MailboxId, OfferId, PingToken, ProcessId, Rank, StreamId,
};
use mizzen_proto::link::{
    AcceptRefused, Action, CONTROL_MAX, Direction, GONE_MAX, Link, LinkOptions, OFFERS_MAX,
    Outstanding, PULLS_MAX, Plan, Refused,
};
use mizzen_proto::wire::{BODY_MAX, Frame, FrameKind, PUSH_MAX, PUSH_WINDOW, VERSION};

const LONG: [u8; 500] = [5; 500];
/// What a shorter body counts as when it is pushed.
const SHORT: u64 = 4096;
const STREAM: StreamId = StreamId(1);

/// A link that has heard a hello, to feed by hand.
fn greeted() -> Link {
    let mut link = Link::new(LinkOptions::new(process(0), process(1)));
    assert!(link.poll_transmit().is_some());
    assert_eq!(link.handle_frame(hello(1, 0)), Ok(Action::Greeted));
    link
}

fn hello(from: u32, to: u32) -> Frame<'static> {
    Frame::Hello {
        version: VERSION,
        from: process(from),
        to: process(to),
        window: mizzen_proto::credit::WINDOW,
    }
}

fn post(to: MailboxId, message: &[u8]) -> Frame<'_> {
    Frame::Post {
        to,
        stream: STREAM,
        message,
    }
}

fn offer(number: u64) -> Frame<'static> {
    Frame::Offer {
        to: BOX,
        stream: STREAM,
        offer: OfferId(number),
        body_len: 1,
        head: &[],
    }
}

// docs/wire.md §1.1
#[test]
fn a_body_may_come_after_later_frames_and_before_earlier_bodies() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", &LONG).unwrap();
    pair.post(Side::A, BOX, b"2", &[6; 400]).unwrap();
    pair.post(Side::A, BOX, b"3", b"").unwrap();
    while pair.step(Side::B).unwrap() {}
    while pair.b.take(BOX) {}
    pair.pump(Side::B);
    while pair.step(Side::A).unwrap() {}

    pair.step_body(Side::B, 1);
    assert_eq!(pair.b.payloads(), [b"1", b"2", b"3"]);
    assert_eq!(pair.b.read[0].body, None);
    assert_eq!(pair.b.read[1].body.as_deref(), Some(&[6; 400][..]));
    pair.step_body(Side::B, 0);
    assert_eq!(pair.b.read[0].body.as_deref(), Some(&LONG[..]));
}

// docs/wire.md §4.1
#[test]
fn hello_is_the_first_frame_and_comes_once() {
    let mut link = Link::new(LinkOptions::new(process(0), process(1)));
    assert!(matches!(link.poll_transmit(), Some(Frame::Hello { .. })));
    assert_eq!(link.poll_transmit(), None);

    let kind = FrameKind::Post;
    let early = link.handle_frame(post(BOX, b""));
    assert_eq!(early, Err(ProtocolError::BeforeHello { kind }));

    assert_eq!(link.handle_frame(hello(1, 0)), Ok(Action::Greeted));
    let again = link.handle_frame(hello(1, 0));
    assert_eq!(again, Err(ProtocolError::SecondHello));
}

// docs/wire.md §4.1
#[test]
fn a_message_need_not_wait_for_the_peers_hello() {
    let mut link = Link::new(LinkOptions::new(process(0), process(1)));
    link.poll_transmit();
    assert_eq!(link.post(BOX, 8, 0), Ok(Plan::Eager));
}

#[test]
#[should_panic(expected = "hello is the first frame")]
fn posting_before_hello_is_our_mistake() {
    let mut link = Link::new(LinkOptions::new(process(0), process(1)));
    let _ = link.post(BOX, 8, 0);
}

// docs/wire.md §4.2
#[test]
fn a_hello_for_another_process_or_another_life_is_an_error() {
    let restarted = ProcessId::new(Rank(0), Incarnation(1));
    let mut link = Link::new(LinkOptions::new(restarted, process(1)));
    let for_the_earlier_life = link.handle_frame(hello(1, 0));
    assert!(matches!(
        for_the_earlier_life,
        Err(ProtocolError::WrongProcess { .. })
    ));

    let mut link = Link::new(LinkOptions::new(process(0), process(1)));
    let from_another = link.handle_frame(hello(2, 0));
    assert!(matches!(
        from_another,
        Err(ProtocolError::WrongProcess { .. })
    ));
}

// docs/wire.md §4.2
#[test]
fn a_hello_with_another_window_is_an_error() {
    let mut options = LinkOptions::new(process(0), process(1));
    options.window = Credits::new(1, 1 << 20);
    let mut link = Link::new(options);
    let other = link.handle_frame(hello(1, 0));
    assert!(matches!(other, Err(ProtocolError::WrongWindow { .. })));
}

// docs/wire.md §4.3 and §5.3
#[test]
fn messages_are_read_in_the_order_of_posting_whether_offered_or_not() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", b"").unwrap();
    pair.post(Side::A, BOX, b"2", &LONG).unwrap();
    pair.post(Side::A, BOX, b"3", b"").unwrap();
    pair.post(Side::A, BOX, b"4", &LONG).unwrap();
    pair.drive();
    while pair.b.take(BOX) {}
    pair.drive();
    assert_eq!(pair.b.payloads(), [b"1", b"2", b"3", b"4"]);
    assert_eq!(pair.b.read[1].body.as_deref(), Some(&LONG[..]));
    assert!(pair.b.read.iter().all(|read| read.stream == STREAM));
}

// docs/wire.md §4.4
#[test]
fn a_leaving_process_says_bye_when_its_offers_have_ended() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", &LONG).unwrap();
    pair.a.link.leave();
    assert_eq!(pair.post(Side::A, BOX, b"2", b""), Err(Refused::Leaving));
    pair.drive();
    assert!(!pair.b.left);
    assert!(!pair.a.link.has_left());

    pair.b.take(BOX);
    pair.drive();
    assert!(pair.b.left);
    assert!(pair.a.link.has_left());
    assert_eq!(pair.b.read[0].body.as_deref(), Some(&LONG[..]));
}

// docs/wire.md §4.4
#[test]
fn a_leaving_process_waits_for_the_bodies_it_asked_for() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", &LONG).unwrap();
    while pair.step(Side::B).unwrap() {}
    pair.b.take(BOX);
    pair.b.link.leave();
    while pair.step(Side::B).unwrap() | pair.step(Side::A).unwrap() {}
    assert!(!pair.b.link.has_left());
    pair.step_body(Side::B, 0);
    pair.drive();
    assert!(pair.a.left);
}

#[test]
fn a_process_that_leaves_at_once_says_hello_before_bye() {
    let mut link = Link::new(LinkOptions::new(process(0), process(1)));
    link.leave();
    assert!(matches!(link.poll_transmit(), Some(Frame::Hello { .. })));
    assert_eq!(link.poll_transmit(), Some(Frame::Bye));
    assert_eq!(link.poll_transmit(), None);
}

// docs/wire.md §4.5
#[test]
fn nothing_comes_after_bye_and_nothing_goes() {
    let mut link = greeted();
    link.post(BOX, 1, LONG.len() as u64 * 1000).unwrap();
    link.ping(PingToken(1));
    assert_eq!(link.handle_frame(Frame::Bye), Ok(Action::Left));
    assert_eq!(link.poll_transmit(), None);
    assert_eq!(link.post(BOX, 1, 0), Err(Refused::Leaving));
    let kind = FrameKind::Post;
    assert_eq!(
        link.handle_frame(post(BOX, b"")),
        Err(ProtocolError::AfterBye { kind })
    );
    assert_eq!(link.handle_lost().offered, [OfferId(1)]);
}

// docs/wire.md §4.6
#[test]
fn a_ping_comes_back() {
    let mut pair = Pair::new();
    pair.a.link.ping(PingToken(42));
    pair.drive();
    assert_eq!(pair.a.pongs, [PingToken(42)]);
}

// docs/wire.md §4.7
#[test]
fn a_lost_link_says_what_was_open() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", &LONG).unwrap();
    pair.post(Side::A, BOX, b"22", &LONG).unwrap();
    pair.drive();
    pair.b.take(BOX);
    while pair.step(Side::B).unwrap() {}
    let accept = pair.a.frames.pop_front().unwrap();
    assert!(pair.a.handle(&accept).unwrap().is_some());

    let at_sender = pair.a.link.handle_lost();
    let at_receiver = pair.b.link.handle_lost();
    assert_eq!(
        at_sender,
        Outstanding {
            offered: vec![OfferId(2)],
            sending: vec![(BodyId(1), OfferId(1))],
            unread: vec![(BOX, Credits::new(2, 3))],
            ..Outstanding::default()
        }
    );
    assert_eq!(
        at_receiver,
        Outstanding {
            announced: vec![OfferId(2)],
            receiving: vec![(BodyId(1), OfferId(1))],
            ..Outstanding::default()
        }
    );
}

// docs/wire.md §5.1
#[test]
fn a_message_that_fits_a_frame_goes_whole() {
    let mut pair = Pair::with_window(8);
    let plan = pair.post(Side::A, BOX, b"head ", b"and body").unwrap();
    pair.drive();
    pair.b.take(BOX);
    assert_eq!(plan, Plan::Eager);
    assert_eq!(pair.b.payloads(), [b"head and body"]);
}

// docs/wire.md §5.1
#[test]
fn a_head_without_body_is_refused_only_when_it_fits_no_frame() {
    let mut pair = Pair::with_window(8);
    assert_eq!(pair.a.link.post(BOX, 240, 0), Ok(Plan::Eager));
    assert_eq!(
        pair.a.link.post(BOX, 241, 0),
        Err(Refused::HeadTooLong {
            len: 241,
            limit: 240
        })
    );
    assert_eq!(pair.a.link.head_max(), 224);
    assert!(matches!(
        pair.a.link.post(BOX, 225, 1),
        Err(Refused::HeadTooLong { limit: 224, .. })
    ));
}

// docs/wire.md §5.2
#[test]
fn a_long_message_is_offered_and_its_body_comes_when_asked_for() {
    let mut pair = Pair::with_window(8);
    let plan = pair.post(Side::A, BOX, b"head", &LONG).unwrap();
    pair.drive();
    assert_eq!(plan, Plan::Offer(OfferId(1)));
    assert_eq!(pair.a.offered.len(), 1);
    pair.b.take(BOX);
    pair.drive();
    assert_eq!(pair.a.offered.len(), 0);
    assert_eq!(pair.b.read[0].body.as_deref(), Some(&LONG[..]));
    assert_eq!(pair.a.link.offers_open() + pair.b.link.offers_open(), 0);
}

// docs/wire.md §5.2
#[test]
fn a_body_above_the_limit_is_refused() {
    let mut link = greeted();
    let len = BODY_MAX + 1;
    assert_eq!(link.post(BOX, 0, len), Err(Refused::BodyTooLong { len }));
    assert!(link.post(BOX, 0, BODY_MAX).is_ok());
}

// docs/wire.md §5.4
#[test]
fn a_declined_offer_gives_its_body_back() {
    let mut pair = Pair::with_window(8);
    let plan = pair.post(Side::A, BOX, b"head", &LONG).unwrap();
    pair.drive();
    pair.b.link.decline(OfferId(1));
    pair.drive();
    assert_eq!(plan, Plan::Offer(pair.a.declined[0]));
    assert_eq!(pair.b.link.accept(OfferId(1)), Err(AcceptRefused::NotOpen));
}

// docs/wire.md §5.4
#[test]
fn a_second_answer_to_an_offer_is_an_error() {
    let (offer, body) = (OfferId(1), BodyId(1));
    let mut link = greeted();
    link.post(BOX, 1, 1 << 20).unwrap();
    let accepted = link.handle_frame(Frame::Accept { offer, body });
    assert_eq!(accepted, Ok(Action::SendBody { offer, body }));
    let kind = FrameKind::Decline;
    assert_eq!(
        link.handle_frame(Frame::Decline { offer }),
        Err(ProtocolError::UnknownOffer { kind, offer })
    );
    let kind = FrameKind::Accept;
    let body = BodyId(2);
    assert_eq!(
        link.handle_frame(Frame::Accept { offer, body }),
        Err(ProtocolError::UnknownOffer { kind, offer })
    );
}

#[test]
fn an_accept_can_be_withdrawn_until_the_peer_is_told() {
    let mut link = greeted();
    let _ = link.handle_frame(offer(1)).unwrap();
    let first = link.accept(OfferId(1)).unwrap();
    assert_eq!(link.withdraw(first), Ok(OfferId(1)));
    assert_eq!(link.poll_transmit(), None);

    let body = link.accept(OfferId(1)).unwrap();
    assert!(body > first);
    let offer = OfferId(1);
    assert_eq!(link.poll_transmit(), Some(Frame::Accept { offer, body }));
    assert!(link.withdraw(body).is_err());
    assert_eq!(link.handle_body_received(body), Ok(offer));
}

#[test]
fn a_failed_body_ends_its_offer() {
    let mut link = greeted();
    let _ = link.handle_frame(offer(1)).unwrap();
    let body = link.accept(OfferId(1)).unwrap();
    assert!(link.handle_body_failed(body, Direction::Outgoing).is_err());
    let failed = link.handle_body_failed(body, Direction::Incoming);
    assert_eq!(failed, Ok(OfferId(1)));
    assert_eq!(link.offers_open(), 0);
}

// docs/wire.md §5.5
#[test]
fn a_retracted_offer_leaves_its_mailbox() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", &LONG).unwrap();
    pair.post(Side::A, BOX, b"2", b"").unwrap();
    pair.a.link.retract(OfferId(1));
    pair.a.link.retract(OfferId(1));
    pair.drive();
    while pair.b.take(BOX) {}
    assert_eq!(pair.b.payloads(), [b"2"]);
    assert_eq!(pair.a.declined, [OfferId(1)]);
}

// docs/wire.md §5.5
#[test]
fn a_retraction_that_comes_after_the_accept_is_ignored() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", &LONG).unwrap();
    pair.step(Side::B).unwrap();
    pair.b.take(BOX);
    pair.a.link.retract(OfferId(1));
    pair.drive();
    assert_eq!(pair.b.read[0].body.as_deref(), Some(&LONG[..]));
    assert_eq!(pair.a.declined, []);
    assert_eq!(pair.b.retracted, []);
}

// docs/wire.md §5.5
#[test]
fn retracting_what_was_never_offered_is_an_error() {
    let (kind, offer) = (FrameKind::Retract, OfferId(1));
    assert_eq!(
        greeted().handle_frame(Frame::Retract { offer }),
        Err(ProtocolError::UnknownOffer { kind, offer })
    );
}

// docs/wire.md §5.6
#[test]
fn a_sender_waits_when_too_many_offers_are_open() {
    let mut link = greeted();
    for number in 0..OFFERS_MAX as u64 {
        link.post(MailboxId(number), 1, 1 << 20).unwrap();
    }
    assert_eq!(link.post(BOX, 1, 1 << 20), Err(Refused::TooManyOffers));
    assert_eq!(link.post(BOX, 1, 0), Ok(Plan::Eager));

    let (offer, body) = (OfferId(1), BodyId(1));
    let _ = link.handle_frame(Frame::Accept { offer, body }).unwrap();
    assert_eq!(link.post(BOX, 1, 1 << 20), Err(Refused::TooManyOffers));
    link.handle_body_sent(body).unwrap();
    assert!(link.post(BOX, 1, 1 << 20).is_ok());
}

// docs/wire.md §5.6
#[test]
fn more_unanswered_offers_than_allowed_are_an_error() {
    let mut link = greeted();
    let offer_to = |number: u64| Frame::Offer {
        to: MailboxId(number),
        stream: STREAM,
        offer: OfferId(number),
        body_len: 1,
        head: &[],
    };
    for number in 1..=OFFERS_MAX as u64 {
        let _ = link.handle_frame(offer_to(number)).unwrap();
    }
    let next = OFFERS_MAX as u64 + 1;
    assert_eq!(
        link.handle_frame(offer_to(next)),
        Err(ProtocolError::TooManyOffers {
            offer: OfferId(next),
            limit: OFFERS_MAX
        })
    );
}

// docs/wire.md §5.7
#[test]
fn offers_and_bodies_are_numbered_upwards() {
    let mut link = greeted();
    let _ = link.handle_frame(offer(5)).unwrap();
    assert_eq!(
        link.handle_frame(offer(5)),
        Err(ProtocolError::OfferOrder {
            offer: OfferId(5),
            last: OfferId(5)
        })
    );

    let mut link = greeted();
    link.post(BOX, 1, 1 << 20).unwrap();
    let (offer, body, last) = (OfferId(1), BodyId(0), BodyId(0));
    assert_eq!(
        link.handle_frame(Frame::Accept { offer, body }),
        Err(ProtocolError::BodyOrder { body, last })
    );
}

// docs/wire.md §6.1
#[test]
fn a_mailbox_grants_256_messages_or_a_mebibyte() {
    let mut link = greeted();
    for _ in 0..256 {
        link.post(BOX, 0, 0).unwrap();
    }
    assert_eq!(link.post(BOX, 0, 0), Err(Refused::NoCredit));

    let other = MailboxId(8);
    for _ in 0..32 {
        link.post(other, 32 << 10, 0).unwrap();
    }
    assert_eq!(link.post(other, 1, 0), Err(Refused::NoCredit));
    assert_eq!(link.post(other, 0, 0), Ok(Plan::Eager));
}

// docs/wire.md §6.1
#[test]
fn a_body_costs_no_credit() {
    let mut link = greeted();
    for _ in 0..256 {
        link.post(BOX, 16, BODY_MAX).unwrap();
    }
    let unread = link.handle_lost().unread;
    assert_eq!(unread, [(BOX, Credits::new(256, 256 * 16))]);
}

// docs/wire.md §6.2
#[test]
fn a_peer_without_credits_waits_for_them() {
    let mut pair = Pair::with_window(2);
    pair.post(Side::A, BOX, b"1", b"").unwrap();
    pair.post(Side::A, BOX, b"2", b"").unwrap();
    assert_eq!(pair.post(Side::A, BOX, b"3", b""), Err(Refused::NoCredit));
    pair.drive();
    pair.b.take(BOX);
    pair.drive();
    assert_eq!(pair.a.credit_arrived, [BOX]);
    assert!(pair.post(Side::A, BOX, b"3", b"").is_ok());
}

// docs/wire.md §6.2
#[test]
fn a_message_beyond_the_window_is_an_error() {
    let mut link = greeted();
    for _ in 0..256 {
        let _ = link.handle_frame(post(BOX, b"")).unwrap();
    }
    assert!(matches!(
        link.handle_frame(post(BOX, b"")),
        Err(ProtocolError::Window { to: BOX, .. })
    ));
}

// docs/wire.md §6.3
#[test]
fn credits_are_returned_by_the_half_window_and_all_at_once() {
    let mut link = greeted();
    for _ in 0..256 {
        let _ = link.handle_frame(post(BOX, b"abc")).unwrap();
    }
    for _ in 0..127 {
        link.consumed(BOX, 3);
    }
    assert_eq!(link.poll_transmit(), None);
    for _ in 0..10 {
        link.consumed(BOX, 3);
    }
    let credits = Credits::new(137, 3 * 137);
    let to = BOX;
    assert_eq!(link.poll_transmit(), Some(Frame::Credit { to, credits }));
    assert_eq!(link.poll_transmit(), None);
}

// docs/wire.md §6.4
#[test]
fn credits_for_what_was_not_sent_are_an_error() {
    let credit = |messages, bytes| Frame::Credit {
        to: BOX,
        credits: Credits::new(messages, bytes),
    };
    for wrong in [credit(2, 8), credit(1, 9), credit(0, 0), credit(0, 8)] {
        let mut link = greeted();
        link.post(BOX, 8, 0).unwrap();
        assert!(matches!(
            link.handle_frame(wrong),
            Err(ProtocolError::Credit { to: BOX, .. })
        ));
    }
    assert!(greeted().handle_frame(credit(1, 0)).is_err());
}

// docs/wire.md §6.5
#[test]
#[should_panic(expected = "fit half a window")]
fn a_frame_longer_than_half_a_window_is_our_mistake() {
    let mut options = LinkOptions::new(process(0), process(1));
    options.window = Credits::new(256, 100_000);
    Link::new(options);
}

// docs/wire.md §6.5
#[test]
fn the_longest_message_can_be_paid_for_once_all_was_read() {
    let mut pair = Pair::with_window(8);
    for _ in 0..100 {
        // Just below the half: as much as can be read without being returned.
        pair.post(Side::A, BOX, &[0; 200], b"").unwrap();
        pair.post(Side::A, BOX, &[0; 240], b"").unwrap();
        pair.drive();
        while pair.b.take(BOX) {}
        pair.drive();
    }
}

// docs/wire.md §6.6
#[test]
fn a_sender_learns_exactly_what_a_closed_mailbox_never_read() {
    let mut pair = Pair::with_window(8);
    for head in [&b"1"[..], b"22", b"333"] {
        pair.post(Side::A, BOX, head, b"").unwrap();
    }
    pair.post(Side::A, BOX, b"4444", &LONG).unwrap();
    pair.drive();
    pair.b.take(BOX);
    pair.post(Side::A, BOX, b"55555", &LONG).unwrap();
    pair.b.close(BOX);
    pair.drive();
    assert_eq!(pair.a.gone, [(BOX, Credits::new(4, 2 + 3 + 4 + 5))]);
    assert_eq!(pair.a.declined, [OfferId(1), OfferId(2)]);
    assert_eq!(pair.post(Side::A, BOX, b"6", b""), Err(Refused::Gone));
}

// docs/wire.md §6.6
#[test]
fn a_message_to_a_mailbox_that_never_was_is_answered() {
    let mut pair = Pair::with_window(8);
    let nowhere = MailboxId(99);
    pair.post(Side::A, nowhere, b"1", b"").unwrap();
    pair.post(Side::A, nowhere, b"2", b"").unwrap();
    pair.drive();
    assert_eq!(pair.a.gone, [(nowhere, Credits::new(2, 2))]);
    assert_eq!(pair.b.link.mailboxes_tracked(), 0);
}

#[test]
fn an_offer_that_was_read_outlives_its_mailbox() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", &LONG).unwrap();
    pair.drive();
    pair.b.take(BOX);
    pair.b.close(BOX);
    pair.drive();
    assert_eq!(pair.b.read[0].body.as_deref(), Some(&LONG[..]));
    assert_eq!(pair.a.gone, [(BOX, Credits::ZERO)]);
}

#[test]
fn a_message_reported_as_read_after_its_mailbox_closed_does_no_harm() {
    let mut link = greeted();
    let _ = link.handle_frame(post(BOX, b"long")).unwrap();
    link.close_mailbox(BOX);
    link.consumed(BOX, 4);
    let _ = link.handle_frame(post(BOX, b"on")).unwrap();
    link.consumed(BOX, 4);
    link.close_mailbox(BOX);
    let mailbox = BOX;
    assert_eq!(link.poll_transmit(), Some(Frame::Gone { mailbox }));
    assert_eq!(link.poll_transmit(), None);
    assert_eq!(link.mailboxes_tracked(), 0);
}

// docs/wire.md §6.7
#[test]
fn nothing_is_kept_about_a_mailbox_whose_window_is_whole() {
    let mut pair = Pair::with_window(2);
    pair.post(Side::A, BOX, b"1", b"").unwrap();
    pair.drive();
    assert_eq!(pair.a.link.mailboxes_tracked(), 1);
    pair.b.take(BOX);
    pair.drive();
    assert_eq!(pair.a.link.mailboxes_tracked(), 0);
    assert_eq!(pair.b.link.mailboxes_tracked(), 0);
}

// docs/wire.md §6.7
#[test]
fn the_gone_mailboxes_that_are_remembered_are_bounded() {
    let mut link = greeted();
    for number in 0..GONE_MAX as u64 + 1 {
        let mailbox = MailboxId(number);
        let _ = link.handle_frame(Frame::Gone { mailbox }).unwrap();
    }
    assert_eq!(link.mailboxes_tracked(), GONE_MAX);
    assert_eq!(link.post(MailboxId(1), 1, 0), Err(Refused::Gone));
    assert_eq!(link.post(MailboxId(0), 1, 0), Ok(Plan::Eager));
    let mailbox = MailboxId(0);
    let unread = Credits::new(1, 1);
    assert_eq!(
        link.handle_frame(Frame::Gone { mailbox }),
        Ok(Action::MailboxGone {
            to: mailbox,
            unread
        })
    );
}

#[test]
fn a_post_that_no_driver_took_can_be_undone() {
    let mut link = greeted();
    let plan = link.post(BOX, 8, 1 << 20).unwrap();
    link.undo_post(BOX, 8, 1 << 20, plan);
    let plan = link.post(BOX, 8, 8).unwrap();
    link.undo_post(BOX, 8, 8, plan);
    assert_eq!(link.mailboxes_tracked() + link.offers_open(), 0);
    assert_eq!(link.handle_lost(), Outstanding::default());
}

#[test]
fn the_peer_never_hears_of_an_offer_that_was_undone() {
    let mut link = greeted();
    let plan = link.post(BOX, 8, 1 << 20).unwrap();
    link.retract(OfferId(1));
    link.undo_post(BOX, 8, 1 << 20, plan);
    assert_eq!(link.poll_transmit(), None);
}

// docs/wire.md §8.1
#[test]
fn an_error_says_which_rule_was_broken_and_sends_nothing() {
    let mut link = greeted();
    let offer = OfferId(3);
    let error = link.handle_frame(Frame::Decline { offer }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Decline frame for offer 3, which is not open"
    );
    assert_eq!(link.poll_transmit(), None);
}

// docs/wire.md §8.3
#[test]
fn a_peer_that_never_reads_its_answers_loses_its_link() {
    let mut link = greeted();
    let token = PingToken(0);
    for _ in 0..CONTROL_MAX {
        let _ = link.handle_frame(Frame::Ping { token }).unwrap();
    }
    let limit = CONTROL_MAX;
    assert_eq!(
        link.handle_frame(Frame::Ping { token }),
        Err(ProtocolError::AnswersUnread { limit })
    );
}

fn push(number: u64, body_len: u64) -> Frame<'static> {
    Frame::Push {
        to: BOX,
        stream: STREAM,
        offer: OfferId(number),
        body_len,
        head: &[],
    }
}

const MIB: u64 = 1 << 20;

// docs/wire.md §5.8
#[test]
fn a_body_of_medium_length_is_pushed_and_a_long_one_offered() {
    let mut link = greeted();
    let body = BodyId((1 << 63) + 1);
    let plan = link.post_or_push(BOX, 0, PUSH_MAX);
    assert_eq!(plan, Ok(Plan::Push(OfferId(1), body)));
    assert_eq!(link.handle_body_sent(body), Ok(OfferId(1)));
    let plan = link.post_or_push(BOX, 0, PUSH_MAX + 1);
    assert_eq!(plan, Ok(Plan::Offer(OfferId(2))));
    assert_eq!(link.post_or_push(BOX, 0, 1), Ok(Plan::Eager));
    assert!(matches!(link.post(BOX, 0, PUSH_MAX), Ok(Plan::Offer(_))));
}

// docs/wire.md §5.8
#[test]
fn a_pushed_body_is_accepted_without_a_word_and_not_declined() {
    let mut link = greeted();
    let announced = link.handle_frame(push(7, 100));
    assert!(matches!(
        announced,
        Ok(Action::Announce { pushed: true, .. })
    ));
    let body = BodyId((1 << 63) + 7);
    assert_eq!(link.waiting(body), Some(OfferId(7)));
    assert_eq!(link.waiting(BodyId(7)), None);
    link.decline(OfferId(7));
    assert_eq!(link.accept(OfferId(7)), Ok(body));
    assert_eq!(link.waiting(body), None);
    assert_eq!(link.withdraw(body), Ok(OfferId(7)));
    assert_eq!(link.accept(OfferId(7)), Ok(body));
    assert_eq!(link.accept(OfferId(7)), Err(AcceptRefused::NotOpen));
    assert_eq!(link.poll_transmit(), None);
    assert_eq!(link.handle_body_received(body), Ok(OfferId(7)));
}

// docs/wire.md §5.8
#[test]
fn a_push_keeps_to_the_rules_of_offers() {
    let mut link = greeted();
    assert!(link.handle_frame(push(7, 1)).is_ok());
    let (offer, last) = (OfferId(7), OfferId(7));
    assert_eq!(
        link.handle_frame(push(7, 1)),
        Err(ProtocolError::OfferOrder { offer, last })
    );
    let kind = FrameKind::Retract;
    assert_eq!(
        link.handle_frame(Frame::Retract { offer }),
        Err(ProtocolError::UnknownOffer { kind, offer })
    );
    // A receiver that names a body as a pushed one would be.
    let mut link = greeted();
    assert!(matches!(link.post(BOX, 0, MIB), Ok(Plan::Offer(_))));
    let (offer, body) = (OfferId(1), BodyId(1 << 63));
    assert!(link.handle_frame(Frame::Accept { offer, body }).is_err());
}

// docs/wire.md §5.9
#[test]
fn pushing_ends_where_the_window_does() {
    let mut link = greeted();
    for _ in 0..PUSH_WINDOW / MIB {
        assert!(matches!(link.post_or_push(BOX, 0, MIB), Ok(Plan::Push(..))));
    }
    let plan = link.post_or_push(BOX, 0, MIB);
    assert!(matches!(plan, Ok(Plan::Offer(_))));
    let returned = |bytes| Frame::Returned { bytes };
    assert_eq!(link.handle_frame(returned(MIB)), Ok(Action::Returned));
    assert!(matches!(link.post_or_push(BOX, 0, MIB), Ok(Plan::Push(..))));
    for bytes in [0, PUSH_WINDOW + 1, u64::MAX] {
        let pushed = PUSH_WINDOW;
        assert_eq!(
            link.handle_frame(returned(bytes)),
            Err(ProtocolError::ReturnedTooMuch { bytes, pushed })
        );
    }
}

// docs/wire.md §5.9
#[test]
fn a_push_that_was_undone_leaves_the_window_whole() {
    let mut link = greeted();
    for _ in 0..10 {
        let plan = link.post_or_push(BOX, 0, PUSH_MAX).unwrap();
        assert!(matches!(plan, Plan::Push(..)));
        link.undo_post(BOX, 0, PUSH_MAX, plan);
    }
}

// docs/wire.md §5.9
#[test]
fn short_bodies_that_are_asked_for_and_never_come_are_few() {
    let mut link = greeted();
    let pushes = (1..).take_while(|&number| {
        let taken = link.handle_frame(push(number, 1)).is_ok();
        // Nobody has the mailbox, so that no credit holds the peer back.
        link.close_mailbox(BOX);
        taken && link.accept(OfferId(number)).is_ok()
    });
    assert_eq!(pushes.count(), OFFERS_MAX);
    assert_eq!(link.offers_open(), OFFERS_MAX);
}

// docs/wire.md §5.9
#[test]
fn what_was_taken_is_returned_a_quarter_at_a_time() {
    let mut link = greeted();
    for number in 1..=4 {
        assert!(link.handle_frame(push(number, MIB)).is_ok());
    }
    assert_eq!(
        link.handle_frame(push(5, 1)),
        Err(ProtocolError::PushedTooMuch { len: 1 })
    );
    link.taken(MIB - SHORT);
    assert_eq!(link.poll_transmit(), None);
    link.taken(SHORT);
    link.taken(5);
    let bytes = MIB + SHORT;
    assert_eq!(link.poll_transmit(), Some(Frame::Returned { bytes }));
    assert_eq!(link.poll_transmit(), None);
    assert!(link.handle_frame(push(6, MIB)).is_ok());
}

fn pull(body: u64, from: u64, len: u32) -> Frame<'static> {
    Frame::Pull {
        offer: OfferId(1),
        body: BodyId(body),
        from,
        len,
    }
}

// docs/wire.md §5.10
#[test]
fn a_body_is_read_part_by_part() {
    let mut pair = Pair::with_window(8);
    let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
    pair.post(Side::A, BOX, b"head", &bytes).unwrap();
    pair.drive();
    pair.b.pull(300);
    pair.b.pull(1);
    pair.drive();
    assert_eq!(pair.b.read[0].body.as_deref(), Some(&bytes[..301]));
    assert_eq!(pair.a.offered.len(), 1);
    pair.b.pull(1000);
    pair.drive();
    assert_eq!(pair.b.read[0].body.as_deref(), Some(&bytes[..]));
    assert_eq!(pair.a.offered.len(), 0);
    assert_eq!(pair.a.link.offers_open() + pair.b.link.offers_open(), 0);
}

// docs/wire.md §5.10
#[test]
fn a_part_that_is_not_the_next_of_its_body_is_an_error() {
    for wrong in [
        pull(2, 99, 1),
        pull(2, 0, 100),
        pull(2, 100, MIB as u32 - 99),
        pull(2, MIB, 1),
        pull(2, BODY_MAX - 1, u32::MAX),
    ] {
        let mut link = greeted();
        link.post(BOX, 1, MIB).unwrap();
        assert!(link.handle_frame(pull(1, 0, 100)).is_ok());
        let error = link.handle_frame(wrong);
        assert!(
            matches!(error, Err(ProtocolError::PullRange { .. })),
            "{wrong:?}: {error:?}"
        );
    }
}

// docs/wire.md §5.10
#[test]
fn parts_skip_what_is_not_wanted_and_end_with_the_last_byte() {
    let mut link = greeted();
    link.post(BOX, 1, MIB).unwrap();
    let offer = OfferId(1);
    assert!(link.handle_frame(pull(1, 100, 10)).is_ok());
    assert!(link.handle_frame(pull(2, MIB - 1, 1)).is_ok());
    link.handle_body_sent(BodyId(2)).unwrap();
    assert!(!link.has_ended(offer));
    link.handle_body_sent(BodyId(1)).unwrap();
    assert!(link.has_ended(offer));
    let kind = FrameKind::Pull;
    assert_eq!(
        link.handle_frame(pull(3, 0, 1)),
        Err(ProtocolError::UnknownOffer { kind, offer })
    );
}

// docs/wire.md §5.10
#[test]
fn an_offer_is_accepted_whole_or_in_parts() {
    let (offer, body) = (OfferId(1), BodyId(2));
    let mut link = greeted();
    link.post(BOX, 1, MIB).unwrap();
    assert!(link.handle_frame(pull(1, 0, 100)).is_ok());
    let kind = FrameKind::Accept;
    assert_eq!(
        link.handle_frame(Frame::Accept { offer, body }),
        Err(ProtocolError::UnknownOffer { kind, offer })
    );
    let mut link = greeted();
    link.post(BOX, 1, MIB).unwrap();
    assert!(link.handle_frame(Frame::Accept { offer, body }).is_ok());
    let kind = FrameKind::Pull;
    assert_eq!(
        link.handle_frame(pull(3, 0, 1)),
        Err(ProtocolError::UnknownOffer { kind, offer })
    );
}

// docs/wire.md §5.10
#[test]
fn a_reader_that_stops_declines_the_rest() {
    let mut link = greeted();
    link.post(BOX, 1, MIB).unwrap();
    let offer = OfferId(1);
    assert!(link.handle_frame(pull(1, 0, 100)).is_ok());
    // What is under way of it goes.
    let declined = link.handle_frame(Frame::Decline { offer });
    assert_eq!(declined, Ok(Action::Nothing));
    assert!(!link.has_ended(offer));
    assert!(link.handle_frame(pull(2, 100, 1)).is_err());
    link.handle_body_sent(BodyId(1)).unwrap();
    assert!(link.has_ended(offer));

    let mut link = greeted();
    let _ = link.handle_frame(Frame::Offer {
        to: BOX,
        stream: STREAM,
        offer,
        body_len: 100,
        head: &[],
    });
    let body = link.pull(offer, 0, 50).unwrap();
    link.decline(offer);
    link.decline(offer);
    assert!(matches!(link.poll_transmit(), Some(Frame::Pull { .. })));
    assert_eq!(link.poll_transmit(), Some(Frame::Decline { offer }));
    assert_eq!(link.poll_transmit(), None);
    assert_eq!(link.pull(offer, 50, 50), Err(AcceptRefused::NotOpen));
    assert_eq!(link.handle_body_received(body), Ok(offer));
    assert_eq!(link.offers_open(), 0);
}

// docs/wire.md §5.10
#[test]
fn an_offer_is_taken_back_in_the_middle_of_reading() {
    let mut pair = Pair::with_window(8);
    pair.post(Side::A, BOX, b"1", &LONG).unwrap();
    pair.drive();
    pair.b.pull(100);
    pair.drive();
    pair.a.link.retract(OfferId(1));
    pair.a.link.retract(OfferId(1));
    // The two cross: what was asked for before comes.
    pair.b.pull(100);
    pair.drive();
    assert_eq!(pair.b.retracted_reading, [OfferId(1)]);
    assert_eq!(pair.a.declined, [OfferId(1)]);
    assert_eq!(pair.b.read[0].body.as_deref(), Some(&LONG[..200]));
    assert_eq!(
        pair.b.link.pull(OfferId(1), 200, 1),
        Err(AcceptRefused::NotOpen)
    );
    assert_eq!(pair.a.link.offers_open() + pair.b.link.offers_open(), 0);
}

// docs/wire.md §5.10
#[test]
fn a_pull_can_be_withdrawn_until_the_peer_is_told() {
    let mut link = greeted();
    let offer = OfferId(1);
    let _ = link.handle_frame(Frame::Offer {
        to: BOX,
        stream: STREAM,
        offer,
        body_len: 100,
        head: &[],
    });
    for len in [50, 100] {
        let body = link.pull(offer, 0, len).unwrap();
        assert_eq!(link.withdraw(body), Ok(offer));
        assert_eq!(link.poll_transmit(), None);
    }
    let body = link.pull(offer, 0, 50).unwrap();
    let retracted = link.handle_frame(Frame::Retract { offer });
    assert_eq!(retracted, Ok(Action::Retracted { offer }));
    assert_eq!(link.withdraw(body), Ok(offer));
    assert_eq!(link.pull(offer, 0, 50), Err(AcceptRefused::NotOpen));
}

// docs/wire.md §5.10
#[test]
fn a_peer_that_asks_byte_by_byte_loses_its_link() {
    let mut link = greeted();
    link.post(BOX, 1, MIB).unwrap();
    for at in 0..PULLS_MAX as u64 {
        assert!(link.handle_frame(pull(at + 1, at, 1)).is_ok());
    }
    let (offer, limit, at) = (OfferId(1), PULLS_MAX, PULLS_MAX as u64);
    assert_eq!(
        link.handle_frame(pull(at + 1, at, 1)),
        Err(ProtocolError::TooManyPulls { offer, limit })
    );
}
