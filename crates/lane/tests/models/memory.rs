//! Memory that two sides use: blocks, loans, manifests and chunk streams.

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use mizzen_lane::{
    Arena, Begun, Block, Borrower, Ending, Filling, Lender, Loan, LoanTicket, NoBlock, NoMore,
    Offer, Purpose, Receiver, Region, Returns, Revocations, SlabId, StreamIn, Written,
};

use crate::{Heap, model};

const PEER: u32 = 7;

/// An arena, and its one borrower at both sides.
struct Pair {
    arena: Arc<Arena<Heap>>,
    borrower: Arc<Borrower<Heap>>,
    lender: Arc<Lender>,
}

impl Pair {
    fn new() -> Self {
        let blocks = Arena::<Heap>::MAX_BLOCKS;
        let returns = Returns::new(Region::heap(Returns::bytes(blocks)), blocks);
        let revoked = Region::heap(Revocations::bytes(blocks));
        let revocations = Revocations::new(revoked, blocks);
        Self {
            arena: Arc::new(Arena::new(Heap)),
            borrower: Arc::new(Borrower::new(PEER, returns.clone(), revocations.clone())),
            // SAFETY: tickets are used once, with the slab they name.
            lender: Arc::new(unsafe { Lender::new(returns, revocations) }),
        }
    }

    fn both(&self) -> Self {
        Self {
            arena: Arc::clone(&self.arena),
            borrower: Arc::clone(&self.borrower),
            lender: Arc::clone(&self.lender),
        }
    }

    fn slab(&self, slab: u32) -> Region {
        let known = self.arena.slab(SlabId(slab));
        known.expect("a slab with a block in use is there")
    }

    fn borrow(&self, ticket: LoanTicket) -> Loan {
        let loan = self.lender.borrow(self.slab(ticket.slab), ticket);
        loan.expect("the block lies inside its slab")
    }

    /// Hands over so many blocks of one byte each, their numbers.
    fn lend_bytes(&self, count: u8, announced: &Announced) {
        for number in 0..count {
            let mut block = self.take();
            block.fill(&[[number]]);
            announced.tell(block.ticket());
            self.borrower.hand_over(&self.arena, block);
        }
    }

    /// Reads them at the other end; so many were announced before.
    fn read_bytes(&self, count: u8, before: usize, announced: &Announced) {
        for number in 0..count {
            let loan = self.borrow(announced.take(before + usize::from(number)));
            let mut byte = [9];
            loan.copy_out(0, &mut byte);
            assert_eq!(byte, [number]);
        }
    }

    fn take(&self) -> Block<Heap> {
        let taken = Block::take(&self.arena, 1, Purpose::Lend);
        taken.unwrap().expect("there is memory")
    }

    /// Sends a message of these bytes to a peer that always reads.
    fn send(&self, bytes: &[u8], announced: &Announced) {
        let mut filling = self.begin(bytes.len());
        announced.tell(filling.ticket());
        filling.write(bytes, &Always).unwrap();
        self.borrower.keep(&self.arena, filling.finish());
    }

    /// Begins a message of `len` bytes, which may.
    fn begin(&self, len: usize) -> Filling<Heap> {
        let begun = self.borrower.stream(&self.arena).begin(len);
        let Begun::Now(filling) = begun.unwrap() else {
            panic!("less is unread than may be");
        };
        filling
    }

    /// The message that was announced, at its reader.
    fn open(&self, ticket: LoanTicket) -> StreamIn {
        let opened = self.lender.open(self.slab(ticket.slab), ticket);
        opened.expect("the ticket is right")
    }

    /// Reads on until the sender has told something new: what came.
    fn read_on(&self, stream: &mut StreamIn) -> Vec<u8> {
        let before = stream.here();
        while !stream.look(|slab| Ok::<_, ()>(self.slab(slab))).unwrap() {
            thread::yield_now();
        }
        let mut bytes = vec![0; stream.here() - before];
        stream.copy_out(before, &mut bytes);
        bytes
    }
}

/// A receiver that is there.
struct Always;

#[derive(Debug)]
struct Failed;

impl From<NoBlock<core::convert::Infallible>> for Failed {
    fn from(_: NoBlock<core::convert::Infallible>) -> Self {
        Self
    }
}

impl Receiver<Heap> for Always {
    type Error = Failed;

    fn check(&self) -> Result<(), Failed> {
        Ok(())
    }

    fn show(&self, _: SlabId) -> Result<(), Failed> {
        Ok(())
    }

