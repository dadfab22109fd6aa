//! The circuits with other processes: what comes and goes on each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{ErrorKind, IoSlice};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mizzen_driver::{BodyId, ConnectFailure, Event, Gather, LossReason, PeerId, Scatter};
use mizzen_identity::{SEAL, SealError};
use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{
    Broken, COVER, Circuit, Contents, Cover, FRAGMENT_HEADER, FRAME_HEADER, FragmentHeader,
    PieceHeader, Progress, REMIND, Route, Said, Turn, Word,
};
use mizzen_proto::route::FRAGMENT;
use mizzen_proto::time::Time;

use super::dial::{Dial, PATIENCE};
use super::guard::{Guard, Sealing, Uncovered};
use super::linked::{Linked, Next};
use super::links::{Inner, Links, Sent, Via};
use super::report::{Kept, Report, What};
use crate::peer::{Who, process_id};

pub(super) struct Circuits {
    me: ProcessId,
    host: HostId,
    start: Instant,
    pub(super) links: Links,
    peers: BTreeMap<PeerId, Peer>,
    /// The latest circuit that each has dialled.
    seen: BTreeMap<PeerId, u64>,
    /// What is to be reported, in order.
    events: VecDeque<Kept>,
    /// Those who have something to send.
    turns: VecDeque<PeerId>,
    /// Those who may have something to tell their other end.
    touched: BTreeSet<PeerId>,
    /// What is to be said that is no circuit's of ours.
    replies: VecDeque<Word>,
    serial: u64,
    look_at: Option<Time>,
    sealing: Option<Sealing>,
    /// Where fragments are opened.
    room: Vec<u8>,
}

enum Peer {
    Dialling(Dial),
    Linked(Box<Linked>),
}

