//! Credits: how much a peer may send to one mailbox before its owner has read (docs/wire.md §6).
//!
//! One [`Outflow`] at the sender and one [`Inflow`] at the receiver for each pair of peer and mailbox in
//! use. What the sender may still send, what waits in the mailbox, and what was read but not yet returned
//! always add up to the window:
//!
//! ```text
//!   Outflow.available + on the wire + Inflow.held + Inflow.due + credits on the wire = window
//! ```
//!
//! A machine in its first state equals one that does not exist, so idle mailboxes need none.

/// An amount of messages, and of the bytes in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Credits {
    /// How many messages.
    pub messages: u32,
    /// How many bytes: of the payloads of their frames, not of bodies.
    pub bytes: u64,
}

impl Credits {
    /// No message.
    pub const ZERO: Credits = Credits::new(0, 0);

    /// So many messages with so many bytes together.
    pub const fn new(messages: u32, bytes: u64) -> Self {
        Self { messages, bytes }
    }

    /// One message of `bytes`.
    pub const fn message(bytes: u64) -> Self {
        Self::new(1, bytes)
    }

    /// Both differences, unless one is negative.
    pub const fn checked_sub(self, other: Credits) -> Option<Credits> {
        match (
            self.messages.checked_sub(other.messages),
            self.bytes.checked_sub(other.bytes),
        ) {
            (Some(messages), Some(bytes)) => Some(Credits { messages, bytes }),
            _ => None,
        }
    }

    /// What is returned at once: half of a window, at least one (docs/wire.md §6.3).
    const fn reaches_half_of(self, window: Credits) -> bool {
        self.messages >= at_least_one(window.messages as u64 / 2) as u32
            || self.bytes >= at_least_one(window.bytes / 2)
    }
}

/// The sender's side: what may still be sent to one mailbox.
#[derive(Debug, Clone)]
pub struct Outflow {
    window: Credits,
    available: Credits,
}

impl Outflow {
    /// The whole window may be sent.
    pub const fn new(window: Credits) -> Self {
        Self {
            window,
            available: window,
        }
    }

    /// Pays for one message of `bytes`; stops at zero (docs/wire.md §6.2).
    ///
    /// # Errors
    /// There is not enough: wait for credits.
    pub fn spend(&mut self, bytes: u64) -> Result<(), NoCredit> {
        let left = self.available.checked_sub(Credits::message(bytes));
        self.available = left.ok_or(NoCredit)?;
        Ok(())
    }

    /// Takes back what was paid for a message that was not sent after all.
    ///
    /// # Panics
    /// When it was never paid.
    pub fn refund(&mut self, bytes: u64) {
        self.handle_credit(Credits::message(bytes))
            .expect("only what was spent is refunded");
    }

    /// Takes what the peer returns (docs/wire.md §6.4).
    ///
    /// # Errors
    /// The peer returns more than it was sent, or no message.
    pub fn handle_credit(&mut self, credits: Credits) -> Result<(), CreditOverflow> {
        let unreturned = self.unreturned();
        if credits.messages == 0 || unreturned.checked_sub(credits).is_none() {
            return Err(CreditOverflow {
                credits,
                unreturned,
            });
        }
        self.available.messages += credits.messages;
        self.available.bytes += credits.bytes;
        Ok(())
    }

    /// What was sent and not returned.
    pub fn unreturned(&self) -> Credits {
        // `available` starts at the window and grows only by what left it.
        Credits {
            messages: self.window.messages - self.available.messages,
            bytes: self.window.bytes - self.available.bytes,
        }
    }

    /// Whether this machine is in its first state, and so need not exist.
    pub fn is_idle(&self) -> bool {
        self.available == self.window
    }
}

/// The receiver's side: what waits in one mailbox, and what is to be returned for it.
#[derive(Debug, Clone)]
pub struct Inflow {
    window: Credits,
    held: Credits,
    due: Credits,
}

impl Inflow {
    /// Nothing came yet.
    pub const fn new(window: Credits) -> Self {
        Self {
            window,
            held: Credits::ZERO,
            due: Credits::ZERO,
        }
    }

    /// The owner took one message of `bytes` out of the mailbox.
    ///
    /// # Panics
    /// When there was none: every message is consumed once.
    pub fn consume(&mut self, bytes: u64) {
        let message = Credits::message(bytes);
        self.held = self
            .held
            .checked_sub(message)
            .expect("a message is consumed once, with the length it came with");
        self.due.messages += 1;
        self.due.bytes += bytes;
    }

    /// One message of `bytes` came.
    ///
    /// # Errors
    /// The peer had no credit for it (docs/wire.md §6.2).
    pub fn handle_message(&mut self, bytes: u64) -> Result<(), WindowExceeded> {
        let room = self.room();
        if room.checked_sub(Credits::message(bytes)).is_none() {
            return Err(WindowExceeded { bytes, room });
        }
        self.held.messages += 1;
        self.held.bytes += bytes;
        Ok(())
    }

