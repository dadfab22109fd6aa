//! Packets that the kernel hands over and waits for our word about: its NFQUEUE, by netlink.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, ensure};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// What becomes of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict<'a> {
    Drop,
    Accept,
    /// It goes on with these bytes.
    Instead(&'a [u8]),
}

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) id: u32,
    pub(crate) length: u32,
    /// Its bytes, or the first of them.
    pub(crate) bytes: &'a [u8],
}

pub(crate) struct Queue {
    socket: OwnedFd,
    number: u16,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    overruns: u64,
}

impl Queue {
    /// Takes over a queue. `whole`: with all bytes of each packet; `joined`: packets as the kernel joined them.
    pub(crate) fn open(number: u16, whole: bool, joined: bool) -> anyhow::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::NETFILTER),
        )?;
        set_socket_recv_buffer_size_force(&socket, 64 << 20)?;
        let mut queue = Self {
            socket,
            number,
            incoming: vec![0; 1 << 18],
            outgoing: Vec::new(),
            overruns: 0,
        };
        let family = (AddressFamily::INET.as_raw()).to_be_bytes();
        let bind = [1, 0, family[0], family[1]];
        queue.configure(&[(attribute::COMMAND, &bind)])?;
        let [a, b, c, d] = if whole { 0xffff_u32 } else { 44 }.to_be_bytes();
        let copied = [a, b, c, d, 2];
        let mask = GSO.to_be_bytes();
        let flags = if joined { GSO } else { 0 }.to_be_bytes();
        queue.configure(&[
            (attribute::PARAMETERS, &copied),
            (attribute::LONGEST, &LONGEST.to_be_bytes()),
            (attribute::MASK, &mask),
            (attribute::FLAGS, &flags),
        ])?;
        Ok(queue)
    }

    /// Takes the packets of the next read: those that `keep` does not keep are dropped. Returns whether there was something to read.
    pub(crate) fn receive(
        &mut self,
        mut keep: impl FnMut(&Packet<'_>) -> bool,
    ) -> anyhow::Result<bool> {
        let (length, _) = match recv(&self.socket, &mut self.incoming[..], RecvFlags::DONTWAIT) {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(Errno::NOBUFS) => {
                self.overruns += 1;
                return Ok(true);
            }
            Err(error) => return Err(error).context("reading packets"),
        };
        for packet in messages(&self.incoming[..length]).filter_map(packet) {
            if !keep(&packet) {
                say(&mut self.outgoing, self.number, packet.id, Verdict::Drop);
            }
        }
        Ok(true)
    }

    /// Says what becomes of a packet, with the next [`Queue::flush`].
    pub(crate) fn say(&mut self, id: u32, verdict: Verdict<'_>) {
        say(&mut self.outgoing, self.number, id, verdict);
    }

    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        if !self.outgoing.is_empty() {
            send(&self.socket, &self.outgoing, SendFlags::empty())
                .context("saying what becomes of packets")?;
            self.outgoing.clear();
        }
        Ok(())
    }

    /// How often the kernel had more for us than it could keep.
    pub(crate) fn overruns(&self) -> u64 {
        self.overruns
    }

    /// Sets something, and waits for the kernel's word.
    fn configure(&mut self, attributes: &[(u16, &[u8])]) -> anyhow::Result<()> {
        let mut message = Vec::new();
        put(
            &mut message,
            self.number,
            kind::CONFIGURE,
            ACKNOWLEDGE,
            attributes,
        );
        send(&self.socket, &message, SendFlags::empty())?;
        let (length, _) = recv(&self.socket, &mut self.incoming[..], RecvFlags::empty())?;
        let error = messages(&self.incoming[..length]).find(|(kind, _)| *kind == kind::ERROR);
        let (_, body) = error.context("the kernel did not answer")?;
        let code = body.get(..4).and_then(|code| code.try_into().ok());
        let code = i32::from_ne_bytes(code.context("the kernel's answer is cut short")?);
        ensure!(
            code == 0,
            "the kernel refused: {}",
            std::io::Error::from_raw_os_error(-code)
        );
        Ok(())
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The messages of a read: what kind each is, and its body.
fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        let kind: [u8; 2] = bytes.get(4..6)?.try_into().ok()?;
        let length = u32::from_ne_bytes(length) as usize;
        let body = bytes.get(16..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or(&[]);
        Some((u16::from_ne_bytes(kind), body))
    })
}

