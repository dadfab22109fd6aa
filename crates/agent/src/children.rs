//! The processes of this host: started, listened to, spoken to, collected.
//!
//! Two epolls: one of exits and sockets, and one of pipes alone, so that the loop can leave the pipes out while the
//! launcher has no room for what they hold.
//!
//! A process costs four descriptors: its socket, two pipes, and one by which its end is seen. Where the limit does not allow four
//! for each, the last one is left out, and ends are looked for: soon after a socket closes, and every few milliseconds.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::Context;
use mizzen_identity::AuthorityError;
use mizzen_proto::boot::{
    Boot, Death, FromProcess, MAX_PACKET, SignalOrigin, Start, Stream, ToProcess,
};
use mizzen_proto::membership::Fence;
use mizzen_shm::{ProcessFd, ProcessStamp, Socket, SocketError};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use crate::certifier::Certifier;
use crate::control::Place;
use crate::events::{self, EVENTS};
use crate::guard::Guard;
use crate::net::FIRST_LIFE;
use crate::output::{Outlet, Pipe, Read};
use crate::places;
use crate::roll_call::Running;
use crate::spawn::{Group, Program, Stdin};

/// All processes that this agent has started.
#[derive(Debug)]
pub(crate) struct Children {
    start: Start,
    /// In a job of several hosts.
    certifier: Option<Certifier>,
    program: Program,
    stdin: Stdin,
    guard: Guard,
    sources: OwnedFd,
    pipes: OwnedFd,
    /// Whether each process has a descriptor by which its end is seen.
    sees_ends: bool,
    /// When ends were looked for.
    last_look: Instant,
    /// By position in `start.ranks`.
    slots: Vec<Slot>,
    running: usize,
    /// Running processes that closed their socket without leaving, in that order: most are ending. Each is there once.
    closing: Vec<u32>,
}

#[derive(Debug)]
enum Slot {
    Running(Box<Process>),
    Dead,
    Left,
}

#[derive(Debug)]
struct Process {
    incarnation: u32,
    child: Child,
    pid: Pid,
    stamp: ProcessStamp,
    group: Group,
    /// By which its end is seen, if there are descriptors enough.
    pidfd: Option<ProcessFd>,
    /// Gone when the process closed it, or said something that makes no sense.
    socket: Option<Socket>,
    /// What the socket had no room for.
    outbox: VecDeque<Packet>,
    /// Whether the epoll watches the socket for room.
    watching_room: bool,
    out: Option<Pipe>,
    err: Option<Pipe>,
    certified: bool,
    left: bool,
}

#[derive(Debug)]
struct Packet {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

/// Where something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Exit(u32),
    Socket(u32),
    Pipe(u32, Stream),
}

/// Why two processes were not introduced to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoIntroduction {
    /// All are in use: some come back when those that were introduced before have heard of it.
    NoDescriptor,
    /// One of them has ended.
    Gone,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) incarnation: u32,
    pub(crate) how: Death,
}

impl Children {
    pub(crate) fn new(mut start: Start, stdin: Stdin) -> anyhow::Result<Self> {
        let certifier = Certifier::take(&mut start)?;
        let program = Program::find(&mut start)?;
        let sources = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let pipes = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let guard = Guard::start()
            .with_context(|| format!("no process can be started on {}", start.host))?;
        let slots = start.ranks.iter().map(|_| Slot::Dead).collect();
        let sees_ends = program.descriptors_left() / DESCRIPTORS_EACH >= start.ranks.len();
        Ok(Self {
            start,
            certifier,
            program,
            stdin,
            guard,
            sources,
            pipes,
            sees_ends,
            last_look: Instant::now(),
            slots,
            running: 0,
            closing: Vec::new(),
        })
    }

    /// How the agent is reached by others, in a job of several hosts.
    pub(crate) fn place(&self) -> anyhow::Result<Option<Place>> {
        let Some(certifier) = &self.certifier else {
            return Ok(None);
        };
        let (listener, locator) = places::listen(&self.start)?;
        let credentials = certifier
            .credentials(self.start.part.number, FIRST_LIFE)
            .with_context(|| format!("the agent of {} cannot prove who it is", self.start.host))?;
        Ok(Some(Place {
            listener,
            locator,
            credentials,
        }))
    }

