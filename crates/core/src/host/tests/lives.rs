//! Several lives of one rank.

use mizzen_proto::boot::ToProcess;

use super::bed::{eventually, introduce, life, link_to, member};

#[test]
fn a_new_life_is_reached_while_the_link_to_the_old_one_stands() {
    let (deck, us) = member(life(0, 0), 2);
    let (_old, before) = member(life(1, 0), 2);
    let (_new, after) = member(life(1, 1), 2);
    introduce(&us, &before);
    let old_link = link_to(&deck, before.id);
    std::thread::scope(|threads| {
        let reached = threads.spawn(|| deck.process.reach_life(after.id));
        us.tell(
            &ToProcess::Joined {
                rank: 1,
                incarnation: 1,
            },
            &[],
        );
        eventually("a request, or an answer without one", || {
            us.asked().map(drop).or(reached.is_finished().then_some(()))
        });
        introduce(&us, &after);
        let path = reached.join().unwrap().unwrap();
        assert_eq!(path.peer(), after.id);
    });
    assert!(
        !old_link.fate.is_ended(),
        "nobody said that the old life is over"
    );
}

#[test]
fn an_older_life_that_is_met_late_does_not_take_the_place_of_the_newer_one() {
    let (deck, us) = member(life(0, 0), 2);
    let (_old, before) = member(life(1, 0), 2);
    let (_new, after) = member(life(1, 1), 2);
    introduce(&us, &after);
    let newer = link_to(&deck, after.id);
    introduce(&us, &before);
    eventually("both links", || {
        (deck.process.links.all().1.len() == 2).then_some(())
    });
    let known = deck.process.reach_life(after.id).unwrap();
    assert_eq!((known.peer(), newer.peer), (after.id, after.id));
}

#[test]
fn a_life_before_the_one_that_is_linked_has_died() {
    let (deck, us) = member(life(0, 0), 2);
    let (_new, after) = member(life(1, 1), 2);
    introduce(&us, &after);
    link_to(&deck, after.id);
    let error = deck.process.reach_life(life(1, 0)).unwrap_err();
    assert!(
        matches!(&error, crate::ReachError::Gone(gone) if gone.process() == life(1, 0)),
        "{error}"
    );
}
