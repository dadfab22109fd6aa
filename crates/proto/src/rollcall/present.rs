//! What a process answers when the roll is called.

use serde::{Deserialize, Serialize};

use crate::boot::codec::{Reader, Writer};
use crate::boot::{DecodeError, MAX_PRESENT, MAX_PROCESSES, MAX_WAITING, TooLarge};

/// What one process answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Present {
    /// Its waits, the longest first.
    pub waits: Vec<Wait>,
    /// How many there were no room for.
    pub left_out: u32,
    /// Its sessions that have no connection.
    pub down: Vec<Down>,
}

/// A thread of a process that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// For what.
    pub kind: Kind,
    /// The same in words, after "waits": "for a message of rank 3".
    pub what: String,
    /// The ranks that can end it; none: anybody, or it is not known.
    pub whom: Vec<u32>,
    /// Where in the program.
    pub at: Option<Place>,
    /// For how long, in milliseconds.
    pub millis: u64,
    /// The name of the thread.
    pub thread: String,
    /// Whether the thread carries out calls and tasks: others do not stop when it waits.
    pub serves: bool,
    /// In which operation of which group.
    pub operation: Option<Operation>,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A message.
    Message,
    /// The answer to a call.
    Answer,
    /// Room for what is posted, or a reader for it.
    Room,
    /// Other members of a group.
    Group,
    /// A name that nobody has bound.
    Name,
    /// Memory that others have.
    Memory,
    /// Something else.
    Other,
}

/// A line of the program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Its file, as the compiler was given it.
    pub file: String,
    /// The line in it.
    pub line: u32,
}

/// An operation of a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Operation {
    /// Of which group, in words: "the group of all".
    pub group: String,
    /// Which of its operations, from 1 on.
    pub number: u64,
    /// What it is: "barrier".
    pub name: String,
}

/// A session that has no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Down {
    /// With whom.
    pub rank: u32,
    /// For how long, in milliseconds.
    pub millis: u64,
}

impl Present {
    /// As bytes, at most [`MAX_PRESENT`]. What there is no room for is left out, and counted.
    ///
    /// ```
    /// use mizzen_proto::rollcall::Present;
    ///
    /// let nobody_waits = Present::default();
    /// assert_eq!(Present::decode(&nobody_waits.encode()), Ok(nobody_waits));
    /// ```
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut waits = self.waits.len().min(MAX_WAITS);
        loop {
            let bytes = self.encode_some(waits);
            match bytes {
                Ok(bytes) if bytes.len() <= MAX_PRESENT || waits == 0 => return bytes,
                // A text that is too long would be too long again.
                Err(TooLarge) if waits == 0 => return Vec::new(),
                _ => waits /= 2,
            }
        }
    }

    fn encode_some(&self, waits: usize) -> Result<Vec<u8>, TooLarge> {
        let mut out = Vec::new();
        let w = &mut Writer { out: &mut out };
        w.count(waits)?;
        for wait in &self.waits[..waits] {
            wait.encode(w)?;
        }
        let more = u32::try_from(self.waits.len() - waits).unwrap_or(u32::MAX);
        w.u32(self.left_out.saturating_add(more));
        let down = &self.down[..self.down.len().min(MAX_DOWN)];
        w.count(down.len())?;
        for down in down {
            w.u32(down.rank);
            w.u64(down.millis);
        }
        Ok(out)
    }

    /// From bytes that came from a process.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let present = Reader::whole(bytes, MAX_PRESENT, |r| {
            Ok(Self {
                waits: r.list(Wait::decode)?,
                left_out: r.u32()?,
                down: r.list(|r| {
                    Ok(Down {
                        rank: r.u32()?,
                        millis: r.u64()?,
                    })
                })?,
            })
        })?;
        let is_rank = |down: &Down| down.rank < MAX_PROCESSES;
        match present.waits.len() <= MAX_WAITS
            && present.down.len() <= MAX_DOWN
            && present.down.iter().all(is_rank)
        {
            true => Ok(present),
            false => Err(DecodeError::Value),
        }
    }
}

