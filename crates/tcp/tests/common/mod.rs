//! Jobs of the tests: an authority, and the credentials it gives.

use std::sync::Arc;

use mizzen_driver::PeerId;
use mizzen_identity::{Authority, Credentials, Identity};
use mizzen_tcp::{Records, Security};

pub(crate) const CLUSTER: &str = "test";

/// A job of its own.
pub(crate) struct Job {
    pub(crate) authority: Authority,
    pub(crate) number: [u8; 16],
}

impl Job {
    pub(crate) fn new(number: [u8; 16]) -> Self {
        let authority = Authority::new(CLUSTER, number).unwrap();
        Self { authority, number }
    }

    pub(crate) fn credentials(&self, who: PeerId) -> Credentials {
        let (rank, life) = (who.0 as u32, (who.0 >> 32) as u32);
        let who = Identity::new(CLUSTER, self.number, rank, life).unwrap();
        self.authority.credentials(&who).unwrap()
    }

    pub(crate) fn security(&self, who: PeerId, records: Records) -> Security {
        security(&self.credentials(who), records)
    }
}

/// What a driver is told of these credentials.
pub(crate) fn security(credentials: &Credentials, records: Records) -> Security {
    let known = credentials.clone();
    let identify = move |connection: &_| {
        let who = known.peer(connection).ok()?;
        Some(PeerId(
            u64::from(who.incarnation()) << 32 | u64::from(who.rank()),
        ))
    };
    let (client, server) = (credentials.client_config(), credentials.server_config());
    Security::new(client, server, Arc::new(identify)).records(records)
}
