//! The orderly end, whatever the path between the ranks.

use std::time::Duration;

use super::{Job, meet};

use mizzen::{Result, RetrieveError};

pub(crate) fn services_are_there_until_all_have_finished(job: &Job<'_>) {
    job.run(3, |deck| {
        let _service = deck.serve("twice", |x: u32| 2 * x)?;
        if deck.rank() == 2 {
            let inbox = deck.mailbox()?;
            inbox.depend_on(0);
            inbox.depend_on(1);
            let left = inbox.retrieve_timeout(Duration::from_millis(300));
            assert!(
                matches!(
                    left,
                    Err(mizzen::Error::Retrieve(RetrieveError::TimedOut { .. }))
                ),
                "nobody leaves before all have finished"
            );
            for rank in [0, 1] {
                let mut twice = deck.client_at::<u32, u32>(rank, "twice")?;
                assert_eq!(twice.call_timeout(&21, Duration::from_secs(20))?, 42);
            }
        }
        deck.finish()
    });
}

/// One rank leaves without a word; the others finish.
fn all_but(job: &Job<'_>, leaver: u32) {
    job.run(3, |deck| {
        meet(&deck, "begin")?;
        if deck.rank() == leaver {
            return Ok(());
        }
        deck.finish()
    });
}

pub(crate) fn who_left_before_is_not_waited_for(job: &Job<'_>) {
    all_but(job, 2);
}

pub(crate) fn if_the_first_rank_left_before_the_next_one_knows_when_all_have_finished(
    job: &Job<'_>,
) {
    all_but(job, 0);
}

pub(crate) fn a_process_finishes_once(job: &Job<'_>) {
    job.run(1, |deck| -> Result<()> {
        let again = deck.clone();
        deck.finish()?;
        let error = again.finish().unwrap_err();
        assert!(error.to_string().contains("twice"), "{error}");
        Ok(())
    });
}
