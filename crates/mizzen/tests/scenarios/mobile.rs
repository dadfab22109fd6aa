//! Mobile tasks, whatever the path between the ranks.

use std::time::Duration;

use super::meet;
use crate::run;

use mizzen::{Deck, JourneyError, Mobile, Step};
use serde::{Deserialize, Serialize};

/// Goes round all ranks, and notes where it was.
#[derive(Serialize, Deserialize)]
struct Round {
    left: u32,
    visited: Vec<u32>,
    ballast: Vec<u8>,
}

impl Mobile for Round {
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

#[test]
fn tasks_carry_their_state_from_rank_to_rank() {
    run(3, |deck| {
        deck.welcome::<Round>()?;
        meet(&deck, "meeting 1")?;
        let mut journeys = Vec::new();
        for number in 0..10u32 {
            let task = Round {
                left: 100 + number,
                visited: Vec::new(),
                ballast: vec![number as u8; 650 * number as usize],
            };
            journeys.push((number, deck.spawn(number % 3, task)?));
        }
        for (number, journey) in journeys {
            let (visited, ballast) = journey.join()?;
            // One that was moved because there were too many may miss a step of its round, but none of its steps.
            assert_eq!(visited.len() as u32, 101 + number);
            assert!((0..3).all(|rank| visited.iter().filter(|r| **r == rank).count() > 20));
            assert_eq!(ballast, vec![number as u8; 650 * number as usize]);
        }
        meet(&deck, "meeting 2")?;
        Ok(())
    })
    .unwrap();
}

#[derive(Serialize, Deserialize)]
struct Panics;

impl Mobile for Panics {
    const NAME: &'static str = "panics";
    type Output = ();

    fn step(&mut self, _: &Deck) -> Step<()> {
        panic!("on the way")
    }
}

#[test]
fn a_panic_reaches_the_home() {
    run(2, |deck| {
        deck.welcome::<Panics>()?;
        let outcome = deck.spawn(1, Panics)?.join();
        let error = outcome.expect_err("it panicked");
        assert!(matches!(
            error.service(),
            Some(JourneyError::Panicked { message, .. }) if message == "on the way"
        ));
        meet(&deck, "meeting 3")?;
        Ok(())
    })
    .unwrap();
}

/// Takes some time, in steps, and says where it ended.
#[derive(Serialize, Deserialize)]
struct Slow {
    steps: u32,
}

impl Mobile for Slow {
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

#[test]
fn who_has_too_many_tasks_gives_some_to_who_has_none() {
    run(2, |deck| {
        deck.welcome::<Slow>()?;
        meet(&deck, "meeting 4")?;
        if deck.rank() == 0 {
            let journeys: Vec<_> = (0..16)
                .map(|_| deck.spawn(0, Slow { steps: 40 }))
                .collect::<Result<_, _>>()?;
            let ended: Vec<u32> = journeys
                .into_iter()
                .map(|journey| journey.join())
                .collect::<Result<_, _>>()?;
            assert!(ended.contains(&1), "{ended:?}");
        }
        meet(&deck, "meeting 5")?;
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_task_that_cannot_go_goes_on_where_it_is() {
    run(2, |deck| {
        if deck.rank() == 0 {
            let task = Round {
                left: 2,
                visited: Vec::new(),
                ballast: Vec::new(),
            };
            // Rank 1 does not welcome it.
            let (visited, _) = deck.spawn(0, task)?.join()?;
            assert_eq!(visited, [0, 0, 0]);
        }
        meet(&deck, "meeting 6")?;
        Ok(())
    })
    .unwrap();
}
