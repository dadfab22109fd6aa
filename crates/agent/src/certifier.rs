//! The agent's part in who is who: it certifies the keys of its processes.
//!
//! The socket that a request came through tells whose it is. What the process says about itself does not matter, and each life
//! is certified once: a second request does not come from the process, or the process is broken.

use std::time::SystemTime;

use anyhow::{Context, ensure};
use mizzen_identity::{Authority, AuthorityError, Credentials, Identity, LIFETIME};
use mizzen_proto::boot::{self, Secret, Start};

use crate::memory::hide_memory;

/// The job's authority, in the agent of a job of several hosts. Nobody else on this host has it.
#[derive(Debug)]
pub(crate) struct Certifier {
    authority: Authority,
}

impl Certifier {
    /// Takes the secret out of `start`, if there is one.
    pub(crate) fn take(start: &mut Start) -> anyhow::Result<Option<Self>> {
        let secret = std::mem::take(&mut start.authority);
        if secret == Secret::default() {
            return Ok(None);
        }
        hide_memory();
        let authority = Authority::from_secret(secret.as_bytes())
            .with_context(|| format!("no process can be certified on {}", start.host))?;
        ensure!(
            authority.cluster() == start.cluster && authority.job() == start.job.to_be_bytes(),
            "the authority that {} was given is of another job; launcher and agents must be of the same version",
            start.host
        );
        Ok(Some(Self { authority }))
    }

    /// The certificate of one life of a process.
    pub(crate) fn certify(
        &self,
        rank: u32,
        incarnation: u32,
        request: &[u8],
    ) -> Result<Vec<u8>, AuthorityError> {
        let (cluster, job) = (self.authority.cluster(), self.authority.job());
        let identity = Identity::new(cluster, job, rank, incarnation)?;
        self.authority
            .certify(request, &identity, SystemTime::now(), LIFETIME)
    }

    /// What the agent itself proves to others: which host's it is. No process can get such a certificate.
    pub(crate) fn credentials(&self, host: u32, life: u32) -> Result<Credentials, AuthorityError> {
        let (cluster, job) = (self.authority.cluster(), self.authority.job());
        let identity = Identity::agent(cluster, job, host, life)?;
        self.authority.credentials(&identity)
    }

    /// What processes verify each other with.
    pub(crate) fn certificate(&self) -> &[u8] {
        self.authority.certificate()
    }
}

// What the one crate makes, the other must carry.
const _: () = assert!(mizzen_identity::MAX_CERTIFICATE <= boot::MAX_CERTIFICATE);
const _: () = assert!(mizzen_identity::REQUEST_LENGTH <= boot::MAX_REQUEST);
const _: () = assert!(mizzen_identity::MAX_SECRET <= boot::MAX_SECRET);
const _: () = assert!(mizzen_identity::MAX_CLUSTER <= boot::MAX_CLUSTER);
