//! The mailboxes of a process: the table by which peers' messages find them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use mizzen_lane::{Call, Slate, Watch, call_after_publish};
use mizzen_shm::{SegmentError, barrier};

use crate::bells::Bells;
use crate::delivery::Core;
use crate::error::{Gone, MailboxError};
use crate::lock::lock;
use crate::memory::{Memory, Shared};
use crate::rank::{
    ChannelId, MAX_MAILBOXES, MAX_SLATES, MailboxId, PROGRAM_MAILBOXES, ProcessId, SLATE_LINES,
    WATCH_BYTES, line_of_slate, mailbox_id, reserved, slot_of,
};

/// All mailboxes of one process.
#[derive(Debug)]
pub(crate) struct Mailboxes {
    /// Our mailboxes' watches, which peers read.
    pub(crate) watches: Shared,
    bells: Arc<Bells>,
    table: RwLock<Table>,
    /// Numbers of slates that nobody uses.
    free_slates: Mutex<Vec<u32>>,
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
            free_slates: Mutex::new((reserved::SLATES..MAX_SLATES).rev().collect()),
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

    /// A slate that nobody else uses, if there is one.
    pub(crate) fn take_slate(&self) -> Option<u32> {
        let number = lock(&self.free_slates).pop()?;
        self.slate(number).clear();
        Some(number)
    }

    /// Nobody uses it any more.
    pub(crate) fn give_slate_back(&self, number: u32) {
        lock(&self.free_slates).push(number);
    }

    /// One of our slates.
    pub(crate) fn slate(&self, number: u32) -> Slate {
        let region = self.watches.region.clone();
        Slate::new(region, line_of_slate(number), SLATE_LINES)
    }

    /// The watch of one of our mailboxes, as those see it who wake its owner.
    pub(crate) fn watch(&self, mailbox: MailboxId) -> Watch {
        let slot = slot_of(mailbox) as usize % MAX_MAILBOXES;
        Watch::new(self.watches.region.clone(), slot, barrier::everywhere())
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
