//! Long messages whose sender is killed while it writes them.

use std::process::{Command, Stdio};

use mizzen::{Deck, Result, UnpackError};
use rustix::process::{Pid, Signal, kill_process};

/// Read whole, and then one that takes its sender tens of milliseconds to write.
const LENGTHS: [usize; 2] = [4 << 20, 60 << 20];

fn rank(deck: &Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    if deck.rank() == 1 {
        let mut sender = deck.fetch("inbox 0")?.sender()?;
        sender.send(&std::process::id())?;
        for len in LENGTHS {
            sender.send(&vec![7u8; len][..])?;
        }
        return Ok(());
    }
    let pid = Pid::from_raw(inbox.receive()?).expect("a process number");
    let whole = inbox.receive_vec::<u8>()?;
    assert!(whole.len() == LENGTHS[0] && whole.iter().all(|byte| *byte == 7));
    let mut target = vec![0u8; LENGTHS[1]];
    let mut half = inbox.retrieve()?;
    kill_process(pid, Signal::KILL).expect("it is there");
    half.unpack_cheaper(&mut target[..])?;
    let outcome = half.finish();
    assert!(
        matches!(outcome, Err(UnpackError::PeerGone(_))),
        "{outcome:?}"
    );
    assert!(matches!(inbox.retrieve(), Err(error) if error.to_string().contains("rank 1")));
    println!("as expected");
    Ok(())
}

#[test]
fn a_message_whose_sender_is_killed_is_whole_or_an_error() {
    if std::env::var_os("MIZZEN_AGENT_FD").is_some() {
        let outcome = Deck::join()
            .map_err(Into::into)
            .and_then(|deck| rank(&deck));
        std::process::exit(outcome.map_or(1, |()| 0));
    }
    let output = Command::new(env!("CARGO_BIN_EXE_mizzen"))
        .args(["run", "--no-label", "-n", "2", "--on-death", "continue"])
        .arg("--")
        .arg(std::env::current_exe().expect("this program has a path"))
        .args(["a_message_whose_sender_is_killed", "--nocapture"])
        .stdin(Stdio::null())
        .output()
        .expect("the launcher starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("as expected"), "{said}{complained}");
}
