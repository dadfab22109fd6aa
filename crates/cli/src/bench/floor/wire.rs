//! The floor of many threads over a network: a bare TCP connection for each pair, which waits as a mailbox waits.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::Context;
use mizzen::wait::{Contention, Patience, Step, spin};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::bench::meeting::Meeting;

/// What the table calls it.
pub(crate) const NAME: &str = "bare TCP sockets, waiting as we do";

/// One end of a pair.
pub(crate) struct Wire {
    stream: TcpStream,
    contention: Contention,
}

impl Wire {
    /// Connects all pairs, in step with the other side.
    pub(crate) fn connect(
        meeting: &mut Meeting,
        side: usize,
        pairs: u32,
        address: IpAddr,
    ) -> anyhow::Result<Vec<Self>> {
        let mut wires = Vec::new();
        for _ in 0..pairs {
            let stream = stream(meeting, side, address)?;
            stream.set_nonblocking(true)?;
            wires.push(Self {
                stream,
                contention: Contention::default(),
            });
        }
        Ok(wires)
    }

    pub(crate) fn send(&self, ball: u64) -> anyhow::Result<()> {
        loop {
            match (&self.stream).write(&ball.to_le_bytes()) {
                Ok(8) => return Ok(()),
                Ok(_) => anyhow::bail!("the bare TCP connection took half a ball"),
                // Room comes in pages, so a ball goes whole or not at all.
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn receive(&self) -> anyhow::Result<u64> {
        let mut ball = [0; 8];
        let mut patience = Patience::until(None, &self.contention);
        loop {
            match (&self.stream).read_exact(&mut ball) {
                Ok(()) => return Ok(u64::from_le_bytes(ball)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                Err(error) => return Err(error).context("the bare TCP connection was lost"),
            }
            spin(patience.quick_looks(), || false);
            if let Step::Sleep(nap) = patience.step() {
                self.sleep(nap)?;
            }
        }
    }

    fn sleep(&self, nap: Duration) -> anyhow::Result<()> {
        let nap = Timespec::try_from(nap).ok();
        let watched = PollFd::new(&self.stream, PollFlags::IN);
        match poll(&mut [watched], nap.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A connection between the two sides, in step. The first listens at `address`.
pub(crate) fn stream(
    meeting: &mut Meeting,
    side: usize,
    address: IpAddr,
) -> anyhow::Result<TcpStream> {
    let stream = if side == 0 {
        let listener = TcpListener::bind((address, 0))
            .with_context(|| format!("no TCP port at {address} for the floor"))?;
        meeting.agree(u64::from(listener.local_addr()?.port()));
        listener.accept()?.0
    } else {
        let port = meeting.agree(0) as u16;
        TcpStream::connect((address, port))?
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}
