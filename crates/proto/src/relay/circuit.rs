//! One end of a circuit: what two processes have with each other through gateways.
//!
//! Fragments are numbered, and taken in order; gateways may drop them, and bring them in another order. A circuit does not send again: where something is
//! missing for too long it is *broken*, and what lies above begins a new one, and resends what was not acknowledged. Each end grants the other so many
//! bytes, before they are sent, and takes at once what it has granted. What the ends tell each other is their [`Progress`], which only grows, so
//! that the newest word says all.

use std::time::Duration;

use super::credit::Overdrawn;
use super::frames::Progress;
use crate::time::Time;

/// One end.
#[derive(Debug, Clone)]
pub struct Circuit {
    dialled: bool,
    window: u64,
    /// What had been granted when the window grew the last time.
    grown: u64,
    more: u64,
    /// What had been granted to us when we last had to wait.
    blocked: u64,
    /// What came so far, in bytes.
    came: u64,
    /// Of us.
    sent: u64,
    sent_bytes: u64,
    /// What we have taken: fragments in order, and bytes whose memory is free again.
    taken: u64,
    freed: u64,
    /// What the other end last said.
    theirs: Progress,
    /// What it was told last, and when.
    told: Progress,
    told_at: Time,
    /// When it was heard last, and when something came in order, or nothing was missing.
    heard_at: Time,
    moved_at: Time,
    /// The longest that it took until the next came while something was missing.
    longest: Duration,
    /// Whether fragments are here that came before their turn.
    has_early: bool,
    /// It is to be told something soon.
    must_tell: bool,
}

/// Where a fragment belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It is the next.
    Now,
    /// Others come first: keep it.
    Later,
    /// It was taken before.
    Past,
}

/// Why a circuit is no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Something is missing, and does not come.
    Missing,
    /// The other end is silent.
    Silent,
}

impl Circuit {
    /// One that is there. The other end may send so many bytes at a time; more, when that turns out to be too little for the length of the way.
    #[must_use]
    pub fn new(dialled: bool, window: u64, now: Time) -> Self {
        Self {
            dialled,
            window,
            grown: window,
            more: 0,
            blocked: 0,
            came: 0,
            sent: 0,
            sent_bytes: 0,
            taken: 0,
            freed: 0,
            theirs: Progress::default(),
            told: Progress::default(),
            told_at: now,
            heard_at: now,
            moved_at: now,
            longest: Duration::ZERO,
            has_early: false,
            must_tell: true,
        }
    }

    /// Whether this end dialled.
    #[must_use]
    pub fn dialled(&self) -> bool {
        self.dialled
    }

    /// Whether a fragment of this length may be sent: the other end has granted it.
    #[must_use]
    pub fn may_send(&self, length: usize) -> bool {
        self.theirs.granted.saturating_sub(self.sent_bytes) >= charge(length)
    }

    /// Something waits because not enough was granted. Whether the other end is to be told.
    pub fn handle_blocked(&mut self) -> bool {
        let is_new = self.theirs.granted > self.blocked;
        self.blocked = self.theirs.granted;
        self.must_tell |= is_new;
        is_new
    }

    /// The number of the next fragment that is sent.
    #[must_use]
    pub fn next_number(&self) -> u64 {
        self.sent
    }

