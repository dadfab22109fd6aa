//! The agent's side of the link to its launcher.

use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::Context;
use mizzen_proto::boot::{FromAgent, Start, ToAgent};
use rustix::event::epoll;
use rustix::io::Errno;

use crate::events::{self, EVENTS};
use crate::stream::{FrameStream, Other};

/// The stream to the launcher, and the loop's epoll, which watches it.
pub(crate) struct Link {
    pub(crate) stream: FrameStream,
    pub(crate) epoll: OwnedFd,
    /// Whether the epoll watches for room to write.
    watching_output: bool,
    pub(crate) other: Other,
}

impl Link {
    pub(crate) fn new(stream: FrameStream) -> anyhow::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("no epoll")?;
        epoll::add(
            &epoll,
            stream.input(),
            epoll::EventData::new_u64(INPUT),
            epoll::EventFlags::IN,
        )
        .context(
            "the agent is run by `mizzen run`, with pipes or sockets as standard input and output",
        )?;
        Ok(Self {
            stream,
            epoll,
            watching_output: false,
            other: Other::Open,
        })
    }

    pub(crate) fn send(&mut self, frame: &FromAgent) {
        let sent = frame.encode(self.stream.queue());
        debug_assert!(
            sent.is_ok(),
            "frames of agents are cut to size before: {frame:?}"
        );
    }

    pub(crate) fn flush(&mut self) {
        if self.stream.flush() == Other::Closed {
            self.other = Other::Closed;
        }
        let waiting = self.stream.backlog() > 0;
        if waiting == self.watching_output {
            return;
        }
        let output = self.stream.output();
        // Should the kernel refuse, the frames leave with the next event.
        let _ = if waiting {
            epoll::add(
                &self.epoll,
                output,
                epoll::EventData::new_u64(OUTPUT),
                epoll::EventFlags::OUT,
            )
        } else {
            epoll::delete(&self.epoll, output)
        };
        self.watching_output = waiting;
    }

    /// Waits until all is written, or the launcher is gone.
    pub(crate) fn drain(&mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            self.flush();
            if self.stream.backlog() == 0 || self.other == Other::Closed {
                return;
            }
            if self.wait(&mut events, None).is_err() {
                return;
            }
            // What the launcher says now does not matter, that it is gone does.
            if events.drain(..).any(|event| event.data.u64() == INPUT)
                && self.stream.receive() == Other::Closed
            {
                return;
            }
            while let Ok(Some(_)) = self.stream.next(|_| Ok(())) {}
        }
    }

    pub(crate) fn wait_for_start(&mut self) -> anyhow::Result<Option<Box<Start>>> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            self.flush();
            match self.stream.next(ToAgent::decode) {
                Ok(Some(ToAgent::Start(start))) => {
                    self.stream.forget_taken();
                    return Ok(Some(start));
                }
                // Ended before it began.
                Ok(Some(ToAgent::Stop { .. })) => return Ok(None),
                Ok(Some(_)) => {}
                Ok(None) if self.other == Other::Closed => return Ok(None),
                Ok(None) => {
                    self.wait(&mut events, None)?;
                    events.clear();
                    if self.stream.receive() == Other::Closed {
                        self.other = Other::Closed;
                    }
                }
                Err(error) => {
                    anyhow::bail!("the agent is run by `mizzen run`, not by hand: {error}")
                }
            }
        }
    }

    pub(crate) fn wait(
        &self,
        events: &mut Vec<epoll::Event>,
        timeout: Option<Duration>,
    ) -> Result<(), Errno> {
        events::wait(&self.epoll, events, timeout)
    }
}

/// The launcher has said something, or is gone.
pub(crate) const INPUT: u64 = 0;
/// It has room for more.
const OUTPUT: u64 = 1;
