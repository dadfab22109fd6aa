//! Reading a long body from its beginning to its end, through little memory.
//!
//! What is read in long pieces goes straight into its reader's memory. What is read in short ones is asked for in windows of our own
//! memory, one of which comes while the one before is unpacked. Nothing is kept but the table of the message's pieces.

use std::collections::VecDeque;
use std::sync::Arc;

use mizzen_driver::PartMut;

use super::ahead::Window;
use super::bodies::Wanted;
use super::lending::NetOffered;
use super::link::Waits;
use super::outcome::{End, Outcome};
use crate::error::UnpackError;
use crate::message::Streaming;

/// From how many bytes on a piece goes straight into place: then asking for it takes little of the time.
const STRAIGHT: usize = 1 << 20;
/// How many bytes at the end of a message are asked for before they are read.
const REST: usize = 2 << 20;
/// How many windows are asked for and not unpacked.
const WINDOWS: usize = 2;

/// A long message of another host that is read once.
pub(super) struct NetStream {
    offered: NetOffered,
    /// The first bytes: the table, and what came with the announcement.
    table: Vec<u8>,
    /// Where in the message what nobody has asked for yet begins.
    asked: usize,
    /// Bytes that were asked for and not unpacked, in their order and without gaps, up to `asked`.
    windows: VecDeque<Coming>,
    /// Why no more comes.
    failure: Option<UnpackError>,
    is_spent: bool,
}

/// Bytes on their way.
struct Coming {
    at: usize,
    /// How many: the window itself is the driver's until it is here.
    len: usize,
    window: Arc<Window>,
    end: Arc<End>,
}

impl Coming {
    fn end_at(&self) -> usize {
        self.at + self.len
    }
}

impl NetStream {
    pub(super) fn new(offered: NetOffered) -> Self {
        Self {
            table: offered.head.clone(),
            asked: offered.head.len(),
            offered,
            windows: VecDeque::new(),
            failure: None,
            is_spent: false,
        }
    }

    /// Copies what is in the table: how much.
    fn copy_table(&self, at: usize, target: &mut [u8]) -> usize {
        let kept = self.table.get(at..).unwrap_or_default();
        let now = kept.len().min(target.len());
        target[..now].copy_from_slice(&kept[..now]);
        now
    }

    /// Lets go of what is before `at`.
    fn release(&mut self, at: usize) {
        while self
            .windows
            .front()
            .is_some_and(|first| first.end_at() <= at)
        {
            self.windows.pop_front();
        }
        if self.windows.is_empty() {
            self.asked = self.asked.max(at);
        }
    }

    /// Has windows on their way.
    fn ask_ahead(&mut self) -> Result<(), UnpackError> {
        let head = self.offered.head.len();
        while self.windows.len() < WINDOWS && self.asked < self.len() {
            let mut window = Window::new(self.len() - self.asked);
            let len = window.bytes().len();
            let parts = vec![PartMut::of(window.bytes_mut())];
            let (window, end) = (Arc::new(window), Arc::<End>::default());
            let from = self.asked - head;
            self.offered.want(Wanted::some(
                self.offered.offer,
                from,
                parts,
                Arc::clone(&end),
                Some(Arc::clone(&window) as _),
            ))?;
            let at = self.asked;
            self.asked += len;
            self.windows.push_back(Coming {
                at,
                len,
                window,
                end,
            });
        }
        Ok(())
    }

    /// How the first window ended, if there is one and it did.
    fn first_outcome(&self) -> Option<Outcome> {
        self.windows.front()?.end.get()
    }

    /// Copies from the first window, which is here: how much.
    fn copy_first(&self, at: usize, target: &mut [u8]) -> usize {
        let Some(first) = self.windows.front() else {
            return 0;
        };
        let Some(bytes) = at
            .checked_sub(first.at)
            .and_then(|skip| first.window.bytes().get(skip..))
        else {
            return 0;
        };
        let now = bytes.len().min(target.len());
        target[..now].copy_from_slice(&bytes[..now]);
        now
    }

