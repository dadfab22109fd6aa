//! The machine of a gateway: fragments come, wait for their turn, and go on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::credit::{Credit, Grant, Lane, Overdrawn, Reserve};
use super::heading::{FlowId, Heading, Slot};
use super::turns::Turns;
use crate::id::ProcessId;
use crate::membership::HostId;
use crate::route::{FRAGMENT, MAX_HOPS};
use crate::time::Time;

/// A link of a gateway; never used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u64);

/// Who is at the other end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// A process, which hands nothing on: what comes from it has passed no gateway.
    End(ProcessId),
    /// Another gateway.
    Gateway(HostId),
}

impl Peer {
    /// Whether a fragment is for it.
    fn is_end_of(self, heading: &Heading) -> bool {
        self == Peer::End(heading.process)
    }
}

/// What whoever drives a gateway has to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send the fragment in this buffer; when the buffer is free again, say so by [`Gateway::handle_sent`].
    Send(LinkId, Heading, Lane, Slot),
    /// Tell the other end what it may send. A newer grant replaces one that has not gone out yet.
    Grant(LinkId, Grant),
    /// Tell the other end that something waits for more than the so many shared bytes that it has granted. A newer one replaces it.
    Blocked(LinkId, u64),
    /// The buffer is free: what was in it was dropped.
    Free(Slot),
    /// Tell the origin of a flow that its end, this process, does not take what comes: what was under way to it is dropped.
    Stalled(FlowId, ProcessId),
    /// End the link, which is forgotten already: its process takes nothing, and what its driver has is needed elsewhere. One that goes on
    /// connects again.
    Cut(LinkId),
}

/// What became of a fragment that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It waits for its turn, or went at once.
    Queued,
    /// It had passed too many gateways.
    TooFar,
    /// Nobody knows a way.
    NoWay,
}

/// There is no memory for another link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all memory of this gateway is reserved for other links")]
pub struct Full;

/// What happened so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Fragments that went on.
    pub sent: u64,
    /// Those that went into an escape.
    pub escaped: u64,
    /// Dropped because they had passed too many gateways.
    pub too_far: u64,
    /// Dropped because there was no way.
    pub no_way: u64,
    /// Dropped because their end took nothing.
    pub stalled: u64,
}

/// What hands on.
#[derive(Debug)]
pub struct Gateway {
    /// Bytes of memory in all, and for the shared bytes of each link.
    pool: u64,
    shared: u64,
    links: BTreeMap<LinkId, Link>,
    /// The links with each, the oldest first.
    with: BTreeMap<Peer, Vec<LinkId>>,
    /// Where each buffer came from.
    slots: BTreeMap<Slot, Origin>,
    /// Bytes of buffers that came over links that are no more: they are not free before they went on.
    orphaned: u64,
    actions: VecDeque<Action>,
    tally: Tally,
    /// How often a link was chosen.
    choices: u64,
}

#[derive(Debug)]
struct Link {
    peer: Peer,
    reserve: Reserve,
    /// What the other end was told last.
    told: Grant,
    credit: Credit,
    /// What was granted when it last had to be said that something waits.
    blocked: Option<u64>,
    /// When it was last chosen among several, in order.
    chosen: u64,
    turns: Turns,
    /// Buffers that the driver has, and whose.
    flying: BTreeMap<Slot, FlowId>,
    flying_bytes: u64,
    /// When something was taken last, or the first was sent.
    moved: Time,
}

#[derive(Debug, Clone, Copy)]
struct Origin {
    link: LinkId,
    lane: Lane,
    length: u32,
}

impl Gateway {
    /// With so many bytes of memory in all, and so many shared ones for each link.
    #[must_use]
    pub fn new(pool: u64, shared: u64) -> Self {
        Self {
            pool,
            shared,
            links: BTreeMap::new(),
            with: BTreeMap::new(),
            slots: BTreeMap::new(),
            orphaned: 0,
            actions: VecDeque::new(),
            tally: Tally::default(),
            choices: 0,
        }
    }

    // What happens.

