//! Messages of a hostile peer of the same host, and of one on a network: posted, retrieved, unpacked in any way, while
//! the peer changes the memory they lie in.

use mizzen::Incoming;
use mizzen::fuzzing::{SharedMemory, Victim};

use crate::tape::Tape;

/// Messages and mailboxes in one input: enough for any order of a few.
const MESSAGES: usize = 16;

/// Events: a byte that says what, and what it needs. A message that comes is unpacked by the events that follow.
pub fn run(data: &[u8]) {
    let mut tape = Tape::new(data);
    let mut victim = Victim::new();
    for _ in 0..MESSAGES {
        if tape.is_over() {
            break;
        }
        let buffers = &mut [[0; 8]; 8];
        let incoming = match tape.byte() % 4 {
            0 => {
                let flags = tape.short();
                victim.from_network(flags, tape.bytes()).ok()
            }
            1 => {
                poke(&victim, &mut tape);
                victim.next().ok().flatten()
            }
            lane => {
                let lane = if lane == 2 {
                    SharedMemory::SharedLane
                } else {
                    SharedMemory::SenderLane
                };
                let (tag, to) = (tape.short(), tape.byte());
                let to = (to != 0).then_some(u64::from(to));
                victim.post(lane, tag, to, tape.bytes());
                victim.next().ok().flatten()
            }
        };
        // One mailbox exists, besides the three that every process has. Of others nothing is kept, however many are named.
        assert!(victim.mailboxes_tracked() <= 4);
        if let Some(incoming) = incoming {
            unpack(&victim, incoming, &mut tape, buffers, 0);
        }
    }
}

fn poke(victim: &Victim, tape: &mut Tape<'_>) {
    let place = match tape.byte() % 5 {
        0 => SharedMemory::SharedLane,
        1 => SharedMemory::SenderLane,
        2 => SharedMemory::Slab(0),
        3 => SharedMemory::Slab(1),
        _ => SharedMemory::Watches,
    };
    let offset = tape.half() as usize;
    victim.write(place, offset, tape.bytes());
}

/// Messages in messages, deeper than any program goes.
const DEPTH: usize = 4;
/// Pieces and pokes for one message.
const STEPS: usize = 32;

fn unpack<'m>(
    victim: &Victim,
    mut incoming: Incoming<'m>,
    tape: &mut Tape<'_>,
    buffers: &'m mut [[u8; 8]],
    depth: usize,
) {
    let mut buffers = buffers.iter_mut();
    for _ in 0..STEPS {
        if tape.is_over() {
            break;
        }
        let left = incoming.pieces_left();
        let _ = incoming.next_len();
        match tape.byte() % 16 {
            0 => drop(incoming.unpack_express::<u64>()),
            1 => drop(incoming.unpack_express_into(&mut [0; 3])),
            2 => drop(incoming.unpack_vec::<u8>()),
            3 => drop(incoming.unpack_vec::<u32>()),
            4 | 5 => {
                if let Some(buffer) = buffers.next() {
                    let len = usize::from(tape.byte()) % 9;
                    let _ = incoming.unpack_cheaper(&mut buffer[..len]);
                }
            }
            6 => {
                if let Ok(lent) = incoming.unpack_lent::<u8>() {
                    std::hint::black_box(lent.iter().fold(0, |sum, byte| sum ^ byte));
                }
            }
            7 => drop(incoming.unpack_lent::<u64>()),
            8 => drop(incoming.unpack_value::<(String, Vec<u16>, Option<bool>)>()),
            9 => drop(incoming.unpack_mailbox()),
            10 => {
                if let Ok(inner) = incoming.unpack_message() {
                    if depth < DEPTH {
                        unpack(victim, inner, tape, &mut [[0; 8]; 2], depth + 1);
                    }
                }
            }
            11 => drop(incoming.skip()),
            12 => drop(incoming.reset()),
            13 => return drop(incoming.finish()),
            14 => match incoming.detach() {
                Ok(whole) => incoming = whole,
                Err(_) => return,
            },
            _ => poke(victim, tape),
        }
        assert!(incoming.pieces_left() <= left.max(1 << 16));
    }
}
