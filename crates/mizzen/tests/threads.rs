//! The scenarios among ranks that are threads of one process: linked through the heap, and through TCP on the loopback interface.

mod scenarios;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use mizzen::{Deck, Error, Result, RetrieveError};
use scenarios::{Ended, Path, scenarios};

/// A job of ranks that are threads.
type Local = fn(u32, &(dyn Fn(Deck) -> Result<()> + Sync)) -> Result<Vec<()>>;

struct Threads(Local);

impl Path for Threads {
    fn run(&self, size: u32, body: &(dyn Fn(Deck) -> Result<()> + Sync)) -> Vec<Ended> {
        let ended = Mutex::new(vec![Ended::Died; size as usize]);
        let rank = |deck: Deck| {
            let rank = deck.rank().0 as usize;
            let outcome = body(deck);
            ended.lock().expect("none panics in here")[rank] = match &outcome {
                Ok(()) => Ended::Well,
                Err(error) => Ended::Failed(error.to_string()),
            };
            outcome
        };
        // How the job ended is how its ranks did.
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(size, &rank)));
        ended.into_inner().expect("none panics in there")
    }

    fn die(&self) -> Error {
        Error::Program("the rank dies".into())
    }
}

scenarios!(heap = Threads(|size, body| mizzen::local(size, body)));
scenarios!(tcp_threads = Threads(|size, body| mizzen::local_over_tcp(size, body)));

/// The harness has threads of its own, so it is never certain that nobody can send any more.
#[test]
fn a_rank_that_waits_for_those_who_have_returned_does_not_hang_its_test() {
    let outcome = mizzen::local(2, |deck| {
        if deck.rank() == 1 {
            return Ok(0);
        }
        deck.mailbox()?.receive::<u64>()
    });
    let error = outcome.unwrap_err();
    let is_said = |error: &Error| {
        matches!(
            error,
            Error::Retrieve(RetrieveError::NobodyCame { .. } | RetrieveError::NobodyLeft { .. })
        )
    };
    assert!(is_said(&error), "{error}");
}
