//! The mailboxes of a process: the table by which peers' messages find them.

use core::fmt;
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
    SlateUse, WATCH_BYTES, mailbox_id, reserved, slot_of,
};

/// All mailboxes of one process.
#[derive(Debug)]
pub(crate) struct Mailboxes {
    /// Our mailboxes' watches, which peers read.
    pub(crate) watches: Shared,
    bells: Arc<Bells>,
    table: RwLock<Table>,
    slates: Mutex<FreeSlates>,
    /// Why the whole job fails, if it does: every mailbox is told, also those made later.
    failure: OnceLock<Gone>,
}

#[derive(Debug, Default)]
struct Table {
    slots: Vec<Slot>,
    /// Free slots, the one that is free the longest first: late messages find it free for as long as possible.
    free: VecDeque<u32>,
}

/// Whether nobody needs a slate any more whose owner has left. It keeps what may still be read.
pub(crate) type Parting = Box<dyn Fn() -> bool + Send>;

/// Slates that are not in use.
struct FreeSlates {
    /// Those that nobody uses, and how often each was used; the one that is free the longest first.
    free: VecDeque<(u32, u32)>,
    /// Those whose owners have left, while others may still read them.
    parting: Vec<(SlateUse, Parting)>,
}

impl Default for FreeSlates {
    fn default() -> Self {
        let numbers = reserved::SLATES..MAX_SLATES;
        Self {
            free: numbers.map(|number| (number, 0)).collect(),
            parting: Vec::new(),
        }
    }
}

impl FreeSlates {
    fn reap(&mut self) {
        let free = &mut self.free;
        self.parting.retain(|(slate, is_over)| {
            let is_over = is_over();
            if is_over && slate.number() >= reserved::SLATES {
                free.push_back((slate.number(), slate.time()));
            }
            !is_over
        });
    }
}

impl fmt::Debug for FreeSlates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FreeSlates")
            .field("free", &self.free.len())
            .field("parting", &self.parting.len())
            .finish()
    }
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
            slates: Mutex::default(),
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
    pub(crate) fn take_slate(&self) -> Option<SlateUse> {
        let mut slates = lock(&self.slates);
        slates.reap();
        let (number, before) = slates.free.pop_front()?;
        let slate = SlateUse::new(number, before + 1);
        self.slate(slate).clear();
        Some(slate)
    }

    /// Its owner does not use it any more. Others may read it until `is_over` says so.
    pub(crate) fn give_slate_back(&self, slate: SlateUse, is_over: Parting) {
        let mut slates = lock(&self.slates);
        slates.parting.push((slate, is_over));
        slates.reap();
    }

    /// The same for a slate that every process has: what others may read is kept until `is_over` says so.
    pub(crate) fn keep_until(&self, is_over: Parting) {
        self.give_slate_back(reserved::GROUP_SLATE, is_over);
    }

    /// One of our slates.
    pub(crate) fn slate(&self, slate: SlateUse) -> Slate {
        let region = self.watches.region.clone();
        Slate::new(region, slate.line(), SLATE_LINES)
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
