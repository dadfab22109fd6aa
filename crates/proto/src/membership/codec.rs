//! Bytes of the frames.

mod log;
pub(crate) mod values;

use super::{
    Between, Epoch, FromAgent, FromRoot, MAX_LOCATOR, MAX_NAMES_FRAME, News, Order, Report, Said,
    Spoken,
};
use crate::boot::codec::{Reader, Writer, frame};
use crate::boot::{DecodeError, MAX_FRAME, TooLarge};
use log::{members, news, put_members, put_news};
use values::{agent, host_end, millis, process, put_agent, put_host_end, put_millis, put_process};

impl FromAgent {
    /// Appends the frame, with its header, to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        frame(out, |w| put_from_agent(w, self, true))
    }

    /// Reads the content of a frame.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(content, MAX_FRAME, |r| from_agent(r, true))
    }
}

impl FromRoot {
    /// Appends the frame, with its header, to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        frame(out, |w| put_from_root(w, self, true))
    }

    /// Reads the content of a frame.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(content, MAX_FRAME, |r| from_root(r, true))
    }
}

impl Spoken {
    /// Appends the frame, with its header, to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        frame(out, |w| match self {
            Self::Up(up) => {
                w.u8(1);
                put_from_agent(w, up, true)
            }
            Self::Down(down) => {
                w.u8(2);
                put_from_root(w, down, true)
            }
            Self::Across(across) => {
                w.u8(3);
                put_between(w, across)
            }
            Self::Names(frame) => {
                w.u8(4);
                w.bytes(frame, MAX_NAMES_FRAME)
            }
        })
    }

    /// Reads the content of a frame.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(content, MAX_FRAME, |r| match r.u8()? {
            1 => Ok(Self::Up(from_agent(r, true)?)),
            2 => Ok(Self::Down(from_root(r, true)?)),
            3 => Ok(Self::Across(between(r)?)),
            4 => Ok(Self::Names(r.bytes(MAX_NAMES_FRAME)?)),
            kind => Err(DecodeError::Kind(kind)),
        })
    }
}

impl News {
    /// Appends them to `out`, without a header.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is to be thrown away.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        put_news(&mut Writer { out }, self)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(bytes, MAX_FRAME, news)
    }
}

impl Between {
    /// Appends the frame, with its header, to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        frame(out, |w| put_between(w, self))
    }

    /// Reads the content of a frame.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(content, MAX_FRAME, between)
    }
}

fn put_between(w: &mut Writer<'_>, between: &Between) -> Result<(), TooLarge> {
    match between {
        Between::Look { from, to } => {
            w.u8(1);
            put_agent(w, *from);
            put_agent(w, *to);
            Ok(())
        }
        Between::Up(up) => {
            w.u8(2);
            put_from_agent(w, up, false)
        }
        Between::Down(down) => {
            w.u8(3);
            put_from_root(w, down, false)
        }
    }
}

fn between(r: &mut Reader<'_>) -> Result<Between, DecodeError> {
    match r.u8()? {
        1 => Ok(Between::Look {
            from: agent(r)?,
            to: agent(r)?,
        }),
        2 => Ok(Between::Up(from_agent(r, false)?)),
        3 => Ok(Between::Down(from_root(r, false)?)),
        kind => Err(DecodeError::Kind(kind)),
    }
}

/// `may_pass`: whether it may hold another's frame. What is passed on may not, so frames are at most two deep.
fn put_from_agent(w: &mut Writer<'_>, up: &FromAgent, may_pass: bool) -> Result<(), TooLarge> {
    put_agent(w, up.agent);
    w.u64(up.epoch.0);
    match &up.said {
        Said::Hello { number, locator } => {
            w.u8(1);
            w.u32(super::VERSION);
            w.u64(*number);
            w.text(locator, MAX_LOCATOR)
        }
        Said::Beat {
            number,
            late,
            reports,
        } => {
            w.u8(2);
            w.u64(*number);
            put_millis(w, *late);
            w.u64(*reports);
            Ok(())
        }
        Said::Report { number, report } => {
            w.u8(3);
            w.u64(*number);
            put_report(w, *report)
        }
        Said::Unreachable { process } => {
            w.u8(4);
            put_process(w, *process)
        }
        Said::Refused { agent } => {
            w.u8(5);
            put_agent(w, *agent);
            Ok(())
        }
        Said::Passed(other) if may_pass => {
            w.u8(6);
            put_from_agent(w, other, false)
        }
        Said::Passed(_) => Err(TooLarge),
    }
}

