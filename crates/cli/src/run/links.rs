//! Links to agents: a thread of ours for this host, a remote shell for any other.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use mizzen_agent::{FrameStream, Stdin};

/// A link to the agent of one host.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) host: String,
    pub(crate) stream: FrameStream,
    peer: Peer,
    pub(crate) phase: Phase,
    /// Frames for an agent that has not answered.
    pub(crate) early: Vec<u8>,
    /// Bytes of output that came, and whose room was not yet given back.
    pub(crate) owed: u32,
}

#[derive(Debug)]
enum Peer {
    Thread(Option<JoinHandle<()>>),
    Shell {
        child: Child,
        shown: String,
        stderr: Option<ChildStderr>,
        said: Vec<u8>,
    },
    /// The launcher of another site.
    Far,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No word from the agent yet.
    Connecting,
    Open,
    /// The agent is gone.
    Closed,
}

impl Link {
    /// Runs an agent for this host in a thread.
    pub(crate) fn local(host: String) -> anyhow::Result<Self> {
        let (ours, theirs) = UnixStream::pair().context("no socket for the agent")?;
        let theirs = frame_stream(theirs)?;
        let thread = std::thread::Builder::new()
            .name("agent".into())
            .spawn(move || {
                // The launcher sees the end of the stream, whatever the reason.
                let _ = mizzen_agent::serve(theirs, Stdin::Inherit);
            })
            .context("no thread for the agent")?;
        let peer = Peer::Thread(Some(thread));
        Ok(Self {
            host,
            stream: frame_stream(ours)?,
            peer,
            phase: Phase::Connecting,
            early: Vec::new(),
            owed: 0,
        })
    }

    /// The agent of a host at another site, which the launcher there starts.
    pub(super) fn far(host: String, stream: UnixStream) -> anyhow::Result<Self> {
        Ok(Self {
            host,
            stream: frame_stream(stream)?,
            peer: Peer::Far,
            phase: Phase::Connecting,
            early: Vec::new(),
            owed: 0,
        })
    }

    /// Runs this command on another host, as `role`: an agent, or what else speaks in frames. `reached_as` is how the shell calls the host.
    pub(crate) fn remote(
        host: String,
        reached_as: &str,
        shell: &str,
        agent_path: &Path,
        role: &str,
    ) -> anyhow::Result<Self> {
        let words: Vec<OsString> = shell
            .split_whitespace()
            .map(|word| word.replace("{host}", reached_as).into())
            .collect();
        let (program, args) = words.split_first().context("the remote shell is empty")?;
        let shown = shell.replace("{host}", reached_as);
        let mut command = Command::new(program);
        command.args(args).arg(agent_path).arg(role);
        Self::child(host, shown, &mut command)
    }

    /// Runs this command as `role` on this host, as a process of its own.
    pub(crate) fn here(host: String, role: &str) -> anyhow::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("mizzen").arg(role);
        Self::child(host, format!("mizzen {role}"), &mut command)
    }

    /// `shown` is how a user knows the command.
    fn child(host: String, shown: String, command: &mut Command) -> anyhow::Result<Self> {
        mizzen_agent::unblock_in(command);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A key of the terminal must reach the processes as a signal passed on, not end the shell.
            .process_group(0)
            .spawn()
            .with_context(|| {
                format!("the remote shell `{shown}` cannot be run; see --remote-shell")
            })?;
        let input: OwnedFd = child.stdout.take().context("no pipe")?.into();
        let output: OwnedFd = child.stdin.take().context("no pipe")?.into();
        let stderr = child.stderr.take().context("no pipe")?;
        rustix::io::ioctl_fionbio(&stderr, true)?;
        let stream = FrameStream::new(input, output)?;
        let peer = Peer::Shell {
            child,
            shown,
            stderr: Some(stderr),
            said: Vec::new(),
        };
        Ok(Self {
            host,
            stream,
            peer,
            phase: Phase::Connecting,
            early: Vec::new(),
            owed: 0,
        })
    }

    /// Keeps what the remote shell says, in case it fails.
    pub(crate) fn read_stderr(&mut self) {
        let Peer::Shell { stderr, said, .. } = &mut self.peer else {
            return;
        };
        let Some(pipe) = stderr else { return };
        let mut buf = [0; 4096];
        match rustix::io::read(&*pipe, &mut buf) {
            Ok(0) => *stderr = None,
            Ok(count) => {
                said.extend_from_slice(&buf[..count]);
                let excess = said.len().saturating_sub(KEPT);
                said.drain(..excess);
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(_) => *stderr = None,
        }
    }

    /// Gives up an agent that does not answer, or makes no sense.
    pub(crate) fn abandon(&mut self) {
        if let Peer::Shell { child, .. } = &mut self.peer {
            let _ = child.kill();
            let _ = child.wait();
        }
        if let Peer::Far = &self.peer {
            let _ = rustix::net::shutdown(self.stream.output(), rustix::net::Shutdown::Both);
        }
        self.phase = Phase::Closed;
    }

    /// Whether another launcher starts its agent.
    pub(super) fn is_far(&self) -> bool {
        matches!(self.peer, Peer::Far)
    }

    pub(crate) fn is_local(&self) -> bool {
        matches!(self.peer, Peer::Thread(_))
    }

    pub(crate) fn stderr(&self) -> Option<BorrowedFd<'_>> {
        match &self.peer {
            Peer::Shell {
                stderr: Some(pipe), ..
            } => Some(pipe.as_fd()),
            _ => None,
        }
    }

    /// Waits for the end of what ran the agent, and says how it ended: a clause.
    ///
    /// Call when the stream is closed; a remote shell that does not end then is killed.
    pub(crate) fn close(&mut self) -> String {
        self.phase = Phase::Closed;
        match &mut self.peer {
            Peer::Thread(thread) => {
                let ended = thread.take().map(JoinHandle::join);
                let how = if matches!(ended, Some(Err(_))) {
                    "failed"
                } else {
                    "ended"
                };
                format!("its agent {how}")
            }
            Peer::Far => "the connection with its launcher has ended: that is gone, or a gateway between the sites, or they do not let this job be \
                          met any more"
                .to_owned(),
            Peer::Shell { child, shown, .. } => {
                let clause = format!("the remote shell `{shown}` {}", end_of(child));
                self.read_stderr();
                let Peer::Shell { said, .. } = &self.peer else {
                    return clause;
                };
                match quote(said) {
                    Some(said) => format!("{clause}, saying {said}"),
                    None => clause,
                }
            }
        }
    }
}

impl Drop for Link {
    /// Whatever happens to the launcher, no remote shell is left.
    fn drop(&mut self) {
        if let Peer::Shell { child, .. } = &mut self.peer {
            if self.phase != Phase::Closed {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// Bytes of someone else for a sentence of ours.
pub(crate) fn quote(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    (!text.is_empty()).then(|| format!("{text:?}"))
}

pub(super) fn frame_stream(socket: UnixStream) -> anyhow::Result<FrameStream> {
    let input = socket.try_clone().context("no descriptor left")?;
    Ok(FrameStream::new(input.into(), socket.into())?)
}

fn end_of(child: &mut Child) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return format!("ended ({status})"),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) | Err(_) => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    "closed its output and did not end".to_owned()
}

/// How much of what a remote shell says is kept: the end matters.
const KEPT: usize = 2048;

/// How long a remote shell has to end after its agent has.
const PATIENCE: Duration = Duration::from_millis(500);
