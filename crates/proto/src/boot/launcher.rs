//! What the launcher and an agent say to each other: frames of a byte stream.

use super::codec::{Reader, frame};
use super::network::flag;
use super::{
    Condition, DecodeError, FRAME_HEADER, MAX_ERROR, MAX_FRAME, MAX_LOCATOR, MAX_OUTPUT,
    MAX_PASSED, MAX_PRESENT, MAX_WAITING, Progress, Start, TOPOLOGY_PAGE, TooLarge, Unreachable,
};

/// From the launcher to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToAgent {
    /// Start these processes. The first frame, and there is one.
    Start(Box<Start>),
    /// Pass this signal to your processes.
    Signal {
        /// Its number.
        number: u8,
        /// Who got it already.
        origin: SignalOrigin,
    },
    /// The answer to [`Locate`](FromAgent::Locate).
    Located {
        /// Who was asked for.
        rank: u32,
        /// Which life of it.
        incarnation: u32,
        /// Where it listens.
        locator: String,
    },
    /// The other answer to [`Locate`](FromAgent::Locate).
    Unreachable {
        /// Who was asked for.
        rank: u32,
        /// Why.
        reason: Unreachable,
    },
    /// Where the agent of the first host, which is the root of the job, listens: the answer to its
    /// [`Listening`](FromAgent::Listening), to all other agents.
    Root {
        /// Where.
        locator: String,
    },
    /// What another agent said, in its [`Pass`](FromAgent::Pass).
    Passed {
        /// The number of its host.
        from: u32,
        /// What it said.
        bytes: Vec<u8>,
    },
    /// The agent of this host is gone: nothing is passed on to it.
    NotPassed {
        /// The number of its host.
        to: u32,
    },
    /// To the root: a signal that asks programs to end came, and is passed on as [`Signal`](Self::Signal) when the root's
    /// [`News`](FromAgent::News) say so.
    Interrupt {
        /// Its number.
        number: u8,
    },
    /// End all your processes, report their ends, then end yourself.
    Stop {
        /// What the launcher returns.
        code: u8,
    },
    /// The answer to [`AskTopology`](FromAgent::AskTopology).
    Topology {
        /// Who asked.
        rank: u32,
        /// Where the page begins.
        from: u32,
        /// How long all of it is.
        total: u32,
        /// The page: at most [`TOPOLOGY_PAGE`] bytes of a [`Topology`](super::Topology).
        bytes: Vec<u8>,
    },
    /// Have your processes say who waits, and say how they are. Answered by one [`Present`](FromAgent::Present) for each, and then
    /// [`Called`](FromAgent::Called).
    RollCall {
        /// Which one.
        call: u32,
    },
    /// You may send so many bytes of [`Output`](FromAgent::Output) more, besides the [`OUTPUT_ROOM`](super::OUTPUT_ROOM)
    /// that you had in the beginning. Everything else you may always send.
    Room {
        /// How many more.
        bytes: u32,
    },
}

