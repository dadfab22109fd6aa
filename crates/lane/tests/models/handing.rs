//! Handing on: who owns the duty of giving a block back, at each step of its way.

use loom::sync::Arc;
use loom::thread;
use mizzen_lane::{
    Arena, Block, Borrower, Ending, Lender, Loan, LoanTicket, Purpose, Region, Returns,
    Revocations, Revoked, SlabId,
};

use crate::{Heap, model};

/// The owner of the blocks, as a holder.
const OWNER: u32 = 0;

/// A process that holds blocks of the owner, as both see it.
struct Party {
    borrower: Borrower<Heap>,
    lender: Lender,
}

impl Party {
    fn new(holder: u32) -> Self {
        let blocks = Arena::<Heap>::MAX_BLOCKS;
        let returns = Returns::new(Region::heap(Returns::bytes(blocks)), blocks);
        let revoked = Region::heap(Revocations::bytes(blocks));
        let revocations = Revocations::new(revoked, blocks);
        Self {
            borrower: Borrower::new(holder, returns.clone(), revocations.clone()),
            // SAFETY: tickets are used once, with the slab they name.
            lender: unsafe { Lender::new(returns, revocations) },
        }
    }
}

/// An owner, a process in the middle, and the next one.
struct Chain {
    arena: Arc<Arena<Heap>>,
    middle: Party,
    next: Party,
}

impl Chain {
    fn new() -> Arc<Self> {
        let chain = Self {
            arena: Arc::new(Arena::new(Heap)),
            middle: Party::new(1),
            next: Party::new(2),
        };
        chain.middle.borrower.admit(&chain.arena).unwrap();
        Arc::new(chain)
    }

    /// Lends a block with this byte to the process in the middle, which has it then.
    fn lend(&self, byte: u8) -> Loan {
        let mut block = self.take();
        block.fill(&[[byte]]);
        let ticket = block.ticket();
        let slab = self.slab(ticket);
        let loan = self.middle.lender.borrow(slab, ticket);
        self.middle.borrower.hand_over(&self.arena, block);
        loan.expect("the block lies inside its slab")
    }

    /// The process in the middle says that it hands on: the ticket for the next one.
    fn say(&self, loan: &mut Loan) -> LoanTicket {
        loan.hand_on(self.next.borrower.admit(&self.arena).unwrap());
        loan.next_ticket()
    }

    /// Lends a block, and has it handed on by the process in the middle, which has nothing to do with it any more.
    fn hand_on(&self, byte: u8) -> LoanTicket {
        let mut loan = self.lend(byte);
        let ticket = self.say(&mut loan);
        loan.handed_on();
        ticket
    }

    fn take_over(&self, ticket: LoanTicket) -> Result<Loan, Revoked> {
        let taken = self.next.lender.take_over(self.slab(ticket), ticket)?;
        Ok(taken.expect("the block lies inside its slab"))
    }

    /// Whoever else gets memory writes into it.
    fn overwrite(&self) {
        self.take().fill(&[[9]]);
    }

    fn take(&self) -> Block<Heap> {
        let taken = Block::take(&self.arena, 1, Purpose::Lend);
        taken.unwrap().expect("there is memory")
    }

    fn slab(&self, ticket: LoanTicket) -> Region {
        let known = self.arena.slab(SlabId(ticket.slab));
        known.expect("the only slab is kept")
    }
}

fn read(loan: &Loan) -> u8 {
    let mut byte = [0];
    loan.copy_out(0, &mut byte);
    byte[0]
}

/// The owner looks for memory while the block goes from one reader to the next: it is free when the last has read it.
#[test]
fn a_block_that_is_handed_on_is_used_again_only_after_its_last_reader() {
    model(3, || {
        let chain = Chain::new();
        let mut loan = chain.lend(7);
        let theirs = Arc::clone(&chain);
        let readers = thread::spawn(move || {
            assert_eq!(read(&loan), 7);
            let ticket = theirs.say(&mut loan);
            loan.handed_on();
            let loan = theirs.take_over(ticket).unwrap();
            assert_eq!(read(&loan), 7);
        });
        chain.arena.in_use();
        chain.overwrite();
        readers.join().unwrap();
        assert_eq!(chain.arena.in_use(), 0);
    });
}

/// It was said that the block is handed on, and the message may have gone: either the next one has it, or the owner.
#[test]
fn a_block_whose_holder_is_killed_on_the_way_is_with_one_side() {
    model(3, || {
        let chain = Chain::new();
        // Nothing is given back by one that is dead.
        let ticket = chain.hand_on(7);
        let theirs = Arc::clone(&chain);
        let next = thread::spawn(move || {
            if let Ok(loan) = theirs.take_over(ticket) {
                assert_eq!(read(&loan), 7);
            }
        });
        let (middle, arena) = (&chain.middle.borrower, &chain.arena);
        middle.reclaim(arena, Ending::Killed);
        chain.overwrite();
        next.join().unwrap();
        assert_eq!(chain.arena.in_use(), 0);
    });
}

/// A message that never went gives the block back when its sender is killed, without a word of the next one.
#[test]
fn a_block_that_was_never_sent_comes_back() {
    model(3, || {
        let chain = Chain::new();
        // Nothing is given back by one that is dead.
        let ticket = chain.hand_on(7);
        chain.middle.borrower.reclaim(&chain.arena, Ending::Killed);
        assert_eq!(chain.arena.in_use(), 0);
        assert!(chain.take_over(ticket).is_err());
    });
}

