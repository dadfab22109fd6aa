//! Filling the memory of cheaper pieces in steps: what `finish` does, by whoever comes along, without waiting.

use core::marker::PhantomData;

use mizzen_driver::PartMut;

use super::coming::zeroed;
use super::unpack::Incoming;
use crate::error::{Result, UnpackError};
use crate::message::Payload;
use crate::operations::{STEP_BYTES, Stepped, Steps, stepped};

/// A message whose cheaper pieces are filled as it comes.
pub(crate) struct Finishing<'m> {
    /// Without cheaper pieces: these are in `rest`.
    incoming: Incoming<'static>,
    rest: Rest<'m>,
}

/// What is to be filled yet.
enum Rest<'m> {
    /// A message that comes by and by: its pieces in their order, and how much of the first is filled.
    Stream {
        pieces: Vec<(usize, &'m mut [u8])>,
        next: usize,
        filled: usize,
    },
    /// A body that comes as a whole.
    Body(Body<'m>),
    Nothing,
}

/// A body on its way. The driver writes into memory of the pieces, and of ours: it is not touched before the body has ended.
struct Body<'m> {
    _pieces: PhantomData<&'m mut [u8]>,
    _skipped: Vec<Vec<u8>>,
    /// If it cannot come straight into place: all of it, from where in the message, and where it goes then.
    whole: Option<Whole<'m>>,
}

struct Whole<'m> {
    bytes: Vec<u8>,
    from: usize,
    pieces: Vec<(usize, &'m mut [u8])>,
}

impl<'m> Finishing<'m> {
    /// Begins to fill. What is here already may be filled at once.
    pub(crate) fn new(mut incoming: Incoming<'m>) -> Result<Self, UnpackError> {
        let rest = match &mut incoming.payload {
            Payload::Stream(stream) => {
                stream.read_once();
                let pieces = core::mem::take(&mut incoming.pending);
                let mut pieces: Vec<_> = pieces.into_iter().collect();
                pieces.sort_by_key(|(at, target)| (*at, target.len()));
                Rest::Stream {
                    pieces,
                    next: 0,
                    filled: 0,
                }
            }
            Payload::Offered(_) => start_body(&mut incoming)?,
            payload => {
                for (at, target) in core::mem::take(&mut incoming.pending) {
                    payload.copy_out(at, target);
                }
                Rest::Nothing
            }
        };
        Ok(Self {
            incoming: incoming.without_pending(),
            rest,
        })
    }

    fn advance(&mut self) -> Result<Option<bool>, UnpackError> {
        match &mut self.rest {
            Rest::Stream {
                pieces,
                next,
                filled,
            } => {
                let Payload::Stream(stream) = &mut self.incoming.payload else {
                    return Ok(Some(true));
                };
                let mut left = STEP_BYTES;
                let mut moved = false;
                while *next < pieces.len() && left > 0 {
                    let (before, from_here) = pieces.split_at_mut(*next);
                    let (at, target) = &mut from_here[0];
                    // A piece that was unpacked twice comes once.
                    if let Some((same, full)) = before.last().filter(|_| *filled == 0) {
                        if same == at && full.len() == target.len() {
                            target.copy_from_slice(full);
                            *next += 1;
                            continue;
                        }
                    }
                    let most = target.len().min(*filled + left);
                    let now = stream.copy_here(*at + *filled, &mut target[*filled..most]);
                    *filled += now;
                    left -= now;
                    if *filled == target.len() {
                        (*next, *filled, moved) = (*next + 1, 0, true);
                    } else if now > 0 {
                        moved = true;
                    } else if !stream.look()? {
                        return Ok(moved.then_some(false));
                    }
                }
                Ok(Some(*next == pieces.len()))
            }
            Rest::Body(body) => {
                let Payload::Offered(offered) = &mut self.incoming.payload else {
                    return Ok(Some(true));
                };
                let Some(received) = offered.poll_received() else {
                    return Ok(None);
                };
                let whole = body.whole.take();
                self.rest = Rest::Nothing;
                received?;
                if let Some(whole) = whole {
                    for (at, target) in whole.pieces {
                        // One that a strange sender cut in two begins with the announcement.
                        let here = whole.from.saturating_sub(at).min(target.len());
                        let (head, tail) = target.split_at_mut(here);
                        if here > 0 {
                            self.incoming.payload.copy_out(at, head);
                        }
                        let from = (at + here).saturating_sub(whole.from);
                        tail.copy_from_slice(&whole.bytes[from..from + tail.len()]);
                    }
                }
                Ok(Some(true))
            }
            Rest::Nothing => Ok(Some(true)),
        }
    }
}

/// Asks for the body of a message, straight into place where that can be.
fn start_body<'m>(incoming: &mut Incoming<'m>) -> Result<Rest<'m>, UnpackError> {
    let mut pieces = incoming.fill_from_head();
    if pieces.is_empty() {
        // Dropping it declines the body.
        return Ok(Rest::Nothing);
    }
    let skipped = incoming.skipped(&pieces)?;
    if skipped.is_none() && incoming.stream_odd() {
        return Ok(Rest::Stream {
            pieces,
            next: 0,
            filled: 0,
        });
    }
    let (from, len) = (incoming.payload.here(), incoming.payload.len());
    let Payload::Offered(offered) = &mut incoming.payload else {
        return Ok(Rest::Nothing);
    };
    let Some(mut skipped) = skipped else {
        let mut bytes = zeroed(len - from)?;
        offered.start_receiving(vec![PartMut::of(&mut bytes)])?;
        let whole = Whole {
            bytes,
            from,
            pieces,
        };
        return Ok(Rest::Body(Body {
            _pieces: PhantomData,
            _skipped: Vec::new(),
            whole: Some(whole),
        }));
    };
    let mut parts = Vec::with_capacity(pieces.len() * 2 + 1);
    for (skipped, (_, target)) in skipped.iter_mut().zip(&mut pieces) {
        parts.push(PartMut::of(skipped));
        parts.push(PartMut::of(target));
    }
    parts.extend(skipped.last_mut().map(|last| PartMut::of(last)));
    offered.start_receiving(parts)?;
    Ok(Rest::Body(Body {
        _pieces: PhantomData,
        _skipped: skipped,
        whole: None,
    }))
}

impl Steps for Finishing<'_> {
    type Outcome = Result<()>;

    fn step(&mut self) -> Stepped {
        stepped(self.advance())
    }

    fn waits_for(&self) -> String {
        format!(
            "for the rest of a message of rank {}",
            self.incoming.source()
        )
    }

    fn waits_for_whom(&self) -> Option<u32> {
        Some(self.incoming.source().0)
    }

    fn moved(&self) -> u64 {
        match (&self.rest, &self.incoming.payload) {
            (
                Rest::Stream {
                    pieces,
                    next,
                    filled,
                },
                _,
            ) => {
                let full = pieces.iter().take(*next).map(|(_, target)| target.len());
                (full.sum::<usize>() + filled) as u64
            }
            (Rest::Body(_), Payload::Offered(offered)) => offered.received() as u64,
            _ => 0,
        }
    }
}

impl Drop for Finishing<'_> {
    /// The memory is its owner's again afterwards.
    fn drop(&mut self) {
        if let (Rest::Body(_), Payload::Offered(offered)) = (&self.rest, &mut self.incoming.payload)
        {
            offered.stop_receiving();
        }
    }
}
