//! One sealed connection between two launchers, for the agents of all hosts: what is written into one of its local ends comes out of
//! the same one at the other side.
//!
//! On the wire, each piece has eight bytes in front of it: which end, and how many bytes, both little-endian. A piece of none says that
//! this end has closed; one for no end that both launchers are there.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::Connection;

/// A thread that passes on, until either side has closed all ends, or is gone.
#[derive(Debug)]
pub(in crate::run) struct Tunnel {
    thread: JoinHandle<()>,
}

impl Tunnel {
    /// So many ends, as the agents of as many hosts would have them.
    pub(in crate::run) fn open(
        socket: TcpStream,
        mut tls: Connection,
        ends: usize,
    ) -> anyhow::Result<(Self, Vec<UnixStream>)> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ends {
            let (one, other) = UnixStream::pair()
                .context("no descriptors left for the hosts of the other site")?;
            one.set_nonblocking(true)?;
            ours.push(End {
                socket: one,
                waiting: Vec::new(),
                written: 0,
                reads: true,
                writes: true,
            });
            theirs.push(other);
        }
        socket.set_nonblocking(true)?;
        // Nothing is added while something waits, but a word that we are there.
        tls.set_buffer_limit(None);
        let now = Instant::now();
        let passing = Passing {
            socket,
            tls,
            ends: ours,
            heard: Vec::new(),
            heard_at: now,
            said_at: now,
        };
        let thread = thread::Builder::new().name("tunnel".into());
        let thread = thread
            .spawn(move || passing.go_on())
            .context("no thread for the other site")?;
        Ok((Self { thread }, theirs))
    }

    /// Waits until everything was passed on, but not for ever.
    pub(in crate::run) fn finish(self, patience: Duration) {
        let deadline = Instant::now() + patience;
        while !self.thread.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A local end.
struct End {
    socket: UnixStream,
    /// What came for it.
    waiting: Vec<u8>,
    written: usize,
    /// Whether more may come from it.
    reads: bool,
    /// Whether more may go to it.
    writes: bool,
}

impl End {
    /// Writes what it takes.
    fn flush(&mut self) {
        while self.written < self.waiting.len() {
            match self.socket.write(&self.waiting[self.written..]) {
                Ok(len) => self.written += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // Nobody wants it.
                Err(_) => {
                    self.writes = false;
                    break;
                }
            }
        }
        self.waiting.clear();
        self.written = 0;
        if !self.writes {
            let _ = self.socket.shutdown(Shutdown::Write);
        }
    }

    /// Whether nothing goes through it any more, either way.
    fn is_over(&self) -> bool {
        !self.reads && !self.writes && self.backlog() == 0
    }

    /// Whether nobody has the other end of it any more, not only the half to write to.
    fn is_gone(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(
            self.socket.as_fd(),
            PollFlags::empty(),
        )];
        let polled = poll(&mut fds, Some(&Timespec::default()));
        polled.is_ok() && fds[0].revents().contains(PollFlags::HUP)
    }

    fn backlog(&self) -> usize {
        self.waiting.len() - self.written
    }
}

struct Passing {
    socket: TcpStream,
    tls: Connection,
    ends: Vec<End>,
    /// What came and is not yet a whole piece.
    heard: Vec<u8>,
    heard_at: Instant,
    said_at: Instant,
}

