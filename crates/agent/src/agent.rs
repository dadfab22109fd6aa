//! The agent: starts the processes of one host, introduces them to each other, reports what they write and how they end.
//!
//! One loop, one thread, whatever the number of processes. What becomes of the job is decided by the root, which is in the agent of
//! the first host (`control.rs`). Its life: `Hello`, wait for `Start`, join the other agents, start all processes or none, then serve
//! until the job ends and the last process has. If the launcher is gone, so is the job: everything is killed.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use mizzen_proto::boot::{
    Death, FromAgent, FromProcess, MAX_ERROR, Start, ToAgent, ToProcess, VERSION,
};
use mizzen_proto::broker::{Action, Broker, Departure};
use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::{AgentId, Change, Fence, HostId, Notice, Standing, Why};
use mizzen_proto::registry::{Answer, Question};
use rustix::event::epoll;
use rustix::io::Errno;

use crate::children::{Children, Ended, NoIntroduction, Source};
use crate::control::{Command, Control, Place};
use crate::events::EVENTS;
use crate::gateways::Gateways;
use crate::link::{INPUT, Link};
use crate::net::FIRST_LIFE;
use crate::output::Outlet;
use crate::roll_call::RollCalls;
use crate::spawn::Stdin;
use crate::stream::{FrameStream, Other};

/// Runs an agent on standard input and output, for a launcher on another host. See [`serve`].
///
/// # Errors
///
/// Those of [`serve`], and of descriptors that cannot be copied.
pub fn serve_remote() -> anyhow::Result<()> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    let stream = FrameStream::new(input, output)?;
    serve(stream, Stdin::Null)
}

/// Runs an agent until its job ends. `stdin` says what the process of rank 0 reads.
///
/// The kernel ends the processes with the thread that calls this.
///
/// # Errors
///
/// If the stream cannot be waited for, or what comes first is not what a launcher says. What fails later is reported to the
/// launcher, in a frame.
pub fn serve(stream: FrameStream, stdin: Stdin) -> anyhow::Result<()> {
    let mut link = Link::new(stream)?;
    link.send(&FromAgent::Hello { version: VERSION });
    let Some(start) = link.wait_for_start()? else {
        return Ok(());
    };
    let mut agent = match Agent::new(link, *start, stdin) {
        Ok(agent) => agent,
        Err((mut link, error)) => {
            link.send(&FromAgent::Error {
                text: sentence(&error),
            });
            link.drain();
            return Ok(());
        }
    };
    agent.serve()
}

struct Agent {
    link: Link,
    children: Children,
    broker: Broker,
    control: Control,
    /// If some hosts reach others through gateways only.
    gateways: Option<Gateways>,
    phase: Phase,
    outlet: Outlet,
    /// Whether the epoll of pipes is part of the loop: not while the launcher has no room.
    reading_pipes: bool,
    /// Who wants to know when it is the last process.
    asking_last: BTreeSet<ProcessId>,
    roll_calls: RollCalls,
    /// Who was to be started when everything was to end. They have ended when the root says that all do.
    unstarted: Vec<ProcessId>,
    /// Why not all processes could be started for the first time: none is kept.
    failure: Option<anyhow::Error>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    /// Asked nicely; killed at that time.
    Ending(Instant),
    /// Killed; at that time the agent waits for nobody any more.
    Killed(Instant),
}