    pub(crate) fn part(&self) -> &Start {
        &self.start
    }

    /// Starts a process and tells it who it is, then which lives have ended. Returns its pid.
    pub(crate) fn start(
        &mut self,
        rank: u32,
        incarnation: u32,
        fence: &Fence,
    ) -> anyhow::Result<u32> {
        let index = self
            .index(rank)
            .context("the process is not one of this host's")?;
        debug_assert!(
            !matches!(self.slots[index], Slot::Running(_)),
            "a rank has one life at a time"
        );
        let process = self
            .spawn(rank, incarnation)
            .with_context(|| self.start_failed())?;
        let pid = process.child.id();
        if process.group == Group::Own {
            self.guard.add(process.pid);
        }
        self.slots[index] = Slot::Running(Box::new(process));
        self.running += 1;
        self.watch(index).with_context(|| self.start_failed())?;
        let authority = self.certifier.as_ref();
        let authority = authority.map(|certifier| certifier.certificate().to_vec());
        let boot = Boot {
            job: self.start.job,
            rank,
            size: self.start.size,
            incarnation,
            host: self.start.host.clone(),
            hosts: self.start.hosts,
            number: self.start.part.number,
            bind: self.start.bind.clone(),
            networks: self.start.networks.clone(),
            spans: self.start.spans.clone(),
            others: self.start.others.clone(),
            channels: self.start.channels.clone(),
            pace: self.start.part.pace,
            show_paths: self.start.show_paths,
            overdue_ms: self.start.overdue_ms,
            cluster: self.start.cluster.clone(),
            authority: authority.unwrap_or_default(),
        };
        self.post(rank, &ToProcess::Boot(Box::new(boot)), vec![]);
        for (first, last, incarnation) in fence.runs() {
            let (first, last, incarnation) = (first.0, last.0, incarnation.0);
            let packet = ToProcess::Fenced {
                first,
                last,
                incarnation,
            };
            self.post(rank, &packet, vec![]);
        }
        let epoch = fence.epoch().0;
        self.post(rank, &ToProcess::Epoch { epoch }, vec![]);
        Ok(pid)
    }

    /// Sends a packet; it waits if the process is slow, and is dropped if it is gone.
    pub(crate) fn post(&mut self, rank: u32, packet: &ToProcess, fds: Vec<OwnedFd>) {
        let Some(process) = self.process(rank) else {
            return;
        };
        let mut bytes = Vec::new();
        let encoded = packet.encode(&mut bytes);
        debug_assert!(
            encoded.is_ok(),
            "hosts and locators were limited when they came in"
        );
        process.outbox.push_back(Packet { bytes, fds });
        if process.outbox.len() > MAX_OUTBOX {
            // It has not looked for so long that it cannot be made to understand what happened.
            self.close_socket(rank);
            return;
        }
        self.flush_socket(rank);
    }

    /// Answers a process that wants its key certified. One that may not, or that has not the key, loses its socket.
    pub(crate) fn certify(&mut self, rank: u32, request: &[u8]) -> anyhow::Result<()> {
        let Some(process) = self.process(rank) else {
            return Ok(());
        };
        let first = !std::mem::replace(&mut process.certified, true);
        let incarnation = process.incarnation;
        let certified = match &self.certifier {
            Some(certifier) if first => certifier.certify(rank, incarnation, request),
            _ => Err(AuthorityError::Request),
        };
        match certified {
            Ok(certificate) => {
                self.post(rank, &ToProcess::Certificate { certificate }, vec![]);
                Ok(())
            }
            Err(AuthorityError::Request) => {
                self.close_socket(rank);
                Ok(())
            }
            Err(error) => {
                let whom = format!("rank {rank} on {} cannot be certified", self.start.host);
                Err(anyhow::Error::new(error).context(whom))
            }
        }
    }

    /// Tells all processes.
    pub(crate) fn tell_all(&mut self, packet: &ToProcess) {
        for rank in self.start.ranks.clone() {
            self.post(rank, packet, vec![]);
        }
    }

    /// Tells all processes but `subject`, which is what it is about.
    pub(crate) fn broadcast(&mut self, subject: u32, packet: &ToProcess) {
        for rank in self.start.ranks.clone() {
            if rank != subject {
                self.post(rank, packet, vec![]);
            }
        }
    }