    /// A link is there. Memory is reserved for it, and granted. With another gateway there may be several: short fragments go over the oldest, so that they wait
    /// for no long one, and long ones over that of the others which has the least to do, in turn where it is the same.
    ///
    /// # Errors
    /// There is none left.
    pub fn handle_link(&mut self, link: LinkId, peer: Peer, now: Time) -> Result<(), Full> {
        let hops = match peer {
            Peer::End(_) => 1,
            Peer::Gateway(_) => MAX_HOPS,
        };
        let free = self.pool.saturating_sub(self.reserved());
        // Rather slow than not at all.
        let shared = self
            .shared
            .min(free.saturating_sub(u64::from(hops) * FRAGMENT));
        let reserve = Reserve::new(shared, hops);
        if reserve.size() > free {
            return Err(Full);
        }
        let told = *reserve.granted();
        self.actions.push_back(Action::Grant(link, told));
        let link_state = Link {
            peer,
            reserve,
            told,
            credit: Credit::default(),
            blocked: None,
            chosen: 0,
            turns: Turns::default(),
            flying: BTreeMap::new(),
            flying_bytes: 0,
            moved: now,
        };
        self.links.insert(link, link_state);
        self.with.entry(peer).or_default().push(link);
        Ok(())
    }

    /// A link is no more. What waited for it takes another way, if `way` knows one, or is dropped; what its driver had is dropped.
    pub fn handle_lost(
        &mut self,
        link: LinkId,
        now: Time,
        way: impl Fn(&Heading) -> Option<HostId>,
    ) {
        let Some(mut lost) = self.forget(link) else {
            return;
        };
        for slot in lost.flying.into_keys() {
            self.drop_slot(slot);
        }
        let mut touched = BTreeSet::new();
        for (heading, slot) in lost.turns.take_all() {
            let Ok(other) = self.onward(&heading, &way) else {
                self.drop_slot(slot);
                continue;
            };
            if let Some(link) = self.links.get_mut(&other) {
                link.turns.push(heading, slot);
            }
            touched.insert(other);
        }
        for other in touched {
            self.pump(other, now);
        }
    }

    /// A fragment came over a link, into a buffer. `way` knows the next host.
    ///
    /// # Errors
    /// It was not granted: the peer broke a rule, and the link is to be ended. The buffer is free.
    pub fn handle_fragment(
        &mut self,
        from: LinkId,
        heading: Heading,
        lane: Lane,
        slot: Slot,
        now: Time,
        way: impl Fn(&Heading) -> Option<HostId>,
    ) -> Result<Fate, Overdrawn> {
        let heading = Heading {
            hop: heading.hop.saturating_add(1),
            ..heading
        };
        let link = self.links.get_mut(&from).ok_or(Overdrawn)?;
        link.reserve
            .handle_arrival(lane, heading.hop, heading.length)?;
        let origin = Origin {
            link: from,
            lane,
            length: heading.length,
        };
        self.slots.insert(slot, origin);
        let out = match self.onward(&heading, way) {
            Ok(out) => out,
            Err(fate) => {
                self.drop_slot(slot);
                return Ok(fate);
            }
        };
        if let Some(link) = self.links.get_mut(&out) {
            self.choices += 1;
            link.chosen = self.choices;
            link.turns.push(heading, slot);
        }
        self.pump(out, now);
        Ok(Fate::Queued)
    }

    /// The other end of a link grants.
    pub fn handle_grant(&mut self, link: LinkId, grant: &Grant, now: Time) {
        if let Some(state) = self.links.get_mut(&link) {
            state.credit.handle_grant(grant);
            self.pump(link, now);
        }
    }

    /// Something waits at the other end of a link for more than it was granted. If the way is so long, it gets more.
    pub fn handle_blocked(&mut self, id: LinkId, at: u64) {
        // Half of the memory at most is for long ways, and half of what is left for links that are yet to come.
        let more = self.links.values().map(|link| link.reserve.more());
        let free = (self.pool / 2).saturating_sub(more.sum());
        let free = free.min(self.pool.saturating_sub(self.reserved()) / 2);
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let may_grow = self.shared > 0 && matches!(link.peer, Peer::Gateway(_));
        if may_grow && link.reserve.handle_blocked(at, free) {
            link.told = *link.reserve.granted();
            self.actions.push_back(Action::Grant(id, link.told));
        }
    }

