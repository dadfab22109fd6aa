//! The networks of a process: which of them reaches a peer.
//!
//! A process attaches to each network that the job's file gives its host, in the file's order. Its locator names them all,
//! `site=10.0.0.1:4000;fast=10.1.0.1:4001`; a peer is reached over the first one that both are on. On a channel that the program names it
//! is reached over the networks of that one.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use mizzen_networks::{Directory, GatewayAt, RELAYED};
use mizzen_proto::membership::{AgentId, HostId};
use mizzen_proto::rollcall::Down;

use super::catching::Catch;
use super::engine::Engine;
use super::flushing::Mark;
use super::link::{Control, NetLink};
use super::planes::{Attached, Plane};
use super::timers::now;
use crate::counters::{Counted, Rows};
use crate::error::{Departure, Gone, ReachError, Untaken};
use crate::lock::lock;
use crate::progress::Then;
use crate::rank::{ChannelId, MailboxId, ProcessId, Rank};

/// The networks that a process is attached to, the preferred one first.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    all: Vec<Attached>,
    /// The channels that programs name, from number 1 on.
    planes: Vec<Plane>,
    /// Peers of whom the user was told: several threads may reach one at a time.
    told: Mutex<BTreeSet<(ChannelId, ProcessId)>>,
    /// Which gateways there are, if any are needed.
    directory: Option<Arc<Directory>>,
}

impl Networks {
    pub(super) fn new(
        all: Vec<Attached>,
        planes: Vec<Plane>,
        directory: Option<Arc<Directory>>,
    ) -> Self {
        Self {
            all,
            planes,
            told: Mutex::default(),
            directory,
        }
    }

    /// The agent says where a gateway is, or, with nothing, that there is none any more.
    pub(crate) fn handle_gateway(&self, host: u32, life: u32, locator: &str) {
        if let Some(directory) = &self.directory {
            let host = HostId(host);
            let gateway = GatewayAt::parse(AgentId::new(host, life), locator);
            directory.set(host, gateway);
        }
    }

    #[inline]
    fn engines(&self) -> impl Iterator<Item = &Arc<Engine>> {
        self.attached().map(|attached| &attached.engine)
    }

    #[inline]
    fn attached(&self) -> impl Iterator<Item = &Attached> {
        let own = self.planes.iter().flat_map(|plane| &plane.own);
        self.all.iter().chain(own)
    }

    #[cfg(test)]
    pub(super) fn first(&self) -> &Arc<Engine> {
        &self.all[0].engine
    }

    /// Where peers reach this process.
    pub(crate) fn locator(&self) -> String {
        let texts = self.attached().map(|attached| {
            let Attached { name, engine, .. } = attached;
            format!("{name}={}", engine.locator())
        });
        texts.collect::<Vec<_>>().join(";")
    }

    /// What carries a channel here, in order of preference.
    fn carriers(&self, channel: ChannelId) -> Vec<&Attached> {
        if channel == ChannelId::DEFAULT {
            return self.all.iter().collect();
        }
        let plane = self.plane(channel);
        plane.map_or_else(Vec::new, |plane| plane.carriers(&self.all))
    }

