//! What is up, and what must end: all that a gateway carries is counted here before it begins, and closed from here.

use std::collections::BTreeMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use mizzen_identity::SitePeer;
use mizzen_tcp::{Pulse, pulse};
use socket2::{SockRef, TcpKeepalive};

use crate::lock::lock;
use crate::refusal::Refusal;

/// What something is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Words with another gateway.
    Words,
    /// Bytes of jobs.
    Stream,
    /// Something is offered to another site.
    Offer,
}

/// Something that is up because somebody was believed, or something was allowed.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// The other site that it is with, or for.
    pub(crate) site: String,
    /// The job that it is about, unless it is words.
    pub(crate) job: Option<String>,
    /// Who is at the other end, once it has proved that.
    pub(crate) peer: Option<SitePeer>,
    /// The host inside that asked for it.
    pub(crate) host: Option<IpAddr>,
    /// What is closed to end it.
    pub(crate) ends: Vec<TcpStream>,
}

impl Entry {
    pub(crate) fn new(kind: Kind, site: &str) -> Self {
        Self {
            kind,
            site: site.to_owned(),
            job: None,
            peer: None,
            host: None,
            ends: Vec::new(),
        }
    }

    fn end(&self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }

    /// Whether the host at one of its ends does not answer any more.
    pub(crate) fn is_silent(&self) -> bool {
        let silent = |end: &TcpStream| matches!(pulse(end.as_fd()), Ok(Pulse::Silent));
        self.ends.iter().any(silent)
    }
}

/// All that is up.
#[derive(Debug)]
pub(crate) struct Live {
    most: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    next: u64,
    all: BTreeMap<u64, Entry>,
}

/// While this lives, the entry is there.
#[derive(Debug)]
pub(crate) struct Registered {
    live: Arc<Live>,
    pub(crate) number: u64,
}

impl Live {
    /// As much as the descriptors of this process allow, with some to spare.
    pub(crate) fn new() -> Arc<Self> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let descriptors = limit.current.unwrap_or(u64::from(u32::MAX));
        let most = descriptors.saturating_sub(SPARE) / DESCRIPTORS;
        Arc::new(Self {
            most: usize::try_from(most).unwrap_or(MOST).clamp(1, MOST),
            entries: Mutex::default(),
        })
    }

    /// Notes what is to be, unless there is too much of it.
    pub(crate) fn add(self: &Arc<Self>, entry: Entry) -> Result<Registered, Refusal> {
        let mut entries = self.lock();
        let alike = |of: &dyn Fn(&Entry) -> bool| {
            let alike = entries
                .all
                .values()
                .filter(|other| other.kind == entry.kind);
            alike.filter(|other| of(other)).count()
        };
        let of_site = alike(&|other| other.site == entry.site);
        let of_host = match entry.host {
            Some(host) => alike(&|other| other.host == Some(host)),
            None => 0,
        };
        let share = match entry.kind {
            Kind::Words => MAX_WORDS,
            Kind::Stream => MAX_STREAMS,
            Kind::Offer => MAX_OFFERS,
        };
        if of_site >= share || of_host >= share {
            let sentence = format!(
                "site \"{}\" has {share} connections of this kind here, or one host of this site has, and that is all that is \
                 carried; end what is not needed",
                entry.site
            );
            return Err(Refusal::new(Refusal::TOO_MUCH, sentence));
        }
        if entries.all.len() >= self.most {
            let sentence = "the gateway carries all that it can; try again later, or raise its limit of descriptors";
            return Err(Refusal::new(Refusal::TOO_MUCH, sentence));
        }
        let number = entries.next;
        entries.next += 1;
        entries.all.insert(number, entry);
        let live = Arc::clone(self);
        Ok(Registered { live, number })
    }

    /// Ends what `is_over` says. Returns how many that were.
    pub(crate) fn end_where(&self, is_over: impl Fn(&Entry) -> bool) -> usize {
        let entries = self.lock();
        let over = entries.all.values().filter(|entry| is_over(entry));
        over.map(Entry::end).count()
    }

    /// How many connections with a site pass bytes, or are about to.
    pub(crate) fn streams_with(&self, site: &str) -> usize {
        let is_stream = |entry: &&Entry| entry.kind == Kind::Stream && entry.site == site;
        self.lock().all.values().filter(is_stream).count()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        lock(&self.entries)
    }
}

