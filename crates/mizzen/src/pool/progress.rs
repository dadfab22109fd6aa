//! Shows how far a map is.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use mizzen_proto::boot::TERMINAL;

/// Cells of the bar.
const WIDTH: usize = 30;

/// A line that says how far a map is, now and then.
pub(super) struct Progress {
    style: Style,
    name: String,
    started: Instant,
    next: Duration,
    has_shown: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Hidden,
    /// One line that is written again and again.
    Bar,
    /// A line each time: the launcher puts the rank before each.
    Lines,
}

impl Style {
    fn pause(self) -> Duration {
        match self {
            Self::Bar => Duration::from_millis(100),
            _ => Duration::from_secs(2),
        }
    }
}

impl Progress {
    pub(super) fn new(name: &str, wanted: Option<bool>) -> Self {
        let by_launcher = std::env::var_os(TERMINAL).is_some_and(|value| value == "1");
        let on_terminal = std::io::stderr().is_terminal();
        let style = match wanted {
            Some(false) => Style::Hidden,
            _ if on_terminal => Style::Bar,
            Some(true) => Style::Lines,
            None if by_launcher => Style::Lines,
            None => Style::Hidden,
        };
        Self {
            style,
            name: if name.is_empty() { "pool" } else { name }.to_owned(),
            started: Instant::now(),
            // What is over soon needs no words.
            next: style.pause().max(Duration::from_millis(500)),
            has_shown: false,
        }
    }

    /// `done` of `all` items have results.
    pub(super) fn show(&mut self, done: usize, all: usize) {
        let elapsed = self.started.elapsed();
        if self.style == Style::Hidden || all == 0 || elapsed < self.next {
            return;
        }
        self.next = elapsed + self.style.pause();
        self.has_shown = true;
        self.write(&self.text(done, all, elapsed));
    }

    fn text(&self, done: usize, all: usize, elapsed: Duration) -> String {
        let share = done as f64 / all as f64;
        let filled = (share * WIDTH as f64) as usize;
        let left = elapsed.as_secs_f64() * (1.0 - share) / share.max(1e-9);
        let left = if done == 0 {
            String::new()
        } else {
            format!(", {left:.0} s to go")
        };
        format!(
            "{}: [{}{}] {done} of {all} items, {:.0} s{left}",
            self.name,
            "=".repeat(filled),
            " ".repeat(WIDTH - filled),
            elapsed.as_secs_f64()
        )
    }

    /// It is over: the bar goes away.
    pub(super) fn end(&mut self) {
        if self.has_shown && self.style == Style::Bar {
            self.write("");
        }
    }

    /// Nobody can help it if the terminal is gone.
    fn write(&self, text: &str) {
        let mut out = std::io::stderr().lock();
        let _ = match self.style {
            // Back to the first column, and the rest of the line empty.
            Style::Bar => write!(out, "\r{text}\x1b[K"),
            _ => writeln!(out, "{text}"),
        };
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;
    use std::time::Duration;

    #[test]
    fn the_text_says_how_far_it_is_and_how_long_it_will_take() {
        let progress = Progress::new("tiles", Some(true));
        let text = progress.text(25, 100, Duration::from_secs(10));
        assert!(text.starts_with("tiles: [=======  "), "{text}");
        assert!(
            text.ends_with("25 of 100 items, 10 s, 30 s to go"),
            "{text}"
        );
        let text = progress.text(0, 7, Duration::from_secs(1));
        assert!(text.ends_with("0 of 7 items, 1 s"), "{text}");
    }
}