    /// Gives two running processes the two ends of a new socket, and tells each which process the other is.
    pub(crate) fn connect(&mut self, a: u32, b: u32) -> Result<(), NoIntroduction> {
        let introductions = (self.introduction(a), self.introduction(b));
        let (Some(of_a), Some(of_b)) = introductions else {
            return Err(NoIntroduction::Gone);
        };
        // Nothing else makes a socket be refused.
        let (to_b, to_a) = Socket::pair().map_err(|_| NoIntroduction::NoDescriptor)?;
        self.post(a, &of_b, vec![to_b.into()]);
        self.post(b, &of_a, vec![to_a.into()]);
        Ok(())
    }

    pub(crate) fn set_left(&mut self, rank: u32) {
        if let Some(process) = self.process(rank) {
            process.left = true;
        }
    }

    /// Passes on a signal that the launcher got.
    pub(crate) fn forward(&mut self, number: u8, origin: SignalOrigin) {
        let number = i32::from(number);
        for process in self.processes() {
            if origin == SignalOrigin::Terminal && process.group == Group::Launcher {
                continue; // The terminal sent it there already.
            }
            // These two mean what the program says they mean, so nothing that it started gets them.
            if number == libc::SIGUSR1 || number == libc::SIGUSR2 {
                process.signal_alone(number);
            } else {
                process.signal(number);
            }
        }
    }

    /// Sends a signal to all processes and what they started, and wakes those that are stopped to take it.
    pub(crate) fn end(&mut self, number: i32) {
        for process in self.processes() {
            process.signal(number);
            process.signal(libc::SIGCONT);
        }
    }

    /// Kills all processes and waits for them.
    pub(crate) fn kill(&mut self) {
        self.end(libc::SIGKILL);
        for rank in self.start.ranks.clone() {
            self.collect(rank, &mut Outlet::new());
        }
    }

    /// Takes the end of a process, with all that it wrote. Waits, if it has not ended.
    pub(crate) fn collect(&mut self, rank: u32, outlet: &mut Outlet) -> Option<Ended> {
        let index = self.index(rank)?;
        let Slot::Running(process) = &mut self.slots[index] else {
            return None;
        };
        // Not yet waited for, so the number of its group is still its own: what it started ends with it.
        if process.group == Group::Own && process.is_dead() {
            process.signal(libc::SIGKILL);
        }
        let status = process.child.wait();
        for stream in [Stream::Out, Stream::Err] {
            drain(rank, stream, process.pipe(stream), outlet);
        }
        if process.group == Group::Own {
            self.guard.remove(process.pid);
        }
        let incarnation = process.incarnation;
        let how = status.map_or(Death::HostLost, death);
        let left = process.left || how == Death::Exit(0);
        if let Some(pidfd) = &process.pidfd {
            let _ = epoll::delete(&self.sources, pidfd);
        }
        self.slots[index] = if left { Slot::Left } else { Slot::Dead };
        self.running -= 1;
        self.closing.retain(|closing| *closing != rank);
        Some(Ended { incarnation, how })
    }

    /// Those who closed their socket before `rank` did, as far as the agent can tell: of two who close it in one turn of the
    /// loop, one that had just said something comes first.
    ///
    /// A process that is killed or exits closes its sockets shortly before its end can be seen. Others who notice, and fail
    /// because of it, may be seen to end before it.
    pub(crate) fn closed_before(&self, rank: u32) -> Vec<u32> {
        let before = |closing: &&u32| **closing != rank;
        self.closing.iter().take_while(before).copied().collect()
    }

    /// Waits for the ends of processes that seem to be ending, and returns those that have ended, in the same order.
    pub(crate) fn wait_for_ends(&mut self, mut ranks: Vec<u32>) -> Vec<u32> {
        // Those who do not end now have closed their socket for another reason, and are not waited for again.
        self.closing.retain(|closing| !ranks.contains(closing));
        let deadline = Instant::now() + END_AFTER_CLOSE;
        ranks.retain(|rank| {
            let process = self.process(*rank);
            process.is_some_and(|process| process.ends_until(deadline))
        });
        ranks
    }