impl Agent {
    /// Prepares everything; no process is started yet.
    fn new(link: Link, start: Start, stdin: Stdin) -> Result<Self, (Link, anyhow::Error)> {
        let broker = Broker::new(start.size, start.on_death, &start.ranks);
        let prepared = Children::new(start, stdin).and_then(|children| {
            let mut place = children.place()?;
            let gateways = place.as_mut().map(|place| open_gateways(&children, place));
            let gateways = gateways.transpose()?.flatten();
            let control = Control::new(children.part(), place)?;
            watch(&link, &children, &control)?;
            Ok((children, control, gateways))
        });
        let (children, control, gateways) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return Err((link, error)),
        };
        Ok(Self {
            link,
            children,
            broker,
            control,
            gateways,
            phase: Phase::Serving,
            outlet: Outlet::new(),
            reading_pipes: true,
            asking_last: BTreeSet::new(),
            roll_calls: RollCalls::default(),
            unstarted: Vec::new(),
            failure: None,
        })
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut ready = Vec::with_capacity(EVENTS);
        // Frames that came together with the first.
        self.handle_frames();
        loop {
            self.obey();
            if let Some(error) = self.failure.take() {
                self.children.kill();
                self.link.send(&FromAgent::Error {
                    text: sentence(&error),
                });
                self.link.drain();
                return Ok(());
            }
            self.send_output();
            for frame in self.roll_calls.poll(Instant::now()) {
                self.link.send(&frame);
            }
            self.link.flush();
            if self.link.other == Other::Closed {
                self.children.kill();
                return Ok(());
            }
            if self.is_done() {
                self.link.drain();
                return Ok(());
            }
            self.balance()?;
            self.link.wait(&mut events, self.timeout())?;
            for event in events.drain(..) {
                match event.data.u64() {
                    INPUT => self.handle_launcher(),
                    SOURCES => self.children.poll_sources(&mut ready)?,
                    PIPES => self.children.poll_pipes(&mut ready)?,
                    AGENTS => self.control.receive()?,
                    _ => {}
                }
            }
            for source in ready.drain(..) {
                self.handle_source(source);
            }
            self.children.look_for_ends(&mut ready);
            for source in ready.drain(..) {
                self.handle_source(source);
            }
            self.broker.retry();
            self.introduce();
            self.enforce();
        }
    }

    /// Whether all is over: processes, output, and what others need of this agent.
    fn is_done(&self) -> bool {
        let is_over = match self.phase {
            Phase::Serving => self.control.is_finished(),
            // Nobody waits for who never joined, or cannot be heard.
            Phase::Ending(_) => {
                let is_alone = !self.control.has_joined() || self.control.is_cut_off();
                self.control.is_finished() || is_alone
            }
            Phase::Killed(until) => self.control.is_finished() || until <= Instant::now(),
        };
        is_over && self.children.running() == 0 && self.outlet.is_empty()
    }

    /// Does what the membership wants, until it wants nothing more.
    fn obey(&mut self) {
        loop {
            self.control.tick();
            let mut is_quiet = true;
            while let Some(command) = self.control.poll_command() {
                is_quiet = false;
                match command {
                    Command::Start(process, fence) => self.start(process, &fence),
                    Command::Tell(notice) => self.tell(&notice),
                    Command::Answer(process, answer) => self.answer(process, &answer),
                    Command::End(why) => self.handle_end(why),
                    // A launcher that does not read is not told that either.
                    Command::Say(FromAgent::Pulse) if self.link.stream.backlog() > HIGH_WATER => {}
                    Command::Say(frame) => self.link.send(&frame),
                }
            }
            self.tell_of_gateways();
            self.answer_last();
            if is_quiet || self.failure.is_some() {
                return;
            }
        }
    }

    fn start(&mut self, process: ProcessId, fence: &Fence) {
        if self.phase != Phase::Serving || self.failure.is_some() {
            return self.unstarted.push(process);
        }
        let (rank, incarnation) = (process.rank.0, process.incarnation.0);
        match self.children.start(rank, incarnation, fence) {
            Ok(pid) => {
                self.control.handle_started(process, pid);
                for packet in self.gateways.iter().flat_map(Gateways::all) {
                    self.children.post(rank, &packet, vec![]);
                }
                self.broker.handle_started(rank);
                self.introduce();
            }
            Err(error) if incarnation == 0 => self.failure = Some(error),
            Err(error) => {
                self.link.send(&FromAgent::Error {
                    text: sentence(&error),
                });
                self.unstarted.push(process);
                self.end(GRACE);
            }
        }
    }

    /// Tells the processes who died and who is started again, in the order of the log, then the epoch.
    fn tell(&mut self, notice: &Notice) {
        let ends = |change: &Change| matches!(change, Change::JobEnds(_));
        // Who is being ended need not know of whom that is the fault.
        let goes_on = !notice.changes.iter().any(ends);
        for change in notice.changes.iter().filter(|_| goes_on) {
            match *change {
                Change::Ended { process, how } if how != Death::Exit(0) => {
                    let (rank, incarnation) = (process.rank.0, process.incarnation.0);
                    let packet = ToProcess::Died {
                        rank,
                        incarnation,
                        how,
                    };
                    self.children.broadcast(rank, &packet);
                }
                Change::Restarted { process } => {
                    let (rank, incarnation) = (process.rank.0, process.incarnation.0);
                    let packet = ToProcess::Joined { rank, incarnation };
                    self.children.broadcast(rank, &packet);
                }
                Change::Ended { .. } | Change::Left { .. } | Change::JobEnds(_) => {}
            }
        }
        let epoch = notice.epoch.0;
        self.children.tell_all(&ToProcess::Epoch { epoch });
    }

    /// Tells the processes which gateways have come and gone.
    fn tell_of_gateways(&mut self) {
        if let Some(gateways) = &mut self.gateways {
            for packet in gateways.handle_members(self.control.members()) {
                self.children.tell_all(&packet);
            }
        }
    }

    fn answer(&mut self, process: ProcessId, answer: &Answer) {
        let (rank, incarnation) = (process.rank.0, process.incarnation.0);
        let mut bytes = Vec::new();
        let is_there = self.children.incarnation(rank) == Some(incarnation);
        if is_there && answer.encode(&mut bytes).is_ok() {
            let packet = ToProcess::Answer { answer: bytes };
            self.children.post(rank, &packet, vec![]);
        }
    }

    /// Whoever asked, and is the only one that has not ended: nobody is started again.
    fn answer_last(&mut self) {
        let members = self.control.members();
        if members.running() != 1 || members.ending().is_some() {
            return;
        }
        let is_last = |process: &ProcessId| {
            let state = members.state(process.rank);
            state.is_some_and(|state| {
                state.life == process.incarnation && !matches!(state.standing, Standing::Ended(_))
            })
        };
        if let Some(last) = self.asking_last.iter().copied().find(is_last) {
            self.asking_last.clear();
            self.children.post(last.rank.0, &ToProcess::Last, vec![]);
        }
    }

    /// The membership says that no process may run any more.
    fn handle_end(&mut self, why: Why) {
        let pace = self.control.pace();
        let count = self.children.running();
        let ended = match count {
            1 => "its process".to_owned(),
            count => format!("its {count} processes"),
        };
        let text = match why {
            Why::JobEnds(_) => None,
            Why::LeaseOver => Some(format!(
                "has not heard the first host, which decides for the job, for {} s, and ended {ended}; check the network between \
                 them, or be more patient (see --pace)",
                pace.lease.as_secs_f64()
            )),
            Why::Pronounced(_) => Some(format!(
                "was taken for lost because it was not heard for {} s, and ended {ended}; check its network and its load, or be more \
                 patient (see --pace)",
                pace.verdict().as_secs_f64()
            )),
            Why::Contradiction => Some(format!(
                "cannot make sense of what the first host decided, and ended {ended}; all hosts must have the same mizzen"
            )),
        };
        let grace = match text {
            Some(text) => {
                self.link.send(&FromAgent::Fenced { text });
                // The root gives less time than a user does.
                pace.kill / 2
            }
            None => GRACE,
        };
        self.end(grace);
        for process in std::mem::take(&mut self.unstarted) {
            self.control.handle_ended(process, KILLED);
        }
    }

    /// Ends all processes: asks first.
    fn end(&mut self, grace: Duration) {
        if self.phase == Phase::Serving {
            self.children.end(libc::SIGTERM);
            self.phase = Phase::Ending(Instant::now() + grace);
            self.broker.give_up();
            self.introduce();
        }
    }

    /// Sends what processes wrote, as far as the launcher has room for it.
    fn send_output(&mut self) {
        while let Some(frame) = self.outlet.poll() {
            self.link.send(&frame);
        }
    }

    /// Stops reading what processes write while the launcher does not take it: then they wait, and memory does not grow.
    fn balance(&mut self) -> Result<(), Errno> {
        let reading = self.outlet.takes_more();
        if reading == self.reading_pipes {
            return Ok(());
        }
        self.reading_pipes = reading;
        if reading {
            epoll::add(
                &self.link.epoll,
                self.children.pipes(),
                epoll::EventData::new_u64(PIPES),
                epoll::EventFlags::IN,
            )
        } else {
            epoll::delete(&self.link.epoll, self.children.pipes())
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let end = match self.phase {
            Phase::Ending(deadline) => Some(deadline.saturating_duration_since(Instant::now())),
            Phase::Killed(until) => until.checked_duration_since(Instant::now()),
            Phase::Serving => None,
        };
        let others = [
            self.control.timeout(),
            self.children.next_look(),
            self.broker.wants_retry().then_some(NEXT_TRY),
            self.roll_calls.timeout(Instant::now()),
        ];
        others.into_iter().chain([end]).flatten().min()
    }

    fn enforce(&mut self) {
        let Phase::Ending(deadline) = self.phase else {
            return;
        };
        if Instant::now() >= deadline {
            self.children.end(libc::SIGKILL);
            self.phase = Phase::Killed(Instant::now() + LINGER);
        }
    }

    fn handle_launcher(&mut self) {
        if self.link.stream.receive() == Other::Closed {
            self.link.other = Other::Closed;
        }
        self.handle_frames();
    }

    fn handle_frames(&mut self) {
        loop {
            match self.link.stream.next(ToAgent::decode) {
                Ok(Some(frame)) => self.handle_frame(frame),
                Ok(None) => return,
                // A launcher that makes no sense is as good as none.
                Err(_) => {
                    self.link.other = Other::Closed;
                    return;
                }
            }
        }
    }

    fn handle_frame(&mut self, frame: ToAgent) {
        match frame {
            // There is one, and it was the first.
            ToAgent::Start(_) => self.link.other = Other::Closed,
            ToAgent::Signal { number, origin } => self.children.forward(number, origin),
            ToAgent::Located {
                rank,
                incarnation,
                locator,
            } => {
                let current = self.control.life_of(rank);
                self.broker
                    .handle_located(rank, incarnation, &locator, current);
                self.introduce();
            }
            ToAgent::Unreachable { rank, reason } => {
                self.broker.handle_unreachable(rank, reason);
                self.introduce();
            }
            ToAgent::Root { locator } => self.control.handle_root_at(locator),
            ToAgent::Passed { from, bytes } => self.control.handle_passed(from, &bytes),
            ToAgent::NotPassed { to } => self.control.handle_not_passed(to),
            ToAgent::Topology {
                rank,
                from,
                total,
                bytes,
            } => {
                let packet = ToProcess::Topology { from, total, bytes };
                self.children.post(rank, &packet, vec![]);
            }
            ToAgent::RollCall { call } => {
                let running = self.children.all_running();
                for rank in self.roll_calls.begin(call, &running, Instant::now()) {
                    self.children.post(rank, &ToProcess::RollCall, vec![]);
                }
            }
            ToAgent::Interrupt { number } => self.control.interrupt(number),
            ToAgent::Room { bytes } => self.outlet.add_room(bytes),
            ToAgent::Stop { code } => {
                self.control.stop(code);
                self.end(GRACE);
            }
        }
    }

    fn handle_source(&mut self, source: Source) {
        match source {
            Source::Exit(rank) => self.handle_exit(rank),
            Source::Socket(rank) => self.handle_packets(rank),
            Source::Pipe(rank, stream) => self.children.read_pipe(rank, stream, &mut self.outlet),
        }
    }

    fn handle_exit(&mut self, rank: u32) {
        // What it said and wrote before its end comes first.
        self.handle_packets(rank);
        let closed = self.children.closed_before(rank);
        let Some(ended) = self.collect(rank) else {
            return;
        };
        // The root blames the first failure it hears of.
        if ended.how != Death::Exit(0) {
            for earlier in self.children.wait_for_ends(closed) {
                self.handle_packets(earlier);
                if let Some(ended) = self.collect(earlier) {
                    self.report(earlier, ended);
                }
            }
        }
        self.report(rank, ended);
    }

    fn collect(&mut self, rank: u32) -> Option<Ended> {
        let ended = self.children.collect(rank, &mut self.outlet);
        // Before its end is told, if there is room.
        self.send_output();
        ended
    }

    fn report(&mut self, rank: u32, Ended { incarnation, how }: Ended) {
        self.control
            .handle_ended(ProcessId::new(Rank(rank), Incarnation(incarnation)), how);
        let how = match how {
            Death::Exit(0) => Departure::Left,
            _ => Departure::Died,
        };
        self.broker.handle_exit(rank, how);
        self.introduce();
    }

    fn handle_packets(&mut self, rank: u32) {
        self.children.flush_socket(rank);
        for _ in 0..PACKETS {
            let Some(packet) = self.children.receive(rank) else {
                return;
            };
            let Some(incarnation) = self.children.incarnation(rank) else {
                return;
            };
            let process = ProcessId::new(Rank(rank), Incarnation(incarnation));
            match packet {
                FromProcess::Ready { locator } => {
                    self.link.send(&FromAgent::Ready {
                        rank,
                        incarnation,
                        locator,
                    });
                }
                FromProcess::Leaving => {
                    self.children.set_left(rank);
                    self.control.handle_left(process);
                    self.broker.handle_exit(rank, Departure::Left);
                    self.introduce();
                }
                // It may be lost if the launcher does not read: there is no other bound to it.
                FromProcess::Waiting { text } => {
                    if self.link.stream.backlog() < HIGH_WATER {
                        self.link.send(&FromAgent::Waiting { rank, text });
                    }
                }
                FromProcess::Overdue { millis } => {
                    if self.link.stream.backlog() < HIGH_WATER {
                        self.link.send(&FromAgent::Overdue { rank, millis });
                    }
                }
                FromProcess::Present { present } => {
                    self.roll_calls.handle_present(rank, incarnation, present);
                }
                FromProcess::AskTopology { from } => {
                    self.link.send(&FromAgent::AskTopology { rank, from });
                }
                FromProcess::AskLast => {
                    self.asking_last.insert(process);
                }
                // After the last word about a map there is no other.
                FromProcess::Progress(progress) => {
                    if progress.is_over || self.link.stream.backlog() < HIGH_WATER {
                        self.link.send(&FromAgent::Progress { rank, progress });
                    }
                }
                FromProcess::Path { text } => {
                    if self.link.stream.backlog() < HIGH_WATER {
                        self.link.send(&FromAgent::Path { rank, text });
                    }
                }
                FromProcess::Certify { request } => {
                    if let Err(error) = self.children.certify(rank, &request) {
                        let text = sentence(&error);
                        self.link.send(&FromAgent::Error { text });
                    }
                }
                FromProcess::Ask { question } => match Question::decode(&question) {
                    Ok(question) => self.control.handle_question(process, question),
                    Err(_) => self.children.close_socket(rank),
                },
                FromProcess::Reach { rank: target } => {
                    self.broker.handle_reach(rank, target);
                    self.introduce();
                }
            }
        }
    }

    /// Does what the broker wants: at once, while what it knows of the processes holds.
    fn introduce(&mut self) {
        while let Some(action) = self.broker.poll_action() {
            match action {
                Action::Introduce { rank, target } => match self.children.connect(rank, target) {
                    Ok(()) => {}
                    Err(NoIntroduction::NoDescriptor) => {
                        self.broker.handle_no_descriptor(rank, target);
                    }
                    Err(NoIntroduction::Gone) => self.broker.handle_gone(rank, target),
                },
                Action::Post { rank, packet } => self.children.post(rank, &packet, vec![]),
                Action::Locate { rank } => {
                    let incarnation = self.control.life_of(rank);
                    self.link.send(&FromAgent::Locate { rank, incarnation });
                }
            }
        }
    }
}