    /// How many fragments the other end has taken, as it last said.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.theirs.taken
    }

    /// A fragment of this length was sent.
    pub fn handle_sent(&mut self, length: usize, now: Time) {
        if self.sent == self.theirs.taken {
            // The other end is asked what became of it when this has lasted.
            self.told_at = now;
        }
        self.sent += 1;
        self.sent_bytes += charge(length);
    }

    /// A fragment of this length came, for the first time.
    ///
    /// # Errors
    /// It was not granted: the other end broke a rule.
    pub fn handle_fragment(
        &mut self,
        number: u64,
        length: usize,
        now: Time,
    ) -> Result<Turn, Overdrawn> {
        self.heard_at = now;
        if number < self.taken {
            return Ok(Turn::Past);
        }
        self.came += charge(length);
        if self.came > self.freed + self.window {
            return Err(Overdrawn);
        }
        if number == self.taken {
            self.advance(now);
            return Ok(Turn::Now);
        }
        if !self.is_missing() {
            self.moved_at = now;
        }
        self.has_early = true;
        Ok(Turn::Later)
    }

    /// The number of the fragment that is next.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.taken
    }

    /// The next one was taken: it had come early.
    pub fn advance(&mut self, now: Time) {
        if self.is_missing() {
            self.longest = self.longest.max(now.since(self.moved_at));
        }
        self.taken += 1;
        self.moved_at = now;
    }

    /// None of those that came early is left.
    pub fn handle_caught_up(&mut self) {
        self.has_early = false;
    }

    /// The memory of a fragment that came is free again.
    pub fn free(&mut self, length: usize) {
        self.freed += charge(length);
        let granted = self.freed + self.window;
        self.must_tell |= granted - self.told.granted >= self.window / 4;
    }

    /// The other end said how far it is.
    pub fn handle_progress(&mut self, theirs: Progress, now: Time) {
        self.heard_at = now;
        let was_whole = !self.is_missing();
        self.theirs.sent = self.theirs.sent.max(theirs.sent);
        // Nobody takes what was not sent.
        self.theirs.taken = self.theirs.taken.max(theirs.taken.min(self.sent));
        self.theirs.granted = self.theirs.granted.max(theirs.granted);
        self.theirs.blocked = self
            .theirs
            .blocked
            .max(theirs.blocked.min(self.told.granted));
        if was_whole {
            self.moved_at = now;
        }
        // It wants to know what came of what it sent.
        self.must_tell |= self.told.taken < self.taken;
        // Words are answered that come for no other reason than to hear from us.
        self.must_tell |= now.since(self.told_at) >= REMIND;
    }

    /// What to tell the other end now, if anything.
    pub fn poll_progress(&mut self, now: Time) -> Option<Progress> {
        let wait = match self.sent > self.theirs.taken {
            true => REMIND,
            false => KEEP_ALIVE,
        };
        if !self.must_tell && now.since(self.told_at) < wait {
            return None;
        }
        self.must_tell = false;
        self.told_at = now;
        self.told = Progress {
            sent: self.sent,
            taken: self.taken,
            granted: self.freed + self.window,
            blocked: self.blocked,
        };
        Some(self.told)
    }

    /// Whether it has come to its end by itself.
    #[must_use]
    pub fn broken(&self, now: Time) -> Option<Broken> {
        // On a cable that many share it may take a while until it is our turn again.
        let patience = match self.has_early {
            true => GAP.max(self.longest * 4),
            false => TAIL.max(self.longest * 4),
        };
        if self.is_missing() && now.since(self.moved_at) >= patience {
            Some(Broken::Missing)
        } else if now.since(self.heard_at) >= SILENT {
            Some(Broken::Silent)
        } else {
            None
        }
    }

    /// When to look again.
    #[must_use]
    pub fn next_look(&self, now: Time) -> Time {
        let is_busy = self.sent > self.theirs.taken || self.is_missing();
        now + if is_busy { REMIND } else { KEEP_ALIVE }
    }

    /// If the other end had to wait though it got more the last time, and not for what lies here, the window is too small for the length of the way.
    #[must_use]
    pub fn wants_to_grow(&self) -> bool {
        let lies_here = self.came.saturating_sub(self.freed) > self.window / 4;
        self.theirs.blocked >= self.grown && !lies_here && self.window < MOST_WINDOW
    }

    /// The window doubles, as far as `free` allows.
    pub fn grow(&mut self, free: u64) {
        let more = self.window.min(MOST_WINDOW.saturating_sub(self.window));
        let more = more.min(free);
        if more > 0 {
            self.window += more;
            self.more += more;
            self.grown = self.freed + self.window;
            self.must_tell = true;
        }
    }

    /// How much larger the window is than in the beginning.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Whether something that was sent has not come.
    fn is_missing(&self) -> bool {
        self.has_early || self.theirs.sent > self.taken
    }
}

/// What a fragment costs of what was granted.
fn charge(length: usize) -> u64 {
    (length as u64).max(PLACE)
}

/// What the place of a fragment costs, however short it is.
const PLACE: u64 = 256;

/// The most that may be under way on one circuit: what is at 10 Gbit/s and 50 ms.
pub const MOST_WINDOW: u64 = 64 << 20;

/// How often the other end is told how far we are while it has not acknowledged all.
pub const REMIND: Duration = Duration::from_millis(200);
/// How often, if there is nothing to say.
pub const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// What is missing while later ones are here is lost after this time without anything in its turn.
/// Long enough for a connection of several that has to send something twice, while the others go on.
pub const GAP: Duration = Duration::from_millis(1500);
/// What is said to be sent is lost after this time without anything in its turn.
pub const TAIL: Duration = Duration::from_secs(4);
/// Who says nothing for so long, though asked, is not there.
pub const SILENT: Duration = Duration::from_secs(10);
