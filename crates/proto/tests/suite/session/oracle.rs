//! What must be true of any history: exactly once and in order, or in the account (docs/wire-sessions.md §22.2, §24.4).

use std::collections::BTreeSet;

use mizzen_proto::link::Plan;
use mizzen_proto::session::End as Ending;

use super::world::World;

/// At any time: what came is what was posted, from the first on, each once.
pub(super) fn check_order(world: &World) {
    for side in 0..2 {
        let (from, to) = (&world.ends[side], &world.ends[1 - side]);
        let came = to.delivered.len();
        assert!(came <= from.posted.len(), "more came than was posted");
        let posted = from.posted.iter().map(|posted| posted.serial);
        assert!(
            posted.take(came).eq(to.delivered.iter().copied()),
            "lost, doubled or out of order"
        );
        assert!(
            to.numbers.windows(2).all(|pair| pair[1] - pair[0] == 1),
            "numbers skipped or repeated"
        );
        for posted in &from.posted {
            let Some(parts) = to.bodies.get(&posted.serial) else {
                continue;
            };
            for (&at, part) in parts {
                assert_eq!(
                    posted.body[at as usize..][..part.len()],
                    part[..],
                    "a damaged body"
                );
            }
        }
    }
}

/// At the end of both: nothing is neither there nor in the account.
pub(super) fn check_account(world: &World) {
    check_order(world);
    for side in 0..2 {
        let (from, to) = (&world.ends[side], &world.ends[1 - side]);
        let account = from.session.account();
        let delivered: BTreeSet<_> = to.delivered.iter().collect();
        for posted in &from.posted {
            let came = delivered.contains(&posted.serial);
            let unknown = account.unacknowledged.contains(posted.number);
            let never = account.never_sent.contains(posted.number);
            assert!(came || unknown || never, "{posted:?} is nowhere");
            assert!(!(came && never), "{posted:?} came without being sent");
            assert!(
                !(came && unknown && account.is_exact),
                "{posted:?} is in both"
            );
            if let Plan::Push(_, body) = posted.plan {
                let whole = to.bodies.contains_key(&posted.serial);
                let listed = account.bodies.contains(&body);
                assert!(
                    whole || listed || never || unknown,
                    "body of {posted:?} is nowhere"
                );
                if from.session.end() == Some(Ending::Left) {
                    assert!(!(whole && listed), "body of {posted:?} is in both");
                }
            }
        }
    }
}

/// Everything was delivered and acknowledged, with its bodies.
pub(super) fn check_flushed(world: &World) {
    check_account(world);
    for side in 0..2 {
        let (from, to) = (&world.ends[side], &world.ends[1 - side]);
        assert!(
            from.session.is_flushed(from.session.last_number()),
            "not flushed: {:?}",
            from.session
        );
        assert_eq!(from.posted.len(), to.delivered.len());
        assert!(from.kept.is_empty() && from.lent.is_empty() && to.places.is_empty());
        for posted in &from.posted {
            let offer = match posted.plan {
                Plan::Eager => continue,
                Plan::Offer(offer) | Plan::Push(offer, _) => offer,
            };
            if from.declined.contains(&offer) {
                continue;
            }
            let parts = &to.bodies[&posted.serial];
            let whole: Vec<u8> = parts.values().flatten().copied().collect();
            assert_eq!(whole, posted.body);
        }
    }
}

/// Both have left, and nothing is in the account.
pub(super) fn check_left(world: &World) {
    check_account(world);
    for end in &world.ends {
        assert_eq!(end.session.end(), Some(Ending::Left), "{:?}", end.session);
        let account = end.session.account();
        assert!(
            account.is_exact && account.never_sent.is_empty() && account.unacknowledged.is_empty()
        );
        assert!(end.byes <= 1);
    }
}
