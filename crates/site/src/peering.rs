//! The connections for words: kept up with the gateways that we know where to find, and used by both sides.

use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Instant, SystemTime};

use mizzen_identity::SitePeer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::live::{Entry, Kind, Registered};
use crate::lock::lock;
use crate::pump::STACK;
use crate::refusal::Refusal;
use crate::sealed::{Sealed, wrong};
use crate::state::{State, Wanted, after};
use crate::streams::{ask, dial, join, reach_in};
use crate::word::{First, Line};
use crate::words::Words;

/// Keeps in touch with every gateway that the file says where to find, in threads that end when it does not any more.
pub(crate) fn keep(state: &Arc<State>) {
    for site in &state.file().sites {
        for address in &site.reach {
            let key = (site.name.clone(), address.clone());
            if !lock(&state.kept).insert(key.clone()) {
                continue;
            }
            let keeper = {
                let (state, key) = (Arc::clone(state), key.clone());
                move || keep_one(&state, &key.0, &key.1)
            };
            let spawned = thread::Builder::new().name("peer".into()).spawn(keeper);
            if spawned.is_err() {
                // Tried again when the file changes.
                lock(&state.kept).remove(&key);
            }
        }
    }
}

fn keep_one(state: &Arc<State>, site: &str, address: &str) {
    let (least, most) = state.pace.again;
    let mut pause = least;
    let is_wanted = || {
        let file = state.file();
        let is_listed = file
            .site(site)
            .is_some_and(|site| site.reach.iter().any(|known| known == address));
        is_listed && !state.has_ended()
    };
    loop {
        let changes = state.changes();
        {
            // Either we see that it is listed again, or `keep` that we are gone.
            let mut kept = lock(&state.kept);
            if !is_wanted() {
                kept.remove(&(site.to_owned(), address.to_owned()));
                return;
            }
        }
        let began = Instant::now();
        let failure = match be_in_touch(state, site, address) {
            Ok(()) => "the connection ended".to_owned(),
            Err(error) => format!("{address}: {error}"),
        };
        if !is_wanted() {
            continue;
        }
        let before = lock(&state.site(site).failure).replace(failure.clone());
        if before.as_ref() != Some(&failure) {
            state.tell(&format!(
                "site \"{site}\" at {address} is not connected: {failure}; trying again"
            ));
        }
        if began.elapsed() > most {
            pause = least;
        }
        // Not all at once after a gateway was away: between half and all of it.
        let nanos = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |time| time.subsec_nanos());
        state.sleep(
            changes,
            pause / 2 + (pause / 2).mul_f64(f64::from(nanos % 1000) / 1000.0),
        );
        pause = (pause * 2).min(most);
    }
}

fn be_in_touch(state: &Arc<State>, site: &str, address: &str) -> io::Result<()> {
    let deadline = after(state.pace.wish);
    let (mut sealed, peer) = dial(state, site, address, deadline)?;
    sealed.say(&First::Words, deadline)?;
    match Line::read(&sealed.hear(deadline)?) {
        Some(Line::Ok) => talk(state, sealed, peer, Some(address)),
        Some(Line::No(refusal)) => Err(wrong(refusal)),
        _ => Err(wrong("it does not answer as a gateway does")),
    }
}

/// Speaks with another gateway until the connection ends. `dialled` is where we dialled, if we did.
pub(crate) fn talk(
    state: &Arc<State>,
    sealed: Sealed,
    peer: SitePeer,
    dialled: Option<&str>,
) -> io::Result<()> {
    let registered = state.live.add(Entry::new(Kind::Words, &peer.site));
    let registered = registered.map_err(wrong)?;
    registered.attach(Some(peer.clone()), &[sealed.socket()])?;
    if !state.is_still_allowed(&peer, None) {
        return Err(wrong("it is not believed any more"));
    }
    let (bell, rung) = UnixStream::pair()?;
    bell.set_nonblocking(true)?;
    rung.set_nonblocking(true)?;
    let (lines, queue) = mpsc::sync_channel(MAX_QUEUE);
    let words = Words {
        number: registered.number,
        gateway: peer.gateway.clone(),
        dialled: dialled.map(str::to_owned),
        since: Instant::now(),
        round_trip: Arc::default(),
        lines,
        bell: Arc::new(bell),
    };
    lock(&state.words)
        .entry(peer.site.clone())
        .or_default()
        .push(words.clone());
    *lock(&state.site(&peer.site).failure) = None;
    state.tell(&format!(
        "site \"{}\" is connected: {}",
        peer.site,
        words.way()
    ));
    let listed = Listed {
        state,
        site: &peer.site,
        number: registered.number,
    };
    let talk = Talk {
        state,
        sealed,
        peer: peer.clone(),
        words,
        queue,
        rung,
        pinged: None,
        coming: Arc::default(),
    };
    let ended = talk.go_on();
    drop(listed);
    let how = match &ended {
        Ok(()) => "as it should".to_owned(),
        Err(error) => error.to_string(),
    };
    state.tell(&format!(
        "a connection with site \"{}\" has ended: {how}",
        peer.site
    ));
    ended
}

/// While this lives, others find the connection; who waits for something from it is told when it ends.
struct Listed<'a> {
    state: &'a State,
    site: &'a str,
    number: u64,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        if let Some(links) = lock(&self.state.words).get_mut(self.site) {
            links.retain(|words| words.number != self.number);
        }
        // Those who waited see that nobody is left who could answer.
        lock(&self.state.wanted).retain(|_, wanted| wanted.over != self.number);
    }
}

