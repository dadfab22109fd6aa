//! How far a map is: measured here, and told to the program's callback or, if it has none, to the launcher.

use core::fmt;
use std::time::{Duration, Instant};

use mizzen_core::Endpoint;
use mizzen_proto::boot;

use super::board::Tally;
use super::lending::MapId;

/// How often it is told. Smooth for people, and nothing beside what items cost.
const PAUSE: Duration = Duration::from_millis(100);
/// The launcher is told nothing of a map that is over by then.
const SOON: Duration = Duration::from_millis(500);
/// The rate is that of about so long: it follows when ranks come and go, and does not jump with each portion of results.
const REMEMBERED: Duration = Duration::from_secs(3);

/// How far a map is: what [`Pool::on_progress`](crate::Pool::on_progress) is given, about the items of this process. Its
/// `Display` form is what the launcher shows.
///
/// ```
/// use std::time::Duration;
/// mizzen::local(2, |deck| {
///     let items = if deck.rank() == 0 { 0..200u64 } else { 0..0 };
///     let mut last = None;
///     deck.pool()
///         .on_progress(|progress| last = Some(progress.clone()))
///         .map(items, |_| std::thread::sleep(Duration::from_millis(1)))?;
///     if deck.rank() == 0 {
///         let last = last.expect("it is told at the end in any case");
///         assert_eq!((last.done, last.total, last.is_over), (200, 200, true));
///         println!("{last}"); // 200 of 200 items, 1984/s
///     }
///     Ok(())
/// }).unwrap();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What [`Pool::name`](crate::Pool::name) said; empty without it.
    pub name: String,
    /// Items of this process that have results.
    pub done: usize,
    /// All items of this process.
    pub total: usize,
    /// Results per second, in the last seconds.
    pub rate: f64,
    /// How much longer it will take at that rate; `None` while that cannot be known.
    pub time_left: Option<Duration>,
    /// How many processes have items of this one and have not sent their results yet, this one included.
    pub ranks_at_work: usize,
    /// Whether this process is one of them.
    pub works_itself: bool,
    /// How long it has been.
    pub elapsed: Duration,
    /// Whether this is the last call: all results are there, or the map ended without them.
    pub is_over: bool,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        f.write_str(&self.to_boot(0).to_string())
    }
}

impl Progress {
    /// As the launcher is told. `number`: which map of that name.
    fn to_boot(&self, number: u32) -> boot::Progress {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        boot::Progress {
            name: cut(&self.name, boot::MAX_MAP_NAME),
            number,
            done: self.done as u64,
            total: self.total as u64,
            // Saturates.
            per_1000_s: (self.rate * 1000.0) as u64,
            left_ms: self.time_left.map(ms),
            ranks_at_work: u32::try_from(self.ranks_at_work).unwrap_or(u32::MAX),
            works_itself: self.works_itself,
            is_over: self.is_over,
        }
    }
}

/// As much of a text as fits.
fn cut(text: &str, bytes: usize) -> String {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Whom to tell.
pub(super) enum Listener<'d> {
    /// A function of the program.
    Callback(Box<dyn FnMut(&Progress) + 'd>),
    /// The launcher, if there is one.
    Launcher,
    Nobody,
}

impl fmt::Debug for Listener<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Callback(_) => "Callback",
            Self::Launcher => "Launcher",
            Self::Nobody => "Nobody",
        })
    }
}

/// Tells how far one map is, now and then.
pub(super) struct Teller<'d> {
    listener: Listener<'d>,
    process: Endpoint,
    /// Which map of its name.
    number: u32,
    pace: Pace,
    /// What was told last, unless it was the end.
    last: Option<Progress>,
}

impl<'d> Teller<'d> {
    pub(super) fn new(listener: Listener<'d>, process: &Endpoint, map: &MapId) -> Self {
        let first = match listener {
            Listener::Callback(_) => PAUSE,
            _ => SOON,
        };
        Self {
            listener,
            process: process.clone(),
            number: map.number,
            pace: Pace::new(&map.name, first),
            last: None,
        }
    }

    /// Whether it is time to tell something.
    pub(super) fn is_due(&self) -> bool {
        !matches!(self.listener, Listener::Nobody) && self.pace.is_due()
    }

    /// Tells how far it is.
    pub(super) fn tell(&mut self, tally: Tally) {
        let progress = self.pace.note(tally, Instant::now());
        self.pass_on(&progress);
    }

