//! Services and mobile tasks among real processes: what they cost, what is said of them, and what is left when one dies.

mod common;

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::text;
use mizzen::{Deck, Result};

/// Starts the test's own executable again as the two ranks of a job, each of which ends here.
fn run(options: &[&str], body: impl FnOnce(Deck) -> Result<()>) -> Output {
    if std::env::var_os("MIZZEN_AGENT_FD").is_some() {
        let outcome = Deck::join().map_err(mizzen::Error::from).and_then(body);
        if let Err(error) = &outcome {
            eprintln!("the rank failed: {error}");
        }
        std::process::exit(i32::from(outcome.is_err()));
    }
    let thread = std::thread::current();
    let test = thread.name().expect("a test's thread has its name");
    Command::new(env!("CARGO_BIN_EXE_mizzen"))
        .args(["run", "-n", "2"])
        .args(options)
        .arg("--")
        .arg(std::env::current_exe().expect("this program has a path"))
        .args([test, "--exact", "--nocapture"])
        .stdin(Stdio::null())
        .output()
        .expect("the launcher starts")
}

/// Rank 1 says that it has ended, and rank 0 waits for it.
fn end(deck: &Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    if deck.rank() == 0 {
        deck.bind("end", &inbox)?;
        inbox.receive::<u8>()?;
    } else {
        deck.fetch("end")?.send(&0u8)?;
    }
    Ok(())
}

#[test]
fn a_notice_names_the_service_that_nobody_serves() {
    let output = run(&[], |deck| {
        if deck.rank() == 1 {
            let mut nobody = deck.client::<(), ()>("nobody")?;
            nobody.set_patience(Duration::from_millis(5500));
            assert!(nobody.call(&()).is_err());
        }
        end(&deck)
    });
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("for somebody to serve \"nobody\""), "{said}");
}

#[test]
fn a_notice_names_the_service_and_the_rank_that_does_not_answer() {
    let output = run(&[], |deck| {
        if deck.rank() == 0 {
            let (ended, until) = std::sync::mpsc::sync_channel(1);
            let _service = deck.serve("deaf", move |(): ()| {
                std::thread::sleep(Duration::from_secs(11));
                let _ = ended.send(());
            })?;
            // Whoever waits in a mailbox is noticed, too.
            let _ = until.recv();
            return end(&deck);
        }
        deck.client_at::<(), ()>(0, "deaf")?.call(&())?;
        end(&deck)
    });
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("for rank 0 to answer a call to \"deaf\""),
        "{said}"
    );
}