    pub(crate) fn read_pipe(&mut self, rank: u32, stream: Stream, outlet: &mut Outlet) {
        let Some(process) = self.process(rank) else {
            return;
        };
        let Some(pipe) = process.pipe(stream) else {
            return;
        };
        let mut sink = |bytes| outlet.push(rank, stream, bytes);
        if pipe.read(&mut sink) == Read::End {
            pipe.finish(&mut sink);
            *process.pipe(stream) = None;
        }
    }

    /// The next packet of a process. One that makes no sense costs it its socket.
    pub(crate) fn receive(&mut self, rank: u32) -> Option<FromProcess> {
        let socket = self.process(rank)?.socket.as_ref()?;
        let mut buf = [0; MAX_PACKET];
        let packet = match socket.try_recv(&mut buf) {
            Ok(None) => return None,
            // A process has no descriptors to give: they are closed here.
            Ok(Some(received)) => FromProcess::decode(&buf[..received.len]).ok(),
            Err(_) => None,
        };
        if packet.is_none() {
            self.close_socket(rank);
        }
        packet
    }

    /// Sends what the socket had no room for.
    pub(crate) fn flush_socket(&mut self, rank: u32) {
        let Some(index) = self.index(rank) else {
            return;
        };
        let Slot::Running(process) = &mut self.slots[index] else {
            return;
        };
        let Some(socket) = &process.socket else {
            process.outbox.clear();
            return;
        };
        while let Some(packet) = process.outbox.front() {
            let fds: Vec<BorrowedFd<'_>> = packet.fds.iter().map(AsFd::as_fd).collect();
            match socket.try_send(&packet.bytes, &fds) {
                Ok(()) => {
                    process.outbox.pop_front();
                }
                Err(SocketError::Busy) => break,
                Err(_) => {
                    // It closed its end. What it said before is still there to be read.
                    process.outbox.clear();
                    break;
                }
            }
        }
        let waiting = !process.outbox.is_empty();
        if waiting != process.watching_room {
            process.watching_room = waiting;
            let flags = if waiting {
                EventFlags::IN | EventFlags::OUT
            } else {
                EventFlags::IN
            };
            let _ = epoll::modify(&self.sources, socket, data(index, SOCKET), flags);
        }
    }

    pub(crate) fn poll_sources(&self, ready: &mut Vec<Source>) -> Result<(), Errno> {
        self.poll(&self.sources, ready)
    }

    pub(crate) fn poll_pipes(&self, ready: &mut Vec<Source>) -> Result<(), Errno> {
        self.poll(&self.pipes, ready)
    }

    /// Those that have ended and are not collected, where that is not seen by their descriptors.
    pub(crate) fn look_for_ends(&mut self, ready: &mut Vec<Source>) {
        let Some(next) = self.next_look() else {
            return;
        };
        if self.last_look.elapsed() < next {
            return;
        }
        self.last_look = Instant::now();
        for (rank, slot) in self.start.ranks.iter().zip(&self.slots) {
            if matches!(slot, Slot::Running(process) if process.is_dead()) {
                ready.push(Source::Exit(*rank));
            }
        }
    }

