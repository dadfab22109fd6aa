//! One name that all processes of a job fetch at the same moment: `one_name FOLDER`, run by `ci/one-name`.
//!
//! Rank 0 binds it. Each process says that it is there, waits for the time of day that the file `go` in the folder tells, fetches the
//! name, and prints how long that took. Nobody leaves before there is a file `done`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mizzen::{Deck, Result};

const NAME: &str = "what all want";
/// How often a process looks for a file; a thousand do.
const LOOK: Duration = Duration::from_millis(100);
/// After this, whoever should have made the file is gone.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() -> Result<()> {
    let deck = Deck::join()?;
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("a folder"));
    let inbox = deck.mailbox()?;
    if deck.rank() == 0 {
        deck.bind(NAME, &inbox)?;
    }
    println!("is ready");
    let at = text_of(&folder.join("go"));
    let at = Duration::from_millis(at.trim().parse().expect("a time of day"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    std::thread::sleep(at.saturating_sub(now.expect("after 1970")));
    let begun = Instant::now();
    deck.fetch(NAME)?;
    println!("fetched after {} µs", begun.elapsed().as_micros());
    text_of(&folder.join("done"));
    Ok(())
}

/// What a file says, when it is there.
fn text_of(file: &Path) -> String {
    let begun = Instant::now();
    loop {
        match fs::read_to_string(file) {
            Ok(text) if !text.is_empty() => return text,
            _ => assert!(begun.elapsed() < PATIENCE, "nobody made {}", file.display()),
        }
        std::thread::sleep(LOOK);
    }
}
