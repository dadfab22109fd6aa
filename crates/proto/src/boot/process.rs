//! What an agent and a process of its host say to each other: packets.

use super::channel::Channel;
use super::codec::{Reader, Writer, check_hosts};
use super::network::{Network, Span, flag};
use super::{
    Death, DecodeError, MAX_ANSWER, MAX_CERTIFICATE, MAX_CLUSTER, MAX_HOST, MAX_LOCATOR,
    MAX_PACKET, MAX_PRESENT, MAX_PROCESSES, MAX_QUESTION, MAX_REQUEST, MAX_WAITING, Preset,
    Progress, TOPOLOGY_PAGE, TooLarge, Unreachable,
};

/// From the agent to a process of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToProcess {
    /// Who you are. The first packet, and there is one.
    Boot(Box<Boot>),
    /// You are connected to this process of your host: with a descriptor, a packet socket.
    ///
    /// Sent to both sides of an introduction, so it may come unasked. When two ask for each other at the same time one
    /// introduction answers both. Asking again connects anew: a later `Peer` replaces the former.
    Peer {
        /// Who is at the other end.
        rank: u32,
        /// Which life of it.
        incarnation: u32,
        /// The number of its process.
        pid: u32,
        /// When that started, as the kernel counts, so that another one with this number is not taken for it. Zero if it is not
        /// known.
        started: u64,
    },
    /// This process is on another host.
    Address {
        /// Who was asked for.
        rank: u32,
        /// Which life of it.
        incarnation: u32,
        /// What it said in [`Ready`](FromProcess::Ready).
        locator: String,
    },
    /// This process cannot be reached. May come for one you are connected to, when it has ended or left.
    Unreachable {
        /// Who was asked for.
        rank: u32,
        /// Why.
        reason: Unreachable,
    },
    /// A process failed, and the job goes on. Sent to every other process.
    Died {
        /// Who.
        rank: u32,
        /// Which life of it.
        incarnation: u32,
        /// Of what.
        how: Death,
    },
    /// A process is started again. Comes after the [`Died`](Self::Died) of its last life.
    Joined {
        /// Who.
        rank: u32,
        /// Which life of it.
        incarnation: u32,
    },
    /// This is all that was told of this epoch. Epochs grow by one, from the first that a process hears of; those without a death are told
    /// too, so that a gap shows.
    Epoch {
        /// Which one.
        epoch: u64,
    },
    /// Lives up to this one of these ranks have ended: take nothing of them. Only before the first [`Epoch`](Self::Epoch).
    Fenced {
        /// The first of neighbouring ranks.
        first: u32,
        /// The last of them.
        last: u32,
        /// The latest life that has ended.
        incarnation: u32,
    },
    /// The answer to [`AskLast`](FromProcess::AskLast): all other processes have ended, and none will be started again.
    Last,
    /// The answer to [`Ask`](FromProcess::Ask): an [`Answer`](crate::registry::Answer).
    Answer {
        /// Its bytes.
        answer: Vec<u8>,
    },
    /// There is a gateway on this host; or, with an empty locator, there is none any more. Only if [`Boot::spans`] says who shares which network.
    Gateway {
        /// The number of its host.
        host: u32,
        /// Which life of its agent.
        life: u32,
        /// Where it is reached on each of its networks.
        locator: String,
    },
    /// The answer to [`AskTopology`](FromProcess::AskTopology).
    Topology {
        /// Where the page begins.
        from: u32,
        /// How long all of it is.
        total: u32,
        /// The page: at most [`TOPOLOGY_PAGE`] bytes of a [`Topology`](super::Topology).
        bytes: Vec<u8>,
    },
    /// Say who of you waits, where and for whom. Answered by [`Present`](FromProcess::Present).
    RollCall,
    /// The answer to [`Certify`](FromProcess::Certify). Others of these packets may come before it.
    Certificate {
        /// Says, signed by the job's authority, that the key is this process's, in this life.
        certificate: Vec<u8>,
    },
}

