//! How far the maps of the job's pools are: what processes said last, added up for each map.
//!
//! No IO and no clock of its own: what processes say goes in by `handle_*`, what is to be shown comes out by `poll_lines` and
//! [`shown`](Maps::shown).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mizzen_proto::boot::Progress;

/// Maps at once that anything is kept of: those of a program that names them by mistake after its items are not shown.
const MAX_MAPS: usize = 64;
/// Bars at once: more would push what the processes print off the screen.
pub(crate) const MAX_BARS: usize = 8;
/// Between two lines about a map, where there is no terminal to draw on.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// The maps that are under way.
#[derive(Debug, Default)]
pub(crate) struct Maps {
    /// By name, and by how many of that name were before.
    all: BTreeMap<(String, u32), Map>,
}

#[derive(Debug)]
struct Map {
    /// What each rank said of its items.
    by_rank: BTreeMap<u32, Progress>,
    /// When a line about it is due.
    next_line: Instant,
    has_line: bool,
}

impl Maps {
    /// A process says how far its part of a map is. Of a map that is over, a sentence remains, if there was one before.
    pub(crate) fn handle(&mut self, rank: u32, progress: Progress, now: Instant) -> Option<String> {
        let key = (progress.name.clone(), progress.number);
        if !self.all.contains_key(&key) && self.all.len() >= MAX_MAPS {
            return None;
        }
        let map = self.all.entry(key.clone()).or_insert_with(|| Map {
            by_rank: BTreeMap::new(),
            next_line: now + LINE_INTERVAL,
            has_line: false,
        });
        map.by_rank.insert(rank, progress);
        if !map.by_rank.values().all(|progress| progress.is_over) {
            return None;
        }
        let map = self.all.remove(&key)?;
        map.has_line.then(|| sentence(&map.sum()))
    }

    /// A process has ended, and with it what it had to say.
    pub(crate) fn handle_exited(&mut self, rank: u32) {
        self.all.retain(|_, map| {
            map.by_rank.remove(&rank);
            !map.by_rank.values().all(|progress| progress.is_over)
        });
    }

    /// The lines that are due.
    pub(crate) fn poll_lines(&mut self, now: Instant) -> Vec<String> {
        let due = self.all.values_mut().filter(|map| map.next_line <= now);
        due.map(|map| {
            map.next_line = now + LINE_INTERVAL;
            map.has_line = true;
            sentence(&map.sum())
        })
        .collect()
    }

    /// When the next line is due.
    pub(crate) fn next_line(&self) -> Option<Instant> {
        self.all.values().map(|map| map.next_line).min()
    }

    /// What is under way, as much of it as has room on a screen.
    pub(crate) fn shown(&self) -> Vec<Progress> {
        self.all.values().take(MAX_BARS).map(Map::sum).collect()
    }
}

impl Map {
    /// What all ranks said of it, as one.
    fn sum(&self) -> Progress {
        let all = || self.by_rank.values();
        let under_way = || all().filter(|progress| !progress.is_over);
        let total_of = |each: fn(&Progress) -> u64| all().map(each).fold(0, u64::saturating_add);
        // Ranks that help each other are known to each of those they help; those that run their own items, to themselves only.
        let workers = under_way().filter(|progress| progress.works_itself).count();
        let helped = under_way().map(|progress| progress.ranks_at_work).max();
        let left = under_way().map(|progress| progress.left_ms);
        Progress {
            name: all().next().map(title).unwrap_or_default(),
            number: 0,
            done: total_of(|progress| progress.done),
            total: total_of(|progress| progress.total),
            per_1000_s: total_of(|progress| progress.per_1000_s),
            // The last one decides; who does not know it yet may be the last.
            left_ms: left
                .reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b)))
                .flatten(),
            ranks_at_work: (workers as u32).max(helped.unwrap_or(0)),
            works_itself: workers > 0,
            is_over: under_way().next().is_none(),
        }
    }
}

/// What a map is called, without what a terminal would take for a command.
fn title(progress: &Progress) -> String {
    match &progress.name[..] {
        "" => "pool".to_owned(),
        name => name.replace(char::is_control, " "),
    }
}

fn sentence(sum: &Progress) -> String {
    format!("{}: {sum}.", sum.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(name: &str, done: u64, ranks_at_work: u32) -> Progress {
        Progress {
            name: name.into(),
            number: 0,
            done,
            total: 100,
            per_1000_s: 2000,
            left_ms: Some(1000 * (100 - done) / 2),
            ranks_at_work,
            works_itself: true,
            is_over: done == 100,
        }
    }

    #[test]
    fn what_ranks_say_of_one_map_is_added_up() {
        let (mut maps, now) = (Maps::default(), Instant::now());
        maps.handle(0, progress("tiles", 60, 1), now);
        maps.handle(1, progress("tiles", 40, 1), now);
        let shown = maps.shown();
        assert_eq!(shown.len(), 1);
        let text = "100 of 200 items, 4.0/s, 30 s left, 2 ranks at work";
        assert_eq!(shown[0].to_string(), text);
        assert_eq!(maps.poll_lines(now), [""; 0], "it has just begun");
        let later = now + LINE_INTERVAL;
        assert_eq!(maps.poll_lines(later), [format!("tiles: {text}.")]);
        assert_eq!(maps.poll_lines(later), [""; 0]);
    }

    #[test]
    fn a_map_is_over_when_it_is_over_for_all() {
        let (mut maps, now) = (Maps::default(), Instant::now());
        maps.handle(0, progress("", 50, 3), now);
        maps.handle(1, progress("", 50, 3), now);
        assert_eq!(maps.poll_lines(now + LINE_INTERVAL).len(), 1);
        assert_eq!(maps.handle(0, progress("", 100, 0), now), None);
        assert_eq!(maps.shown()[0].done, 150);
        let last = maps.handle(1, progress("", 100, 0), now);
        assert_eq!(last.unwrap(), "pool: 200 of 200 items, 4.0/s.");
        assert!(maps.shown().is_empty() && maps.next_line().is_none());
    }

    #[test]
    fn nothing_is_shown_of_the_dead() {
        let (mut maps, now) = (Maps::default(), Instant::now());
        maps.handle(0, progress("a", 50, 3), now);
        maps.handle(1, progress("a", 60, 3), now);
        maps.handle(0, progress("b", 10, 3), now);
        maps.handle_exited(0);
        let shown = maps.shown();
        assert_eq!((shown.len(), shown[0].done), (1, 60));
    }

    #[test]
    fn a_program_cannot_fill_the_memory_or_the_screen() {
        let (mut maps, now) = (Maps::default(), Instant::now());
        for name in 0..10 * MAX_MAPS {
            maps.handle(0, progress(&format!("map {name}\x1b[2J"), 50, 1), now);
        }
        assert_eq!(maps.all.len(), MAX_MAPS);
        let shown = maps.shown();
        assert_eq!(shown.len(), MAX_BARS);
        assert!(!shown[0].name.contains('\x1b'), "{:?}", shown[0].name);
    }
}
