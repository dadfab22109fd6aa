//! Slabs at peers.

use super::bed::{eventually, introduce, life, mailbox_at, member, peer};
use crate::testing::Deck;

/// Large enough for a slab of its own.
const LARGE: usize = 8 << 20;
const BUFFERS: usize = 8;

#[test]
fn a_peer_process_unmaps_the_slabs_that_the_arena_has_dropped() {
    let (deck, us) = member(life(0, 0), 2);
    let inbox = deck.mailbox().unwrap();
    let (_peer, it) = peer("borrows", life(1, 0), 2);
    introduce(&us, &it);
    let to = mailbox_at(&deck, it.id, 0);
    let buffers: Vec<_> = (0..BUFFERS)
        .map(|_| deck.lend_unzeroed::<u8>(LARGE).unwrap())
        .collect();
    assert_eq!(inbox.receive::<u64>().unwrap(), 0, "none before the first");
    for buffer in buffers {
        to.post_lent(&0u8, buffer).unwrap();
    }
    assert_eq!(inbox.receive::<u64>().unwrap(), BUFFERS as u64);
    // The arena sees what came back when it needs memory, and keeps four of the eight.
    let before = deck.process.links.arena.bytes();
    let _other = deck.lend_unzeroed::<u8>(2 * LARGE).unwrap();
    let kept = (deck.process.links.arena.bytes() - 2 * LARGE) / LARGE;
    assert!(kept < BUFFERS, "the arena shrank from {before}");
    let mut count = 0;
    eventually("the peer unmaps as many as the arena dropped", || {
        to.send(&0u8).unwrap();
        count = inbox.receive::<u64>().unwrap();
        (count == kept as u64).then_some(())
    });
}

/// The peer: borrows all buffers, tells how many slabs it has mapped, gives all back, and tells again whenever it is asked.
pub(super) fn borrow_and_count(deck: &Deck) {
    let inbox = deck.mailbox().unwrap();
    let to = mailbox_at(deck, life(0, 0), 0);
    to.send(&mapped_slabs()).unwrap();
    let borrowed: Vec<_> = (0..BUFFERS)
        .map(|_| inbox.receive_lent::<u8, u8>().unwrap())
        .collect();
    let count = mapped_slabs();
    drop(borrowed);
    to.send(&count).unwrap();
    while inbox.receive::<u8>().is_ok() {
        to.send(&mapped_slabs()).unwrap();
    }
}

/// Slabs of an arena that are mapped here. This process sends nothing long: they are not its own.
fn mapped_slabs() -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.contains("mizzen-arena"))
        .count() as u64
}
