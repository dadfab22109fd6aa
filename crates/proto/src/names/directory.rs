//! The names that one process holds for its job (docs/wire.md §7.3 to §7.8).
//!
//! A name is *free*, *awaited* (somebody fetches it) or *bound*:
//!
//! ```text
//!   free ──fetch──▶ awaited ──bind──▶ bound ──unbind, owner gone──▶ free
//!    └──────────────bind───────────────▲
//! ```
//!
//! Each bound name knows who remembers it, so that they can be told to forget.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::id::{Address, Incarnation, ProcessId, Rank, RequestId};
use crate::wire::{Frame, Keep, Name, NameFrame, NameRefusal};

/// How much a directory may hold (docs/wire.md §7.8).
#[derive(Debug, Clone, Copy)]
pub struct DirectoryLimits {
    /// Names, bound or awaited.
    pub names: usize,
    /// Fetches that wait, over all names.
    pub waiters: usize,
    /// Processes to be told to forget, over all names. Beyond it, what is found may be used once.
    pub keepers: usize,
}

impl Default for DirectoryLimits {
    /// About 20 MiB with names of 64 bytes, whatever the peers ask for.
    fn default() -> Self {
        Self {
            names: NAMES_MAX,
            waiters: WAITERS_MAX,
            keepers: KEEPERS_MAX,
        }
    }
}

/// The names that one process holds for its job.
#[derive(Debug, Default)]
pub struct Directory {
    limits: DirectoryLimits,
    /// In order: what is freed together is told in the same order each time.
    names: BTreeMap<Arc<str>, State>,
    waiters: usize,
    keepers: usize,
    /// The last life known to be over, of each process that ended: at most one for each rank of the job.
    gone: BTreeMap<Rank, Incarnation>,
    replies: VecDeque<Reply>,
    /// The names go to others: no more are taken.
    is_leaving: bool,
}

/// Something to send to a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// To whom.
    pub to: ProcessId,
    /// What.
    pub answer: Answer,
}

impl Reply {
    /// As a frame.
    pub fn frame(&self) -> Frame<'_> {
        Frame::Name(match self.answer {
            Answer::Bound { request } => NameFrame::Bound { request },
            Answer::Conflict { request, holder } => NameFrame::Conflict { request, holder },
            Answer::Refused { request, reason } => NameFrame::Refused { request, reason },
            Answer::Found {
                request,
                address,
                keep,
            } => NameFrame::Found {
                request,
                address,
                keep,
            },
            Answer::Forget { ref name } => NameFrame::Forget {
                name: Name::checked_before(name),
            },
        })
    }
}

/// What a directory says; the variants of [`NameFrame`] of the same names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The name means what was asked for.
    Bound {
        /// The bind.
        request: RequestId,
    },
    /// The name means another mailbox.
    Conflict {
        /// The bind.
        request: RequestId,
        /// What the name means.
        holder: Address,
    },
    /// It was not done.
    Refused {
        /// The bind or fetch.
        request: RequestId,
        /// Why not.
        reason: NameRefusal,
    },
    /// What the name means.
    Found {
        /// The fetch.
        request: RequestId,
        /// What it means.
        address: Address,
        /// For how long.
        keep: Keep,
    },
    /// What is remembered of the name is no longer true.
    Forget {
        /// The name.
        name: Arc<str>,
    },
}