/// Who left in order had sent its message: the next one has the block, whenever it looks.
#[test]
fn a_block_of_a_holder_that_left_is_the_next_ones() {
    model(3, || {
        let chain = Chain::new();
        let ticket = chain.hand_on(7);
        let theirs = Arc::clone(&chain);
        let next = thread::spawn(move || {
            let loan = theirs.take_over(ticket).unwrap();
            assert_eq!(read(&loan), 7);
        });
        chain.middle.borrower.reclaim(&chain.arena, Ending::InOrder);
        chain.overwrite();
        next.join().unwrap();
        assert_eq!(chain.arena.in_use(), 0);
    });
}

/// The next one dies, and the holder notices that its message cannot go: either it keeps the block, or the owner has it.
#[test]
fn a_block_whose_next_holder_dies_is_with_one_side() {
    model(3, || {
        let chain = Chain::new();
        let mut loan = chain.lend(7);
        chain.say(&mut loan);
        let theirs = Arc::clone(&chain);
        let middle = thread::spawn(move || {
            if theirs.middle.lender.keep(&mut loan) {
                assert_eq!(read(&loan), 7);
            }
        });
        chain.next.borrower.reclaim(&chain.arena, Ending::Killed);
        chain.overwrite();
        middle.join().unwrap();
        assert_eq!(chain.arena.in_use(), 0);
    });
}

/// The next one dies with the block, while the owner looks for it at the one before.
#[test]
fn a_block_at_a_next_holder_that_dies_comes_back_once() {
    model(3, || {
        let chain = Chain::new();
        let ticket = chain.hand_on(7);
        chain.take_over(ticket).unwrap().handed_on();
        let theirs = Arc::clone(&chain);
        let owner = thread::spawn(move || theirs.overwrite());
        chain.next.borrower.reclaim(&chain.arena, Ending::Killed);
        owner.join().unwrap();
        assert_eq!(chain.arena.in_use(), 0);
    });
}

/// It comes to the same holder again: each time is a loan of its own.
#[test]
fn a_block_that_comes_to_a_holder_twice_is_followed() {
    model(3, || {
        let chain = Chain::new();
        let ticket = chain.hand_on(7);
        let theirs = Arc::clone(&chain);
        let round = thread::spawn(move || {
            let mut loan = theirs.take_over(ticket).unwrap();
            loan.hand_on(theirs.middle.borrower.admit(&theirs.arena).unwrap());
            let ticket = loan.next_ticket();
            loan.handed_on();
            let slab = theirs.slab(ticket);
            let back = theirs.middle.lender.take_over(slab, ticket);
            assert_eq!(read(&back.unwrap().unwrap()), 7);
        });
        chain.arena.in_use();
        chain.overwrite();
        round.join().unwrap();
        assert_eq!(chain.arena.in_use(), 0);
    });
}

/// The owner's lender to itself, and the ticket of a block that the process in the middle hands on to the owner.
fn handed_home(chain: &Chain, loan: &mut Loan) -> (Lender, LoanTicket) {
    loan.hand_on(chain.arena.admit_self(OWNER).unwrap());
    let (returns, revocations) = chain.arena.own();
    // SAFETY: of the tickets below, only the one that comes home is used.
    let own = unsafe { Lender::new(returns.clone(), revocations.clone()) };
    (own, loan.next_ticket())
}

/// A ticket is foreign: what it says of our own block must be as it is.
#[test]
fn a_ticket_home_is_believed_only_if_the_block_is_on_its_way() {
    model(1, || {
        let chain = Chain::new();
        let mut loan = chain.lend(7);
        let is_home = |ticket| chain.arena.comes_home(OWNER, ticket);
        let early = loan.next_ticket();
        assert!(!is_home(early), "the middle has it");
        let elsewhere = chain.say(&mut loan);
        assert!(!is_home(elsewhere), "it is on its way to another");
        assert!(chain.middle.lender.keep(&mut loan));
        let (own, ticket) = handed_home(&chain, &mut loan);
        assert!(is_home(ticket));
        let LoanTicket {
            slab,
            number,
            offset,
            len,
            loan: count,
        } = ticket;
        let lies = [
            LoanTicket {
                slab: slab + 1,
                ..ticket
            },
            LoanTicket {
                number: number + 1,
                ..ticket
            },
            LoanTicket {
                number: u32::MAX,
                ..ticket
            },
            LoanTicket {
                offset: offset + 1,
                ..ticket
            },
            LoanTicket {
                len: len << 40,
                ..ticket
            },
            LoanTicket {
                loan: count - 1,
                ..ticket
            },
            LoanTicket {
                loan: count + 1,
                ..ticket
            },
            LoanTicket {
                loan: u64::MAX,
                ..ticket
            },
        ];
        lies.into_iter()
            .for_each(|lie| assert!(!is_home(lie), "{lie:?}"));
        loan.handed_on();
        let home = own.take_over(chain.slab(ticket), ticket).unwrap().unwrap();
        assert_eq!(read(&home), 7);
        drop(home);
        assert_eq!(chain.arena.in_use(), 0);
        assert!(!is_home(ticket), "it is back");
    });
}

/// The same message twice, read by two threads: one has the block.
#[test]
fn of_two_threads_with_one_ticket_one_takes_over() {
    model(3, || {
        let chain = Chain::new();
        let ticket = chain.hand_on(7);
        let theirs = Arc::clone(&chain);
        let twin = thread::spawn(move || theirs.take_over(ticket).ok());
        let mine = chain.take_over(ticket).ok();
        let twins = twin.join().unwrap();
        assert!(mine.is_some() != twins.is_some());
    });
}
