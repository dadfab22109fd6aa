//! Proving who we are to other hosts: our own keys, certified by the agent.
//!
//! Done while joining, and only if the job has several hosts.

use std::os::fd::OwnedFd;

use mizzen_identity::{Credentials, Identity, Keys};
use mizzen_proto::boot::{Boot, FromProcess, MAX_PACKET, ToProcess};
use mizzen_shm::Socket;

use crate::error::JoinError;

/// A packet of the agent, and the descriptors that came with it.
pub(super) type Heard = (ToProcess, Vec<OwnedFd>);

/// The most packets that may come before the certificate: as many as the agent keeps for a process that does not look.
const MAX_EARLY: usize = 65_536;

/// Has new keys certified. Packets about other things that came first go to `early`, in their order.
pub(super) fn certify(
    agent: &Socket,
    boot: &Boot,
    early: &mut Vec<Heard>,
) -> Result<Credentials, JoinError> {
    let keys = Keys::generate()?;
    let request = keys.request();
    let mut bytes = Vec::new();
    let asked = FromProcess::Certify { request }.encode(&mut bytes);
    asked.map_err(|error| JoinError::Agent(error.to_string()))?;
    agent
        .send(&bytes, &[])
        .map_err(|error| JoinError::Agent(error.to_string()))?;
    let certificate = wait_for_certificate(agent, early)?;
    let credentials = Credentials::new(keys, certificate, boot.authority.clone())?;
    let job = boot.job.to_be_bytes();
    let expected = Identity::new(&boot.cluster, job, boot.rank, boot.incarnation);
    if expected.as_ref() != Ok(credentials.identity()) {
        let who = credentials.identity();
        return Err(JoinError::Agent(format!("it certified us as {who}")));
    }
    Ok(credentials)
}

fn wait_for_certificate(agent: &Socket, early: &mut Vec<Heard>) -> Result<Vec<u8>, JoinError> {
    let mut buffer = [0; MAX_PACKET];
    while early.len() < MAX_EARLY {
        let received = agent.recv(&mut buffer).map_err(|error| {
            JoinError::Agent(format!("it did not certify this process ({error})"))
        })?;
        match ToProcess::decode(&buffer[..received.len]) {
            Ok(ToProcess::Certificate { certificate }) => return Ok(certificate),
            Ok(other) => early.push((other, received.fds)),
            Err(error) => return Err(JoinError::Agent(error.to_string())),
        }
    }
    Err(JoinError::Agent(
        "it spoke of everything but our certificate".into(),
    ))
}