    /// The driver of a link is done with a buffer: it is free.
    pub fn handle_sent(&mut self, link: LinkId, slot: Slot, now: Time) {
        let Some(state) = self.links.get_mut(&link) else {
            return;
        };
        if state.flying.remove(&slot).is_none() {
            return;
        }
        state.moved = now;
        if let Some(origin) = self.slots.get(&slot) {
            state.flying_bytes -= u64::from(origin.length);
        }
        self.free(slot);
        self.pump(link, now);
    }

    /// The other end of a link took something, if not yet a whole fragment: it is slow, and does not stand still.
    pub fn handle_moved(&mut self, link: LinkId, now: Time) {
        if let Some(link) = self.links.get_mut(&link) {
            link.moved = now;
        }
    }

    /// Time has passed. To be called every [`STALL`] at least.
    pub fn handle_time(&mut self, now: Time) {
        let stalled = |(_, link): &(&LinkId, &Link)| {
            let is_end = matches!(link.peer, Peer::End(_));
            is_end && !link.flying.is_empty() && now.since(link.moved) >= STALL
        };
        let stalled: Vec<LinkId> = self
            .links
            .iter()
            .filter(stalled)
            .map(|(id, _)| *id)
            .collect();
        for link in stalled {
            self.cut(link);
        }
    }

    // What is to be done.

    /// The next thing to do.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    // Getters.

    /// The link that so many bytes for somebody go over.
    #[must_use]
    pub fn link_to(&self, peer: Peer, length: u32) -> Option<LinkId> {
        let all = self.with.get(&peer)?;
        let (first, others) = all.split_first()?;
        match peer {
            // It came again: what it had before is about to be lost.
            Peer::End(_) => all.last().copied(),
            Peer::Gateway(_) => {
                let load = |id: &LinkId| {
                    let link = self.links.get(id);
                    let waits = |link: &Link| link.turns.bytes() + link.flying_bytes;
                    link.map(|link| (waits(link), link.chosen))
                };
                let is_free = load(first).is_some_and(|(waits, _)| waits < WINDOW);
                let among = match length <= SHORT {
                    true if is_free => std::slice::from_ref(first),
                    true => all,
                    false if others.is_empty() => all,
                    false => others,
                };
                among.iter().copied().min_by_key(load)
            }
        }
    }

    /// How many fragments it holds.
    #[must_use]
    pub fn held(&self) -> usize {
        self.slots.len()
    }

