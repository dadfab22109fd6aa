//! The half that follows: it starts the agents of its own site, prints what its ranks write, and passes the rest on.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use mizzen_agent::{FrameStream, Other, Signals};
use mizzen_proto::boot::{
    AGENT_FD, Carrier, FromAgent, Network, OUTPUT_ROOM, Start, Stream, ToAgent, VERSION,
};
use mizzen_site::{DoorError, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::lead::{LEADER, ranks_of};
use super::rendezvous::{Patience, Rendezvous, wait};
use crate::hosts::{Host, deal};
use crate::run::cast::{Starter, own_hosts};
use crate::run::launcher::{HIGH_WATER, IMPATIENCE};
use crate::run::links::{Link, Phase, frame_stream, quote};
use crate::run::options::Run;
use crate::run::other_half::{
    FromDeputy, FromLeader, Hello, Lines, Part, Timed, Tunnel, Welcome, hear, printable, say,
};
use crate::run::printer::{self, Printer};
use crate::signals;

/// Finds the half that leads, and serves it until the job has ended.
pub(super) fn follow(
    options: &Run,
    rendezvous: &Rendezvous,
    signals: Signals,
    printer: Printer,
) -> anyhow::Result<u8> {
    let mut hosts = own_hosts(options)?;
    let socket = find(rendezvous, &signals)?;
    let mut timed = Timed::new(&socket, GREETING)?;
    let mut tls = rendezvous.shared.shake(Part::Deputy, &mut timed)?;
    let hello = Hello {
        version: VERSION,
        site: rendezvous.site.clone(),
        processes: options.processes,
        hosts: hosts
            .iter()
            .map(|host| (host.name.clone(), host.bind.clone()))
            .collect(),
        door: rendezvous.door_at.to_string(),
        agreed: options.agreed(),
    };
    say(&mut tls, &mut timed, &hello)?;
    let (first, size) = match hear(&mut tls, &mut timed)? {
        Welcome::Met { first, size } if first < size => (first, size),
        Welcome::Met { .. } => bail!("the half that leads makes no sense"),
        Welcome::No(why) => bail!(
            "the half at site \"{}\" does not take this one: {}",
            rendezvous.meeting.site(),
            printable(&why)
        ),
    };
    let ours = ranks_of(first, size, size);
    printer::say(&format!(
        "met the half at site \"{}\": {ours}.",
        rendezvous.meeting.site()
    ));
    // The gateway of this half is on its first host.
    let gateway = Host {
        name: "gateway".to_owned(),
        ..hosts[0].clone()
    };
    hosts.push(gateway);
    let (tunnel, mut ends) = Tunnel::open(socket, tls, hosts.len() + 1)?;
    let lines = Lines::new(ends.pop().context("an end is missing")?)?;
    let starter = Starter::new(options, hosts.len())?;
    let carriers = hosts.len() - 1;
    let places: Vec<usize> = deal(options.processes, carriers).collect();
    let mut pairs = Vec::new();
    for (number, (host, end)) in hosts.iter().zip(ends).enumerate() {
        let ranks = (first..)
            .zip(&places)
            .filter(|(_, place)| **place == number);
        let ranks = ranks.map(|(rank, _)| rank).collect();
        pairs.push(Pair::new(starter.start(host)?, end, ranks)?);
    }
    let deputy = Deputy {
        options,
        rendezvous,
        size,
        pairs,
        lines,
        signals,
        printer,
        interrupts: 0,
        code: None,
        is_unread: false,
    };
    let code = deputy.serve()?;
    tunnel.finish(Duration::from_secs(1));
    Ok(code)
}

/// Waits until the other half is there, and connects with it.
fn find(rendezvous: &Rendezvous, signals: &Signals) -> anyhow::Result<TcpStream> {
    let mut patience = Patience::default();
    let there = rendezvous.meeting.site();
    loop {
        let why = match rendezvous.door.connect(&rendezvous.meeting, LEADER) {
            Ok(socket) => return Ok(socket),
            Err(DoorError::Refused(refusal))
                if [
                    Refusal::NOT_OFFERED,
                    Refusal::UNREACHABLE,
                    Refusal::TOO_MUCH,
                ]
                .contains(&refusal.code) =>
            {
                refusal.sentence
            }
            // It may be started again.
            Err(error @ DoorError::Unreachable { .. }) => error.to_string(),
            Err(error) => return Err(error.into()),
        };
        patience.say(format!("waiting for the half at site \"{there}\": {why}"));
        wait(signals, None, Duration::from_secs(1))?;
    }
}

/// The agent of a host, and the leader's end of the link with it.
struct Pair {
    agent: Link,
    /// None once either is gone, and all that was for the leader is on its way.
    leader: Option<FrameStream>,
    /// Whether nothing more comes for the leader.
    is_ending: bool,
    /// The ranks of the host.
    ranks: Vec<u32>,
}

impl Pair {
    fn new(agent: Link, leader: UnixStream, ranks: Vec<u32>) -> anyhow::Result<Self> {
        let leader = Some(frame_stream(leader)?);
        Ok(Self {
            agent,
            leader,
            is_ending: false,
            ranks,
        })
    }

    /// Whether nothing more comes from its agent, and the leader has it all.
    fn is_over(&self) -> bool {
        self.has_ended() && (self.leader.is_none() || !self.is_ending)
    }

    fn has_ended(&self) -> bool {
        self.agent.phase == Phase::Closed
    }

    /// Sends what can be sent.
    fn flush(&mut self) {
        // That one is closed shows when it is read.
        let _ = self.agent.stream.flush();
        let Some(leader) = &mut self.leader else {
            return;
        };
        let other = leader.flush();
        if self.is_ending && (leader.backlog() == 0 || other == Other::Closed) {
            // The leader sees that the agent is gone.
            self.leader = None;
        }
    }
}

struct Deputy<'a> {
    options: &'a Run,
    rendezvous: &'a Rendezvous,
    /// Of the whole job.
    size: u32,
    pairs: Vec<Pair>,
    lines: Lines,
    signals: Signals,
    printer: Printer,
    interrupts: u32,
    /// The exit code, when the leader has said it.
    code: Option<u8>,
    /// Whether the leader was told that nobody reads what we print.
    is_unread: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watched {
    Signals,
    Lines,
    Agent(usize),
    AgentOutput(usize),
    Stderr(usize),
    Leader(usize),
    LeaderOutput(usize),
    Print(Stream),
}

impl Deputy<'_> {
    fn serve(mut self) -> anyhow::Result<u8> {
        loop {
            self.printer.print_log();
            self.give_room();
            self.pairs.iter_mut().for_each(Pair::flush);
            self.notice_unread();
            if let Some(code) = self.outcome() {
                self.printer.lift_bars();
                if self.printer.backlog() == 0 {
                    return Ok(code);
                }
            }
            for watched in self.wait()? {
                self.handle(watched)?;
            }
        }
    }

    /// Nobody who does not read what is printed keeps a job going.
    fn notice_unread(&mut self) {
        if self.printer.is_closed() && self.interrupts < IMPATIENCE && !self.is_unread {
            self.is_unread = true;
            self.lines.say(&FromDeputy::Unread);
        }
    }

    /// The exit code, when there is nothing left to do.
    fn outcome(&mut self) -> Option<u8> {
        if !self.pairs.iter().all(Pair::is_over) {
            return None;
        }
        if self.code.is_none() && self.lines.is_closed() {
            self.printer.say(LOST);
            self.code = Some(HALF_LOST);
        }
        self.code
    }

    /// Lets agents send more output, as long as it is printed.
    fn give_room(&mut self) {
        if self.printer.backlog() >= HIGH_WATER {
            return;
        }
        for pair in &mut self.pairs {
            let owed = pair.agent.owed;
            if owed >= OUTPUT_ROOM / 2 && pair.agent.phase == Phase::Open {
                pair.agent.owed = 0;
                let fits = ToAgent::Room { bytes: owed }.encode(pair.agent.stream.queue());
                debug_assert!(fits.is_ok(), "it is short");
            }
        }
    }

    fn wait(&self) -> Result<Vec<Watched>, Errno> {
        let mut watched = vec![Watched::Signals];
        if !self.lines.is_closed() {
            watched.push(Watched::Lines);
        }
        watched.extend(self.printer.waiting().map(Watched::Print));
        for (i, pair) in self.pairs.iter().enumerate() {
            if !pair.has_ended() {
                watched.push(Watched::Agent(i));
                if pair.agent.stream.backlog() > 0 {
                    watched.push(Watched::AgentOutput(i));
                }
                if pair.agent.stderr().is_some() {
                    watched.push(Watched::Stderr(i));
                }
            }
            if let Some(leader) = &pair.leader {
                watched.push(Watched::Leader(i));
                if leader.backlog() > 0 {
                    watched.push(Watched::LeaderOutput(i));
                }
            }
        }
        let fds: Option<Vec<PollFd<'_>>> = watched
            .iter()
            .map(|watched| self.poll_fd(*watched))
            .collect();
        let mut fds = fds.unwrap_or_default();
        let timeout = Timespec::try_from(TICK).ok();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(vec![]),
            Err(other) => return Err(other),
        }
        let ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let ready = watched.iter().copied().zip(ready);
        Ok(ready
            .filter(|(_, ready)| *ready)
            .map(|(watched, _)| watched)
            .collect())
    }

    fn poll_fd(&self, watched: Watched) -> Option<PollFd<'_>> {
        let (fd, flags) = match watched {
            Watched::Signals => (self.signals.as_fd(), PollFlags::IN),
            Watched::Lines => (self.lines.fd(), PollFlags::IN),
            Watched::Agent(i) => (self.pairs[i].agent.stream.input(), PollFlags::IN),
            Watched::AgentOutput(i) => (self.pairs[i].agent.stream.output(), PollFlags::OUT),
            Watched::Stderr(i) => (self.pairs[i].agent.stderr()?, PollFlags::IN),
            Watched::Leader(i) => (self.pairs[i].leader.as_ref()?.input(), PollFlags::IN),
            Watched::LeaderOutput(i) => (self.pairs[i].leader.as_ref()?.output(), PollFlags::OUT),
            Watched::Print(stream) => (printer::descriptor(stream), PollFlags::OUT),
        };
        Some(PollFd::from_borrowed_fd(fd, flags))
    }

    fn handle(&mut self, watched: Watched) -> anyhow::Result<()> {
        match watched {
            Watched::Signals => self.handle_signals(),
            Watched::Lines => self.handle_lines(),
            Watched::Agent(i) => self.handle_agent(i),
            Watched::Leader(i) => self.handle_leader(i)?,
            // Flushed in each turn.
            Watched::AgentOutput(_) | Watched::LeaderOutput(_) => {}
            Watched::Stderr(i) => self.pairs[i].agent.read_stderr(),
            Watched::Print(stream) => self.printer.write(stream),
        }
        Ok(())
    }

    fn handle_signals(&mut self) {
        while let Some((number, _)) = self.signals.next() {
            self.lines.say(&FromDeputy::Signal(number));
            self.interrupts += u32::from(signals::asks_to_end(number));
            if self.interrupts >= IMPATIENCE {
                // The leader may not be there to end it.
                self.printer.discard();
                self.code = Some(128 + number);
                self.end_all();
            }
        }
    }

    fn handle_lines(&mut self) {
        for word in self.lines.hear::<FromLeader>() {
            match word {
                FromLeader::Say(sentence) => self.printer.say(&printable(&sentence)),
                FromLeader::End(code) => self.code = Some(code),
            }
        }
        if self.lines.is_closed() && self.code.is_none() {
            // Agents end their processes when nobody is there any more.
            self.end_all();
        }
    }

    fn end_all(&mut self) {
        for pair in &mut self.pairs {
            pair.leader = None;
            pair.agent.abandon();
        }
    }

    /// Something of an agent: its output is ours to print, all else the leader's to hear.
    fn handle_agent(&mut self, number: usize) {
        let pair = &mut self.pairs[number];
        let other = pair.agent.stream.receive();
        loop {
            let frame = match pair.agent.stream.next(FromAgent::decode) {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => {
                    let said = quote(pair.agent.stream.untaken()).unwrap_or_default();
                    let host = &pair.agent.host;
                    self.printer.say(&format!(
                        "host {host} answered with something that is not an agent: {said}; its remote shell must print nothing of its own."
                    ));
                    pair.agent.abandon();
                    pair.leader = None;
                    return;
                }
            };
            match (&frame, &mut pair.leader) {
                (
                    FromAgent::Output {
                        rank,
                        stream,
                        bytes,
                    },
                    _,
                ) => {
                    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                    pair.agent.owed = pair.agent.owed.saturating_add(len);
                    self.printer.print(*rank, *stream, bytes);
                }
                (_, Some(leader)) => {
                    pair.agent.phase = Phase::Open;
                    let fits = frame.encode(leader.queue());
                    debug_assert!(fits.is_ok(), "it was a frame before");
                }
                (_, None) => {}
            }
        }
        if other == Other::Closed {
            let is_early = pair.agent.phase == Phase::Connecting;
            let why = pair.agent.close();
            if is_early {
                let host = &pair.agent.host;
                self.printer.say(&format!(
                    "host {host} cannot be reached: {why}; check --hosts and --remote-shell."
                ));
            }
            pair.is_ending = true;
        }
    }

    /// Something for an agent: what to run is ours to say.
    fn handle_leader(&mut self, number: usize) -> anyhow::Result<()> {
        let pair = &mut self.pairs[number];
        let Some(leader) = &mut pair.leader else {
            return Ok(());
        };
        let other = leader.receive();
        loop {
            match leader.next(ToAgent::decode) {
                Ok(Some(ToAgent::Start(mut start))) => {
                    check(self.options, self.size, &pair.ranks, &start)?;
                    complete(self.options, self.rendezvous, &mut start)?;
                    leader.forget_taken();
                    let frame = ToAgent::Start(start);
                    let fits = frame.encode(pair.agent.stream.queue_secret());
                    fits.context("the arguments and the environment are too long; give fewer")?;
                }
                Ok(Some(frame)) => {
                    let fits = frame.encode(pair.agent.stream.queue());
                    debug_assert!(fits.is_ok(), "it was a frame before");
                }
                Ok(None) => break,
                Err(_) => bail!(
                    "the half that leads says what makes no sense; have the same mizzen at both sites"
                ),
            }
        }
        if other == Other::Closed {
            pair.leader = None;
            pair.agent.abandon();
        }
        Ok(())
    }
}

