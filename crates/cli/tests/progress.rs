//! How far a pool's map is: what the launcher shows on a terminal and elsewhere, and that the library itself prints nothing.

mod common;

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::text;
use mizzen::{Deck, Result};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Set for the processes of a test's job, and for programs that a test starts without a launcher.
const PROGRAM: &str = "MIZZEN_TEST_PROGRAM";
/// Lines that rank 0 prints while the map goes on.
const LINES: usize = 6;

/// This executable again, as a program of `body` that is started as `launch` says.
fn program(launch: &[&str], body: impl FnOnce() -> Result<()>) -> Command {
    if std::env::var_os(PROGRAM).is_some() {
        let outcome = body();
        if let Err(error) = &outcome {
            println!("it failed: {error}");
        }
        // Before the test harness has its word.
        std::process::exit(i32::from(outcome.is_err()));
    }
    let thread = std::thread::current();
    let test = thread.name().expect("a test's thread has its name");
    let mut command = common::itself(launch);
    command.args([test, "--exact", "--nocapture", "--quiet"]);
    command.env(PROGRAM, "1").stdin(Stdio::null());
    command
}

/// A map of so many items, each of which takes this process `item`. Rank 0 has them all, and prints lines meanwhile.
fn map(deck: &Deck, items: u64, item: Duration) -> Result<()> {
    let all = if deck.rank() == 0 { 0..items } else { 0..0 };
    let mut came = 0;
    deck.pool().name("tiles").threads(1).for_each(
        all,
        |_| std::thread::sleep(item),
        |_, ()| {
            came += 1;
            if came % (items / LINES as u64) == 0 {
                println!("came {came}");
            }
            std::ops::ControlFlow::Continue(())
        },
    )?;
    Ok(())
}

/// What the test harness prints before a program of ours runs, perhaps behind a label, is not ours.
fn without_harness(text: &str) -> Vec<&str> {
    let is_ours = |line: &&str| {
        let words = line.trim_start_matches(['[', '0', '1', ']', ' ']);
        !words.is_empty() && words != "running 1 test"
    };
    text.lines().map(str::trim_end).filter(is_ours).collect()
}

/// Runs a command on a terminal of 24 lines and 80 columns: all that it writes there.
fn on_terminal(mut command: Command) -> (String, Option<i32>) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
    grantpt(&master).expect("it is ours");
    unlockpt(&master).expect("it is ours");
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size).expect("a terminal has a size");
    let path = ptsname(&master, Vec::new()).expect("it has a name");
    let path = path.into_string().expect("which is text");
    let open = || OwnedFd::from(File::options().read(true).write(true).open(&path).unwrap());
    let mut child = command.stdout(open()).stderr(open()).spawn().unwrap();
    // Our copies of its descriptors, or the end would not be seen.
    drop(command);
    let mut bytes = Vec::new();
    // The kernel reports the end of the last writer as an error.
    let _ = File::from(master).read_to_end(&mut bytes);
    (text(&bytes), child.wait().unwrap().code())
}

