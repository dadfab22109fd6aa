//! The way back to one client.

use core::fmt;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mizzen_lane::SHORT_MAX;

use super::wire::{COMPACT_MAX, HEADER, Header, Kind};
use crate::lock::lock;
use crate::message::Message;
use crate::sender::Sender;

/// A client of a service, as the service sees it.
pub(super) struct Session {
    number: u32,
    reply: Mutex<Sender>,
    /// Calls that nobody waits for any more and that may still run.
    cancelled: Mutex<HashSet<u64>>,
    has_cancelled: AtomicBool,
    /// Async handlers under way.
    running: Mutex<HashMap<u64, async_task::Task<()>>>,
}

impl Session {
    pub(super) fn new(number: u32, reply: Sender) -> Self {
        Self {
            number,
            reply: Mutex::new(reply),
            cancelled: Mutex::default(),
            has_cancelled: AtomicBool::new(false),
            running: Mutex::default(),
        }
    }

    /// Answers with a value. A client that is gone gets nothing, and need not.
    pub(super) fn answer<R: serde::Serialize>(&self, call: u64, kind: Kind, result: &R) {
        let header = self.header(call, kind);
        let mut short = [0; SHORT_MAX];
        short[..HEADER].copy_from_slice(&header.encode());
        if let Ok(used) = postcard::to_slice(result, &mut short[HEADER..]) {
            let len = HEADER + used.len();
            let _ = lock(&self.reply).send(&short[..len]);
            return;
        }
        let bytes = postcard::to_extend(result, header.encode().to_vec());
        match bytes {
            Ok(bytes) if bytes.len() <= COMPACT_MAX => {
                let _ = lock(&self.reply).send(&bytes[..]);
            }
            Ok(bytes) => {
                let mut message = Message::new();
                message.pack_cheaper(&bytes[HEADER..]);
                self.answer_message(call, &mut message);
            }
            Err(error) => self.answer(call, Kind::Panicked, &error.to_string()),
        }
    }

    /// Answers with a message.
    pub(super) fn answer_message(&self, call: u64, message: &mut Message<'_>) {
        message.set_lead(Some(self.header(call, Kind::Done).encode()));
        let _ = lock(&self.reply).post(message);
        message.set_lead(None);
    }

    /// Says something that has no value.
    pub(super) fn say(&self, call: u64, kind: Kind) {
        let _ = lock(&self.reply).send(&self.header(call, kind).encode());
    }

    fn header(&self, call: u64, kind: Kind) -> Header {
        Header {
            call,
            session: self.number,
            kind,
            patience_ms: 0,
        }
    }

    /// Nobody waits for the call any more.
    pub(super) fn cancel(&self, call: u64) {
        let mut running = lock(&self.running);
        // An async handler ends where it waits. One that another worker is just about to keep finds the word in time.
        match running.remove(&call) {
            Some(task) => {
                drop(running);
                drop(task);
            }
            None => {
                lock(&self.cancelled).insert(call);
                self.has_cancelled.store(true, Ordering::Release);
            }
        }
    }

    pub(super) fn is_cancelled(&self, call: u64) -> bool {
        self.has_cancelled.load(Ordering::Acquire) && lock(&self.cancelled).contains(&call)
    }

    /// A call has ended.
    pub(super) fn end(&self, call: u64) {
        if self.has_cancelled.load(Ordering::Acquire) {
            let mut cancelled = lock(&self.cancelled);
            cancelled.remove(&call);
            self.has_cancelled
                .store(!cancelled.is_empty(), Ordering::Release);
        }
    }

    /// An async handler is under way.
    pub(super) fn keep(&self, call: u64, task: async_task::Task<()>) {
        let mut running = lock(&self.running);
        running.retain(|_, other| !other.is_finished());
        if task.is_finished() {
            return;
        }
        if !self.is_cancelled(call) {
            running.insert(call, task);
            return;
        }
        drop(running);
        drop(task);
        self.end(call);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
