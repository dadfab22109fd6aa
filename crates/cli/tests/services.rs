//! Services and tasks that move among real processes: what they cost, what is said of them, and what is left when one dies.

mod common;

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::text;
use mizzen::{Deck, MailboxRef, Message, Migrate, Result, Step};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts the test's own executable again as the two ranks of a job, each of which ends here.
fn run(options: &[&str], body: impl FnOnce(Deck) -> Result<()>) -> Output {
    if std::env::var_os("MIZZEN_AGENT_FD").is_some() {
        let outcome = Deck::join().and_then(body);
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

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
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
fn many_clients_take_no_descriptors() {
    const CLIENTS: usize = 300;
    let output = run(&[], |deck| {
        if deck.rank() == 0 {
            let _service = deck.serve("descriptors", |(): ()| descriptors())?;
            return end(&deck);
        }
        let mut clients = Vec::new();
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for _ in 0..CLIENTS {
            let mut client = deck.client_at::<(), usize>(0, "descriptors")?;
            there.push(client.call_timeout(&(), PATIENCE)?);
            here.push(descriptors());
            clients.push(client);
        }
        let grown = |counts: &[usize]| counts[CLIENTS - 1].saturating_sub(counts[0]);
        assert!(grown(&here) < 20, "{} more at the clients", grown(&here));
        assert!(grown(&there) < 20, "{} more at the service", grown(&there));
        end(&deck)
    });
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// A process has so many lanes of another's senders at most.
#[test]
fn a_service_that_cannot_open_a_way_back_answers_all_the_same() {
    let output = run(&[], |deck| {
        let inbox = deck.mailbox()?;
        if deck.rank() == 0 {
            let _service = deck.serve("echo", |x: u32| x)?;
            deck.bind("full", &inbox)?;
            let address: MailboxRef = inbox.retrieve()?.unpack_mailbox()?;
            let mut senders = Vec::new();
            while let Ok(sender) = address.sender() {
                senders.push(sender);
            }
            address.send(&(senders.len() as u64))?;
            return end(&deck);
        }
        let mut message = Message::new();
        message.pack_mailbox(&inbox.address());
        deck.fetch("full")?.post(&mut message)?;
        let lanes = inbox.receive::<u64>()?;
        assert!(lanes > 100, "{lanes} lanes");
        let mut echo = deck.client_at::<u32, u32>(0, "echo")?;
        for x in 0..10 {
            assert_eq!(echo.call_timeout(&x, PATIENCE)?, x);
        }
        end(&deck)
    });
    assert!(output.status.success(), "{}", text(&output.stderr));
}

static STEPS: AtomicU64 = AtomicU64::new(0);

/// A task that never ends.
#[derive(serde::Serialize, serde::Deserialize)]
struct Endless;

impl Migrate for Endless {
    const NAME: &'static str = "endless";
    type Output = ();

    fn step(&mut self, _: &Deck) -> Step<()> {
        STEPS.fetch_add(1, Ordering::Relaxed);
        Step::Again
    }
}

#[test]
fn the_tasks_of_a_home_that_died_stop_at_their_next_step() {
    let output = run(&["--on-death", "continue"], |deck| {
        deck.register::<Endless>()?;
        let inbox = deck.mailbox()?;
        if deck.rank() == 1 {
            deck.fetch("ready")?;
            let _journey = deck.spawn_at(0, Endless)?;
            let mut message = Message::new();
            message.pack_mailbox(&inbox.address());
            deck.fetch("ready")?.post(&mut message)?;
            inbox.receive::<u8>()?;
            std::process::abort();
        }
        inbox.depend_on(1);
        deck.bind("ready", &inbox)?;
        let home: MailboxRef = inbox.retrieve()?.unpack_mailbox()?;
        let started = Instant::now();
        while STEPS.load(Ordering::Relaxed) == 0 && started.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        home.send(&0u8)?;
        assert!(inbox.retrieve().is_err(), "rank 1 died");
        let started = Instant::now();
        while deck.tasks_here::<Endless>() > 0 && started.elapsed() < PATIENCE / 2 {
            std::thread::yield_now();
        }
        println!("{} tasks run on", deck.tasks_here::<Endless>());
        std::process::exit(0);
    });
    assert!(
        text(&output.stdout).contains(" 0 tasks run on"),
        "{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

#[test]
fn a_notice_names_the_service_that_nobody_serves() {
    let output = run(&[], |deck| {
        if deck.rank() == 1 {
            let mut nobody = deck.client::<(), ()>("nobody")?;
            nobody.set_timeout(Duration::from_millis(5500));
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
                // Longer than it takes until somebody who waits is noticed.
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

/// One of two ranks is killed before it has finished: the other one is told, and does not wait.
fn finish_without(victim: u32) {
    let output = run(&["--on-death", "continue"], |deck| {
        let inbox = deck.mailbox()?;
        let me = deck.rank().0;
        deck.bind(&format!("inbox {me}"), &inbox)?;
        deck.fetch(&format!("inbox {}", 1 - me))?.send(&0u8)?;
        inbox.receive::<u8>()?;
        if me == victim {
            std::process::abort();
        }
        println!("finish says: {}", deck.finish().unwrap_err());
        std::process::exit(0);
    });
    let said = text(&output.stdout);
    let expected =
        format!("finish says: the job finished without all of its processes: rank {victim} died");
    assert!(said.contains(&expected), "{said}{}", text(&output.stderr));
}

#[test]
fn whoever_dies_before_it_has_finished_is_named_to_the_first_rank() {
    finish_without(1);
}

#[test]
fn whoever_dies_before_it_has_finished_is_named_to_the_others() {
    finish_without(0);
}
