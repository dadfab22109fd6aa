//! The half that leads: its launcher is that of the whole job.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use mizzen_agent::Signals;
use mizzen_site::Offered;

use super::rendezvous::{Patience, Rendezvous, wait};
use crate::distance::{LEAST, round_trip, send_memory, streams};
use crate::hosts::Host;
use crate::run::cast::{Cast, Half, Way, own_hosts};
use crate::run::launcher::Launcher;
use crate::run::options::Run;
use crate::run::other_half::{
    Far, Hello, Lines, Part, Timed, Tunnel, Welcome, hear, printable, say,
};
use crate::run::printer::{self, Printer};

/// Waits for the other half, then runs the whole.
pub(super) fn lead(
    options: &Run,
    rendezvous: &Rendezvous,
    signals: Signals,
    printer: Printer,
) -> anyhow::Result<u8> {
    let (cast, far, streams) = be_met(options, rendezvous, &signals)?;
    let links = cast.links(options, streams)?;
    let launcher = Launcher::start(options, cast, links, Some(far), signals, printer)?;
    launcher.serve()
}

type Met = (Cast, Far, Vec<UnixStream>);

fn be_met(options: &Run, rendezvous: &Rendezvous, signals: &Signals) -> anyhow::Result<Met> {
    let anywhere: IpAddr = match rendezvous.door_at {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let listener = TcpListener::bind((anywhere, 0));
    let listener = listener.context("nowhere to listen for the other half")?;
    listener.set_nonblocking(true)?;
    let at = listener.local_addr()?;
    let meeting = &rendezvous.meeting;
    let mut offered: Option<Offered> = Some(rendezvous.door.offer(meeting, LEADER, at)?);
    printer::say(&format!(
        "waiting for the half of \"{}\" at site \"{}\": there, `mizzen run --meet {}@{} …`.",
        meeting.job(),
        meeting.site(),
        meeting.job(),
        rendezvous.site
    ));
    let mut patience = Patience::default();
    loop {
        wait(signals, Some(listener.as_fd()), Duration::from_secs(1))?;
        // The gateway may have been started again.
        if offered.as_ref().is_none_or(Offered::has_ended) {
            offered = rendezvous.door.offer(meeting, LEADER, at).ok();
        }
        patience.look(rendezvous);
        let Ok((socket, _)) = listener.accept() else {
            continue;
        };
        // If it is not to be, somebody else may still come.
        match greet_meanwhile(options, rendezvous, signals, socket)? {
            Ok(met) => return Ok(met),
            Err(Sent::Stranger(error)) => printer::say(&format!(
                "somebody came who is not the other half: {error:#}."
            )),
            Err(Sent::Away(error)) => printer::say(&format!(
                "the half at site \"{}\" was sent away, and may come again: {error:#}.",
                meeting.site()
            )),
        }
    }
}

/// Why somebody who came is not met.
enum Sent {
    /// It did not prove to be the other half.
    Stranger(anyhow::Error),
    /// It is, and wants something else than we do.
    Away(anyhow::Error),
}

impl From<anyhow::Error> for Sent {
    fn from(error: anyhow::Error) -> Self {
        Self::Stranger(error)
    }
}

/// Greets somebody, while the user may change their mind.
fn greet_meanwhile(
    options: &Run,
    rendezvous: &Rendezvous,
    signals: &Signals,
    socket: TcpStream,
) -> anyhow::Result<Result<Met, Sent>> {
    let end = socket.try_clone()?;
    thread::scope(|scope| {
        let greeting = scope.spawn(|| greet(options, rendezvous, socket));
        while !greeting.is_finished() {
            wait(signals, None, Duration::from_millis(20)).inspect_err(|_| {
                let _ = end.shutdown(Shutdown::Both);
            })?;
        }
        let met = greeting.join();
        met.map_err(|_| anyhow::anyhow!("a greeting went wrong"))
    })
}

fn greet(options: &Run, rendezvous: &Rendezvous, socket: TcpStream) -> Result<Met, Sent> {
    let mut timed = Timed::new(&socket, GREETING).context("no connection")?;
    let mut tls = rendezvous.shared.shake(Part::Leader, &mut timed)?;
    let hello: Hello = hear(&mut tls, &mut timed)?;
    let cast = agree(options, rendezvous, &hello).map_err(|error| {
        let why = Welcome::No(format!("{error:#}"));
        let _ = say(&mut tls, &mut timed, &why);
        Sent::Away(error)
    })?;
    let (first, size) = (options.processes, cast.places.len() as u32);
    say(&mut tls, &mut timed, &Welcome::Met { first, size })?;
    printer::say(&format!(
        "met the half at site \"{}\": {}.",
        rendezvous.meeting.site(),
        ranks_of(0, first, size)
    ));
    // A host each, its gateway, and one for the launchers' own words.
    let (tunnel, mut ends) = Tunnel::open(socket, tls, hello.hosts.len() + 2)?;
    let lines = ends.pop().context("an end is missing")?;
    let lines = Lines::new(lines).context("no descriptor left")?;
    Ok((cast, Far::new(lines, tunnel), ends))
}

fn agree(options: &Run, rendezvous: &Rendezvous, hello: &Hello) -> anyhow::Result<Cast> {
    hello.check()?;
    for ((name, here), (_, there)) in options.agreed().iter().zip(&hello.agreed) {
        anyhow::ensure!(
            here == there,
            "{name} is {here} at site \"{}\" and {} at site \"{}\"; give the same at both",
            rendezvous.site,
            printable(there),
            rendezvous.meeting.site()
        );
    }
    let there = rendezvous.meeting.site();
    let hosts = hello.hosts.iter().map(|(name, bind)| Host::new(name, bind));
    let other = Half {
        site: there,
        processes: hello.processes,
        hosts: hosts.collect(),
        door: hello.door.clone(),
    };
    let leader = Half {
        site: &rendezvous.site,
        processes: options.processes,
        hosts: own_hosts(options)?,
        door: rendezvous.door_at.to_string(),
    };
    let trip = round_trip(&rendezvous.door.status()?, there).unwrap_or_default();
    let streams = match options.rate {
        Some(rate) => streams(rate, trip, send_memory()),
        None => LEAST,
    };
    let rate = options.rate;
    let way = Way { streams, rate };
    Cast::of_halves(rendezvous.meeting.job(), leader, other, &way)
}

/// Which ranks of a job are a site's.
pub(super) fn ranks_of(first: u32, end: u32, size: u32) -> String {
    match end - first {
        1 => format!("rank {first} of {size} is this site's"),
        _ => format!("ranks {first} to {} of {size} are this site's", end - 1),
    }
}

/// How long somebody who comes may take to prove who it is.
const GREETING: Duration = Duration::from_secs(10);
/// What the leader's launcher is offered as.
pub(super) const LEADER: &str = "launcher";
