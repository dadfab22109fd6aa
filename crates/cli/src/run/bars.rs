//! Bars at the bottom of the terminal, one for each map that is under way.
//!
//! They are drawn into a buffer, not onto the terminal: the [printer](super::printer) writes it when there is room, since the
//! launcher must not wait for a terminal that somebody stopped.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use mizzen_proto::boot::Progress;

/// What is assumed of a terminal that does not say how large it is.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// The name is the first word, as long as it may be; the bar takes what is left of the line.
const TEMPLATE: &str = "{prefix} [{wide_bar}] {said}";

/// The bars that are drawn.
#[derive(Debug)]
pub(crate) struct Bars {
    screen: Screen,
    multi: MultiProgress,
    bars: Vec<Bar>,
    drawn: bool,
}

#[derive(Debug)]
struct Bar {
    bar: ProgressBar,
    /// What stands after the bar.
    said: Arc<Mutex<String>>,
}

impl Bars {
    pub(crate) fn new() -> Self {
        let screen = Screen::default();
        Self {
            multi: screen.multi(),
            screen,
            bars: Vec::new(),
            drawn: false,
        }
    }

    /// What to write so that these maps are shown at the bottom, in the place of those that are.
    pub(crate) fn draw(&mut self, maps: &[Progress]) -> Vec<u8> {
        if maps.len() != self.bars.len() {
            let _ = self.multi.clear();
            self.multi = self.screen.multi();
            let new = |_| Bar::new(&self.multi);
            self.bars = maps.iter().map(new).collect();
        }
        for (bar, map) in self.bars.iter().zip(maps) {
            bar.show(map);
        }
        self.drawn = !maps.is_empty();
        self.screen.take()
    }

    /// What to write so that lines can be printed where the bars are. They are gone until they are drawn again.
    pub(crate) fn lift(&mut self) -> Vec<u8> {
        if !std::mem::take(&mut self.drawn) {
            return Vec::new();
        }
        let _ = self.multi.clear();
        self.screen.take()
    }

    pub(crate) fn is_drawn(&self) -> bool {
        self.drawn
    }
}

impl Bar {
    fn new(multi: &MultiProgress) -> Self {
        let said = Arc::<Mutex<String>>::default();
        let text = Arc::clone(&said);
        let key = move |_: &ProgressState, out: &mut dyn fmt::Write| {
            let _ = out.write_str(&text.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let style = ProgressStyle::with_template(TEMPLATE);
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let style = style.with_key("said", key).progress_chars("=> ");
        let bar = multi.add(ProgressBar::no_length());
        Self {
            bar: bar.with_style(style),
            said,
        }
    }

    fn show(&self, map: &Progress) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = map.to_string();
        if self.bar.prefix() != map.name {
            self.bar.set_prefix(map.name.clone());
        }
        // Draws.
        self.bar.update(|state| {
            state.set_len(map.total);
            state.set_pos(map.done);
        });
    }
}

/// A terminal of which nothing is there but its size.
#[derive(Clone, Debug, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    fn multi(&self) -> MultiProgress {
        let target = ProgressDrawTarget::term_like(Box::new(self.clone()));
        MultiProgress::with_draw_target(target)
    }

    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, text: &str) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// A control sequence that says how far to move. Zero would be taken for one.
    fn moved(&self, count: usize, letter: char) -> io::Result<()> {
        match count {
            0 => Ok(()),
            count => self.put(&format!("\x1b[{count}{letter}")),
        }
    }
}

impl indicatif::TermLike for Screen {
    fn width(&self) -> u16 {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
        size.map(|size| size.ws_col)
            .ok()
            .filter(|columns| *columns > 0)
            .unwrap_or(COLUMNS)
    }

    fn height(&self) -> u16 {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
        size.map(|size| size.ws_row)
            .ok()
            .filter(|rows| *rows > 0)
            .unwrap_or(ROWS)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'D')
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.put(s)?;
        self.put("\r\n")
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        self.put(s)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.put("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(name: &str, done: u64) -> Progress {
        Progress {
            name: name.into(),
            number: 0,
            done,
            total: 100,
            per_1000_s: 2000,
            left_ms: Some(5000),
            ranks_at_work: 2,
            works_itself: true,
            is_over: false,
        }
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("it is drawn in text")
    }

    #[test]
    fn a_bar_says_how_far_a_map_is_and_goes_away() {
        let mut bars = Bars::new();
        let first = text(bars.draw(&[map("tiles", 50)]));
        assert!(first.contains("tiles ["), "{first:?}");
        let said = "=> ] 50 of 100 items, 2.0/s, 5 s left, 2 ranks at work";
        assert!(!first.contains('\n'), "{first:?}");
        assert!(first.contains(said.trim_start_matches("=> ")), "{first:?}");
        let next = text(bars.draw(&[map("tiles", 60)]));
        assert!(
            next.starts_with("\r\x1b[2K") && next.contains("60 of 100"),
            "{next:?}"
        );
        assert!(bars.is_drawn());
        let lifted = text(bars.lift());
        assert!(
            lifted.contains("\r\x1b[2K") && !lifted.contains("of 100"),
            "{lifted:?}"
        );
        assert_eq!(text(bars.lift()), "", "it is gone already");
        let again = text(bars.draw(&[map("tiles", 70)]));
        assert!(
            !again.contains("\x1b[2K"),
            "there is nothing to clear: {again:?}"
        );
        assert!(again.contains("70 of 100"), "{again:?}");
        assert!(text(bars.draw(&[])).contains("\x1b[2K"));
        assert!(!bars.is_drawn());
    }

    #[test]
    fn each_map_has_a_bar() {
        let mut bars = Bars::new();
        bars.draw(&[map("a", 1)]);
        let two = text(bars.draw(&[map("a", 2), map("b", 3)]));
        assert!(two.starts_with("\r\x1b[2K"), "{two:?}");
        assert!(two.contains("a [") && two.contains("b ["), "{two:?}");
        let lifted = text(bars.lift());
        assert_eq!(lifted.matches("\x1b[2K").count(), 2, "{lifted:?}");
    }
}
