//! Named counters of the objects of a process: links, mailboxes, services, pools.
//!
//! A counter costs nothing where time matters. What the short path keeps anyway is read when somebody asks: the position of a
//! lane says how many messages went over it. What happens on slow paths is counted there: a wait, a sleep, a wake-up, a rerun.

use core::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use crate::lock::lock;

/// One counter of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterRow {
    /// Which object: `link to rank 1`, `mailbox 3`, `service prices`, `pool`.
    pub object: String,
    /// What is counted: `messages_sent`.
    pub name: &'static str,
    /// How many so far.
    pub value: u64,
}

/// Something that has counters.
pub trait Counted: Send + Sync {
    /// Adds its counters.
    fn count(&self, rows: &mut Rows);
}

/// Counters that are being collected.
#[derive(Debug, Default)]
pub struct Rows(Vec<CounterRow>);

impl Rows {
    /// Adds the counters of one object.
    pub fn object(&mut self, object: impl fmt::Display, counts: &[(&'static str, u64)]) {
        let object = object.to_string();
        self.0.extend(counts.iter().map(|(name, value)| CounterRow {
            object: object.clone(),
            name,
            value: *value,
        }));
    }

    /// The counters as text, whatever object they are of: `messages_sent=5 sleeps=2`. Those that are zero say nothing.
    pub(crate) fn summary(&self) -> String {
        texts(&self.0)
    }

    pub(crate) fn into_rows(self) -> Vec<CounterRow> {
        self.0
    }
}

/// What is counted on slow paths, by any thread.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `count`.
    pub fn add(&self, count: u64) {
        // Nothing follows from a count but what is shown of it.
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// One more, where nobody else counts at the same time: without a read-modify-write.
    pub fn add_alone(&self) {
        self.0.store(self.get() + 1, Ordering::Relaxed);
    }

    /// How many so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The objects of services, besides those of the core, whose counters are shown with those of their process.
#[derive(Default)]
pub(crate) struct Counters {
    /// As many as live; those that are gone go when another comes.
    sources: Mutex<Vec<Weak<dyn Counted>>>,
}

impl Counters {
    pub(crate) fn add(&self, source: &Arc<dyn Counted>) {
        let mut sources = lock(&self.sources);
        sources.retain(|source| source.strong_count() > 0);
        sources.push(Arc::downgrade(source));
    }
}

impl Counted for Counters {
    fn count(&self, rows: &mut Rows) {
        // Without the lock: who counts may take others.
        let sources = lock(&self.sources).clone();
        for source in sources.iter().filter_map(Weak::upgrade) {
            source.count(rows);
        }
    }
}

/// The counters of one object as text: `messages_sent=5 sleeps=2`. Those that are zero say nothing.
pub fn summary(counted: &dyn Counted) -> String {
    let mut rows = Rows::default();
    counted.count(&mut rows);
    rows.summary()
}

/// One text for each object, in the order in which they came: `link to rank 1: messages_sent=5`.
pub(crate) fn by_object(rows: &[CounterRow]) -> Vec<String> {
    let objects = rows.chunk_by(|one, next| one.object == next.object);
    let texts = objects.map(|rows| (&rows[0].object, texts(rows)));
    texts
        .filter(|(_, text)| !text.is_empty())
        .map(|(object, text)| format!("{object}: {text}"))
        .collect()
}

fn texts(rows: &[CounterRow]) -> String {
    let rows = rows.iter().filter(|row| row.value > 0);
    let texts: Vec<String> = rows
        .map(|row| format!("{}={}", row.name, row.value))
        .collect();
    texts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Two;

    impl Counted for Two {
        fn count(&self, rows: &mut Rows) {
            rows.object("a", &[("sleeps", 1), ("wakes", 0)]);
            rows.object("b", &[("sleeps", 2)]);
        }
    }

    #[test]
    fn a_registry_asks_those_who_are_there() {
        let (registry, mut rows) = (Counters::default(), Rows::default());
        let two: Arc<dyn Counted> = Arc::new(Two);
        registry.add(&two);
        registry.count(&mut rows);
        assert_eq!(by_object(&rows.0), ["a: sleeps=1", "b: sleeps=2"]);
        drop(two);
        let mut rows = Rows::default();
        registry.count(&mut rows);
        assert_eq!(rows.into_rows(), []);
    }
}
