//! Calls to a service. The first side calls; the second serves, and its own thread only waits for the end of each run, asleep: the
//! workers answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::Context;
use mizzen::{
    Borrowed, Call, Client, Deck, Mailbox, MailboxRef, Message, RawClient, Request, Service,
};

use crate::bench::carrier::Carrier;

/// What the first side does in a round.
pub(crate) trait Caller {
    fn call(&mut self) -> anyhow::Result<()>;

    fn call_many(&mut self, calls: u64) -> anyhow::Result<()> {
        (0..calls).try_for_each(|_| self.call())
    }

    fn mark(&mut self, mark: u64);
    fn marked(&self) -> u64;
}

/// The side that calls.
pub(crate) struct Calling<C> {
    caller: C,
    server: MailboxRef,
}

impl<C: Caller> Calling<C> {
    /// `server` learns there that a run is over.
    pub(crate) fn new(caller: C, server: MailboxRef) -> Self {
        Self { caller, server }
    }

    fn end(&self) -> anyhow::Result<()> {
        Ok(self.server.send(&0u8)?)
    }
}

impl<C: Caller> Carrier for Calling<C> {
    fn send(&mut self) -> anyhow::Result<()> {
        self.serve(1)
    }

    // The answer has come when the call returns.
    fn receive(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.caller.mark(mark);
    }

    fn marked(&self) -> u64 {
        self.caller.marked()
    }

    fn serve(&mut self, rounds: u64) -> anyhow::Result<()> {
        self.caller.call_many(rounds)?;
        self.end()
    }

    fn serve_timed(&mut self, rounds: u64, times: &mut Vec<f64>) -> anyhow::Result<()> {
        let mut before = Instant::now();
        for _ in 0..rounds {
            self.caller.call()?;
            let now = Instant::now();
            times.push((now - before).as_nanos() as f64 / 2.0);
            before = now;
        }
        self.end()
    }
}

/// The side that serves.
pub(crate) struct Serving {
    _service: Service,
    inbox: Mailbox,
    /// What the last call carried.
    mark: Arc<AtomicU64>,
}

impl Carrier for Serving {
    fn send(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        self.inbox.receive::<u8>()?;
        Ok(())
    }

    fn mark(&mut self, _: u64) {}

    fn marked(&self) -> u64 {
        self.mark.load(Ordering::Relaxed)
    }

    fn answer(&mut self, _: u64) -> anyhow::Result<()> {
        self.receive()
    }
}

/// What the first call of a measurement is marked with, less one. An empty call has no room for a mark: calls are counted.
const BEFORE: u64 = 0x59;

/// Calls a typed function of nothing that returns nothing.
pub(crate) struct Empty {
    client: Client<(), ()>,
    in_flight: usize,
    calls: u64,
}

impl Empty {
    pub(crate) fn calling(deck: &Deck, in_flight: u32) -> anyhow::Result<Self> {
        Ok(Self {
            client: deck.client_at(1, "empty")?,
            in_flight: in_flight as usize,
            calls: BEFORE,
        })
    }

    pub(crate) fn serving(deck: &Deck, inbox: Mailbox) -> anyhow::Result<Serving> {
        let mark = Arc::new(AtomicU64::new(BEFORE));
        let calls = Arc::clone(&mark);
        let _service = deck.serve("empty", move |()| {
            // Counted without a lock: the figures of interest are of one caller, and of one serving thread.
            calls.store(calls.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        })?;
        Ok(Serving {
            _service,
            inbox,
            mark,
        })
    }
}

impl Caller for Empty {
    #[inline]
    fn call(&mut self) -> anyhow::Result<()> {
        self.calls += 1;
        Ok(self.client.call(&())?)
    }

    fn call_many(&mut self, calls: u64) -> anyhow::Result<()> {
        if self.in_flight == 0 {
            return (0..calls).try_for_each(|_| self.call());
        }
        let mut under_way: VecDeque<Call<()>> = VecDeque::with_capacity(self.in_flight);
        for _ in 0..calls {
            if under_way.len() == self.in_flight {
                if let Some(call) = under_way.pop_front() {
                    self.client.wait(call)?;
                }
            }
            under_way.push_back(self.client.start(&())?);
        }
        self.calls += calls;
        for call in under_way {
            self.client.wait(call)?;
        }
        Ok(())
    }

