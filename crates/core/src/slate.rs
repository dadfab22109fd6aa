//! What the members of a group on one host show each other, without messages: one line of memory each, which all others read.
//!
//! Who waits looks for a moment, gives way some times, and sleeps: its mailbox's watch says so, and whoever shows something rings. With more members than cores
//! nobody looks for long: the one that is waited for may need the core.

use core::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_lane::{Call, Watch, call_quietly};
pub use mizzen_lane::{SLATE_WORDS, Shown};

use crate::endpoint::Endpoint;
use crate::error::ReachError;
use crate::link::MemoryLink;
use crate::mailbox::Mailbox;
use crate::peers::Path;
use crate::rank::{Address, SLATE_LINES};

/// How often to look before giving way: about 2 µs, a round trip between two cores.
const LOOKS: u32 = 100;
/// How often to give way before sleeping.
const YIELDS: u32 = 20;
/// How long to sleep at most before looking again.
const NAP: Duration = Duration::from_millis(500);

/// A slate of this process that nobody else uses: members of a group have one each.
#[derive(Debug)]
pub struct SlateNumber {
    process: Endpoint,
    number: u32,
}

impl SlateNumber {
    /// A slate, if there is one left.
    #[must_use]
    pub fn take(process: &Endpoint) -> Option<Self> {
        let number = process.mailboxes.take_slate()?;
        Some(Self {
            process: process.clone(),
            number,
        })
    }

    /// Its number, by which others know it.
    #[must_use]
    pub fn get(&self) -> u32 {
        self.number
    }
}

impl Drop for SlateNumber {
    fn drop(&mut self) {
        self.process.mailboxes.give_slate_back(self.number);
    }
}

/// The slates of all members of a group on one host, as one of them sees them.
pub struct Slates {
    process: Endpoint,
    me: usize,
    members: Vec<Member>,
    turn: u64,
    /// How often to look before giving way.
    looks: u32,
}

struct Member {
    slate: mizzen_lane::Slate,
    watch: Watch,
    /// Who is rung: another process, or a thread of this one.
    link: Option<Arc<MemoryLink>>,
    /// The latest turn that it is known to have shown.
    shown: u64,
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
    /// The slates of these members, of whom this one is number `me`: each with its mailbox and the number of its slate. `None` if one of them is not reached
    /// through memory.
    ///
    /// # Errors
    ///
    /// If one is gone, or cannot be reached.
    pub fn open(
        process: &Endpoint,
        me: usize,
        members: &[(Address, u32)],
    ) -> Result<Option<Self>, ReachError> {
        let mut all = Vec::with_capacity(members.len());
        for (address, slate) in members {
            if address.process == process.id {
                all.push(Member {
                    slate: process.mailboxes.slate(*slate),
                    watch: process.mailboxes.watch(address.mailbox),
                    link: None,
                    shown: 0,
                });
                continue;
            }
            let Path::Memory(link) = process.reach_life(address.process)? else {
                return Ok(None);
            };
            all.push(Member {
                slate: link.slate(*slate),
                watch: link.watch(address.mailbox),
                link: Some(link),
                shown: 0,
            });
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Some(Self {
            process: process.clone(),
            me,
            looks: if all.len() > cores { 1 } else { LOOKS },
            members: all,
            turn: 0,
        }))
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
        late.find_map(|(number, member)| {
            // The latest that it may have shown first: then it is not looked for again for some time.
            let latest = (needed..self.turn)
                .rev()
                .find(|turn| member.slate.has_shown(*turn));
            member.shown = latest.unwrap_or(member.shown);
            (member.shown < needed).then_some((number, needed))
        })
    }

    /// Shows something in this turn, and wakes those of `audience` that sleep.
    #[inline]
    pub fn show(&self, print: u64, words: &[u64], audience: Audience) {
        self.members[self.me].slate.show(self.turn, print, words);
        match audience {
            Audience::Nobody => (),
            Audience::One(member) => self.call(member),
            Audience::All => {
                for member in (0..self.members.len()).filter(|member| *member != self.me) {
                    self.call(member);
                }
            }
        }
    }

    #[inline]
    fn call(&self, member: usize) {
        let Some(member) = self.members.get(member) else {
            return;
        };
        if let Call::Bell(number) = call_quietly(&member.watch) {
            match &member.link {
                Some(link) => link.wake(number),
                None => self.process.bells.ring(number),
            }
        }
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
    fn wait_longer(
        &self,
        slate: &mizzen_lane::Slate,
        turn: u64,
        inbox: &Mailbox,
        patience: Duration,
    ) -> Waited {
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

/// Who may wait for what is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Nobody: they need it later, if at all.
    Nobody,
    /// One member.
    One(usize),
    /// All.
    All,
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
