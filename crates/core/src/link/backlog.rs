//! Messages that were posted and found no room: they wait here, in memory of their own, until there is some.
//!
//! A poster does not wait for a reader as long as less than the allowance waits here. While something waits, everything that
//! is posted to the same place waits behind it, so that the order stays. Whoever looks for messages moves it on; if nobody
//! does, the process's reactor does.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use mizzen_lane::Parts;

use crate::message::{AnyTicket, Encoded, Flags, Payload, lent_tickets, ticket_at};

/// How much may wait for one mailbox before those who post to it wait themselves.
pub(crate) const ALLOWANCE: usize = 64 << 20;

/// What a message counts for in addition to its bytes: the memory for keeping it, and so a bound on the number of empty ones.
pub(crate) const EACH: usize = 64;

/// The longest message that may wait, less what its table and the memory for keeping it may take.
pub(crate) const LONGEST_TO_WAIT: usize = ALLOWANCE - (1 << 20);

/// What waits for room at one place, the oldest first. `T` is a message.
#[derive(Debug)]
pub(crate) struct Backlog<T> {
    queue: VecDeque<(usize, T)>,
    bytes: usize,
    /// Tasks that wait until less waits here. Each is woken once.
    posters: Vec<Waker>,
}

impl<T> Default for Backlog<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
            posters: Vec::new(),
        }
    }
}

impl<T> Backlog<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many messages wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether a message of so many bytes may wait here.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.bytes.saturating_add(len).saturating_add(EACH) <= ALLOWANCE
    }

    /// Adds a message of so many bytes, for which there is room.
    pub(crate) fn push(&mut self, len: usize, message: T) {
        self.bytes += len + EACH;
        self.queue.push_back((len, message));
    }

    /// The oldest message.
    pub(crate) fn front(&self) -> Option<&T> {
        self.queue.front().map(|(_, message)| message)
    }

    /// The oldest message went.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let (len, message) = self.queue.pop_front()?;
        self.bytes -= len + EACH;
        Some(message)
    }

    /// Removes the oldest entry of which this is true. Whether there was one.
    pub(crate) fn remove(&mut self, is: impl Fn(&T) -> bool) -> bool {
        let index = self.queue.iter().position(|(_, entry)| is(entry));
        let removed = index.and_then(|index| self.queue.remove(index));
        if let Some((len, _)) = &removed {
            self.bytes -= len + EACH;
        }
        removed.is_some()
    }

    /// Whether so much waits here that posters wait for less: until half of the allowance is free, so that they are not woken
    /// one by one.
    fn is_half_full(&self) -> bool {
        self.bytes > ALLOWANCE / 2
    }

    /// A task waits until less waits here. `false`: it need not.
    pub(crate) fn await_less(&mut self, waker: &Waker) -> bool {
        let waits = self.is_half_full();
        if waits && !self.posters.iter().any(|known| known.will_wake(waker)) {
            self.posters.push(waker.clone());
        }
        waits
    }

    /// The tasks to wake, if they need not wait any more. Woken by the caller, without any lock.
    pub(crate) fn take_posters(&mut self) -> Vec<Waker> {
        if self.is_half_full() {
            return Vec::new();
        }
        core::mem::take(&mut self.posters)
    }
}

/// What waits at one place: a copy of a message, or the turn of one that stays where it is until it can go.
#[derive(Debug)]
pub(crate) enum Queued<T> {
    Message(T),
    Turn(Turn),
}

impl<T> Queued<T> {
    /// Whether it is this turn.
    pub(crate) fn is(&self, turn: &Turn) -> bool {
        matches!(self, Self::Turn(other) if Arc::ptr_eq(&other.0, &turn.0))
    }
}

/// The place of an operation among the messages that wait for a mailbox: what is posted after it waits behind it.
#[derive(Clone, Debug)]
pub(crate) struct Turn(Arc<IsTurn>);

