//! What a link may carry: reserved by the gateway at its end, granted to who sends, and used.
//!
//! Grants count from the beginning and only grow, so that the newest says all: one that is lost or comes twice does no harm. They hold for one
//! incarnation of the link.

use crate::route::{FRAGMENT, MAX_HOPS};

/// Against what a fragment goes over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Bytes that all share.
    Shared,
    /// The buffer for this hop.
    Escape(u8),
    /// Nothing: it is for the host at the other end, which has granted it to its origin.
    Last,
}

/// What a gateway has granted over a link so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Grant {
    /// Bytes.
    pub shared: u64,
    /// Buffers, by hop; there is none for hop 0.
    pub escapes: [u64; HOPS],
}

/// One for each hop, from 0 to the highest.
const HOPS: usize = MAX_HOPS as usize + 1;

/// The account of who sends over a link.
#[derive(Debug, Clone, Default)]
pub struct Credit {
    granted: Grant,
    used: Grant,
}

impl Credit {
    /// The other end granted so much.
    pub fn handle_grant(&mut self, grant: &Grant) {
        self.granted.shared = self.granted.shared.max(grant.shared);
        for (granted, new) in self.granted.escapes.iter_mut().zip(&grant.escapes) {
            *granted = (*granted).max(*new);
        }
    }

    /// The shared bytes that were granted so far.
    #[must_use]
    pub fn granted(&self) -> u64 {
        self.granted.shared
    }

    /// Whether shared bytes are left for a fragment of this length.
    #[must_use]
    pub fn has_shared(&self, length: u32) -> bool {
        self.granted.shared - self.used.shared >= charge(length)
    }

    /// Whether the escape is free that a fragment with this hop would take at the other end.
    #[must_use]
    pub fn has_escape(&self, hop: u8) -> bool {
        let class = usize::from(hop) + 1;
        class < HOPS && self.granted.escapes[class] > self.used.escapes[class]
    }

    /// A fragment of this hop and length goes: against shared bytes, or else its escape. None, if it has to wait.
    pub fn take(&mut self, hop: u8, length: u32) -> Option<Lane> {
        if self.has_shared(length) {
            self.used.shared += charge(length);
            Some(Lane::Shared)
        } else if self.has_escape(hop) {
            self.used.escapes[usize::from(hop) + 1] += 1;
            Some(Lane::Escape(hop + 1))
        } else {
            None
        }
    }
}

/// The account of the gateway that a link leads to: what it keeps free for it.
#[derive(Debug, Clone)]
pub struct Reserve {
    size: u64,
    /// Of the size, what is for all hops.
    shared: u64,
    /// What had been granted when there was more the last time, and how much more there is than in the beginning.
    grown: u64,
    more: u64,
    granted: Grant,
    used: Grant,
}

/// More was sent than was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a peer sent a fragment that it had no grant for")]
pub struct Overdrawn;

impl Reserve {
    /// So many shared bytes, and an escape for each hop up to `hops`: 1 for a link from an ordinary host, [`MAX_HOPS`] from a gateway.
    #[must_use]
    pub fn new(shared: u64, hops: u8) -> Self {
        let hops = hops.min(MAX_HOPS);
        let mut granted = Grant {
            shared,
            ..Grant::default()
        };
        granted.escapes[1..=usize::from(hops)].fill(1);
        Self {
            size: shared + u64::from(hops) * FRAGMENT,
            shared,
            grown: shared,
            more: 0,
            granted,
            used: Grant::default(),
        }
    }

    /// The bytes of memory that stand behind it.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The shared bytes that may be on their way or here at a time.
    #[must_use]
    pub fn shared(&self) -> u64 {
        self.shared
    }

    /// How many of them came since the beginning.
    #[must_use]
    pub fn more(&self) -> u64 {
        self.more
    }

    /// The other end had to wait when so much was granted to it. If that is not for what lies here, but for the length of the way, there are twice as many
    /// shared bytes from now on, as far as `free` and [`MOST_SHARED`] allow. Whether there are more.
    ///
    /// Once in a round trip at most: it must have used what it got the last time.
    pub fn handle_blocked(&mut self, at: u64, free: u64) -> bool {
        let unused = self.granted.shared - self.used.shared.min(self.granted.shared);
        let here = self.shared.saturating_sub(unused);
        let more = self
            .shared
            .max(FRAGMENT)
            .min(free)
            .min(MOST_SHARED.saturating_sub(self.shared));
        let is_far = at >= self.grown && at <= self.granted.shared && here <= self.shared / 4;
        if !is_far || more == 0 {
            return false;
        }
        self.more += more;
        self.shared += more;
        self.size += more;
        self.granted.shared += more;
        self.grown = self.granted.shared;
        true
    }

    /// What was granted so far.
    #[must_use]
    pub fn granted(&self) -> &Grant {
        &self.granted
    }

    /// A fragment came. `hop` is the one it has here.
    ///
    /// # Errors
    /// It was not granted.
    pub fn handle_arrival(&mut self, lane: Lane, hop: u8, length: u32) -> Result<(), Overdrawn> {
        let (used, granted) = match lane {
            Lane::Shared => {
                self.used.shared += charge(length);
                (self.used.shared, self.granted.shared)
            }
            Lane::Escape(class) if class == hop && class > 0 && class <= MAX_HOPS => {
                let used = &mut self.used.escapes[usize::from(class)];
                *used += 1;
                (*used, self.granted.escapes[usize::from(class)])
            }
            // Nobody has granted anything to an origin here, or it says another hop than it has.
            Lane::Last | Lane::Escape(_) => return Err(Overdrawn),
        };
        if used > granted || u64::from(length) > FRAGMENT {
            return Err(Overdrawn);
        }
        Ok(())
    }

    /// The buffer of a fragment is free again, so that another may come.
    pub fn free(&mut self, lane: Lane, length: u32) {
        match lane {
            Lane::Shared => self.granted.shared += charge(length),
            Lane::Escape(class) => self.granted.escapes[usize::from(class)] += 1,
            Lane::Last => (),
        }
    }
}

/// What a fragment costs of the shared bytes: a short one needs a place as well.
fn charge(length: u32) -> u64 {
    u64::from(length).max(PLACE)
}

/// The most shared bytes of one link: what is under way at 10 Gbit/s and 50 ms.
pub const MOST_SHARED: u64 = 64 << 20;

/// What the place of a fragment costs, however short it is.
const PLACE: u64 = 256;
