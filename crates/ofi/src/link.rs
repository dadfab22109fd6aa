//! One link: how far it is, its two halves, and its bodies.
//!
//! A link begins when the bootstrap has one (`Greeting`). Once both have said hello it is `Open`, and each
//! sends a first message through the fabric: one of them begins, the other answers, because not all providers
//! survive both connecting at once. When ours has gone out and the other's has come in, the link
//! is *up*, and the caller hears of it. After its end it stays for a while (`Gone`), until the provider has
//! let go of its messages.

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use mizzen_driver::PeerId;

use crate::bodies::Bodies;
use crate::incoming::{Fate, Incoming};
use crate::message::{Header, Kind, decode_grant};
use crate::outgoing::{Full, Outgoing, Remote};
use crate::pool::BufferId;
use crate::port::Port;
use crate::ports::PortId;

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) peer: PeerId,
    /// Whether we dialled it.
    pub(crate) dialled: bool,
    /// Through which its messages come and go.
    pub(crate) port: PortId,
    /// What the peer has to present.
    pub(crate) key: u64,
    pub(crate) stage: Stage,
    /// When it has to be up.
    pub(crate) until: Instant,
    /// Whether we send the first message, rather than answer to it; and whether we have.
    is_first: bool,
    has_said: bool,
    /// Whether the fabric was seen to carry messages, both ways.
    pub(crate) is_up: bool,
    /// Whether the caller knows of it.
    pub(crate) is_reported: bool,
    /// Whether it waits for a turn, for the provider, or for bodies: on the driver's list of that name.
    pub(crate) has_turn: bool,
    pub(crate) is_stuck: bool,
    pub(crate) is_busy: bool,
    pub(crate) incoming: Incoming,
    pub(crate) bodies: Bodies,
    /// Whether the peer knows our endpoint for bodies.
    port_is_told: bool,
    /// When bodies were last in flight, in polls.
    pub(crate) last_busy: u32,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Our hello is to be said, or was; the other end's is awaited.
    Greeting {
        is_said: bool,
    },
    Open(Outgoing),
    Gone(Option<Outgoing>),
}

/// What a message asks of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handled {
    pub(crate) fate: Fate,
    /// There is room for a caller that waits for it.
    pub(crate) has_room: bool,
}

impl Link {
    pub(crate) fn new(peer: PeerId, dialled: bool, port: PortId, key: u64, until: Instant) -> Self {
        Self {
            peer,
            dialled,
            port,
            key,
            stage: Stage::Greeting { is_said: false },
            until,
            is_first: false,
            has_said: false,
            is_up: false,
            is_reported: false,
            has_turn: false,
            is_stuck: false,
            is_busy: false,
            incoming: Incoming::default(),
            bodies: Bodies::default(),
            port_is_told: false,
            last_busy: 0,
        }
    }

    /// Both ends have said hello; whose key is greater begins. The link has to be up within `patience`.
    pub(crate) fn open(&mut self, slot: usize, to: Remote, patience: Duration) {
        self.until = self.until.min(Instant::now() + patience);
        self.is_first = self.key >= to.key;
        self.stage = Stage::Open(Outgoing::new(slot, to));
    }

    /// Sends the first message, if it is time; says whether the link has just come up.
    pub(crate) fn poll_up(&mut self, port: &mut Port) -> io::Result<bool> {
        if self.is_up || !matches!(self.stage, Stage::Open(_)) {
            return Ok(false);
        }
        let has_begun = self.incoming.has_begun();
        if !self.has_said && (self.is_first || has_begun) {
            self.has_said = true;
            self.say(port, Kind::Credit, &[])?;
        }
        self.is_up = self.has_said && has_begun && !self.is_waiting();
        Ok(self.is_up)
    }

    pub(crate) fn send_frame(
        &mut self,
        port: &mut Port,
        frame: &[IoSlice<'_>],
        len: usize,
    ) -> Result<io::Result<()>, Full> {
        let Stage::Open(outgoing) = &mut self.stage else {
            return Ok(Err(io::ErrorKind::NotConnected.into()));
        };
        // What is refused tells nothing.
        let taken = self.incoming.taken();
        let sent = outgoing.send_frame(port, taken, frame, len)?;
        self.incoming.tell();
        Ok(sent)
    }

    /// Sends a control message.
    pub(crate) fn say(&mut self, port: &mut Port, kind: Kind, payload: &[u8]) -> io::Result<()> {
        let Stage::Open(outgoing) = &mut self.stage else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        outgoing.say(port, self.incoming.tell(), kind, payload)
    }

    /// Closes the endpoint for bodies, of which none is in flight. The next will have another.
    pub(crate) fn close_port(&mut self) {
        self.bodies.close();
        self.port_is_told = false;
    }

    /// Says through which endpoint bodies for us are written, once for each.
    pub(crate) fn say_port(&mut self, port: &mut Port) -> io::Result<()> {
        if self.port_is_told {
            return Ok(());
        }
        let Some(endpoint) = self.bodies.endpoint() else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let name = endpoint.name().to_vec();
        self.port_is_told = true;
        self.say(port, Kind::Port, &name)
    }

    /// Tells the peer what was taken, if it is time.
    pub(crate) fn return_credits(&mut self, port: &mut Port) -> io::Result<()> {
        match &self.stage {
            Stage::Open(_) if self.incoming.owes_credits() => self.say(port, Kind::Credit, &[]),
            _ => Ok(()),
        }
    }

    /// Offers the provider what it did not take; says whether something is left.
    pub(crate) fn flush(&mut self, port: &mut Port) -> io::Result<bool> {
        let Stage::Open(outgoing) = &mut self.stage else {
            return Ok(false);
        };
        outgoing.flush(port)?;
        Ok(outgoing.is_stuck())
    }

    /// Takes a message that has our key.
    pub(crate) fn handle(
        &mut self,
        name_len: usize,
        header: &Header,
        payload: &[u8],
        buffer: BufferId,
    ) -> Result<Handled, &'static str> {
        self.incoming.check_serial(header)?;
        let has_room = match &mut self.stage {
            Stage::Open(outgoing) => outgoing.handle_taken(header.taken)?,
            _ if header.taken != 0 => return Err("more was taken than was sent"),
            _ => false,
        };
        let is_frame = matches!(header.kind, Kind::Frame | Kind::More);
        if !is_frame && payload.len() != header.len as usize {
            return Err("a message of another length than it says");
        }
        let fate = match header.kind {
            Kind::Credit => Fate::Free,
            Kind::Port => {
                self.bodies.handle_port(payload, name_len)?;
                Fate::Free
            }
            Kind::Grant => {
                let (body, places) = decode_grant(payload).ok_or("a place that cannot be")?;
                self.bodies.handle_grant(body, places)?;
                Fate::Free
            }
            _ => self.incoming.handle(header, payload, buffer)?,
        };
        Ok(Handled { fate, has_room })
    }

    /// Whether both ends have said hello, and none has left.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Whether it has messages that the provider did not take.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(&self.stage, Stage::Open(outgoing) if outgoing.is_stuck())
    }

    /// Whether to report that there is room.
    pub(crate) fn confirm_room(&mut self) -> bool {
        match &mut self.stage {
            Stage::Open(outgoing) => outgoing.confirm_room(),
            _ => false,
        }
    }
}
