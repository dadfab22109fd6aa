//! A job without its launcher: the tests are the agent. Members are places of this OS process with real keepers, sockets and
//! segments, or real processes: this test binary again, which runs [`a_peer`].

use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_proto::boot::{AGENT_FD, Boot, FromProcess, MAX_PACKET, Preset, ToProcess};
use mizzen_proto::membership::Pace;
use mizzen_shm::{ProcessStamp, Socket};

use crate::address::MailboxRef;
use crate::endpoint::Endpoint;
use crate::host::Launched;
use crate::host::keeper::Keeper;
use crate::link::MemoryLink;
use crate::memory::Memory;
use crate::process::Process;
use crate::rank::{Address, Incarnation, MailboxId, ProcessId, Rank, reserved};
use crate::testing::Deck;

/// What a peer process does, by the name of its part.
const PART: &str = "MIZZEN_TEST_PART";
/// How long anything may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// The agent's side of a member.
pub(super) struct Contact {
    pub(super) id: ProcessId,
    socket: Socket,
    pid: u32,
}

/// A member that is a process of its own; killed when dropped.
pub(super) struct Peer(Child);

impl Peer {
    /// Kills the process and waits until it does not exist any more.
    pub(super) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
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
    let keeper = Keeper::new(ours, false).unwrap();
    let neighbours = Box::new(Launched::new(&keeper, Pace::ALONE));
    let process = Process::new(id, size, "here".into(), Memory::Segments, neighbours).unwrap();
    keeper.start(&process, Vec::new()).unwrap();
    let deck = Deck::new(Endpoint::new(process));
    let pid = std::process::id();
    (deck, Contact { id, socket, pid })
}

/// A member that is a process of its own and plays `part`.
pub(super) fn peer(part: &str, id: ProcessId, size: u32) -> (Peer, Contact) {
    let (theirs, socket) = Socket::pair().unwrap();
    let contact = |pid| Contact { id, socket, pid };
    // The descriptor of the agent must not be one of the standard ones.
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" \"$@\" 3<&0 0</dev/null"])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "host::tests::bed::a_peer"])
        .arg("--nocapture")
        .env(AGENT_FD, "3")
        .env(PART, part)
        .stdin(Stdio::from(theirs.as_fd().try_clone_to_owned().unwrap()))
        .stdout(Stdio::null());
    let child = command.spawn().unwrap();
    let contact = contact(child.id());
    contact.tell(
        &ToProcess::Boot(Box::new(Boot {
            job: 1,
            rank: id.rank.0,
            size,
            incarnation: id.incarnation.0,
            host: "here".into(),
            hosts: 1,
            number: 0,
            bind: String::new(),
            networks: Vec::new(),
            spans: Vec::new(),
            others: Vec::new(),
            channels: Vec::new(),
            pace: Preset::Default,
            show_paths: false,
            overdue_ms: 0,
            cluster: String::new(),
            authority: Vec::new(),
        })),
        &[],
    );
    (Peer(child), contact)
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
        let ProcessStamp { pid, started } = ProcessStamp::of(of.pid);
        let packet = ToProcess::Peer {
            rank: of.id.rank.0,
            incarnation: of.id.incarnation.0,
            pid,
            started,
        };
        member.tell(&packet, &[its.as_fd()]);
    }
}

/// The link of a member to a peer to which it was introduced.
pub(super) fn link_to(deck: &Deck, peer: ProcessId) -> Arc<MemoryLink> {
    eventually("a link", || deck.process.peers.link_to(peer))
}

/// A mailbox of a peer: the first one that it opened is number 0.
pub(super) fn mailbox_at(deck: &Deck, process: ProcessId, mailbox: u64) -> MailboxRef {
    // The first of all is not the program's.
    let mailbox = MailboxId(u64::from(reserved::COUNT) + mailbox);
    MailboxRef::new(deck.process.clone(), Address { process, mailbox })
}

/// A peer process. Run by other tests.
#[test]
#[ignore = "run by the others, as a process of a job"]
fn a_peer() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let deck = Deck::join().unwrap();
    match part.as_str() {
        "misbehaves" => super::misbehaviour::misbehave(&deck),
        "leaves" => super::misbehaviour::leave_with_a_loan(deck),
        "borrows" => super::slabs::borrow_and_count(&deck),
        other => panic!("{other}"),
    }
}

/// Lives until it is killed, or forgotten.
pub(super) fn live_on() {
    std::thread::sleep(2 * PATIENCE);
}
