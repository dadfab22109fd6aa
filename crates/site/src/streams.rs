//! From a wish to two ends that are joined.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use mizzen_identity::SitePeer;
use mizzen_tcp::{Answer, Through};

use crate::live::Registered;
use crate::lock::lock;
use crate::meeting::Meeting;
use crate::pump::{self, Passed};
use crate::refusal::Refusal;
use crate::sealed::{Sealed, wrong};
use crate::state::{Come, State, Wanted, after};
use crate::word::{First, Line};
use crate::words::Words;

/// Connects with something that is offered at another site: we dial, if we know where to, or have the other site dial.
pub(crate) fn reach_out(state: &State, meeting: &Meeting, thing: &str) -> Come {
    let deadline = after(state.pace.wish);
    let file = state.file();
    let addresses: Vec<&String> = file
        .site(meeting.site())
        .into_iter()
        .flat_map(|site| &site.reach)
        .collect();
    let mut why = None;
    for (tried, address) in addresses.iter().enumerate() {
        let (job, thing) = (meeting.job().to_owned(), thing.to_owned());
        let first = First::Stream { job, thing };
        // One that does not answer leaves time for the others.
        let share = share(deadline, addresses.len() - tried);
        match ask(state, meeting.site(), address, &first, share) {
            Ok(come) => return Ok(come),
            Err(refusal) => why = Some(worse(why, refusal)),
        }
    }
    have_dialled(state, meeting, thing, deadline, why).map_err(|why| {
        why.unwrap_or_else(|| {
            let site = meeting.site();
            let sentence = format!("site \"{site}\" is not connected with this one, and has to dial it; `mizzen site status` says more");
            Refusal::new(Refusal::UNREACHABLE, sentence)
        })
    })
}

/// Until when the first of so many may take.
fn share(deadline: Instant, candidates: usize) -> Instant {
    let left = deadline.saturating_duration_since(Instant::now());
    Instant::now() + left / u32::try_from(candidates.max(1)).unwrap_or(1)
}

/// What is told if two gateways of a site refuse: that it is not there, only if it is not forbidden.
fn worse(before: Option<Refusal>, now: Refusal) -> Refusal {
    match before {
        Some(before) if before.code == Refusal::FORBIDDEN || now.code == Refusal::UNREACHABLE => {
            before
        }
        _ => now,
    }
}

/// Dials a gateway of a site, and says what for.
pub(crate) fn ask(
    state: &State,
    site: &str,
    address: &str,
    first: &First,
    deadline: Instant,
) -> Come {
    let unreachable = |error: io::Error| {
        let sentence =
            format!("the gateway of site \"{site}\" at {address} cannot be reached: {error}");
        Refusal::new(Refusal::UNREACHABLE, sentence)
    };
    let (mut sealed, peer) = dial(state, site, address, deadline).map_err(unreachable)?;
    sealed.say(first, deadline).map_err(unreachable)?;
    let line = sealed.hear(deadline).map_err(unreachable)?;
    match Line::read(&line) {
        Some(Line::Ok) => Ok((sealed.into_raw().map_err(unreachable)?, peer)),
        Some(Line::No(refusal)) => Err(refusal),
        _ => Err(unreachable(wrong("it does not answer as a gateway does"))),
    }
}

/// A connection with a gateway, which has proved to be one of that site.
pub(crate) fn dial(
    state: &State,
    site: &str,
    address: &str,
    deadline: Instant,
) -> io::Result<(Sealed, SitePeer)> {
    let file = state.file();
    let socket = match &file.proxy {
        None => connect(address, deadline)?,
        Some(proxy) => {
            let socket = connect(proxy, deadline)?;
            let there = socket.peer_addr()?;
            through(&socket, &Through::new(there), address, left(deadline))
                .map_err(|error| wrong(format!("the proxy at {proxy} does not help: {error}")))?;
            socket
        }
    };
    let (sealed, peer) = Sealed::dialled(socket, &state.credentials, deadline)?;
    if peer.site != site {
        return Err(wrong(format!("it is one of site \"{}\"", peer.site)));
    }
    Ok((sealed, peer))
}

fn left(deadline: Instant) -> Duration {
    deadline
        .saturating_duration_since(Instant::now())
        .max(SHORT)
}

