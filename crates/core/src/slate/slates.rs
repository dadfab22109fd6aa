//! The slates of all members of a group on one host: one line of memory each and turn, which all others read.
//!
//! Who waits looks for a moment, gives way some times, and sleeps: its mailbox's watch says so, and whoever shows something rings. With more members than cores
//! nobody looks for long: the one that is waited for may need the core.

use core::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_lane::{Call, Region, Shown, Slate, Watch, call_quietly};

use super::number::SlateNumber;
use super::trays::{TrayPlace, Trays, make};
use crate::endpoint::Endpoint;
use crate::error::ReachError;
use crate::link::MemoryLink;
use crate::mailbox::Mailbox;
use crate::memory::Block;
use crate::peers::Path;
use crate::rank::{Address, SLATE_LINES, SlateUse};

/// How often to look before giving way: about 2 µs, a round trip between two cores.
const LOOKS: u32 = 100;
/// How often to give way before sleeping.
const YIELDS: u32 = 20;
/// How long to sleep at most before looking again.
const NAP: Duration = Duration::from_millis(500);

/// The slates of all members of a group on one host, as one of them sees them.
pub struct Slates {
    pub(super) process: Endpoint,
    pub(super) me: usize,
    pub(super) members: Vec<Member>,
    /// This turn, the latest one that this member has shown, and the latest one for which none was behind.
    pub(super) turn: u64,
    pub(super) shown: u64,
    pub(super) cleared: u64,
    /// How often to look before giving way.
    looks: u32,
    /// The own tray while the others are told of it, and then all.
    own_tray: Option<Block>,
    pub(super) trays: Option<Trays>,
    /// The own slate, unless it is one that every process has.
    number: Option<SlateNumber>,
}

pub(super) struct Member {
    slate: Slate,
    /// Which use of that slate the group is.
    time: u32,
    watch: Watch,
    /// Who is rung: another process, or a thread of this one.
    pub(super) link: Option<Arc<MemoryLink>>,
    /// The latest turn that it is known to have shown.
    pub(super) shown: u64,
    /// Where its lent buffer is: slab and offset.
    pub(super) lent: Option<(u32, Region, usize)>,
}

/// Cores of a host, as the bits of their numbers; those beyond are not counted.
pub type CoreSet = [u64; 3];

/// The cores on which the calling thread may run.
#[must_use]
pub fn own_cores() -> CoreSet {
    let mut cores = [0; 3];
    if let Ok(set) = rustix::thread::sched_getaffinity(None) {
        for core in (0..192).filter(|core| set.is_set(*core)) {
            cores[core / 64] |= 1 << (core % 64);
        }
    }
    cores
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It is there.
    There,
    /// A message has come to the mailbox of this member.
    Message,
    /// The time is over.
    Long,
}

impl Slates {
    /// The slates of these members, of whom this one is number `me`: each with its mailbox and its slate. `None` if one of them is not reached through memory.
    /// A member opens them once. `number` is its own one, unless every process has it.
    ///
    /// # Errors
    ///
    /// If one is gone, or cannot be reached.
    pub fn open(
        process: &Endpoint,
        me: usize,
        number: &mut Option<SlateNumber>,
        members: &[(Address, SlateUse)],
    ) -> Result<Option<Self>, ReachError> {
        let mut all = Vec::with_capacity(members.len());
        for (address, slate) in members {
            if address.process == process.id {
                all.push(Member {
                    slate: process.mailboxes.slate(*slate),
                    time: slate.time(),
                    watch: process.mailboxes.watch(address.mailbox),
                    link: None,
                    shown: 0,
                    lent: None,
                });
                continue;
            }
            let Path::Memory(link) = process.reach_life(address.process)? else {
                return Ok(None);
            };
            all.push(Member {
                slate: link.slate(*slate),
                time: slate.time(),
                watch: link.watch(address.mailbox),
                link: Some(link),
                shown: 0,
                lent: None,
            });
        }
        Ok(Some(Self {
            process: process.clone(),
            me,
            looks: 1,
            members: all,
            turn: 0,
            shown: 0,
            cleared: 0,
            own_tray: None,
            trays: None,
            number: number.take(),
        }))
    }

    /// The members may run on these cores, all together, each bit of the three words being one: how long to look depends on whether there is one for each.
    pub fn share_cores(&mut self, cores: CoreSet) {
        let count: u32 = cores.iter().map(|word| word.count_ones()).sum();
        self.looks = if self.members.len() > count as usize {
            1
        } else {
            LOOKS
        };
    }

    /// Begins the next turn.
    pub fn begin(&mut self) {
        self.turn += 1;
    }

