//! Names: what binding twice means, and what a fetch says that finds nobody.

use std::time::Duration;

use mizzen::{BindError, FetchError, Result};

use super::{Job, inbox_of, meet};

pub(crate) fn a_name_of_one_mailbox_is_taken_for_another_of_the_same_process(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let first = inbox_of(&deck, "inbox")?;
            deck.bind("inbox", &first)?;
            let second = deck.mailbox()?;
            let refused = deck.bind("inbox", &second);
            assert!(
                matches!(refused, Err(mizzen::Error::Bind(BindError::Taken { owner, .. })) if owner == deck.rank()),
                "{refused:?}"
            );
            // It is not the second's name to be freed.
            deck.unbind("inbox", &second);
            assert!(deck.bind("inbox", &second).is_err());
            meet(&deck, "tried")?;
            assert_eq!(first.receive::<u64>()?, 7, "the name still means the first");
        } else {
            meet(&deck, "tried")?;
            deck.fetch("inbox")?.send(&7u64)?;
        }
        meet(&deck, "end")
    });
}

pub(crate) fn a_name_of_a_dropped_or_unbound_mailbox_can_be_bound_again(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            drop(inbox_of(&deck, "inbox")?);
            let second = inbox_of(&deck, "inbox")?;
            deck.unbind("inbox", &second);
            let third = inbox_of(&deck, "inbox")?;
            meet(&deck, "bound")?;
            assert_eq!(third.receive::<u64>()?, 7);
        } else {
            meet(&deck, "bound")?;
            deck.fetch("inbox")?.send(&7u64)?;
        }
        meet(&deck, "end")
    });
}

pub(crate) fn a_misspelt_name_is_answered_with_names_like_it(job: &Job<'_>) {
    job.run(2, |deck| {
        let name = format!("answers of {}", deck.rank());
        let inbox = inbox_of(&deck, &name)?;
        let misspelt = format!("anwsers of {}", deck.rank());
        let error = deck.fetch_timeout(&misspelt, Duration::from_millis(50));
        let Err(mizzen::Error::Fetch(FetchError::Unbound { ref near, .. })) = error else {
            panic!("{error:?}")
        };
        assert!(near.contains(&name), "{near:?}");
        let said = error.as_ref().map(drop).unwrap_err().to_string();
        assert!(said.contains(&format!("did you mean {name:?}")), "{said}");

        let other = deck.fetch_timeout("results", Duration::ZERO);
        let said = other.map(drop).unwrap_err().to_string();
        assert!(said.contains("keeps no name like it"), "{said}");
        drop(inbox);
        meet(&deck, "end")
    });
}

pub(crate) fn a_name_goes_with_its_mailbox_and_another_may_have_it(job: &Job<'_>) {
    job.run(2, |deck| {
        let name = "goes around";
        for (turn, owner) in [0, 1, 0].into_iter().enumerate() {
            if deck.rank() == owner {
                // Whoever had it has dropped it, or is about to.
                let inbox = loop {
                    let inbox = deck.mailbox()?;
                    match deck.bind(name, &inbox) {
                        Ok(()) => break inbox,
                        Err(mizzen::Error::Bind(BindError::Taken { .. })) => (),
                        Err(error) => return Err(error),
                    }
                };
                meet(&deck, &format!("turn {turn}"))?;
                assert_eq!(inbox.receive::<u32>()?, owner);
            } else {
                meet(&deck, &format!("turn {turn}"))?;
                deck.fetch(name)?.send(&owner)?;
            }
        }
        meet(&deck, "end")
    });
}

pub(crate) fn a_fetch_without_patience_finds_what_is_bound(job: &Job<'_>) {
    job.run(2, |deck| {
        let inbox = inbox_of(&deck, &format!("inbox {}", deck.rank()))?;
        meet(&deck, "bound")?;
        let other = format!("inbox {}", 1 - deck.rank().0);
        deck.fetch_timeout(&other, Duration::ZERO)?.send(&1u8)?;
        assert_eq!(inbox.receive::<u8>()?, 1);
        let missing = deck.fetch_timeout("nobody's", Duration::ZERO);
        assert!(matches!(
            missing,
            Err(mizzen::Error::Fetch(FetchError::Unbound { .. }))
        ));
        meet(&deck, "end")
    });
}

pub(crate) fn fetch_waits_for_bind_and_tells_when_nobody_does(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            // Late: meanwhile the other one waits for the name.
            std::thread::sleep(Duration::from_millis(30));
            let inbox = inbox_of(&deck, "late")?;
            assert_eq!(inbox.receive::<u8>()?, 1);
            assert_eq!(inbox.receive::<u8>()?, 2);
        } else {
            deck.fetch("late")?.send(&1u8)?;
            let taken = deck.bind("late", &deck.mailbox()?).unwrap_err();
            assert_eq!(
                taken.to_string(),
                "the name \"late\" is taken by a mailbox of rank 0; choose another name, or unbind it there"
            );
            deck.fetch("late")?.send(&2u8)?;
            let error = deck.fetch_timeout("lait", Duration::from_millis(20)).unwrap_err();
            assert!(error.to_string().starts_with("nobody bound the name \"lait\" within"), "{error}");
        }
        Ok(())
    });
}

pub(crate) fn names_are_bound_and_found_while_a_rank_leaves(job: &Job<'_>) {
    const NAMES: u64 = 12;
    job.repeat(3, |deck| {
        let names = (0..NAMES).map(|number| format!("name {number}"));
        match deck.rank().0 {
            0 => {
                let inboxes: Result<Vec<_>> = names.map(|name| inbox_of(&deck, &name)).collect();
                for (number, inbox) in inboxes?.iter().enumerate() {
                    assert_eq!(inbox.receive::<u64>()?, number as u64);
                }
                Ok(())
            }
            1 => Ok(()),
            _ => names
                .enumerate()
                .try_for_each(|(number, name)| deck.fetch(&name)?.send(&(number as u64))),
        }
    });
}