impl Wait {
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), TooLarge> {
        w.u8(match self.kind {
            Kind::Message => 1,
            Kind::Answer => 2,
            Kind::Room => 3,
            Kind::Group => 4,
            Kind::Name => 5,
            Kind::Memory => 6,
            Kind::Other => 7,
        });
        w.text(
            end_of(&self.what, MAX_WAITING, Keep::Beginning),
            MAX_WAITING,
        )?;
        let whom = &self.whom[..self.whom.len().min(MAX_WHOM)];
        w.count(whom.len())?;
        whom.iter().for_each(|rank| w.u32(*rank));
        w.u8(u8::from(self.at.is_some()));
        if let Some(Place { file, line }) = &self.at {
            // The end of a path says more.
            w.text(end_of(file, MAX_FILE, Keep::End), MAX_FILE)?;
            w.u32(*line);
        }
        w.u64(self.millis);
        w.text(end_of(&self.thread, MAX_NAME, Keep::Beginning), MAX_NAME)?;
        w.u8(u8::from(self.serves));
        w.u8(u8::from(self.operation.is_some()));
        if let Some(operation) = &self.operation {
            w.text(
                end_of(&operation.group, MAX_NAME, Keep::Beginning),
                MAX_NAME,
            )?;
            w.u64(operation.number);
            w.text(end_of(&operation.name, MAX_NAME, Keep::Beginning), MAX_NAME)?;
        }
        Ok(())
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let kind = match r.u8()? {
            1 => Kind::Message,
            2 => Kind::Answer,
            3 => Kind::Room,
            4 => Kind::Group,
            5 => Kind::Name,
            6 => Kind::Memory,
            7 => Kind::Other,
            kind => return Err(DecodeError::Kind(kind)),
        };
        let what = r.text(MAX_WAITING)?;
        let whom = r.list(Reader::u32)?;
        if whom.len() > MAX_WHOM || whom.iter().any(|rank| *rank >= MAX_PROCESSES) {
            return Err(DecodeError::Value);
        }
        Ok(Self {
            kind,
            what,
            whom,
            at: match flag(r)? {
                true => Some(Place {
                    file: r.text(MAX_FILE)?,
                    line: r.u32()?,
                }),
                false => None,
            },
            millis: r.u64()?,
            thread: r.text(MAX_NAME)?,
            serves: flag(r)?,
            operation: match flag(r)? {
                true => Some(Operation {
                    group: r.text(MAX_NAME)?,
                    number: r.u64()?,
                    name: r.text(MAX_NAME)?,
                }),
                false => None,
            },
        })
    }
}

fn flag(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    match r.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        kind => Err(DecodeError::Kind(kind)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Beginning,
    End,
}

/// As much of a text as fits, in whole letters.
fn end_of(text: &str, limit: usize, keep: Keep) -> &str {
    let spare = text.len().saturating_sub(limit);
    match keep {
        Keep::Beginning => {
            let ends = (0..=text.len() - spare).rev();
            let end = ends.into_iter().find(|end| text.is_char_boundary(*end));
            &text[..end.unwrap_or(0)]
        }
        Keep::End => {
            let mut starts = spare..=text.len();
            let start = starts.find(|start| text.is_char_boundary(*start));
            &text[start.unwrap_or(text.len())..]
        }
    }
}

/// The most waits of one process that are told. With more, the oldest tell enough.
pub const MAX_WAITS: usize = 64;
/// The most ranks that one wait names.
pub const MAX_WHOM: usize = 64;
/// The most sessions that are told to be down.
const MAX_DOWN: usize = 256;
/// The longest path of a file, of which the end is told.
const MAX_FILE: usize = 200;
/// The longest name of a thread, a group or an operation.
const MAX_NAME: usize = 120;
