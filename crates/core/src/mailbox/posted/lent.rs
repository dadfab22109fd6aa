//! A posted receive into memory that its user has only borrowed.
//!
//! Whoever fills it knows nothing of lifetimes. What makes it right is the end: dropping a [`LentReceive`] waits until nobody has the
//! memory any more, which the memory itself says, by a count that goes with it.
#![allow(unsafe_code)]

use core::any::Any;
use core::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use zerocopy::IntoBytes;

use super::exchange::Exchange;
use super::memory::{Target, count};
use super::slot::{Came, Slot, Whose, Withdrawn};
use crate::blocking::block_in_place;
use crate::error::{Result, UnpackError};
use crate::mailbox::look::Reach;
use crate::message::{Flags, form};
use crate::operations::{Stepped, Steps};
use crate::plain::Plain;
use crate::process::Process;
use crate::progress::Progress;
use crate::rank::Rank;

/// How long to sleep while another thread still fills the memory of a receive that is taken back.
const NAP: Duration = Duration::from_micros(200);

/// A receive into memory of `'m`, as an operation.
pub(crate) struct LentReceive<'m> {
    posted: PostedLent,
    /// Others have it as long as somebody has the memory.
    alive: Arc<()>,
    _memory: PhantomData<&'m mut [u8]>,
}

/// What is known of such a receive, without its memory.
#[derive(Clone)]
pub(crate) struct PostedLent {
    exchange: Arc<Exchange>,
    slot: Arc<Slot>,
    came: Arc<OnceLock<Came>>,
}

/// Borrowed memory, for as long as the receive is not dropped.
struct Memory<T: 'static> {
    values: &'static mut [T],
    _alive: Arc<()>,
}

impl<T: Plain + Send + 'static> Target for Memory<T> {
    fn bytes(&mut self) -> &mut [u8] {
        self.values.as_mut_bytes()
    }

    fn count(&self, len: usize, flags: Flags) -> Result<usize, UnpackError> {
        count::<T>(self.values.len(), len, flags)
    }

    fn put_right(&mut self, len: usize, flags: Flags) {
        form::put_right::<T>(flags, &mut self.bytes()[..len]);
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl<'m> LentReceive<'m> {
    /// Posts a receive.
    ///
    /// # Safety
    ///
    /// What this returns is dropped before `'m` ends: it is not leaked.
    pub(in crate::mailbox) unsafe fn post<T: Plain + Send + 'static>(
        exchange: &Arc<Exchange>,
        from: Whose,
        memory: &'m mut [T],
    ) -> Self {
        // SAFETY: only the lifetime changes. The reference lives in a `Memory` with a share of `alive`, and `drop` of the receive
        // waits until that is the only share. The caller promised that this is before `'m` ends.
        let values = unsafe { core::mem::transmute::<&'m mut [T], &'static mut [T]>(memory) };
        let alive = Arc::new(());
        let memory = Memory {
            values,
            _alive: Arc::clone(&alive),
        };
        let slot = Arc::new(Slot::new(from, Box::new(memory)));
        exchange.post(Arc::clone(&slot));
        Self {
            posted: PostedLent {
                exchange: Arc::clone(exchange),
                slot,
                came: Arc::default(),
            },
            alive,
            _memory: PhantomData,
        }
    }

    /// What is known of it, for who waits.
    pub(crate) fn posted(&self) -> PostedLent {
        self.posted.clone()
    }
}

impl PostedLent {
    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.exchange.process
    }

    /// How many values came, and who sent them, if it is done.
    pub(crate) fn came(&self) -> Option<(usize, Rank)> {
        let came = self.came.get()?;
        Some((came.count, came.source))
    }

    /// Ends it, if no message is for it. `false`: it is too late.
    pub(crate) fn withdraw(&self) -> bool {
        let withdrawn = self.exchange.withdraw(&self.slot);
        matches!(withdrawn, Withdrawn::Posted { .. })
    }
}

impl Steps for LentReceive<'_> {
    type Outcome = Result<()>;

    fn step(&mut self) -> Stepped {
        let PostedLent {
            exchange,
            slot,
            came,
        } = &self.posted;
        if !slot.is_done() {
            exchange.look(None, Reach::All);
        }
        if !slot.is_done() {
            return Stepped::Idle;
        }
        match slot.take() {
            Some(Ok((filled, _))) => {
                // It is set once, here.
                let _ = came.set(filled);
                Stepped::Done(Ok(()))
            }
            Some(Err(error)) => Stepped::Done(Err(error)),
            // It was withdrawn.
            None => Stepped::Done(Ok(())),
        }
    }

    fn waits_for_whom(&self) -> Option<u32> {
        match self.posted.slot.from {
            Whose::Anybody => None,
            Whose::Rank(rank, _) => Some(rank.0),
        }
    }

    fn waits_for(&self) -> String {
        match self.posted.slot.from {
            Whose::Anybody => "for the message of a posted receive".to_owned(),
            Whose::Rank(rank, _) => format!("for the message of a posted receive from rank {rank}"),
        }
    }
}

impl Drop for LentReceive<'_> {
    /// The memory is its owner's again afterwards.
    fn drop(&mut self) {
        let PostedLent { exchange, slot, .. } = &self.posted;
        if !slot.is_done() {
            exchange.withdraw(slot);
        }
        slot.forget();
        // A thread may be copying a message there: it comes to an end, or its sender does.
        while Arc::get_mut(&mut self.alive).is_none() {
            exchange.process.pump_all();
            block_in_place(|| std::thread::sleep(NAP));
        }
    }
}
