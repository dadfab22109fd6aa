//! How a process of another host died is told to those who depend on it.

use std::process::{Command, Stdio};

use mizzen::{Deck, Result};

fn rank(deck: &Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    if deck.rank() == 1 {
        let other = deck.fetch("inbox 0")?;
        other.send(&1u8)?;
        // Now the other one waits for us, and knows us.
        inbox.receive::<u8>()?;
        std::process::abort();
    }
    inbox.receive::<u8>()?;
    let other = deck.fetch("inbox 1")?;
    other.send(&1u8)?;
    let waited = inbox.receive::<u8>().expect_err("the other one is dead");
    println!("waiting: {waited}");
    let posted = other.send(&1u8).expect_err("the other one is dead");
    println!("posting: {posted}");
    Ok(())
}

fn run_on(options: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mizzen"))
        .args(["run", "--no-label", "-n", "2", "--on-death", "continue"])
        .args(options)
        .arg("--")
        .arg(std::env::current_exe().expect("this program has a path"))
        .args(["a_death_on_another_host", "--nocapture"])
        .stdin(Stdio::null())
        .output()
        .expect("the launcher starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    format!("{said}{complained}")
}

#[test]
fn a_death_on_another_host_is_told_with_its_signal() {
    if std::env::var_os("MIZZEN_AGENT_FD").is_some() {
        let outcome = Deck::join().and_then(|deck| rank(&deck));
        std::process::exit(outcome.map_or(1, |()| 0));
    }
    let hosts = "h1=127.0.0.1,h2=127.0.0.1";
    let said = run_on(&["--hosts", hosts, "--remote-shell", "env"]);
    for line in [
        "waiting: rank 1 died: signal 6 (SIGABRT)",
        "posting: message not posted: rank 1 died: signal 6 (SIGABRT)",
        "was killed by signal 6 (SIGABRT); the other process goes on.",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("connection to its host broke"), "{said}");
}
