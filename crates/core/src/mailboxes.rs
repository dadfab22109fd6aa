//! The mailboxes of a process: the table by which peers' messages find them.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use mizzen_lane::{Call, Watch, call_after_publish};
use mizzen_shm::{SegmentError, barrier};

use crate::bells::Bells;
use crate::delivery::Core;
use crate::error::{Gone, MailboxError};
use crate::memory::{Memory, Shared};
use crate::rank::{
    ChannelId, MAX_MAILBOXES, MailboxId, PROGRAM_MAILBOXES, ProcessId, WATCH_BYTES, mailbox_id,
    slot_of,
};

/// All mailboxes of one process.
#[derive(Debug)]
pub(crate) struct Mailboxes {
    /// Our mailboxes' watches, which peers read.
    pub(crate) watches: Shared,
    bells: Arc<Bells>,
    table: RwLock<Table>,
    /// Why the whole job fails, if it does: every mailbox is told, also those made later.
    failure: OnceLock<Gone>,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Slot>,
    /// Free slots, the one that is free the longest first: late messages find it free for as long as possible.
    free: VecDeque<u32>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    core: Option<Arc<Core>>,
}

impl Mailboxes {
    pub(crate) fn new(memory: Memory, bells: Arc<Bells>) -> Result<Self, SegmentError> {
        Ok(Self {
            watches: memory.make("mizzen-watches", WATCH_BYTES)?,
            bells,
            table: RwLock::default(),
            failure: OnceLock::new(),
        })
    }

    /// A new mailbox on a channel.
    pub(crate) fn open(&self, channel: ChannelId) -> Result<Arc<Core>, MailboxError> {
        let mut table = self.write();
        let fresh = table.slots.len() < MAX_MAILBOXES;
        let slot = match table.free.pop_front() {
            Some(slot) if !fresh => slot,
            other => {
                if !fresh {
                    return Err(MailboxError::TooMany {
                        limit: PROGRAM_MAILBOXES,
                    });
                }
                table.free.extend(other);
                table.slots.push(Slot {
                    generation: 0,
                    core: None,
                });
                table.slots.len() as u32 - 1
            }
        };
        let place = &mut table.slots[slot as usize];
        let watch = Watch::new(
            self.watches.region.clone(),
            slot as usize,
            barrier::everywhere(),
        );
        watch.announce_awake();
        let core = Arc::new(Core::new(
            mailbox_id(slot, channel, place.generation),
            watch,
        ));
        place.core = Some(Arc::clone(&core));
        if let Some(gone) = self.failure.get() {
            core.tell_gone(*gone);
        }
        Ok(core)
    }

    /// The mailbox is dropped: its slot will be used again under another generation.
    pub(crate) fn close(&self, mailbox: MailboxId) {
        let mut table = self.write();
        if let Some(slot) = table.slots.get_mut(slot_of(mailbox) as usize) {
            slot.core = None;
            slot.generation = slot.generation.wrapping_add(1);
            table.free.push_back(slot_of(mailbox));
        }
    }

    pub(crate) fn get(&self, mailbox: MailboxId) -> Option<Arc<Core>> {
        let table = self.read();
        let core = table.slots.get(slot_of(mailbox) as usize)?.core.as_ref()?;
        (core.id == mailbox).then(|| Arc::clone(core))
    }

    pub(crate) fn all(&self) -> Vec<Arc<Core>> {
        let table = self.read();
        table
            .slots
            .iter()
            .filter_map(|slot| slot.core.clone())
            .collect()
    }

    /// Wakes the owner of a mailbox after something was put there.
    pub(crate) fn wake(&self, core: &Core) {
        if let Call::Bell(number) = call_after_publish(&core.watch) {
            core.counts.wakes.add(1);
            self.bells.ring(number);
        }
    }

    /// Queues the news for a mailbox's owner.
    pub(crate) fn tell_gone(&self, core: &Core, gone: Gone) {
        core.tell_gone(gone);
        self.wake(core);
    }

    /// The job fails because of `gone`: no owner shall wait for anything.
    pub(crate) fn fail(&self, gone: Gone) {
        let _ = self.failure.set(gone);
        for core in self.all() {
            // Who was told before looks again: now it is the end of everybody's waiting.
            core.look();
            self.tell_gone(&core, gone);
        }
    }

    /// Why the whole job fails, if it does.
    pub(crate) fn failure(&self) -> Option<Gone> {
        self.failure.get().copied()
    }

    /// The process because of which the job fails, if it does.
    pub(crate) fn failed(&self) -> Option<ProcessId> {
        self.failure.get().map(Gone::process)
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}
