//! Names, and the frames that ask and answer about them (docs/wire.md §7).

use std::fmt;

use zerocopy::IntoBytes;

use super::header::{exact, split, zeros};
use super::{FrameKind, HeaderBytes, NAME_MAX, layout};
use crate::id::{Address, MailboxId, ProcessId, RequestId};
use crate::{NameFault, ProtocolError};

/// A valid name: 1 to [`NAME_MAX`] bytes of UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    /// `name`, checked.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(name: &'a str) -> Result<Self, NameFault> {
        match name.len() {
            0 => Err(NameFault::Empty),
            len if len > NAME_MAX => Err(NameFault::TooLong {
                len,
                limit: NAME_MAX,
            }),
            _ => Ok(Self(name)),
        }
    }

    /// `name`, which is the text of a valid one.
    pub(crate) fn checked_before(name: &'a str) -> Self {
        debug_assert!(Self::new(name).is_ok());
        Self(name)
    }

    /// The name as text.
    pub fn as_str(self) -> &'a str {
        self.0
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// How long a found address may be used without asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// For this fetch only: the holder has no room to remember who must be told.
    Once,
    /// Until the holder says forget, or the owner is gone.
    UntilForgotten,
}

/// Why a holder did not do what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameRefusal {
    /// It has no room for another name.
    #[error("the name holder is full")]
    NamesFull,
    /// It has no room for another fetch that waits.
    #[error("too many fetches wait at the name holder")]
    WaitersFull,
    /// The process to bind is gone, or has a later life.
    #[error("the process to bind is gone")]
    OwnerGone,
}

/// A question to the holder of a name, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameFrame<'a> {
    /// Let `name` mean `address`.
    Bind {
        /// Repeated in the answer: bound, conflict or refused.
        request: RequestId,
        /// The name.
        name: Name<'a>,
        /// What it is to mean.
        address: Address,
    },
    /// Let `name` no longer mean `address`; nothing happens if it does not. No answer.
    Unbind {
        /// The name.
        name: Name<'a>,
        /// What it should mean now.
        address: Address,
    },
    /// What does `name` mean? Answered when somebody binds it.
    Fetch {
        /// Repeated in the answer: found or refused.
        request: RequestId,
        /// The name.
        name: Name<'a>,
    },
    /// The fetch is no longer of interest. No answer.
    Cancel {
        /// The fetch.
        request: RequestId,
        /// Its name.
        name: Name<'a>,
    },
    /// The name means what was asked for.
    Bound {
        /// The bind.
        request: RequestId,
    },
    /// The name belongs to another process.
    Conflict {
        /// The bind.
        request: RequestId,
        /// What the name means.
        holder: Address,
    },
    /// The holder did not do it.
    Refused {
        /// The bind or fetch.
        request: RequestId,
        /// Why not.
        reason: NameRefusal,
    },
    /// What the name means.
    Found {
        /// The fetch.
        request: RequestId,
        /// What it means.
        address: Address,
        /// For how long.
        keep: Keep,
    },
    /// What you remember of `name` is no longer true.
    Forget {
        /// The name.
        name: Name<'a>,
    },
}

impl<'a> NameFrame<'a> {
    pub(super) fn decode(kind: FrameKind, bytes: &'a [u8]) -> Result<Self, ProtocolError> {
        match kind {
            FrameKind::Bind => {
                let (header, name) = split::<layout::Addressed>(kind, bytes)?;
                zeros(kind, &[header.selector])?;
                let (request, address) = addressed(kind, header)?;
                let name = text(kind, name)?;
                Ok(NameFrame::Bind {
                    request,
                    name,
                    address,
                })
            }
            FrameKind::Conflict => {
                let header = exact::<layout::Addressed>(kind, bytes)?;
                zeros(kind, &[header.selector])?;
                let (request, holder) = addressed(kind, header)?;
                Ok(NameFrame::Conflict { request, holder })
            }
            FrameKind::Found => {
                let header = exact::<layout::Addressed>(kind, bytes)?;
                let (request, address) = addressed(kind, header)?;
                let keep = match header.selector {
                    0 => Keep::Once,
                    1 => Keep::UntilForgotten,
                    value => return Err(unknown(kind, "keep", value)),
                };
                Ok(NameFrame::Found {
                    request,
                    address,
                    keep,
                })
            }
            FrameKind::Unbind => {
                let (header, name) = split::<layout::TwoWords>(kind, bytes)?;
                zeros(kind, &header.zero)?;
                let [process, mailbox] = header.words;
                let address = Address {
                    process: ProcessId::from_u64(process.get()),
                    mailbox: MailboxId(mailbox.get()),
                };
                let name = text(kind, name)?;
                Ok(NameFrame::Unbind { name, address })
            }
            FrameKind::Fetch => {
                let (request, name) = requested(kind, bytes)?;
                Ok(NameFrame::Fetch { request, name })
            }
            FrameKind::Cancel => {
                let (request, name) = requested(kind, bytes)?;
                Ok(NameFrame::Cancel { request, name })
            }
            FrameKind::Bound => {
                let header = exact::<layout::OneWord>(kind, bytes)?;
                zeros(kind, &header.zero)?;
                let request = RequestId(header.word.get());
                Ok(NameFrame::Bound { request })
            }
            FrameKind::Refused => {
                let header = exact::<layout::Selected>(kind, bytes)?;
                zeros(kind, &header.zero)?;
                let reason = match header.selector {
                    1 => NameRefusal::NamesFull,
                    2 => NameRefusal::WaitersFull,
                    3 => NameRefusal::OwnerGone,
                    value => return Err(unknown(kind, "reason", value)),
                };
                let request = RequestId(header.request.get());
                Ok(NameFrame::Refused { request, reason })
            }
            FrameKind::Forget => {
                let (header, name) = split::<layout::Bare>(kind, bytes)?;
                zeros(kind, &header.zero)?;
                let name = text(kind, name)?;
                Ok(NameFrame::Forget { name })
            }
            other => Err(ProtocolError::UnknownKind { kind: other as u8 }),
        }
    }

