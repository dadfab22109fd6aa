//! Bytes of the frames.

use std::time::Duration;

use super::members::{Block, Host, HostStanding, Members, Standing, State};
use super::{
    AgentId, Between, Ending, Entry, Epoch, FromAgent, FromRoot, HostEnd, HostId, MAX_ENTRIES,
    MAX_HOSTS, MAX_LOCATOR, News, Order, Report, Said,
};
use crate::boot::codec::{Reader, Writer, frame};
use crate::boot::{DecodeError, MAX_FRAME, MAX_PROCESSES, TooLarge};
use crate::id::{Incarnation, ProcessId, Rank};

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

impl Between {
    /// Appends the frame, with its header, to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        frame(out, |w| match self {
            Self::Look { from, to } => {
                w.u8(1);
                put_agent(w, *from);
                put_agent(w, *to);
                Ok(())
            }
            Self::Up(up) => {
                w.u8(2);
                put_from_agent(w, up, false)
            }
            Self::Down(down) => {
                w.u8(3);
                put_from_root(w, down, false)
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
            1 => Ok(Self::Look {
                from: agent(r)?,
                to: agent(r)?,
            }),
            2 => Ok(Self::Up(from_agent(r, false)?)),
            3 => Ok(Self::Down(from_root(r, false)?)),
            kind => Err(DecodeError::Kind(kind)),
        })
    }
}

pub(super) fn put_agent(w: &mut Writer<'_>, agent: AgentId) {
    w.u32(agent.host.0);
    w.u32(agent.life);
}

pub(super) fn agent(r: &mut Reader<'_>) -> Result<AgentId, DecodeError> {
    let agent = AgentId::new(HostId(r.u32()?), r.u32()?);
    if agent.life == 0 {
        return Err(DecodeError::Value);
    }
    Ok(agent)
}

/// `may_pass`: whether it may hold another's frame. What is passed on may not, so frames are at most two deep.
pub(super) fn put_from_agent(
    w: &mut Writer<'_>,
    up: &FromAgent,
    may_pass: bool,
) -> Result<(), TooLarge> {
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

pub(super) fn from_agent(r: &mut Reader<'_>, may_pass: bool) -> Result<FromAgent, DecodeError> {
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
            agent: self::agent(r)?,
        },
        6 if may_pass => Said::Passed(Box::new(from_agent(r, false)?)),
        kind => return Err(DecodeError::Kind(kind)),
    };
    Ok(FromAgent { agent, epoch, said })
}

