//! How a thread waits: spin, then yield, then sleep.
//!
//! Spinning covers one round trip between cores; a wake-up from sleep costs ten times as much. Yielding lets the thread
//! that will send run when there are more threads than cores. Sleeping costs nothing.
//!
//! When threads are crowded, spinning would be at the expense of others: a pair of threads that happens to run on two cores
//! at once would answer each other for whole time slices while the rest stand still. So a crowded thread gives way at
//! once. It can tell that it is crowded by how long a yield takes: a few hundred nanoseconds when no other thread wants the
//! core, longer when one took it.

use core::cell::Cell;
use core::num::NonZero;
use std::time::{Duration, Instant};

use mizzen_shm::slice;

use crate::looks::quick_looks;
use crate::roll::{self, WaitsFor};

/// How long a sleeping thread trusts its senders to ring. A lost ring, which only a broken peer can cause, costs this much.
const NAP: Duration = Duration::from_millis(500);

/// Full looks while spinning; with the quick looks at the likely place between two of them, about one round trip between two cores
/// (1 to 2 µs).
const SPINS: u32 = 4;
/// How often to yield after that, when alone on the core: longer waits are long.
const YIELDS: u32 = 20;
/// The same when crowded: every other thread on the core may want its turn several times before our message comes.
const CROWDED_YIELDS: u32 = 200;
/// The same on a network, where a look is a system call, and an answer takes ten times as long as between cores.
const NETWORK_SPINS: u32 = 16;
const NETWORK_YIELDS: u32 = 150;
/// A yield that takes longer let another thread run. (Alone, it takes 0.3 µs.)
const CROWDED_YIELD: Duration = Duration::from_nanos(700);
/// One that takes longer than this let a thread run that does not soon give way in turn: it computes. Who yields to such a
/// thread comes back when its time slice is over, message or not; who sleeps is woken by the message.
const OCCUPIED_YIELD: Duration = Duration::from_millis(1);
/// A thread that waited so long waits for something rare. It loses nothing by sleeping at once.
const LONG_WAIT: Duration = Duration::from_micros(500);

/// A wait is usual until then. Longer than the launcher's limit of one line in ten seconds.
const FIRST_REMARK: Duration = Duration::from_millis(10_100);

/// How long a wait must be to be noted for those who ask why nothing happens.
const NOTED_AFTER: Duration = Duration::from_millis(250);

/// When a wait of `timeout` from now ends. `None` if that is later than the clock can say, which means never.
#[must_use]
pub fn deadline_in(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// Until when to wait for room.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Forever,
    /// Until the reader has taken what is long, from where it lies.
    Taken,
    Deadline(Instant),
    Now,
}

impl Until {
    /// At most so long from now.
    pub(crate) fn within(timeout: Duration) -> Self {
        deadline_in(timeout).map_or(Self::Forever, Self::Deadline)
    }

    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Forever | Self::Taken => None,
            Self::Deadline(deadline) => Some(deadline),
            Self::Now => Some(Instant::now()),
        }
    }
}

/// What one waiting thread has noticed: whether other threads want the core, and whether what comes over a network is usually
/// late.
#[derive(Debug, Default)]
pub struct Contention {
    signs: Cell<u8>,
    /// For how many more pauses not to yield, because others compute.
    occupied: Cell<u8>,
    /// Yields in a row, up to two, after which others had computed.
    long_yields: Cell<u8>,
    /// Signs that the thread waits for something rare: long waits are, and waits that follow one another soon are against it.
    rare: Cell<u8>,
    /// When it first paused in the last wait.
    paused_at: Cell<Option<Instant>>,
    /// How many waits began on a network, and how many of the last ones ended in sleep.
    waits: Cell<u8>,
    late: Cell<u8>,
}

impl Contention {
    /// Signs needed before it counts, so that one interruption changes nothing.
    const ENOUGH: u8 = 4;
    const MOST: u8 = 16;
    /// Sleeps after a yield that took long, before yielding is tried again.
    const OCCUPIED_FOR: u8 = 250;
    /// What a long wait counts, against one that followed soon: it may have begun late, because the thread was. And what is enough, and
    /// the most: among many threads that pass messages some wait for long now and then.
    const LONG: u8 = 2;
    const RARE: u8 = 10;
    const RARE_MOST: u8 = 20;
    /// Sleeps in a row before a thread expects what it waits for to be late; and how often it is patient all the same, to
    /// see whether that is still so.
    const LATE: u8 = 4;
    const TRIED_EVERY: u8 = 16;