    /// Copies bytes in their order, and waits for them.
    fn read(&mut self, mut at: usize, mut target: &mut [u8]) -> Result<(), UnpackError> {
        while !target.is_empty() {
            let now = self.copy_table(at, target);
            if now > 0 {
                (at, target) = (at + now, &mut target[now..]);
                continue;
            }
            self.release(at);
            if self.windows.front().is_none() && at < self.asked {
                return Err(UnpackError::Spent);
            }
            if self.windows.is_empty() && target.len() >= STRAIGHT {
                let from = at - self.offered.head.len();
                self.asked = at + target.len();
                self.offered.receive_some(from, target)?;
                // A short rest is asked for now: its poster need not wait until it is read. If that fails, so does reading it.
                if self.len() - self.asked <= REST {
                    let _ = self.ask_ahead();
                }
                return Ok(());
            }
            self.ask_ahead()?;
            let now = self.wait_first(at, target)?;
            (at, target) = (at + now, &mut target[now..]);
        }
        self.release(at);
        Ok(())
    }

    /// Waits for the first window and copies from it: how much.
    fn wait_first(&mut self, at: usize, target: &mut [u8]) -> Result<usize, UnpackError> {
        let Some(first) = self.windows.front() else {
            return Err(UnpackError::Malformed);
        };
        let outcome = match (first.end.get(), self.offered.link.hub.upgrade()) {
            (Some(outcome), _) => outcome,
            (None, Some(hub)) => {
                let link = &self.offered.link;
                link.wait_for_end(&*hub, &first.end, Waits::ToReceive)
            }
            (None, None) => Outcome::Lost,
        };
        self.offered.outcome(outcome)?;
        match self.copy_first(at, target) {
            // Before it: nothing is read twice.
            0 => Err(UnpackError::Spent),
            now => Ok(now),
        }
    }
}

impl Streaming for NetStream {
    fn len(&self) -> usize {
        self.offered.head.len() + self.offered.body_len
    }

    /// What can be read at any time: the rest is read by asking for it.
    fn here(&self) -> usize {
        self.table.len()
    }

    fn look(&mut self) -> Result<bool, UnpackError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        match self.first_outcome() {
            Some(outcome) => self.offered.outcome(outcome).map(|()| true),
            None if self.offered.link.is_ended() => Err(self.offered.gone()),
            None => Ok(false),
        }
    }

    fn arrive(&mut self, _: usize) -> Result<(), UnpackError> {
        // It comes while it is copied.
        Ok(())
    }

    fn copy_out(&self, at: usize, target: &mut [u8]) {
        target.copy_from_slice(&self.table[at..at + target.len()]);
    }

    fn copy_here(&mut self, at: usize, target: &mut [u8]) -> usize {
        let now = self.copy_table(at, target);
        if now > 0 || target.is_empty() {
            return now;
        }
        self.is_spent = true;
        self.release(at);
        if let Err(failure) = self.ask_ahead() {
            self.failure = Some(failure);
        }
        let copied = match self.windows.front() {
            None => 0,
            Some(first) if at < first.at => 0,
            Some(first) => match first.end.get() {
                Some(Outcome::Done) => return self.copy_first(at, target),
                _ => return 0,
            },
        };
        // It was let go: nothing is read twice.
        self.failure.get_or_insert(UnpackError::Spent);
        copied
    }

    fn copy_coming(&mut self, at: usize, target: &mut [u8]) -> Result<(), UnpackError> {
        self.is_spent |= at + target.len() > self.table.len();
        self.read(at, target)
    }

    fn holds_all(&self) -> bool {
        false
    }

    fn read_once(&mut self) {}

    fn is_spent(&self) -> bool {
        self.is_spent
    }

    fn arrive_table(&mut self, until: usize) -> Result<(), UnpackError> {
        let kept = self.table.len();
        if until > kept {
            let mut more = vec![0; until - kept];
            self.read(kept, &mut more)?;
            self.table.append(&mut more);
        }
        Ok(())
    }

    fn table_len(&self) -> usize {
        self.table.len()
    }
}

impl Drop for NetStream {
    /// What is on its way comes into memory that is kept for it; `offered` says that no more is wanted.
    fn drop(&mut self) {
        let mut state = self.offered.link.lock();
        for coming in &self.windows {
            state.bodies.take_wanted(&coming.end);
        }
    }
}

impl core::fmt::Debug for NetStream {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("NetStream")
            .field("offered", &self.offered)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}