pub(super) fn put_from_root(
    w: &mut Writer<'_>,
    down: &FromRoot,
    may_pass: bool,
) -> Result<(), TooLarge> {
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

pub(super) fn from_root(r: &mut Reader<'_>, may_pass: bool) -> Result<FromRoot, DecodeError> {
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

/// Rounds up: who is said to be younger than it is lives too long.
fn put_millis(w: &mut Writer<'_>, time: Duration) {
    let millis = time.as_nanos().div_ceil(1_000_000);
    w.u32(u32::try_from(millis).unwrap_or(u32::MAX));
}

fn millis(r: &mut Reader<'_>) -> Result<Duration, DecodeError> {
    Ok(Duration::from_millis(r.u32()?.into()))
}

fn put_process(w: &mut Writer<'_>, process: ProcessId) -> Result<(), TooLarge> {
    w.life(process.rank.0, process.incarnation.0)
}

fn process(r: &mut Reader<'_>) -> Result<ProcessId, DecodeError> {
    let rank = rank(r)?;
    Ok(ProcessId::new(rank, Incarnation(r.u32()?)))
}

fn rank(r: &mut Reader<'_>) -> Result<Rank, DecodeError> {
    let rank = r.u32()?;
    if rank >= MAX_PROCESSES {
        return Err(DecodeError::Limit);
    }
    Ok(Rank(rank))
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

fn put_host_end(w: &mut Writer<'_>, how: HostEnd) {
    w.u8(match how {
        HostEnd::Left => 1,
        HostEnd::Silent => 2,
        HostEnd::Refused => 3,
    });
}

fn host_end(r: &mut Reader<'_>) -> Result<HostEnd, DecodeError> {
    Ok(match r.u8()? {
        1 => HostEnd::Left,
        2 => HostEnd::Silent,
        3 => HostEnd::Refused,
        kind => return Err(DecodeError::Kind(kind)),
    })
}

fn put_ending(w: &mut Writer<'_>, ending: Ending) -> Result<(), TooLarge> {
    match ending {
        Ending::Done => w.u8(1),
        Ending::Asked { code } => w.raw(&[2, code]),
        Ending::Process { process, how } => {
            w.u8(3);
            put_process(w, process)?;
            w.death(how)?;
        }
        Ending::Host { host, how } => {
            w.u8(4);
            w.u32(host.0);
            put_host_end(w, how);
        }
    }
    Ok(())
}

fn ending(r: &mut Reader<'_>) -> Result<Ending, DecodeError> {
    Ok(match r.u8()? {
        1 => Ending::Done,
        2 => Ending::Asked { code: r.u8()? },
        3 => Ending::Process {
            process: process(r)?,
            how: r.death()?,
        },
        4 => Ending::Host {
            host: HostId(r.u32()?),
            how: host_end(r)?,
        },
        kind => return Err(DecodeError::Kind(kind)),
    })
}

fn put_news(w: &mut Writer<'_>, news: &News) -> Result<(), TooLarge> {
    if news.entries.is_empty() || news.entries.len() > MAX_ENTRIES {
        return Err(TooLarge);
    }
    w.u64(news.epoch.0);
    w.count(news.entries.len())?;
    news.entries
        .iter()
        .try_for_each(|entry| put_entry(w, entry))
}

fn news(r: &mut Reader<'_>) -> Result<News, DecodeError> {
    let epoch = Epoch(r.u64()?);
    let entries = r.list(entry)?;
    if entries.is_empty() || entries.len() > MAX_ENTRIES {
        return Err(DecodeError::Limit);
    }
    Ok(News { epoch, entries })
}

fn put_entry(w: &mut Writer<'_>, entry: &Entry) -> Result<(), TooLarge> {
    match entry {
        Entry::Placed { host, first, count } => {
            w.u8(1);
            w.u32(host.0);
            w.u32(first.0);
            w.u32(*count);
            Ok(())
        }
        Entry::HostJoined { agent, locator } => {
            w.u8(2);
            put_agent(w, *agent);
            w.text(locator, MAX_LOCATOR)
        }
        Entry::HostEnded { agent, how } => {
            w.u8(3);
            put_agent(w, *agent);
            put_host_end(w, *how);
            Ok(())
        }
        Entry::Left { process } => {
            w.u8(4);
            put_process(w, *process)
        }
        Entry::Ended { process, how } => {
            w.u8(5);
            put_process(w, *process)?;
            w.death(*how)
        }
        Entry::Restarted { process, host } => {
            w.u8(6);
            put_process(w, *process)?;
            w.u32(host.0);
            Ok(())
        }
        Entry::JobEnds(ending) => {
            w.u8(7);
            put_ending(w, *ending)
        }
    }
}

fn entry(r: &mut Reader<'_>) -> Result<Entry, DecodeError> {
    Ok(match r.u8()? {
        1 => Entry::Placed {
            host: HostId(r.u32()?),
            first: rank(r)?,
            count: r.u32()?,
        },
        2 => Entry::HostJoined {
            agent: agent(r)?,
            locator: r.text(MAX_LOCATOR)?,
        },
        3 => Entry::HostEnded {
            agent: agent(r)?,
            how: host_end(r)?,
        },
        4 => Entry::Left {
            process: process(r)?,
        },
        5 => Entry::Ended {
            process: process(r)?,
            how: r.death()?,
        },
        6 => Entry::Restarted {
            process: process(r)?,
            host: HostId(r.u32()?),
        },
        7 => Entry::JobEnds(ending(r)?),
        kind => return Err(DecodeError::Kind(kind)),
    })
}

fn put_members(w: &mut Writer<'_>, members: &Members) -> Result<(), TooLarge> {
    w.u64(members.epoch.0);
    w.count(members.hosts.len())?;
    for (id, host) in &members.hosts {
        w.u32(id.0);
        w.u32(host.life);
        match host.standing {
            HostStanding::Expected => w.u8(0),
            HostStanding::Here => w.u8(4),
            HostStanding::Ended(how) => put_host_end(w, how),
        }
        w.text(&host.locator, MAX_LOCATOR)?;
    }
    w.count(members.blocks.len())?;
    for (first, block) in &members.blocks {
        w.u32(first.0);
        w.u32(block.count);
        w.u32(block.host.0);
    }
    w.count(members.ranks.len())?;
    for (rank, state) in &members.ranks {
        put_process(w, ProcessId::new(*rank, state.life))?;
        w.u32(state.host.0);
        match state.standing {
            Standing::Running => w.u8(0),
            Standing::Left => w.u8(1),
            Standing::Ended(how) => {
                w.u8(2);
                w.death(how)?;
            }
        }
    }
    w.u32(members.restarts);
    match members.ending {
        None => w.u8(0),
        Some(ending) => {
            w.u8(1);
            put_ending(w, ending)?;
        }
    }
    Ok(())
}

fn members(r: &mut Reader<'_>) -> Result<Members, DecodeError> {
    let mut members = Members {
        epoch: Epoch(r.u64()?),
        ..Members::default()
    };
    for (id, host) in r.list(host)? {
        if members.hosts.len() >= MAX_HOSTS || members.hosts.insert(id, host).is_some() {
            return Err(DecodeError::Value);
        }
    }
    let block = |r: &mut Reader<'_>| {
        let (first, count) = (rank(r)?, r.u32()?);
        let host = HostId(r.u32()?);
        Ok((first, Block { count, host }))
    };
    for (first, block) in r.list(block)? {
        let known = members.hosts.contains_key(&block.host);
        if !known || members.add_block(first, block).is_err() {
            return Err(DecodeError::Value);
        }
    }
    for (rank, state) in r.list(state)? {
        let known = members.hosts.contains_key(&state.host) && members.state(rank).is_some();
        if !known || members.ranks.insert(rank, state).is_some() {
            return Err(DecodeError::Value);
        }
        members.running -= u32::from(matches!(state.standing, Standing::Ended(_)));
    }
    members.restarts = r.u32()?;
    members.ending = match r.u8()? {
        0 => None,
        1 => Some(ending(r)?),
        kind => return Err(DecodeError::Kind(kind)),
    };
    Ok(members)
}

fn host(r: &mut Reader<'_>) -> Result<(HostId, Host), DecodeError> {
    let (id, life) = (HostId(r.u32()?), r.u32()?);
    let standing = match r.u8()? {
        0 => HostStanding::Expected,
        1 => HostStanding::Ended(HostEnd::Left),
        2 => HostStanding::Ended(HostEnd::Silent),
        3 => HostStanding::Ended(HostEnd::Refused),
        4 => HostStanding::Here,
        kind => return Err(DecodeError::Kind(kind)),
    };
    if (life == 0) != (standing == HostStanding::Expected) {
        return Err(DecodeError::Value);
    }
    let locator = r.text(MAX_LOCATOR)?;
    Ok((
        id,
        Host {
            life,
            standing,
            locator,
        },
    ))
}

fn state(r: &mut Reader<'_>) -> Result<(Rank, State), DecodeError> {
    let process = process(r)?;
    let host = HostId(r.u32()?);
    let standing = match r.u8()? {
        0 => Standing::Running,
        1 => Standing::Left,
        2 => Standing::Ended(r.death()?),
        kind => return Err(DecodeError::Kind(kind)),
    };
    let life = process.incarnation;
    Ok((
        process.rank,
        State {
            life,
            host,
            standing,
        },
    ))
}