impl Passing {
    fn go_on(mut self) {
        // However it ends, the local ends show it: they are closed, after what came for them.
        let _ = self.pass();
        for end in &mut self.ends {
            let _ = end.socket.set_nonblocking(false);
            let _ = end.socket.set_write_timeout(Some(LAST));
            end.flush();
        }
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    fn pass(&mut self) -> io::Result<()> {
        // What came with the last word of the handshake has no wake-up of its own.
        self.take_plain()?;
        loop {
            let is_over = self.ends.iter().all(End::is_over);
            if is_over && !self.tls.wants_write() {
                self.tls.send_close_notify();
                let _ = self.tls.write_tls(&mut self.socket);
                return Ok(());
            }
            let now = Instant::now();
            if now.duration_since(self.heard_at) > SILENCE {
                return Err(ErrorKind::TimedOut.into());
            }
            if now.duration_since(self.said_at) > BEAT {
                self.say(NOBODY, &[])?;
            }
            let ready = self.wait()?;
            if ready[0].contains(PollFlags::OUT) {
                self.write()?;
            }
            if ready[0].intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                self.read()?;
            }
            for (number, ready) in ready[1..].iter().enumerate() {
                self.ends[number].flush();
                if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                    self.take_from(number)?;
                }
            }
        }
    }

    fn wait(&self) -> io::Result<Vec<PollFlags>> {
        let is_full = self.ends.iter().any(|end| end.backlog() > MAX_BACKLOG);
        let mut wanted = PollFlags::empty();
        wanted.set(PollFlags::OUT, self.tls.wants_write());
        // Who does not read its output holds up the others of its site: the agents wait before it comes to that.
        wanted.set(PollFlags::IN, !is_full);
        let mut fds = vec![PollFd::from_borrowed_fd(self.socket.as_fd(), wanted)];
        let nothing = self.socket.as_fd();
        for end in &self.ends {
            let mut wanted = PollFlags::empty();
            wanted.set(PollFlags::IN, end.reads && !self.tls.wants_write());
            wanted.set(PollFlags::OUT, end.backlog() > 0);
            // One that has closed would wake us all the time.
            let fd: BorrowedFd<'_> = if wanted.is_empty() {
                nothing
            } else {
                end.socket.as_fd()
            };
            fds.push(PollFd::from_borrowed_fd(fd, wanted));
        }
        match poll(
            &mut fds,
            Some(&Timespec::try_from(TICK).unwrap_or_default()),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let mut ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        for (ready, end) in ready[1..].iter_mut().zip(&self.ends) {
            if !end.reads && end.backlog() == 0 {
                *ready = PollFlags::empty();
            }
        }
        Ok(ready)
    }

    /// Takes what a local end has, and passes it on.
    fn take_from(&mut self, number: usize) -> io::Result<()> {
        let end = &mut self.ends[number];
        if !end.reads || self.tls.wants_write() {
            return Ok(());
        }
        let mut piece = vec![0; PIECE];
        match end.socket.read(&mut piece) {
            Ok(len @ 1..) => self.say(number as u32, &piece[..len]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(())
            }
            Ok(_) | Err(_) => {
                end.reads = false;
                end.writes &= !end.is_gone();
                self.say(number as u32, &[])
            }
        }
    }

    fn say(&mut self, number: u32, piece: &[u8]) -> io::Result<()> {
        let len = u32::try_from(piece.len()).map_err(io::Error::other)?;
        let mut writer = self.tls.writer();
        writer.write_all(&number.to_le_bytes())?;
        writer.write_all(&len.to_le_bytes())?;
        writer.write_all(piece)?;
        self.said_at = Instant::now();
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        match self.tls.read_tls(&mut self.socket) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.tls.process_new_packets().map_err(io::Error::other)?;
        self.heard_at = Instant::now();
        self.take_plain()
    }

    fn take_plain(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 << 10];
        loop {
            match self.tls.reader().read(&mut piece) {
                Ok(0) => {
                    // What was said before counts.
                    self.hand_out()?;
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                Ok(len) => self.heard.extend_from_slice(&piece[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.hand_out()
    }

    /// Hands whole pieces to their ends.
    fn hand_out(&mut self) -> io::Result<()> {
        let mut taken = 0;
        while let Some((head, rest)) = self.heard[taken..].split_first_chunk::<8>() {
            let [n0, n1, n2, n3, l0, l1, l2, l3] = *head;
            let number = u32::from_le_bytes([n0, n1, n2, n3]);
            let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
            if len > PIECE {
                return Err(ErrorKind::InvalidData.into());
            }
            let Some(piece) = rest.get(..len) else {
                break;
            };
            taken += 8 + len;
            if number == NOBODY {
                continue;
            }
            let Some(end) = self.ends.get_mut(number as usize) else {
                return Err(ErrorKind::InvalidData.into());
            };
            match (len, end.writes) {
                (0, _) => end.writes = false,
                (_, true) => end.waiting.extend_from_slice(piece),
                // It closed: nobody is there to read this.
                (_, false) => {}
            }
            end.flush();
        }
        self.heard.drain(..taken);
        Ok(())
    }
}

/// No end: said to be heard.
const NOBODY: u32 = u32::MAX;
/// The longest piece.
const PIECE: usize = 64 << 10;
/// Bytes that wait for one local end before no more is read.
const MAX_BACKLOG: usize = 16 << 20;
/// After so long without a word, one is said.
const BEAT: Duration = Duration::from_secs(5);
/// After so long without a word, the other launcher is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// How long who reads what came last may take.
const LAST: Duration = Duration::from_secs(2);
/// How often we look whether it is time for that.
const TICK: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use mizzen_identity::{Authority, Identity, server_name};
    use rustls::{ClientConnection, ServerConnection};

    use super::*;

    /// Two tunnels that are connected, with their ends.
    fn pair(ends: usize) -> [(Tunnel, Vec<UnixStream>); 2] {
        let authority = Authority::new("lab", [7; 16]).unwrap();
        let credentials = |rank| {
            let identity = Identity::new("lab", [7; 16], rank, 0).unwrap();
            authority.credentials(&identity).unwrap()
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut other = listener.accept().unwrap().0;
        let mut client: Connection =
            ClientConnection::new(credentials(0).client_config(), server_name())
                .unwrap()
                .into();
        let mut server: Connection = ServerConnection::new(credentials(1).server_config())
            .unwrap()
            .into();
        let there = thread::spawn(move || {
            server.complete_io(&mut other).unwrap();
            Tunnel::open(other, server, ends).unwrap()
        });
        client.complete_io(&mut one).unwrap();
        [
            Tunnel::open(one, client, ends).unwrap(),
            there.join().unwrap(),
        ]
    }

    #[test]
    fn what_goes_into_an_end_comes_out_of_the_same_at_the_other_side() {
        let [(here, ours), (there, theirs)] = pair(3);
        let bytes: Vec<u8> = (0..2_000_000u32).map(|i| (i * 31) as u8).collect();
        thread::scope(|scope| {
            for (one, other) in ours.iter().zip(&theirs) {
                let bytes = &bytes;
                for (mut from, mut to) in [(one, other), (other, one)] {
                    scope.spawn(move || {
                        from.write_all(bytes).unwrap();
                        from.shutdown(Shutdown::Write).unwrap();
                    });
                    scope.spawn(move || {
                        let mut read = Vec::new();
                        to.read_to_end(&mut read).unwrap();
                        assert!(read == *bytes);
                    });
                }
            }
        });
        let began = Instant::now();
        here.finish(Duration::from_secs(10));
        there.finish(Duration::from_secs(10));
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "all was said: they end"
        );
    }

    /// Pieces as long as they may be, faster than the other side takes them.
    #[test]
    fn what_waits_for_the_network_is_not_lost() {
        let [(_here, ours), (_there, theirs)] = pair(2);
        let bytes = vec![7; 8 << 20];
        thread::scope(|scope| {
            let (mut from, sent) = (&ours[0], &bytes);
            scope.spawn(move || from.write_all(sent).unwrap());
            thread::sleep(Duration::from_millis(200));
            let mut to = &theirs[0];
            let mut read = vec![0; bytes.len()];
            to.read_exact(&mut read).unwrap();
            assert!(read == bytes);
        });
    }

    #[test]
    fn the_last_words_are_heard() {
        for _ in 0..20 {
            let [(here, mut ours), (_there, mut theirs)] = pair(2);
            ours[1].write_all(b"the end").unwrap();
            drop(std::mem::take(&mut ours));
            let mut heard = Vec::new();
            theirs[1].read_to_end(&mut heard).unwrap();
            assert_eq!(heard, b"the end");
            here.finish(Duration::from_secs(10));
        }
    }

    #[test]
    fn an_end_that_closes_leaves_the_others_open() {
        let [(_here, mut ours), (_there, mut theirs)] = pair(2);
        drop(ours.remove(0));
        assert_eq!(
            theirs[0].read(&mut [0]).unwrap(),
            0,
            "it shows at the other side"
        );
        // To a closed one may be written, and nobody minds.
        theirs[0].write_all(&[1; 100_000]).unwrap();
        theirs[1].write_all(b"hello").unwrap();
        let mut heard = [0; 5];
        ours[0].read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello");
    }

    #[test]
    fn when_one_side_is_gone_all_ends_close() {
        let [(here, ours), (_there, mut theirs)] = pair(2);
        drop(ours);
        here.finish(Duration::from_secs(10));
        for end in &mut theirs {
            assert_eq!(end.read(&mut [0]).unwrap(), 0);
        }
    }
}