impl Registered {
    /// What it consists of, from now on. Ask afterwards whether it is still allowed.
    pub(crate) fn attach(
        &self,
        peer: Option<SitePeer>,
        ends: &[&TcpStream],
    ) -> std::io::Result<()> {
        let mut clones = Vec::new();
        for end in ends {
            keep_alive(end)?;
            clones.push(end.try_clone()?);
        }
        if let Some(entry) = self.live.lock().all.get_mut(&self.number) {
            entry.peer = peer;
            entry.ends = clones;
        }
        Ok(())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.live.lock().all.remove(&self.number);
    }
}

/// Has the system notice when the host at the other end of a connection on which nothing is said is gone. Where something is under way,
/// [`Entry::is_silent`] does.
pub(crate) fn keep_alive(socket: &TcpStream) -> std::io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(PROBE)
        .with_interval(PROBE)
        .with_retries(2);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}

/// Those who have not said yet what they want. When more come, the oldest of the host that has most of them goes: who has something to
/// say says it at once, and no host crowds out the others.
#[derive(Debug)]
pub(crate) struct Strangers {
    most: usize,
    waiting: Mutex<Entries>,
}

/// While this lives, it is a stranger.
#[derive(Debug)]
pub(crate) struct Stranger {
    strangers: Arc<Strangers>,
    number: u64,
}

impl Strangers {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let waiting = Mutex::default();
        Arc::new(Self { most, waiting })
    }

    pub(crate) fn add(self: &Arc<Self>, socket: TcpStream, host: IpAddr) -> Stranger {
        let mut waiting = lock(&self.waiting);
        if waiting.all.len() >= self.most {
            let mut counts: BTreeMap<Option<IpAddr>, usize> = BTreeMap::new();
            for other in waiting.all.values() {
                *counts.entry(other.host).or_default() += 1;
            }
            let crowd = counts.into_iter().max_by_key(|(_, count)| *count);
            let crowd = crowd.map(|(host, _)| host);
            let oldest = waiting
                .all
                .iter()
                .find(|(_, other)| Some(other.host) == crowd);
            if let Some(number) = oldest.map(|(number, _)| *number) {
                waiting.all.remove(&number).iter().for_each(Entry::end);
            }
        }
        let number = waiting.next;
        waiting.next += 1;
        let mut entry = Entry::new(Kind::Words, "");
        entry.host = Some(prefix(host));
        entry.ends = vec![socket];
        waiting.all.insert(number, entry);
        let strangers = Arc::clone(self);
        Stranger { strangers, number }
    }

    pub(crate) fn end_all(&self) {
        lock(&self.waiting).all.values().for_each(Entry::end);
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        lock(&self.strangers.waiting).all.remove(&self.number);
    }
}

/// What one host can have of addresses: with IPv6, half of them.
fn prefix(host: IpAddr) -> IpAddr {
    match host.to_canonical() {
        IpAddr::V6(host) => IpAddr::V6((host.to_bits() >> 64 << 64).into()),
        host => host,
    }
}

/// Connections for words with one site at a time: some gateways, and one that was not yet found to be gone.
const MAX_WORDS: usize = 16;
/// Connections for bytes with one site at a time, or of one host of this site.
const MAX_STREAMS: usize = 256;
/// Things offered to one site at a time, or by one host of this site.
const MAX_OFFERS: usize = 512;
/// All of these.
const MOST: usize = 4096;
/// Descriptors of what has most of them: two sockets, and what closes them.
const DESCRIPTORS: u64 = 4;
/// Descriptors for strangers, files, and what is being made.
const SPARE: u64 = 512;
/// Between two questions whether the other end is there, when nothing is said.
const PROBE: Duration = Duration::from_secs(5);