    fn wait(&self, _: u32) -> Result<(), Failed> {
        thread::yield_now();
        Ok(())
    }
}

/// Stands for the lane through which tickets go.
#[derive(Default)]
struct Announced {
    tickets: Mutex<Vec<LoanTicket>>,
    count: AtomicUsize,
}

impl Announced {
    fn tell(&self, ticket: LoanTicket) {
        self.tickets.lock().unwrap().push(ticket);
        self.count.fetch_add(1, Ordering::Release);
    }

    fn take(&self, index: usize) -> LoanTicket {
        while self.count.load(Ordering::Acquire) <= index {
            thread::yield_now();
        }
        self.tickets.lock().unwrap()[index]
    }
}

/// Three chunks, of which one goes round: each is the first again, if the reader has given it back by then.
#[test]
fn a_chunk_is_filled_again_only_after_it_was_emptied() {
    model(2, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let sender = thread::spawn(move || theirs.send(&[1, 2, 3, 4, 5], &told));
        let ticket = announced.take(0);
        let mut stream = pair.open(ticket);
        let mut read = Vec::new();
        while read.len() < stream.len() {
            read.append(&mut pair.read_on(&mut stream));
            stream.release(read.len());
        }
        assert_eq!(read, [1, 2, 3, 4, 5]);
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!(pair.arena.in_use(), 0);
    });
}

/// Positions and progress are published by one word; a sender that gives up says so in the same word.
#[test]
fn a_manifest_shows_only_what_is_there_or_that_no_more_comes() {
    model(3, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let sender = thread::spawn(move || {
            let mut filling = theirs.begin(4);
            told.tell(filling.ticket());
            filling.write(&[1, 2, 3], &Always).unwrap();
            // The program that made the message panicked.
            drop(filling);
        });
        let ticket = announced.take(0);
        let mut stream = pair.open(ticket);
        let why = loop {
            match stream.look(|slab| Ok::<_, ()>(pair.slab(slab))) {
                Ok(true) => {
                    let mut bytes = vec![0; stream.here()];
                    stream.copy_out(0, &mut bytes);
                    assert_eq!(bytes, [1, 2, 3][..stream.here()]);
                }
                Ok(false) => thread::yield_now(),
                Err(why) => break why,
            }
        };
        assert_eq!(why, NoMore::Abandoned);
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!(pair.arena.in_use(), 0);
    });
}

/// The reader drops a message in the middle, which gives back what it read and what it did not.
#[test]
fn a_message_that_nobody_wants_gives_back_all_its_chunks_once() {
    model(2, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let sender = thread::spawn(move || {
            theirs.send(&[1, 2, 3], &told);
            theirs.send(&[4, 5, 6], &told);
        });
        let ticket = announced.take(0);
        let mut stream = pair.open(ticket);
        stream.look(|slab| Ok::<_, ()>(pair.slab(slab))).unwrap();
        drop(stream);
        let ticket = announced.take(1);
        let mut stream = pair.open(ticket);
        while stream.here() < 3 {
            if !stream.look(|slab| Ok::<_, ()>(pair.slab(slab))).unwrap() {
                thread::yield_now();
            }
        }
        let mut bytes = [0; 3];
        stream.copy_out(0, &mut bytes);
        assert_eq!(bytes, [4, 5, 6]);
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!(pair.arena.in_use(), 0);
    });
}

/// Lent, read elsewhere, returned, and lent again: the second loan of the same block begins when the first is over.
#[test]
fn a_block_is_lent_again_only_after_its_loan_is_back() {
    model(3, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let lender = thread::spawn(move || theirs.lend_bytes(3, &told));
        pair.read_bytes(3, 0, &announced);
        lender.join().unwrap();
        assert_eq!(pair.arena.in_use(), 0);
    });
}

/// A stream counts the loans of its blocks without the arena: which goes on where the stream stopped, or it would take the last
/// return of the stream for one of its own.
#[test]
fn the_arena_goes_on_counting_where_a_stream_stopped() {
    model(3, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        for message in 0..2 {
            pair.send(&[1, 2], &announced);
            let ticket = announced.take(message);
            drop(pair.open(ticket));
        }
        pair.borrower.trim();
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let lender = thread::spawn(move || theirs.lend_bytes(2, &told));
        pair.read_bytes(2, 2, &announced);
        lender.join().unwrap();
        assert_eq!(pair.arena.in_use(), 0);
    });
}