#[derive(Debug)]
enum State {
    Awaited(Vec<Waiter>),
    Bound {
        address: Address,
        keepers: BTreeSet<ProcessId>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiter {
    process: ProcessId,
    request: RequestId,
}

impl Directory {
    /// No name yet.
    pub fn new(limits: DirectoryLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// A frame about names came from `from`. An answer is not for a directory and is returned.
    pub fn handle_frame<'a>(
        &mut self,
        from: ProcessId,
        frame: NameFrame<'a>,
    ) -> Option<NameFrame<'a>> {
        match frame {
            NameFrame::Bind {
                request,
                name,
                address,
            } => self.handle_bind(from, request, name, address),
            NameFrame::Unbind { name, address } => self.handle_unbind(name, address),
            NameFrame::Fetch { request, name } => self.handle_fetch(from, request, name),
            NameFrame::Cancel { request, name } => self.handle_cancel(from, request, name),
            answer => return Some(answer),
        }
        None
    }

    /// `from` wants `name` to mean `address` (docs/wire.md §7.4).
    pub fn handle_bind(
        &mut self,
        from: ProcessId,
        request: RequestId,
        name: Name<'_>,
        address: Address,
    ) {
        if self.is_gone(from) || self.is_leaving {
            return;
        }
        let answer = match self.judge(name, address) {
            Verdict::Bind => {
                self.bind(name, address);
                Answer::Bound { request }
            }
            Verdict::Keep => Answer::Bound { request },
            Verdict::Conflict(holder) => Answer::Conflict { request, holder },
            Verdict::Refuse(reason) => Answer::Refused { request, reason },
        };
        // After what bind() told the waiters: no order is promised between processes.
        self.reply(from, answer);
    }

    /// `name` no longer means `address` (docs/wire.md §7.5).
    pub fn handle_unbind(&mut self, name: Name<'_>, address: Address) {
        let bound = self.names.get(name.as_str());
        if matches!(bound, Some(State::Bound { address: now, .. }) if *now == address) {
            self.free(name.as_str());
        }
    }

    /// `from` asks what `name` means; it is told when somebody binds it (docs/wire.md §7.3).
    pub fn handle_fetch(&mut self, from: ProcessId, request: RequestId, name: Name<'_>) {
        if self.is_gone(from) {
            return;
        }
        let waiter = Waiter {
            process: from,
            request,
        };
        let (names, limits) = (self.names.len(), self.limits);
        let no_room = self.waiters >= limits.waiters;
        let reason = match self.names.get_mut(name.as_str()) {
            Some(State::Bound { .. }) => return self.found(name.as_str(), waiter),
            _ if no_room => NameRefusal::WaitersFull,
            None if names >= limits.names => NameRefusal::NamesFull,
            Some(State::Awaited(waiters)) => {
                waiters.push(waiter);
                self.waiters += 1;
                return;
            }
            None => {
                let awaited = State::Awaited(vec![waiter]);
                self.names.insert(name.as_str().into(), awaited);
                self.waiters += 1;
                return;
            }
        };
        self.reply(from, Answer::Refused { request, reason });
    }

    /// `from` no longer waits for `name` (docs/wire.md §7.3).
    pub fn handle_cancel(&mut self, from: ProcessId, request: RequestId, name: Name<'_>) {
        let waiter = Waiter {
            process: from,
            request,
        };
        if let Some(State::Awaited(waiters)) = self.names.get_mut(name.as_str()) {
            let before = waiters.len();
            waiters.retain(|&other| other != waiter);
            self.waiters -= before - waiters.len();
            if waiters.is_empty() {
                self.names.remove(name.as_str());
            }
        }
    }

    /// A life of a process is over, and so is every earlier one: its names are free, its fetches and what
    /// it remembered are forgotten, and what still comes from it is ignored (docs/wire.md §7.6).
    ///
    /// Looks at every name: deaths are rare, and names of one process need no list of their own.
    pub fn handle_process_gone(&mut self, process: ProcessId) {
        let last = self.gone.entry(process.rank).or_default();
        *last = process.incarnation.max(*last);
        let process = ProcessId::new(process.rank, *last);

        let mut freed = Vec::new();
        let (mut waiters_gone, mut keepers_gone) = (0, 0);
        self.names.retain(|name, state| match state {
            State::Awaited(waiters) => {
                let before = waiters.len();
                waiters.retain(|waiter| !waiter.process.is_fenced_by(process));
                waiters_gone += before - waiters.len();
                !waiters.is_empty()
            }
            State::Bound { address, keepers } => {
                let before = keepers.len();
                keepers.retain(|keeper| !keeper.is_fenced_by(process));
                keepers_gone += before - keepers.len();
                if address.process.is_fenced_by(process) {
                    freed.push(Arc::clone(name));
                }
                true
            }
        });
        self.waiters -= waiters_gone;
        self.keepers -= keepers_gone;
        for name in freed {
            self.free(&name);
        }
    }

    /// The next thing to send. Drain it after each call of `handle_*`: what one call can leave here is
    /// bounded by the waiters and keepers there are.
    pub fn poll_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// The process leaves, and hands the names that are bound now to others. Binds that come later are not answered: whoever asks
    /// asks the next holder when our end is known (docs/wire.md §7.9).
    pub fn leave(&mut self) -> impl Iterator<Item = (&str, Address)> {
        self.is_leaving = true;
        self.bindings()
    }

    /// All names that are bound, and to what.
    pub fn bindings(&self) -> impl Iterator<Item = (&str, Address)> {
        self.names.iter().filter_map(|(name, state)| match state {
            State::Bound { address, .. } => Some((&**name, *address)),
            State::Awaited(_) => None,
        })
    }

    /// How many names are bound or awaited.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no name is bound or awaited.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// How many fetches wait.
    pub fn waiters(&self) -> usize {
        self.waiters
    }

    /// What `name` means now.
    pub fn lookup(&self, name: Name<'_>) -> Option<Address> {
        match self.names.get(name.as_str()) {
            Some(State::Bound { address, .. }) => Some(*address),
            _ => None,
        }
    }

    fn judge(&self, name: Name<'_>, address: Address) -> Verdict {
        if self.is_gone(address.process) {
            return Verdict::Refuse(NameRefusal::OwnerGone);
        }
        match self.names.get(name.as_str()) {
            None if self.names.len() >= self.limits.names => {
                Verdict::Refuse(NameRefusal::NamesFull)
            }
            None | Some(State::Awaited(_)) => Verdict::Bind,
            Some(State::Bound { address: now, .. }) => {
                if *now == address {
                    Verdict::Keep
                } else if now.process == address.process {
                    Verdict::Conflict(*now)
                } else if now.process.is_fenced_by(address.process) {
                    Verdict::Bind
                } else if address.process.is_fenced_by(now.process) {
                    Verdict::Refuse(NameRefusal::OwnerGone)
                } else {
                    Verdict::Conflict(*now)
                }
            }
        }
    }

    fn bind(&mut self, name: Name<'_>, address: Address) {
        let bound = State::Bound {
            address,
            keepers: BTreeSet::new(),
        };
        let before = match self.names.entry(name.as_str().into()) {
            Entry::Occupied(mut entry) => Some(entry.insert(bound)),
            Entry::Vacant(entry) => {
                entry.insert(bound);
                None
            }
        };
        match before {
            Some(State::Awaited(waiters)) => {
                self.waiters -= waiters.len();
                for waiter in waiters {
                    self.found(name.as_str(), waiter);
                }
            }
            Some(State::Bound { keepers, .. }) => self.forget(name.as_str().into(), keepers),
            None => {}
        }
    }

    /// Answers a fetch of a bound name, and remembers whom to tell when that changes.
    fn found(&mut self, name: &str, waiter: Waiter) {
        let Some(State::Bound { address, keepers }) = self.names.get_mut(name) else {
            return;
        };
        let known = keepers.contains(&waiter.process);
        let keep = if known || self.keepers < self.limits.keepers {
            self.keepers += usize::from(keepers.insert(waiter.process));
            Keep::UntilForgotten
        } else {
            Keep::Once
        };
        let answer = Answer::Found {
            request: waiter.request,
            address: *address,
            keep,
        };
        self.reply(waiter.process, answer);
    }

    fn free(&mut self, name: &str) {
        if let Some((name, State::Bound { keepers, .. })) = self.names.remove_entry(name) {
            self.forget(name, keepers);
        }
    }

    fn forget(&mut self, name: Arc<str>, keepers: BTreeSet<ProcessId>) {
        self.keepers -= keepers.len();
        for keeper in keepers {
            let name = Arc::clone(&name);
            self.reply(keeper, Answer::Forget { name });
        }
    }

    fn reply(&mut self, to: ProcessId, answer: Answer) {
        self.replies.push_back(Reply { to, answer });
    }

    fn is_gone(&self, process: ProcessId) -> bool {
        let last = self.gone.get(&process.rank);
        last.is_some_and(|&last| process.incarnation <= last)
    }
}

enum Verdict {
    Bind,
    Keep,
    Conflict(Address),
    Refuse(NameRefusal),
}

/// Names that one process holds: with a thousand processes, 65 million in a job.
pub const NAMES_MAX: usize = 1 << 16;

/// Fetches that wait at one holder: every process of a large job for one name.
pub const WAITERS_MAX: usize = 1 << 17;

/// Processes that one holder promises to tell.
pub const KEEPERS_MAX: usize = 1 << 17;
