//! What can go wrong, by operation, and how far each error reaches.

mod flush;
mod gone;

use core::fmt;
use std::time::Duration;

use crate::rank::Rank;

pub use flush::FlushError;
pub(crate) use flush::{Messages, Sureness, Untaken};
pub use gone::{Departure, Gone};

/// Any error of this crate, for `?` in programs. Its `Debug` form is its sentence too, because that is what Rust prints when
/// `main` returns an error.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Joining the job.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Making a mailbox.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
    /// Asking who is where.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Naming a channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// Binding a name.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// Fetching a name.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Posting a message.
    #[error(transparent)]
    Post(#[from] PostError),
    /// Waiting until what was posted is taken.
    #[error(transparent)]
    Flush(#[from] FlushError),
    /// Retrieving a message.
    #[error(transparent)]
    Retrieve(#[from] RetrieveError),
    /// Unpacking a message.
    #[error(transparent)]
    Unpack(#[from] UnpackError),
    /// Lending a buffer.
    #[error(transparent)]
    Arena(#[from] ArenaError),
    /// A task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// An error of a service, such as a call: [`service`](Self::service) finds out which.
    #[error("{0}")]
    Service(Box<dyn ServiceError>),
    /// An error of the program itself.
    #[error("{0}")]
    Program(Box<dyn std::error::Error + Send + Sync>),
}

/// An error of a service that is built on this crate.
pub trait ServiceError: std::error::Error + Send + Sync + 'static {
    /// The largest thing it affects: the peer that was lost, or this message only.
    fn scope(&self) -> Scope {
        self.lost().map_or(Scope::Message, |_| Scope::Peer)
    }

    /// The process whose loss caused it.
    fn lost(&self) -> Option<Rank> {
        None
    }

    /// The error itself, to find out which it is.
    fn as_any(&self) -> &(dyn core::any::Any + Send + Sync);
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Program(error.into())
    }
}

/// What programs return.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// The largest thing an error affects: what has to be given up, and what may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// This message only.
    Message,
    /// Everything with this peer or mailbox.
    Peer,
    /// The whole job.
    Job,
}

impl Error {
    /// The largest thing the error affects.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self {
            Self::Join(_) => Scope::Job,
            Self::Post(
                PostError::PeerGone(_) | PostError::Closed { .. } | PostError::Unreachable(_),
            )
            | Self::Retrieve(RetrieveError::PeerGone(_)) => Scope::Peer,
            Self::Flush(FlushError::PeerGone { .. }) => Scope::Peer,
            Self::Service(error) => error.scope(),
            _ => Scope::Message,
        }
    }

    /// The error of a service, if it is one of this type.
    ///
    /// ```
    /// use mizzen::{CallError, Error};
    ///
    /// fn is_timeout(error: &Error) -> bool {
    ///     matches!(error.service(), Some(CallError::TimedOut { .. }))
    /// }
    /// # let _ = is_timeout;
    /// ```
    #[must_use]
    pub fn service<E: ServiceError>(&self) -> Option<&E> {
        match self {
            Self::Service(error) => error.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// The process whose loss caused the error.
    #[must_use]
    pub fn lost(&self) -> Option<Rank> {
        match self {
            Self::Post(PostError::PeerGone(gone))
            | Self::Retrieve(RetrieveError::PeerGone(gone)) => Some(gone.rank()),
            Self::Flush(FlushError::PeerGone { gone, .. }) => Some(gone.rank()),
            Self::Service(error) => error.lost(),
            _ => None,
        }
    }
}

/// Why a task on the workers of this process has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// It panicked, and said this.
    #[error("the task panicked: {0}")]
    Panicked(String),
    /// The process left its job before the task ended.
    #[error(
        "the task was dropped before it ended, because this process left its job; keep a `Deck` until all tasks are joined"
    )]
    Dropped,
}

