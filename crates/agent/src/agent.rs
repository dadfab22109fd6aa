//! The agent: starts the processes of one host, introduces them to each other, reports what they write and how they end.
//!
//! One loop, one thread, whatever the number of processes. It decides nothing about the job: the launcher does. Its life:
//! `Hello`, wait for `Start`, start all processes or none, then serve until `Stop` and the end of the last process. If the
//! launcher is gone, so is the job: everything is killed.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use mizzen_proto::boot::{
    Death, FromAgent, FromProcess, MAX_ERROR, Start, ToAgent, ToProcess, VERSION,
};
use mizzen_proto::broker::{Action, Broker, Departure};
use rustix::event::epoll;
use rustix::io::Errno;

use crate::children::{Children, Ended, NoIntroduction, Source};
use crate::events::EVENTS;
use crate::link::{INPUT, Link};
use crate::output::Outlet;
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
    let mut agent = match Agent::start(link, *start, stdin) {
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
    phase: Phase,
    outlet: Outlet,
    /// Whether the epoll of pipes is part of the loop: not while the launcher has no room.
    reading_pipes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    /// Asked nicely; killed at that time.
    Ending(Instant),
    /// Killed.
    Killed,
}

impl Agent {
    /// Starts all processes, or none.
    fn start(mut link: Link, start: Start, stdin: Stdin) -> Result<Self, (Link, anyhow::Error)> {
        let ranks = start.ranks.clone();
        let mut broker = Broker::new(start.size, start.on_death, &ranks);
        let mut children = match Children::new(start, stdin) {
            Ok(children) => children,
            Err(error) => return Err((link, error)),
        };
        for rank in ranks {
            match children.start(rank, 0) {
                Ok(pid) => {
                    broker.handle_started(rank);
                    link.send(&FromAgent::Started {
                        rank,
                        incarnation: 0,
                        pid,
                    });
                }
                Err(error) => {
                    children.kill();
                    return Err((link, error));
                }
            }
        }
        let watched = epoll::add(
            &link.epoll,
            children.sources(),
            epoll::EventData::new_u64(SOURCES),
            epoll::EventFlags::IN,
        )
        .and_then(|()| {
            epoll::add(
                &link.epoll,
                children.pipes(),
                epoll::EventData::new_u64(PIPES),
                epoll::EventFlags::IN,
            )
        });
        if let Err(error) = watched {
            children.kill();
            return Err((link, error.into()));
        }
        Ok(Self {
            link,
            children,
            broker,
            phase: Phase::Serving,
            outlet: Outlet::new(),
            reading_pipes: true,
        })
    }

    fn serve(&mut self) -> anyhow::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut ready = Vec::with_capacity(EVENTS);
        // Frames that came together with the first.
        self.handle_frames();
        loop {
            self.send_output();
            self.link.flush();
            if self.link.other == Other::Closed {
                self.children.kill();
                return Ok(());
            }
            let written = self.outlet.is_empty();
            if self.phase != Phase::Serving && self.children.running() == 0 && written {
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
            Phase::Serving | Phase::Killed => None,
        };
        let others = [
            self.children.next_look(),
            self.broker.wants_retry().then_some(NEXT_TRY),
        ];
        others.into_iter().chain([end]).flatten().min()
    }

    fn enforce(&mut self) {
        let Phase::Ending(deadline) = self.phase else {
            return;
        };
        if Instant::now() >= deadline {
            self.children.end(libc::SIGKILL);
            self.phase = Phase::Killed;
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
                self.broker.handle_located(rank, incarnation, &locator);
                self.introduce();
            }
            ToAgent::Unreachable { rank, reason } => {
                self.broker.handle_unreachable(rank, reason);
                self.introduce();
            }
            ToAgent::Died {
                rank,
                incarnation,
                how,
            } => {
                self.children.broadcast(
                    rank,
                    &ToProcess::Died {
                        rank,
                        incarnation,
                        how,
                    },
                );
            }
            ToAgent::Joined { rank, incarnation } => {
                self.children
                    .broadcast(rank, &ToProcess::Joined { rank, incarnation });
            }
            ToAgent::Last { rank } => self.children.post(rank, &ToProcess::Last, vec![]),
            ToAgent::Restart { rank, incarnation } => self.restart(rank, incarnation),
            ToAgent::Room { bytes } => self.outlet.add_room(bytes),
            ToAgent::Stop => {
                if self.phase == Phase::Serving {
                    self.children.end(libc::SIGTERM);
                    self.phase = Phase::Ending(Instant::now() + GRACE);
                    self.broker.give_up();
                    self.introduce();
                }
            }
        }
    }

    fn restart(&mut self, rank: u32, incarnation: u32) {
        if self.phase != Phase::Serving {
            return;
        }
        match self.children.start(rank, incarnation) {
            Ok(pid) => {
                self.link.send(&FromAgent::Started {
                    rank,
                    incarnation,
                    pid,
                });
                self.broker.handle_started(rank);
                self.introduce();
            }
            Err(error) => self.link.send(&FromAgent::Error {
                text: sentence(&error),
            }),
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
        // The launcher blames the first failure it hears of.
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
        self.link.send(&FromAgent::Exited {
            rank,
            incarnation,
            how,
        });
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
                    self.link.send(&FromAgent::Left { rank, incarnation });
                    self.broker.handle_exit(rank, Departure::Left);
                    self.introduce();
                }
                // It may be lost if the launcher does not read: there is no other bound to it.
                FromProcess::Waiting { text } => {
                    if self.link.stream.backlog() < HIGH_WATER {
                        self.link.send(&FromAgent::Waiting { rank, text });
                    }
                }
                FromProcess::AskLast => {
                    self.link.send(&FromAgent::AskLast { rank, incarnation });
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
                Action::Locate { rank } => self.link.send(&FromAgent::Locate { rank }),
            }
        }
    }
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

/// Packets of one process taken in one turn, so that none keeps the agent to itself.
const PACKETS: usize = 64;

/// Frames that wait for the launcher before hints are lost.
const HIGH_WATER: usize = 4 << 20;

/// How soon an introduction is tried again for which there was no descriptor left.
const NEXT_TRY: Duration = Duration::from_millis(2);

/// How long processes have between being asked to end and being killed.
const GRACE: Duration = Duration::from_secs(2);