    /// Tells that it is over. The program is told in any case, the launcher only if it was told before.
    pub(super) fn end(&mut self, tally: Tally) {
        let is_told = match self.listener {
            Listener::Callback(_) => true,
            Listener::Launcher => self.last.is_some(),
            Listener::Nobody => false,
        };
        if is_told {
            let mut progress = self.pace.note(tally, Instant::now());
            progress.is_over = true;
            progress.time_left = None;
            self.pass_on(&progress);
        }
    }

    fn pass_on(&mut self, progress: &Progress) {
        // Who only helps others has no news of its own.
        if progress.total == 0 {
            return;
        }
        self.last = (!progress.is_over).then(|| progress.clone());
        match &mut self.listener {
            Listener::Callback(callback) => callback(progress),
            Listener::Launcher => self.process.tell_progress(progress.to_boot(self.number)),
            Listener::Nobody => (),
        }
    }
}

/// The launcher does not show a map for ever whose calling thread panicked.
impl Drop for Teller<'_> {
    fn drop(&mut self) {
        if let (Listener::Launcher, Some(mut last)) = (&self.listener, self.last.take()) {
            last.is_over = true;
            self.process.tell_progress(last.to_boot(self.number));
        }
    }
}

/// When to tell, and how fast it goes.
struct Pace {
    name: String,
    started: Instant,
    /// When to tell next.
    next: Instant,
    /// When the rate was last seen to, how much was done then, and what it was.
    seen: Instant,
    done: usize,
    rate: f64,
}

impl Pace {
    fn new(name: &str, first: Duration) -> Self {
        let started = Instant::now();
        Self {
            name: name.to_owned(),
            started,
            next: started + first,
            seen: started,
            done: 0,
            rate: 0.0,
        }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    fn note(&mut self, tally: Tally, now: Instant) -> Progress {
        self.next = now + PAUSE;
        let Tally { done, total, .. } = tally;
        self.note_rate(done, now);
        let left = (total - done.min(total)) as f64 / self.rate;
        Progress {
            name: self.name.clone(),
            done,
            total,
            rate: self.rate,
            time_left: Duration::try_from_secs_f64(left).ok(),
            ranks_at_work: tally.ranks_at_work,
            works_itself: tally.works_itself,
            elapsed: now - self.started,
            is_over: false,
        }
    }

    /// An average that forgets: at first over all the time, later over the last seconds.
    fn note_rate(&mut self, done: usize, now: Instant) {
        let passed = (now - self.seen).as_secs_f64();
        if passed <= 0.0 {
            return;
        }
        let newest = done.saturating_sub(self.done) as f64 / passed;
        let known = (self.seen - self.started).min(REMEMBERED).as_secs_f64();
        self.rate = (self.rate * known + newest * passed) / (known + passed);
        (self.seen, self.done) = (now, done);
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, Tally, cut};
    use std::time::Duration;

    fn tally(done: usize) -> Tally {
        Tally {
            done,
            total: 1000,
            ranks_at_work: 3,
            works_itself: true,
        }
    }

    #[test]
    fn the_rate_follows_and_the_rest_is_computed_from_it() {
        let mut pace = Pace::new("tiles", Duration::ZERO);
        let at = |seconds| pace.started + Duration::from_secs(seconds);
        let (first, later) = (at(10), at(110));
        let progress = pace.note(tally(100), first);
        assert!((progress.rate - 10.0).abs() < 1e-6, "{progress:?}");
        assert_eq!(progress.time_left, Some(Duration::from_secs(90)));
        assert_eq!(
            progress.to_string(),
            "tiles: 100 of 1000 items, 10.0/s, 90 s left, 3 ranks at work"
        );
        let slower = pace.note(tally(200), later);
        assert!(slower.rate < 1.5, "{slower:?}");
    }

    #[test]
    fn nobody_knows_how_long_nothing_takes() {
        let mut pace = Pace::new("", Duration::ZERO);
        let now = pace.started + Duration::from_secs(1);
        let progress = pace.note(tally(0), now);
        assert_eq!(progress.time_left, None);
        assert_eq!(progress.to_string(), "0 of 1000 items, 3 ranks at work");
    }

    #[test]
    fn a_long_name_is_cut_between_letters() {
        assert_eq!(cut("größe", 4), "grö");
        assert_eq!(cut("größe", 3), "gr");
    }
}
