//! What happens, for people: events of `tracing` as lines on standard error, if `MIZZEN_LOG` asks for them.
//!
//! A library does not choose who listens, so this is done only if the user asks for it and the program has no subscriber of
//! its own. It is small on purpose: a level, and nothing else to set. A program that wants more installs its own subscriber.

use core::cell::RefCell;
use core::fmt::{self, Write as _};
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once};
use std::time::Instant;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::lock::lock;

/// The environment variable that says what is shown: `error`, `warn`, `info`, `debug` or `trace`.
pub const VARIABLE: &str = "MIZZEN_LOG";

/// Spans that are remembered at once. Each is an object of the runtime; beyond this, events come without what they belong to.
const MAX_SPANS: usize = 1 << 16;

/// Shows events on standard error, if [`VARIABLE`] says so and nobody listens to them yet.
pub fn show_if_asked() {
    show_if_asked_on(|line| {
        // Nobody can help it if standard error is gone.
        let _ = std::io::stderr().write_all(line);
    });
}

/// As [`show_if_asked`], and `write` gets the lines.
pub fn show_if_asked_on(write: impl Fn(&[u8]) + Send + Sync + 'static) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(wanted) = std::env::var_os(VARIABLE).filter(|wanted| !wanted.is_empty()) else {
            return;
        };
        let known = wanted.to_str().and_then(|wanted| wanted.parse().ok());
        let log = Log::new(known.unwrap_or(LevelFilter::WARN), write);
        // The program's own goes first.
        if tracing::subscriber::set_global_default(log).is_ok() && known.is_none() {
            tracing::warn!("{VARIABLE} is {wanted:?}; give error, warn, info, debug or trace");
        }
    });
}

/// Who writes events as lines.
struct Log<W> {
    most: LevelFilter,
    started: Instant,
    next: AtomicU64,
    spans: Mutex<HashMap<u64, Known>>,
    write: W,
}

/// A span, as it stands before its events.
struct Known {
    text: String,
    references: usize,
}

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

impl<W: Fn(&[u8])> Log<W> {
    fn new(most: LevelFilter, write: W) -> Self {
        Self {
            most,
            started: Instant::now(),
            next: AtomicU64::new(1),
            spans: Mutex::default(),
            write,
        }
    }

    /// What an event or a span belongs to: what it names itself, or where its thread is.
    fn around(&self, parent: Option<&Id>, contextual: bool) -> String {
        let entered = || ENTERED.with_borrow(|entered| entered.last().copied());
        let id = match parent {
            Some(id) => Some(id.into_u64()),
            None if contextual => entered(),
            None => None,
        };
        let spans = lock(&self.spans);
        let known = id.and_then(|id| spans.get(&id));
        known.map_or(String::new(), |known| known.text.clone())
    }
}

impl<W: Fn(&[u8]) + 'static> Subscriber for Log<W>
where
    W: Send + Sync,
{
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.most && metadata.target().starts_with("mizzen")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        // Numbers of spans are never used again: 2⁶⁴ are enough.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut text = self.around(span.parent(), span.is_contextual());
        let mut fields = Fields::default();
        span.record(&mut fields);
        let _ = write!(text, "{}{{{}}}: ", span.metadata().name(), fields.text());
        let mut spans = lock(&self.spans);
        if spans.len() < MAX_SPANS {
            let references = 1;
            spans.insert(id, Known { text, references });
        }
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let around = self.around(event.parent(), event.is_contextual());
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (at, level) = (self.started.elapsed(), event.metadata().level());
        let (seconds, text) = (at.as_secs_f64(), fields.text());
        // One write for a line: others write there, too.
        let line = format!("{seconds:10.6} {level:5} {around}{text}\n");
        (self.write)(line.as_bytes());
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            let found = entered.iter().rposition(|id| *id == span.into_u64());
            found.map(|index| entered.remove(index));
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(known) = lock(&self.spans).get_mut(&id.into_u64()) {
            known.references += 1;
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut spans = lock(&self.spans);
        let Some(known) = spans.get_mut(&id.into_u64()) else {
            return false;
        };
        known.references -= 1;
        let is_last = known.references == 0;
        if is_last {
            spans.remove(&id.into_u64());
        }
        is_last
    }
}

/// The fields of an event or a span as text: the message first, then what belongs to it.
#[derive(Default)]
struct Fields {
    message: String,
    others: String,
}

impl Fields {
    fn text(self) -> String {
        let between = match self.message.is_empty() || self.others.is_empty() {
            true => "",
            false => " ",
        };
        // A line is a line, whatever is in it.
        format!("{}{between}{}", self.message, self.others).replace(char::is_control, " ")
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => {
                let between = if self.others.is_empty() { "" } else { " " };
                write!(self.others, "{between}{name}={value:?}")
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::{LevelFilter, Log};
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_line_says_where_it_happened_and_what() {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let written = Arc::clone(&lines);
        let log = Log::new(LevelFilter::DEBUG, move |line: &[u8]| {
            let line = String::from_utf8(line.to_vec()).unwrap();
            // Without the time.
            written.lock().unwrap().push(line[11..].to_owned());
        });
        tracing::subscriber::with_default(log, || {
            let process = tracing::debug_span!(target: "mizzen", "process", rank = 3);
            let map =
                tracing::debug_span!(target: "mizzen", parent: &process, "map", name = "a\nb");
            tracing::debug!(target: "mizzen", parent: &process, peer = 1, "link {}", "made");
            tracing::trace!(target: "mizzen", "not asked for");
            tracing::debug!(target: "other", "of somebody else");
            let inside = map.enter();
            tracing::warn!(target: "mizzen::pool", "waits");
            drop(inside);
            tracing::info!(target: "mizzen", "alone");
        });
        assert_eq!(
            *lines.lock().unwrap(),
            [
                "DEBUG process{rank=3}: link made peer=1\n",
                "WARN  process{rank=3}: map{name=a b}: waits\n",
                "INFO  alone\n",
            ]
        );
    }
}