fn from_agent(r: &mut Reader<'_>, may_pass: bool) -> Result<FromAgent, DecodeError> {
    let agent = agent(r)?;
    let epoch = Epoch(r.u64()?);
    let said = match r.u8()? {
        1 => {
            if r.u32()? != super::VERSION {
                return Err(DecodeError::Value);
            }
            Said::Hello {
                number: r.u64()?,
                locator: r.text(MAX_LOCATOR)?,
            }
        }
        2 => Said::Beat {
            number: r.u64()?,
            late: millis(r)?,
            reports: r.u64()?,
        },
        3 => Said::Report {
            number: r.u64()?,
            report: report(r)?,
        },
        4 => Said::Unreachable {
            process: process(r)?,
        },
        5 => Said::Refused {
            agent: values::agent(r)?,
        },
        6 if may_pass => Said::Passed(Box::new(from_agent(r, false)?)),
        kind => return Err(DecodeError::Kind(kind)),
    };
    Ok(FromAgent { agent, epoch, said })
}

fn put_from_root(w: &mut Writer<'_>, down: &FromRoot, may_pass: bool) -> Result<(), TooLarge> {
    put_agent(w, down.to);
    w.u64(down.epoch.0);
    match &down.said {
        Order::Welcome { number, members } => {
            w.u8(1);
            w.u64(*number);
            put_members(w, members)
        }
        Order::Grant {
            number,
            age,
            reports,
        } => {
            w.u8(2);
            w.u64(*number);
            put_millis(w, *age);
            w.u64(*reports);
            Ok(())
        }
        Order::News(news) => {
            w.u8(3);
            put_news(w, news)
        }
        Order::Look { agent, locator } => {
            w.u8(4);
            put_agent(w, *agent);
            w.text(locator, MAX_LOCATOR)
        }
        Order::Over { how } => {
            w.u8(5);
            put_host_end(w, *how);
            Ok(())
        }
        Order::Pass(other) if may_pass => {
            w.u8(6);
            put_from_root(w, other, false)
        }
        Order::Pass(_) => Err(TooLarge),
    }
}

fn from_root(r: &mut Reader<'_>, may_pass: bool) -> Result<FromRoot, DecodeError> {
    let to = agent(r)?;
    let epoch = Epoch(r.u64()?);
    let said = match r.u8()? {
        1 => Order::Welcome {
            number: r.u64()?,
            members: Box::new(members(r)?),
        },
        2 => Order::Grant {
            number: r.u64()?,
            age: millis(r)?,
            reports: r.u64()?,
        },
        3 => Order::News(news(r)?),
        4 => Order::Look {
            agent: agent(r)?,
            locator: r.text(MAX_LOCATOR)?,
        },
        5 => Order::Over { how: host_end(r)? },
        6 if may_pass => Order::Pass(Box::new(from_root(r, false)?)),
        kind => return Err(DecodeError::Kind(kind)),
    };
    Ok(FromRoot { to, epoch, said })
}

fn put_report(w: &mut Writer<'_>, report: Report) -> Result<(), TooLarge> {
    match report {
        Report::Started { process, pid } => {
            w.u8(1);
            put_process(w, process)?;
            w.u32(pid);
            Ok(())
        }
        Report::Left { process } => {
            w.u8(2);
            put_process(w, process)
        }
        Report::Ended { process, how } => {
            w.u8(3);
            put_process(w, process)?;
            w.death(how)
        }
        Report::Bye => {
            w.u8(4);
            Ok(())
        }
    }
}

fn report(r: &mut Reader<'_>) -> Result<Report, DecodeError> {
    Ok(match r.u8()? {
        1 => Report::Started {
            process: process(r)?,
            pid: r.u32()?,
        },
        2 => Report::Left {
            process: process(r)?,
        },
        3 => Report::Ended {
            process: process(r)?,
            how: r.death()?,
        },
        4 => Report::Bye,
        kind => return Err(DecodeError::Kind(kind)),
    })
}
