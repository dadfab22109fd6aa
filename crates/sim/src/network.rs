//! The network: connections that keep order, delays, and ways that are cut.
//!
//! What is sent while a way is cut waits, as in TCP, and arrives when the way is whole again. If something waits longer than
//! [`Options::silence`], the connection breaks. A connection that broke loses what was under way from some point on, and each end
//! learns it in its own time.

use std::time::Duration;

use fastrand::Rng;
use mizzen_proto::time::Time;

use crate::agenda::{Agenda, Class};
use crate::connection::{Connection, End, EndState, Item, Side};
use crate::event::Event;
use crate::ids::{ConnectionId, HostId, Life, MachineId, Place};
use crate::machine::Payload;
use crate::options::Options;
use crate::terrain::Traversal;

#[derive(Debug)]
pub(crate) struct Network<P> {
    options: Options,
    ways: Traversal,
    /// Whether some messages take far longer than others.
    is_slow: bool,
    rng: Rng,
    slots: Vec<Option<Connection<P>>>,
    hosts: usize,
    cuts: Vec<Cut>,
    /// Hosts that answer for connections that they do not know.
    powered: Vec<bool>,
}

/// The two ends of a connection as they were, seen from one of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) here: End,
    pub(crate) there: End,
}

impl Ends {
    fn of<P>(connection: &Connection<P>, side: Side) -> Self {
        Self {
            here: *connection.end(side),
            there: *connection.end(side.other()),
        }
    }
}

/// How an end left its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// Its host closed them.
    Closed,
    /// Its host is without power: nobody is told.
    Silent,
}

/// The way from one host to another.
#[derive(Debug, Clone, Copy, Default)]
struct Cut {
    /// How many faults cut it at once.
    count: u32,
    since: Time,
}

impl<P: Payload> Network<P> {
    pub(crate) fn new(hosts: u32, options: Options, is_slow: bool, rng: Rng) -> Self {
        let hosts = hosts as usize;
        Self {
            ways: Traversal::new(options.terrain.clone()),
            options,
            is_slow,
            rng,
            slots: Vec::new(),
            hosts,
            cuts: vec![Cut::default(); hosts * hosts],
            powered: vec![true; hosts],
        }
    }

    // Commands of machines.

    pub(crate) fn dial(
        &mut self,
        now: Time,
        id: ConnectionId,
        from: (Place, HostId),
        to: (MachineId, HostId),
        agenda: &mut Agenda<Event>,
    ) {
        let end = |place, host| End {
            place,
            host,
            state: EndState::Opening,
        };
        let listener = Place {
            machine: to.0,
            life: UNKNOWN,
        };
        let connection = Connection::new(end(from.0, from.1), end(listener, to.1));
        let index = id.0 as usize;
        // A machine that spawns another before it dials has the lower number.
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        self.slots[index] = Some(connection);
        self.push(now, id, Side::DIALLER, Item::Open, agenda);
        let gives_up = now + self.options.dialling;
        agenda.add(gives_up, Class::Timer, Event::GiveUp(id));
    }