    /// The bytes of all that it holds.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.slots
            .values()
            .map(|origin| u64::from(origin.length))
            .sum()
    }

    /// Bytes of memory that are reserved, or still in use by what came over links that are no more.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        let links = self.links.values().map(|link| link.reserve.size());
        links.sum::<u64>() + self.orphaned
    }

    /// What happened so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    // Private.

    /// The link that a fragment goes on over; or why it is dropped.
    fn onward(
        &mut self,
        heading: &Heading,
        way: impl Fn(&Heading) -> Option<HostId>,
    ) -> Result<LinkId, Fate> {
        let next = way(heading);
        // At the last gateway it may pass only its end is left: at another one there would be no escape for it, and it would wait for ever.
        let is_last = next == Some(heading.to);
        if heading.hop > MAX_HOPS || heading.hop == MAX_HOPS && next.is_some() && !is_last {
            self.tally.too_far += 1;
            return Err(Fate::TooFar);
        }
        let peer = match next {
            Some(_) if is_last => Some(Peer::End(heading.process)),
            next => next.map(Peer::Gateway),
        };
        peer.and_then(|peer| self.link_to(peer, heading.length))
            .ok_or_else(|| {
                self.tally.no_way += 1;
                Fate::NoWay
            })
    }

    /// Sends what may go over a link.
    fn pump(&mut self, id: LinkId, now: Time) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        while link.flying_bytes < WINDOW {
            let Some((number, lane)) = choose(link) else {
                break;
            };
            let Some((heading, slot)) = link.turns.take(number) else {
                break;
            };
            if link.flying.is_empty() {
                link.moved = now;
            }
            link.flying.insert(slot, heading.flow);
            link.flying_bytes += u64::from(heading.length);
            self.tally.sent += 1;
            self.tally.escaped += u64::from(matches!(lane, Lane::Escape(_)));
            self.actions
                .push_back(Action::Send(id, heading, lane, slot));
        }
        let waits = link.flying_bytes < WINDOW && !link.turns.is_empty();
        let granted = link.credit.granted();
        if waits && Some(granted) > link.blocked && matches!(link.peer, Peer::Gateway(_)) {
            link.blocked = Some(granted);
            self.actions.push_back(Action::Blocked(id, granted));
        }
    }

    /// A process takes nothing: what is for it is dropped, and the origins are told.
    fn cut(&mut self, id: LinkId) {
        let Some(mut link) = self.forget(id) else {
            return;
        };
        let waiting = link.turns.take_all();
        self.tally.stalled += (waiting.len() + link.flying.len()) as u64;
        let slots = waiting.iter().map(|(_, slot)| *slot);
        let slots: Vec<Slot> = slots.chain(link.flying.keys().copied()).collect();
        let flows = waiting.iter().map(|(heading, _)| heading.flow);
        let flows: BTreeSet<FlowId> = flows.chain(link.flying.into_values()).collect();
        if let Peer::End(process) = link.peer {
            let told = flows.into_iter().map(|flow| Action::Stalled(flow, process));
            self.actions.extend(told);
        }
        self.actions.push_back(Action::Cut(id));
        for slot in slots {
            self.drop_slot(slot);
        }
    }

    /// A link is no more; what came over it is still here.
    fn forget(&mut self, link: LinkId) -> Option<Link> {
        let lost = self.links.remove(&link)?;
        if let Some(all) = self.with.get_mut(&lost.peer) {
            all.retain(|other| *other != link);
            if all.is_empty() {
                self.with.remove(&lost.peer);
            }
        }
        let of_it = self.slots.values().filter(|origin| origin.link == link);
        self.orphaned += of_it.map(|origin| u64::from(origin.length)).sum::<u64>();
        Some(lost)
    }

    fn drop_slot(&mut self, slot: Slot) {
        self.free(slot);
        self.actions.push_back(Action::Free(slot));
    }

    /// A buffer is free: the link that it came over may send another.
    fn free(&mut self, slot: Slot) {
        let Some(origin) = self.slots.remove(&slot) else {
            return;
        };
        let Some(link) = self.links.get_mut(&origin.link) else {
            self.orphaned -= u64::from(origin.length);
            return;
        };
        link.reserve.free(origin.lane, origin.length);
        let granted = *link.reserve.granted();
        // Shared bytes are told of by quarters, escapes at once.
        let much = granted.shared - link.told.shared >= (link.reserve.shared() / 4).max(1);
        if much || granted.escapes != link.told.escapes {
            link.told = granted;
            self.actions.push_back(Action::Grant(origin.link, granted));
        }
    }
}

/// The fragment that goes next, and against what: in turn as long as there are shared bytes; then the oldest whose escape is free, those that came
/// furthest first. What is for the peer itself needs neither.
fn choose(link: &mut Link) -> Option<(u64, Lane)> {
    let (number, heading) = link.turns.whose()?;
    if link.peer.is_end_of(&heading) {
        return Some((number, Lane::Last));
    }
    if link.credit.has_shared(heading.length) {
        let lane = link.credit.take(heading.hop, heading.length)?;
        return Some((number, lane));
    }
    for hop in (0..=MAX_HOPS).rev() {
        let Some((number, heading)) = link.turns.oldest(hop) else {
            continue;
        };
        if link.peer.is_end_of(&heading) {
            return Some((number, Lane::Last));
        }
        if link.credit.has_escape(hop) {
            let lane = link.credit.take(hop, heading.length)?;
            return Some((number, lane));
        }
    }
    None
}

/// What is not longer does not wait for what is.
const SHORT: u32 = 4096;

/// Bytes that the driver of a link has at a time: the rest waits here, where it takes turns.
const WINDOW: u64 = 4 * FRAGMENT;

/// A process that has taken nothing for so long is not waited for.
pub const STALL: Duration = Duration::from_millis(250);
