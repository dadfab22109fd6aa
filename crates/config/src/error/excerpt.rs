//! The line that is wrong, with a mark under what is wrong in it.

use std::fmt;
use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Excerpt {
    line: usize,
    column: usize,
    /// The line, or the part of it around the mark.
    shown: String,
    /// Characters before the mark, and under it.
    before: usize,
    marked: usize,
}

impl Excerpt {
    /// The line of `text` where `span` begins. A span that is not within the text is taken for its end.
    pub(crate) fn new(text: &str, span: &Range<usize>) -> Self {
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..]
            .find('\n')
            .map_or(text.len(), |newline| start + newline);
        let line = text[..start].matches('\n').count() + 1;
        let column = text[line_start..start].chars().count();
        let marked = text[start..end.min(line_end)].trim_end().chars().count();

        // A line may be as long as the file.
        let skipped = column.saturating_sub(BEFORE);
        let mut shown: String = text[line_start..line_end]
            .trim_end()
            .chars()
            .skip(skipped)
            .take(WIDTH)
            .map(harmless)
            .collect();
        let mut before = column - skipped;
        if skipped > 0 {
            shown.insert(0, '…');
            before += 1;
        }
        let room = shown.chars().count().saturating_sub(before);
        let marked = marked.min(room).max(1);
        Self {
            line,
            column: column + 1,
            shown,
            before,
            marked,
        }
    }

    pub(crate) fn line(&self) -> usize {
        self.line
    }

    pub(crate) fn column(&self) -> usize {
        self.column
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let blank = " ".repeat(number.len());
        writeln!(f, "{blank} |")?;
        writeln!(f, "{number} | {}", self.shown)?;
        let before = " ".repeat(self.before);
        write!(f, "{blank} | {before}{}", "^".repeat(self.marked))
    }
}

/// The start of the character that byte `index` is in.
fn floor(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// What a terminal would act on is not shown to it; a tab is one blank, so that the mark stays in place.
pub(crate) fn harmless(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Characters of a line that are shown.
const WIDTH: usize = 100;

/// Characters that are shown before the mark.
const BEFORE: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_under_what_is_wrong() {
        let text = "first\nsecond = 'ä', wrong\nthird";
        let start = text.find("wrong").unwrap();
        let excerpt = Excerpt::new(text, &(start..start + 5));
        assert_eq!((excerpt.line(), excerpt.column()), (2, 15));
        let shown = "  |\n2 | second = 'ä', wrong\n  |               ^^^^^";
        assert_eq!(excerpt.to_string(), shown);
    }

    #[test]
    fn a_long_line_is_cut_around_the_mark() {
        let text = format!("{}!{}", "a".repeat(1000), "b".repeat(1000));
        let shown = Excerpt::new(&text, &(1000..1001)).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        let mark = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(mark), Some('!'));
        assert!(lines[1].chars().count() < 110);
    }

    #[test]
    fn spans_outside_the_text_and_within_characters_do_no_harm() {
        for (text, span) in [
            ("", 0..0),
            ("", 7..9),
            ("ä", 1..1),
            ("a\n", 2..2),
            ("a\r\nb", 1..4),
            ("\u{1b}[2J", 0..9),
        ] {
            let shown = Excerpt::new(text, &span).to_string();
            assert!(shown.contains('^') && !shown.contains('\u{1b}'), "{shown}");
        }
    }
}