    pub(super) fn header(&self) -> HeaderBytes {
        let kind = self.kind() as u8;
        match *self {
            NameFrame::Bind {
                request, address, ..
            } => addressed_header(kind, 0, request, address),
            NameFrame::Conflict { request, holder } => addressed_header(kind, 0, request, holder),
            NameFrame::Found {
                request,
                address,
                keep,
            } => {
                let selector = match keep {
                    Keep::Once => 0,
                    Keep::UntilForgotten => 1,
                };
                addressed_header(kind, selector, request, address)
            }
            NameFrame::Unbind { address, .. } => {
                HeaderBytes::two_words(kind, [address.process.to_u64(), address.mailbox.0])
            }
            NameFrame::Fetch { request, .. }
            | NameFrame::Cancel { request, .. }
            | NameFrame::Bound { request } => HeaderBytes::one_word(kind, request.0),
            NameFrame::Refused { request, reason } => HeaderBytes::new(
                layout::Selected {
                    kind,
                    selector: match reason {
                        NameRefusal::NamesFull => 1,
                        NameRefusal::WaitersFull => 2,
                        NameRefusal::OwnerGone => 3,
                    },
                    zero: [0; 6],
                    request: request.0.into(),
                }
                .as_bytes(),
            ),
            NameFrame::Forget { .. } => HeaderBytes::bare(kind),
        }
    }

    pub(super) fn payload(&self) -> &'a [u8] {
        match *self {
            NameFrame::Bind { name, .. }
            | NameFrame::Unbind { name, .. }
            | NameFrame::Fetch { name, .. }
            | NameFrame::Cancel { name, .. }
            | NameFrame::Forget { name } => name.as_str().as_bytes(),
            NameFrame::Bound { .. }
            | NameFrame::Conflict { .. }
            | NameFrame::Refused { .. }
            | NameFrame::Found { .. } => &[],
        }
    }

    pub(super) fn kind(&self) -> FrameKind {
        match self {
            NameFrame::Bind { .. } => FrameKind::Bind,
            NameFrame::Unbind { .. } => FrameKind::Unbind,
            NameFrame::Fetch { .. } => FrameKind::Fetch,
            NameFrame::Cancel { .. } => FrameKind::Cancel,
            NameFrame::Bound { .. } => FrameKind::Bound,
            NameFrame::Conflict { .. } => FrameKind::Conflict,
            NameFrame::Refused { .. } => FrameKind::Refused,
            NameFrame::Found { .. } => FrameKind::Found,
            NameFrame::Forget { .. } => FrameKind::Forget,
        }
    }
}

fn addressed(
    kind: FrameKind,
    header: &layout::Addressed,
) -> Result<(RequestId, Address), ProtocolError> {
    zeros(kind, &header.zero)?;
    let address = Address {
        process: ProcessId::from_u64(header.process.get()),
        mailbox: MailboxId(header.mailbox.get()),
    };
    Ok((RequestId(header.request.get()), address))
}

fn addressed_header(kind: u8, selector: u8, request: RequestId, address: Address) -> HeaderBytes {
    HeaderBytes::new(
        layout::Addressed {
            kind,
            selector,
            zero: [0; 6],
            request: request.0.into(),
            process: address.process.to_u64().into(),
            mailbox: address.mailbox.0.into(),
        }
        .as_bytes(),
    )
}

fn requested(kind: FrameKind, bytes: &[u8]) -> Result<(RequestId, Name<'_>), ProtocolError> {
    let (header, name) = split::<layout::OneWord>(kind, bytes)?;
    zeros(kind, &header.zero)?;
    Ok((RequestId(header.word.get()), text(kind, name)?))
}

fn text(kind: FrameKind, name: &[u8]) -> Result<Name<'_>, ProtocolError> {
    let text = std::str::from_utf8(name).map_err(|_| NameFault::NotText);
    text.and_then(Name::new)
        .map_err(|fault| ProtocolError::Name { kind, fault })
}

fn unknown(kind: FrameKind, field: &'static str, value: u8) -> ProtocolError {
    ProtocolError::UnknownValue { kind, field, value }
}
