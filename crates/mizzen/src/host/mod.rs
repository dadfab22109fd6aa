//! Processes of one host: joining the job through the launcher's agent, and links through shared memory.
//!
//! The agent introduces two processes by giving each one end of a socket and the other's process descriptor. Each then
//! sends the other its half of the shared memory. Nothing has a name in a file system.

mod certify;
mod channel;
mod inherit;
mod keeper;
mod packet;
mod pair;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use mizzen_identity::Credentials;
use mizzen_proto::boot::{Boot, FromProcess, MAX_PACKET, ToProcess};

pub(crate) use self::channel::SocketChannel;
pub(crate) use self::keeper::Keeper;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::packet::check as fuzz_packet;
use crate::error::JoinError;
use crate::memory::Memory;
use crate::net::attach;
use crate::process::{Neighbours, Process};
use crate::rank::{Incarnation, ProcessId, Rank};

/// Joins the launcher's job, or makes a job of one.
pub(crate) fn join() -> Result<Arc<Process>, JoinError> {
    crate::crash::hook_lanes();
    let Some(agent) = inherit::take_agent()? else {
        let id = ProcessId::new(Rank(0), Incarnation(0));
        return Ok(Process::new(
            id,
            1,
            "localhost".into(),
            Memory::Heap,
            Neighbours::None,
        )?);
    };
    let unclear = |cause: String| JoinError::Agent(cause);
    let mut buffer = [0; MAX_PACKET];
    let received = agent
        .recv(&mut buffer)
        .map_err(|error| unclear(error.to_string()))?;
    let packet =
        ToProcess::decode(&buffer[..received.len]).map_err(|error| unclear(error.to_string()))?;
    let ToProcess::Boot(boot) = packet else {
        return Err(unclear("its first packet did not say who we are".into()));
    };
    let id = ProcessId::new(Rank(boot.rank), Incarnation(boot.incarnation));
    let memory = if boot.size > 1 {
        Memory::Segments
    } else {
        Memory::Heap
    };
    let mut early = Vec::new();
    let credentials = if boot.hosts > 1 {
        Some(certify::certify(&agent, &boot, &mut early)?)
    } else {
        None
    };
    let keeper = Keeper::new(agent)?;
    let neighbours = Neighbours::Launched(Arc::clone(&keeper));
    let process = Process::new(id, boot.size, boot.host.clone(), memory, neighbours)?;
    let locator = match credentials {
        Some(credentials) => join_networks(&process, &boot, &credentials)?,
        None => String::new(),
    };
    let ready = FromProcess::Ready { locator };
    keeper
        .tell_agent(&ready)
        .map_err(|_| unclear("it is gone".into()))?;
    keeper.start(&process, early)?;
    Ok(process)
}

/// Attaches the process to its networks, so that other hosts reach it: where they do.
fn join_networks(
    process: &Arc<Process>,
    boot: &Boot,
    credentials: &Credentials,
) -> Result<String, JoinError> {
    let address =
        match &boot.bind[..] {
            "" => None,
            given => Some(given.parse::<IpAddr>().map_err(|_| {
                JoinError::Agent(format!("{given:?} is not an address to listen at"))
            })?),
        };
    process.show_paths.store(boot.show_paths, Ordering::Relaxed);
    let place = Arc::downgrade(process);
    let networks = attach(&place, process.id, credentials, address, &boot.networks)?;
    let locator = networks.locator();
    // Nobody else sets the networks of a process that has just been made.
    let _ = process.networks.set(networks);
    Ok(locator)
}