/// Why a process could not join its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The launcher's descriptor is not usable.
    #[error(
        "the launcher's descriptor MIZZEN_AGENT_FD={value:?} is not usable ({cause}); start the program with `mizzen run`"
    )]
    Descriptor {
        /// What the variable said.
        value: String,
        /// What was wrong.
        cause: String,
    },
    /// This process has joined already.
    #[error(
        "this process has joined its job already; clone the first `Deck` instead of joining again"
    )]
    Twice,
    /// The launcher's agent ended or spoke another protocol.
    #[error(
        "the launcher's agent gave no usable answer: {0}; is `mizzen` of the same version as this program?"
    )]
    Agent(String),
    /// This process cannot prove to other hosts who it is.
    #[error("this process cannot prove who it is: {0}")]
    Identity(#[from] mizzen_identity::CredentialsError),
    /// A network of the job's file cannot be used on this host.
    #[error("cannot attach to the network {network:?}: {cause}")]
    Network {
        /// What the job's file calls it.
        network: String,
        /// What was wrong.
        cause: String,
    },
    /// The operating system refused something.
    #[error("cannot set up the process: {0}")]
    System(#[from] std::io::Error),
    /// Shared memory could not be made.
    #[error(transparent)]
    Memory(#[from] mizzen_shm::SegmentError),
    /// The job is smaller than the program needs.
    #[error("{}", too_small(*.size, *.needed, *.launched))]
    TooSmall {
        /// Processes of the job.
        size: u32,
        /// Processes the program needs.
        needed: u32,
        /// Whether a launcher started it.
        launched: bool,
    },
}

fn too_small(size: u32, needed: u32, launched: bool) -> String {
    if launched {
        format!(
            "this program needs at least {needed} processes and was started with {size}; start it with `mizzen run -n {needed} -- <program>`"
        )
    } else {
        format!(
            "this program needs at least {needed} processes, but it was started without the launcher and is a job of one; start it with `mizzen run -n {needed} -- <program>`"
        )
    }
}

/// Why a mailbox or its descriptor could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MailboxError {
    /// The process has no room for another mailbox.
    #[error("this process has {limit} mailboxes, and may not have more; drop some")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// The system has no descriptor for it, or no thread that makes it readable.
    #[error("the mailbox has no descriptor: {0}; are too many files open?")]
    Descriptor(#[source] std::io::Error),
}

/// Why it is not known who is where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The launcher's agent is gone.
    #[error("it is not known who is where: the launcher's agent is gone")]
    NoAgent,
    /// There was no answer in time.
    #[error("it is not known who is where: the launcher did not answer in time; is it stopped?")]
    NoAnswer,
    /// What is to be said of all hosts is longer than the launcher can say.
    #[error("it is not known who is where: the job has too many hosts to tell of")]
    TooMany,
    /// What came makes no sense.
    #[error(
        "it is not known who is where: what the launcher said makes no sense; is it of another version?"
    )]
    Malformed,
}

/// Why there is no such channel for this process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The job has no channel of that name.
    #[error(
        "the job has no channel {name:?}; it has {}; channels are named in the job's file, for `mizzen run --file`",
        .known.join(", ")
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The host of this process is not on it.
    #[error(
        "this process runs on {host}, which is not on the channel {name:?}; add the host to it in the job's file, or ask `deck.channels()` which channels it is on"
    )]
    NotOnIt {
        /// What was asked for.
        name: String,
        /// The host.
        host: String,
    },
}

/// Why a name could not be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another mailbox has the name.
    #[error(
        "the name {name:?} is taken by a mailbox of rank {owner}; choose another name, or unbind it there"
    )]
    Taken {
        /// The name.
        name: String,
        /// Whose mailbox has it.
        owner: Rank,
    },
    /// The name is not valid.
    #[error("{name:?} is not a name: {cause}")]
    Invalid {
        /// The name.
        name: String,
        /// Why.
        cause: String,
    },
    /// Whoever keeps the name refused.
    #[error("the name {name:?} could not be bound: {cause}")]
    Refused {
        /// The name.
        name: String,
        /// Why.
        cause: String,
    },
}

/// Why a name could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Nobody bound the name in time.
    #[error(
        "nobody bound the name {name:?} within {waited:.1?}; {}, or wait longer with `fetch_timeout`",
        check_spelling(near)
    )]
    Unbound {
        /// The name.
        name: String,
        /// How long we waited.
        waited: Duration,
        /// Bound names that look like it, of those that this host's agent keeps: all, if the job has at most three hosts.
        near: Vec<String>,
    },
    /// The name is not valid.
    #[error("{name:?} is not a name: {cause}")]
    Invalid {
        /// The name.
        name: String,
        /// Why.
        cause: String,
    },
    /// Whoever keeps the name refused.
    #[error("the name {name:?} could not be fetched: {cause}")]
    Refused {
        /// The name.
        name: String,
        /// Why.
        cause: String,
    },
}

fn check_spelling(near: &[String]) -> String {
    if near.is_empty() {
        return "the agent of this host keeps no name like it: check the spelling where it is bound".into();
    }
    let near: Vec<String> = near.iter().map(|name| format!("{name:?}")).collect();
    format!(
        "did you mean {}, which is bound? Check the spelling",
        near.join(" or ")
    )
}

