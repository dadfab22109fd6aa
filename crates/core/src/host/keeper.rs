//! The keeper: one sleeping thread per process, which does what must be done while all others compute. It meets peers
//! that the agent introduces, answers them, and notices their death.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mizzen_proto::boot::{
    self, FromProcess, MAX_PACKET as MAX_AGENT_PACKET, MAX_TOPOLOGY, MAX_WAITING, ToProcess,
    Unreachable,
};
use mizzen_proto::membership::Epoch;
use mizzen_proto::registry::{Answer, Question};
use mizzen_proto::rollcall::{MAX_WAITS, Present};
use mizzen_shm::{
    Access, Fault, ProcessError, ProcessStamp, Socket, SocketError, View, region_of_view,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use tracing::debug;

use super::certify::Heard;
use super::channel::SocketChannel;
use super::departed::DepartedPeers;
use super::packet::{MAX_PACKET, Packet};
use super::pair::{Pair, hello_segments};
use crate::bells::ring;
use crate::crash;
use crate::error::{Departure, Gone, JoinError, ReachError, TopologyError};
use crate::link::{Channel as _, Disconnected};
use crate::link::{MemoryLink, Parts};
use crate::lock::lock;
use crate::memory::{Place, SlabId};
use crate::names::NobodyKeeps;
use crate::net::Networks;
use crate::peers::{MayAsk, Path};
use crate::process::Process;
use crate::progress::Progress;
use crate::rank::{ChannelId, Incarnation, ProcessId, Rank};
use crate::roll::{self, Kind, Teller, WaitsFor};
use crate::threads::Ours;
use crate::together::owners_of;
use crate::topology::Topology;
use crate::wait::Noted;

/// Events taken from the kernel at once.
const EVENTS: usize = 32;

/// Packets of the agent or of one peer that are handled before the other sockets are looked at again.
const PACKETS: usize = 64;
/// Packets of a process that is dead: all that its socket may hold.
const LAST_PACKETS: usize = 1 << 16;

/// How soon packets that a full socket did not take are tried again.
const BACKLOG_NAP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 2_000_000,
};
/// How long after its socket closed a dying process may take to be dead.
const DEATH_PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// How soon a descriptor of a process that may live on is asked for again, if none was free.
const DESCRIPTOR_NAP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// How soon the launcher is asked again where a rank listens, when it told of a life before the wanted one, or of one that does not
/// listen there.
const ASK_AGAIN: Duration = Duration::from_millis(10);
/// How long a thread that waits for another process sleeps before it looks again how long that takes.
const REACH_NAP: Duration = Duration::from_millis(500);
/// How long the launcher has to say who is where.
const ANSWER: Duration = Duration::from_secs(30);
/// How long after a process stopped listening the launcher may take to know that it left.
const LEAVING: Duration = Duration::from_secs(2);

const AGENT: u64 = 0;
const WAKE: u64 = 1;
/// Keys of peers' sockets, and of processes of those that are departed: two for each, from here on.
const FIRST_PEER: u64 = 2;

/// The keeper as the other threads of the process see it.
#[derive(Debug)]
pub(crate) struct Keeper {
    agent: Socket,
    /// Whether the user wants to know how peers are reached.
    shows_paths: bool,
    has_asked_last: AtomicBool,
    wake: OwnedFd,
    stop: AtomicBool,
    introductions: Mutex<Introductions>,
    changed: Condvar,
    channels: Mutex<Vec<Weak<SocketChannel>>>,
    /// Held by the thread that asks who is where.
    asking: Mutex<()>,
    /// The page of it that came.
    page: Mutex<Option<Page>>,
    page_came: Condvar,
    /// Whether the agent is gone.
    is_alone: AtomicBool,
    thread: OnceLock<JoinHandle<()>>,
}

impl Teller for Keeper {
    fn tell_overdue(&self, waited: Duration) {
        let millis = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        let _ = self.tell_agent(&FromProcess::Overdue { millis });
    }
}

/// A part of what the launcher says about who is where.
#[derive(Debug)]
struct Page {
    from: u32,
    total: u32,
    bytes: Vec<u8>,
}

