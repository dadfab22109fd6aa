//! What is long is not copied: bodies of calls, and buffers that are handed on.
//!
//! The body of a call lies nowhere but at its caller and where the function unpacks it; between processes of a host it passes
//! through chunks of the arena, which are memory of the path and not of the message, and between hosts through the socket.
//!
//! The same is true of a message for a posted receive, once its sender has it: it lies in the memory that was posted and nowhere else.
//!
//! All allocations of this program that are as long as a good part of a body are counted. Alone in its file: the count is of the
//! whole process.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mizzen::{Deck, Message, RawClient, Request, Result};

/// Longer than any memory that the paths have for themselves: slabs of the arena, buffers of sockets.
const BODY: usize = 12 << 20;
const LONG: usize = BODY / 2;
const CALLS: usize = 20;
/// Receives that are counted, and those before them.
const RECEIVES: usize = 6;
const FIRST_RECEIVES: usize = 3;

struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static LONG_ONES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Whether this thread makes copies of its own, which are not counted.
    static IS_EXEMPT: Cell<bool> = const { Cell::new(false) };
}

/// The count is of one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn note(len: usize) {
    if len >= LONG && COUNTS.load(Ordering::Relaxed) && !IS_EXEMPT.get() {
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

/// Rank 0 receives into one and the same memory, with a thread or as a task. Its sender may copy what is not asked for soon.
fn receive_again_and_again(deck: &Deck) -> Result<()> {
    let inbox = deck.mailbox()?;
    if deck.rank() == 1 {
        deck.bind("go on", &inbox)?;
        let address = deck.fetch("inbox")?;
        let body = vec![7u8; BODY];
        IS_EXEMPT.set(true);
        for _ in 0..FIRST_RECEIVES + RECEIVES {
            inbox.receive::<u8>()?;
            address.send(&body[..])?;
        }
        return inbox.receive::<u8>().map(drop);
    }
    deck.bind("inbox", &inbox)?;
    let go_on = deck.fetch("go on")?;
    let mut memory = vec![0u8; BODY];
    for number in 0..FIRST_RECEIVES + RECEIVES {
        if number == FIRST_RECEIVES {
            LONG_ONES.store(0, Ordering::Relaxed);
            COUNTS.store(true, Ordering::Relaxed);
        }
        memory.fill(0);
        let mut receive = inbox.post_receive(memory);
        go_on.send(&0u8)?;
        let received = match number % 3 {
            0 => receive.wait()?,
            1 => receive.wait_timeout(std::time::Duration::MAX)?,
            _ => smol::block_on(receive)?,
        };
        assert!(received.iter().all(|byte| *byte == 7));
        memory = received.into_memory();
    }
    COUNTS.store(false, Ordering::Relaxed);
    let counted = LONG_ONES.load(Ordering::Relaxed);
    assert_eq!(counted, 0, "only what was posted is as long as a body");
    go_on.send(&0u8)
}

#[test]
fn nothing_as_long_as_a_message_is_made_for_a_posted_receive() {
    let _alone = ALONE.lock();
    mizzen::local(2, |deck| receive_again_and_again(&deck)).unwrap();
    mizzen::local_over_tcp(2, |deck| receive_again_and_again(&deck)).unwrap();
}

#[test]
fn nothing_is_made_or_copied_for_what_is_handed_on() {
    let _alone = ALONE.lock();
    mizzen::local(3, one_chain).unwrap();
}

#[test]
fn nothing_as_long_as_a_body_is_made_but_by_the_function() {
    let _alone = ALONE.lock();
    mizzen::local(2, |deck| one_job(&deck)).unwrap();
    mizzen::local_over_tcp(2, |deck| one_job(&deck)).unwrap();
}