/// One conversation.
struct Talk<'a> {
    state: &'a Arc<State>,
    sealed: Sealed,
    peer: SitePeer,
    words: Words,
    queue: Receiver<Line>,
    rung: UnixStream,
    /// What we asked last, and when.
    pinged: Option<(u64, Instant)>,
    /// Connections that the other gateway wants from us and that are being made.
    coming: Arc<AtomicUsize>,
}

impl Talk<'_> {
    fn go_on(mut self) -> io::Result<()> {
        let ping = self.state.pace.ping;
        let (mut heard, mut next) = (Instant::now(), Instant::now());
        loop {
            for _ in 0..LINES {
                let Some(line) = self.sealed.hear_now()? else {
                    break;
                };
                heard = Instant::now();
                self.handle(&line)?;
            }
            while let Ok(line) = self.queue.try_recv() {
                self.sealed.say(&line, after(self.state.pace.hello))?;
            }
            let now = Instant::now();
            if now.duration_since(heard) > 3 * ping {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "nothing was heard of it",
                ));
            }
            if now >= next {
                let number = self.state.ticket();
                self.pinged = Some((number, now));
                self.sealed
                    .say(&Line::Ping(number), after(self.state.pace.hello))?;
                next = now + ping;
            }
            self.wait(next)?;
        }
    }

    /// Waits until something is heard or to be said.
    fn wait(&mut self, until: Instant) -> io::Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(wrong)?;
        let mut fds = [
            PollFd::from_borrowed_fd(self.sealed.socket().as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.rung.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let _ = self.rung.read(&mut [0; 64]);
        Ok(())
    }

    fn handle(&mut self, line: &str) -> io::Result<()> {
        let deadline = after(self.state.pace.hello);
        match Line::read(line) {
            Some(Line::Ping(number)) => self.sealed.say(&Line::Pong(number), deadline),
            Some(Line::Pong(number)) => {
                if let Some((_, asked)) = self.pinged.take_if(|(asked, _)| *asked == number) {
                    *lock(&self.words.round_trip) = Some(asked.elapsed());
                }
                Ok(())
            }
            Some(Line::Want { ticket, job, thing }) if self.words.dialled.is_some() => {
                self.come(ticket, job, thing);
                Ok(())
            }
            Some(Line::Not { ticket, why }) if self.words.dialled.is_none() => {
                let mut wanted = lock(&self.state.wanted);
                let is_theirs = |wanted: &Wanted| wanted.over == self.words.number;
                if wanted.get(&ticket).is_some_and(is_theirs) {
                    if let Some(Wanted { waiting, .. }) = wanted.remove(&ticket) {
                        let _ = waiting.send(Err(why));
                    }
                }
                Ok(())
            }
            _ => Err(wrong("it does not speak as a gateway does")),
        }
    }

    /// Dials the other site, which cannot dial us, and joins that with what it wants.
    fn come(&self, ticket: u64, job: String, thing: String) {
        let (state, words) = (Arc::clone(self.state), self.words.clone());
        let refuse = |words: &Words, why: &str| {
            let why = Refusal::new(Refusal::TOO_MUCH, why);
            words.say(Line::Not { ticket, why });
        };
        let coming = Coming::new(&self.coming);
        if self.coming.load(Ordering::Relaxed) > MAX_COMING {
            return refuse(&words, "too much is wanted at a time; try again");
        }
        let site = self.peer.site.clone();
        let come = move || {
            let there = be_there(&state, &words, &site, ticket, &job, &thing);
            drop(coming);
            match there {
                Ok((stream, inside, outside, peer)) => {
                    let _ = join(&state, &stream, peer, &job, &inside, &outside);
                }
                Err(why) => drop(words.say(Line::Not { ticket, why })),
            }
        };
        let thread = thread::Builder::new().name("come".into());
        if thread.stack_size(4 * STACK).spawn(come).is_err() {
            refuse(&self.words, "the gateway has no threads left");
        }
    }
}

/// One more is being made while this lives.
struct Coming(Arc<AtomicUsize>);

impl Coming {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Ends = (Registered, TcpStream, TcpStream, SitePeer);

fn be_there(
    state: &Arc<State>,
    words: &Words,
    site: &str,
    ticket: u64,
    job: &str,
    thing: &str,
) -> Result<Ends, Refusal> {
    state.may_meet(site, job)?;
    let mut entry = Entry::new(Kind::Stream, site);
    entry.job = Some(job.to_owned());
    let stream = state.live.add(entry)?;
    let inside = reach_in(state, site, job, thing)?;
    let address = words.dialled.as_deref().unwrap_or_default();
    let first = First::Come { ticket };
    let come = ask(state, site, address, &first, after(state.pace.wish));
    let (outside, peer) = come.map_err(|refusal| match refusal.code {
        // How we get out is nobody's business: it is told to who runs this gateway.
        Refusal::UNREACHABLE => {
            state.tell(&refusal.sentence);
            Refusal::new(Refusal::UNREACHABLE, "the other gateway could not dial")
        }
        _ => refusal,
    })?;
    Ok((stream, inside, outside, peer))
}

/// Connections that are made for one gateway at a time.
const MAX_COMING: usize = 64;
/// Lines that are listened to before something is said.
const LINES: usize = 32;
/// Lines that wait to be said.
const MAX_QUEUE: usize = 256;