    /// A member that this one must not leave further behind: until it has shown an earlier turn, nothing can be shown.
    #[inline]
    pub fn behind(&mut self) -> Option<(usize, u64)> {
        let needed = (self.turn + 1).saturating_sub(SLATE_LINES as u64);
        let me = self.me;
        let late = |(number, member): &(usize, &mut Member)| *number != me && member.shown < needed;
        let mut late = self.members.iter_mut().enumerate().filter(late);
        let behind = late.find_map(|(number, member)| {
            // The latest that it may have shown first: then it is not looked for again for some time.
            let latest = (needed..self.turn)
                .rev()
                .find(|turn| member.slate.has_shown(*turn));
            member.shown = latest.unwrap_or(member.shown);
            (member.shown < needed).then_some((number, needed))
        });
        if behind.is_none() {
            self.cleared = self.turn;
        }
        behind
    }

    /// Shows something in this turn, when none is [behind](Self::behind), and wakes those that sleep: they wait for it, or to go on with a later turn.
    #[inline]
    pub fn show(&mut self, print: u64, words: &[u64]) {
        self.shown = self.turn;
        self.members[self.me].slate.show(self.turn, print, words);
        for (number, member) in self.members.iter().enumerate() {
            if number == self.me {
                continue;
            }
            if let Call::Bell(number) = call_quietly(&member.watch) {
                match &member.link {
                    Some(link) => link.wake(number),
                    None => self.process.bells.ring(number),
                }
            }
        }
    }

    /// Takes memory for this member's tray, and shows it to the others. `None` if there is none left.
    pub fn make_tray(&mut self) -> Option<TrayPlace> {
        let links = self
            .members
            .iter()
            .filter_map(|member| member.link.as_ref());
        let (block, place) = make(&self.process, links)?;
        self.own_tray = Some(block);
        Some(place)
    }

    /// Opens the trays of all members, each where it told; whether they are all there.
    pub fn open_trays(&mut self, places: &[Option<TrayPlace>]) -> bool {
        if let Some(own) = self.own_tray.take() {
            let links = self.members.iter().map(|member| member.link.as_ref());
            let others = links.zip(places.iter().copied());
            self.trays = Trays::open(&self.process, own, self.me, others);
        }
        self.have_trays()
    }

    /// The trays are of no use: some member has not opened them all.
    pub fn close_trays(&mut self) {
        self.trays = None;
    }

    /// Whether the trays of all members are open.
    #[inline]
    #[must_use]
    pub fn have_trays(&self) -> bool {
        self.trays.is_some()
    }

    /// What a member shows in this turn, if it does.
    #[inline]
    pub fn read(&mut self, member: usize) -> Option<Shown> {
        let turn = self.turn;
        let member = &mut self.members[member];
        let shown = member.slate.read(turn)?;
        member.shown = turn;
        Some(shown)
    }

    /// Waits until a member has shown this turn.
    #[inline]
    pub fn wait(&self, member: usize, inbox: &Mailbox, patience: Duration) -> Waited {
        self.wait_for(member, self.turn, inbox, patience)
    }

    /// Waits until a member has shown a turn, or something comes to this member's mailbox; for about `patience` at most.
    #[inline]
    pub fn wait_for(
        &self,
        member: usize,
        turn: u64,
        inbox: &Mailbox,
        patience: Duration,
    ) -> Waited {
        let slate = &self.members[member].slate;
        for _ in 0..self.looks {
            if slate.has_shown(turn) {
                return Waited::There;
            }
            core::hint::spin_loop();
        }
        self.wait_longer(slate, turn, inbox, patience)
    }

    #[cold]
    fn wait_longer(&self, slate: &Slate, turn: u64, inbox: &Mailbox, patience: Duration) -> Waited {
        for _ in 0..YIELDS {
            std::thread::yield_now();
            if slate.has_shown(turn) {
                return Waited::There;
            }
        }
        let begun = Instant::now();
        loop {
            if slate.has_shown(turn) {
                return Waited::There;
            }
            if inbox.is_ready() {
                return Waited::Message;
            }
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Waited::Long;
            }
            // The one that is waited for may itself wait for a receive that was posted here.
            self.process.standing.watch();
            self.process.bells.sleep(
                left.min(NAP),
                |bell| inbox.set_bell(Some(bell)),
                || slate.has_shown(turn) || inbox.is_ready(),
                || inbox.set_bell(None),
            );
        }
    }
}

impl Drop for Slates {
    fn drop(&mut self) {
        let own = &self.members[self.me];
        own.slate.leave(own.time);
        let others = self.members.iter().enumerate();
        let others = others.filter(|(number, _)| *number != self.me);
        let others: Vec<(Slate, u32, Option<Arc<MemoryLink>>)> = others
            .map(|(_, member)| (member.slate.clone(), member.time, member.link.clone()))
            .collect();
        let trays = self.trays.take();
        let is_over = move || {
            let _kept = &trays;
            others.iter().all(|(slate, time, link)| {
                let is_gone = link.as_ref().is_some_and(|link| link.gone().is_some());
                is_gone || slate.has_left(*time)
            })
        };
        match self.number.take() {
            Some(number) => number.part(Box::new(is_over)),
            None => self.process.mailboxes.keep_until(Box::new(is_over)),
        }
    }
}

impl fmt::Debug for Slates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slates")
            .field("me", &self.me)
            .field("members", &self.members.len())
            .field("turn", &self.turn)
            .finish()
    }
}