impl ToAgent {
    /// Appends the frame, with its header, to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        frame(out, |w| match self {
            Self::Start(start) => {
                w.u8(1);
                start.encode(w)
            }
            Self::Signal { number, origin } => {
                w.u8(2);
                w.u8(*number);
                w.u8(match origin {
                    SignalOrigin::Terminal => 1,
                    SignalOrigin::Process => 2,
                });
                Ok(())
            }
            Self::Located {
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
            Self::Root { locator } => {
                w.u8(5);
                w.text(locator, MAX_LOCATOR)
            }
            Self::Interrupt { number } => {
                w.raw(&[6, *number]);
                Ok(())
            }
            Self::Stop { code } => {
                w.raw(&[8, *code]);
                Ok(())
            }
            Self::Room { bytes } => {
                w.u8(9);
                w.u32(*bytes);
                Ok(())
            }
            Self::Passed { from, bytes } => {
                w.u8(10);
                w.u32(*from);
                w.bytes(bytes, MAX_PASSED)
            }
            Self::NotPassed { to } => {
                w.u8(11);
                w.u32(*to);
                Ok(())
            }
            Self::Topology {
                rank,
                from,
                total,
                bytes,
            } => {
                w.u8(12);
                w.u32(*rank);
                w.u32(*from);
                w.u32(*total);
                w.bytes(bytes, TOPOLOGY_PAGE)
            }
            Self::RollCall { call } => {
                w.u8(13);
                w.u32(*call);
                Ok(())
            }
        })
    }

    /// Reads the content of a frame.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(content, MAX_FRAME, |r| match r.u8()? {
            1 => Ok(Self::Start(Box::new(Start::decode(r)?))),
            2 => {
                let number = r.u8()?;
                let origin = match r.u8()? {
                    1 => SignalOrigin::Terminal,
                    2 => SignalOrigin::Process,
                    kind => return Err(DecodeError::Kind(kind)),
                };
                Ok(Self::Signal { number, origin })
            }
            3 => Ok(Self::Located {
                rank: r.u32()?,
                incarnation: r.u32()?,
                locator: r.text(MAX_LOCATOR)?,
            }),
            4 => Ok(Self::Unreachable {
                rank: r.u32()?,
                reason: r.unreachable()?,
            }),
            5 => Ok(Self::Root {
                locator: r.text(MAX_LOCATOR)?,
            }),
            6 => Ok(Self::Interrupt { number: r.u8()? }),
            8 => Ok(Self::Stop { code: r.u8()? }),
            9 => Ok(Self::Room { bytes: r.u32()? }),
            10 => Ok(Self::Passed {
                from: r.u32()?,
                bytes: r.bytes(MAX_PASSED)?,
            }),
            11 => Ok(Self::NotPassed { to: r.u32()? }),
            12 => Ok(Self::Topology {
                rank: r.u32()?,
                from: r.u32()?,
                total: r.u32()?,
                bytes: r.bytes(TOPOLOGY_PAGE)?,
            }),
            13 => Ok(Self::RollCall { call: r.u32()? }),
            kind => Err(DecodeError::Kind(kind)),
        })
    }
}

/// From an agent to the launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromAgent {
    /// I am here. The first frame.
    Hello {
        /// The agent's [`VERSION`](super::VERSION).
        version: u32,
    },
    /// A process wrote this: whole lines, or the end of what it wrote, or a part of a line longer than [`MAX_OUTPUT`].
    Output {
        /// Who.
        rank: u32,
        /// Where to.
        stream: Stream,
        /// What.
        bytes: Vec<u8>,
    },
    /// A process was started.
    Started {
        /// Who.
        rank: u32,
        /// Which life of it.
        incarnation: u32,
        /// Its number on its host.
        pid: u32,
    },
    /// A process listens.
    Ready {
        /// Who.
        rank: u32,
        /// Which life of it.
        incarnation: u32,
        /// Where.
        locator: String,
    },
    /// A process says that one of its calls waits for long.
    Waiting {
        /// Who: its life is the one that was started last.
        rank: u32,
        /// What it said in [`Waiting`](super::FromProcess::Waiting).
        text: String,
    },
    /// A process reached another.
    Path {
        /// Who.
        rank: u32,
        /// What it said in [`Path`](super::FromProcess::Path).
        text: String,
    },
    /// How far a map of a process is.
    Progress {
        /// Who: its life is the one that was started last.
        rank: u32,
        /// What it said in [`Progress`](super::FromProcess::Progress).
        progress: Progress,
    },
    /// One of my processes wants to reach this one, of another host.
    Locate {
        /// Whom.
        rank: u32,
        /// Which life of it at least: a later one than was heard of is waited for.
        incarnation: u32,
    },
    /// A process of mine wants to know who is where: a page, from here on.
    AskTopology {
        /// Who.
        rank: u32,
        /// Where the page begins.
        from: u32,
    },
    /// How a process of mine is.
    Present {
        /// In which roll-call.
        call: u32,
        /// Who.
        rank: u32,
        /// Which life of it.
        incarnation: u32,
        /// As the operating system sees it.
        condition: Condition,
        /// What it said in [`Present`](super::FromProcess::Present); none if it did not answer in time.
        present: Option<Vec<u8>>,
    },
    /// All of my processes have been told of in this roll-call.
    Called {
        /// In which one.
        call: u32,
    },
    /// A process has waited for long.
    Overdue {
        /// Who.
        rank: u32,
        /// How long, in milliseconds.
        millis: u64,
    },
    /// I am the root, and other agents reach me there. Only in a job of several hosts.
    Listening {
        /// Where.
        locator: String,
    },
    /// I am the root, and this was decided.
    News {
        /// What: `membership::News`, encoded.
        news: Vec<u8>,
    },
    /// I am the root, and alive. Said with each beat in a job of several hosts.
    Pulse,
    /// Tell the agent of this host: we share no network. Answered by [`NotPassed`](ToAgent::NotPassed) if it is gone.
    Pass {
        /// The number of its host.
        to: u32,
        /// What: `membership::Spoken`, encoded.
        bytes: Vec<u8>,
    },
    /// I may not let my processes run any more, and end them.
    Fenced {
        /// Why: what follows "host h1", without a full stop. At most [`MAX_WAITING`] bytes.
        text: String,
    },
    /// I cannot go on: a sentence for the user. My processes are ended.
    Error {
        /// The sentence.
        text: String,
    },
}

