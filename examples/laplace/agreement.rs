//! Agreement of all workers on one value, such as the largest change of a cell anywhere.
//!
//! Everyone tells worker 0, which combines what it hears and answers everyone. Whoever has the answer knows that all have
//! come this far.

use mizzen::zerocopy::{Immutable, IntoBytes};
use mizzen::{Deck, Mailbox, Message, Plain, Rank, Result, Sender};

use super::neighbours::Place;

const NAME: &str = "laplace: agreement";
/// What worker 0 answers when it knows all.
const KNOWN: u8 = 1;

pub(crate) struct Agreement {
    inbox: Mailbox,
    /// Worker 0: the paths to all others. The others: the path to worker 0.
    others: Vec<Sender>,
    collects: bool,
}

impl Agreement {
    pub(crate) fn join(deck: &Deck, place: Place) -> Result<Self> {
        let inbox = deck.mailbox()?;
        let collects = place.worker == 0;
        let mut others = Vec::new();
        if collects {
            for worker in 1..place.workers {
                inbox.depend_on(place.rank_of(worker));
            }
            deck.bind(NAME, &inbox)?;
            for _ in 1..place.workers {
                others.push(inbox.retrieve()?.unpack_mailbox()?.sender()?);
            }
        } else {
            inbox.depend_on(Rank(0));
            let mut collector = deck.fetch(NAME)?.sender()?;
            collector.post(Message::new().pack_mailbox(&inbox.address()))?;
            others.push(collector);
        }
        // Nobody speaks of values before all are known, or worker 0 would take a value for an address.
        if collects {
            others.iter_mut().try_for_each(|other| other.send(&KNOWN))?;
        } else {
            inbox.receive::<u8>()?;
        }
        Ok(Self {
            inbox,
            others,
            collects,
        })
    }

    /// What `combine` makes of everyone's value, in any order.
    pub(crate) fn on<T>(&mut self, value: T, combine: impl Fn(T, T) -> T) -> Result<T>
    where
        T: Plain + IntoBytes + Immutable,
    {
        if !self.collects {
            self.others[0].send(&value)?;
            return self.inbox.receive();
        }
        let mut agreed = value;
        for _ in 0..self.others.len() {
            agreed = combine(agreed, self.inbox.receive()?);
        }
        for other in &mut self.others {
            other.send(&agreed)?;
        }
        Ok(agreed)
    }
}
