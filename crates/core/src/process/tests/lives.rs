//! Several lives of one rank.

use std::sync::Weak;

use super::{life, link};
use crate::error::{Departure, Gone};
use crate::peers::Path;
use crate::peers::Peers;
use crate::rank::{ProcessId, Rank};

fn path(peer: ProcessId) -> Path {
    Path::Memory(link(peer, Weak::new()).0)
}

#[test]
fn an_older_life_never_replaces_the_path_to_a_newer_one() {
    let adds: [fn(&Peers, Path); 2] = [Peers::add, Peers::add_if_better];
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
fn a_later_life_stays_noted_when_news_of_an_earlier_one_comes_late() {
    let peers = Peers::default();
    let gone = |incarnation| Gone::new(life(1, incarnation), Departure::Died);
    peers.note_joined(life(1, 2));
    peers.note_joined(life(1, 1));
    peers.note_gone(gone(1));
    assert!(!peers.is_gone(Rank(1)), "its third life is to come");
}