impl FromAgent {
    /// Appends the frame, with its header, to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        frame(out, |w| match self {
            Self::Hello { version } => {
                w.u8(1);
                w.raw(&HELLO);
                w.u32(*version);
                Ok(())
            }
            Self::Output {
                rank,
                stream,
                bytes,
            } => {
                w.u8(2);
                w.u32(*rank);
                w.u8(match stream {
                    Stream::Out => 1,
                    Stream::Err => 2,
                });
                w.bytes(bytes, MAX_OUTPUT)
            }
            Self::Started {
                rank,
                incarnation,
                pid,
            } => {
                w.u8(3);
                w.life(*rank, *incarnation)?;
                w.u32(*pid);
                Ok(())
            }
            Self::Ready {
                rank,
                incarnation,
                locator,
            } => {
                w.u8(5);
                w.life(*rank, *incarnation)?;
                w.text(locator, MAX_LOCATOR)
            }
            Self::Locate { rank, incarnation } => {
                w.u8(6);
                w.life(*rank, *incarnation)
            }
            Self::Error { text } => {
                w.u8(7);
                w.text(text, MAX_ERROR)
            }
            Self::Pass { to, bytes } => {
                w.u8(15);
                w.u32(*to);
                w.bytes(bytes, MAX_PASSED)
            }
            Self::AskTopology { rank, from } => {
                w.u8(16);
                w.u32(*rank);
                w.u32(*from);
                Ok(())
            }
            Self::Present {
                call,
                rank,
                incarnation,
                condition,
                present,
            } => {
                w.u8(17);
                w.u32(*call);
                w.life(*rank, *incarnation)?;
                condition.encode(w);
                w.u8(u8::from(present.is_some()));
                match present {
                    Some(present) => w.bytes(present, MAX_PRESENT),
                    None => Ok(()),
                }
            }
            Self::Called { call } => {
                w.u8(18);
                w.u32(*call);
                Ok(())
            }
            Self::Overdue { rank, millis } => {
                w.u8(19);
                w.u32(*rank);
                w.u64(*millis);
                Ok(())
            }
            Self::Listening { locator } => {
                w.u8(8);
                w.text(locator, MAX_LOCATOR)
            }
            Self::Waiting { rank, text } => {
                w.u8(9);
                w.u32(*rank);
                w.text(text, MAX_WAITING)
            }
            Self::Path { rank, text } => {
                w.u8(10);
                w.u32(*rank);
                w.text(text, MAX_WAITING)
            }
            Self::News { news } => {
                w.u8(11);
                w.bytes(news, MAX_FRAME)
            }
            Self::Pulse => {
                w.u8(13);
                Ok(())
            }
            Self::Fenced { text } => {
                w.u8(14);
                w.text(text, MAX_WAITING)
            }
            Self::Progress { rank, progress } => {
                w.u8(12);
                w.u32(*rank);
                progress.encode(w)
            }
        })
    }

    /// Reads the content of a frame.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(content, MAX_FRAME, |r| match r.u8()? {
            1 => {
                if r.array()? != HELLO {
                    return Err(DecodeError::Value);
                }
                Ok(Self::Hello { version: r.u32()? })
            }
            2 => {
                let rank = r.u32()?;
                let stream = match r.u8()? {
                    1 => Stream::Out,
                    2 => Stream::Err,
                    kind => return Err(DecodeError::Kind(kind)),
                };
                Ok(Self::Output {
                    rank,
                    stream,
                    bytes: r.bytes(MAX_OUTPUT)?,
                })
            }
            3 => Ok(Self::Started {
                rank: r.u32()?,
                incarnation: r.u32()?,
                pid: r.u32()?,
            }),
            5 => Ok(Self::Ready {
                rank: r.u32()?,
                incarnation: r.u32()?,
                locator: r.text(MAX_LOCATOR)?,
            }),
            6 => Ok(Self::Locate {
                rank: r.u32()?,
                incarnation: r.u32()?,
            }),
            7 => Ok(Self::Error {
                text: r.text(MAX_ERROR)?,
            }),
            8 => Ok(Self::Listening {
                locator: r.text(MAX_LOCATOR)?,
            }),
            9 => Ok(Self::Waiting {
                rank: r.u32()?,
                text: r.text(MAX_WAITING)?,
            }),
            10 => Ok(Self::Path {
                rank: r.u32()?,
                text: r.text(MAX_WAITING)?,
            }),
            11 => Ok(Self::News {
                news: r.bytes(MAX_FRAME)?,
            }),
            13 => Ok(Self::Pulse),
            15 => Ok(Self::Pass {
                to: r.u32()?,
                bytes: r.bytes(MAX_PASSED)?,
            }),
            16 => Ok(Self::AskTopology {
                rank: r.u32()?,
                from: r.u32()?,
            }),
            17 => Ok(Self::Present {
                call: r.u32()?,
                rank: r.u32()?,
                incarnation: r.u32()?,
                condition: Condition::decode(r)?,
                present: match flag(r)? {
                    true => Some(r.bytes(MAX_PRESENT)?),
                    false => None,
                },
            }),
            18 => Ok(Self::Called { call: r.u32()? }),
            19 => Ok(Self::Overdue {
                rank: r.u32()?,
                millis: r.u64()?,
            }),
            14 => Ok(Self::Fenced {
                text: r.text(MAX_WAITING)?,
            }),
            12 => Ok(Self::Progress {
                rank: r.u32()?,
                progress: Progress::decode(r)?,
            }),
            kind => Err(DecodeError::Kind(kind)),
        })
    }
}

/// Where a process wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Its standard output.
    Out,
    /// Its standard error.
    Err,
}

/// Where a signal to the launcher came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalOrigin {
    /// A key: the terminal sent it to all processes of its foreground group.
    Terminal,
    /// A process sent it to the launcher alone.
    Process,
}

/// Cuts the first frame off a stream: its content, and how many bytes of the stream it took.
///
/// `None` if it has not arrived completely.
///
/// # Errors
///
/// [`DecodeError::Limit`] if its length exceeds [`MAX_FRAME`]: the stream is not one of frames.
pub fn split_frame(stream: &[u8]) -> Result<Option<(&[u8], usize)>, DecodeError> {
    let Some((header, rest)) = stream.split_first_chunk::<FRAME_HEADER>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_le_bytes(*header)).map_err(|_| DecodeError::Limit)?;
    if length > MAX_FRAME {
        return Err(DecodeError::Limit);
    }
    Ok(rest
        .get(..length)
        .map(|content| (content, FRAME_HEADER + length)))
}

/// Follows the kind of the first frame of an agent, so that a greeting of the remote shell is not taken for one.
const HELLO: [u8; 6] = *b"mizzen";
