//! Where and whom to meet.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use anyhow::{bail, ensure};
use mizzen_agent::Signals;
use mizzen_site::{Door, Meeting};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::run::options::Run;
use crate::run::other_half::Shared;
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
        ensure!(
            site != meeting.site(),
            "this is site \"{site}\" itself; name the other one: --meet {}@SITE",
            meeting.job()
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
            let name = signals::name(number);
            bail!("got {name} before the other half of the job was there");
        }
    }
    Ok(())
}
