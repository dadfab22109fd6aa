//! Long messages whose sender is killed while it writes them.

use std::process::{Command, Stdio};

use mizzen::{Deck, Message, Result, UnpackError};

const LEN: usize = 40 << 20;

/// Rank 1 has announced two messages, of which its arena holds one and a half: it waits, and is killed.
fn rank(deck: &Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    if deck.rank() == 1 {
        let mut sender = deck.fetch("inbox 0")?.sender()?;
        sender.send(&std::process::id())?;
        let bytes = vec![7u8; LEN];
        for _ in 0..2 {
            let mut message = Message::new();
            message.pack_cheaper(&bytes[..]);
            sender.post(&mut message)?;
        }
        return Ok(());
    }
    let pid: u32 = inbox.receive()?;
    let (mut whole, mut half) = (inbox.retrieve()?, inbox.retrieve()?);
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    assert!(matches!(inbox.retrieve(), Err(error) if error.to_string().contains("rank 1")));
    let (mut first, mut second) = (vec![0u8; LEN], vec![0u8; LEN]);
    whole.unpack_cheaper(&mut first[..])?;
    whole.finish()?;
    assert!(first.iter().all(|byte| *byte == 7), "the first came whole");
    half.unpack_cheaper(&mut second[..])?;
    let outcome = half.finish();
    assert!(
        matches!(outcome, Err(UnpackError::PeerGone(_))),
        "{outcome:?}"
    );
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