/// Why a process cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReachError {
    /// There is no such rank.
    #[error("there is no rank {rank}: the job has {size} processes, numbered from 0")]
    NoSuchRank {
        /// The rank.
        rank: Rank,
        /// Processes of the job.
        size: u32,
    },
    /// It is gone.
    #[error("{0}")]
    Gone(Gone),
    /// Setting up the path failed.
    #[error("no path to rank {rank}: {cause}")]
    NoPath {
        /// The rank.
        rank: Rank,
        /// What happened.
        cause: String,
    },
}

/// Why a message was not posted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The process of the mailbox is gone.
    #[error("message not posted: {0}")]
    PeerGone(Gone),
    /// The mailbox is closed.
    #[error("message not posted: the mailbox at rank {rank} is closed")]
    Closed {
        /// Whose mailbox it was.
        rank: Rank,
    },
    /// The process cannot be reached.
    #[error("message not posted: {0}")]
    Unreachable(ReachError),
    /// The receiver did not make room in time.
    #[error(
        "message not posted: the mailbox at rank {rank} is full, and its owner did not retrieve in time"
    )]
    TimedOut {
        /// Whose mailbox it is.
        rank: Rank,
    },
    /// The mailbox has no room now (`try_post`).
    #[error("the mailbox at rank {rank} has no room now")]
    Busy {
        /// Whose mailbox it is.
        rank: Rank,
    },
    /// A lent buffer of the message has been posted before.
    #[error("a lent buffer of this message was given away before; it cannot be sent twice")]
    LentTwice,
    /// A lent buffer of the message was made by another process of a local job.
    #[error("a lent buffer goes only through addresses of the process that made it")]
    LentByAnother,
    /// The message is too long, or there is no memory for it.
    #[error("message not posted: {0}")]
    Memory(#[from] ArenaError),
    /// A serde value could not be serialised.
    #[error("the value cannot be packed: {0}")]
    Encode(String),
}

impl PostError {
    /// The value could not be serialised.
    #[must_use]
    pub fn encode(error: postcard::Error) -> Self {
        Self::Encode(error.to_string())
    }
}

impl From<ReachError> for PostError {
    fn from(error: ReachError) -> Self {
        match error {
            ReachError::Gone(gone) => Self::PeerGone(gone),
            other => Self::Unreachable(other),
        }
    }
}

/// Why no message was retrieved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RetrieveError {
    /// A process that had sent to this mailbox died, or one on which it depends died or left. All that it sent before has been
    /// retrieved. This error comes once for each process; retrieving goes on with the others.
    #[error("{0}; everything it sent to this mailbox before was retrieved")]
    PeerGone(Gone),
    /// Nobody can send to this mailbox any more: every other process of the job has ended, all that they sent was retrieved,
    /// and the program has no other thread here. Only waits without a deadline end in this way, and only when it is certain.
    #[error("nobody is left who could send to this mailbox: {}", nobody(gone, *.others))]
    NobodyLeft {
        /// Those who are gone; the first few of many.
        gone: Vec<Gone>,
        /// How many there were.
        others: u32,
    },
    /// In `mizzen::local`, where a test must not hang: every other rank has ended, and nothing came for long. Other threads of the
    /// test could still have sent something.
    #[error(
        "nothing came to this mailbox for {waited:.0?}, and all {others} other ranks have ended; a test waits no longer, so if one of its own threads sends later, retrieve with a time-out"
    )]
    NobodyCame {
        /// How long we waited.
        waited: Duration,
        /// How many other ranks there were.
        others: u32,
    },
    /// The job has no such rank, so that no message of it can come.
    #[error("the job has no rank {rank}, only ranks 0 to {}", .size - 1)]
    NoSuchRank {
        /// Which was asked for.
        rank: Rank,
        /// How many there are.
        size: u32,
    },
    /// These mailboxes cannot be waited for at once.
    #[error("several mailboxes cannot be waited for at once: {0}")]
    Selection(&'static str),
    /// Nothing came in time.
    #[error("no message came within {waited:.1?}")]
    TimedOut {
        /// How long we waited.
        waited: Duration,
    },
    /// The mailbox was dropped while the receive was posted, so that no message can come for it.
    #[error("the mailbox of the receive was dropped before a message came")]
    Closed,
    /// A message came that cannot be opened. Its sender broke the format.
    #[error("a message from rank {rank} cannot be opened: {cause}")]
    Malformed {
        /// Who sent it.
        rank: Rank,
        /// What is wrong.
        cause: UnpackError,
    },
}

fn nobody(gone: &[Gone], others: u32) -> String {
    let named: Vec<String> = gone.iter().map(Gone::to_string).collect();
    let rest = others as usize - gone.len().min(others as usize);
    let who = match (named.is_empty(), rest) {
        (true, _) => "the job has no other process".to_owned(),
        (false, 0) => named.join(", "),
        (false, rest) => format!("{}, and {rest} more are gone", named.join(", ")),
    };
    format!(
        "{who}, and this process has no other thread; retrieve no more messages than are sent, or say with `depend_on` whom you wait for"
    )
}

