//! Values that many frames hold.

use std::time::Duration;

use crate::boot::codec::{Reader, Writer};
use crate::boot::{DecodeError, MAX_PROCESSES, TooLarge};
use crate::id::{Incarnation, ProcessId, Rank};
use crate::membership::{AgentId, HostEnd, HostId};

pub(crate) fn put_agent(w: &mut Writer<'_>, agent: AgentId) {
    w.u32(agent.host.0);
    w.u32(agent.life);
}

pub(crate) fn agent(r: &mut Reader<'_>) -> Result<AgentId, DecodeError> {
    let agent = AgentId::new(HostId(r.u32()?), r.u32()?);
    if agent.life == 0 {
        return Err(DecodeError::Value);
    }
    Ok(agent)
}

/// Rounds up: who is said to be younger than it is lives too long.
pub(super) fn put_millis(w: &mut Writer<'_>, time: Duration) {
    let millis = time.as_nanos().div_ceil(1_000_000);
    w.u32(u32::try_from(millis).unwrap_or(u32::MAX));
}

pub(super) fn millis(r: &mut Reader<'_>) -> Result<Duration, DecodeError> {
    Ok(Duration::from_millis(r.u32()?.into()))
}

pub(super) fn put_process(w: &mut Writer<'_>, process: ProcessId) -> Result<(), TooLarge> {
    w.life(process.rank.0, process.incarnation.0)
}

pub(super) fn process(r: &mut Reader<'_>) -> Result<ProcessId, DecodeError> {
    let rank = rank(r)?;
    Ok(ProcessId::new(rank, Incarnation(r.u32()?)))
}

pub(super) fn rank(r: &mut Reader<'_>) -> Result<Rank, DecodeError> {
    let rank = r.u32()?;
    if rank >= MAX_PROCESSES {
        return Err(DecodeError::Limit);
    }
    Ok(Rank(rank))
}

pub(super) fn put_host_end(w: &mut Writer<'_>, how: HostEnd) {
    w.u8(match how {
        HostEnd::Left => 1,
        HostEnd::Silent => 2,
        HostEnd::Refused => 3,
    });
}

pub(super) fn host_end(r: &mut Reader<'_>) -> Result<HostEnd, DecodeError> {
    Ok(match r.u8()? {
        1 => HostEnd::Left,
        2 => HostEnd::Silent,
        3 => HostEnd::Refused,
        kind => return Err(DecodeError::Kind(kind)),
    })
}
