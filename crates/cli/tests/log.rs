//! What `MIZZEN_LOG` shows: of a job, of a program alone, and nothing if the program listens itself.

mod common;

use std::process::Stdio;
use std::time::Duration;

use common::text;
use mizzen::{Deck, Result};

/// Set for the processes of a test's job, and for programs that a test starts without a launcher.
const PROGRAM: &str = "MIZZEN_TEST_PROGRAM";

/// This executable again, as a program of `body` that is started as `launch` says: what it writes to standard error.
fn stderr(launch: &[&str], level: &str, body: impl FnOnce() -> Result<()>) -> String {
    if std::env::var_os(PROGRAM).is_some() {
        std::process::exit(i32::from(body().is_err()));
    }
    let thread = std::thread::current();
    let test = thread.name().expect("a test's thread has its name");
    let mut command = common::itself(launch);
    command.args([test, "--exact", "--nocapture"]);
    command.env(PROGRAM, "1").env("MIZZEN_LOG", level);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    stderr
}

/// A little of everything.
fn everything(deck: Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    let _service = (deck.rank() == 0).then(|| deck.serve("twice", |x: u32| 2 * x));
    if deck.rank() == 0 {
        deck.bind("inbox", &inbox)?;
        // Sleeps at least once.
        let deadline = Duration::from_millis(200);
        let nothing = deck.mailbox()?.retrieve_timeout(deadline);
        assert!(nothing.is_err());
        for _ in 1..deck.size() {
            inbox.receive::<u32>()?;
        }
    } else {
        deck.fetch("inbox")?.send(&deck.rank().0)?;
        deck.client_at::<u32, u32>(0, "twice")?.call(&21)?;
    }
    deck.pool().name("squares").map(0..4u64, |x| x * x)?;
    deck.finish()
}

#[test]
fn a_job_says_what_happens_in_it() {
    let said = stderr(&["-n", "2"], "debug", || everything(Deck::join()?));
    let has = |words: &[&str]| {
        let line = |line: &&str| words.iter().all(|words| line.contains(words));
        assert!(said.lines().any(|said| line(&said)), "{words:?}:\n{said}");
    };
    // The launcher's own, and those of the processes with their label.
    has(&["mizzen: ", "DEBUG", "process started", "rank=1"]);
    has(&["mizzen: ", "DEBUG", "process ended", "rank=0"]);
    has(&["[1] ", "DEBUG process{rank=1}: joined the job"]);
    has(&["[0] ", "process{rank=0}: link through memory made peer=1"]);
    has(&["[0] ", "name bound name=inbox"]);
    has(&["[0] ", "service begun service=twice"]);
    has(&["[0] ", "service ended service=twice", "calls=1"]);
    has(&[
        "[1] ",
        "process{rank=1}: map{name=squares number=0}: map begun items=4",
    ]);
    has(&["[1] ", "map ended: 4 items"]);
    has(&["[0] ", "leaves the job how=Left"]);
    // Of objects that ended, and of what was left when the process left.
    has(&[
        "[0] ",
        "mailbox closed mailbox=3 counts=messages_received=1",
    ]);
    has(&[
        "process{rank=",
        "link ",
        "messages_sent=",
        "messages_received=",
    ]);
    has(&["[1] ", "process{rank=1}: pool ended counts=maps=1 items=4"]);
    has(&["[0] ", "process{rank=0}: counted: process: sleeps="]);
}

#[test]
fn a_level_shows_no_more_than_it_says() {
    let said = stderr(&["-n", "2"], "warn", || everything(Deck::join()?));
    assert_eq!(said, "");
    let said = stderr(&["-n", "1"], "loud", || Deck::join().map(drop));
    assert!(
        said.contains("WARN  MIZZEN_LOG is \"loud\"; give error, warn,"),
        "{said}"
    );
}

#[test]
fn a_program_alone_tells_of_long_waits_if_it_is_asked_to() {
    let said = stderr(&[], "warn", || {
        mizzen::local(2, |deck| {
            let inbox = deck.mailbox()?;
            if deck.rank() == 1 {
                // Rank 0 is not gone yet.
                deck.bind("inbox", &inbox)?;
                return inbox.receive::<u8>().map(|_| ());
            }
            let waited = inbox.retrieve_timeout(Duration::from_millis(11_400));
            assert!(waited.is_err());
            deck.fetch("inbox")?.send(&0u8)?;
            Ok(())
        })
        .map(drop)
    });
    for rank in [0, 1] {
        // Ten seconds, or more where the machine has other things to do.
        let words = format!("WARN  process{{rank={rank}}}: has waited 1");
        let line = said.lines().find(|line| line.contains(&words));
        let awaited = " s for a message to one of its mailboxes";
        assert!(line.is_some_and(|line| line.ends_with(awaited)), "{said}");
    }
}

/// Somebody of the program's own, who says nothing.
struct Silent;

impl tracing::Subscriber for Silent {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::Id {
        tracing::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::Id, _: &tracing::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &tracing::Id) {}
    fn exit(&self, _: &tracing::Id) {}
}

#[test]
fn a_program_that_listens_itself_is_not_talked_over() {
    let said = stderr(&[], "debug", || {
        tracing::subscriber::set_global_default(Silent).expect("it is the first");
        everything(Deck::join()?)
    });
    assert_eq!(said, "");
}