    #[inline]
    fn is_felt(&self) -> bool {
        self.signs.get() >= Self::ENOUGH
    }

    /// Whether what the thread waits for is usually late.
    fn expects_late(&self) -> bool {
        let waits = self.waits.get().wrapping_add(1);
        self.waits.set(waits);
        self.late.get() >= Self::LATE && waits % Self::TRIED_EVERY != 0
    }

    fn note_late(&self) {
        self.late.set(self.late.get().saturating_add(1));
    }

    /// A wait was over before its thread slept.
    pub(crate) fn note_in_time(&self) {
        self.late.set(0);
    }

    /// Looks for about as many round trips, on behalf of a task that is about to be left to others. Not if what it waits for is
    /// usually later than that: then the time would be taken from other tasks for nothing.
    pub(crate) fn look_in_time(&self, round_trips: u32, ready: impl Fn() -> bool) {
        if self.expects_late() {
            return;
        }
        for _ in 0..round_trips * SPINS * quick_looks() {
            if ready() {
                return self.note_in_time();
            }
            core::hint::spin_loop();
        }
        self.note_late();
    }

    /// Whether to sleep at once, because others would keep the core for long.
    fn is_occupied(&self) -> bool {
        let occupied = self.occupied.get();
        self.occupied.set(occupied.saturating_sub(1));
        occupied > 0
    }

    /// Lets other threads run, and notices whether there were any: when it began, and how long it took.
    fn give_way(&self) -> (Instant, Duration) {
        let before = Instant::now();
        std::thread::yield_now();
        let signs = self.signs.get();
        let took = before.elapsed();
        self.note_yield(took);
        let crowded = took > CROWDED_YIELD;
        self.signs.set(if crowded {
            (signs + 2).min(Self::MOST)
        } else {
            signs.saturating_sub(1)
        });
        (before, took)
    }

    /// Whether a yield tells that others compute.
    fn note_yield(&self, took: Duration) {
        let known = self.long_yields.get();
        // One may be an accident; where it was so before, it is none, even if the slice was shorter.
        if took > OCCUPIED_YIELD || known == 2 && took > OCCUPIED_YIELD / 5 {
            self.long_yields.set((known + 1).min(2));
            if known > 0 {
                self.occupied.set(Self::OCCUPIED_FOR);
            }
        } else if took < OCCUPIED_YIELD / 20 {
            self.long_yields.set(0);
        }
    }

    /// The thread pauses for the first time in a wait.
    fn note_pause(&self, now: Instant) {
        let before = self.paused_at.replace(Some(now));
        if before.is_some_and(|before| now - before < LONG_WAIT) {
            let was_rare = self.is_rare();
            self.rare.set(self.rare.get().saturating_sub(1));
            if was_rare && !self.is_rare() {
                slice::give_back();
            }
        }
    }

    /// The thread has waited for long, yielding or asleep.
    fn note_long_wait(&self) {
        let rare = self.rare.get() + Self::LONG;
        self.rare.set(rare.min(Self::RARE_MOST));
        if self.is_rare() {
            slice::shorten();
        }
    }

    /// Whether what the thread waits for is rare. It then loses nothing by sleeping at once, and has to go on soon when it is woken,
    /// whoever computes.
    fn is_rare(&self) -> bool {
        self.rare.get() >= Self::RARE
    }
}

/// Looks up to `looks` times, a moment apart, until `ready`.
#[inline]
pub fn spin(looks: u32, ready: impl Fn() -> bool) {
    for _ in 0..looks {
        if ready() {
            return;
        }
        core::hint::spin_loop();
    }
}

/// The steps of one wait.
#[derive(Debug)]
pub struct Patience<'a> {
    contention: &'a Contention,
    pace: Pace,
    rounds: u32,
    started: Option<Instant>,
    deadline: Option<Instant>,
    /// After how long a wait is worth a word to the user.
    remark_after: Duration,
}