/// Not empty, so that no two of them have the same address.
#[derive(Debug)]
struct IsTurn(#[expect(dead_code, reason = "only its address counts")] u8);

impl Turn {
    pub(crate) fn new() -> Self {
        Self(Arc::new(IsTurn(0)))
    }
}

/// A message to a lane that waits: its bytes as they travel.
#[derive(Debug)]
pub(crate) struct Waiting {
    flags: Flags,
    bytes: Box<[u8]>,
}

impl Waiting {
    /// A copy of a message.
    pub(crate) fn of(message: &impl Encoded) -> Self {
        let mut bytes = Vec::with_capacity(message.len());
        message.each(|part| bytes.extend_from_slice(part));
        Self {
            flags: message.flags(),
            bytes: bytes.into(),
        }
    }

    /// Whether it hands over memory of ours, which only its receiver gives back.
    pub(crate) fn hands_over(&self) -> bool {
        self.flags.refers_to_lender()
    }

    /// The blocks that it hands over.
    pub(crate) fn tickets(self) -> Vec<AnyTicket> {
        let payload = Payload::Owned(self.bytes.into());
        let is_ticket = [Flags::LONG, Flags::STREAM, Flags::HANDED];
        if is_ticket.into_iter().any(|flag| self.flags.has(flag)) {
            ticket_at(&payload, 0)
                .map(AnyTicket::Own)
                .into_iter()
                .collect()
        } else if self.flags.has(Flags::LENT) {
            lent_tickets(&payload)
        } else {
            Vec::new()
        }
    }

    /// Whether a message may wait. The lent buffers of a long one are named in the block that it hands over, where nobody finds
    /// them if it never goes.
    pub(crate) fn may_wait(flags: Flags) -> bool {
        !(flags.has(Flags::LONG) && flags.has(Flags::LENT))
    }
}

impl Parts for Waiting {
    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn each(&self, mut take: impl FnMut(&[u8])) {
        take(&self.bytes);
    }
}

impl Encoded for Waiting {
    fn flags(&self) -> Flags {
        self.flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_much_may_wait_also_of_empty_messages() {
        let mut backlog = Backlog::default();
        let mut count = 0;
        while backlog.has_room(0) {
            backlog.push(0, ());
            count += 1;
        }
        assert_eq!(count, ALLOWANCE / EACH);
        assert!(backlog.pop().is_some() && backlog.has_room(0) && !backlog.has_room(1));
        while backlog.pop().is_some() {}
        assert!(backlog.is_empty() && backlog.has_room(ALLOWANCE - EACH));
        assert!(!backlog.has_room(usize::MAX));
    }

    #[test]
    fn a_turn_is_found_among_others_and_removed_once() {
        let mut backlog = Backlog::default();
        let turns = [Turn::new(), Turn::new()];
        backlog.push(3, Queued::Message(7));
        for turn in &turns {
            backlog.push(0, Queued::Turn(turn.clone()));
        }
        assert!(backlog.remove(|entry| entry.is(&turns[1])));
        assert!(!backlog.remove(|entry| entry.is(&turns[1])));
        assert!(matches!(backlog.pop(), Some(Queued::Message(7))));
        assert!(backlog.front().is_some_and(|entry| entry.is(&turns[0])));
        assert!(backlog.pop().is_some() && backlog.has_room(ALLOWANCE - EACH));
    }

    #[test]
    fn posters_are_woken_when_half_is_free() {
        let mut backlog = Backlog::default();
        for number in 0..4 {
            backlog.push(ALLOWANCE / 4 - EACH, number);
        }
        assert!(backlog.await_less(Waker::noop()) && backlog.await_less(Waker::noop()));
        assert_eq!(backlog.front(), Some(&0));
        assert_eq!(backlog.pop(), Some(0));
        assert!(backlog.take_posters().is_empty());
        backlog.pop();
        assert_eq!(backlog.take_posters().len(), 1);
        assert!(!backlog.await_less(Waker::noop()));
    }
}
