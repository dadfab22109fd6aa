//! A job without its launcher: the tests are the agent. Members are places of this OS process with real keepers, sockets and
//! segments.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_proto::boot::{FromProcess, MAX_PACKET, ToProcess};
use mizzen_shm::{ProcessFd, Socket};

use crate::deck::Deck;
use crate::host::Keeper;
use crate::memory::Memory;
use crate::process::link::MemoryLink;
use crate::process::{Handle, Neighbours, Process};
use crate::rank::{Incarnation, ProcessId, Rank};

/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// The agent's side of a member.
pub(super) struct Contact {
    pub(super) id: ProcessId,
    socket: Socket,
    pid: u32,
}

/// Looks until it is there.
pub(super) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn life(rank: u32, incarnation: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(incarnation))
}

/// A member in this OS process.
pub(super) fn member(id: ProcessId, size: u32) -> (Deck, Contact) {
    let (ours, socket) = Socket::pair().unwrap();
    let keeper = Keeper::new(ours).unwrap();
    let neighbours = Neighbours::Launched(Arc::clone(&keeper));
    let process = Process::new(id, size, "here".into(), Memory::Segments, neighbours).unwrap();
    keeper.start(&process, Vec::new()).unwrap();
    let deck = Deck::new(Handle::new(process));
    let pid = std::process::id();
    (deck, Contact { id, socket, pid })
}

impl Contact {
    pub(super) fn tell(&self, packet: &ToProcess, fds: &[BorrowedFd<'_>]) {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes).unwrap();
        self.socket.send(&bytes, fds).unwrap();
    }

    /// Whom the member asked for, if it asked.
    pub(super) fn asked(&self) -> Option<u32> {
        let mut buffer = [0; MAX_PACKET];
        let received = self.socket.try_recv(&mut buffer).unwrap()?;
        match FromProcess::decode(&buffer[..received.len]).unwrap() {
            FromProcess::Reach { rank } => Some(rank),
            _ => None,
        }
    }
}

/// Gives two members the two ends of a socket.
pub(super) fn introduce(a: &Contact, b: &Contact) {
    let (one, other) = Socket::pair().unwrap();
    for (member, its, of) in [(a, one, b), (b, other, a)] {
        let packet = ToProcess::Peer {
            rank: of.id.rank.0,
            incarnation: of.id.incarnation.0,
        };
        let process = ProcessFd::open(of.pid).unwrap();
        member.tell(&packet, &[its.as_fd(), process.as_fd()]);
    }
}

/// The link of a member to a peer to which it was introduced.
pub(super) fn link_to(deck: &Deck, peer: ProcessId) -> Arc<MemoryLink> {
    eventually("a link", || deck.process.peers.link_to(peer))
}
