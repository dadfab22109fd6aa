//! What launchers say to each other: lines of JSON.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, ensure};
use mizzen_proto::boot::{MAX_PROCESSES, VERSION};
use rustls::Connection;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::timed::Timed;

/// What the deputy brings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::run) struct Hello {
    pub(in crate::run) version: u32,
    pub(in crate::run) site: String,
    /// How many processes it wants.
    pub(in crate::run) processes: u32,
    /// The hosts that carry them: names, and where they listen.
    pub(in crate::run) hosts: Vec<(String, String)>,
    /// Where the gateway of its site is, for those hosts.
    pub(in crate::run) door: String,
    /// What must be the same at both sites: options and what they are.
    pub(in crate::run) agreed: Vec<(String, String)>,
}

/// The leader's answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::run) enum Welcome {
    /// These ranks are the deputy's.
    Met { first: u32, size: u32 },
    /// No, and why.
    No(String),
}

/// What the leader says later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) enum FromLeader {
    /// To be printed.
    Say(String),
    /// The job has ended with this code.
    End(u8),
}

/// What the deputy says later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::run) enum FromDeputy {
    /// Its user sent a signal.
    Signal(u8),
    /// Nobody reads what it prints.
    Unread,
}

impl Hello {
    /// Checks what the types cannot say.
    pub(in crate::run) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            self.version == VERSION,
            "the mizzen command at site {:?} speaks version {}, this one {VERSION}; install the same at both sites",
            self.site,
            self.version
        );
        ensure!(
            self.door.parse::<SocketAddr>().is_ok(),
            "the other half does not say where the gateway of its site is"
        );
        let hosts = self.hosts.len();
        ensure!(
            (1..=MAX_PROCESSES).contains(&self.processes)
                && hosts > 0
                && hosts <= self.processes as usize,
            "the other half has {hosts} hosts for {} processes, which cannot be",
            self.processes
        );
        Ok(())
    }
}

/// Says something to the other launcher, and waits until it is written.
pub(in crate::run) fn say(
    tls: &mut Connection,
    socket: &mut Timed<'_>,
    what: &impl Serialize,
) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    for piece in line.chunks(16 << 10) {
        tls.writer().write_all(piece)?;
        while tls.wants_write() {
            tls.write_tls(socket).context(GONE)?;
        }
    }
    Ok(())
}

/// Hears something from the other launcher, and nothing beyond it.
pub(in crate::run) fn hear<T: DeserializeOwned>(
    tls: &mut Connection,
    socket: &mut Timed<'_>,
) -> anyhow::Result<T> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while byte[0] != b'\n' {
        match tls.reader().read_exact(&mut byte) {
            Ok(()) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let len = tls.read_tls(socket).context(GONE)?;
                ensure!(len > 0, GONE);
                tls.process_new_packets()?;
            }
            Err(error) => return Err(error).context(GONE),
        }
        ensure!(line.len() <= MAX_LINE, "the other launcher says too much");
    }
    serde_json::from_slice(&line).context("the other launcher makes no sense")
}

const GONE: &str = "the other launcher is gone";

/// Words of somebody else, for a terminal: without what moves its cursor, or more.
pub(in crate::run) fn printable(text: &str) -> String {
    let shown = text.chars().filter(|char| !char.is_control());
    shown.take(2000).collect()
}

/// Lines that come and go while other things happen.
pub(in crate::run) struct Lines {
    socket: UnixStream,
    heard: Vec<u8>,
    /// What was said and is not yet written.
    said: Vec<u8>,
    is_closed: bool,
}

impl Lines {
    pub(in crate::run) fn new(socket: UnixStream) -> std::io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (heard, said) = (Vec::new(), Vec::new());
        Ok(Self {
            socket,
            heard,
            said,
            is_closed: false,
        })
    }

    pub(in crate::run) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(in crate::run) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Says something. Who does not read for long misses it: nothing of this must be heard for the job to go on.
    pub(in crate::run) fn say(&mut self, what: &impl Serialize) {
        if self.said.len() < MAX_LINE && serde_json::to_writer(&mut self.said, what).is_ok() {
            self.said.push(b'\n');
        }
        self.flush();
    }

    /// Writes what the other end takes.
    fn flush(&mut self) {
        while let Ok(len @ 1..) = self.socket.write(&self.said) {
            self.said.drain(..len);
            if self.said.is_empty() {
                return;
            }
        }
    }

    /// No more will be said.
    pub(in crate::run) fn end(&mut self) {
        let _ = self.socket.set_nonblocking(false);
        let _ = self.socket.set_write_timeout(Some(Duration::from_secs(2)));
        let _ = self.socket.write_all(&self.said);
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }

    /// What was said since the last time.
    pub(in crate::run) fn hear<T: DeserializeOwned>(&mut self) -> Vec<T> {
        self.flush();
        let mut piece = [0; 4096];
        loop {
            match self.socket.read(&mut piece) {
                Ok(0) => self.is_closed = true,
                Ok(len) => self.heard.extend_from_slice(&piece[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_closed = true,
            }
            if self.is_closed || self.heard.len() > MAX_LINE {
                break;
            }
        }
        let mut words = Vec::new();
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let rest = self.heard.split_off(end + 1);
            let line = std::mem::replace(&mut self.heard, rest);
            // What one does not understand, a later version may say.
            words.extend(serde_json::from_slice::<T>(&line).ok());
        }
        if self.heard.len() > MAX_LINE {
            self.is_closed = true;
        }
        words
    }
}

/// Names of hosts and sentences fit.
const MAX_LINE: usize = 8 << 20;