    /// How soon ends must be looked for.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        let is_any_ending = !self.closing.is_empty();
        let soon = if is_any_ending { LOOK_CLOSED } else { LOOK };
        (!self.sees_ends && self.running > 0).then_some(soon)
    }

    /// The processes that run.
    pub(crate) fn all_running(&self) -> Vec<Running> {
        let slots = self.start.ranks.iter().zip(&self.slots);
        let running = slots.filter_map(|(rank, slot)| match slot {
            Slot::Running(process) => Some(Running {
                rank: *rank,
                incarnation: process.incarnation,
                pid: process.child.id(),
                has_left: process.left || process.socket.is_none(),
            }),
            Slot::Dead | Slot::Left => None,
        });
        running.collect()
    }

    pub(crate) fn running(&self) -> usize {
        self.running
    }

    pub(crate) fn incarnation(&mut self, rank: u32) -> Option<u32> {
        self.process(rank).map(|process| process.incarnation)
    }

    pub(crate) fn sources(&self) -> BorrowedFd<'_> {
        self.sources.as_fd()
    }

    pub(crate) fn pipes(&self) -> BorrowedFd<'_> {
        self.pipes.as_fd()
    }

    fn spawn(&self, rank: u32, incarnation: u32) -> anyhow::Result<Process> {
        let (ours, theirs) = Socket::pair()?;
        let stdin = if rank == 0 { self.stdin } else { Stdin::Null };
        let at_terminal =
            stdin == Stdin::Inherit && std::io::IsTerminal::is_terminal(&std::io::stdin());
        let group = if at_terminal {
            Group::Launcher
        } else {
            Group::Own
        };
        let variables = self.variables(rank);
        let mut child = self
            .program
            .spawn(variables, theirs.as_fd(), stdin, group)?;
        let parts = parts(&mut child, self.sees_ends);
        let Ok((pid, pidfd, out, err)) = parts else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(parts.err().unwrap_or_else(|| anyhow::anyhow!("no parts")));
        };
        let stamp = ProcessStamp::of(child.id());
        Ok(Process {
            incarnation,
            child,
            pid,
            stamp,
            group,
            pidfd,
            socket: Some(ours),
            outbox: VecDeque::new(),
            watching_room: false,
            out: Some(out),
            err: Some(err),
            certified: false,
            left: false,
        })
    }

    /// What a script that starts the program may want to know.
    fn variables(&self, rank: u32) -> [(&'static str, String); 6] {
        let here = self.start.ranks.len();
        [
            ("MIZZEN_RANK", rank.to_string()),
            ("MIZZEN_SIZE", self.start.size.to_string()),
            ("MIZZEN_HOST", self.start.host.clone()),
            (
                "MIZZEN_LOCAL_RANK",
                self.index(rank).unwrap_or_default().to_string(),
            ),
            ("MIZZEN_LOCAL_SIZE", here.to_string()),
            ("MIZZEN_CORES", share_of_cores(here).to_string()),
        ]
    }

    fn watch(&self, index: usize) -> Result<(), Errno> {
        let Slot::Running(process) = &self.slots[index] else {
            return Ok(());
        };
        if let Some(pidfd) = &process.pidfd {
            epoll::add(&self.sources, pidfd, data(index, EXIT), EventFlags::IN)?;
        }
        if let Some(socket) = &process.socket {
            epoll::add(&self.sources, socket, data(index, SOCKET), EventFlags::IN)?;
        }
        for (pipe, kind) in [(&process.out, OUT), (&process.err, ERR)] {
            if let Some(pipe) = pipe {
                epoll::add(&self.pipes, pipe, data(index, kind), EventFlags::IN)?;
            }
        }
        Ok(())
    }

    fn poll(&self, epoll: &OwnedFd, ready: &mut Vec<Source>) -> Result<(), Errno> {
        let mut found = Vec::with_capacity(EVENTS);
        events::wait(epoll, &mut found, Some(Duration::ZERO))?;
        for event in found {
            let word = event.data.u64();
            let index = usize::try_from(word >> KIND_BITS).unwrap_or(usize::MAX);
            let Some(rank) = self.start.ranks.get(index).copied() else {
                continue;
            };
            ready.push(match word & ((1 << KIND_BITS) - 1) {
                EXIT => Source::Exit(rank),
                SOCKET => Source::Socket(rank),
                OUT => Source::Pipe(rank, Stream::Out),
                _ => Source::Pipe(rank, Stream::Err),
            });
        }
        Ok(())
    }

    /// What another process is told of this one.
    fn introduction(&mut self, rank: u32) -> Option<ToProcess> {
        let process = self.process(rank)?;
        let ProcessStamp { pid, started } = process.stamp;
        Some(ToProcess::Peer {
            rank,
            incarnation: process.incarnation,
            pid,
            started,
        })
    }

    pub(crate) fn close_socket(&mut self, rank: u32) {
        let Some(process) = self.process(rank) else {
            return;
        };
        process.outbox.clear();
        if process.socket.take().is_some() && !process.left {
            self.closing.push(rank);
        }
    }

    fn start_failed(&self) -> String {
        format!(
            "only {} of {} processes of {} could be started on {}, so none is kept; \
             see `ulimit -u`, `ulimit -n` and the free memory there, or give a smaller -n",
            self.running,
            self.start.ranks.len(),
            self.program.path().display(),
            self.start.host
        )
    }

    fn index(&self, rank: u32) -> Option<usize> {
        self.start.ranks.binary_search(&rank).ok()
    }

    fn process(&mut self, rank: u32) -> Option<&mut Process> {
        let index = self.index(rank)?;
        match &mut self.slots[index] {
            Slot::Running(process) => Some(process),
            Slot::Dead | Slot::Left => None,
        }
    }

    fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Running(process) => Some(&mut **process),
            Slot::Dead | Slot::Left => None,
        })
    }
}

