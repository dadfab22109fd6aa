//! Frames as bytes (docs/wire.md §2 and §3).
//!
//! A frame is a fixed header and, for some kinds, a payload that reaches to the end of the frame. The two
//! are encoded apart, so that the payload goes from where it lies to the driver in one gathered write;
//! decoding borrows it from the bytes that arrived.

mod header;
mod layout;
mod limits;

pub use crate::kind::FrameKind;
pub use header::HeaderBytes;
pub use limits::{BODY_MAX, FRAME_MAX, HEADER_MAX, PULL_MAX, PUSH_MAX, PUSH_WINDOW};

use zerocopy::IntoBytes;

use crate::ProtocolError;
use crate::credit::Credits;
use crate::id::{BodyId, MailboxId, OfferId, PingToken, ProcessId, StreamId};
use header::{exact, split, zeros};

/// One frame between two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// First in each direction: who speaks, to whom, which version, which windows.
    Hello {
        /// The version of `docs/wire.md`.
        version: u16,
        /// Who speaks.
        from: ProcessId,
        /// Who should be listening.
        to: ProcessId,
        /// What each mailbox of the speaker grants at first.
        window: Credits,
    },
    /// A whole message.
    Post {
        /// The mailbox, of the receiver.
        to: MailboxId,
        /// Who posts, within the sender.
        stream: StreamId,
        /// Head, and body if it has one.
        message: &'a [u8],
    },
    /// A message whose body waits to be asked for.
    Offer {
        /// The mailbox, of the receiver.
        to: MailboxId,
        /// Who posts, within the sender.
        stream: StreamId,
        /// What the answer refers to.
        offer: OfferId,
        /// Bytes in the body.
        body_len: u64,
        /// The head of the message.
        head: &'a [u8],
    },
    /// A message whose body follows without being asked for.
    Push {
        /// The mailbox, of the receiver.
        to: MailboxId,
        /// Who posts, within the sender.
        stream: StreamId,
        /// What its body is called after.
        offer: OfferId,
        /// Bytes in the body.
        body_len: u64,
        /// The head of the message.
        head: &'a [u8],
    },
    /// Pushed bodies were taken.
    Returned {
        /// Of how many bytes.
        bytes: u64,
    },
    /// The receiver has a place for the body of an offer.
    Accept {
        /// The offer.
        offer: OfferId,
        /// What to call the body.
        body: BodyId,
    },
    /// The receiver has a place for some of the body of an offer.
    Pull {
        /// The offer.
        offer: OfferId,
        /// What to call these bytes.
        body: BodyId,
        /// The first of them, from the beginning of the whole body.
        from: u64,
        /// How many.
        len: u32,
    },
    /// The receiver will never ask for the body of an offer, or for no more of it.
    Decline {
        /// The offer.
        offer: OfferId,
    },
    /// The sender would rather not send the body of an offer.
    Retract {
        /// The offer.
        offer: OfferId,
    },
    /// Messages were taken out of a mailbox.
    Credit {
        /// The mailbox, of the frame's sender.
        to: MailboxId,
        /// How many, and of how many bytes.
        credits: Credits,
    },
    /// There is no such mailbox, or no longer.
    Gone {
        /// The mailbox, of the frame's sender.
        mailbox: MailboxId,
    },
    /// Last in a direction: the process leaves.
    Bye,
    /// Are you there?
    Ping {
        /// To be repeated.
        token: PingToken,
    },
    /// I am.
    Pong {
        /// As in the ping.
        token: PingToken,
    },
}

