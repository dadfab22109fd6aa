//! Bytes of the frames.

mod values;

use std::sync::Arc;

use super::{
    Answer, Frame, MAX_HANDED, MAX_NEAR, NAME_MAX, Outcome, Patience, Question, Record, Refusal,
    Said, View, Wish,
};
use crate::boot::codec::{Reader, Writer};
use crate::boot::{DecodeError, MAX_PACKET, TooLarge};
use crate::id::{MailboxId, RequestId};
use crate::membership::codec::values::{agent, put_agent};
use crate::membership::{Epoch, MAX_NAMES_FRAME};
use values::{address, bound, flag, name, number, put_address, put_bound, put_name, put_number};

/// A handover of the longest names is the longest frame.
const _: () = assert!(MAX_HANDED * (NAME_MAX + 40) + 64 <= MAX_NAMES_FRAME);

impl Frame {
    /// Appends it to `out`, without a header: [`Spoken`](crate::membership::Spoken) takes it along.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is to be thrown away.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        let w = &mut Writer { out };
        put_agent(w, self.from);
        put_agent(w, self.to);
        w.u64(self.epoch.0);
        w.u64(self.view.0);
        w.u64(self.sequence);
        put_said(w, &self.said)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(content: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(content, MAX_NAMES_FRAME, |r| {
            Ok(Self {
                from: agent(r)?,
                to: agent(r)?,
                epoch: Epoch(r.u64()?),
                view: View(r.u64()?),
                sequence: r.u64()?,
                said: said(r)?,
            })
        })
    }
}

impl Question {
    /// Appends the packet to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is as it was.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        let start = out.len();
        let written = put_question(&mut Writer { out }, self);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    /// Reads a packet.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(packet: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(packet, MAX_PACKET, question)
    }
}

