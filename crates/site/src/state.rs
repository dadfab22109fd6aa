//! What all threads of a gateway share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use mizzen_config::SiteFile;
use mizzen_identity::{SiteCredentials, SitePeer};

use crate::live::{Live, Strangers};
use crate::lock::lock;
use crate::meeting::Meeting;
use crate::offers::Offers;
use crate::pump::Passed;
use crate::refusal::Refusal;
use crate::words::Words;

/// How patient a gateway is.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Pace {
    /// How long whoever connects may take to prove who it is and to say what it wants.
    pub hello: Duration,
    /// How long a wish may take: dialling, asking, and being answered.
    pub wish: Duration,
    /// Between two questions whether the other gateway is there. Three without an answer, and it is not.
    pub ping: Duration,
    /// How long after a failure it is tried again to reach another site: from the first to the second, twice as long each time.
    pub again: (Duration, Duration),
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(5),
            wish: Duration::from_secs(10),
            ping: Duration::from_secs(20),
            again: (Duration::from_secs(1), Duration::from_secs(30)),
        }
    }
}

/// Told to whoever runs the gateway.
pub(crate) type News = Arc<dyn Fn(&str) + Send + Sync>;

/// The other end of a connection that was asked for, or why there is none.
pub(crate) type Come = Result<(TcpStream, SitePeer), Refusal>;

pub(crate) struct State {
    pub(crate) credentials: SiteCredentials,
    pub(crate) pace: Pace,
    pub(crate) news: News,
    file: RwLock<Arc<SiteFile>>,
    pub(crate) offers: Mutex<Offers>,
    pub(crate) live: Arc<Live>,
    /// Who has not said yet what it wants, outside and inside.
    pub(crate) strangers: [Arc<Strangers>; 2],
    /// Connections for words, by site.
    pub(crate) words: Mutex<BTreeMap<String, Vec<Words>>>,
    /// Connections that we want, whom from, and who waits for them.
    pub(crate) wanted: Mutex<HashMap<u64, Wanted>>,
    next_ticket: AtomicU64,
    /// Gateways that we keep in touch with: site and address.
    pub(crate) kept: Mutex<BTreeSet<(String, String)>>,
    /// What is known of each site.
    sites: Mutex<BTreeMap<String, Arc<Site>>>,
    /// Where we listen, inside and outside.
    pub(crate) doors: Vec<SocketAddr>,
    has_ended: AtomicBool,
    /// Rung when it ends, or its file changes.
    bell: (Mutex<u64>, Condvar),
}

/// A connection that we want.
pub(crate) struct Wanted {
    /// Whom from.
    pub(crate) site: String,
    /// The connection for words over which it was asked for.
    pub(crate) over: u64,
    /// Who waits for it.
    pub(crate) waiting: Sender<Come>,
}

/// What is known of another site.
#[derive(Debug, Default)]
pub(crate) struct Site {
    pub(crate) passed: Passed,
    /// Why it was not reached the last time.
    pub(crate) failure: Mutex<Option<String>>,
}

impl State {
    pub(crate) fn new(
        credentials: SiteCredentials,
        file: SiteFile,
        pace: Pace,
        news: News,
        doors: Vec<SocketAddr>,
    ) -> Self {
        Self {
            credentials,
            pace,
            news,
            file: RwLock::new(Arc::new(file)),
            offers: Mutex::default(),
            live: Live::new(),
            strangers: [Strangers::new(MAX_STRANGERS), Strangers::new(MAX_STRANGERS)],
            words: Mutex::default(),
            wanted: Mutex::default(),
            next_ticket: AtomicU64::new(1),
            kept: Mutex::default(),
            sites: Mutex::default(),
            doors,
            has_ended: AtomicBool::new(false),
            bell: Default::default(),
        }
    }