    /// The credits to return now: a batch of half a window or more (docs/wire.md §6.3).
    pub fn poll_credit(&mut self) -> Option<Credits> {
        self.is_due().then(|| std::mem::take(&mut self.due))
    }

    /// Everything not returned yet, for a mailbox that closes (docs/wire.md §6.6).
    pub fn poll_rest(&mut self) -> Option<Credits> {
        (self.due != Credits::ZERO).then(|| std::mem::take(&mut self.due))
    }

    /// Whether a batch is to be returned.
    pub fn is_due(&self) -> bool {
        self.due.reaches_half_of(self.window)
    }

    /// What waits in the mailbox.
    pub fn held(&self) -> Credits {
        self.held
    }

    /// What the peer may still send.
    pub fn room(&self) -> Credits {
        // A message is taken only into room, and then moves from `held` to `due`.
        Credits {
            messages: self.window.messages - self.held.messages - self.due.messages,
            bytes: self.window.bytes - self.held.bytes - self.due.bytes,
        }
    }

    /// Whether this machine is in its first state, and so need not exist.
    pub fn is_idle(&self) -> bool {
        self.held == Credits::ZERO && self.due == Credits::ZERO
    }
}

/// The window is used up: wait for credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no credit")]
pub struct NoCredit;

/// A message came for which there was no credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes in one message, room for {} in {}", room.bytes, room.messages)]
pub struct WindowExceeded {
    /// Bytes of the message.
    pub bytes: u64,
    /// What the peer could send.
    pub room: Credits,
}

/// Credits came for what was never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} messages and {} bytes returned, {} and {} sent",
    credits.messages, credits.bytes, unreturned.messages, unreturned.bytes
)]
pub struct CreditOverflow {
    /// What was returned.
    pub credits: Credits,
    /// What could be.
    pub unreturned: Credits,
}

const fn at_least_one(count: u64) -> u64 {
    if count == 0 { 1 } else { count }
}

/// What a mailbox grants to each peer that uses it (docs/wire.md §6.1): enough for a round trip of short
/// messages at full rate, little enough that a thousand peers of one mailbox hold 1 GiB at the very worst.
pub const WINDOW: Credits = Credits::new(256, 1 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Credits = Credits::new(4, 100);

    #[test]
    fn a_sender_stops_when_messages_run_out() {
        let mut out = Outflow::new(SMALL);
        for _ in 0..4 {
            out.spend(0).unwrap();
        }
        assert_eq!(out.spend(0), Err(NoCredit));
        assert_eq!(out.unreturned(), Credits::new(4, 0));
    }

    #[test]
    fn a_sender_stops_when_bytes_run_out_and_pays_nothing_for_the_refusal() {
        let mut out = Outflow::new(SMALL);
        out.spend(60).unwrap();
        assert_eq!(out.spend(41), Err(NoCredit));
        assert_eq!(out.spend(40), Ok(()));
    }

    #[test]
    fn a_refund_leaves_no_trace() {
        let mut out = Outflow::new(SMALL);
        out.spend(60).unwrap();
        out.refund(60);
        assert!(out.is_idle());
    }

    #[test]
    fn credits_come_back_in_half_windows_of_messages() {
        let mut inflow = Inflow::new(SMALL);
        inflow.handle_message(1).unwrap();
        inflow.handle_message(1).unwrap();
        inflow.consume(1);
        assert_eq!(inflow.poll_credit(), None);
        inflow.consume(1);
        assert_eq!(inflow.poll_credit(), Some(Credits::new(2, 2)));
        assert!(inflow.is_idle());
    }

    #[test]
    fn credits_come_back_in_half_windows_of_bytes() {
        let mut inflow = Inflow::new(SMALL);
        inflow.handle_message(50).unwrap();
        inflow.consume(50);
        assert_eq!(inflow.poll_credit(), Some(Credits::new(1, 50)));
    }

    #[test]
    fn unread_and_unreturned_messages_both_take_room() {
        let mut inflow = Inflow::new(SMALL);
        inflow.handle_message(30).unwrap();
        inflow.handle_message(30).unwrap();
        inflow.consume(30);
        let room = Credits::new(2, 40);
        assert_eq!(inflow.room(), room);
        assert_eq!(
            inflow.handle_message(41),
            Err(WindowExceeded { bytes: 41, room })
        );
    }

    #[test]
    fn a_window_of_one_message_is_returned_after_each() {
        let mut inflow = Inflow::new(Credits::new(1, 10));
        inflow.handle_message(0).unwrap();
        inflow.consume(0);
        assert_eq!(inflow.poll_credit(), Some(Credits::new(1, 0)));
    }

    #[test]
    #[should_panic(expected = "consumed once")]
    fn consuming_what_never_came_is_our_mistake() {
        Inflow::new(SMALL).consume(1);
    }
}
