//! A process of a job that speaks with its agent itself.

#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, OwnedFd};

use mizzen_identity::{Credentials, CredentialsError, Keys};
use mizzen_proto::boot::{AGENT_FD, Boot, FromProcess, MAX_PACKET, ToProcess};
use mizzen_shm::{Socket, SocketError};

pub struct Me {
    agent: Socket,
    pub boot: Boot,
}

impl Me {
    pub fn boot() -> Self {
        let number = std::env::var(AGENT_FD).unwrap().parse().unwrap();
        // SAFETY: the agent left the descriptor of that number open for us, and nothing in this process has taken it.
        let fd = unsafe { OwnedFd::from_raw_fd(number) };
        let agent = Socket::from_fd(fd).unwrap();
        let Some(ToProcess::Boot(boot)) = hear(&agent) else {
            panic!("the first packet says who we are");
        };
        Self { agent, boot: *boot }
    }

    /// What the agent says next, epochs apart.
    pub fn hear(&self) -> Option<ToProcess> {
        hear(&self.agent)
    }

    pub fn ask(&self, request: Vec<u8>) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let packet = FromProcess::Certify { request };
        packet.encode(&mut bytes).unwrap();
        self.agent.send(&bytes, &[]).unwrap();
        match hear(&self.agent)? {
            ToProcess::Certificate { certificate } => Some(certificate),
            other => panic!("{other:?}"),
        }
    }

    pub fn certify(&self) -> Result<Credentials, CredentialsError> {
        let keys = Keys::generate()?;
        let certificate = self.ask(keys.request()).unwrap();
        Credentials::new(keys, certificate, self.boot.authority.clone())
    }
}

/// What the agent says, or nothing if it closed the socket.
fn hear(agent: &Socket) -> Option<ToProcess> {
    let mut buffer = [0; MAX_PACKET];
    loop {
        let packet = match agent.recv(&mut buffer) {
            Ok(received) => ToProcess::decode(&buffer[..received.len]).unwrap(),
            Err(SocketError::Closed) => return None,
            Err(other) => panic!("{other}"),
        };
        if !matches!(packet, ToProcess::Epoch { .. } | ToProcess::Fenced { .. }) {
            return Some(packet);
        }
    }
}
