//! Tickets of lent memory inside a message.

use super::payload::Payload;
use super::pieces::{Entry, MAX_PIECES, read_varint};
use crate::memory::{HandedTicket, LoanTicket};

/// What stands for a lent buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnyTicket {
    /// One of the sender's own.
    Own(LoanTicket),
    /// One that the sender hands on.
    Handed(HandedTicket),
}

/// Whether a lent piece may be so long.
pub(crate) fn is_ticket_len(len: u64) -> bool {
    len == LoanTicket::BYTES as u64 || len == HandedTicket::BYTES as u64
}

/// The ticket of a lent piece of `len` bytes at `at`, if it is one.
pub(crate) fn any_ticket_at(payload: &Payload, at: usize, len: u64) -> Option<AnyTicket> {
    if len != HandedTicket::BYTES as u64 {
        return ticket_at(payload, at).map(AnyTicket::Own);
    }
    let mut ticket = [0; HandedTicket::BYTES];
    if at.checked_add(ticket.len())? > payload.len() {
        return None;
    }
    payload.copy_out(at, &mut ticket);
    HandedTicket::from_bytes(&ticket).map(AnyTicket::Handed)
}

/// The tickets in a message with a table, as far as it makes sense.
pub(crate) fn lent_tickets(payload: &Payload) -> Vec<AnyTicket> {
    let mut bytes = vec![0; payload.len()];
    payload.copy_out(0, &mut bytes);
    let Some((count, mut at)) = read_varint(&bytes) else {
        return Vec::new();
    };
    let mut entries = Vec::new();
    for _ in 0..count.min(MAX_PIECES as u64) {
        let Some((entry, used)) = Entry::read(&bytes[at..]) else {
            return Vec::new();
        };
        entries.push(entry);
        at += used;
    }
    let mut tickets = Vec::new();
    for entry in entries {
        if entry.is_lent() {
            tickets.extend(any_ticket_at(payload, at, entry.len));
        }
        at = at.saturating_add(entry.len as usize);
    }
    tickets
}

/// The ticket at `at`, if the message is long enough.
pub(crate) fn ticket_at(payload: &Payload, at: usize) -> Option<LoanTicket> {
    let mut ticket = [0; LoanTicket::BYTES];
    if at.checked_add(ticket.len())? > payload.len() {
        return None;
    }
    payload.copy_out(at, &mut ticket);
    Some(LoanTicket::from_bytes(&ticket))
}
