//! Waiting for a message when nobody is left who could send one. Whether a program has other threads matters, so these are
//! programs of their own, without the test harness, which has a thread too: each test starts this executable again.

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use mizzen::{Deck, Result};

/// The longest a job may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a thread lets the other one wait before it sends: long enough for several looks at who is left.
const LATE: Duration = Duration::from_secs(2);

/// What a test's job does, and what must come of it.
struct Test {
    name: &'static str,
    /// Arguments of the launcher; none: the program is started alone.
    launch: &'static [&'static str],
    program: fn() -> Result<u64>,
    /// Words of what rank 0 says in the end.
    says: &'static [&'static str],
}

const HOPELESS: &str = "nobody is left who could send to this mailbox";

const TESTS: &[Test] = &[
    Test {
        name: "a_rank_of_a_local_job_learns_that_the_other_returned",
        launch: &[],
        program: || local(2),
        says: &["1 received first", HOPELESS, "rank 1 has left the job"],
    },
    Test {
        name: "a_rank_of_a_local_job_learns_that_both_others_returned",
        launch: &[],
        program: || local(3),
        says: &[
            "2 received first",
            HOPELESS,
            "rank 1 has left the job, rank 2 has left the job",
        ],
    },
    Test {
        name: "a_job_of_one_waits_for_nobody",
        launch: &[],
        program: || receive_all(&Deck::join()?),
        says: &[HOPELESS, "the job has no other process"],
    },
    Test {
        name: "another_thread_of_a_local_rank_may_still_send",
        launch: &[],
        program: || {
            let sums = mizzen::local(2, |deck| match deck.rank().0 {
                0 => with_a_late_thread(&deck),
                _ => Ok(0),
            })?;
            Ok(sums[0])
        },
        says: &["received 7"],
    },
    Test {
        name: "a_launched_process_learns_that_the_other_ended",
        launch: &["-n", "2"],
        program: launched,
        says: &[HOPELESS, "rank 1 has left the job"],
    },
    Test {
        name: "a_launched_process_learns_that_both_others_ended",
        launch: &["-n", "3"],
        program: launched,
        says: &[
            "2 received first",
            HOPELESS,
            "rank 1 has left the job, rank 2 has left the job",
        ],
    },
    Test {
        name: "a_launched_process_learns_that_another_died_and_one_left",
        launch: &["-n", "3", "--on-death", "continue"],
        program: || {
            let deck = Deck::join()?;
            if deck.rank() == 2 {
                std::process::abort();
            }
            launched_as(deck)
        },
        says: &[HOPELESS, "rank 2 died"],
    },
    Test {
        name: "another_thread_of_a_launched_process_may_still_send",
        launch: &["-n", "2"],
        program: || {
            let deck = Deck::join()?;
            match deck.rank().0 {
                0 => with_a_late_thread(&deck),
                _ => Ok(0),
            }
        },
        says: &["received 7"],
    },
];

fn local(size: u32) -> Result<u64> {
    Ok(mizzen::local(size, launched_as)?.into_iter().sum())
}

fn launched() -> Result<u64> {
    launched_as(Deck::join()?)
}

/// Rank 0 receives more than the others send before they leave.
fn launched_as(deck: Deck) -> Result<u64> {
    if deck.rank() != 0 {
        deck.fetch("inbox")?.send(&7u64)?;
        return Ok(0);
    }
    receive_all(&deck)
}

fn receive_all(deck: &Deck) -> Result<u64> {
    let inbox = deck.mailbox()?;
    deck.bind("inbox", &inbox)?;
    let mut received = 0;
    loop {
        match inbox.receive::<u64>() {
            Ok(_) => received += 1,
            // That somebody died is said once, and is not the end.
            Err(error) if error.lost().is_some() => (),
            Err(error) => {
                println!("{received} received first");
                return Err(error);
            }
        }
    }
}

/// The address is only borrowed by the other thread.
fn with_a_late_thread(deck: &Deck) -> Result<u64> {
    let inbox = deck.mailbox()?;
    let address = inbox.address();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            // Meanwhile the receiver sleeps, and has nobody else to hear from.
            std::thread::sleep(LATE);
            address.send(&7u64)
        });
        inbox.receive::<u64>()
    })
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [program, name] = &args[..] {
        if program == "--program" {
            return be(name);
        }
    }
    if args.iter().any(|arg| arg == "--list") {
        if !args.iter().any(|arg| arg == "--ignored") {
            TESTS
                .iter()
                .for_each(|test| println!("{}: test", test.name));
        }
        return;
    }
    let wanted = args.iter().find(|arg| !arg.starts_with("--"));
    for test in TESTS {
        if wanted.is_none_or(|wanted| test.name.contains(wanted.as_str())) {
            check(test);
        }
    }
}

/// One process of a test's job.
fn be(name: &str) {
    let test = TESTS.iter().find(|test| test.name == name);
    match (test.expect("there is such a test").program)() {
        Ok(0) => (),
        Ok(value) => println!("received {value}"),
        Err(error) => println!("{error}"),
    }
}

fn check(test: &Test) {
    let me = std::env::current_exe().expect("this program has a path");
    let mut command = match test.launch {
        [] => Command::new(me),
        launch => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_mizzen"));
            command.arg("run").args(launch).arg("--").arg(me);
            command
        }
    };
    command.args(["--program", test.name]);
    let output = run(command);
    let said = String::from_utf8_lossy(&output.stdout);
    for words in test.says {
        assert!(said.contains(words), "{}: {output:?}", test.name);
    }
    println!("test {} ... ok", test.name);
}

fn run(mut command: Command) -> Output {
    let piped = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the program starts");
    let started = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if started.elapsed() > PATIENCE {
            child.kill().expect("it is our child");
            let output = child.wait_with_output().expect("it is our child");
            panic!("it still waits after {PATIENCE:?}: {output:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().expect("it is our child")
}