    /// Whether it went out; not, if the connection is no more.
    pub(crate) fn send(
        &mut self,
        now: Time,
        id: ConnectionId,
        from: Place,
        message: P,
        agenda: &mut Agenda<Event>,
    ) -> bool {
        let Some(connection) = self.get(id) else {
            return false;
        };
        match connection.side_of(from) {
            Some(side) if connection.end(side).state == EndState::Open => {
                self.push(now, id, side, Item::Message(message), agenda);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn close(
        &mut self,
        now: Time,
        id: ConnectionId,
        from: Place,
        agenda: &mut Agenda<Event>,
    ) {
        let Some(side) = self.get(id).and_then(|one| one.side_of(from)) else {
            return;
        };
        self.push(now, id, side, Item::End, agenda);
        self.leave(id, side);
    }

    /// A life is over: it leaves all its connections.
    pub(crate) fn handle_ended(
        &mut self,
        now: Time,
        place: Place,
        leaving: Leaving,
        agenda: &mut Agenda<Event>,
    ) {
        for index in 0..self.slots.len() {
            let id = ConnectionId(index as u64);
            let Some(connection) = &mut self.slots[index] else {
                continue;
            };
            let Some(side) = connection.side_of(place) else {
                continue;
            };
            let under_way = connection.way(side).queue.len();
            let kept = self.rng.usize(..=under_way);
            let way = connection.way_mut(side);
            way.queue.truncate(kept);
            let last = way.last;
            match leaving {
                Leaving::Closed => self.push(now, id, side, Item::End, agenda),
                Leaving::Silent => {
                    let learns = now + self.options.silence + self.within_learning();
                    let learns = learns.max(last);
                    agenda.add(learns, Class::News, Event::Tell(id, side.other()));
                }
            }
            self.leave(id, side);
        }
    }

    // What happens.

    /// The next thing from `side` arrives, unless the way is cut.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        id: ConnectionId,
        side: Side,
        agenda: &mut Agenda<Event>,
    ) -> Option<(Ends, Item<P>)> {
        let connection = self.get(id)?;
        let (from, to) = (connection.end(side).host, connection.end(side.other()).host);
        let (cut, back) = (self.is_cut(from, to), self.is_cut(to, from));
        if cut || back {
            // Either it does not arrive, or nobody hears that it did.
            let check = now + self.options.silence;
            agenda.add(check, Class::News, Event::Stalled(id));
        }
        let connection = self.get_mut(id)?;
        if cut {
            connection.way_mut(side).stalled += 1;
            return None;
        }
        let item = connection.way_mut(side).queue.pop_front()?;
        let was = Ends::of(connection, side.other());
        let end = connection.end_mut(side.other());
        match (&item, end.state) {
            (Item::End, EndState::Gone) => return None,
            (_, EndState::Gone) => {
                // As a host answers what nobody of it waits for.
                if self.powered[to.index()] && !self.is_cut(to, from) {
                    if let Some(delay) = self.delay(now, (to, from), 0) {
                        agenda.add(now + delay, Class::News, Event::Tell(id, side));
                    }
                }
                return None;
            }
            (Item::Opened, EndState::Opening) => end.state = EndState::Open,
            (Item::Refused | Item::End, _) => end.state = EndState::Gone,
            _ => (),
        }
        self.forget_if_over(id);
        Some((was, item))
    }

    /// Somebody listens, or nobody does.
    pub(crate) fn answer(
        &mut self,
        now: Time,
        id: ConnectionId,
        listener: Option<Place>,
        agenda: &mut Agenda<Event>,
    ) {
        let Some(connection) = self.get_mut(id) else {
            return;
        };
        let end = connection.end_mut(Side::LISTENER);
        let item = match listener {
            Some(place) => {
                (end.place, end.state) = (place, EndState::Open);
                Item::Opened
            }
            None => {
                end.state = EndState::Gone;
                Item::Refused
            }
        };
        self.push(now, id, Side::LISTENER, item, agenda);
    }

    /// A side learns that the connection broke, if it did not know.
    pub(crate) fn tell(&mut self, id: ConnectionId, side: Side) -> Option<Ends> {
        let connection = self.get_mut(id)?;
        let was = Ends::of(connection, side);
        connection.end_mut(side).state = EndState::Gone;
        self.forget_if_over(id);
        (was.here.state != EndState::Gone && was.here.place.life != UNKNOWN).then_some(was)
    }

    /// The dialler gives up, if it still waits.
    pub(crate) fn give_up(
        &mut self,
        now: Time,
        id: ConnectionId,
        agenda: &mut Agenda<Event>,
    ) -> Option<Ends> {
        let was = Ends::of(self.get(id)?, Side::DIALLER);
        if was.here.state != EndState::Opening {
            return None;
        }
        self.push(now, id, Side::DIALLER, Item::End, agenda);
        self.leave(id, Side::DIALLER);
        Some(was)
    }

    /// Whether the connection broke because something was unacknowledged for too long.
    pub(crate) fn check_stalled(
        &mut self,
        now: Time,
        id: ConnectionId,
        agenda: &mut Agenda<Event>,
    ) -> bool {
        let Some(connection) = self.get(id) else {
            return false;
        };
        let (one, two) = (
            connection.end(Side::DIALLER).host,
            connection.end(Side::LISTENER).host,
        );
        let silence = self.options.silence;
        let long = |from, to| {
            let cut = self.cuts[self.index(from, to)];
            cut.count > 0 && now.since(cut.since) >= silence
        };
        let breaks = long(one, two) || long(two, one);
        if breaks {
            self.break_connection(now, id, agenda);
        }
        breaks
    }

    /// Loses what is under way from some point on; both ends learn it, each in its own time. Returns how much was lost.
    pub(crate) fn break_connection(
        &mut self,
        now: Time,
        id: ConnectionId,
        agenda: &mut Agenda<Event>,
    ) -> usize {
        let mut lost = 0;
        for side in Side::BOTH {
            let learns = now + self.within_learning();
            let kept = self.rng.usize(..=MOST_KEPT);
            let Some(connection) = self.get_mut(id) else {
                break;
            };
            let way = connection.way_mut(side);
            lost += way.shut(kept);
            let learns = if way.stalled > 0 {
                learns
            } else {
                learns.max(way.last)
            };
            agenda.add(learns, Class::News, Event::Tell(id, side.other()));
        }
        lost
    }

    /// A host lost power, or has it again.
    pub(crate) fn set_powered(&mut self, host: HostId, is_powered: bool) {
        self.powered[host.index()] = is_powered;
    }

    /// Nothing gets from one host to the other.
    pub(crate) fn cut(&mut self, now: Time, from: HostId, to: HostId) {
        let index = self.index(from, to);
        let cut = &mut self.cuts[index];
        if cut.count == 0 {
            cut.since = now;
        }
        cut.count += 1;
    }

    /// One fault less cuts the way. Returns whether it is whole.
    pub(crate) fn heal(
        &mut self,
        now: Time,
        from: HostId,
        to: HostId,
        agenda: &mut Agenda<Event>,
    ) -> bool {
        let index = self.index(from, to);
        let cut = &mut self.cuts[index];
        cut.count = cut.count.saturating_sub(1);
        if cut.count > 0 {
            return false;
        }
        for index in 0..self.slots.len() {
            let id = ConnectionId(index as u64);
            for side in Side::BOTH {
                let Some(connection) = &mut self.slots[index] else {
                    continue;
                };
                let hosts = (connection.end(side).host, connection.end(side.other()).host);
                if hosts != (from, to) {
                    continue;
                }
                let stalled = std::mem::take(&mut connection.way_mut(side).stalled);
                for _ in 0..stalled {
                    self.schedule(now, id, side, 0, agenda);
                }
            }
        }
        true
    }

    // Getters.

    /// The end of `side`.
    pub(crate) fn end(&self, id: ConnectionId, side: Side) -> Option<&End> {
        Some(self.get(id)?.end(side))
    }

    /// One of the connections between hosts, by chance.
    pub(crate) fn any_between_hosts(&mut self) -> Option<ConnectionId> {
        let between = |(index, slot): (usize, &Option<Connection<P>>)| {
            let connection = slot.as_ref()?;
            let (one, two) = (
                connection.end(Side::DIALLER).host,
                connection.end(Side::LISTENER).host,
            );
            (one != two).then_some(ConnectionId(index as u64))
        };
        let all: Vec<_> = self.slots.iter().enumerate().filter_map(between).collect();
        self.rng.choice(all)
    }

    // Private.

    fn get(&self, id: ConnectionId) -> Option<&Connection<P>> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection<P>> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    fn push(
        &mut self,
        now: Time,
        id: ConnectionId,
        side: Side,
        item: Item<P>,
        agenda: &mut Agenda<Event>,
    ) {
        let Some(connection) = self.get_mut(id) else {
            return;
        };
        let way = connection.way_mut(side);
        if way.is_shut {
            return;
        }
        let length = match &item {
            Item::Message(message) => message.wire_len(),
            _ => 0,
        };
        way.queue.push_back(item);
        self.schedule(now, id, side, length, agenda);
    }

    /// One more thing of that way arrives, after those before it; never, if there is no way.
    fn schedule(
        &mut self,
        now: Time,
        id: ConnectionId,
        side: Side,
        length: usize,
        agenda: &mut Agenda<Event>,
    ) {
        let Some(connection) = self.get(id) else {
            return;
        };
        let ends = (connection.end(side).host, connection.end(side.other()).host);
        let Some(delay) = self.delay(now, ends, length) else {
            return;
        };
        let Some(connection) = self.get_mut(id) else {
            return;
        };
        let way = connection.way_mut(side);
        way.last = way.last.max(now + delay);
        let arrives = way.last;
        agenda.add(arrives, Class::News, Event::Arrive(id, side));
    }

    /// How long something of that length takes from one host to the other. None, if there is no way.
    fn delay(&mut self, now: Time, ends: (HostId, HostId), length: usize) -> Option<Duration> {
        if ends.0 == ends.1 {
            return Some(Duration::from_nanos(self.rng.u64(1_000..20_000)));
        }
        let far_longer = self.is_slow && self.rng.u32(..SLOW_ONE_IN) == 0;
        let factor = if far_longer {
            self.rng.u64(1..=SLOW_FACTOR)
        } else {
            1
        };
        let delay = if self.ways.is_flat() {
            let (low, high) = (self.options.delay.start(), self.options.delay.end());
            let (low, high) = (low.as_nanos() as u64, high.as_nanos() as u64);
            Duration::from_nanos(self.rng.u64(low..=high))
        } else {
            self.ways.takes(now, ends, length, &mut self.rng)?
        };
        Some(delay * factor as u32)
    }

    fn within_learning(&mut self) -> Duration {
        let most = self.options.learning.as_nanos() as u64;
        // Most learn it soon.
        let most = most >> self.rng.u32(..12);
        Duration::from_nanos(self.rng.u64(..=most))
    }

    /// That side has left: it hears nothing more, and says nothing more.
    fn leave(&mut self, id: ConnectionId, side: Side) {
        let Some(connection) = self.get_mut(id) else {
            return;
        };
        connection.way_mut(side).is_shut = true;
        connection.way_mut(side.other()).shut(0);
        connection.end_mut(side).state = EndState::Gone;
        self.forget_if_over(id);
    }

    fn forget_if_over(&mut self, id: ConnectionId) {
        if self.get(id).is_some_and(Connection::is_over) {
            self.slots[id.0 as usize] = None;
        }
    }

    fn is_cut(&self, from: HostId, to: HostId) -> bool {
        self.cuts[self.index(from, to)].count > 0
    }

    fn index(&self, from: HostId, to: HostId) -> usize {
        from.index() * self.hosts + to.index()
    }
}

/// The life of a listener that has not heard of the dialler.
const UNKNOWN: Life = Life(u32::MAX);
/// Of what is under way when a connection breaks, at most this many arrive.
const MOST_KEPT: usize = 8;
/// On a slow network, one message in so many takes longer …
const SLOW_ONE_IN: u32 = 50;
/// … by up to this factor.
const SLOW_FACTOR: u64 = 400;
