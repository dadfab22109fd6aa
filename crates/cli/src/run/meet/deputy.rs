//! The half that follows: it starts the agents of its own site, prints what its ranks write, and passes the rest on.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use mizzen_agent::{FrameStream, Other, Signals};
use mizzen_proto::boot::{AGENT_FD, FromAgent, OUTPUT_ROOM, Start, Stream, ToAgent, VERSION};
use mizzen_site::{DoorError, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::lead::LEADER;
use super::rendezvous::{Rendezvous, wait};
use crate::hosts::Host;
use crate::run::cast::{Starter, own_hosts};
use crate::run::launcher::{HIGH_WATER, IMPATIENCE};
use crate::run::links::{Link, Phase, frame_stream, quote};
use crate::run::options::Run;
use crate::run::other_half::{
    FromDeputy, FromLeader, Hello, Lines, Part, Tunnel, Welcome, hear, say,
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
    let mut tls = rendezvous.shared.shake(Part::Deputy, &socket)?;
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
    say(&mut tls, &socket, &hello)?;
    let (first, size) = match hear(&mut tls, &socket)? {
        Welcome::Met { first, size } if first < size => (first, size),
        Welcome::Met { .. } => bail!("the half that leads makes no sense"),
        Welcome::No(why) => bail!(
            "the half at site \"{}\" does not take this one: {why}",
            rendezvous.meeting.site()
        ),
    };
    let ours = match size - first {
        1 => format!("rank {first} of {size} is this site's"),
        _ => format!("ranks {first} to {} of {size} are this site's", size - 1),
    };
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
    let mut pairs = Vec::new();
    for (host, end) in hosts.iter().zip(ends) {
        pairs.push(Pair::new(starter.start(host)?, end)?);
    }
    let deputy = Deputy {
        options,
        pairs,
        lines,
        signals,
        printer,
        interrupts: 0,
        code: None,
        alone_since: None,
    };
    let code = deputy.serve()?;
    tunnel.finish(Duration::from_secs(1));
    Ok(code)
}

/// Waits until the other half is there, and connects with it.
fn find(rendezvous: &Rendezvous, signals: &Signals) -> anyhow::Result<TcpStream> {
    let mut said = String::new();
    loop {
        let why = match rendezvous.door.connect(&rendezvous.meeting, LEADER) {
            Ok(socket) => return Ok(socket),
            Err(DoorError::Refused(refusal))
                if refusal.code == Refusal::NOT_OFFERED || refusal.code == Refusal::UNREACHABLE =>
            {
                refusal.sentence
            }
            Err(error) => return Err(error.into()),
        };
        if why != said {
            printer::say(&format!(
                "waiting for the half at site \"{}\": {why}.",
                rendezvous.meeting.site()
            ));
            said = why;
        }
        wait(signals, None, Duration::from_secs(1))?;
    }
}

/// The agent of a host, and the leader's end of the link with it.
struct Pair {
    agent: Link,
    /// None once either is gone.
    leader: Option<FrameStream>,
}

impl Pair {
    fn new(agent: Link, leader: UnixStream) -> anyhow::Result<Self> {
        let leader = Some(frame_stream(leader)?);
        Ok(Self { agent, leader })
    }

    /// Whether nothing more comes from its agent.
    fn is_over(&self) -> bool {
        self.agent.phase == Phase::Closed
    }
}

struct Deputy<'a> {
    options: &'a Run,
    pairs: Vec<Pair>,
    lines: Lines,
    signals: Signals,
    printer: Printer,
    interrupts: u32,
    /// The exit code, when the leader has said it.
    code: Option<u8>,
    /// Since when all agents are gone.
    alone_since: Option<Instant>,
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
            for pair in &mut self.pairs {
                // That one is closed shows when it is read.
                let _ = pair.agent.stream.flush();
                if let Some(leader) = &mut pair.leader {
                    let _ = leader.flush();
                }
            }
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

    /// The exit code, when there is nothing left to do.
    fn outcome(&mut self) -> Option<u8> {
        if !self.pairs.iter().all(Pair::is_over) {
            return None;
        }
        let since = *self.alone_since.get_or_insert_with(Instant::now);
        let is_late = since.elapsed() > LAST_WORD;
        if self.code.is_none() && (self.lines.is_closed() || is_late) {
            self.printer
                .say("the half that leads is gone, and did not say how the job ended.");
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
            if !pair.is_over() {
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
                FromLeader::Say(sentence) => self.printer.say(&sentence),
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
            if let Some(mut leader) = pair.leader.take() {
                // What it said last; then the leader sees that it is gone.
                let _ = leader.flush();
            }
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
                    complete(self.options, &mut start)?;
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

/// What is run at this site is what its user said.
fn complete(options: &Run, start: &mut Start) -> anyhow::Result<()> {
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
    Ok(())
}

/// The exit code when the other half is lost.
const HALF_LOST: u8 = 255;
/// How long the leader may take to say how the job ended, once nothing is left of it here.
const LAST_WORD: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_secs(1);