/// How often to look before sleeping.
#[derive(Clone, Copy, Debug)]
struct Pace {
    spins: u32,
    /// Whether quick looks tell whether something came.
    looks: bool,
    yields: u32,
    /// Whether a message rings. Not every network does: who sleeps may make rare what would come soon.
    rings: bool,
}

/// For what comes through memory.
const MEMORY: Pace = Pace {
    spins: SPINS,
    looks: true,
    yields: YIELDS,
    rings: true,
};
/// For what comes over a network.
const NETWORK: Pace = Pace {
    spins: NETWORK_SPINS,
    looks: false,
    yields: NETWORK_YIELDS,
    rings: false,
};
/// For what comes over a network, and usually late.
const LATE: Pace = Pace {
    yields: YIELDS,
    ..NETWORK
};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Look again.
    Again,
    /// Prepare to sleep, look once more, then sleep at most this long.
    Sleep(Duration),
    /// The deadline has passed.
    Expired(Duration),
}

impl<'a> Patience<'a> {
    /// The first step of a wait that ends at `deadline`.
    pub fn until(deadline: Option<Instant>, contention: &'a Contention) -> Self {
        Self {
            contention,
            pace: MEMORY,
            rounds: 0,
            started: None,
            deadline,
            remark_after: FIRST_REMARK,
        }
    }

    /// The same for something that comes over a network.
    #[must_use]
    pub fn on_network(deadline: Option<Instant>, contention: &'a Contention) -> Self {
        let pace = if contention.expects_late() {
            LATE
        } else {
            NETWORK
        };
        Self {
            pace,
            ..Self::until(deadline, contention)
        }
    }

    /// How many quick looks at the likely place, a moment apart, are due before the next step.
    #[inline]
    pub fn quick_looks(&self) -> u32 {
        if self.pace.looks && self.rounds < self.pace.spins && !self.contention.is_felt() {
            quick_looks()
        } else {
            0
        }
    }

    /// Called after each full look that found nothing.
    #[inline]
    pub fn step(&mut self) -> Step {
        self.rounds += 1;
        if self.rounds <= self.pace.spins && !self.contention.is_felt() {
            return Step::Again;
        }
        self.pause()
    }

    /// Whether the deadline has passed.
    pub fn is_over(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// How long it has been since somebody first asked, or since it first gave way.
    pub fn waited(&mut self) -> Duration {
        self.started.get_or_insert_with(Instant::now).elapsed()
    }

    /// Called after sleeping, by whoever waits in the same way again.
    pub fn note_woken(&mut self) {
        if self.waited() > LONG_WAIT {
            self.contention.note_long_wait();
        }
    }

    /// How long it has been, if the user should be told: after ten seconds, and then less and less often.
    pub fn remarkable(&mut self) -> Option<Duration> {
        let waited = self.waited();
        if waited < self.remark_after {
            return None;
        }
        self.remark_after = waited * 3;
        Some(waited)
    }

    #[cold]
    fn pause(&mut self) -> Step {
        let yields = if self.pace.rings && self.contention.is_rare() {
            0
        } else if self.contention.is_felt() {
            CROWDED_YIELDS
        } else {
            self.pace.yields
        };
        let patient = self.pace.spins + yields;
        let sleepy = self.rounds > patient || self.contention.is_occupied();
        if self.rounds == patient + 1 {
            self.contention.note_late();
        }
        if let Some(deadline) = self.deadline {
            let now = Instant::now();
            let started = self.pause_from(now);
            if now >= deadline {
                return Step::Expired(now - started);
            }
            if sleepy {
                return Step::Sleep((deadline - now).min(NAP));
            }
        }
        if sleepy {
            self.pause_from(Instant::now());
            return Step::Sleep(NAP);
        }
        let (began, took) = self.contention.give_way();
        let waited = began - self.pause_from(began);
        if waited <= LONG_WAIT && waited + took > LONG_WAIT {
            self.contention.note_long_wait();
        }
        Step::Again
    }

    /// When the wait began to pause: now, if it had not.
    fn pause_from(&mut self, now: Instant) -> Instant {
        if self.started.is_none() {
            self.contention.note_pause(now);
        }
        *self.started.get_or_insert(now)
    }
}

/// A wait of the calling thread, which is noted if it lasts: for those who ask why nothing happens.
#[derive(Debug, Default)]
pub struct Noted(Option<NonZero<u64>>);

impl Noted {
    /// Called each time before the thread sleeps.
    pub(crate) fn keep(&mut self, patience: &mut Patience<'_>, what: impl FnOnce() -> WaitsFor) {
        self.keep_after(patience.waited(), what);
    }

