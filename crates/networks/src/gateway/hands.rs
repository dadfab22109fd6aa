//! What the thread of a gateway does in one turn: takes in what came, does what the machine says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSlice;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mizzen_driver::{Driver, DriverError, Event, PeerId, Refused};
use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{
    Action, FRAGMENT_HEADER, Fate, FragmentHeader, Gateway, Grant, Heading, LinkId, Peer,
    RelayFrame, Route, STALL, Said, Slot, WORD, Word, blocked_bytes, grant_bytes,
};
use mizzen_proto::route::{MAX_HOPS, Table};
use mizzen_proto::time::Time;

use super::options::GatewayOptions;
use super::shared::Shared;
use crate::directory::{Directory, GatewayAt, find};
use crate::peer::{Who, agent_id};
use crate::ways::Ways;

pub(super) struct Hands<'a> {
    shared: &'a Shared,
    drivers: Vec<Option<Box<dyn Driver>>>,
    networks: Vec<String>,
    state: State,
}

/// All but the drivers.
struct State {
    host: HostId,
    me: PeerId,
    start: Instant,
    ways: Ways,
    table: Table,
    directory: std::sync::Arc<Directory>,
    version: u64,
    known: BTreeMap<HostId, GatewayAt>,
    machine: Gateway,
    /// By driver and peer.
    ids: BTreeMap<(usize, PeerId), LinkId>,
    links: BTreeMap<LinkId, Link>,
    next_link: u64,
    /// Other gateways that this one dials: when, or `None` while it does.
    missing: BTreeMap<(usize, PeerId), Option<Time>>,
    buffers: BTreeMap<Slot, Vec<u8>>,
    /// Their bytes.
    buffered: u64,
    spare: Vec<Vec<u8>>,
    next_slot: u64,
    /// Headers of what is held.
    headers: BTreeMap<Slot, FragmentHeader>,
    checked: Time,
}

struct Link {
    driver: usize,
    peer: PeerId,
    is_busy: bool,
    /// What its driver had no room for.
    waiting: VecDeque<(Slot, FragmentHeader)>,
    words: BTreeMap<(ProcessId, ProcessId), Word>,
    grant: Option<Grant>,
    blocked: Option<u64>,
}

/// The fragment that has just come, where its driver has it.
struct Fresh<'b> {
    slot: Slot,
    bytes: &'b [u8],
}

impl<'a> Hands<'a> {
    pub(super) fn new(options: GatewayOptions, shared: &'a Shared) -> Self {
        let GatewayOptions {
            agent,
            ways,
            directory,
            drivers,
            memory,
        } = options;
        let (networks, drivers): (Vec<String>, Vec<_>) = drivers.into_iter().unzip();
        let table = ways.table(agent.host, |_| false, |_| false);
        let state = State {
            host: agent.host,
            me: agent_id(agent),
            start: Instant::now(),
            ways,
            table,
            directory,
            version: 0,
            known: BTreeMap::new(),
            machine: Gateway::new(memory.pool, memory.shared),
            ids: BTreeMap::new(),
            links: BTreeMap::new(),
            next_link: 0,
            missing: BTreeMap::new(),
            buffers: BTreeMap::new(),
            buffered: 0,
            spare: Vec::new(),
            next_slot: 0,
            headers: BTreeMap::new(),
            checked: Time(0),
        };
        Self {
            shared,
            drivers: drivers.into_iter().map(Some).collect(),
            networks,
            state,
        }
    }

    /// Takes in what came and hands it on. Whether something moved.
    pub(super) fn turn(&mut self) -> Result<bool, DriverError> {
        let mut moved = self.hear_news();
        for index in 0..self.drivers.len() {
            let Some(mut driver) = self.drivers[index].take() else {
                continue;
            };
            let (state, drivers) = (&mut self.state, &mut self.drivers);
            let mut strangers = Vec::new();
            let polled = driver.poll(BUDGET, &mut |event| {
                if !state.handle(index, drivers, event) {
                    strangers.push(event.peer());
                }
            });
            for stranger in strangers {
                driver.disconnect(stranger);
                self.state.handle_lost(index, stranger);
            }
            match polled {
                Ok(events) => {
                    self.drivers[index] = Some(driver);
                    moved |= events > 0;
                }
                // That network is gone, and others may go on.
                Err(error) => self.lose_network(index, error)?,
            }
            // What could not go while its driver was in use.
            self.state.act(&mut self.drivers, None);
        }
        if moved {
            self.state.flush(&mut self.drivers);
        }
        let now = self.state.now();
        if now.since(self.state.checked) >= CHECK {
            self.state.checked = now;
            self.state.machine.handle_time(now);
            self.state.act(&mut self.drivers, None);
            self.dial(now);
        }
        if moved {
            let machine = &self.state.machine;
            let sent = machine.tally().sent;
            self.shared.sent.store(sent, Ordering::Relaxed);
            let held = self.state.buffered;
            self.shared.held.fetch_max(held, Ordering::Relaxed);
        }
        Ok(moved)
    }