impl Answer {
    /// Appends the packet to `out`.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], and `out` is to be thrown away.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), TooLarge> {
        let w = &mut Writer { out };
        match self {
            Self::Done { request, outcome } => {
                w.u8(1);
                w.u64(request.0);
                put_outcome(w, *outcome);
            }
            Self::Found { request, bound } => {
                w.u8(2);
                w.u64(request.0);
                put_bound(w, *bound);
            }
            Self::Free { request } => {
                w.u8(3);
                w.u64(request.0);
            }
            Self::Near { request, names } => {
                w.u8(4);
                w.u64(request.0);
                if names.len() > MAX_NEAR {
                    return Err(TooLarge);
                }
                w.count(names.len())?;
                for name in names {
                    put_name(w, name)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a packet.
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn decode(packet: &[u8]) -> Result<Self, DecodeError> {
        Reader::whole(packet, MAX_PACKET, |r| {
            let kind = r.u8()?;
            let request = RequestId(r.u64()?);
            Ok(match kind {
                1 => Self::Done {
                    request,
                    outcome: outcome(r)?,
                },
                2 => Self::Found {
                    request,
                    bound: bound(r)?,
                },
                3 => Self::Free { request },
                4 => Self::Near {
                    request,
                    names: near(r)?,
                },
                kind => return Err(DecodeError::Kind(kind)),
            })
        })
    }
}

fn put_question(w: &mut Writer<'_>, question: &Question) -> Result<(), TooLarge> {
    match question {
        Question::Bind {
            request,
            name,
            mailbox,
        } => {
            w.u8(1);
            w.u64(request.0);
            w.u64(mailbox.0);
            put_name(w, name)
        }
        Question::Unbind {
            request,
            name,
            mailbox,
        } => {
            w.u8(2);
            w.u64(request.0);
            w.u64(mailbox.0);
            put_name(w, name)
        }
        Question::Read {
            request,
            name,
            patience,
        } => {
            w.u8(3);
            w.u64(request.0);
            put_patience(w, *patience);
            put_name(w, name)
        }
        Question::Near { request, name } => {
            w.u8(5);
            w.u64(request.0);
            put_name(w, name)
        }
        Question::Cancel { request } => {
            w.u8(4);
            w.u64(request.0);
            Ok(())
        }
    }
}

fn question(r: &mut Reader<'_>) -> Result<Question, DecodeError> {
    let kind = r.u8()?;
    let request = RequestId(r.u64()?);
    Ok(match kind {
        1 => Question::Bind {
            request,
            mailbox: MailboxId(r.u64()?),
            name: name(r)?,
        },
        2 => Question::Unbind {
            request,
            mailbox: MailboxId(r.u64()?),
            name: name(r)?,
        },
        3 => Question::Read {
            request,
            patience: patience(r)?,
            name: name(r)?,
        },
        4 => Question::Cancel { request },
        5 => Question::Near {
            request,
            name: name(r)?,
        },
        kind => return Err(DecodeError::Kind(kind)),
    })
}

fn put_said(w: &mut Writer<'_>, said: &Said) -> Result<(), TooLarge> {
    match said {
        Said::Hand { number, records } => {
            w.u8(1);
            w.u64(*number);
            if records.len() > MAX_HANDED {
                return Err(TooLarge);
            }
            w.count(records.len())?;
            for record in records {
                put_name(w, &record.name)?;
                put_bound(w, record.bound);
            }
        }
        Said::Handed { number } => {
            w.u8(2);
            w.u64(*number);
        }
        Said::Ready => w.u8(3),
        Said::Established => w.u8(4),
        Said::Read {
            name,
            patience,
            stamp,
        } => {
            w.u8(5);
            put_name(w, name)?;
            put_patience(w, *patience);
            w.u64(*stamp);
        }
        Said::Withdraw { name } => {
            w.u8(6);
            put_name(w, name)?;
        }
        Said::Change {
            name,
            request,
            oldest,
            wish,
            address,
        } => {
            w.u8(7);
            put_name(w, name)?;
            w.u64(*request);
            w.u64(*oldest);
            w.u8(match wish {
                Wish::Bind => 1,
                Wish::Unbind => 2,
            });
            put_address(w, *address);
        }
        Said::Found {
            name,
            bound,
            stamp,
            leased,
        } => {
            w.u8(8);
            put_name(w, name)?;
            put_bound(w, *bound);
            w.u64(*stamp);
            w.u8((*leased).into());
        }
        Said::Free { name, stamp } => {
            w.u8(9);
            put_name(w, name)?;
            w.u64(*stamp);
        }
        Said::Full { name } => {
            w.u8(10);
            put_name(w, name)?;
        }
        Said::Changed {
            name,
            request,
            outcome,
        } => {
            w.u8(11);
            put_name(w, name)?;
            w.u64(*request);
            put_outcome(w, *outcome);
        }
        Said::Revoke { name, round } => {
            w.u8(12);
            put_name(w, name)?;
            w.u64(*round);
        }
        Said::Revoked { name, round } => {
            w.u8(13);
            put_name(w, name)?;
            w.u64(*round);
        }
        Said::Copy { name, round, bound } => {
            w.u8(14);
            put_name(w, name)?;
            w.u64(*round);
            w.u8(bound.is_some().into());
            if let Some(bound) = bound {
                put_bound(w, *bound);
            }
        }
        Said::Copied { name, round } => {
            w.u8(15);
            put_name(w, name)?;
            w.u64(*round);
        }
    }
    Ok(())
}

fn said(r: &mut Reader<'_>) -> Result<Said, DecodeError> {
    Ok(match r.u8()? {
        1 => Said::Hand {
            number: r.u64()?,
            records: records(r)?,
        },
        2 => Said::Handed { number: r.u64()? },
        3 => Said::Ready,
        4 => Said::Established,
        5 => Said::Read {
            name: name(r)?,
            patience: patience(r)?,
            stamp: r.u64()?,
        },
        6 => Said::Withdraw { name: name(r)? },
        7 => Said::Change {
            name: name(r)?,
            request: r.u64()?,
            oldest: r.u64()?,
            wish: match r.u8()? {
                1 => Wish::Bind,
                2 => Wish::Unbind,
                kind => return Err(DecodeError::Kind(kind)),
            },
            address: address(r)?,
        },
        8 => Said::Found {
            name: name(r)?,
            bound: bound(r)?,
            stamp: r.u64()?,
            leased: flag(r)?,
        },
        9 => Said::Free {
            name: name(r)?,
            stamp: r.u64()?,
        },
        10 => Said::Full { name: name(r)? },
        11 => Said::Changed {
            name: name(r)?,
            request: r.u64()?,
            outcome: outcome(r)?,
        },
        12 => Said::Revoke {
            name: name(r)?,
            round: r.u64()?,
        },
        13 => Said::Revoked {
            name: name(r)?,
            round: r.u64()?,
        },
        14 => Said::Copy {
            name: name(r)?,
            round: r.u64()?,
            bound: if flag(r)? { Some(bound(r)?) } else { None },
        },
        15 => Said::Copied {
            name: name(r)?,
            round: r.u64()?,
        },
        kind => return Err(DecodeError::Kind(kind)),
    })
}

fn near(r: &mut Reader<'_>) -> Result<Vec<Arc<str>>, DecodeError> {
    let names = r.list(name)?;
    if names.len() > MAX_NEAR {
        return Err(DecodeError::Limit);
    }
    Ok(names)
}

fn records(r: &mut Reader<'_>) -> Result<Vec<Record>, DecodeError> {
    let records = r.list(|r| {
        Ok(Record {
            name: name(r)?,
            bound: bound(r)?,
        })
    })?;
    if records.len() > MAX_HANDED {
        return Err(DecodeError::Limit);
    }
    Ok(records)
}

fn put_outcome(w: &mut Writer<'_>, outcome: Outcome) {
    match outcome {
        Outcome::Bound(number) => {
            w.u8(1);
            put_number(w, number);
        }
        Outcome::Unbound(None) => w.u8(2),
        Outcome::Unbound(Some(number)) => {
            w.u8(3);
            put_number(w, number);
        }
        Outcome::Taken(owner) => {
            w.u8(4);
            put_address(w, owner);
        }
        Outcome::Refused(why) => {
            w.u8(5);
            w.u8(match why {
                Refusal::NamesFull => 1,
                Refusal::WaitingFull => 2,
                Refusal::OwnerGone => 3,
                Refusal::QuestionsFull => 4,
            });
        }
    }
}

fn outcome(r: &mut Reader<'_>) -> Result<Outcome, DecodeError> {
    Ok(match r.u8()? {
        1 => Outcome::Bound(number(r)?),
        2 => Outcome::Unbound(None),
        3 => Outcome::Unbound(Some(number(r)?)),
        4 => Outcome::Taken(address(r)?),
        5 => Outcome::Refused(match r.u8()? {
            1 => Refusal::NamesFull,
            2 => Refusal::WaitingFull,
            3 => Refusal::OwnerGone,
            4 => Refusal::QuestionsFull,
            kind => return Err(DecodeError::Kind(kind)),
        }),
        kind => return Err(DecodeError::Kind(kind)),
    })
}

fn put_patience(w: &mut Writer<'_>, patience: Patience) {
    w.u8(match patience {
        Patience::Wait => 1,
        Patience::Look => 2,
    });
}

fn patience(r: &mut Reader<'_>) -> Result<Patience, DecodeError> {
    Ok(match r.u8()? {
        1 => Patience::Wait,
        2 => Patience::Look,
        kind => return Err(DecodeError::Kind(kind)),
    })
}
