//! The log and what follows from it: news, and members as a snapshot.

use super::values::{agent, host_end, process, put_agent, put_host_end, put_process, rank};
use crate::boot::codec::{Reader, Writer};
use crate::boot::{DecodeError, TooLarge};
use crate::id::{ProcessId, Rank};
use crate::membership::members::{Block, Host, HostStanding, Members, Standing, State};
use crate::membership::{
    Ending, Entry, Epoch, HostEnd, HostId, MAX_ENTRIES, MAX_HOSTS, MAX_LOCATOR, News,
};

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

pub(super) fn put_news(w: &mut Writer<'_>, news: &News) -> Result<(), TooLarge> {
    if news.entries.is_empty() || news.entries.len() > MAX_ENTRIES {
        return Err(TooLarge);
    }
    w.u64(news.epoch.0);
    w.count(news.entries.len())?;
    news.entries
        .iter()
        .try_for_each(|entry| put_entry(w, entry))
}

pub(super) fn news(r: &mut Reader<'_>) -> Result<News, DecodeError> {
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
        Entry::Interrupted { signal } => {
            w.raw(&[8, *signal]);
            Ok(())
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
        8 => Entry::Interrupted { signal: r.u8()? },
        kind => return Err(DecodeError::Kind(kind)),
    })
}

pub(super) fn put_members(w: &mut Writer<'_>, members: &Members) -> Result<(), TooLarge> {
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
    w.u8(u8::from(members.interrupted));
    Ok(())
}

pub(super) fn members(r: &mut Reader<'_>) -> Result<Members, DecodeError> {
    let mut members = Members {
        epoch: Epoch(r.u64()?),
        ..Members::default()
    };
    for (id, host) in in_order(r.list(host)?)? {
        if members.hosts.len() >= MAX_HOSTS || members.hosts.insert(id, host).is_some() {
            return Err(DecodeError::Value);
        }
    }
    let block = |r: &mut Reader<'_>| {
        let (first, count) = (rank(r)?, r.u32()?);
        let host = HostId(r.u32()?);
        Ok((first, Block { count, host }))
    };
    for (first, block) in in_order(r.list(block)?)? {
        let known = members.hosts.contains_key(&block.host);
        if !known || members.add_block(first, block).is_err() {
            return Err(DecodeError::Value);
        }
    }
    for (rank, state) in in_order(r.list(state)?)? {
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
    members.interrupted = match r.u8()? {
        0 => false,
        1 => true,
        _ => return Err(DecodeError::Value),
    };
    Ok(members)
}

/// What has one meaning has one form: lists of different things are in order.
fn in_order<K: Ord, V>(list: Vec<(K, V)>) -> Result<Vec<(K, V)>, DecodeError> {
    match list.is_sorted_by(|one, next| one.0 < next.0) {
        true => Ok(list),
        false => Err(DecodeError::Value),
    }
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