    /// The same by a thread that has waited for so long.
    pub fn keep_after(&mut self, waited: Duration, what: impl FnOnce() -> WaitsFor) {
        if waited >= NOTED_AFTER {
            self.0 = roll::note(self.0, waited, what);
        }
    }
}

impl Drop for Noted {
    #[inline]
    fn drop(&mut self) {
        if let Some(number) = self.0 {
            roll::forget(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use core::panic::Location;

    use super::*;
    use crate::caller;
    use crate::rank::Rank;
    use crate::roll::{Kind, call};
    use mizzen_proto::rollcall::Wait;

    const LONG: Duration = Duration::from_secs(3);

    fn mine(mark: &str) -> Vec<Wait> {
        let (all, _) = call(usize::MAX);
        all.into_iter().filter(|wait| wait.what == mark).collect()
    }

    const SLICE: Duration = Duration::from_millis(3);
    const MOMENT: Duration = Duration::from_nanos(300);

    #[test]
    fn among_threads_that_pass_messages_one_long_yield_is_an_accident() {
        let contention = Contention::default();
        for _ in 0..10 {
            contention.note_yield(SLICE);
            contention.note_yield(MOMENT);
            assert!(!contention.is_occupied());
        }
        contention.note_yield(SLICE);
        contention.note_yield(SLICE);
        assert!(contention.is_occupied());
    }

    #[test]
    fn a_thread_that_waits_for_what_is_rare_sleeps_at_once() {
        let contention = Contention::default();
        let steps = || {
            let mut patience = Patience::until(None, &contention);
            let steps = core::iter::repeat_with(|| patience.step());
            steps.take_while(|step| *step == Step::Again).count() as u32
        };
        assert!(steps() > SPINS);
        (0..8).for_each(|_| contention.note_long_wait());
        assert!(steps() <= SPINS);
    }

    #[test]
    fn what_comes_soon_again_and_again_is_not_rare() {
        let contention = Contention::default();
        (0..20).for_each(|_| contention.note_long_wait());
        let now = Instant::now();
        let pause = |contention: &Contention, count: u32, apart: Duration| {
            (0..count).for_each(|number| contention.note_pause(now + apart * number));
        };
        pause(&contention, 10, SLICE);
        pause(&contention, 8, MOMENT);
        assert!(contention.is_rare(), "the thread may have been late");
        pause(&contention, 4, MOMENT);
        assert!(!contention.is_rare());
    }

    #[test]
    fn a_wait_is_noted_while_it_lasts_and_only_the_outermost() {
        let what = |what: &str| WaitsFor::one(Kind::Message, Rank(7), what);
        let mut outer = Noted::default();
        outer.keep_after(Duration::from_millis(1), || what("too short"));
        assert!(mine("too short").is_empty());
        outer.keep_after(LONG, || what("outer"));
        let mut inner = Noted::default();
        inner.keep_after(LONG, || what("inner"));
        assert!(mine("inner").is_empty());
        let [noted] = &mine("outer")[..] else {
            panic!("noted once")
        };
        assert!(noted.millis >= 3000 && noted.whom == [7] && noted.at.is_none());
        drop(outer);
        assert!(mine("outer").is_empty());
        inner.keep_after(LONG, || what("inner"));
        assert_eq!(mine("inner").len(), 1);
    }

    #[test]
    fn the_call_around_a_wait_says_where_it_is() {
        let at = Location::caller();
        let what = || WaitsFor::some(Kind::Other, vec![], "located").called_from(at);
        let mut noted = Noted::default();
        noted.keep_after(LONG, what);
        assert_eq!(mine("located")[0].at.as_ref().unwrap().line, at.line());
        drop(noted);
        let mut noted = Noted::default();
        let around = Location::caller();
        let _call = caller::Caller::enter_at(around);
        noted.keep_after(LONG, what);
        assert_eq!(mine("located")[0].at.as_ref().unwrap().line, around.line());
    }
}
