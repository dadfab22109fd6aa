//! Names of processes and agents: cluster, job, which one and which life of it, as a value and as a URI.

use std::fmt;
use std::str::FromStr;

/// The longest name of a cluster: a DNS label (RFC 1035).
pub const MAX_CLUSTER: usize = 63;

/// The longest URI of an identity.
pub const MAX_URI: usize = SCHEME.len() + MAX_CLUSTER + 1 + 32 + 1 + AGENT.len() + 1 + 10 + 1 + 10;

const SCHEME: &str = "mizzen://";
/// Stands before the number of an agent's host.
const AGENT: &str = "agent";

/// What somebody is in its job. One never passes for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A process.
    Process,
    /// The agent of a host.
    Agent,
}

/// Which process, or the agent of which host, of which job: one life of it.
///
/// The text of an agent is `mizzen://<cluster>/<job>/agent/<host>/<life>`. That of a process is `mizzen://<cluster>/<job, 32 hexadecimal digits>/<rank>/<incarnation>`, and there is one text for each
/// identity: lower case, no leading zeros, nothing before or after.
///
/// ```
/// use mizzen_identity::Identity;
///
/// let identity: Identity = "mizzen://local/000102030405060708090a0b0c0d0e0f/3/0".parse()?;
/// assert_eq!(identity.cluster(), "local");
/// assert_eq!(identity.job()[15], 15);
/// assert_eq!((identity.rank(), identity.incarnation()), (3, 0));
/// assert!("mizzen://local/000102030405060708090a0b0c0d0e0f/03/0".parse::<Identity>().is_err());
/// # Ok::<(), mizzen_identity::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    cluster: String,
    job: [u8; 16],
    role: Role,
    rank: u32,
    incarnation: u32,
}

impl Identity {
    /// Names a process.
    ///
    /// # Errors
    ///
    /// [`NameError::Cluster`] unless the cluster's name has 1 to [`MAX_CLUSTER`] characters of `a-z`, `0-9` and, between
    /// others, `-`.
    pub fn new(
        cluster: &str,
        job: [u8; 16],
        rank: u32,
        incarnation: u32,
    ) -> Result<Self, NameError> {
        check_cluster(cluster)?;
        Ok(Self {
            cluster: cluster.to_owned(),
            job,
            role: Role::Process,
            rank,
            incarnation,
        })
    }

    /// Names one life of the agent of a host.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn agent(cluster: &str, job: [u8; 16], host: u32, life: u32) -> Result<Self, NameError> {
        let role = Role::Agent;
        Ok(Self {
            role,
            ..Self::new(cluster, job, host, life)?
        })
    }

    /// Names a process of the same job.
    #[must_use]
    pub fn process(&self, rank: u32, incarnation: u32) -> Self {
        Self {
            role: Role::Process,
            rank,
            incarnation,
            ..self.clone()
        }
    }

    /// What it is.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The cluster whose launcher started it.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The job, by its random number; the most significant byte comes first.
    pub fn job(&self) -> [u8; 16] {
        self.job
    }

    /// Which process of the job; of an agent, the number of its host.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Which life of it: 0, or 1 of an agent, then one more with each restart.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }
}

/// Why a text or its parts are not an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It has too many bytes to be one.
    #[error("the identity has more than {MAX_URI} bytes")]
    TooLong,
    /// It does not begin with `mizzen://`.
    #[error("the identity does not begin with mizzen://")]
    Scheme,
    /// It does not have four parts.
    #[error("the identity is not mizzen://cluster/job/rank/incarnation")]
    Fields,
    /// The name of the cluster is not valid. Choose another.
    #[error("a cluster's name has 1 to {MAX_CLUSTER} of a-z, 0-9 and, not at its ends, -")]
    Cluster,
    /// The job is not 32 hexadecimal digits in lower case.
    #[error("the job of the identity is not 32 hexadecimal digits")]
    Job,
    /// The rank is not a decimal number of 32 bits.
    #[error("the rank of the identity is not a number")]
    Rank,
    /// The incarnation is not a decimal number of 32 bits.
    #[error("the incarnation of the identity is not a number")]
    Incarnation,
}

impl FromStr for Identity {
    type Err = NameError;

    fn from_str(uri: &str) -> Result<Self, NameError> {
        if uri.len() > MAX_URI {
            return Err(NameError::TooLong);
        }
        let path = uri.strip_prefix(SCHEME).ok_or(NameError::Scheme)?;
        let mut fields = path.split('/');
        let mut field = || fields.next().ok_or(NameError::Fields);
        let (cluster, job, mut rank) = (field()?, field()?, field()?);
        let role = match rank {
            AGENT => Role::Agent,
            _ => Role::Process,
        };
        if role == Role::Agent {
            rank = field()?;
        }
        let incarnation = field()?;
        if fields.next().is_some() {
            return Err(NameError::Fields);
        }
        let job = parse_job(job).ok_or(NameError::Job)?;
        let rank = parse_number(rank).ok_or(NameError::Rank)?;
        let incarnation = parse_number(incarnation).ok_or(NameError::Incarnation)?;
        match role {
            Role::Process => Self::new(cluster, job, rank, incarnation),
            Role::Agent => Self::agent(cluster, job, rank, incarnation),
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let job = u128::from_be_bytes(self.job);
        let Self { cluster, rank, .. } = self;
        let role = match self.role {
            Role::Process => "",
            Role::Agent => "agent/",
        };
        write!(
            f,
            "{SCHEME}{cluster}/{job:032x}/{role}{rank}/{}",
            self.incarnation
        )
    }
}

/// The URI: sixteen numbers of a job help nobody.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}

pub(crate) fn check_cluster(name: &str) -> Result<(), NameError> {
    let allowed = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let inside = !name.starts_with('-') && !name.ends_with('-');
    if (1..=MAX_CLUSTER).contains(&name.len()) && inside && name.as_bytes().iter().all(allowed) {
        Ok(())
    } else {
        Err(NameError::Cluster)
    }
}

fn parse_job(text: &str) -> Option<[u8; 16]> {
    let lower_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != 32 || !text.as_bytes().iter().all(lower_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

/// A number as `Display` writes it: the parser of the standard library takes a sign and leading zeros, too.
fn parse_number(text: &str) -> Option<u32> {
    let digits = text.as_bytes().iter().all(u8::is_ascii_digit);
    let canonical = text == "0" || !text.starts_with('0');
    (digits && canonical).then(|| text.parse().ok()).flatten()
}