impl ToProcess {
    /// Appends the packet to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        packet(out, |w| match self {
            Self::Boot(boot) => {
                w.u8(1);
                boot.encode(w)
            }
            Self::Peer {
                rank,
                incarnation,
                pid,
                started,
            } => {
                w.u8(2);
                w.life(*rank, *incarnation)?;
                w.u32(*pid);
                w.u64(*started);
                Ok(())
            }
            Self::Address {
                rank,
                incarnation,
                locator,
            } => {
                w.u8(3);
                w.life(*rank, *incarnation)?;
                w.text(locator, MAX_LOCATOR)
            }
            Self::Unreachable { rank, reason } => {
                w.u8(4);
                w.u32(*rank);
                w.unreachable(*reason)
            }
            Self::Died {
                rank,
                incarnation,
                how,
            } => {
                w.u8(5);
                w.life(*rank, *incarnation)?;
                w.death(*how)
            }
            Self::Joined { rank, incarnation } => {
                w.u8(6);
                w.life(*rank, *incarnation)
            }
            Self::Certificate { certificate } => {
                w.u8(7);
                w.bytes(certificate, MAX_CERTIFICATE)
            }
            Self::Last => {
                w.u8(8);
                Ok(())
            }
            Self::Epoch { epoch } => {
                w.u8(9);
                w.u64(*epoch);
                Ok(())
            }
            Self::Fenced {
                first,
                last,
                incarnation,
            } => {
                w.u8(10);
                w.u32(*first);
                w.life(*last, *incarnation)
            }
            Self::Answer { answer } => {
                w.u8(11);
                w.bytes(answer, MAX_ANSWER)
            }
            Self::Gateway {
                host,
                life,
                locator,
            } => {
                w.u8(12);
                w.life(*host, *life)?;
                w.text(locator, MAX_LOCATOR)
            }
            Self::Topology { from, total, bytes } => {
                w.u8(13);
                w.u32(*from);
                w.u32(*total);
                w.bytes(bytes, TOPOLOGY_PAGE)
            }
            Self::RollCall => {
                w.u8(14);
                Ok(())
            }
        })
    }

    /// Reads a whole packet.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(bytes, MAX_PACKET, |r| match r.u8()? {
            1 => Ok(Self::Boot(Box::new(Boot::decode(r)?))),
            2 => Ok(Self::Peer {
                rank: r.u32()?,
                incarnation: r.u32()?,
                pid: r.u32()?,
                started: r.u64()?,
            }),
            3 => Ok(Self::Address {
                rank: r.u32()?,
                incarnation: r.u32()?,
                locator: r.text(MAX_LOCATOR)?,
            }),
            4 => Ok(Self::Unreachable {
                rank: r.u32()?,
                reason: r.unreachable()?,
            }),
            5 => Ok(Self::Died {
                rank: r.u32()?,
                incarnation: r.u32()?,
                how: r.death()?,
            }),
            6 => Ok(Self::Joined {
                rank: r.u32()?,
                incarnation: r.u32()?,
            }),
            7 => Ok(Self::Certificate {
                certificate: r.bytes(MAX_CERTIFICATE)?,
            }),
            8 => Ok(Self::Last),
            9 => Ok(Self::Epoch { epoch: r.u64()? }),
            10 => Ok(Self::Fenced {
                first: r.u32()?,
                last: r.u32()?,
                incarnation: r.u32()?,
            }),
            11 => Ok(Self::Answer {
                answer: r.bytes(MAX_ANSWER)?,
            }),
            12 => Ok(Self::Gateway {
                host: r.u32()?,
                life: r.u32()?,
                locator: r.text(MAX_LOCATOR)?,
            }),
            13 => Ok(Self::Topology {
                from: r.u32()?,
                total: r.u32()?,
                bytes: r.bytes(TOPOLOGY_PAGE)?,
            }),
            14 => Ok(Self::RollCall),
            kind => Err(DecodeError::Kind(kind)),
        })
    }
}

