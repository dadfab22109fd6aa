//! A sending thread: most messages are posted plainly, the others as every other kind of operation, some of them given up.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use fastrand::Rng;
use mizzen::{Deck, Error, MailboxRef, Message, PostError, Sender};
use mizzen_checks::checksum;

use super::plan::{HEADER, Kind, Plan};

/// The most posts of one scope.
const SCOPE: usize = 16;

/// Either way of sending. There is no order between the two, so a thread keeps to one.
enum Way {
    Lane(Sender),
    Post(MailboxRef),
}

/// How the next message is posted.
enum Turn {
    Plain,
    /// With a deadline that passes soon, and then again.
    Deadline,
    Awaited,
    /// Awaited, and given up if that does not end at once; then again.
    GivenUp,
    /// So many of a scope, all under way.
    Scope(usize),
}

impl Turn {
    fn new(random: &mut Rng, way: &Way) -> Self {
        match (random.u8(..64), way) {
            (0..4, _) => Self::Deadline,
            (4..8, _) => Self::Awaited,
            (8..12, _) => Self::GivenUp,
            (12, Way::Post(_)) => Self::Scope(random.usize(1..=SCOPE)),
            _ => Self::Plain,
        }
    }
}

pub(super) fn send(deck: &Deck, pool: &[u8], sender: u64, each: u64) -> anyhow::Result<()> {
    let address = deck.fetch("integrity")?;
    let mut way = if sender % 2 == 0 {
        Way::Lane(address.sender()?)
    } else {
        Way::Post(address)
    };
    // What a message is, both sides know; how it is posted, only this one.
    let (mut random, mut turns) = (Rng::with_seed(sender), Rng::with_seed(!sender));
    let mut whole = Vec::new();
    let mut number = 0;
    while number < each {
        let left = each - number;
        let mut next = || {
            number += 1;
            Numbered::new(&mut random, pool, sender << 40 | (number - 1))
        };
        match (Turn::new(&mut turns, &way), &mut way) {
            (Turn::Scope(count), Way::Post(address)) => {
                let count = left.min(count as u64);
                let numbered: Vec<_> = (0..count).map(|_| next()).collect();
                let wholes: Vec<_> = numbered.iter().map(Numbered::whole).collect();
                deck.scope(|scope| {
                    for (numbered, whole) in numbered.iter().zip(&wholes) {
                        // Some are waited for here, the others by the scope.
                        let posted = scope.post(address, numbered.message(deck, whole)?);
                        if turns.u8(..8) == 0 {
                            posted.wait()?;
                        }
                    }
                    Ok::<_, Error>(())
                })?;
            }
            (Turn::Scope(_) | Turn::Plain, way) => {
                let numbered = next();
                numbered.write_whole(&mut whole);
                way.post(&mut numbered.message(deck, &whole)?)?;
            }
            (Turn::Deadline, way) => {
                let numbered = next();
                numbered.write_whole(&mut whole);
                let mut message = numbered.message(deck, &whole)?;
                match way.post_timeout(&mut message, Duration::from_micros(20)) {
                    Err(Error::Post(PostError::TimedOut { .. })) => way.post(&mut message)?,
                    outcome => outcome?,
                }
            }
            (Turn::Awaited, way) => {
                smol::block_on(way.post_async(next().owned(deck)?))?;
            }
            (Turn::GivenUp, way) => {
                let numbered = next();
                if !way.post_or_give_up(numbered.owned(deck)?)? {
                    numbered.write_whole(&mut whole);
                    way.post(&mut numbered.message(deck, &whole)?)?;
                }
            }
        }
    }
    Ok(())
}

impl Way {
    fn post(&mut self, message: &mut Message<'_>) -> mizzen::Result<()> {
        match self {
            Self::Lane(sender) => sender.post(message),
            Self::Post(address) => address.post(message),
        }
    }

    fn post_timeout(&mut self, message: &mut Message<'_>, most: Duration) -> mizzen::Result<()> {
        match self {
            Self::Lane(sender) => sender.post_timeout(message, most),
            Self::Post(address) => address.post_timeout(message, most),
        }
    }

    async fn post_async(&mut self, message: Message<'static>) -> mizzen::Result<()> {
        match self {
            Self::Lane(sender) => sender.post_async(message).await,
            Self::Post(address) => address.post_async(message).await,
        }
    }

    /// Whether the message was posted; if not at once, it was not.
    fn post_or_give_up(&mut self, message: Message<'static>) -> mizzen::Result<bool> {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(self.post_async(message)).poll(&mut context) {
            Poll::Ready(outcome) => outcome.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }
}

/// A message before it is packed.
struct Numbered<'a> {
    header: [u64; 2],
    payload: &'a [u8],
    kind: Kind,
}

impl<'a> Numbered<'a> {
    fn new(random: &mut Rng, pool: &'a [u8], name: u64) -> Self {
        let plan = Plan::new(random);
        let payload = &pool[plan.start..plan.start + plan.len];
        Self {
            header: [name, checksum(payload, name)],
            payload,
            kind: plan.kind,
        }
    }

    /// Header and payload in one piece, if they are sent so.
    fn write_whole(&self, whole: &mut Vec<u8>) {
        whole.clear();
        if self.kind == Kind::Whole {
            whole.reserve(HEADER + self.payload.len());
            whole.extend(self.header.iter().flat_map(|word| word.to_ne_bytes()));
            whole.extend_from_slice(self.payload);
        }
    }

    fn whole(&self) -> Vec<u8> {
        let mut whole = Vec::new();
        self.write_whole(&mut whole);
        whole
    }

    fn message<'m>(&self, deck: &Deck, whole: &'m [u8]) -> mizzen::Result<Message<'m>>
    where
        'a: 'm,
    {
        let mut message = Message::new();
        match self.kind {
            Kind::Whole => message.pack_cheaper(whole),
            Kind::Pieces => message.pack_safer(&self.header).pack_cheaper(self.payload),
            Kind::Lent => self.lend(deck, &mut message)?,
        };
        Ok(message)
    }

    /// The same with nothing borrowed.
    fn owned(&self, deck: &Deck) -> mizzen::Result<Message<'static>> {
        let mut message = Message::new();
        match self.kind {
            Kind::Whole => message.pack_safer(&self.whole()[..]),
            Kind::Pieces => message.pack_safer(&self.header).pack_safer(self.payload),
            Kind::Lent => self.lend(deck, &mut message)?,
        };
        Ok(message)
    }

    fn lend<'p, 'm>(
        &self,
        deck: &Deck,
        message: &'p mut Message<'m>,
    ) -> mizzen::Result<&'p mut Message<'m>> {
        let mut lent = deck.lend::<u8>(self.payload.len())?;
        lent.copy_from_slice(self.payload);
        Ok(message.pack_safer(&self.header).pack_lent(lent))
    }
}