    /// The file that holds now.
    pub(crate) fn file(&self) -> Arc<SiteFile> {
        Arc::clone(&self.file.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn replace(&self, file: SiteFile) {
        let mut held = self.file.write().unwrap_or_else(PoisonError::into_inner);
        *held = Arc::new(file);
    }

    /// Whether this site lets a job be met with another one.
    pub(crate) fn may_meet(&self, site: &str, job: &str) -> Result<(), Refusal> {
        let file = self.file();
        let Some(peer) = file.site(site) else {
            let sentence = format!(
                "site \"{}\" does not know a site \"{site}\"; `mizzen site add` there adds it",
                file.name
            );
            return Err(Refusal::new(Refusal::FORBIDDEN, sentence));
        };
        if !peer.exports(job) {
            let sentence = format!(
                "site \"{}\" does not let \"{job}\" be met with site \"{site}\"; it must be among the exports in its site.toml",
                file.name
            );
            return Err(Refusal::new(Refusal::FORBIDDEN, sentence));
        }
        Ok(())
    }

    /// Ends what is not allowed any more. Returns how much that was.
    pub(crate) fn review(&self) -> usize {
        let sites = self.credentials.sites();
        self.live.end_where(|entry| {
            let peer = entry.peer.as_ref();
            let is_unwelcome = peer.is_some_and(|peer| sites.welcome(peer).is_err());
            let job = entry.job.as_ref();
            is_unwelcome || job.is_some_and(|job| self.may_meet(&entry.site, job).is_err())
        })
    }

    /// Whether somebody who was believed and allowed a moment ago still is: asked once it is among what is up, so that either this
    /// or [`review`](Self::review) sees it.
    pub(crate) fn is_still_allowed(&self, peer: &SitePeer, job: Option<&str>) -> bool {
        let is_welcome = self.credentials.sites().welcome(peer).is_ok();
        is_welcome
            && job.is_none_or(|job| self.may_meet(&peer.site, job).is_ok())
            && !self.has_ended()
    }

    pub(crate) fn site(&self, name: &str) -> Arc<Site> {
        Arc::clone(lock(&self.sites).entry(name.to_owned()).or_default())
    }

    pub(crate) fn ticket(&self) -> u64 {
        self.next_ticket.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.live.end_where(|_| true);
        self.strangers
            .iter()
            .for_each(|strangers| strangers.end_all());
        self.ring();
    }

    /// Wakes who [`sleep`](Self::sleep)s.
    pub(crate) fn ring(&self) {
        *lock(&self.bell.0) += 1;
        self.bell.1.notify_all();
    }

    /// How often something has changed: for [`sleep`](Self::sleep).
    pub(crate) fn changes(&self) -> u64 {
        *lock(&self.bell.0)
    }

    /// Sleeps for a while, or until something changes, or has since `before`.
    pub(crate) fn sleep(&self, before: u64, time: Duration) {
        let rung = lock(&self.bell.0);
        let changed = |rung: &mut u64| *rung == before && !self.has_ended();
        drop(self.bell.1.wait_timeout_while(rung, time, changed));
    }

    pub(crate) fn tell(&self, sentence: &str) {
        (self.news)(sentence);
    }

    /// How things are, for people.
    pub(crate) fn status(&self) -> String {
        let file = self.file();
        let mut text = format!("site {}, gateway {}\n", file.name, file.gateway);
        // A text takes everything.
        for peer in &file.sites {
            let site = self.site(&peer.name);
            let links = self.links_with(&peer.name);
            let state = match (&links[..], &*lock(&site.failure)) {
                ([], Some(failure)) => format!("not connected: {failure}"),
                ([], None) if peer.reach.is_empty() => {
                    "not connected: it has to dial us, and has not".to_owned()
                }
                ([], None) => "not connected yet".to_owned(),
                (links, _) => links.join("; "),
            };
            let _ = writeln!(text, "site {}: {state}", peer.name);
            let (out, back) = (&site.passed.out, &site.passed.back);
            let _ = writeln!(
                text,
                "  {} streams; {} bytes out, {} in",
                self.live.streams_with(&peer.name),
                out.load(Ordering::Relaxed),
                back.load(Ordering::Relaxed)
            );
            for (meeting, thing, at) in lock(&self.offers).all() {
                if meeting.site() == peer.name {
                    let _ = writeln!(text, "  {} offers {thing} at {at}", meeting.job());
                }
            }
        }
        text
    }

    fn links_with(&self, site: &str) -> Vec<String> {
        let words = lock(&self.words);
        let links = words.get(site).into_iter().flatten();
        links.map(Words::describe).collect()
    }

    /// What a job of another site may reach here under a name.
    pub(crate) fn offered(
        &self,
        site: &str,
        job: &str,
        thing: &str,
    ) -> Result<SocketAddr, Refusal> {
        self.may_meet(site, job)?;
        let meeting = Meeting::new(job, site)
            .map_err(|error| Refusal::new(Refusal::BAD, error.to_string()))?;
        let found = lock(&self.offers).find(&meeting, thing);
        found.ok_or_else(|| {
            let name = &self.file().name;
            let sentence = format!("nobody at site \"{name}\" offers \"{thing}\" of {meeting}, or not yet; start the job there, too");
            Refusal::new(Refusal::NOT_OFFERED, sentence)
        })
    }
}

pub(crate) fn after(time: Duration) -> Instant {
    Instant::now() + time
}

/// Strangers at one door at a time.
const MAX_STRANGERS: usize = 128;
