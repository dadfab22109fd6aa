//! A keeper between an agent and peers that a test plays, over real sockets and segments; each peer has a real process,
//! which can be killed.

use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mizzen_lane::SharedProducer;
use mizzen_proto::boot::ToProcess;
use mizzen_proto::membership::Pace;
use mizzen_shm::{Fault, ProcessStamp, Segment, Socket};
use std::os::fd::{AsFd, OwnedFd};

use super::super::packet::{MAX_PACKET, Packet};
use super::super::pair::Pair;
use super::Keeper;
use crate::bells::BELL_BYTES;
use crate::error::Departure;
use crate::host::Launched;
use crate::memory::Memory;
use crate::message::Flags;
use crate::process::Process;
use crate::rank::{Incarnation, ProcessId, Rank, WATCH_BYTES};

/// How long a keeper may take for anything, on a machine that does much else.
const BOUND: Duration = Duration::from_secs(10);

/// A process whose agent is the test.
struct Kept {
    process: Arc<Process>,
    agent: Socket,
}

/// A process that the agent introduced. It is killed when this is dropped.
struct Peer {
    id: ProcessId,
    child: Child,
    socket: Socket,
    lane: SharedProducer,
    memory: OwnedFd,
    hello: [crate::memory::Shared; 2],
}

impl Kept {
    fn new() -> Self {
        let (agent, theirs) = Socket::pair().unwrap();
        let keeper = Keeper::new(theirs, false).unwrap();
        let neighbours = Box::new(Launched::new(&keeper, Pace::ALONE));
        let (memory, host) = (Memory::Segments, "local".into());
        let process = Process::new(id(0), 4, host, memory, neighbours).unwrap();
        keeper.start(&process, Vec::new()).unwrap();
        Self { process, agent }
    }

    /// Introduces a peer, which has the keeper's hello and has not said its own.
    fn introduce(&self, rank: u32) -> Peer {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let ProcessStamp { pid, started } = ProcessStamp::of(child.id());
        let (socket, theirs) = Socket::pair().unwrap();
        let packet = ToProcess::Peer {
            rank,
            incarnation: 0,
            pid,
            started,
        };
        let mut bytes = Vec::new();
        packet.encode(&mut bytes).unwrap();
        self.agent.send(&bytes, &[theirs.as_fd()]).unwrap();
        let mut buffer = [0; MAX_PACKET];
        let received = socket.recv(&mut buffer).unwrap();
        let hello = Packet::decode(&buffer[..received.len]);
        assert_eq!(hello, Some(Packet::Hello(id(0))));
        let theirs = Pair::attach(received.fds).unwrap().unwrap();
        let (pair, memory) = Pair::make().unwrap();
        let (out, _) = pair.shared_lanes(&theirs.pair).unwrap();
        let watches = Memory::Segments.make("test-watches", WATCH_BYTES).unwrap();
        let bells = Memory::Segments
            .make_open("test-bells", BELL_BYTES)
            .unwrap();
        Peer {
            id: id(rank),
            child,
            socket,
            lane: out.shared_producer(),
            memory,
            hello: [watches, bells],
        }
    }

    /// Introduces a peer and links with it.
    fn link(&self, rank: u32) -> Peer {
        let peer = self.introduce(rank);
        peer.say_hello();
        assert!(self.sees(|process| process.peers.link_to(peer.id).is_some()));
        peer
    }

    /// Whether the process comes to see something within the bound.
    fn sees(&self, what: impl Fn(&Process) -> bool) -> bool {
        let deadline = Instant::now() + BOUND;
        while Instant::now() < deadline {
            if what(&self.process) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    fn how_it_went(&self, peer: &Peer) -> Option<Departure> {
        Some(self.process.peers.gone(peer.id)?.how())
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.process.leave(Departure::Left);
    }
}

impl Peer {
    fn say_hello(&self) {
        let segments = self
            .hello
            .iter()
            .filter_map(|shared| shared.segment.as_ref());
        let segments = segments.map(|segment| segment.fd());
        let fds: Vec<_> = std::iter::once(self.memory.as_fd())
            .chain(segments)
            .collect();
        let hello = Packet::Hello(self.id).encode();
        self.socket.send(&hello, &fds).unwrap();
    }

    /// Kills the process. Its end of the socket, which the test has for it, is closed with it.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        rustix::net::shutdown(self.socket.as_fd(), rustix::net::Shutdown::Both).unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn id(rank: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(0))
}

/// Messages of many empty pieces to a mailbox that is not there: to look through one for what it lent costs the receiver far
/// more than posting one costs the sender, so that the lane is never empty.
fn stream(lane: &SharedProducer, stop: &AtomicBool) {
    let message = many_pieces();
    while !stop.load(Ordering::Relaxed) {
        let _ = lane.try_eager(Flags::LENT.0, 1 << 40, [&message]);
    }
}

fn many_pieces() -> Vec<u8> {
    const PIECES: usize = 127;
    // The number of pieces, then for each that it is lent and has no bytes.
    let mut bytes = vec![1; 1 + PIECES];
    bytes[0] = PIECES as u8;
    bytes
}

#[test]
fn a_stream_right_after_linking_does_not_keep_the_keeper_from_a_death() {
    let kept = Kept::new();
    let mut mortal = kept.link(2);
    let busy = kept.introduce(1);
    let stop = AtomicBool::new(false);
    let noticed = OnceLock::new();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| stream(&busy.lane, &stop));
        }
        // The stream has begun when the lane is full.
        let message = many_pieces();
        while busy
            .lane
            .try_eager(Flags::LENT.0, 1 << 40, [&message])
            .is_ok()
        {}
        busy.say_hello();
        assert!(kept.sees(|process| process.peers.link_to(busy.id).is_some()));
        mortal.kill();
        let _ = noticed.set(kept.sees(|process| process.peers.gone(id(2)).is_some()));
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        noticed.get(),
        Some(&true),
        "the death was noticed within {BOUND:?}"
    );
    assert_eq!(kept.how_it_went(&mortal), Some(Departure::Died));
}

#[test]
fn a_peer_that_talks_without_end_does_not_keep_the_keeper_from_a_death() {
    let kept = Kept::new();
    let mut mortal = kept.link(2);
    let busy = kept.link(1);
    let stop = AtomicBool::new(false);
    let noticed = OnceLock::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let remind = Packet::Remind.encode();
                while !stop.load(Ordering::Relaxed) {
                    let _ = busy.socket.try_send(&remind, &[]);
                }
            });
        }
        mortal.kill();
        let _ = noticed.set(kept.sees(|process| process.peers.gone(id(2)).is_some()));
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        noticed.get(),
        Some(&true),
        "the death was noticed within {BOUND:?}"
    );
    assert_eq!(kept.how_it_went(&mortal), Some(Departure::Died));
}

#[test]
fn a_peer_that_shows_slabs_without_end_is_cut_off() {
    let kept = Kept::new();
    let peer = kept.link(1);
    let segment = Segment::create("test-slab", 4096, Fault::Now).unwrap();
    for number in 0..10_000 {
        let slab = Packet::Slab {
            number,
            bytes: 4096,
        };
        if peer.socket.send(&slab.encode(), &[segment.fd()]).is_err() {
            break;
        }
    }
    assert!(kept.sees(|_| kept.how_it_went(&peer) == Some(Departure::Misbehaved)));
}
