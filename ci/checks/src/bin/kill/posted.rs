//! The third stream: whole messages into receives that were posted before they came. None is lost, torn or out of order when
//! its sender dies, and receives for which nothing came end with the name of the dead.

use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use anyhow::{Context, bail, ensure};
use mizzen::{Error, Mailbox, MailboxRef, Receive, RetrieveError, UnpackError};
use mizzen_checks::checksum;

/// Receives that are posted at a time.
const POSTED: usize = 4;
/// Lengths of messages in words: one slot, the ring, chunks.
const WORDS: [usize; 3] = [4, 80, 9_000];
const LONGEST: usize = WORDS[2];
/// How often to ask whether the sender is gone, for whom it was over before the receive was posted.
const LOOK: Duration = Duration::from_millis(5);

/// Sends message `number`.
pub(super) fn send(to: &MailboxRef, number: u64) -> mizzen::Result<()> {
    let mut words = vec![number; WORDS[number as usize % WORDS.len()]];
    words[1] = checksum(&bytes(&words[2..]), number);
    to.send(&words[..])
}

/// Takes what rank 1 sends until it is gone: how many messages.
pub(super) fn take(inbox: &Mailbox, is_gone: &AtomicBool) -> anyhow::Result<u64> {
    let mut next = 0;
    loop {
        let post = |_| inbox.post_receive_from(1, vec![0u64; LONGEST]);
        let posted: Vec<_> = (0..POSTED).map(post).collect::<Result<_, _>>()?;
        let mut ended = None;
        for receive in posted {
            match take_one(receive, next, is_gone)? {
                Taken::Message if ended == Some(Taken::Nothing) => {
                    bail!("message {next} came after a receive that got none")
                }
                Taken::Message => next += 1,
                taken => ended = ended.or(Some(taken)),
            }
        }
        if ended.is_some() {
            return Ok(next);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Message,
    /// One that its sender did not finish.
    Part,
    Nothing,
}

fn take_one(mut receive: Receive<u64>, next: u64, is_gone: &AtomicBool) -> anyhow::Result<Taken> {
    loop {
        let was_gone = is_gone.load(Ordering::Acquire);
        let received = match receive.wait_timeout(LOOK) {
            Ok(received) => received,
            Err(Error::Retrieve(RetrieveError::TimedOut { .. })) if was_gone => {
                // Its rank was gone when it was posted.
                match receive.cancel() {
                    Ok(_) => return Ok(Taken::Nothing),
                    Err(matched) => receive = matched,
                }
                continue;
            }
            Err(Error::Retrieve(RetrieveError::TimedOut { .. })) => continue,
            Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => {
                ensure!(gone.rank() == 1, "the dead is named: {gone}");
                return Ok(Taken::Nothing);
            }
            Err(Error::Unpack(UnpackError::PeerGone(_))) => return Ok(Taken::Part),
            Err(error) => return Err(error).context("a posted receive"),
        };
        let number = received[0];
        ensure!(number == next, "posted: {number} came, {next} was next");
        ensure!(
            received.count() == WORDS[number as usize % WORDS.len()]
                && received[1] == checksum(&bytes(&received[2..]), number),
            "posted: message {number} is torn"
        );
        return Ok(Taken::Message);
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