/// Why a piece could not be unpacked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// All pieces are unpacked.
    #[error("the message has no further piece")]
    NoPiece,
    /// The piece has another length.
    #[error(
        "the piece is {found} bytes long, and {expected} were asked for; do sender and receiver agree on the type?"
    )]
    Length {
        /// What was asked for.
        expected: usize,
        /// What is there.
        found: usize,
    },
    /// The message is longer than the memory of the posted receive it was for. It is the next one of `retrieve`.
    #[error(
        "the message is {found} bytes long, and the posted receive has memory for {room}; the message waits for `retrieve`"
    )]
    TooLong {
        /// Bytes of the memory.
        room: usize,
        /// Bytes of the message.
        found: usize,
    },
    /// The message for a posted receive has several pieces, or none. It is the next one of `retrieve`.
    #[error(
        "the message for a posted receive is not one piece but several or none; it waits for `retrieve`"
    )]
    Several,
    /// The piece is a lent buffer.
    #[error("the piece is a lent buffer; unpack it with `unpack_lent`")]
    Lent,
    /// The piece is not a lent buffer.
    #[error("the piece is not a lent buffer, or was unpacked before")]
    NotLent,
    /// The piece is a serde value, and plain data was asked for.
    #[error(
        "the piece is a serde value (sent with `send_value`, or packed with `pack_value`); receive it with `receive_value`, or unpack it with `unpack_value`"
    )]
    NotPlain,
    /// The piece is plain data, and a serde value was asked for.
    #[error(
        "the piece is plain data (sent with `send`, or packed with `pack_safer` and its kin); receive it with `receive::<T>` or `receive_vec::<T>`, or unpack it with `unpack_express`, not as a serde value"
    )]
    NotAValue,
    /// The piece holds other numbers than were asked for. Only debug builds notice.
    #[error(
        "the piece was sent as {sent} and asked for as {asked}; ask for the type that was sent (only debug builds notice this)"
    )]
    Type {
        /// What the sender gave.
        sent: &'static str,
        /// What the receiver asked for.
        asked: &'static str,
    },
    /// The piece came from a host whose memory has another order of bytes, or other addresses, and its type is not known to consist
    /// of numbers only.
    #[error(
        "the piece came from a host with another order of bytes or length of addresses, and `{name}` cannot be put right: only numbers, arrays and slices of them are (and `usize` only between addresses of one length); send it with `send_value`, or as numbers"
    )]
    Unlike {
        /// What was asked for.
        name: &'static str,
    },
    /// The piece is not a mailbox.
    #[error("the piece is not the address of a mailbox")]
    NotAMailbox,
    /// The piece is not a message.
    #[error("the piece is not a message")]
    NotAMessage,
    /// The bytes are not a value of the type.
    #[error("the piece is not a value of that type: {0}")]
    Decode(String),
    /// The message makes no sense.
    #[error("the message is malformed")]
    Malformed,
    /// There is no memory for the piece.
    #[error("there is no memory for a piece of {bytes} bytes")]
    Memory {
        /// How many bytes.
        bytes: usize,
    },
    /// Cheaper pieces wait for `finish`.
    #[error("cheaper pieces wait for `finish`")]
    Pending,
    /// What was unpacked of so long a message is gone.
    #[error(
        "the message is longer than its sender may have unread, so what was unpacked of it is gone; unpack it once, or keep what you need"
    )]
    Spent,
    /// The sender stopped waiting and took the message back before its long pieces were asked for.
    #[error("the sender took the message back before the rest of it was asked for")]
    Retracted,
    /// The lent buffer went back to its owner.
    #[error(
        "the lent buffer went back to its owner, because the process that handed it on was killed before it was unpacked"
    )]
    TakenBack,
    /// The sender was lost before all of the message came.
    #[error("the rest of the message did not come: {0}")]
    PeerGone(Gone),
}

impl UnpackError {
    /// The bytes are not a value of the type.
    #[must_use]
    pub fn decode(error: postcard::Error) -> Self {
        Self::Decode(error.to_string())
    }
}

/// Why there is no memory for a lent buffer or a long message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// Longer than allowed.
    #[error("{bytes} bytes are more than the {limit} that one message may have; send it in pieces")]
    TooLong {
        /// What was asked for.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The operating system has no more memory.
    #[error(transparent)]
    Memory(mizzen_shm::SegmentError),
    /// Receivers hold all of it.
    #[error("all lent memory is in the hands of receivers, and none came back within {waited:.1?}")]
    AllOut {
        /// How long we waited.
        waited: Duration,
    },
}