    /// A network cannot be used any more.
    ///
    /// # Errors
    /// It was the last one.
    fn lose_network(&mut self, index: usize, error: DriverError) -> Result<(), DriverError> {
        let of_it = self.state.ids.keys().filter(|(driver, _)| *driver == index);
        let of_it: Vec<PeerId> = of_it.map(|(_, peer)| *peer).collect();
        for peer in of_it {
            self.state.handle_lost(index, peer);
        }
        self.state.missing.retain(|(driver, _), _| *driver != index);
        match self.drivers.iter().any(Option::is_some) {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// How long it may sleep.
    pub(super) fn nap(&self) -> Duration {
        let is_busy = self.state.machine.held() > 0 || !self.state.missing.is_empty();
        if is_busy { CHECK } else { REST }
    }

    /// Other gateways have come or gone.
    fn hear_news(&mut self) -> bool {
        let state = &mut self.state;
        let Some(known) = state.directory.since(&mut state.version) else {
            return false;
        };
        let mut wanted = BTreeSet::new();
        for (index, network) in self.networks.iter().enumerate() {
            let there = known.values().filter(|one| one.at.contains_key(network));
            wanted.extend(there.map(|one| (index, agent_id(one.agent))));
        }
        let is_agent = |peer: PeerId| matches!(Who::from(peer), Who::Agent(_));
        let linked = state.ids.keys().chain(state.missing.keys());
        let gone: Vec<(usize, PeerId)> = linked
            .filter(|key| is_agent(key.1) && !wanted.contains(key))
            .copied()
            .collect();
        state.known = known;
        state.find_ways();
        for (index, peer) in gone {
            if let Some(driver) = &mut self.drivers[index] {
                driver.disconnect(peer);
            }
            state.missing.remove(&(index, peer));
            state.handle_lost(index, peer);
        }
        let now = state.now();
        // One of the two dials.
        for key in wanted.into_iter().filter(|key| key.1 < state.me) {
            if !state.ids.contains_key(&key) {
                state.missing.entry(key).or_insert(Some(now));
            }
        }
        self.dial(now);
        self.state.act(&mut self.drivers, None);
        true
    }

    fn dial(&mut self, now: Time) {
        let state = &mut self.state;
        let due = |at: &Option<Time>| at.is_some_and(|at| at <= now);
        for ((index, peer), at) in state.missing.iter_mut().filter(|(_, at)| due(at)) {
            let gateway = find(&state.known, *peer);
            let locator = gateway.and_then(|one| one.at.get(&self.networks[*index]));
            let driver = self.drivers[*index].as_mut();
            let dialled = locator
                .zip(driver)
                .is_some_and(|(locator, driver)| driver.connect(*peer, locator).is_ok());
            *at = (!dialled).then(|| now + AGAIN);
        }
    }
}

type Drivers = [Option<Box<dyn Driver>>];

impl State {
    fn now(&self) -> Time {
        Time(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn find_ways(&mut self) {
        let is_linked = |host: HostId| {
            let mut linked = self.ids.keys().map(|(_, peer)| Who::from(*peer));
            linked.any(|who| matches!(who, Who::Agent(agent) if agent.host == host))
        };
        let is_known = |host| self.known.contains_key(&host);
        self.table = self.ways.table(self.host, is_known, is_linked);
    }

    /// Something happened. `false`: that peer's link is to be ended.
    fn handle(&mut self, index: usize, drivers: &mut Drivers, event: Event<'_>) -> bool {
        let peer = event.peer();
        match event {
            Event::Connected { .. } => self.handle_connected(index, drivers, peer),
            Event::ConnectFailed { .. } => {
                let at = self.now() + AGAIN;
                if let Some(missing) = self.missing.get_mut(&(index, peer)) {
                    *missing = Some(at);
                }
                true
            }
            Event::Lost { .. } => {
                self.handle_lost(index, peer);
                self.act(drivers, None);
                true
            }
            Event::Writable { .. } => {
                if let Some(link) = self.link(index, peer) {
                    link.is_busy = false;
                }
                true
            }
            Event::Frame { bytes, .. } => {
                let Some(id) = self.ids.get(&(index, peer)).copied() else {
                    return true;
                };
                match RelayFrame::decode(bytes) {
                    Ok(RelayFrame::Grant(grant)) => {
                        let now = self.now();
                        self.machine.handle_grant(id, &grant, now);
                        self.act(drivers, None);
                        true
                    }
                    Ok(RelayFrame::Blocked(granted)) => {
                        self.machine.handle_blocked(id, granted);
                        self.act(drivers, None);
                        true
                    }
                    Ok(RelayFrame::Word(word)) => self.handle_word(id, peer, word, drivers),
                    Ok(RelayFrame::Fragment(header, _)) => {
                        self.handle_fragment(id, peer, header, bytes, drivers)
                    }
                    Err(_) => false,
                }
            }
            // Bodies are not exchanged with gateways: those of others have no place.
            _ => true,
        }
    }

    fn link(&mut self, index: usize, peer: PeerId) -> Option<&mut Link> {
        self.links.get_mut(self.ids.get(&(index, peer))?)
    }

    fn handle_connected(&mut self, index: usize, drivers: &mut Drivers, peer: PeerId) -> bool {
        let who = match Who::from(peer) {
            Who::Process(process) => Peer::End(process),
            Who::Agent(agent) => Peer::Gateway(agent.host),
        };
        let id = LinkId(self.next_link);
        self.next_link += 1;
        let now = self.now();
        if self.machine.handle_link(id, who, now).is_err() {
            if let Some(missing) = self.missing.get_mut(&(index, peer)) {
                *missing = Some(now + AGAIN);
            }
            return false;
        }
        self.missing.remove(&(index, peer));
        self.ids.insert((index, peer), id);
        let link = Link {
            driver: index,
            peer,
            is_busy: false,
            waiting: VecDeque::new(),
            words: BTreeMap::new(),
            grant: None,
            blocked: None,
        };
        self.links.insert(id, link);
        if matches!(who, Peer::Gateway(_)) {
            self.find_ways();
        }
        self.act(drivers, None);
        true
    }

    fn handle_lost(&mut self, index: usize, peer: PeerId) {
        let Some(id) = self.ids.remove(&(index, peer)) else {
            return;
        };
        self.links.remove(&id);
        if matches!(Who::from(peer), Who::Agent(_)) {
            self.find_ways();
        }
        let now = self.now();
        let (ways, table) = (&self.ways, &self.table);
        self.machine
            .handle_lost(id, now, |heading| next(ways, table, heading));
        if find(&self.known, peer).is_some() && peer < self.me {
            self.missing.insert((index, peer), Some(now + AGAIN));
        }
    }

    /// Whether who sent it may say that it is from there, after so many gateways.
    fn is_honest(peer: PeerId, from: ProcessId, hop: u8) -> bool {
        match Who::from(peer) {
            Who::Process(process) => process == from && hop == 0,
            Who::Agent(_) => hop > 0,
        }
    }

    fn handle_fragment(
        &mut self,
        id: LinkId,
        peer: PeerId,
        header: FragmentHeader,
        bytes: &[u8],
        drivers: &mut Drivers,
    ) -> bool {
        if !Self::is_honest(peer, header.route.from, header.hop) {
            return false;
        }
        let now = self.now();
        let slot = Slot(self.next_slot);
        self.next_slot += 1;
        self.headers.insert(slot, header);
        let heading = header.heading(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let (ways, table) = (&self.ways, &self.table);
        let way = |heading: &Heading| next(ways, table, heading);
        let fate = self
            .machine
            .handle_fragment(id, heading, header.lane, slot, now, way);
        self.act(drivers, Some(Fresh { slot, bytes }));
        match fate {
            Ok(Fate::Queued | Fate::TooFar) => true,
            Ok(Fate::NoWay) => {
                self.say(id, no_way(header.route, header.circuit));
                true
            }
            Err(_) => {
                self.release(slot);
                false
            }
        }
    }

    fn handle_word(&mut self, id: LinkId, peer: PeerId, word: Word, drivers: &mut Drivers) -> bool {
        // What a gateway says of a process is not from there.
        let is_gateways = word.said == Said::NoWay && matches!(Who::from(peer), Who::Agent(_));
        if !is_gateways && !Self::is_honest(peer, word.route.from, word.hop) {
            return false;
        }
        if word.hop >= MAX_HOPS {
            return true;
        }
        let heading = Heading {
            flow: word.route.flow(),
            to: word.route.to_host,
            process: word.route.to,
            hop: word.hop,
            length: 0,
        };
        let to = next(&self.ways, &self.table, &heading);
        let to = to.map(|to| match to == heading.to {
            true => Peer::End(heading.process),
            false => Peer::Gateway(to),
        });
        let out = to.and_then(|to| self.machine.link_to(to, WORD as u32));
        match out {
            Some(out) => {
                let hop = word.hop + 1;
                self.say(out, Word { hop, ..word });
                self.send(out, drivers);
            }
            // Nobody answers an answer.
            None if matches!(word.said, Said::Wanted { .. } | Said::Open { .. }) => {
                self.say(id, no_way(word.route, word.circuit));
            }
            None => {}
        }
        true
    }

    fn say(&mut self, id: LinkId, word: Word) {
        if let Some(link) = self.links.get_mut(&id) {
            let key = (word.route.from, word.route.to);
            if link.words.len() < MAX_WORDS || link.words.contains_key(&key) {
                link.words.insert(key, word);
            }
        }
    }

    /// Does what the machine wants. `fresh` is what has just come: it is still where its driver has it.
    fn act(&mut self, drivers: &mut Drivers, fresh: Option<Fresh<'_>>) {
        let mut kept = fresh.is_some();
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Send(id, heading, lane, slot) => {
                    let Some(header) = self.headers.get(&slot).copied() else {
                        continue;
                    };
                    let header = FragmentHeader {
                        hop: heading.hop,
                        lane,
                        ..header
                    };
                    let now_fresh = fresh.as_ref().filter(|fresh| fresh.slot == slot);
                    let bytes = match now_fresh {
                        Some(fresh) => Some(fresh.bytes),
                        None => self.buffers.get(&slot).map(Vec::as_slice),
                    };
                    let Some(link) = self.links.get_mut(&id) else {
                        continue;
                    };
                    let is_next = link.waiting.is_empty();
                    let is_fresh = now_fresh.is_some();
                    let driver = drivers[link.driver].as_mut();
                    let sent = match (bytes, driver) {
                        (Some(bytes), Some(driver)) if is_next && !link.is_busy => {
                            send(link, &mut **driver, &header, bytes)
                        }
                        _ => false,
                    };
                    if sent {
                        kept &= !is_fresh;
                        self.release(slot);
                        let now = self.now();
                        self.machine.handle_sent(id, slot, now);
                    } else {
                        link.waiting.push_back((slot, header));
                        // It may be sent before this function ends.
                        if let Some(fresh) = fresh.as_ref().filter(|_| is_fresh && kept) {
                            kept = false;
                            self.keep(slot, fresh.bytes);
                        }
                    }
                }
                Action::Grant(id, grant) => {
                    if let Some(link) = self.links.get_mut(&id) {
                        link.grant = Some(grant);
                    }
                    self.send(id, drivers);
                }
                Action::Blocked(id, granted) => {
                    if let Some(link) = self.links.get_mut(&id) {
                        link.blocked = Some(granted);
                    }
                    self.send(id, drivers);
                }
                Action::Free(slot) => {
                    kept &= fresh.as_ref().is_none_or(|fresh| fresh.slot != slot);
                    self.release(slot);
                }
                // Its end lost its link: what is sent to it is answered by that there is no way.
                Action::Stalled(..) => {}
                Action::Cut(id) => {
                    if let Some(link) = self.links.remove(&id) {
                        self.ids.remove(&(link.driver, link.peer));
                        if let Some(driver) = &mut drivers[link.driver] {
                            driver.disconnect(link.peer);
                        }
                    }
                }
            }
        }
        if let Some(Fresh { slot, bytes }) = fresh.filter(|_| kept) {
            if self.headers.contains_key(&slot) {
                self.keep(slot, bytes);
            }
        }
    }

    /// Copies a fragment that has to wait out of its driver's buffer.
    fn keep(&mut self, slot: Slot, bytes: &[u8]) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.buffered += buffer.len() as u64;
        self.buffers.insert(slot, buffer);
    }

    /// A slot is free.
    fn release(&mut self, slot: Slot) {
        self.headers.remove(&slot);
        if let Some(buffer) = self.buffers.remove(&slot) {
            self.buffered -= buffer.len() as u64;
            if self.spare.len() < SPARE {
                self.spare.push(buffer);
            }
        }
    }

    /// Sends what waits for any link.
    fn flush(&mut self, drivers: &mut Drivers) {
        let waits = |link: &Link| {
            !link.is_busy
                && (!link.waiting.is_empty()
                    || !link.words.is_empty()
                    || link.grant.is_some()
                    || link.blocked.is_some())
        };
        let waiting = self.links.iter().filter(|(_, link)| waits(link));
        let waiting: Vec<LinkId> = waiting.map(|(id, _)| *id).collect();
        for id in waiting {
            self.send(id, drivers);
            self.act(drivers, None);
        }
    }

    /// Sends what waits for a link: grants, then words, then fragments.
    fn send(&mut self, id: LinkId, drivers: &mut Drivers) {
        while let Some(link) = self.links.get_mut(&id).filter(|link| !link.is_busy) {
            let Some(driver) = drivers[link.driver].as_mut() else {
                return;
            };
            if let Some(grant) = link.grant {
                if put(link, &mut **driver, &[IoSlice::new(&grant_bytes(&grant))]) {
                    link.grant = None;
                }
            } else if let Some(granted) = link.blocked {
                if put(
                    link,
                    &mut **driver,
                    &[IoSlice::new(&blocked_bytes(granted))],
                ) {
                    link.blocked = None;
                }
            } else if let Some((key, word)) = link.words.first_key_value() {
                let (key, bytes) = (*key, word.to_bytes());
                if put(link, &mut **driver, &[IoSlice::new(&bytes)]) {
                    link.words.remove(&key);
                }
            } else if let Some((slot, header)) = link.waiting.pop_front() {
                let bytes = self.buffers.get(&slot);
                // Dropped since.
                let Some(bytes) = bytes else {
                    continue;
                };
                if !send(link, &mut **driver, &header, bytes) {
                    link.waiting.push_front((slot, header));
                    continue;
                }
                self.release(slot);
                let now = self.now();
                self.machine.handle_sent(id, slot, now);
            } else {
                return;
            }
        }
    }
}

/// The next host on the way.
fn next(ways: &Ways, table: &Table, heading: &Heading) -> Option<HostId> {
    Some(table.next(ways.plan(), heading.to, heading.flow.flow)?.to)
}

/// What is said to who sent something that cannot go on.
fn no_way(route: Route, circuit: u64) -> Word {
    Word {
        route: route.back(),
        hop: 0,
        circuit,
        said: Said::NoWay,
    }
}

/// Sends a fragment; `false` if there is no room.
fn send(link: &mut Link, driver: &mut dyn Driver, header: &FragmentHeader, bytes: &[u8]) -> bool {
    let header = header.to_bytes();
    let frame = [
        IoSlice::new(&header),
        IoSlice::new(&bytes[FRAGMENT_HEADER..]),
    ];
    put(link, driver, &frame)
}

/// Sends a frame; `false` if there is no room. One for a link that is lost is gone.
fn put(link: &mut Link, driver: &mut dyn Driver, frame: &[IoSlice<'_>]) -> bool {
    let sent = driver.send_frame(link.peer, frame);
    link.is_busy = matches!(sent, Err(Refused::Busy { .. }));
    !link.is_busy
}

/// Events of one network taken in one turn.
const BUDGET: usize = 64;
/// How often it is looked who takes nothing.
const CHECK: Duration = Duration::from_millis(STALL.as_millis() as u64 / 4);
/// How long it sleeps if there is nothing to look after.
const REST: Duration = Duration::from_secs(5);
/// How soon another gateway that was not reached is dialled again.
const AGAIN: Duration = Duration::from_millis(250);
/// Buffers that are kept for later.
const SPARE: usize = 64;
/// Words that wait for one link: one for each circuit.
const MAX_WORDS: usize = 65_536;