/// From a process to the agent of its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromProcess {
    /// I listen.
    Ready {
        /// Where other hosts find me. Empty if the job has one host.
        locator: String,
    },
    /// Connect me to this process. Answered by `Peer`, `Address` (when that process is ready) or `Unreachable`.
    Reach {
        /// To whom.
        rank: u32,
    },
    /// I am done with the job, and may go on without it. My end, when it comes with exit code 0, is nobody's loss.
    Leaving,
    /// One of my calls has waited for long. Tell the user; nothing else comes of it. It is repeated while it lasts: the
    /// launcher prints at most one line per process in ten seconds.
    Waiting {
        /// What follows "rank 0 on h1", without a full stop: "has waited 10 s for a message to one of its mailboxes". At
        /// most [`MAX_WAITING`] bytes. Control characters are printed as blanks.
        text: String,
    },
    /// I reached another process. Tell the user; only if [`Boot::show_paths`] asks for it.
    Path {
        /// What follows "rank 0 on h1", as in `Waiting`.
        text: String,
    },
    /// How far a map of mine is. Tell the user; nothing else comes of it, and some of these may be lost. Said a few times a second
    /// while it lasts, and once when it is over.
    Progress(Progress),
    /// Tell me when I am the last process of the job. Answered by `Last` when it is so, which may be never.
    AskLast,
    /// Tell me who is where: a page, from here on.
    AskTopology {
        /// Where the page begins.
        from: u32,
    },
    /// About names: a [`Question`](crate::registry::Question). Whose it is says the socket.
    Ask {
        /// Its bytes.
        question: Vec<u8>,
    },
    /// The answer to [`RollCall`](ToProcess::RollCall): a [`Present`](crate::rollcall::Present).
    Present {
        /// Its bytes.
        present: Vec<u8>,
    },
    /// One of my threads has waited longer than [`Boot::overdue_ms`]. Said again when it has waited twice as long.
    Overdue {
        /// How long, in milliseconds.
        millis: u64,
    },
    /// Certify my key. Once in a life, and only in a job of several hosts: the agent closes the socket otherwise.
    Certify {
        /// The public key, and the proof that I have the private one. It names nobody: the agent knows who asks.
        request: Vec<u8>,
    },
}

impl FromProcess {
    /// Appends the packet to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        packet(out, |w| match self {
            Self::Ready { locator } => {
                w.u8(1);
                w.text(locator, MAX_LOCATOR)
            }
            Self::Reach { rank } => {
                w.u8(2);
                w.u32(*rank);
                Ok(())
            }
            Self::Leaving => {
                w.u8(3);
                Ok(())
            }
            Self::Waiting { text } => {
                w.u8(4);
                w.text(text, MAX_WAITING)
            }
            Self::Path { text } => {
                w.u8(6);
                w.text(text, MAX_WAITING)
            }
            Self::Certify { request } => {
                w.u8(5);
                w.bytes(request, MAX_REQUEST)
            }
            Self::AskLast => {
                w.u8(7);
                Ok(())
            }
            Self::Progress(progress) => {
                w.u8(8);
                progress.encode(w)
            }
            Self::Ask { question } => {
                w.u8(9);
                w.bytes(question, MAX_QUESTION)
            }
            Self::AskTopology { from } => {
                w.u8(10);
                w.u32(*from);
                Ok(())
            }
            Self::Present { present } => {
                w.u8(11);
                w.bytes(present, MAX_PRESENT)
            }
            Self::Overdue { millis } => {
                w.u8(12);
                w.u64(*millis);
                Ok(())
            }
        })
    }

    /// Reads a whole packet.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(bytes, MAX_PACKET, |r| match r.u8()? {
            1 => Ok(Self::Ready {
                locator: r.text(MAX_LOCATOR)?,
            }),
            2 => Ok(Self::Reach { rank: r.u32()? }),
            3 => Ok(Self::Leaving),
            4 => Ok(Self::Waiting {
                text: r.text(MAX_WAITING)?,
            }),
            6 => Ok(Self::Path {
                text: r.text(MAX_WAITING)?,
            }),
            5 => Ok(Self::Certify {
                request: r.bytes(MAX_REQUEST)?,
            }),
            7 => Ok(Self::AskLast),
            8 => Ok(Self::Progress(Progress::decode(r)?)),
            9 => Ok(Self::Ask {
                question: r.bytes(MAX_QUESTION)?,
            }),
            10 => Ok(Self::AskTopology { from: r.u32()? }),
            11 => Ok(Self::Present {
                present: r.bytes(MAX_PRESENT)?,
            }),
            12 => Ok(Self::Overdue { millis: r.u64()? }),
            kind => Err(DecodeError::Kind(kind)),
        })
    }
}