    fn mark(&mut self, _: u64) {}

    fn marked(&self) -> u64 {
        self.calls
    }
}

/// Calls with a body whose size is in the message: into memory that the service makes, and back into the caller's.
pub(crate) struct Bodies {
    client: RawClient,
    body: Vec<u8>,
}

impl Bodies {
    pub(crate) fn calling(deck: &Deck, size: usize) -> anyhow::Result<Self> {
        Ok(Self {
            client: deck.raw_client_at(1, &format!("bodies of {size}"))?,
            body: vec![1; size],
        })
    }

    pub(crate) fn serving(deck: &Deck, inbox: Mailbox, size: usize) -> anyhow::Result<Serving> {
        let mark = Arc::new(AtomicU64::new(0));
        let (seen, inner) = (Arc::clone(&mark), deck.clone());
        let _service = deck.serve_raw(&format!("bodies of {size}"), move |request| {
            // A caller that gets no answer says why.
            let _ = echo(&inner, request, &seen);
        })?;
        Ok(Serving {
            _service,
            inbox,
            mark,
        })
    }
}

/// Reads the size, makes memory, has the body put there, and sends it back from there.
fn echo(deck: &Deck, request: Request, mark: &AtomicU64) -> mizzen::Result<()> {
    let (mut incoming, reply) = request.open();
    let size: u64 = incoming.unpack_express()?;
    let mut body = deck.lend_unzeroed::<u8>(size as usize)?;
    incoming.unpack_cheaper(&mut body[..])?;
    incoming.finish()?;
    mark.store(u64::from(body[0]), Ordering::Relaxed);
    reply.send(Message::new().pack_cheaper(&body[..]));
    Ok(())
}

impl Caller for Bodies {
    fn call(&mut self) -> anyhow::Result<()> {
        let size = self.body.len() as u64;
        let mut request = Message::new();
        request.pack_cheaper(&size).pack_cheaper(&self.body[..]);
        let mut answer = self.client.call(&mut request)?;
        drop(request);
        answer.unpack_cheaper(&mut self.body[..])?;
        answer.finish()?;
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.body[0] = mark as u8;
    }

    fn marked(&self) -> u64 {
        u64::from(self.body[0])
    }
}

/// Calls that lend a buffer, made in the round, and get another one that was made there.
pub(crate) struct Buffers {
    deck: Deck,
    client: Client<(), ()>,
    size: usize,
    mark: u8,
}

impl Buffers {
    pub(crate) fn calling(deck: &Deck, size: usize) -> anyhow::Result<Self> {
        Ok(Self {
            deck: deck.clone(),
            client: deck.client_at(1, &format!("buffers of {size}"))?,
            size,
            mark: 0,
        })
    }

    pub(crate) fn serving(deck: &Deck, inbox: Mailbox, size: usize) -> anyhow::Result<Serving> {
        let mark = Arc::new(AtomicU64::new(0));
        let (seen, lender) = (Arc::clone(&mark), deck.clone());
        let answer = move |(): (), given: Borrowed<u8>| {
            seen.store(u64::from(given[0]), Ordering::Relaxed);
            let mut own = lender.lend_unzeroed::<u8>(given.len()).ok();
            if let Some(own) = &mut own {
                own[0] = given[0];
            }
            ((), own)
        };
        let _service = deck.serve_lent(&format!("buffers of {size}"), answer)?;
        Ok(Serving {
            _service,
            inbox,
            mark,
        })
    }
}

impl Caller for Buffers {
    fn call(&mut self) -> anyhow::Result<()> {
        let mut buffer = self.deck.lend_unzeroed::<u8>(self.size)?;
        buffer[0] = self.mark;
        let ((), answer) = self.client.call_lent::<u8>(&(), buffer)?;
        let answer = answer.context("the service could not lend a buffer")?;
        self.mark = answer[0];
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.mark = mark as u8;
    }

    fn marked(&self) -> u64 {
        u64::from(self.mark)
    }
}