/// A process dies while a thread hands it a block and another ends a message to it: all is ours again, once.
#[test]
fn what_is_handed_to_a_process_that_dies_comes_back_once() {
    model(3, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let handing = thread::spawn(move || {
            let block = theirs.take();
            theirs.borrower.hand_over(&theirs.arena, block);
            theirs.send(&[1], &told);
        });
        pair.borrower.end();
        pair.borrower.reclaim(&pair.arena, Ending::Killed);
        handing.join().unwrap();
        assert_eq!(pair.arena.in_use(), 0);
        assert!(pair.borrower.is_idle());
    });
}

/// A peer that left, or was cut off, reads on what it has: nothing of it is used for anything else before it is given back.
#[test]
fn what_a_peer_that_left_still_reads_is_not_used_again() {
    model(2, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        pair.send(&[1, 2], &announced);
        let ticket = announced.take(0);
        let mut stream = pair.open(ticket);
        assert!(stream.look(|slab| Ok::<_, ()>(pair.slab(slab))).unwrap());
        let ours = pair.both();
        let ending = thread::spawn(move || {
            ours.borrower.end();
            // The next block is other memory, or the same when the reader is done.
            let mut blocks = [(); 4].map(|()| ours.take());
            blocks.iter_mut().for_each(|block| block.fill(&[[9]]));
        });
        let mut bytes = [0; 2];
        stream.copy_out(0, &mut bytes);
        assert_eq!(bytes, [1, 2]);
        drop(stream);
        ending.join().unwrap();
        assert_eq!(pair.arena.in_use(), 0);
    });
}

/// Four chunks through a window of one: the chunk, and its entry in the manifest, are written again only after the reader has
/// released them, and the sender waits for nothing else.
#[test]
fn a_message_longer_than_its_window_goes_through_it() {
    model(2, || {
        let pair = Pair::new();
        pair.borrower.set_allowance(1);
        let announced = Arc::new(Announced::default());
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let sender = thread::spawn(move || theirs.send(&[1, 2, 3, 4, 5, 6, 7], &told));
        let mut stream = pair.open(announced.take(0));
        assert!(!stream.holds_all());
        let mut read = Vec::new();
        while read.len() < stream.len() {
            read.append(&mut pair.read_on(&mut stream));
            stream.release(read.len());
        }
        assert_eq!(read, [1, 2, 3, 4, 5, 6, 7]);
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!((pair.arena.in_use(), pair.borrower.unread()), (0, 0));
    });
}

/// The same without waiting: what goes is told, and the rest is tried again, here by another thread than began.
#[test]
fn a_message_is_written_step_by_step_by_whoever_has_it() {
    model(2, || {
        let pair = Pair::new();
        pair.borrower.set_allowance(1);
        let announced = Arc::new(Announced::default());
        let mut filling = pair.begin(5);
        announced.tell(filling.ticket());
        let message = [1, 2, 3, 4, 5];
        let written = filling.try_write(&message, &Always).unwrap();
        assert_eq!(written, Written::Part(2));
        let theirs = pair.both();
        let sender = thread::spawn(move || {
            let mut rest = &message[2..];
            loop {
                match filling.try_write(rest, &Always).unwrap() {
                    Written::Part(now) => rest = &rest[now..],
                    Written::All | Written::Unwanted => break,
                }
                thread::yield_now();
            }
            theirs.borrower.keep(&theirs.arena, filling.finish());
        });
        let mut stream = pair.open(announced.take(0));
        let mut read = Vec::new();
        while read.len() < stream.len() {
            read.append(&mut pair.read_on(&mut stream));
            stream.release(read.len());
        }
        assert_eq!(read, message);
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!((pair.arena.in_use(), pair.borrower.unread()), (0, 0));
    });
}

/// Its reader drops a message in the middle while the sender waits for room: the sender stops, and all comes back once.
#[test]
fn a_sender_that_waits_for_room_hears_that_nobody_wants_the_rest() {
    model(2, || {
        let pair = Pair::new();
        pair.borrower.set_allowance(1);
        let announced = Arc::new(Announced::default());
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let sender = thread::spawn(move || {
            theirs.send(&[1, 2, 3, 4, 5, 6, 7], &told);
        });
        let mut stream = pair.open(announced.take(0));
        let read = pair.read_on(&mut stream);
        stream.release(read.len());
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!((pair.arena.in_use(), pair.borrower.unread()), (0, 0));
        // And there is room for the next one.
        drop(pair.begin(7).withdraw());
    });
}

