//! Several lives of one rank.

use std::sync::Weak;

use super::{life, link};
use crate::error::{Departure, Gone};
use crate::peers::Path;
use crate::peers::Peers;
use crate::rank::{ChannelId, Incarnation, ProcessId, Rank};

fn path(peer: ProcessId) -> Path {
    Path::Memory(link(peer, Weak::new()).0)
}

fn same(one: &Path, other: &Path) -> bool {
    match (one, other) {
        (Path::Memory(one), Path::Memory(other)) => std::sync::Arc::ptr_eq(one, other),
        _ => false,
    }
}

#[test]
fn an_older_life_never_replaces_the_path_to_a_newer_one() {
    let adds: [fn(&Peers, Path); 2] = [Peers::add, |peers, path| {
        peers.add_net(ChannelId::DEFAULT, path)
    }];
    for add in adds {
        let peers = Peers::default();
        add(&peers, path(life(1, 1)));
        add(&peers, path(life(1, 0)));
        assert_eq!(peers.known(Rank(1)).unwrap().peer(), life(1, 1));
        add(&peers, path(life(1, 2)));
        assert_eq!(peers.known(Rank(1)).unwrap().peer(), life(1, 2));
    }
}

#[test]
fn paths_of_a_channel_are_of_the_latest_life_and_the_first_of_it_stays() {
    // What is kept aside does not look whether it is a network: that would need one.
    let (peers, aside) = (Peers::default(), ChannelId(1));
    let usable = || peers.usable(aside, Rank(1), Incarnation(0));
    let is = |path: &Path| usable().is_some_and(|known| same(&known, path));
    let [first, second, later] = [life(1, 1), life(1, 1), life(1, 2)].map(path);
    peers.add_net(aside, first.clone());
    assert!(peers.known(Rank(1)).is_none(), "it is on no other channel");
    peers.add_net(aside, second);
    assert!(is(&first));
    peers.add_net(aside, later.clone());
    assert!(is(&later));
    peers.add_net(aside, first);
    assert!(is(&later));
    peers.note_gone(Gone::new(life(1, 1), Departure::Died));
    assert!(peers.last_gone(Rank(1)).is_none(), "a later life is there");
}

#[test]
fn a_later_life_stays_noted_when_news_of_an_earlier_one_comes_late() {
    let peers = Peers::default();
    let gone = |incarnation| Gone::new(life(1, incarnation), Departure::Died);
    peers.note_joined(life(1, 2));
    peers.note_joined(life(1, 1));
    peers.note_gone(gone(1));
    assert!(!peers.is_gone(Rank(1)), "its third life is to come");
}