impl<'a> Frame<'a> {
    /// The frame in `bytes`, borrowing its payload (docs/wire.md §2.4).
    ///
    /// # Errors
    /// Why `bytes` are not a frame of this version. No input panics.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ProtocolError> {
        let &first = bytes.first().ok_or(ProtocolError::Empty)?;
        if bytes.len() > FRAME_MAX {
            let len = bytes.len();
            return Err(ProtocolError::FrameTooLong {
                len,
                limit: FRAME_MAX,
            });
        }
        let kind = FrameKind::from_u8(first).ok_or(ProtocolError::UnknownKind { kind: first })?;
        match kind {
            FrameKind::Hello => decode_hello(bytes),
            FrameKind::Post => {
                let (header, message) = split::<layout::Post>(kind, bytes)?;
                zeros(kind, &header.zero)?;
                Ok(Frame::Post {
                    to: MailboxId(header.to.get()),
                    stream: StreamId(header.stream.get()),
                    message,
                })
            }
            FrameKind::Offer | FrameKind::Push => decode_offer(kind, bytes),
            FrameKind::Returned => Ok(Frame::Returned {
                bytes: one_word(kind, bytes)?,
            }),
            FrameKind::Accept => {
                let header = exact::<layout::TwoWords>(kind, bytes)?;
                zeros(kind, &header.zero)?;
                let [offer, body] = header.words;
                Ok(Frame::Accept {
                    offer: OfferId(offer.get()),
                    body: BodyId(body.get()),
                })
            }
            FrameKind::Pull => decode_pull(bytes),
            FrameKind::Credit => {
                let header = exact::<layout::Credit>(kind, bytes)?;
                zeros(kind, &header.zero)?;
                let credits = Credits::new(header.messages.get(), header.bytes.get());
                Ok(Frame::Credit {
                    to: MailboxId(header.to.get()),
                    credits,
                })
            }
            FrameKind::Bye => {
                let header = exact::<layout::Bare>(kind, bytes)?;
                zeros(kind, &header.zero)?;
                Ok(Frame::Bye)
            }
            FrameKind::Decline | FrameKind::Retract => {
                let offer = OfferId(one_word(kind, bytes)?);
                Ok(match kind {
                    FrameKind::Decline => Frame::Decline { offer },
                    _ => Frame::Retract { offer },
                })
            }
            FrameKind::Gone => Ok(Frame::Gone {
                mailbox: MailboxId(one_word(kind, bytes)?),
            }),
            FrameKind::Ping | FrameKind::Pong => {
                let token = PingToken(one_word(kind, bytes)?);
                Ok(match kind {
                    FrameKind::Ping => Frame::Ping { token },
                    _ => Frame::Pong { token },
                })
            }
        }
    }

    /// The fixed part. It does not depend on the payload: a caller whose payload lies in pieces may leave
    /// the field empty here and gather header and pieces itself.
    ///
    /// # Panics
    /// When the caller offers a body outside 1 to [`BODY_MAX`], or pulls nothing: our mistake, not the peer's.
    pub fn header(&self) -> HeaderBytes {
        let kind = self.kind() as u8;
        match *self {
            Frame::Hello {
                version,
                from,
                to,
                window,
            } => HeaderBytes::new(
                layout::Hello {
                    kind,
                    zero: [0],
                    version: version.into(),
                    window_messages: window.messages.into(),
                    window_bytes: window.bytes.into(),
                    from: from.to_u64().into(),
                    to: to.to_u64().into(),
                }
                .as_bytes(),
            ),
            Frame::Post { to, stream, .. } => HeaderBytes::new(
                layout::Post {
                    kind,
                    zero: [0; 3],
                    stream: stream.0.into(),
                    to: to.0.into(),
                }
                .as_bytes(),
            ),
            Frame::Offer {
                to,
                stream,
                offer,
                body_len,
                ..
            }
            | Frame::Push {
                to,
                stream,
                offer,
                body_len,
                ..
            } => {
                assert!(
                    (1..=BODY_MAX).contains(&body_len),
                    "offer of a body of {body_len} bytes"
                );
                HeaderBytes::new(
                    layout::Offer {
                        kind,
                        zero: [0; 3],
                        stream: stream.0.into(),
                        to: to.0.into(),
                        offer: offer.0.into(),
                        body_len: body_len.into(),
                    }
                    .as_bytes(),
                )
            }
            Frame::Accept { offer, body } => HeaderBytes::two_words(kind, [offer.0, body.0]),
            Frame::Pull {
                offer,
                body,
                from,
                len,
            } => {
                assert!(len > 0, "pull of nothing");
                HeaderBytes::new(
                    layout::Pull {
                        kind,
                        zero: [0; 3],
                        len: len.into(),
                        offer: offer.0.into(),
                        body: body.0.into(),
                        from: from.into(),
                    }
                    .as_bytes(),
                )
            }
            Frame::Credit { to, credits } => HeaderBytes::new(
                layout::Credit {
                    kind,
                    zero: [0; 3],
                    messages: credits.messages.into(),
                    to: to.0.into(),
                    bytes: credits.bytes.into(),
                }
                .as_bytes(),
            ),
            Frame::Decline { offer } | Frame::Retract { offer } => {
                HeaderBytes::one_word(kind, offer.0)
            }
            Frame::Gone { mailbox } => HeaderBytes::one_word(kind, mailbox.0),
            Frame::Returned { bytes } => HeaderBytes::one_word(kind, bytes),
            Frame::Bye => HeaderBytes::bare(kind),
            Frame::Ping { token } | Frame::Pong { token } => HeaderBytes::one_word(kind, token.0),
        }
    }

    /// What follows the header; empty for most kinds.
    pub fn payload(&self) -> &'a [u8] {
        match *self {
            Frame::Post { message, .. } => message,
            Frame::Offer { head, .. } | Frame::Push { head, .. } => head,
            _ => &[],
        }
    }

    /// Header and payload in one piece, for a caller that cannot gather.
    pub fn to_vec(&self) -> Vec<u8> {
        [&self.header()[..], self.payload()].concat()
    }

    /// Byte 0 of the frame.
    pub fn kind(&self) -> FrameKind {
        match self {
            Frame::Hello { .. } => FrameKind::Hello,
            Frame::Post { .. } => FrameKind::Post,
            Frame::Offer { .. } => FrameKind::Offer,
            Frame::Push { .. } => FrameKind::Push,
            Frame::Returned { .. } => FrameKind::Returned,
            Frame::Accept { .. } => FrameKind::Accept,
            Frame::Pull { .. } => FrameKind::Pull,
            Frame::Decline { .. } => FrameKind::Decline,
            Frame::Retract { .. } => FrameKind::Retract,
            Frame::Credit { .. } => FrameKind::Credit,
            Frame::Gone { .. } => FrameKind::Gone,
            Frame::Bye => FrameKind::Bye,
            Frame::Ping { .. } => FrameKind::Ping,
            Frame::Pong { .. } => FrameKind::Pong,
        }
    }
}