/// The sender gives up while it waits for room, as one whose deadline has passed: the reader gets what came, then hears of it.
#[test]
fn a_sender_that_gives_up_in_the_middle_tells_its_reader() {
    model(2, || {
        let pair = Pair::new();
        pair.borrower.set_allowance(1);
        let announced = Arc::new(Announced::default());
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let sender = thread::spawn(move || {
            let mut filling = theirs.begin(5);
            told.tell(filling.ticket());
            let _ = filling.try_write(&[1, 2, 3, 4, 5], &Always).unwrap();
            theirs.borrower.keep(&theirs.arena, filling.abandon());
        });
        let mut stream = pair.open(announced.take(0));
        let mut read = Vec::new();
        let why = loop {
            match stream.look(|slab| Ok::<_, ()>(pair.slab(slab))) {
                Ok(true) => {
                    let mut bytes = vec![0; stream.here() - read.len()];
                    stream.copy_out(read.len(), &mut bytes);
                    read.append(&mut bytes);
                    stream.release(read.len());
                }
                Ok(false) => thread::yield_now(),
                Err(why) => break why,
            }
        };
        assert_eq!(why, NoMore::Abandoned);
        assert_eq!(read, [1, 2, 3, 4, 5][..read.len()]);
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!((pair.arena.in_use(), pair.borrower.unread()), (0, 0));
    });
}

/// The memory of whoever sends, which is its caller's again when the sending has returned.
type Source = Arc<loom::cell::UnsafeCell<[u8; 2]>>;

/// Sends a message of three bytes, which is offered where it lies, and writes over that when it may.
fn send_offered(pair: &Pair, source: &Source, announced: &Announced, hold: u32) {
    let mut filling = pair.begin(3);
    let (at, proof_at, proof) = (1, 2, 3);
    let offer = Offer {
        at,
        proof_at,
        proof,
    };
    filling.offer(offer, hold);
    announced.tell(filling.ticket());
    filling.write(&[1, 2, 3], &Always).unwrap();
    // SAFETY: nobody reads it any more: loom reports an access that is not ordered.
    source.with_mut(|bytes| unsafe { *bytes = [9, 9] });
    pair.borrower.keep(&pair.arena, filling.finish());
}

/// What is offered is read before it is the caller's again, or not at all; then it comes through chunks.
#[test]
fn a_message_is_read_where_it_lies_only_while_its_sender_waits() {
    model(2, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        let source: Source = Arc::new(loom::cell::UnsafeCell::new([1, 2]));
        let (theirs, told, lent) = (pair.both(), Arc::clone(&announced), Arc::clone(&source));
        let sender = thread::spawn(move || send_offered(&theirs, &lent, &told, 0));
        let mut stream = pair.open(announced.take(0));
        match stream.take_offer() {
            Some(offer) => {
                assert_eq!((offer.at, offer.proof_at, offer.proof), (1, 2, 3));
                // SAFETY: the sender waits: loom reports an access that is not ordered.
                source.with(|bytes| assert_eq!(unsafe { *bytes }, [1, 2]));
            }
            None => {
                let mut read = Vec::new();
                while read.len() < stream.len() {
                    read.append(&mut pair.read_on(&mut stream));
                    stream.release(read.len());
                }
                assert_eq!(read, [1, 2, 3]);
            }
        }
        assert_eq!(stream.take_offer(), None);
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!((pair.arena.in_use(), pair.borrower.unread()), (0, 0));
    });
}

/// The kernel refuses: the sender goes on with chunks.
#[test]
fn a_message_that_could_not_be_read_where_it_lies_comes_through_chunks() {
    model(2, || {
        let pair = Pair::new();
        let announced = Arc::new(Announced::default());
        let source: Source = Arc::new(loom::cell::UnsafeCell::new([1, 2]));
        let (theirs, told) = (pair.both(), Arc::clone(&announced));
        let sender = thread::spawn(move || send_offered(&theirs, &source, &told, 1));
        let mut stream = pair.open(announced.take(0));
        if stream.take_offer().is_some() {
            stream.decline();
        }
        let mut read = Vec::new();
        while read.len() < stream.len() {
            read.append(&mut pair.read_on(&mut stream));
            stream.release(read.len());
        }
        assert_eq!(read, [1, 2, 3]);
        drop(stream);
        sender.join().unwrap();
        pair.borrower.trim();
        assert_eq!((pair.arena.in_use(), pair.borrower.unread()), (0, 0));
    });
}
