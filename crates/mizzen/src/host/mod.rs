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

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use mizzen_identity::Credentials;
use mizzen_proto::boot::{FromProcess, MAX_PACKET, ToProcess};

pub(crate) use self::channel::SocketChannel;
pub(crate) use self::keeper::Keeper;
use crate::error::JoinError;
use crate::memory::Memory;
use crate::net::Engine;
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
        Some(credentials) => listen(&process, &boot.bind, &credentials, &boot.authority)?,
        None => String::new(),
    };
    let ready = FromProcess::Ready { locator };
    keeper
        .tell_agent(&ready)
        .map_err(|_| unclear("it is gone".into()))?;
    keeper.start(&process, early)?;
    Ok(process)
}

/// Attaches the process to the network, so that other hosts reach it: where it listens.
fn listen(
    process: &Arc<Process>,
    bind: &str,
    _credentials: &Credentials,
    authority: &[u8],
) -> Result<String, JoinError> {
    let address = match bind {
        "" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        given => given
            .parse()
            .map_err(|_| JoinError::Agent(format!("{given:?} is not an address to listen at")))?,
    };
    // STAND-IN until the TCP driver takes the credentials: the driver wants 32 bytes that all processes of the job know. This
    // digest of the authority's certificate is no secret to anybody who sees a handshake.
    let token = mizzen_identity::fingerprint(authority);
    let engine = Engine::start(
        Arc::downgrade(process),
        process.id,
        token,
        SocketAddr::new(address, 0),
    )?;
    let locator = engine.locator().to_owned();
    // Nobody else sets the engine of a process that has just been made.
    let _ = process.engine.set(engine);
    Ok(locator)
}