/// What stands on a terminal after all this was written: enough of one for what is written here.
fn screen(written: &str) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![String::new()], 0, 0);
    let mut rest = written.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                assert_eq!(rest.next(), Some('['));
                let mut number = String::new();
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    number.push(digit);
                }
                let count = number.parse().unwrap_or(1);
                match rest.next() {
                    Some('A') => row -= count,
                    Some('B') => row += count,
                    Some('K') => lines[row].clear(),
                    other => panic!("unknown sequence {other:?}"),
                }
            }
            letter => {
                // A line that is full goes on in the next one when there is more of it.
                if column == 80 {
                    (row, column) = (row + 1, 0);
                }
                while lines.len() <= row {
                    lines.push(String::new());
                }
                let mut line: Vec<char> = lines[row].chars().collect();
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                lines[row] = line.into_iter().collect();
                column += 1;
            }
        }
        while lines.len() <= row {
            lines.push(String::new());
        }
    }
    let lines = lines.into_iter().map(|line| line.trim_end().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

fn expected_lines(items: u64, label: &str) -> Vec<String> {
    let each = items / LINES as u64;
    let line = |number: u64| format!("{label}came {}", number * each);
    (1..=LINES as u64).map(line).collect()
}

#[test]
fn a_terminal_gets_a_bar_below_what_is_printed() {
    const ITEMS: u64 = 600;
    let command = program(&["-n", "2"], || {
        map(&Deck::join()?, ITEMS, Duration::from_millis(5))
    });
    let (written, code) = on_terminal(command);
    assert_eq!(code, Some(0), "{written}");
    let bars: Vec<&str> = written.split("tiles [").skip(1).collect();
    assert!(bars.len() >= 3, "it is drawn again and again: {written:?}");
    let full = |bar: &&str| {
        ["=>", "of 600 items, ", "/s, ", " s left, ", "ranks at work"]
            .iter()
            .all(|words| bar.contains(words))
    };
    assert!(bars.iter().any(full), "{written:?}");
    // What is left on the screen is what the program printed, and nothing of the bars.
    let left = screen(&written).join("\n");
    assert_eq!(without_harness(&left), expected_lines(ITEMS, "[0] "));
}

#[test]
fn without_a_terminal_there_is_a_line_every_two_seconds() {
    const ITEMS: u64 = 1200;
    let mut command = program(&["-n", "2"], || {
        map(&Deck::join()?, ITEMS, Duration::from_millis(10))
    });
    let started = std::time::Instant::now();
    let Output { stderr, status, .. } = command.output().unwrap();
    let took = started.elapsed().as_secs() as usize;
    let stderr = text(&stderr);
    assert!(status.success(), "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    let (last, others) = lines.split_last().expect("it takes six seconds");
    assert!((2..=took / 2).contains(&others.len()), "{took} s: {stderr}");
    for line in others {
        assert!(line.starts_with("mizzen: tiles: "), "{stderr}");
        for words in ["of 1200 items, ", "/s, ", " s left, ", "at work."] {
            assert!(line.contains(words), "{stderr}");
        }
    }
    assert!(last.contains("tiles: 1200 of 1200 items"), "{stderr}");
}

#[test]
fn who_listens_itself_is_not_shown_by_the_launcher() {
    let mut command = program(&["-n", "2"], || {
        let deck = Deck::join()?;
        let mut heard = 0;
        let items = if deck.rank() == 0 { 0..300 } else { 0..0 };
        deck.pool()
            .threads(1)
            .on_progress(|progress| heard += usize::from(progress.done <= progress.total))
            .map(items, |_: u64| {
                std::thread::sleep(Duration::from_millis(20))
            })?;
        if deck.rank() == 0 {
            println!("heard of it often: {}", heard > 10);
        }
        Ok(())
    });
    let output = command.output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert!(text(&output.stdout).contains("[0] heard of it often: true"));
}

#[test]
fn a_program_alone_prints_nothing_but_its_own_words() {
    const ITEMS: u64 = 60;
    // On a terminal, where it would be seen, and longer than the launcher would take to say that it waits.
    let command = program(&[], || {
        map(&Deck::join()?, ITEMS, Duration::from_millis(20))?;
        mizzen::local(2, |deck| {
            map(&deck, ITEMS, Duration::from_millis(20))?;
            let inbox = deck.mailbox()?;
            if deck.rank() == 0 {
                let waited = inbox.retrieve_timeout(Duration::from_millis(11_400));
                assert!(waited.is_err());
                return deck.fetch("other")?.send(&1u8);
            }
            deck.bind("other", &inbox)?;
            inbox.receive::<u8>().map(|_| ())
        })?;
        Ok(())
    });
    let (written, code) = on_terminal(command);
    assert_eq!(code, Some(0), "{written}");
    let expected = [expected_lines(ITEMS, ""), expected_lines(ITEMS, "")].concat();
    assert_eq!(without_harness(&written), expected, "{written}");
}