/// What the leader may decide for this site, and nothing else.
fn check(options: &Run, size: u32, ranks: &[u32], start: &Start) -> anyhow::Result<()> {
    let is_agreed = start.on_death == options.on_death()
        && start.part.max_restarts == options.max_restarts
        && start.part.pace == options.preset();
    let is_plain = |network: &Network| {
        !network.trusted
            && network.carrier == Carrier::Tcp { port: 0 }
            && network.interfaces.is_empty()
    };
    let is_ours = start.size == size
        && start.ranks == ranks
        && start.networks.iter().all(is_plain)
        && start.others.is_empty()
        && start.channels.is_empty();
    ensure!(
        is_agreed && is_ours,
        "the half that leads wants to start something else here than was agreed; have the same mizzen at both sites"
    );
    Ok(())
}

/// What is run at this site is what its user said.
fn complete(options: &Run, rendezvous: &Rendezvous, start: &mut Start) -> anyhow::Result<()> {
    let (program, args) = options
        .program
        .split_first()
        .context("no program is given")?;
    let env = std::env::vars_os().filter(|(name, _)| name != AGENT_FD);
    let cwd = std::env::current_dir()
        .context("the working directory does not exist; change to one that does")?;
    start.program = program.clone().into_vec();
    start.args = args.iter().map(|arg| arg.clone().into_vec()).collect();
    start.env = env
        .map(|(name, value)| (name.into_vec(), value.into_vec()))
        .collect();
    start.cwd = cwd.into_os_string().into_vec();
    start.show_paths = options.show_paths;
    for door in start
        .networks
        .iter_mut()
        .filter_map(|network| network.door.as_mut())
    {
        door.at = rendezvous.door_at.to_string();
        door.meeting = rendezvous.meeting.to_string();
    }
    Ok(())
}

/// Said when the leader did not say how the job ended.
const LOST: &str = "the connection with the half that leads, at the other site, has ended, and so has the job: its launcher is gone, or a gateway \
                    between the two, or the sites do not let this job be met any more; `mizzen site status` at the gateways says more.";
/// The exit code when the other half is lost.
const HALF_LOST: u8 = 255;
/// How long the leader may take to greet us: somebody else may be there first.
const GREETING: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_secs(1);
