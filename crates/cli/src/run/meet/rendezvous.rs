//! Where and whom to meet.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use mizzen_agent::Signals;
use mizzen_site::{Door, Meeting};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::distance::line_of;
use crate::run::options::Run;
use crate::run::other_half::Shared;
use crate::run::printer::say;
use crate::signals;

pub(super) struct Rendezvous {
    pub(super) meeting: Meeting,
    pub(super) door: Door,
    pub(super) door_at: SocketAddr,
    /// This site.
    pub(super) site: String,
    pub(super) shared: Shared,
}

impl Rendezvous {
    pub(super) fn new(options: &Run, meeting: &Meeting) -> anyhow::Result<Self> {
        let Some(secret) = &options.secret else {
            bail!(
                "--meet needs --secret FILE, the same at both sites; `mizzen site secret FILE` makes one"
            );
        };
        let shared = Shared::read(secret, meeting.job())?;
        let door = Door::new(options.door);
        let site = door.site()?;
        let is_named = format!("{}@{site}", meeting.job())
            .parse::<Meeting>()
            .is_ok();
        ensure!(
            is_named,
            "what answers at {} is not the gateway of a site; check --door",
            options.door
        );
        ensure!(
            site != meeting.site(),
            "the gateway at {} is that of site \"{site}\", which cannot meet itself; check --door, which is that of the own site, and --meet, \
             which names the other",
            options.door
        );
        Ok(Self {
            meeting: meeting.clone(),
            door,
            door_at: options.door,
            site,
            shared,
        })
    }
}

/// Tells the user why the other half may not come, each reason once.
#[derive(Debug, Default)]
pub(super) struct Patience {
    looked: Option<Instant>,
    said: String,
}

impl Patience {
    /// Looks now and then whether the two sites are connected at all.
    pub(super) fn look(&mut self, rendezvous: &Rendezvous) {
        if self.looked.is_some_and(|at| at.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        let why = match rendezvous.door.status() {
            Ok(status) => {
                let line = line_of(&status, rendezvous.meeting.site());
                let line = line.filter(|line| line.starts_with("not connected"));
                let Some(line) = line else {
                    return self.said.clear();
                };
                let other = rendezvous.meeting.site();
                format!(
                    "the gateways of this site and of \"{other}\" are {line}; ask who runs them"
                )
            }
            Err(error) => format!("{error}; waiting for it"),
        };
        self.say(why);
    }

    /// Says something, unless it was said before.
    pub(super) fn say(&mut self, why: String) {
        if why != self.said {
            say(&format!("{why}."));
            self.said = why;
        }
    }
}

/// The user does not want to wait any more.
#[derive(Debug)]
pub(super) struct Interrupted(pub(super) u8);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = signals::name(self.0);
        write!(f, "got {name} before the other half of the job was there")
    }
}

impl std::error::Error for Interrupted {}

/// Waits for something, or for a while. Fails if the user does not want to wait any more.
pub(super) fn wait(
    signals: &Signals,
    other: Option<BorrowedFd<'_>>,
    time: Duration,
) -> anyhow::Result<()> {
    let mut fds = vec![PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
    fds.extend(other.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    match poll(&mut fds, Some(&Timespec::try_from(time)?)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    while let Some((number, _)) = signals.next() {
        if signals::asks_to_end(number) {
            return Err(Interrupted(number).into());
        }
    }
    Ok(())
}

/// How often it is looked why the other half does not come.
const LOOK: Duration = Duration::from_secs(5);