/// What a process is told about itself and its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The job, by a random number.
    pub job: u128,
    /// Which process of the job this is.
    pub rank: u32,
    /// How many processes the job has.
    pub size: u32,
    /// Which life of it: 0, then one more with each restart.
    pub incarnation: u32,
    /// The name of this host, as the user gave it.
    pub host: String,
    /// How many hosts the job runs on. With one, no network is needed.
    pub hosts: u32,
    /// Which of them this is, from 0.
    pub number: u32,
    /// Where to listen for other hosts, as the user gave it; empty: the process chooses.
    pub bind: String,
    /// The networks to attach to, in order of preference.
    pub networks: Vec<Network>,
    /// Which hosts share which networks, if some reach others through gateways only; else empty.
    pub spans: Vec<Span>,
    /// The networks that only channels use which programs name.
    pub others: Vec<Network>,
    /// The channels that programs may name.
    pub channels: Vec<Channel>,
    /// How patient agents are with each other: for so long a process must count on one that it cannot reach.
    pub pace: Preset,
    /// Whether to tell over which paths others are reached.
    pub show_paths: bool,
    /// After how long a wait is told to the agent, in milliseconds; 0: never.
    pub overdue_ms: u64,
    /// The name of the cluster.
    pub cluster: String,
    /// The certificate of the job's authority; empty if the job has one host.
    pub authority: Vec<u8>,
}

impl Boot {
    fn encode(&self, w: &mut Writer<'_>) -> Result<(), TooLarge> {
        w.u128(self.job);
        w.u32(self.rank);
        w.u32(self.size);
        w.u32(self.incarnation);
        w.text(&self.host, MAX_HOST)?;
        w.u32(self.hosts);
        w.u32(self.number);
        w.text(&self.bind, MAX_HOST)?;
        Network::encode_all(&self.networks, w)?;
        Span::encode_all(&self.spans, w)?;
        Network::encode_all(&self.others, w)?;
        Channel::encode_all(&self.channels, w)?;
        self.pace.encode(w);
        w.u8(u8::from(self.show_paths));
        w.u64(self.overdue_ms);
        w.text(&self.cluster, MAX_CLUSTER)?;
        w.bytes(&self.authority, MAX_CERTIFICATE)
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let boot = Self {
            job: r.u128()?,
            rank: r.u32()?,
            size: r.u32()?,
            incarnation: r.u32()?,
            host: r.text(MAX_HOST)?,
            hosts: r.u32()?,
            number: r.u32()?,
            bind: r.text(MAX_HOST)?,
            networks: Network::decode_all(r)?,
            spans: Span::decode_all(r)?,
            others: Network::decode_all(r)?,
            channels: Channel::decode_all(r)?,
            pace: Preset::decode(r)?,
            show_paths: flag(r)?,
            overdue_ms: r.u64()?,
            cluster: r.text(MAX_CLUSTER)?,
            authority: r.bytes(MAX_CERTIFICATE)?,
        };
        let is_placed = boot.number < boot.hosts;
        if boot.rank >= boot.size || boot.size > MAX_PROCESSES || !is_placed {
            return Err(DecodeError::Value);
        }
        let has_gateways = !boot.spans.is_empty();
        check_hosts(boot.hosts, boot.size, has_gateways, &boot.authority)?;
        Ok(boot)
    }
}

/// Appends what `encode` writes, or nothing.
fn packet(
    out: &mut Vec<u8>,
    encode: impl FnOnce(&mut Writer<'_>) -> Result<(), TooLarge>,
) -> Result<(), TooLarge> {
    let start = out.len();
    let result = encode(&mut Writer { out });
    if result.is_err() || out.len() - start > MAX_PACKET {
        out.truncate(start);
        return Err(TooLarge);
    }
    Ok(())
}