impl Circuits {
    pub(super) fn new(me: ProcessId, host: HostId, links: Links, sealing: Option<Sealing>) -> Self {
        // A later life of this process must have greater numbers: the clock sees to that.
        let age = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            me,
            host,
            start: Instant::now(),
            links,
            peers: BTreeMap::new(),
            seen: BTreeMap::new(),
            events: VecDeque::new(),
            turns: VecDeque::new(),
            touched: BTreeSet::new(),
            replies: VecDeque::new(),
            serial: age.map_or(0, |age| age.as_nanos() as u64),
            look_at: None,
            sealing,
            room: Vec::new(),
        }
    }

    pub(super) fn me(&self) -> ProcessId {
        self.me
    }

    pub(super) fn now(&self) -> Time {
        Time(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    // What the caller wants.

    /// Whether there is a link, an attempt, or something unreported.
    pub(super) fn is_known(&self, peer: PeerId) -> bool {
        let is_known = match self.peers.get(&peer) {
            Some(Peer::Linked(link)) => !link.guard.is_shaking() || link.dial.is_some(),
            Some(Peer::Dialling(_)) => true,
            None => false,
        };
        is_known || self.events.iter().any(|kept| kept.peer == peer)
    }

    pub(super) fn connect(&mut self, peer: PeerId, host: HostId) {
        self.serial += 1;
        let now = self.now();
        let dial = Dial::new(host, self.serial, now);
        if let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) {
            // It may become what is wanted; if not, it is dialled.
            link.dial = Some(dial);
            return;
        }
        self.peers.insert(peer, Peer::Dialling(dial));
        self.look_at = Some(now);
    }

    pub(super) fn disconnect(&mut self, peer: PeerId) {
        let known = match self.peers.remove(&peer) {
            Some(Peer::Linked(link)) => Some((link.host, link.circuit)),
            Some(Peer::Dialling(dial)) => Some((dial.host, dial.circuit)),
            None => None,
        };
        if let Some((host, circuit)) = known {
            self.reply(peer, host, circuit, Said::Closed);
        }
        self.events.retain(|kept| kept.peer != peer);
    }

    /// Says to all that they are left.
    pub(super) fn leave(&mut self, inner: &mut [Inner]) {
        let all: Vec<PeerId> = self.peers.keys().copied().collect();
        all.into_iter().for_each(|peer| self.disconnect(peer));
        self.say_replies(inner);
    }

    /// The link to a peer, if the caller knows of it.
    pub(super) fn link(&mut self, peer: PeerId) -> Option<&mut Linked> {
        match self.peers.get_mut(&peer) {
            Some(Peer::Linked(link)) if link.is_reported => Some(link),
            _ => None,
        }
    }

    /// How a user is told that a link goes.
    pub(super) fn describe(&self, peer: PeerId) -> Option<String> {
        let Some(Peer::Linked(link)) = self.peers.get(&peer) else {
            return None;
        };
        let HostId(host) = self.links.host(link.via)?;
        let sealed = match link.guard {
            Guard::Sealed { .. } => "sealed end to end, ",
            Guard::None | Guard::Shaking(_) => "",
        };
        Some(format!("{sealed}through the gateway on host {host}"))
    }

    /// Sends a frame, or keeps it; `false` if there is no room.
    pub(super) fn send_frame(
        &mut self,
        inner: &mut [Inner],
        peer: PeerId,
        frame: &[IoSlice<'_>],
    ) -> bool {
        let now = self.now();
        let route = self.route(peer);
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return false;
        };
        let length = frame.iter().map(|slice| slice.len()).sum::<usize>() + FRAME_HEADER.len();
        if link.is_clear() {
            let contents = || frame.iter().map(|slice| IoSlice::new(slice));
            let contents = [IoSlice::new(&FRAME_HEADER)].into_iter().chain(contents());
            if link.send(&mut self.links, inner, route, length, contents, now) == Sent::Yes {
                if link.has_covered() {
                    self.take_turn(peer);
                }
                self.look_by(now + REMIND);
                return true;
            }
        }
        let is_kept = link.keep_frame(frame, length);
        self.take_turn(peer);
        is_kept
    }

    pub(super) fn send_body(&mut self, peer: PeerId, body: BodyId, source: Gather) {
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return;
        };
        link.send_body(body, source);
        self.take_turn(peer);
    }

    pub(super) fn recv_body(&mut self, peer: PeerId, body: BodyId, place: Scatter) {
        if let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) {
            link.recv_body(body, place);
        }
    }

    /// Breaks a link underneath.
    pub(super) fn sever(&mut self, peer: PeerId) {
        if let Some(Peer::Linked(link)) = self.peers.get(&peer) {
            let (host, circuit) = (link.host, link.circuit);
            self.reply(peer, host, circuit, Said::Closed);
            self.lose(peer, LossReason::Broken(ErrorKind::ConnectionReset));
        }
    }

    // What happens.

    /// A link with a gateway is no more: what went over it may be lost.
    pub(super) fn handle_lost_gateway(&mut self, via: Via) {
        let over_it = |peer: &&Peer| matches!(peer, Peer::Linked(link) if link.via == via);
        let lost = self.peers.iter().filter(|(_, peer)| over_it(peer));
        let lost: Vec<PeerId> = lost.map(|(id, _)| *id).collect();
        lost.into_iter().for_each(|peer| self.sever(peer));
        self.look_at = Some(Time(0));
    }

    /// Another link may be better: who is dialled is asked at once.
    pub(super) fn handle_new_gateway(&mut self) {
        for peer in self.peers.values_mut() {
            if let Peer::Dialling(dial) = peer {
                dial.again = Time(0);
            }
        }
        self.look_at = Some(Time(0));
    }

    /// Whether something is for this process.
    fn is_for_us(&self, route: &Route) -> bool {
        route.to == self.me && route.to_host == self.host && route.from != self.me
    }

    pub(super) fn handle_word(&mut self, via: Via, word: Word) {
        if word.route.to == self.me && word.route.to_host != self.host {
            // We are not where it looks for us.
            let (peer, host) = (process_id(word.route.from), word.route.from_host);
            return match word.said {
                Said::Wanted { .. } | Said::Open { .. } => {
                    self.reply(peer, host, word.circuit, Said::Closed);
                }
                Said::Closed | Said::NoWay => {}
            };
        }
        if !self.is_for_us(&word.route) {
            return;
        }
        let now = self.now();
        let peer = process_id(word.route.from);
        let (host, circuit) = (word.route.from_host, word.circuit);
        match (word.said, self.peers.get_mut(&peer)) {
            (Said::Open { dialled, progress }, Some(Peer::Linked(link)))
                if link.circuit == circuit && link.line.dialled() != dialled =>
            {
                link.line.handle_progress(progress, now);
                if link.line.wants_to_grow() && !link.guard.is_shaking() {
                    self.grow(peer);
                }
                self.touch(peer);
                self.look_by(now + REMIND);
            }
            (
                Said::Open {
                    dialled: false,
                    progress,
                },
                Some(Peer::Dialling(dial)),
            ) if dial.circuit == circuit && dial.host == host => {
                self.open(peer, host, circuit, true, via, Some(progress));
            }
            // It was given up, or its other end was an earlier life of this process.
            (Said::Open { .. }, _) => self.reply(peer, host, circuit, Said::Closed),
            // Asked for twice.
            (Said::Wanted { granted }, Some(Peer::Linked(link)))
                if link.circuit == circuit && !link.line.dialled() =>
            {
                let progress = Progress::of_wanted(granted);
                link.line.handle_progress(progress, now);
                self.touch(peer);
                self.look_by(now + REMIND);
            }
            // Of two who dial each other the lesser wins, unless it gives way.
            (Said::Wanted { .. }, Some(Peer::Dialling(dial)))
                if process_id(self.me) < peer && !dial.gives_way(now) => {}
            (Said::Wanted { .. }, Some(Peer::Linked(link)))
                if process_id(self.me) < peer && link.guard.is_shaking() && link.line.dialled() => {
            }
            (Said::Wanted { granted }, _) => {
                let progress = Progress::of_wanted(granted);
                self.accept(via, &word.route, circuit, progress);
            }
            (Said::Closed, Some(Peer::Linked(link))) if link.circuit == circuit => {
                self.lose(peer, LossReason::Closed);
            }
            // The gateways on the way may not have heard yet that its other end is there again; if there is none, the next word
            // is answered in the same way.
            (Said::NoWay, Some(Peer::Linked(link)))
                if link.circuit == circuit && now.since(link.since) < YOUNG => {}
            (Said::NoWay, Some(Peer::Linked(link))) if link.circuit == circuit => {
                self.lose(peer, LossReason::Broken(ErrorKind::HostUnreachable));
            }
            (Said::Closed, Some(Peer::Dialling(dial))) if dial.circuit == circuit => {
                self.fail(peer, ConnectFailure::Rejected);
            }
            (Said::NoWay, Some(Peer::Dialling(dial))) if dial.circuit == circuit => {
                dial.handle_no_way();
            }
            (Said::Closed | Said::NoWay, _) => {}
        }
    }

    /// A process dials us. With seals, nothing is proved yet.
    fn accept(&mut self, via: Via, route: &Route, circuit: u64, progress: Progress) {
        let (peer, host) = (process_id(route.from), route.from_host);
        let (is_linked, newest) = match self.peers.get(&peer) {
            // What was not proved says little, but is as good as what was not proved either.
            Some(Peer::Linked(link)) if link.guard.is_shaking() && !link.line.dialled() => {
                (true, link.circuit)
            }
            Some(Peer::Linked(_)) => (true, 0),
            _ => (false, 0),
        };
        let is_old = self.seen.get(&peer).is_some_and(|seen| *seen >= circuit);
        if is_old || newest >= circuit {
            return self.reply(peer, host, circuit, Said::Closed);
        }
        if self.unproved() >= MOST_UNPROVED {
            // Whoever means it says it again.
            return;
        }
        if is_linked {
            self.lose(peer, LossReason::Replaced);
        }
        self.open(peer, host, circuit, false, via, Some(progress));
    }

    pub(super) fn handle_fragment(
        &mut self,
        via: Via,
        header: &FragmentHeader,
        contents: &[u8],
        report: &mut Report<'_>,
    ) {
        if !self.is_for_us(&header.route) {
            return;
        }
        let now = self.now();
        let peer = process_id(header.route.from);
        let (host, circuit) = (header.route.from_host, header.circuit);
        if matches!(self.peers.get(&peer), Some(Peer::Dialling(dial)) if dial.circuit == circuit && dial.host == host)
        {
            // It came before the word that says so.
            self.open(peer, host, circuit, true, via, None);
        }
        let link = match self.peers.get_mut(&peer) {
            Some(Peer::Linked(link)) if link.circuit == circuit => link,
            _ => return self.reply(peer, host, circuit, Said::Closed),
        };
        let is_past = header.number < link.line.next();
        if link.early.contains_key(&header.number) || is_past && link.guard.is_any() {
            return;
        }
        let dialled = link.line.dialled();
        let mut room = std::mem::take(&mut self.room);
        match link.guard.uncover(header, contents, dialled, &mut room) {
            Uncovered::Taken(contents) => {
                self.take_fragment(peer, header.number, contents, now, report);
            }
            Uncovered::Left => {}
            Uncovered::Worn => self.overdraw(peer),
        }
        self.room = room;
    }

    /// Takes what is from the other end.
    fn take_fragment(
        &mut self,
        peer: PeerId,
        number: u64,
        contents: &[u8],
        now: Time,
        report: &mut Report<'_>,
    ) {
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return;
        };
        let length = contents.len() + FRAGMENT_HEADER;
        match link.line.handle_fragment(number, length, now) {
            Err(_) => return self.overdraw(peer),
            Ok(Turn::Past) => return,
            Ok(Turn::Later) => {
                link.early.insert(number, contents.to_vec());
                return self.look_by(now + REMIND);
            }
            Ok(Turn::Now) => {}
        }
        self.deliver(peer, contents, report);
        // What came early may follow.
        loop {
            let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
                return;
            };
            let Some(next) = link.early.remove(&link.line.next()) else {
                if link.early.is_empty() {
                    link.line.handle_caught_up();
                }
                break;
            };
            link.line.advance(now);
            self.deliver(peer, &next, report);
        }
        self.touch(peer);
    }

    /// A fragment's turn has come.
    fn deliver(&mut self, peer: PeerId, contents: &[u8], report: &mut Report<'_>) {
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return;
        };
        let length = contents.len() + FRAGMENT_HEADER;
        if link.guard.is_shaking() {
            link.line.free(length);
            return match Cover::decode(contents) {
                Some(Cover::Flight(flight)) => self.take_flight(peer, flight),
                _ => self.refuse(peer),
            };
        }
        match Contents::decode(contents) {
            None => self.violate(peer, "what came is neither a frame nor a piece of a body"),
            Some(Contents::Frame(bytes)) if self.events.is_empty() && report.left > 0 => {
                link.line.free(length);
                report.left -= 1;
                (report.sink)(Event::Frame { peer, bytes });
            }
            Some(Contents::Frame(bytes)) => {
                let what = What::Frame(bytes.to_vec());
                let circuit = link.circuit;
                self.events.push_back(Kept {
                    peer,
                    circuit,
                    what,
                });
            }
            Some(Contents::Piece(piece, bytes)) => {
                link.line.free(length);
                self.take_piece(peer, piece, bytes);
            }
        }
    }

    /// The other end proves who it is.
    fn take_flight(&mut self, peer: PeerId, flight: &[u8]) {
        let now = self.now();
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return;
        };
        match link.guard.take_flight(flight, self.sealing.as_ref(), now) {
            // Who is there has proved to be another, or to mean something else.
            Err(SealError::Other { .. } | SealError::Purpose) => {
                return self.violate(peer, UNPROVED);
            }
            // That may be a gateway's doing; another may lead to who was meant.
            Err(_) => return self.refuse(peer),
            Ok(answer) => link.flight = answer,
        }
        if !link.guard.is_shaking() {
            self.announce(peer);
        }
        self.take_turn(peer);
    }

    /// The caller is to know of a link.
    fn announce(&mut self, peer: PeerId) {
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return;
        };
        link.dial = None;
        let (dialled, circuit) = (link.line.dialled(), link.circuit);
        if !dialled {
            self.seen.insert(peer, circuit);
        }
        let what = What::Connected { dialled };
        self.events.push_back(Kept {
            peer,
            circuit,
            what,
        });
    }

    fn take_piece(&mut self, peer: PeerId, piece: PieceHeader, bytes: &[u8]) {
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return;
        };
        let circuit = link.circuit;
        match link.take_piece(piece, bytes) {
            Err(what) => self.violate(peer, what),
            Ok(None) => {}
            Ok(Some(body)) => {
                let what = What::Event(Event::BodyReceived { peer, body });
                self.events.push_back(Kept {
                    peer,
                    circuit,
                    what,
                });
            }
        }
    }

    // What is to be done.

    /// Looks at what time has done, says what is to be said, and sends what can be sent. `true` if there is more.
    ///
    /// Whether a circuit has come to its end is judged only if all that has arrived was taken in before.
    pub(super) fn pump(&mut self, inner: &mut [Inner], has_all: bool) -> bool {
        let now = self.now();
        self.links.dial(inner, now);
        if self.look_at.is_some_and(|at| at <= now) {
            self.look(inner, now, has_all);
        }
        while let Some(peer) = self.touched.pop_first() {
            self.tell(inner, peer, now);
        }
        self.say_replies(inner);
        self.send(inner, now)
    }

    /// When to pump again although nothing comes.
    pub(super) fn next_look(&self) -> Option<Time> {
        self.look_at.into_iter().chain(self.links.next_dial()).min()
    }

    fn look(&mut self, inner: &mut [Inner], now: Time, has_all: bool) {
        let all: Vec<PeerId> = self.peers.keys().copied().collect();
        let mut next: Option<Time> = None;
        self.look_at = None;
        for peer in all {
            let at = match self.peers.get_mut(&peer) {
                Some(Peer::Dialling(_)) => self.dial(inner, peer, now, has_all),
                Some(Peer::Linked(link)) => match link.broken(now, PATIENCE).filter(|_| has_all) {
                    Some(broken) => {
                        let (host, circuit) = (link.host, link.circuit);
                        let refused = link.guard.refused();
                        self.reply(peer, host, circuit, Said::Closed);
                        self.lose(
                            peer,
                            match broken {
                                // What is missing came, and was not what had been sent.
                                Broken::Missing if refused > 0 => {
                                    LossReason::Broken(ErrorKind::InvalidData)
                                }
                                Broken::Missing => LossReason::Broken(ErrorKind::ConnectionAborted),
                                Broken::Silent => LossReason::Silent,
                            },
                        );
                        None
                    }
                    None => {
                        let at = link.line.next_look(now);
                        link.guard.handle_time(now);
                        self.touched.insert(peer);
                        Some(at)
                    }
                },
                None => None,
            };
            next = next.into_iter().chain(at).min();
        }
        // What came to nothing may be tried again before.
        self.look_at = self.look_at.into_iter().chain(next).min();
    }

    /// Asks a process for a circuit once more, or gives up.
    fn dial(
        &mut self,
        inner: &mut [Inner],
        peer: PeerId,
        now: Time,
        has_all: bool,
    ) -> Option<Time> {
        let route = self.route(peer)?;
        let Some(Peer::Dialling(dial)) = self.peers.get_mut(&peer) else {
            return None;
        };
        if let Some(reason) = dial.failure(now) {
            // The answer may be among what has not been taken in.
            if !has_all {
                return Some(now);
            }
            self.fail(peer, reason);
            return None;
        }
        if dial.again <= now {
            // What leads nowhere is not tried twice in a row.
            let tries = dial.tries;
            dial.ask(now);
            let word = Word {
                route,
                hop: 0,
                circuit: dial.circuit,
                said: Said::Wanted { granted: WINDOW },
            };
            let again = dial.again;
            let flow = word.route.flow().flow.wrapping_add(tries);
            let via = self.links.choose(route.to_host, flow);
            self.links.say(inner, via, word);
            return Some(again);
        }
        Some(dial.again)
    }

    /// Tells the other end how far we are, if it is to know.
    fn tell(&mut self, inner: &mut [Inner], peer: PeerId, now: Time) {
        let Some(route) = self.route(peer) else {
            return;
        };
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return;
        };
        let Some(progress) = link.line.poll_progress(now) else {
            return;
        };
        let said = Said::Open {
            dialled: link.line.dialled(),
            progress,
        };
        let word = Word {
            route,
            hop: 0,
            circuit: link.circuit,
            said,
        };
        self.links.say(inner, Some(link.via), word);
    }

    fn say_replies(&mut self, inner: &mut [Inner]) {
        while let Some(word) = self.replies.pop_front() {
            self.links.say(inner, None, word);
        }
    }

    /// Sends what can be sent, in turn. `true` if only the time for it ran out.
    fn send(&mut self, inner: &mut [Inner], now: Time) -> bool {
        let (mut stuck, mut sent) = (0, 0);
        while sent < SENDS {
            let Some(peer) = self.turns.pop_front() else {
                return false;
            };
            match self.send_one(inner, peer, now) {
                None => continue,
                Some(Sent::Yes) => (stuck, sent) = (0, sent + 1),
                Some(Sent::No) => stuck += 1,
            }
            self.turns.push_back(peer);
            if stuck >= self.turns.len() {
                return false;
            }
        }
        !self.turns.is_empty()
    }

    /// Sends the next of what a circuit has to send. None, if there is nothing.
    fn send_one(&mut self, inner: &mut [Inner], peer: PeerId, now: Time) -> Option<Sent> {
        let route = self.route(peer);
        let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) else {
            return None;
        };
        let sent = link.send_next(&mut self.links, inner, route, now);
        let circuit = link.circuit;
        let mut keep = |what| {
            self.events.push_back(Kept {
                peer,
                circuit,
                what,
            })
        };
        match sent {
            Next::Nothing => {
                link.has_turn = false;
                return None;
            }
            Next::Stuck => {
                if std::mem::take(&mut link.wants_word) {
                    self.touch(peer);
                }
                return Some(Sent::No);
            }
            Next::Other => {}
            Next::Frame => {
                if link.queue.is_empty() && link.wants_room {
                    link.wants_room = false;
                    keep(What::Event(Event::Writable { peer }));
                }
            }
            Next::Piece(Some(body)) => keep(What::Event(Event::BodySent { peer, body })),
            Next::Piece(None) => {}
        }
        self.look_by(now + REMIND);
        Some(Sent::Yes)
    }

    /// Reports what waits to be reported.
    pub(super) fn report(&mut self, report: &mut Report<'_>) {
        while report.left > 0 {
            let Some(Kept {
                peer,
                circuit,
                what,
            }) = self.events.pop_front()
            else {
                return;
            };
            let link = match self.peers.get_mut(&peer) {
                Some(Peer::Linked(link)) if link.circuit == circuit => Some(link),
                _ => None,
            };
            match (what, link) {
                (What::Connected { dialled }, link) => {
                    if let Some(link) = link {
                        link.is_reported = true;
                    }
                    (report.sink)(Event::Connected { peer, dialled });
                }
                (What::Frame(bytes), link) => {
                    if let Some(link) = link {
                        link.line
                            .free(bytes.len() + FRAME_HEADER.len() + FRAGMENT_HEADER);
                        self.touched.insert(peer);
                    }
                    let bytes = &bytes;
                    (report.sink)(Event::Frame { peer, bytes });
                }
                (What::Event(event), link) => {
                    if let Some(link) = link {
                        match event {
                            // Frames sent since it was kept may have taken the room.
                            Event::Writable { .. } if !link.has_room() => {
                                link.wants_room = true;
                                continue;
                            }
                            Event::BodySent { body, .. } => drop(link.sending.remove(&body)),
                            Event::BodyReceived { body, .. } => drop(link.receiving.remove(&body)),
                            _ => {}
                        }
                    }
                    (report.sink)(event);
                }
            }
            report.left -= 1;
        }
    }

    /// How many events wait to be reported.
    pub(super) fn backlog(&self) -> usize {
        self.events.len()
    }

    /// Whether something waits to be reported.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty() || !self.touched.is_empty() || !self.replies.is_empty()
    }

    // Private.

    fn route(&self, peer: PeerId) -> Option<Route> {
        let to_host = match self.peers.get(&peer)? {
            Peer::Dialling(dial) => dial.host,
            Peer::Linked(link) => link.host,
        };
        self.route_to(peer, to_host)
    }

    fn route_to(&self, peer: PeerId, to_host: HostId) -> Option<Route> {
        let Who::Process(to) = Who::from(peer) else {
            return None;
        };
        Some(Route {
            to_host,
            to,
            from_host: self.host,
            from: self.me,
        })
    }

    /// Gives a circuit over a long way a larger window, if there is memory for it.
    fn grow(&mut self, peer: PeerId) {
        let linked = self.peers.values().filter_map(|peer| match peer {
            Peer::Linked(link) => Some(link.line.more()),
            Peer::Dialling(_) => None,
        });
        let free = WINDOWS.saturating_sub(linked.sum());
        if let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) {
            link.line.grow(free);
        }
    }

    /// A circuit is there.
    fn open(
        &mut self,
        peer: PeerId,
        host: HostId,
        circuit: u64,
        dialled: bool,
        via: Via,
        progress: Option<Progress>,
    ) {
        let now = self.now();
        let mut line = Circuit::new(dialled, WINDOW, now);
        if let Some(progress) = progress {
            line.handle_progress(progress, now);
        }
        let mut link = Linked::new(host, circuit, line, via, now);
        if let Some(Peer::Dialling(dial)) = self.peers.remove(&peer) {
            link.dial = Some(dial);
        }
        let Some(route) = self.route_to(peer, host) else {
            return;
        };
        match Guard::new(self.sealing.as_ref(), dialled, route, circuit) {
            Ok((guard, flight)) => (link.guard, link.flight) = (guard, flight),
            Err(_) => {
                self.reply(peer, host, circuit, Said::Closed);
                return self.give_up(peer, link, LossReason::Broken(ErrorKind::Other));
            }
        }
        let (is_shaking, has_flight) = (link.guard.is_shaking(), link.flight.is_some());
        self.peers.insert(peer, Peer::Linked(Box::new(link)));
        if !is_shaking {
            self.announce(peer);
        } else if has_flight {
            self.take_turn(peer);
        }
        self.touch(peer);
        self.look_at = Some(now);
    }

    /// Looks at all by this time.
    fn look_by(&mut self, by: Time) {
        self.look_at = self.look_at.into_iter().chain([by]).min();
    }

    fn touch(&mut self, peer: PeerId) {
        self.touched.insert(peer);
    }

    fn take_turn(&mut self, peer: PeerId) {
        if let Some(Peer::Linked(link)) = self.peers.get_mut(&peer) {
            if !std::mem::replace(&mut link.has_turn, true) {
                self.turns.push_back(peer);
            }
        }
    }

    fn reply(&mut self, peer: PeerId, host: HostId, circuit: u64, said: Said) {
        let route = self.route_to(peer, host);
        self.replies.extend(route.map(|route| Word {
            route,
            hop: 0,
            circuit,
            said,
        }));
    }

    /// More came than was granted. What grants say is not sealed: it need not be the other end that did it.
    fn overdraw(&mut self, peer: PeerId) {
        match self.peers.get(&peer) {
            Some(Peer::Linked(link)) if link.guard.is_any() => self.refuse(peer),
            _ => self.violate(peer, "it sent more than it was granted"),
        }
    }

    /// Ends a circuit on which came what the other end need not have sent.
    fn refuse(&mut self, peer: PeerId) {
        if let Some(Peer::Linked(link)) = self.peers.get(&peer) {
            let (host, circuit) = (link.host, link.circuit);
            self.reply(peer, host, circuit, Said::Closed);
        }
        self.lose(peer, LossReason::Broken(ErrorKind::InvalidData));
    }

    /// How many circuits others have begun and not proved yet who they are.
    fn unproved(&self) -> usize {
        let is_unproved = |peer: &&Peer| matches!(peer, Peer::Linked(link) if link.guard.is_shaking() && !link.line.dialled());
        self.peers.values().filter(is_unproved).count()
    }

    fn violate(&mut self, peer: PeerId, what: &'static str) {
        if let Some(Peer::Linked(link)) = self.peers.get(&peer) {
            let (host, circuit) = (link.host, link.circuit);
            self.reply(peer, host, circuit, Said::Closed);
        }
        self.lose(peer, LossReason::Violation(what));
    }

    fn fail(&mut self, peer: PeerId, reason: ConnectFailure) {
        if let Some(Peer::Dialling(dial)) = self.peers.remove(&peer) {
            let circuit = dial.circuit;
            let what = What::Event(Event::ConnectFailed { peer, reason });
            self.events.push_back(Kept {
                peer,
                circuit,
                what,
            });
        }
    }

    /// A link comes to nothing of which the caller does not know. If it wants one, there is another attempt, unless who answered is not who was meant.
    fn give_up(&mut self, peer: PeerId, link: Linked, reason: LossReason) {
        let Some(dial) = link.dial else {
            return;
        };
        let is_another = matches!(reason, LossReason::Violation(_)) && link.line.dialled();
        self.serial += 1;
        let mut dial = dial.anew(self.serial, self.now());
        dial.is_refused |= reason == LossReason::Broken(ErrorKind::InvalidData);
        self.look_by(dial.again);
        self.peers.insert(peer, Peer::Dialling(dial));
        if is_another {
            self.fail(peer, ConnectFailure::Rejected);
        }
    }

    /// The end of a link: of its bodies first.
    fn lose(&mut self, peer: PeerId, reason: LossReason) {
        let Some(Peer::Linked(link)) = self.peers.remove(&peer) else {
            return;
        };
        if link.guard.is_shaking() {
            return self.give_up(peer, *link, reason);
        }
        let circuit = link.circuit;
        let bodies = link.end(peer).into_iter();
        let all = bodies.chain([Event::Lost { peer, reason }]);
        self.events.extend(all.map(|event| Kept {
            peer,
            circuit,
            what: What::Event(event),
        }));
    }
}

/// The longest frame.
pub(super) const MAX_FRAME: usize =
    FRAGMENT as usize - FRAGMENT_HEADER - COVER - SEAL - FRAME_HEADER.len();
const UNPROVED: &str = "it did not prove who it is";
/// Bytes that may be under way to a process on one circuit, in the beginning.
const WINDOW: u64 = 4 << 20;
/// Bytes by which the windows of all circuits may have grown.
const WINDOWS: u64 = 256 << 20;
/// Circuits that others have begun without having proved who they are.
const MOST_UNPROVED: usize = 64;
/// Fragments sent in one turn.
const SENDS: usize = 64;
/// For so long a circuit is not given up because a gateway knows no way back.
const YOUNG: Duration = Duration::from_millis(500);