/// Connects to a host and a port: to the first of its addresses that answers.
fn connect(address: &str, deadline: Instant) -> io::Result<TcpStream> {
    let mut failure = wrong("it has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Asks a proxy for a connection, on one with it.
pub(crate) fn through(
    socket: &TcpStream,
    through: &Through,
    to: &str,
    patience: Duration,
) -> Result<(), Refusal> {
    request(socket, &through.request(to), patience)
}

/// Asks for something by a head of HTTP, and hears whether it is done.
pub(crate) fn request(socket: &TcpStream, head: &str, patience: Duration) -> Result<(), Refusal> {
    use io::{Read, Write};
    let failed = |error: io::Error| {
        Refusal::new(Refusal::UNREACHABLE, format!("it does not answer: {error}"))
    };
    let mut stream = socket;
    let deadline = after(patience);
    socket.set_write_timeout(Some(patience)).map_err(failed)?;
    stream.write_all(head.as_bytes()).map_err(failed)?;
    let (mut head, mut byte) = (Vec::new(), [0]);
    loop {
        socket
            .set_read_timeout(Some(left(deadline)))
            .map_err(failed)?;
        // One at a time: what follows the head is not ours.
        stream.read_exact(&mut byte).map_err(failed)?;
        head.push(byte[0]);
        match Answer::read(&head) {
            Answer::NotAll if Instant::now() < deadline => {}
            Answer::NotAll => return Err(failed(io::ErrorKind::TimedOut.into())),
            Answer::Connected => return Ok(()),
            Answer::Refused { code, reason } => return Err(Refusal::told(code, &reason)),
            Answer::Nonsense => {
                return Err(Refusal::new(
                    Refusal::BAD,
                    "it does not answer as a proxy does",
                ));
            }
        }
    }
}

/// Has the other site dial us, over any connection for words that it has with us. `why` is why we could not dial it.
fn have_dialled(
    state: &State,
    meeting: &Meeting,
    thing: &str,
    deadline: Instant,
    mut why: Option<Refusal>,
) -> Result<(TcpStream, SitePeer), Option<Refusal>> {
    let links = lock(&state.words).get(meeting.site()).cloned();
    let links: Vec<Words> = links
        .into_iter()
        .flatten()
        .filter(Words::may_want)
        .collect();
    for (tried, words) in links.iter().enumerate() {
        let ticket = state.ticket();
        let (waiting, come) = mpsc::channel();
        let wanted = Wanted {
            site: meeting.site().to_owned(),
            over: words.number,
            waiting,
        };
        lock(&state.wanted).insert(ticket, wanted);
        let (job, thing) = (meeting.job().to_owned(), thing.to_owned());
        let is_asked = words.say(Line::Want { ticket, job, thing });
        let share = share(deadline, links.len() - tried);
        let come = match is_asked {
            true => come.recv_timeout(share.saturating_duration_since(Instant::now())),
            false => Err(RecvTimeoutError::Disconnected),
        };
        lock(&state.wanted).remove(&ticket);
        let refusal = match come {
            Ok(Ok(come)) => return Ok(come),
            Ok(Err(refusal)) => refusal,
            Err(_) => {
                let sentence = format!(
                    "site \"{}\" did not dial us in time; `mizzen site status` there may say why",
                    meeting.site()
                );
                Refusal::new(Refusal::UNREACHABLE, sentence)
            }
        };
        why = Some(worse(why, refusal));
    }
    Err(why)
}

/// Connects with something that is offered here, for another site.
pub(crate) fn reach_in(
    state: &State,
    site: &str,
    job: &str,
    thing: &str,
) -> Result<TcpStream, Refusal> {
    let at = state.offered(site, job, thing)?;
    TcpStream::connect_timeout(&at, state.pace.hello).map_err(|error| {
        let sentence = format!(
            "\"{thing}\" of {job} is offered at site \"{}\", and does not answer: {error}",
            state.file().name
        );
        Refusal::new(Refusal::UNREACHABLE, sentence)
    })
}

/// Passes bytes between two ends until they end, or are not allowed to go on. `stream` is what they are counted as.
pub(crate) fn join(
    state: &State,
    stream: &Registered,
    peer: SitePeer,
    job: &str,
    inside: &TcpStream,
    outside: &TcpStream,
) -> io::Result<()> {
    stream.attach(Some(peer.clone()), &[inside, outside])?;
    if state.is_still_allowed(&peer, Some(job)) {
        let site = state.site(&peer.site);
        let passed: &Passed = &site.passed;
        pump::pass(inside, outside, passed);
    }
    Ok(())
}

/// Whether this may be a door of a gateway, ours or another of the site: who got in there from outside could go on to another site. Those
/// of one site usually have the same ports.
pub(crate) fn is_own_door(state: &State, at: SocketAddr) -> bool {
    state.doors.iter().any(|door| door.port() == at.port())
}

/// A system call that takes a time takes none that is zero.
const SHORT: Duration = Duration::from_millis(1);
