//! The memory of a lane, written by a hostile peer before, between and during the reads of the other side.
#![allow(unsafe_code)]

use mizzen_lane::{
    Arrival, Bell, Consumer, Eager, Producer, Region, Returns, Ring, SHORT_MAX, SLOT_MAX, Shape,
    SharedProducer, Watch,
};

use crate::tape::Tape;

const SHAPE: Shape = Shape::new(8, 256);
const LINE: usize = 64;

/// Events: a byte that says what, and what it needs.
pub fn run(data: &[u8]) {
    let mut tape = Tape::new(data);
    let mut bench = Bench::new();
    while !tape.is_over() {
        bench.step(&mut tape);
    }
    interpose::clear();
}

/// Both ends of a lane. The consumer reads what the hostile sender wrote, and the two producers what a hostile receiver did.
struct Bench {
    memory: Region,
    consumer: Consumer,
    held: Vec<Eager>,
    released: Region,
    producer: Producer,
    shared_released: Region,
    shared: SharedProducer,
    returns: Returns,
    signals: Region,
}

/// Eager messages that are kept at once.
const HELD: usize = 16;
const BUFFERS: usize = 8;

impl Bench {
    fn new() -> Self {
        let region = || Region::heap(SHAPE.sender_bytes());
        let line = || Region::heap(Shape::RECEIVER_BYTES);
        let ring = |memory: &Region, line: &Region| {
            // SAFETY: one end is made of each. The hostile peer writes in the same thread.
            unsafe { Ring::new(memory.clone(), line.clone(), SHAPE) }.expect("large enough")
        };
        let (memory, released, shared_released) = (region(), line(), line());
        Self {
            consumer: ring(&memory, &line()).consumer_calling(|_| ()),
            memory,
            held: Vec::new(),
            producer: ring(&region(), &released).producer(),
            released,
            shared: ring(&region(), &shared_released).shared_producer(),
            shared_released,
            returns: Returns::new(Region::heap(Returns::bytes(BUFFERS)), BUFFERS),
            signals: line(),
        }
    }

    fn step(&mut self, tape: &mut Tape<'_>) {
        match tape.byte() % 16 {
            0 | 1 => self.poll(),
            2 => {
                let (tag, address, len) = (tape.short(), tape.number(), tape.byte());
                let mut target = vec![0; usize::from(len)];
                let address = (address != 0).then_some(address);
                let _ = self.consumer.poll_exact(tag, address, &mut target);
                if let Some(len) = self.consumer.poll_short(tag, &mut [0; SHORT_MAX]) {
                    assert!(len <= SHORT_MAX);
                }
            }
            3 | 4 => self.announce(tape),
            5 => write(&self.memory, tape),
            6 => {
                let (offset, bytes) = (tape.half() as usize, tape.bytes());
                interpose::plan(&self.memory, offset, bytes);
            }
            7 => {
                let _ = (self.consumer.peek().is_ready(), self.consumer.is_ready());
            }
            8 if !self.held.is_empty() => {
                let index = usize::from(tape.byte()) % self.held.len();
                self.held.swap_remove(index);
            }
            9 => write(&self.released, tape),
            10 => {
                let payload = vec![1; usize::from(tape.byte())];
                let _ = self.producer.try_short(tape.short(), &payload);
                let _ = self.producer.try_eager(0, 0, [&payload]);
            }
            11 => {
                let _ = self.producer.try_close();
            }
            12 => write(&self.shared_released, tape),
            13 => {
                let payload = vec![1; usize::from(tape.byte())];
                if let Ok(mut published) = self.shared.try_short(0, 5, &payload) {
                    while published.following().is_some() {}
                }
                let _ = self.shared.try_eager(0, 0, [&payload]);
            }
            14 => {
                let (buffer, loan) = (tape.number() as u32, tape.number());
                self.returns.give_back(buffer, loan);
                let known = (buffer as usize) < BUFFERS;
                assert_eq!(self.returns.is_back(buffer, loan), known);
            }
            _ => {
                write(&self.signals, tape);
                let _ = Watch::new(self.signals.clone(), 0, None).call();
                let bell = Bell::new(self.signals.clone(), 1);
                bell.raise();
                let _ = bell.count();
            }
        }
    }

    fn poll(&mut self) {
        match self.consumer.poll() {
            Ok(Some(Arrival::Short(short))) => {
                assert!(short.bytes().len() <= SLOT_MAX);
                let _ = (short.to(), short.bytes_after_address());
            }
            Ok(Some(Arrival::Double(double))) => {
                assert!((SLOT_MAX + 1..=SHORT_MAX).contains(&double.bytes.len()));
                let _ = double.split_address();
            }
            Ok(Some(Arrival::Eager(eager))) => {
                // All of it, and what lies at its end.
                let mut bytes = vec![0; eager.len()];
                eager.copy_out(0, &mut bytes);
                eager.copy_out(eager.len(), &mut []);
                if self.held.len() < HELD {
                    self.held.push(eager);
                }
            }
            Ok(Some(Arrival::Closed) | None) | Err(_) => (),
        }
    }

    /// Writes the slot that is next, or one near it, with any kind, length and extent.
    fn announce(&self, tape: &mut Tape<'_>) {
        let ahead = u64::from(tape.byte() % 4);
        let position = self.consumer.peek().passed() + ahead;
        let (kind, len, tag) = (tape.byte(), tape.byte(), tape.short());
        let line = LINE * (2 + (position as usize) % 8);
        let control = (position + 1) & u64::from(u32::MAX)
            | u64::from(kind) << 32
            | u64::from(len) << 40
            | u64::from(tag) << 48;
        let extent = u64::from(tape.half()) | u64::from(tape.half()) << 32;
        write_at(&self.memory, line + 8, &extent.to_ne_bytes());
        write_at(&self.memory, line + 56, &control.to_ne_bytes());
    }
}

fn write(region: &Region, tape: &mut Tape<'_>) {
    let (offset, bytes) = (tape.half() as usize, tape.bytes());
    write_at(region, offset, bytes);
}

fn write_at(region: &Region, offset: usize, bytes: &[u8]) {
    let offset = offset % region.len();
    let len = bytes.len().min(region.len() - offset);
    // SAFETY: all of it is in one thread, between two accesses of the lane.
    unsafe { region.copy_in(offset, &bytes[..len]) };
}

/// Writes that happen in the middle of a poll, at the steps that the lane names.
#[cfg(feature = "interpose")]
mod interpose {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::sync::Once;

    use mizzen_lane::Region;

    type Write = (Region, usize, Vec<u8>);

    thread_local! {
        static PLANNED: RefCell<VecDeque<Write>> = const { RefCell::new(VecDeque::new()) };
    }

    pub(super) fn plan(region: &Region, offset: usize, bytes: &[u8]) {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| mizzen_lane::set_step_hook(hook));
        PLANNED.with_borrow_mut(|planned| {
            planned.push_back((region.clone(), offset, bytes.to_vec()));
        });
    }

    pub(super) fn clear() {
        PLANNED.with_borrow_mut(VecDeque::clear);
    }

    fn hook(step: &'static str) {
        if step.starts_with("lane.consume") {
            let write = PLANNED.with_borrow_mut(VecDeque::pop_front);
            if let Some((region, offset, bytes)) = write {
                super::write_at(&region, offset, &bytes);
            }
        }
    }
}

/// Without steps the write happens at once.
#[cfg(not(feature = "interpose"))]
mod interpose {
    pub(super) fn plan(region: &mizzen_lane::Region, offset: usize, bytes: &[u8]) {
        super::write_at(region, offset, bytes);
    }

    pub(super) fn clear() {}
}
