//! Who is the other half, and who only says so.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, anyhow, bail, ensure};
use mizzen_identity::{Authority, Credentials, Identity, MIN_SHARED, server_name};
use rustls::{ClientConnection, Connection, ServerConnection};
use zeroize::Zeroizing;

use super::timed::Timed;

/// What both halves have in common.
pub(in crate::run) struct Shared {
    authority: Authority,
}

/// Which half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum Part {
    Leader,
    Deputy,
}

impl Shared {
    /// The secret of a file that nobody else can read.
    pub(in crate::run) fn read(path: &Path, job: &str) -> anyhow::Result<Self> {
        let shown = path.display();
        let file =
            File::open(path).with_context(|| format!("the secret {shown} cannot be read"))?;
        let mode = file.metadata()?.mode() & 0o777;
        ensure!(
            mode & 0o077 == 0,
            "the secret {shown} is open to others (mode {mode:04o}), and whoever has read it can be a half of this job; make \
             another with `mizzen site secret FILE`"
        );
        let mut secret = Zeroizing::new(Vec::with_capacity(MAX_SECRET + 1));
        file.take(MAX_SECRET as u64 + 1).read_to_end(&mut secret)?;
        let secret = secret.trim_ascii();
        ensure!(
            (MIN_SHARED..=MAX_SECRET).contains(&secret.len()),
            "the secret {shown} has {} characters; it takes {MIN_SHARED} to {MAX_SECRET} that nobody can guess: make one with \
             `mizzen site secret FILE`",
            secret.len()
        );
        let authority = Authority::shared(secret, job);
        let authority = authority.context("the secret cannot be used")?;
        Ok(Self { authority })
    }

    fn credentials(&self, part: Part) -> anyhow::Result<Credentials> {
        let identity = self.identity(part)?;
        Ok(self.authority.credentials(&identity)?)
    }

    fn identity(&self, part: Part) -> anyhow::Result<Identity> {
        let rank = match part {
            Part::Leader => 0,
            Part::Deputy => 1,
        };
        let (cluster, job) = (self.authority.cluster(), self.authority.job());
        Ok(Identity::new(cluster, job, rank, 0)?)
    }

    /// Proves to the other end which half this is, and has it prove the same. The deputy dials.
    pub(in crate::run) fn shake(
        &self,
        part: Part,
        socket: &mut Timed<'_>,
    ) -> anyhow::Result<Connection> {
        let credentials = self.credentials(part)?;
        let (mut tls, other): (Connection, Part) = match part {
            Part::Deputy => {
                let tls = ClientConnection::new(credentials.client_config(), server_name())?;
                (tls.into(), Part::Leader)
            }
            Part::Leader => (
                ServerConnection::new(credentials.server_config())?.into(),
                Part::Deputy,
            ),
        };
        while tls.is_handshaking() {
            // What TLS says of it helps nobody who runs a job.
            let shaken = tls.complete_io(socket);
            shaken.map_err(|_| anyhow!(NOT_PROVED))?;
        }
        match credentials.peer(&tls) {
            Ok(peer) if peer == self.identity(other)? => Ok(tls),
            Ok(_) => bail!("both ends are the same half of the job"),
            Err(_) => bail!(NOT_PROVED),
        }
    }
}

const NOT_PROVED: &str =
    "the other end does not prove that it is the other half: both must have the same --secret";
/// More than anybody needs.
const MAX_SECRET: usize = 4096;