/// Begins to hand on, if this host is a gateway, and says so in the agent's locator.
fn open_gateways(children: &Children, place: &mut Place) -> anyhow::Result<Option<Gateways>> {
    let start = children.part();
    let agent = AgentId::new(HostId(start.part.number), FIRST_LIFE);
    let gateways = Gateways::open(start, agent, &place.credentials)?;
    if let Some(gateways) = &gateways {
        gateways.add_to(&mut place.locator)?;
    }
    Ok(gateways)
}

/// Adds all that the agent waits for to its epoll.
fn watch(link: &Link, children: &Children, control: &Control) -> Result<(), Errno> {
    let sources = [(SOURCES, children.sources()), (PIPES, children.pipes())];
    let agents = control.net().map(|net| (AGENTS, net));
    for (data, fd) in sources.into_iter().chain(agents) {
        let data = epoll::EventData::new_u64(data);
        epoll::add(&link.epoll, fd, data, epoll::EventFlags::IN)?;
    }
    Ok(())
}

/// An error and its cause, cut to what a frame takes.
fn sentence(error: &anyhow::Error) -> String {
    let mut text = format!("{error:#}.");
    while text.len() > MAX_ERROR {
        text.pop();
    }
    text
}

// Beside those of the link.
const SOURCES: u64 = 2;
const PIPES: u64 = 3;
const AGENTS: u64 = 4;

/// Packets of one process taken in one turn, so that none keeps the agent to itself.
const PACKETS: usize = 64;

/// Frames that wait for the launcher before hints are lost.
const HIGH_WATER: usize = 4 << 20;

/// How soon an introduction is tried again for which there was no descriptor left.
const NEXT_TRY: Duration = Duration::from_millis(2);

/// How long processes have between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(2);

/// How long an agent whose processes were killed waits for the other agents: beyond that they know it by its silence.
const LINGER: Duration = Duration::from_secs(1);

/// How who is never started has ended.
const KILLED: Death = Death::Signal(15);