/// Who we asked the agent for. It must be asked once: asking again connects anew.
#[derive(Debug, Default)]
struct Introductions {
    asked: HashSet<Rank>,
    /// Introduced, but their hello has not come.
    meeting: HashSet<Rank>,
    refused: HashMap<Rank, ReachError>,
    /// Processes of other hosts, and where they listen.
    elsewhere: HashMap<Rank, (ProcessId, String)>,
}

impl Introductions {
    fn refuse(&mut self, rank: Rank, error: ReachError) {
        self.asked.remove(&rank);
        self.meeting.remove(&rank);
        self.refused.insert(rank, error);
    }
}

impl Keeper {
    pub(super) fn new(agent: Socket, shows_paths: bool) -> Result<Arc<Self>, JoinError> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(std::io::Error::from)?;
        Ok(Arc::new(Self {
            agent,
            shows_paths,
            has_asked_last: AtomicBool::new(false),
            wake,
            stop: AtomicBool::new(false),
            introductions: Mutex::default(),
            changed: Condvar::new(),
            channels: Mutex::default(),
            asking: Mutex::default(),
            page: Mutex::default(),
            page_came: Condvar::new(),
            is_alone: AtomicBool::new(false),
            thread: OnceLock::new(),
        }))
    }

    /// Starts the thread, which first does what the agent asked for in `early`.
    pub(super) fn start(
        self: &Arc<Self>,
        process: &Arc<Process>,
        early: Vec<Heard>,
    ) -> Result<(), JoinError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(std::io::Error::from)?;
        let mut rounds = Rounds {
            keeper: Arc::clone(self),
            process: Arc::downgrade(process),
            me: process.id,
            epoll,
            peers: HashMap::new(),
            departed: DepartedPeers::default(),
            last_key: FIRST_PEER,
        };
        rounds.watch(self.agent.as_fd(), AGENT)?;
        rounds.watch(self.wake.as_fd(), WAKE)?;
        for (packet, fds) in early {
            rounds.handle_agent(process, packet, fds);
        }
        let thread = std::thread::Builder::new()
            .name("mizzen-keeper".into())
            .spawn(move || {
                let _ours = Ours::enter();
                rounds.run();
            })?;
        let _ = self.thread.set(thread);
        Ok(())
    }

    pub(super) fn tell_agent(&self, packet: &FromProcess) -> Result<(), Disconnected> {
        let mut bytes = Vec::new();
        packet.encode(&mut bytes).map_err(|_| Disconnected)?;
        self.agent.send(&bytes, &[]).map_err(|_| Disconnected)
    }

    /// The path on a channel to a life of a rank or to a later one, waiting for the agent's introduction.
    pub(crate) fn reach(
        &self,
        process: &Arc<Process>,
        channel: ChannelId,
        first: ProcessId,
        patience: Duration,
    ) -> Result<Path, ReachError> {
        let (rank, since) = (first.rank, first.incarnation);
        let no_path = |cause: &str| ReachError::NoPath {
            rank,
            cause: cause.into(),
        };
        let deadline = Instant::now() + patience;
        let mut refused = None;
        let (begun, mut noted) = (Instant::now(), Noted::default());
        let mut state = lock(&self.introductions);
        state.refused.remove(&rank);
        loop {
            let may_ask = match process.peers.path_or_ask(channel, rank, since) {
                Ok(path) => return Ok(path),
                Err(MayAsk(may_ask)) => may_ask,
            };
            if let Some(error) = state.refused.get(&rank) {
                return Err(error.clone());
            }
            let mut left = deadline.saturating_duration_since(Instant::now());
            let is_stale = match state.elsewhere.remove(&rank) {
                Some((peer, locator)) if peer.incarnation >= since => {
                    drop(state);
                    let outcome = self.connect(process, channel, peer, &locator, deadline);
                    let may_have_left = matches!(outcome, Err(Unmet::Refused(_)))
                        && refused.get_or_insert_with(Instant::now).elapsed() < LEAVING;
                    if !may_have_left || Instant::now() >= deadline {
                        return outcome.map_err(Unmet::into_error);
                    }
                    state = lock(&self.introductions);
                    true
                }
                // Where an earlier life listened: the launcher will hear of the later one.
                stale => stale.is_some(),
            };
            if is_stale {
                left = left.min(ASK_AGAIN);
            } else if may_ask && !state.meeting.contains(&rank) && state.asked.insert(rank) {
                let asked = self.tell_agent(&FromProcess::Reach { rank: rank.0 });
                asked.map_err(|_| no_path("the launcher's agent is gone"))?;
            }
            if left.is_zero() {
                return Err(no_path("it did not answer the introduction in time"));
            }
            let what = || WaitsFor::one(Kind::Other, rank, format!("to reach rank {rank}"));
            noted.keep_after(begun.elapsed(), what);
            let woken = self.changed.wait_timeout(state, left.min(REACH_NAP));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has the launcher tell the user something about this process.
    pub(crate) fn remark(&self, text: String) {
        let text = cut(text);
        let _ = self.tell_agent(&FromProcess::Waiting { text });
    }

    /// Says which threads wait, and which sessions are down. An agent that has no room for it now is not answered: it says so.
    fn answer_roll_call(&self, process: &Process) {
        let (waits, all) = roll::call(MAX_WAITS);
        let down = process.networks.get().map(Networks::down);
        let present = Present {
            left_out: u32::try_from(all - waits.len()).unwrap_or(u32::MAX),
            waits,
            down: down.unwrap_or_default(),
        };
        let present = present.encode();
        let mut bytes = Vec::new();
        if (FromProcess::Present { present })
            .encode(&mut bytes)
            .is_ok()
        {
            let _ = self.agent.try_send(&bytes, &[]);
        }
    }

    /// Has the launcher show how far something is. An agent that has no room for it now hears the next word about it; after
    /// the last one there is none.
    pub(super) fn tell_progress(&self, progress: boot::Progress) {
        let is_last = progress.is_over;
        let packet = FromProcess::Progress(progress);
        if is_last {
            let _ = self.tell_agent(&packet);
            return;
        }
        let mut bytes = Vec::new();
        if packet.encode(&mut bytes).is_ok() {
            let _ = self.agent.try_send(&bytes, &[]);
        }
    }

    /// Asks where a rank is that cannot be reached: it may have left. Without waiting; who has no room for it is asked again.
    pub(super) fn ask_about(&self, rank: Rank) {
        let mut state = lock(&self.introductions);
        if !state.asked.insert(rank) {
            return;
        }
        let mut bytes = Vec::new();
        let packet = FromProcess::Reach { rank: rank.0 };
        let is_asked =
            packet.encode(&mut bytes).is_ok() && self.agent.try_send(&bytes, &[]).is_ok();
        if !is_asked {
            state.asked.remove(&rank);
        }
    }

    /// Asks the agent about a name.
    pub(super) fn ask_name(&self, question: &Question) -> Result<(), NobodyKeeps> {
        let mut bytes = Vec::new();
        question.encode(&mut bytes).map_err(|_| NobodyKeeps)?;
        let asked = self.tell_agent(&FromProcess::Ask { question: bytes });
        asked.map_err(|_| NobodyKeeps)
    }

    /// Asks the launcher who is where, page by page.
    pub(super) fn topology(&self, me: ProcessId) -> Result<Topology, TopologyError> {
        // One thread asks at a time: pages know not for whom they are.
        let _asking = lock(&self.asking);
        let deadline = Instant::now() + ANSWER;
        let mut all = Vec::new();
        loop {
            let from = u32::try_from(all.len()).map_err(|_| TopologyError::Malformed)?;
            let Page { total, bytes, .. } = self.ask_page(from, deadline)?;
            if total == 0 {
                return Err(TopologyError::TooMany);
            }
            if bytes.is_empty() || total as usize > MAX_TOPOLOGY {
                return Err(TopologyError::Malformed);
            }
            all.extend(bytes);
            if all.len() >= total as usize {
                let told = boot::Topology::decode(&all);
                let told = told.map_err(|_| TopologyError::Malformed)?;
                return Ok(Topology::new(me, told));
            }
        }
    }

    /// Who waits for the launcher's answer waits in vain.
    fn handle_agent_gone(&self) {
        let page = lock(&self.page);
        self.is_alone.store(true, Ordering::Release);
        drop(page);
        self.page_came.notify_all();
    }

    fn ask_page(&self, from: u32, deadline: Instant) -> Result<Page, TopologyError> {
        let mut page = lock(&self.page);
        let asked = self.tell_agent(&FromProcess::AskTopology { from });
        asked.map_err(|_| TopologyError::NoAgent)?;
        loop {
            if let Some(came) = page.take().filter(|came| came.from == from) {
                return Ok(came);
            }
            if self.is_alone.load(Ordering::Acquire) {
                return Err(TopologyError::NoAgent);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TopologyError::NoAnswer);
            }
            let woken = self.page_came.wait_timeout(page, left);
            page = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has the launcher say when this process is the last one. It is asked once.
    pub(super) fn ask_last(&self) {
        if !self.has_asked_last.swap(true, Ordering::Relaxed) {
            let _ = self.tell_agent(&FromProcess::AskLast);
        }
    }

    /// The path to a process of another host.
    fn connect(
        &self,
        process: &Arc<Process>,
        channel: ChannelId,
        peer: ProcessId,
        locator: &str,
        deadline: Instant,
    ) -> Result<Path, Unmet> {
        let gone = || process.peers.gone(peer).map(ReachError::Gone);
        if let Some(gone) = gone() {
            return Err(Unmet::Final(gone));
        }
        let cause = || "this process has no network, although the job has several hosts".into();
        let no_network = || ReachError::NoPath {
            rank: peer.rank,
            cause: cause(),
        };
        let networks = process.networks.get();
        let networks = networks.ok_or_else(|| Unmet::Final(no_network()))?;
        match networks.connect(channel, peer, locator, deadline, |way| self.tell_path(way)) {
            Ok(link) => {
                // Another thread may have made another meanwhile: all use the same, or their messages would have no order.
                let path = Path::Net(link);
                process.peers.add_net(channel, path.clone());
                let known = process.peers.usable(channel, peer.rank, peer.incarnation);
                Ok(known.unwrap_or(path))
            }
            // It may have left while we dialled.
            Err(error) => Err(match gone() {
                Some(gone) => Unmet::Final(gone),
                None if networks.has_one_of(channel, locator) => Unmet::Refused(error),
                None => Unmet::Final(error),
            }),
        }
    }

    /// Has the user told how a peer is reached, if it asked for that.
    fn tell_path(&self, text: String) {
        if self.shows_paths {
            let text = cut(text);
            let _ = self.tell_agent(&FromProcess::Path { text });
        }
    }

    /// Leaves the job, and the thread ends. Peers and the agent are told, unless the program is dying.
    pub(crate) fn leave(&self, how: Departure) {
        if how == Departure::Left {
            for channel in lock(&self.channels)
                .drain(..)
                .filter_map(|channel| channel.upgrade())
            {
                channel.say_bye();
            }
            let _ = self.tell_agent(&FromProcess::Leaving);
        }
        self.stop.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Something that [`reach`](Self::reach) waits for may have happened.
    fn notify(&self) {
        // Taking the lock orders this after the look of a thread that is about to wait.
        drop(lock(&self.introductions));
        self.changed.notify_all();
    }
}

/// Why a process of another host was not met.
enum Unmet {
    /// It did not take our call where it listened. It may be leaving, and the launcher about to hear of it.
    Refused(ReachError),
    Final(ReachError),
}

impl Unmet {
    fn into_error(self) -> ReachError {
        match self {
            Self::Refused(error) | Self::Final(error) => error,
        }
    }
}

/// As much of a text as the agent takes.
fn cut(mut text: String) -> String {
    let end = (0..=MAX_WAITING.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
    text
}

/// The keeper's thread.
struct Rounds {
    keeper: Arc<Keeper>,
    process: Weak<Process>,
    me: ProcessId,
    epoll: OwnedFd,
    peers: HashMap<u64, PeerEntry>,
    departed: DepartedPeers,
    last_key: u64,
}

/// A peer we were introduced to.
struct PeerEntry {
    id: ProcessId,
    channel: Arc<SocketChannel>,
    pair: Pair,
    /// Which process it is. A descriptor of it would be a second one for each peer, and its socket tells of its end.
    stamp: ProcessStamp,
    /// Our half of the memory, until our hello took it along. Before that the peer is not listened to: nothing may come before it.
    unsaid: Option<OwnedFd>,
    /// After its hello.
    link: Option<Arc<MemoryLink>>,
}

/// Why a peer's packets end.
enum End {
    /// Nothing more now.
    Later,
    /// It left or died.
    Gone(Departure),
}

impl Rounds {
    fn run(&mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        while !self.keeper.stop.load(Ordering::Acquire) {
            events.clear();
            let buffer = rustix::buffer::spare_capacity(&mut events);
            let waits = |entry: &PeerEntry| entry.channel.has_backlog() || entry.unsaid.is_some();
            let backlog = self.peers.values().any(waits);
            let unwatched = self.departed.has_unwatched();
            let nap = match backlog {
                true => Some(&BACKLOG_NAP),
                false => unwatched.then_some(&DESCRIPTOR_NAP),
            };
            if let Err(error) = epoll::wait(&self.epoll, buffer, nap) {
                if error != rustix::io::Errno::INTR {
                    return;
                }
                continue;
            }
            for entry in self
                .peers
                .values()
                .filter(|entry| entry.channel.has_backlog())
            {
                entry.channel.flush();
            }
            // The process outlives this round, not the wait.
            let Some(process) = self.process.upgrade() else {
                return;
            };
            if backlog {
                self.say_hellos(&process);
            }
            if unwatched {
                self.departed.watch(&self.epoll, &process.links.arena);
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    AGENT => {
                        if !self.hear_agent(&process) {
                            let _ = epoll::delete(&self.epoll, self.keeper.agent.as_fd());
                            process.names_gone();
                            self.keeper.handle_agent_gone();
                        }
                    }
                    WAKE => {
                        let _ = rustix::io::read(&self.keeper.wake, &mut [0; 8]);
                    }
                    key => self.hear_peer(&process, key),
                }
            }
        }
    }

    fn watch(&self, fd: BorrowedFd<'_>, key: u64) -> Result<(), JoinError> {
        let data = epoll::EventData::new_u64(key);
        epoll::add(&self.epoll, fd, data, epoll::EventFlags::IN)
            .map_err(|error| std::io::Error::from(error).into())
    }

    /// Takes what the agent said, some of it at once. `false` if it is gone.
    fn hear_agent(&mut self, process: &Arc<Process>) -> bool {
        let mut buffer = [0; MAX_AGENT_PACKET];
        for _ in 0..PACKETS {
            let received = match self.keeper.agent.try_recv(&mut buffer) {
                Ok(Some(received)) => received,
                Ok(None) => return true,
                Err(_) => return false,
            };
            let Ok(packet) = ToProcess::decode(&buffer[..received.len]) else {
                return false;
            };
            self.handle_agent(process, packet, received.fds);
        }
        true
    }

    fn handle_agent(&mut self, process: &Arc<Process>, packet: ToProcess, fds: Vec<OwnedFd>) {
        let life = |rank, incarnation| ProcessId::new(Rank(rank), Incarnation(incarnation));
        match packet {
            ToProcess::Peer {
                rank,
                incarnation,
                pid,
                started,
            } => {
                let id = life(rank, incarnation);
                let stamp = ProcessStamp { pid, started };
                {
                    let mut state = lock(&self.keeper.introductions);
                    state.asked.remove(&id.rank);
                    state.meeting.insert(id.rank);
                }
                if self.meet(process, id, stamp, fds).is_err() {
                    let cause = "its shared memory could not be set up".into();
                    let error = ReachError::NoPath {
                        rank: id.rank,
                        cause,
                    };
                    lock(&self.keeper.introductions).refuse(id.rank, error);
                }
                self.keeper.notify();
            }
            ToProcess::Unreachable { rank, reason } => {
                let rank = Rank(rank);
                let gone = |how| {
                    let known = process.peers.last_gone(rank);
                    ReachError::Gone(
                        known.unwrap_or(Gone::new(ProcessId::new(rank, Incarnation(0)), how)),
                    )
                };
                let error = match reason {
                    Unreachable::NoSuchRank => ReachError::NoSuchRank {
                        rank,
                        size: process.size,
                    },
                    Unreachable::Dead => gone(Departure::Died),
                    Unreachable::Left => gone(Departure::Left),
                };
                lock(&self.keeper.introductions).refuse(rank, error);
                if let (Unreachable::Left, Some(networks)) = (reason, process.networks.get()) {
                    networks.pronounce_left(rank);
                }
                self.keeper.notify();
            }
            ToProcess::Died {
                rank,
                incarnation,
                how,
            } => {
                let id = life(rank, incarnation);
                self.lose(process, id, Departure::Died);
                process.process_failed(id, how);
                self.keeper.notify();
            }
            // A new life is met when it is first reached, by either side.
            ToProcess::Joined { rank, incarnation } => {
                process.peer_joined(life(rank, incarnation));
                self.keeper.notify();
            }
            ToProcess::Address {
                rank,
                incarnation,
                locator,
            } => {
                let id = life(rank, incarnation);
                let mut state = lock(&self.keeper.introductions);
                state.asked.remove(&id.rank);
                state.elsewhere.insert(id.rank, (id, locator));
                drop(state);
                self.keeper.notify();
            }
            ToProcess::Last => process.note_last(),
            // One that makes no sense answers nothing.
            ToProcess::Answer { answer } => {
                if let Ok(answer) = Answer::decode(&answer) {
                    process.handle_answer(answer);
                }
            }
            ToProcess::Fenced { .. } | ToProcess::Epoch { .. } => hear_verdict(process, &packet),
            ToProcess::Topology { from, total, bytes } => {
                *lock(&self.keeper.page) = Some(Page { from, total, bytes });
                self.keeper.page_came.notify_all();
            }
            ToProcess::Gateway {
                host,
                life,
                locator,
            } => {
                if let Some(networks) = process.networks.get() {
                    networks.handle_gateway(host, life, &locator);
                }
            }
            ToProcess::RollCall => self.keeper.answer_roll_call(process),
            // Both were taken while joining; there is one of each.
            ToProcess::Boot(_) | ToProcess::Certificate { .. } => (),
        }
    }

    /// The agent introduces us to a peer: makes our half of the pair and says hello.
    fn meet(
        &mut self,
        process: &Arc<Process>,
        id: ProcessId,
        stamp: ProcessStamp,
        fds: Vec<OwnedFd>,
    ) -> Result<(), JoinError> {
        let broken = || JoinError::Agent("an introduction without its descriptor".into());
        let [socket] = <[OwnedFd; 1]>::try_from(fds).map_err(|_| broken())?;
        let socket = Socket::from_fd(socket).map_err(|_| broken())?;
        crash::point("attach.introduced");
        let (pair, memory) = Pair::make()?;
        crash::point("attach.made");
        let channel = Arc::new(SocketChannel::new(socket, stamp.pid, pair.clone()));
        let key = self.last_key;
        self.last_key += 2;
        lock(&self.keeper.channels).push(Arc::downgrade(&channel));
        let mut entry = PeerEntry {
            id,
            channel,
            pair,
            unsaid: Some(memory),
            stamp,
            link: None,
        };
        if entry.say_hello(process, self.me) {
            self.watch(entry.channel.socket().as_fd(), key)?;
        }
        crash::point("attach.hello");
        self.peers.insert(key, entry);
        Ok(())
    }

    /// Says hello to those for whom too many descriptors were under way.
    fn say_hellos(&mut self, process: &Process) {
        let mut said = Vec::new();
        for (key, entry) in &mut self.peers {
            if entry.unsaid.is_some() && entry.say_hello(process, self.me) {
                said.push(*key);
            }
        }
        for key in said {
            let socket = self.peers[&key].channel.socket();
            // A kernel that has no memory for it has none for what comes next either; the agent tells of the peer's death.
            let _ = self.watch(socket.as_fd(), key);
        }
    }

    fn hear_peer(&mut self, process: &Arc<Process>, key: u64) {
        let Some(entry) = self.peers.get_mut(&key) else {
            self.departed
                .reclaim(&self.epoll, &process.links.arena, key);
            return;
        };
        let end = entry.hear(process, self.me, PACKETS);
        if entry.link.is_some() {
            lock(&self.keeper.introductions)
                .meeting
                .remove(&entry.id.rank);
        }
        self.keeper.notify();
        if let End::Gone(how) = end {
            self.forget(process, key, how);
        }
    }

    fn lose(&mut self, process: &Arc<Process>, id: ProcessId, how: Departure) {
        let found = self
            .peers
            .iter()
            .find(|(_, entry)| entry.id == id)
            .map(|(key, _)| *key);
        if let Some(key) = found {
            if let Some(entry) = self.peers.get_mut(&key) {
                entry.hear(process, self.me, LAST_PACKETS);
            }
            self.forget(process, key, how);
        }
    }

    fn forget(&mut self, process: &Arc<Process>, key: u64, how: Departure) {
        let Some(entry) = self.peers.remove(&key) else {
            return;
        };
        let _ = epoll::delete(&self.epoll, entry.channel.socket().as_fd());
        let how = match how {
            Departure::ConnectionLost => entry.die_or_misbehave(),
            how => how,
        };
        if how == Departure::Misbehaved {
            // It lives, and nobody hears it any more: it shall not wait for room in a socket that nobody reads.
            entry.channel.cut();
        }
        match &entry.link {
            Some(link) => process.end_link(link, how),
            None => process.peer_gone(Gone::new(entry.id, how)),
        }
        // Whoever waits for a peer that died on the way asks the agent again: it may have another life.
        lock(&self.keeper.introductions)
            .meeting
            .remove(&entry.id.rank);
        entry.channel.hang_up();
        if let Some(link) = entry.link.as_ref().filter(|_| how != Departure::Died) {
            let arena = &process.links.arena;
            self.departed.add(key + 1, entry.stamp, link, how);
            self.departed.watch(&self.epoll, arena);
        }
        self.keeper.notify();
    }
}

/// Takes what the agent says of lives that have ended; other packets say nothing of them, or more than that.
pub(super) fn hear_verdict(process: &Process, packet: &ToProcess) {
    match *packet {
        ToProcess::Fenced {
            first,
            last,
            incarnation,
        } => process.lives_ended(Rank(first), Rank(last), Incarnation(incarnation)),
        ToProcess::Epoch { epoch } => process.epoch_told(Epoch(epoch)),
        _ => (),
    }
}

impl PeerEntry {
    /// Says hello, with our half of the memory. `false` if too many descriptors are under way: then later.
    fn say_hello(&mut self, process: &Process, me: ProcessId) -> bool {
        let Some(memory) = &self.unsaid else {
            return true;
        };
        let hello = Packet::Hello(me).encode();
        let segments = hello_segments(process, memory);
        if let Err(SocketError::Busy) = self.channel.socket().try_send(&hello, &segments) {
            return false;
        }
        // If the peer is gone already, its death is the next event.
        self.unsaid = None;
        true
    }

    /// The socket closed without a word. A dying process closes its sockets a moment before it is dead; one that lives on has
    /// broken the link, and may still read what we lent it.
    fn die_or_misbehave(&self) -> Departure {
        let process_fd = match self.stamp.open() {
            Ok(process_fd) => process_fd,
            Err(ProcessError::Gone) => return Departure::Died,
            Err(_) => return Departure::Misbehaved,
        };
        let mut watched = [PollFd::new(&process_fd, PollFlags::IN)];
        match poll(&mut watched, Some(&DEATH_PATIENCE)) {
            Ok(ready) if ready > 0 => Departure::Died,
            _ => Departure::Misbehaved,
        }
    }

    /// Takes what the peer said, up to so many packets. The kernel tells of the others again.
    fn hear(&mut self, process: &Arc<Process>, me: ProcessId, packets: usize) -> End {
        let mut buffer = [0; MAX_PACKET];
        for _ in 0..packets {
            let received = match self.channel.socket().try_recv(&mut buffer) {
                Ok(Some(received)) => received,
                Ok(None) => return End::Later,
                Err(SocketError::TooLarge | SocketError::TooManyFds) => {
                    return End::Gone(Departure::Misbehaved);
                }
                Err(_) => return End::Gone(Departure::ConnectionLost),
            };
            let Some(packet) = Packet::decode(&buffer[..received.len]) else {
                return End::Gone(Departure::Misbehaved);
            };
            match self.handle(process, me, packet, received.fds) {
                Ok(true) => (),
                Ok(false) => return End::Gone(Departure::Left),
                Err(Disconnected) => return End::Gone(Departure::Misbehaved),
            }
        }
        End::Later
    }

    /// `Ok(false)` when the peer said goodbye.
    fn handle(
        &mut self,
        process: &Arc<Process>,
        me: ProcessId,
        packet: Packet,
        mut fds: Vec<OwnedFd>,
    ) -> Result<bool, Disconnected> {
        let Some(link) = &self.link else {
            return match packet {
                Packet::Hello(id) if id == self.id && id != me => {
                    self.attach(process, fds).map(|()| true)
                }
                Packet::Bye => Ok(false),
                _ => Err(Disconnected),
            };
        };
        match packet {
            Packet::Hello(_) => return Err(Disconnected),
            Packet::OpenLane { lane, mailbox } => {
                let memory = fds.pop().filter(|_| fds.is_empty()).ok_or(Disconnected)?;
                // A peer that hangs up while we answer is noticed by its socket.
                let _ =
                    self.channel
                        .handle_open_lane(&process.mailboxes, link, lane, mailbox, memory);
            }
            Packet::LaneOpened { lane, line } => self.channel.handle_lane_opened(lane, line),
            Packet::LaneRefused { lane, full } => self.channel.handle_lane_refused(lane, full),
            Packet::LaneClosed { lane } => self.channel.handle_lane_closed(lane),
            Packet::LaneDone { lane } => self.channel.handle_lane_done(&process.mailboxes, lane),
            Packet::Slab { number, bytes } => {
                let memory = fds.pop().filter(|_| fds.is_empty()).ok_or(Disconnected)?;
                let bytes = usize::try_from(bytes).map_err(|_| Disconnected)?;
                if !link.has_room_for_slab(bytes) {
                    return Err(Disconnected);
                }
                let view = View::attach(memory, bytes, Access::ReadOnly, Fault::Now)
                    .map_err(|_| Disconnected)?;
                let added = link.add_slab(SlabId(number), region_of_view(view));
                return if added { Ok(true) } else { Err(Disconnected) };
            }
            Packet::SlabGone { number } => link.remove_slab(SlabId(number)),
            Packet::Handed => link.note_handed(),
            Packet::ShowTo { number, to } => self.show_to(process, number, to),
            Packet::Shown { number, to, place } => {
                self.channel.handle_shown(number, to, Place::new(place));
            }
            Packet::Remind => process.pump_all(),
            Packet::Bye => return Ok(false),
        }
        Ok(true)
    }

    /// The peer asks to show a slab of ours to another process, which we may have yet to meet: that takes the keeper, so
    /// another thread waits for it.
    fn show_to(&self, process: &Arc<Process>, number: u32, to: ProcessId) {
        let (process, channel) = (Arc::clone(process), Arc::clone(&self.channel));
        let asker = self.id;
        let show = move || {
            let _ours = Ours::enter();
            let place = process.show_to(asker, SlabId(number), to);
            channel.answer_shown(number, to, place);
        };
        let may_show = self.channel.begin_to_show();
        let thread = std::thread::Builder::new().name("mizzen-show".into());
        if !may_show || thread.spawn(show).is_err() {
            self.channel.answer_shown(number, to, None);
        }
    }

    /// The peer's hello came: the link is complete.
    fn attach(&mut self, process: &Arc<Process>, fds: Vec<OwnedFd>) -> Result<(), Disconnected> {
        let theirs = Pair::attach(fds)
            .map_err(|_| Disconnected)?
            .ok_or(Disconnected)?;
        crash::point("attach.mapped");
        let (out, back) = self.pair.shared_lanes(&theirs.pair).ok_or(Disconnected)?;
        let bells = theirs.bells.clone();
        let parts = Parts {
            lane: out.shared_producer(),
            inbound: back.consumer_calling(move |bell| ring(&bells, bell)),
            watches: theirs.watches,
            bells: theirs.bells,
            ours: self.pair.tables(),
            theirs: theirs.pair.tables(),
            owners: owners_of(process),
        };
        self.channel.set_theirs(theirs.pair);
        let link = Arc::new(MemoryLink::new(
            self.id,
            parts,
            Box::new(Arc::clone(&self.channel)),
        ));
        debug!(parent: &process.span, peer = %link.peer, "link through memory made");
        process.peers.add(Path::Memory(Arc::clone(&link)));
        process.links.add(Arc::clone(&link));
        self.link = Some(Arc::clone(&link));
        crash::point("attach.linked");
        // The peer may have posted before we could look, and its rings found nobody who knew the lane.
        link.take_backlog(&process.mailboxes);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
