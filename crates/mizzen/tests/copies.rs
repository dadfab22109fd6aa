//! What is long is not copied: bodies of calls, and buffers that are handed on.
//!
//! The body of a call lies nowhere but at its caller and where the function unpacks it; between processes of a host it passes
//! through chunks of the arena, which are memory of the path and not of the message, and between hosts through the socket.
//!
//! All allocations of this program that are as long as a good part of a body are counted. Alone in its file: the count is of the
//! whole process.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mizzen::{Deck, Message, RawClient, Request, Result};

/// Longer than any memory that the paths have for themselves: slabs of the arena, buffers of sockets.
const BODY: usize = 12 << 20;
const LONG: usize = BODY / 2;
const CALLS: usize = 20;

struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static LONG_ONES: AtomicUsize = AtomicUsize::new(0);

fn note(len: usize) {
    if len >= LONG && COUNTS.load(Ordering::Relaxed) {
        LONG_ONES.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        note(len);
        // SAFETY: as above.
        unsafe { System.realloc(old, layout, len) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes memory for the body when its length is known, and sends it back from there.
fn echo(request: Request) -> Result<()> {
    let (mut incoming, reply) = request.open();
    let len: u64 = incoming.unpack_express()?;
    let mut body = vec![0u8; len as usize];
    incoming.unpack_cheaper(&mut body[..])?;
    incoming.finish()?;
    body[0] += 1;
    reply.send(Message::new().pack_cheaper(&body[..]));
    Ok(())
}

fn call(client: &mut RawClient, body: &mut [u8]) -> Result<()> {
    let len = body.len() as u64;
    let mut request = Message::new();
    request.pack_cheaper(&len).pack_cheaper(&*body);
    let mut answer = client.call(&mut request)?;
    drop(request);
    answer.unpack_cheaper(body)?;
    answer.finish()?;
    Ok(())
}

fn one_job(deck: &Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    if deck.rank() == 0 {
        let _service = deck.serve_raw("echo", |request| echo(request).unwrap_or_default())?;
        deck.bind("end", &inbox)?;
        inbox.receive::<u8>()?;
        return Ok(());
    }
    let mut client = deck.raw_client("echo")?;
    let mut body = vec![0u8; BODY];
    for _ in 0..5 {
        call(&mut client, &mut body)?;
    }
    LONG_ONES.store(0, Ordering::Relaxed);
    COUNTS.store(true, Ordering::Relaxed);
    for _ in 0..CALLS {
        call(&mut client, &mut body)?;
    }
    COUNTS.store(false, Ordering::Relaxed);
    assert_eq!(usize::from(body[0]), 5 + CALLS);
    let counted = LONG_ONES.load(Ordering::Relaxed);
    assert_eq!(counted, CALLS, "one for each call: the function's own");
    deck.fetch("end")?.send(&0u8)?;
    Ok(())
}

/// Frames through three ranks, and how often something as long was made meanwhile.
fn one_chain(deck: Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    let rank = deck.rank().0;
    deck.bind(&format!("frames {rank}"), &inbox)?;
    let next = deck.fetch(&format!("frames {}", (rank + 1) % 3))?;
    deck.set_lending_limit(2 * BODY.next_power_of_two());
    let send = |number: usize| -> Result<()> {
        let mut frame = deck.lend_unzeroed::<u8>(BODY)?;
        frame[BODY - 1] = number as u8;
        next.post_lent(&(number as u64), frame)
    };
    // Both buffers are made, and known to all, before it counts.
    let first = 4;
    for number in 0..first + CALLS {
        if rank == 0 {
            if number == first {
                LONG_ONES.store(0, Ordering::Relaxed);
                COUNTS.store(true, Ordering::Relaxed);
            }
            send(number)?;
        }
        let (found, frame) = inbox.receive_lent::<u64, u8>()?;
        assert_eq!((found, frame[BODY - 1]), (number as u64, number as u8));
        if rank != 0 {
            next.post_lent(&found, frame)?;
        }
    }
    if rank == 0 {
        COUNTS.store(false, Ordering::Relaxed);
        assert_eq!(LONG_ONES.load(Ordering::Relaxed), 0);
    }
    let is_copied = |row: &&mizzen::CounterRow| row.name == "bytes_copied";
    let copied: u64 = deck
        .counters()
        .iter()
        .filter(is_copied)
        .map(|row| row.value)
        .sum();
    assert_eq!(copied, 0, "at rank {rank}");
    deck.finish()
}

/// One after the other: the count is of the whole process.
#[test]
fn nothing_is_made_or_copied_for_what_is_handed_on_and_for_calls_only_by_the_function() {
    mizzen::local(3, one_chain).unwrap();
    nothing_as_long_as_a_body_is_made_but_by_the_function();
}

fn nothing_as_long_as_a_body_is_made_but_by_the_function() {
    mizzen::local(2, |deck| one_job(&deck)).unwrap();
    mizzen::local_over_tcp(2, |deck| one_job(&deck)).unwrap();
}
