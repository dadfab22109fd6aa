//! Tasks that move, whatever the path between the ranks.

use std::time::Duration;

use super::{Job, meet};

use mizzen::{Deck, Migrate, RemoteTaskError, Step};
use serde::{Deserialize, Serialize};

/// Goes round all ranks, and notes where it was.
#[derive(Serialize, Deserialize)]
struct Round {
    left: u32,
    visited: Vec<u32>,
    ballast: Vec<u8>,
}

impl Migrate for Round {
    const NAME: &'static str = "round";
    type Output = (Vec<u32>, Vec<u8>);

    fn step(&mut self, deck: &Deck) -> Step<Self::Output> {
        let rank = deck.rank().0;
        self.visited.push(rank);
        if self.left == 0 {
            let (visited, ballast) = (&mut self.visited, &mut self.ballast);
            return Step::Done((std::mem::take(visited), std::mem::take(ballast)));
        }
        self.left -= 1;
        Step::Move(((rank + 1) % deck.size()).into())
    }
}

pub(crate) fn tasks_carry_their_state_from_rank_to_rank(job: &Job<'_>) {
    job.run(3, |deck| {
        deck.register::<Round>()?;
        meet(&deck, "meeting 1")?;
        let mut remotes = Vec::new();
        for number in 0..10u32 {
            let task = Round {
                left: 100 + number,
                visited: Vec::new(),
                ballast: vec![number as u8; 650 * number as usize],
            };
            remotes.push((number, deck.spawn_at(number % 3, task)?));
        }
        for (number, remote) in remotes {
            let (visited, ballast) = remote.join()?;
            // One that was moved because there were too many may miss a rank of its round, but none of its steps: how often it
            // is at each rank depends on who is busy.
            assert_eq!(visited.len() as u32, 101 + number);
            assert!((0..3).all(|rank| visited.contains(&rank)), "{visited:?}");
            assert_eq!(ballast, vec![number as u8; 650 * number as usize]);
        }
        meet(&deck, "meeting 2")?;
        Ok(())
    });
}

#[derive(Serialize, Deserialize)]
struct Panics;

impl Migrate for Panics {
    const NAME: &'static str = "panics";
    type Output = ();

    fn step(&mut self, _: &Deck) -> Step<()> {
        panic!("on the way")
    }
}

pub(crate) fn a_panic_reaches_the_home(job: &Job<'_>) {
    job.run(2, |deck| {
        deck.register::<Panics>()?;
        let outcome = deck.spawn_at(1, Panics)?.join();
        let error = outcome.expect_err("it panicked");
        assert!(matches!(
            error.service(),
            Some(RemoteTaskError::Panicked { message, .. }) if message == "on the way"
        ));
        meet(&deck, "meeting 3")?;
        Ok(())
    });
}

/// Takes some time, in steps, and says where it ended.
#[derive(Serialize, Deserialize)]
struct Slow {
    steps: u32,
}

impl Migrate for Slow {
    const NAME: &'static str = "slow";
    type Output = u32;

    fn step(&mut self, deck: &Deck) -> Step<u32> {
        std::thread::sleep(Duration::from_millis(1));
        self.steps -= 1;
        match self.steps {
            0 => Step::Done(deck.rank().0),
            _ => Step::Again,
        }
    }
}

pub(crate) fn who_has_too_many_tasks_gives_some_to_who_has_none(job: &Job<'_>) {
    job.run(2, |deck| {
        deck.register::<Slow>()?;
        meet(&deck, "meeting 4")?;
        if deck.rank() == 0 {
            let remotes: Vec<_> = (0..16)
                .map(|_| deck.spawn_at(0, Slow { steps: 40 }))
                .collect::<Result<_, _>>()?;
            let ended: Vec<u32> = remotes
                .into_iter()
                .map(|remote| remote.join())
                .collect::<Result<_, _>>()?;
            assert!(ended.contains(&1), "{ended:?}");
        }
        meet(&deck, "meeting 5")?;
        Ok(())
    });
}

pub(crate) fn a_task_that_cannot_go_goes_on_where_it_is(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let task = Round {
                left: 2,
                visited: Vec::new(),
                ballast: Vec::new(),
            };
            // Rank 1 has not registered it.
            let (visited, _) = deck.spawn_at(0, task)?.join()?;
            assert_eq!(visited, [0, 0, 0]);
        }
        meet(&deck, "meeting 6")?;
        Ok(())
    });
}
