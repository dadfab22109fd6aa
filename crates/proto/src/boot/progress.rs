//! How far the map of a pool is, as a process tells the user through its agent and the launcher.

use core::fmt;

use super::codec::{Reader, Writer};
use super::network::flag;
use super::{DecodeError, MAX_MAP_NAME, MAX_PROCESSES, TooLarge};

/// How far a process's part of a map is. All numbers are about the items of the process that says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The name of the map, at most [`MAX_MAP_NAME`] bytes; empty if it has none. Control characters are printed as blanks.
    pub name: String,
    /// How many maps of that name the process had before: the same number in all processes.
    pub number: u32,
    /// Items that have results.
    pub done: u64,
    /// All items.
    pub total: u64,
    /// Results in a thousand seconds, at the pace of the last ones.
    pub per_1000_s: u64,
    /// How long it will take at that pace, in milliseconds. `None`: nobody knows.
    pub left_ms: Option<u64>,
    /// How many ranks run items just now.
    pub ranks_at_work: u32,
    /// Whether the process itself is one of them.
    pub works_itself: bool,
    /// The last word about this map.
    pub is_over: bool,
}

impl Progress {
    pub(super) fn encode(&self, w: &mut Writer<'_>) -> Result<(), TooLarge> {
        w.text(&self.name, MAX_MAP_NAME)?;
        w.u32(self.number);
        w.u64(self.done);
        w.u64(self.total);
        w.u64(self.per_1000_s);
        w.u8(u8::from(self.left_ms.is_some()));
        if let Some(left) = self.left_ms {
            w.u64(left);
        }
        w.u32(self.ranks_at_work);
        w.u8(u8::from(self.works_itself));
        w.u8(u8::from(self.is_over));
        Ok(())
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let progress = Self {
            name: r.text(MAX_MAP_NAME)?,
            number: r.u32()?,
            done: r.u64()?,
            total: r.u64()?,
            per_1000_s: r.u64()?,
            left_ms: if flag(r)? { Some(r.u64()?) } else { None },
            ranks_at_work: r.u32()?,
            works_itself: flag(r)?,
            is_over: flag(r)?,
        };
        if progress.done > progress.total || progress.ranks_at_work > MAX_PROCESSES {
            return Err(DecodeError::Value);
        }
        Ok(progress)
    }
}

/// What is done, how fast, how long it will take and by how many: "25 of 100 items, 2.5/s, 30 s left, 4 ranks at work". Without
/// the name.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} items", self.done, self.total)?;
        match self.per_1000_s {
            0 => (),
            slow @ ..100 => write!(f, ", {:.3}/s", slow as f64 / 1000.0)?,
            some @ ..100_000 => write!(f, ", {:.1}/s", some as f64 / 1000.0)?,
            fast => write!(f, ", {}/s", fast / 1000)?,
        }
        if let Some(left) = self.left_ms {
            write!(f, ", {} left", Span(left.div_ceil(1000)))?;
        }
        match self.ranks_at_work {
            0 => Ok(()),
            1 => f.write_str(", 1 rank at work"),
            ranks => write!(f, ", {ranks} ranks at work"),
        }
    }
}

/// Seconds as people say them.
struct Span(u64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            seconds @ ..120 => write!(f, "{seconds} s"),
            seconds @ ..7200 => write!(f, "{} min", seconds / 60),
            seconds @ ..172_800 => write!(f, "{} h", seconds / 3600),
            seconds => write!(f, "{} days", seconds / 86_400),
        }
    }
}
