//! What is up, and what must end.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

use mizzen_identity::SitePeer;

use crate::lock::lock;
use crate::refusal::Refusal;

/// Something that is up because somebody was believed, or something was allowed.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The other site, once it has proved to be one.
    pub(crate) peer: Option<SitePeer>,
    /// The site and the job that it is about, if it is about one.
    pub(crate) about: Option<(String, String)>,
    /// What is closed to end it.
    pub(crate) ends: Vec<TcpStream>,
}

/// All that is up.
#[derive(Debug, Default)]
pub(crate) struct Live(Mutex<Entries>);

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
    /// Notes what is up from now on, unless there is too much of that site.
    pub(crate) fn add(self: &Arc<Self>, entry: Entry) -> Result<Registered, Refusal> {
        let mut entries = self.lock();
        if let Some(peer) = &entry.peer {
            let of_site = |other: &&Entry| {
                other
                    .peer
                    .as_ref()
                    .is_some_and(|other| other.site == peer.site)
            };
            if entries.all.values().filter(of_site).count() >= MAX_OF_SITE {
                let sentence = format!(
                    "site \"{}\" has {MAX_OF_SITE} connections here, and that is all it gets; end what is not needed",
                    peer.site
                );
                return Err(Refusal::new(Refusal::TOO_MUCH, sentence));
            }
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

    /// How many connections with a site pass bytes.
    pub(crate) fn streams_with(&self, site: &str) -> usize {
        let is_stream = |entry: &&Entry| {
            entry.peer.as_ref().is_some_and(|peer| peer.site == site) && entry.about.is_some()
        };
        self.lock().all.values().filter(is_stream).count()
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        lock(&self.0)
    }
}

impl Entry {
    fn end(&self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.live.lock().all.remove(&self.number);
    }
}

/// Connections with one site at a time, for words and for bytes.
pub(crate) const MAX_OF_SITE: usize = 256;

/// Those who have not said yet what they want. When more come, the oldest goes: who has something to say says it at once.
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

    pub(crate) fn add(self: &Arc<Self>, socket: TcpStream) -> Stranger {
        let mut waiting = self.lock();
        if waiting.all.len() >= self.most {
            if let Some((_, oldest)) = waiting.all.pop_first() {
                oldest.end();
            }
        }
        let number = waiting.next;
        waiting.next += 1;
        let ends = vec![socket];
        let entry = Entry {
            peer: None,
            about: None,
            ends,
        };
        waiting.all.insert(number, entry);
        let strangers = Arc::clone(self);
        Stranger { strangers, number }
    }

    pub(crate) fn end_all(&self) {
        self.lock().all.values().for_each(Entry::end);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        lock(&self.waiting)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.strangers.lock().all.remove(&self.number);
    }
}