/// The attributes of a body: what each is, and its value.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length: [u8; 2] = bytes.get(..2)?.try_into().ok()?;
        let kind: [u8; 2] = bytes.get(2..4)?.try_into().ok()?;
        let length = usize::from(u16::from_ne_bytes(length));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(aligned(length)..).unwrap_or(&[]);
        Some((u16::from_ne_bytes(kind) & 0x3fff, value))
    })
}

fn packet((kind, body): (u16, &[u8])) -> Option<Packet<'_>> {
    if kind != kind::PACKET {
        return None;
    }
    let (mut id, mut length, mut bytes) = (None, None, &[][..]);
    let number = |value: &[u8]| Some(u32::from_be_bytes(value.get(..4)?.try_into().ok()?));
    for (kind, value) in attributes(body.get(4..)?) {
        match kind {
            attribute::HEADER => id = number(value),
            attribute::LENGTH => length = number(value),
            attribute::PAYLOAD => bytes = value,
            _ => (),
        }
    }
    Some(Packet {
        id: id?,
        length: length.unwrap_or(bytes.len() as u32),
        bytes,
    })
}

/// Appends what becomes of a packet.
fn say(to: &mut Vec<u8>, queue: u16, id: u32, verdict: Verdict<'_>) {
    let accept = u32::from(!matches!(verdict, Verdict::Drop));
    let mut header = [0; 8];
    header[..4].copy_from_slice(&accept.to_be_bytes());
    header[4..].copy_from_slice(&id.to_be_bytes());
    let header: (u16, &[u8]) = (attribute::VERDICT, &header);
    match verdict {
        Verdict::Instead(bytes) => {
            put(
                to,
                queue,
                kind::VERDICT,
                0,
                &[header, (attribute::PAYLOAD, bytes)],
            );
        }
        Verdict::Drop | Verdict::Accept => put(to, queue, kind::VERDICT, 0, &[header]),
    }
}

/// Appends a message.
fn put(to: &mut Vec<u8>, queue: u16, kind: u16, flags: u16, attributes: &[(u16, &[u8])]) {
    let start = to.len();
    to.extend([0; 4]);
    to.extend(kind.to_ne_bytes());
    to.extend((REQUEST | flags).to_ne_bytes());
    // Its number, and ours; any family, version 0.
    to.extend([0; 8 + 2]);
    to.extend(queue.to_be_bytes());
    for (kind, value) in attributes {
        to.extend((4 + value.len() as u16).to_ne_bytes());
        to.extend(kind.to_ne_bytes());
        to.extend(*value);
        to.resize(start + aligned(to.len() - start), 0);
    }
    let length = (to.len() - start) as u32;
    to[start..start + 4].copy_from_slice(&length.to_ne_bytes());
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

/// What the messages are, of the subsystem of queues.
mod kind {
    pub(super) const PACKET: u16 = 3 << 8;
    pub(super) const VERDICT: u16 = 3 << 8 | 1;
    pub(super) const CONFIGURE: u16 = 3 << 8 | 2;
    pub(super) const ERROR: u16 = 2;
}

/// What attributes are, in packets and verdicts, and in configurations.
mod attribute {
    pub(super) const HEADER: u16 = 1;
    pub(super) const VERDICT: u16 = 2;
    pub(super) const PAYLOAD: u16 = 10;
    pub(super) const LENGTH: u16 = 13;

    pub(super) const COMMAND: u16 = 1;
    pub(super) const PARAMETERS: u16 = 2;
    pub(super) const LONGEST: u16 = 3;
    pub(super) const MASK: u16 = 4;
    pub(super) const FLAGS: u16 = 5;
}

const REQUEST: u16 = 1;
const ACKNOWLEDGE: u16 = 4;
/// Hand over packets as they were joined.
const GSO: u32 = 4;
/// Packets that may wait; the kernel's own limit is 1,024.
const LONGEST: u32 = 200_000;