fn decode_hello(bytes: &[u8]) -> Result<Frame<'_>, ProtocolError> {
    let kind = FrameKind::Hello;
    // A later version may have a longer hello: its number, at a place that never moves (docs/wire.md
    // §9.1), is the better complaint.
    if let Some(&[low, high]) = bytes.get(2..4) {
        let theirs = u16::from_le_bytes([low, high]);
        if theirs != VERSION {
            return Err(ProtocolError::Version {
                ours: VERSION,
                theirs,
            });
        }
    }
    let header = exact::<layout::Hello>(kind, bytes)?;
    zeros(kind, &header.zero)?;
    Ok(Frame::Hello {
        version: header.version.get(),
        from: ProcessId::from_u64(header.from.get()),
        to: ProcessId::from_u64(header.to.get()),
        window: Credits::new(header.window_messages.get(), header.window_bytes.get()),
    })
}

fn decode_offer(kind: FrameKind, bytes: &[u8]) -> Result<Frame<'_>, ProtocolError> {
    let (header, head) = split::<layout::Offer>(kind, bytes)?;
    zeros(kind, &header.zero)?;
    let (len, pushed) = (header.body_len.get(), kind == FrameKind::Push);
    let limit = if pushed { PUSH_MAX } else { BODY_MAX };
    if !(1..=limit).contains(&len) {
        return Err(ProtocolError::BodyLength { len, limit });
    }
    let (to, stream) = (MailboxId(header.to.get()), StreamId(header.stream.get()));
    let (offer, body_len) = (OfferId(header.offer.get()), len);
    Ok(if pushed {
        Frame::Push {
            to,
            stream,
            offer,
            body_len,
            head,
        }
    } else {
        Frame::Offer {
            to,
            stream,
            offer,
            body_len,
            head,
        }
    })
}

fn decode_pull(bytes: &[u8]) -> Result<Frame<'_>, ProtocolError> {
    let kind = FrameKind::Pull;
    let header = exact::<layout::Pull>(kind, bytes)?;
    zeros(kind, &header.zero)?;
    let (offer, from, len) = (
        OfferId(header.offer.get()),
        header.from.get(),
        header.len.get(),
    );
    // Where the body ends only the link knows.
    if len == 0 || len > PULL_MAX || from >= BODY_MAX {
        return Err(ProtocolError::PullRange { offer, from, len });
    }
    Ok(Frame::Pull {
        offer,
        body: BodyId(header.body.get()),
        from,
        len,
    })
}

fn one_word(kind: FrameKind, bytes: &[u8]) -> Result<u64, ProtocolError> {
    let header = exact::<layout::OneWord>(kind, bytes)?;
    zeros(kind, &header.zero)?;
    Ok(header.word.get())
}

/// The version of `docs/wire.md` that this crate speaks (docs/wire.md §9.1).
pub const VERSION: u16 = 7;

/// Whether the bytes of a frame begin as those of a message do: [`Frame::Post`], [`Frame::Offer`] or [`Frame::Push`].
pub fn is_message(frame: &[u8]) -> bool {
    let kind = frame.first();
    [FrameKind::Post, FrameKind::Offer, FrameKind::Push]
        .iter()
        .any(|message| kind == Some(&(*message as u8)))
}

/// Whether the bytes of a frame begin as those of a message that is whole in it do: [`Frame::Post`].
pub fn is_post(frame: &[u8]) -> bool {
    frame.first() == Some(&(FrameKind::Post as u8))
}

/// The header of a [`Frame::Post`].
pub const POST_HEADER: usize = size_of::<layout::Post>();

/// The header of a [`Frame::Offer`].
pub const OFFER_HEADER: usize = size_of::<layout::Offer>();
