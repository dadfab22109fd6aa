//! What is simulated: machines, and what they may do.

use std::fmt::Debug;
use std::hash::Hash;

use fastrand::Rng;
use mizzen_proto::time::Time;

use crate::ids::{ConnectionId, MachineId, Place};

/// What machines send to each other.
pub trait Payload: Debug + Hash {
    /// Its length on the wire, in bytes.
    fn wire_len(&self) -> usize;
}

impl Payload for Vec<u8> {
    fn wire_len(&self) -> usize {
        self.len()
    }
}

/// Who opened a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opened {
    /// This machine dialled.
    Here,
    /// The other one did.
    There,
}

/// One life of a process, an agent, a root: the glue between a pure machine and the simulated network.
///
/// A world with several kinds of machines has an enum of them.
pub trait Machine {
    /// What it sends.
    type Message: Payload;
    /// What it tells the oracles.
    type Note: Debug + Hash;

    /// It begins. Nothing else comes before.
    fn start(&mut self, context: &mut Context<'_, Self>);

    /// A message came.
    fn receive(
        &mut self,
        connection: ConnectionId,
        message: Self::Message,
        context: &mut Context<'_, Self>,
    );

    /// A timer rings that was set under this key.
    fn timer(&mut self, key: u64, context: &mut Context<'_, Self>);

    /// A connection was made: one that this machine dialled, or another did.
    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        opened: Opened,
        context: &mut Context<'_, Self>,
    );

    /// A connection that was made is no more. What this machine sent of late may or may not have arrived.
    fn lost(&mut self, connection: ConnectionId, context: &mut Context<'_, Self>);

    /// What was dialled did not answer: nobody listens there, or no word came back in time.
    fn refused(
        &mut self,
        connection: ConnectionId,
        to: MachineId,
        context: &mut Context<'_, Self>,
    ) {
        let _ = (connection, to, context);
    }

    /// What was dialled answers, and says that nobody listens there: proof that no life of it was there then. Without a
    /// machine that makes a difference it is like any other dial that failed.
    fn nobody_listens(
        &mut self,
        connection: ConnectionId,
        to: MachineId,
        context: &mut Context<'_, Self>,
    ) {
        self.refused(connection, to, context);
    }

    /// A machine of the same host ended, and this one had started it.
    fn child_ended(&mut self, child: Place, context: &mut Context<'_, Self>) {
        let _ = (child, context);
    }
}

/// What a machine may do while it handles something. It is done when the machine has finished with that.
#[derive(Debug)]
pub struct Context<'a, M: Machine + ?Sized> {
    pub(crate) now: Time,
    pub(crate) me: Place,
    pub(crate) rng: &'a mut Rng,
    pub(crate) next_connection: &'a mut u64,
    pub(crate) commands: &'a mut Vec<Command<M::Message, M::Note>>,
}

/// What a machine wants done.
#[derive(Debug)]
pub(crate) enum Command<P, N> {
    Dial(ConnectionId, MachineId),
    Send(ConnectionId, P),
    Close(ConnectionId),
    SetTimer(u64, Time),
    CancelTimer(u64),
    Note(N),
    Sometimes(&'static str),
    Spawn(MachineId),
    Kill(MachineId),
}

impl<M: Machine + ?Sized> Context<'_, M> {
    /// The time since this life began, by the clock of its host, which drifts.
    pub fn now(&self) -> Time {
        self.now
    }

    /// This life.
    pub fn me(&self) -> Place {
        self.me
    }

    /// For the load that a world makes, and for what a driver would draw: machines have no randomness of their own.
    pub fn rng(&mut self) -> &mut Rng {
        self.rng
    }

    /// Dials a machine, whichever life of it listens when this arrives: [`Machine::connected`] or [`Machine::refused`] follows.
    pub fn dial(&mut self, to: MachineId) -> ConnectionId {
        let connection = ConnectionId(*self.next_connection);
        *self.next_connection += 1;
        self.commands.push(Command::Dial(connection, to));
        connection
    }

    /// Sends over a connection that was made. Over one that is no more, nothing is sent, and nobody is told.
    pub fn send(&mut self, connection: ConnectionId, message: M::Message) {
        self.commands.push(Command::Send(connection, message));
    }

    /// Closes a connection. The other side gets what was sent before and is then told; this one is not.
    pub fn close(&mut self, connection: ConnectionId) {
        self.commands.push(Command::Close(connection));
    }

    /// Rings at `at` by this machine's clock, or as soon as possible after. A timer of the same key is replaced.
    pub fn set_timer(&mut self, key: u64, at: Time) {
        self.commands.push(Command::SetTimer(key, at));
    }

    /// That timer does not ring any more.
    pub fn cancel_timer(&mut self, key: u64) {
        self.commands.push(Command::CancelTimer(key));
    }

    /// Tells the oracles what an observer of this machine would see.
    pub fn note(&mut self, note: M::Note) {
        self.commands.push(Command::Note(note));
    }

    /// Says that something occurred that a campaign is worthless without.
    pub fn sometimes(&mut self, mark: &'static str) {
        self.commands.push(Command::Sometimes(mark));
    }

    /// Starts the next life of a machine of this host that does not live; its end is told by [`Machine::child_ended`].
    pub fn spawn(&mut self, machine: MachineId) {
        self.commands.push(Command::Spawn(machine));
    }

    /// Ends a machine of this host, or this one itself.
    pub fn kill(&mut self, machine: MachineId) {
        self.commands.push(Command::Kill(machine));
    }
}