    /// The link on a channel to a peer that is reached at `locator`, opened if need be.
    pub(crate) fn connect(
        &self,
        channel: ChannelId,
        peer: ProcessId,
        locator: &str,
        deadline: Instant,
        tell: impl Fn(String),
    ) -> Result<Arc<NetLink>, ReachError> {
        let carriers = self.carriers(channel);
        let linked = |attached: &Attached| attached.engine.link(peer);
        // Whichever network the peer has chosen; not what another channel has made.
        let is_own = |attached: &&&Attached| attached.engine.channel == Some(channel);
        let mut own = carriers.iter().filter(is_own);
        if let Some(link) = own.find_map(|attached| linked(attached)) {
            return Ok(link);
        }
        let mut refused = None;
        for attached in carriers {
            if let Some(link) = linked(attached) {
                return Ok(link);
            }
            let Some(at) = place_on(locator, &attached.name) else {
                continue;
            };
            match attached.engine.connect(peer, at, deadline) {
                Ok(link) => {
                    if lock(&self.told).insert((channel, peer)) {
                        tell(self.way(channel, attached, peer));
                    }
                    return Ok(link);
                }
                Err(error @ ReachError::NoPath { .. }) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or_else(|| ReachError::NoPath {
            rank: peer.rank,
            cause: self.nothing_in_common(channel, locator),
        }))
    }

    /// Whether one of our networks for a channel is among those of a peer.
    pub(crate) fn has_one_of(&self, channel: ChannelId, locator: &str) -> bool {
        let mut carriers = self.carriers(channel).into_iter();
        carriers.any(|attached| place_on(locator, &attached.name).is_some())
    }

    /// The channel, if it is one that programs name.
    fn plane(&self, channel: ChannelId) -> Option<&Plane> {
        self.planes.get(usize::from(channel.0).checked_sub(1)?)
    }

    fn nothing_in_common(&self, channel: ChannelId, locator: &str) -> String {
        if channel != ChannelId::DEFAULT {
            return match self.plane(channel) {
                Some(plane) if plane.is_on() => format!("it is not on the channel {}", plane.name),
                Some(plane) => format!("this process is not on the channel {}", plane.name),
                None => "the job has no such channel".to_owned(),
            };
        }
        let parts = locator.split(';').filter_map(|part| part.split_once('='));
        let names = parts.map(|(name, _)| name);
        let names = names.filter(|name| *name != RELAYED && !name.contains(':'));
        let theirs: Vec<&str> = names.collect();
        let ours = self.all.iter().map(|one| &one.name[..]);
        let ours: Vec<&str> = ours.filter(|name| *name != RELAYED).collect();
        let list = |names: &[&str]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        format!(
            "no network in common (this process is on {}, it is on {}); give both hosts one in the job's file",
            list(&ours),
            list(&theirs)
        )
    }

    /// How a peer is reached, in words for a user.
    fn way(&self, channel: ChannelId, attached: &Attached, peer: ProcessId) -> String {
        let way = attached.engine.describe(peer);
        let way = way.map_or(String::new(), |way| format!(", {way}"));
        let Attached { name, manner, .. } = attached;
        if name == RELAYED {
            let rank = peer.rank;
            return format!("reaches rank {rank} through {manner} (no network in common){way}");
        }
        let which = match (self.plane(channel), self.all.len()) {
            (Some(plane), _) => &format!("on the channel {}", plane.name),
            (None, 1) => "the only network",
            (None, _) => "the first in common",
        };
        let name = name.split_once(':').map_or(&name[..], |(_, name)| name);
        format!(
            "reaches rank {} over {name} ({manner}; {which}){way}",
            peer.rank
        )
    }

    /// Whether there is a link with this life of a process.
    pub(crate) fn has_link(&self, peer: ProcessId) -> bool {
        self.engines().any(|engine| engine.link(peer).is_some())
    }

    /// Whether there is a link with anybody.
    pub(crate) fn has_links(&self) -> bool {
        self.engines().any(|engine| engine.has_links())
    }

    /// The latest life of a rank with which there is a link.
    pub(crate) fn linked(&self, rank: Rank) -> Option<ProcessId> {
        self.engines()
            .filter_map(|engine| engine.linked(rank))
            .max()
    }

    /// Moves what can be moved, unless other threads are doing it.
    #[inline]
    pub(crate) fn pump(&self, process: Option<&dyn Control>) {
        self.engines().for_each(|engine| engine.pump(process));
    }

    /// The same for a thread that waits for something from there.
    #[inline]
    pub(crate) fn watch(&self, process: &dyn Control) {
        self.engines().for_each(|engine| engine.watch(process));
    }

    /// The same for a thread that knows what it waits for.
    #[inline]
    pub(crate) fn catch(&self, process: &dyn Control, catch: &mut Catch<'_>) {
        for engine in self.engines() {
            engine.catch(process, catch);
            if catch.is_over() {
                return;
            }
        }
    }

    /// A thread looks at the networks all the time from now on: theirs need not.
    pub(crate) fn add_poller(&self) {
        self.engines().for_each(|engine| engine.add_poller());
    }

    /// It no longer does.
    pub(crate) fn remove_poller(&self, then: Then) {
        self.engines().for_each(|engine| engine.remove_poller());
        if then == Then::Sleeps {
            self.engines().for_each(|engine| engine.wake_if_aside());
        }
    }

    /// One of our mailboxes closed: peers that used it are told.
    pub(crate) fn close_mailbox(&self, mailbox: MailboxId) {
        self.engines()
            .for_each(|engine| engine.close_mailbox(mailbox));
    }

    /// The counters of all links.
    pub(crate) fn count(&self, rows: &mut Rows) {
        for engine in self.engines() {
            let links = engine.links.read().unwrap_or_else(PoisonError::into_inner);
            let links: Vec<_> = links.values().cloned().collect();
            links.iter().for_each(|link| link.count(rows));
        }
    }

    /// The sessions that have lost their connection.
    pub(crate) fn down(&self) -> Vec<Down> {
        let links = self.engines().flat_map(|engine| engine.all_links());
        let down = links.filter_map(|link| {
            // Without the port: this looks at it for a moment, and touches nothing else.
            let down = link.session().down_for(now())?;
            Some(Down {
                rank: link.peer.rank.0,
                millis: u64::try_from(down.as_millis()).unwrap_or(u64::MAX),
            })
        });
        down.collect()
    }

    /// The peers that have not taken all that was posted to them, and how many messages.
    pub(crate) fn waiting(&self) -> Vec<(ProcessId, u64)> {
        let mut waiting = Vec::new();
        for engine in self.engines() {
            let links = engine.links.read().unwrap_or_else(PoisonError::into_inner);
            let behind = links.values().map(|link| (link.peer, link.waiting()));
            waiting.extend(behind.filter(|(_, messages)| *messages > 0));
        }
        waiting
    }

    /// Leaves all of them.
    pub(crate) fn leave(&self, process: &dyn Control, how: Departure) {
        self.engines().for_each(|engine| engine.leave(process, how));
    }

    /// What is queued for each peer now.
    pub(crate) fn begin_flush(&self) -> Vec<Mark> {
        self.engines().flat_map(Engine::begin_flush).collect()
    }

    /// A peer that is gone and did not take all; each is told once.
    pub(crate) fn take_untaken(&self) -> Option<(Gone, Untaken)> {
        self.engines().find_map(Engine::take_untaken)
    }

    /// A rank has left the job, says who may say so.
    pub(crate) fn pronounce_left(&self, rank: Rank) {
        let links = self.engines().flat_map(|engine| engine.all_links());
        let left: Vec<_> = links
            .filter(|link| link.peer.rank == rank)
            .map(|link| Gone::new(link.peer, Departure::Left))
            .collect();
        left.into_iter().for_each(|gone| self.pronounce(gone));
    }

    /// A process is gone, says who may say so.
    pub(crate) fn pronounce(&self, gone: Gone) {
        self.engines().for_each(|engine| engine.pronounce(gone));
    }
}

/// Where the network of this name reaches a peer, says its locator.
fn place_on<'l>(locator: &'l str, network: &str) -> Option<&'l str> {
    let parts = locator.split(';').filter_map(|part| part.split_once('='));
    let mut places = parts.filter(|(name, _)| *name == network);
    places.next().map(|(_, at)| at)
}