impl Process {
    /// Sends a signal to the process and, if it has a group, to what it started.
    fn signal(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else {
            return;
        };
        // The process is not waited for, so both its number and its group's are its own.
        let _ = match self.group {
            Group::Own => kill_process_group(self.pid, signal),
            Group::Launcher => kill_process(self.pid, signal),
        };
    }

    /// Sends a signal to the process, and to nothing that it started.
    fn signal_alone(&self, number: i32) {
        if let Some(signal) = Signal::from_named_raw(number) {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Whether it has ended. It is still to be waited for.
    fn is_dead(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        matches!(waitid(WaitId::Pid(self.pid), options), Ok(Some(_)))
    }

    fn ends_until(&self, deadline: Instant) -> bool {
        if let Ok(pidfd) = ProcessFd::open(self.stamp.pid) {
            let left = deadline.saturating_duration_since(Instant::now());
            let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
            let _ = poll(&mut fds, Timespec::try_from(left).ok().as_ref());
        }
        self.is_dead()
    }

    fn pipe(&mut self, stream: Stream) -> &mut Option<Pipe> {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }
}

fn parts(
    child: &mut Child,
    sees_end: bool,
) -> anyhow::Result<(Pid, Option<ProcessFd>, Pipe, Pipe)> {
    let pid = Pid::from_child(child);
    let pidfd = sees_end.then(|| ProcessFd::open(child.id())).transpose()?;
    let out = Pipe::new(child.stdout.take().context("no pipe")?.into())?;
    let err = Pipe::new(child.stderr.take().context("no pipe")?.into())?;
    Ok((pid, pidfd, out, err))
}

/// Reads what an ended process has left in its pipe. Something that escaped from its group may write on: hence the bound.
fn drain(rank: u32, stream: Stream, slot: &mut Option<Pipe>, outlet: &mut Outlet) {
    let Some(pipe) = slot else { return };
    let mut sink = |bytes| outlet.push(rank, stream, bytes);
    for _ in 0..MAX_READS_AFTER_END {
        if pipe.read(&mut sink) != Read::Some {
            break;
        }
    }
    pipe.finish(&mut sink);
    *slot = None;
}

/// How many of the cores that the agent may use are one process's, of so many on this host.
fn share_of_cores(processes: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / processes.max(1)).max(1)
}

fn death(status: std::process::ExitStatus) -> Death {
    use std::os::unix::process::ExitStatusExt;
    let byte = |number: i32| u8::try_from(number & 0xff).unwrap_or(u8::MAX);
    match (status.code(), status.signal()) {
        (Some(code), _) => Death::Exit(byte(code)),
        (None, Some(number)) => Death::Signal(byte(number)),
        (None, None) => Death::HostLost,
    }
}

fn data(index: usize, kind: u64) -> EventData {
    EventData::new_u64((index as u64) << KIND_BITS | kind)
}

const KIND_BITS: u32 = 2;
const EXIT: u64 = 0;
const SOCKET: u64 = 1;
const OUT: u64 = 2;
const ERR: u64 = 3;

/// Descriptors of a process whose end is seen by one of them.
const DESCRIPTORS_EACH: usize = 4;

/// How soon an end is seen at most that no descriptor and no socket tells of.
const LOOK: Duration = Duration::from_millis(10);
/// The same of a process whose socket has closed: its end is a matter of microseconds.
const LOOK_CLOSED: Duration = Duration::from_millis(1);

/// Packets that wait for a process which does not look: a thousand restarts of each of thirty others, with their epochs.
const MAX_OUTBOX: usize = 98_304;

/// From closing its socket to its end a process takes some microseconds, and more only if the processors are busy.
const END_AFTER_CLOSE: Duration = Duration::from_millis(100);

/// The largest pipe an ordinary user can make holds 1 MiB; a read takes 64 KiB.
const MAX_READS_AFTER_END: usize = 17;
