//! The half that leads: its launcher is that of the whole job.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::Context;
use mizzen_agent::Signals;
use mizzen_site::Offered;

use super::rendezvous::{Rendezvous, wait};
use crate::hosts::Host;
use crate::run::cast::{Cast, Half, own_hosts};
use crate::run::launcher::Launcher;
use crate::run::options::Run;
use crate::run::other_half::{Far, Hello, Lines, Part, Tunnel, Welcome, hear, say};
use crate::run::printer::{self, Printer};

/// Waits for the other half, then runs the whole.
pub(super) fn lead(
    options: &Run,
    rendezvous: &Rendezvous,
    signals: Signals,
    mut printer: Printer,
) -> anyhow::Result<u8> {
    let (cast, far, streams) = be_met(options, rendezvous, &signals, &mut printer)?;
    let links = cast.links(options, streams)?;
    let launcher = Launcher::start(options, cast, links, Some(far), signals, printer)?;
    launcher.serve()
}

type Met = (Cast, Far, Vec<UnixStream>);

fn be_met(
    options: &Run,
    rendezvous: &Rendezvous,
    signals: &Signals,
    printer: &mut Printer,
) -> anyhow::Result<Met> {
    let listener =
        TcpListener::bind(("0.0.0.0", 0)).context("nowhere to listen for the other half")?;
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
    loop {
        wait(signals, Some(listener.as_fd()), Duration::from_secs(1))?;
        // The gateway may have been started again.
        if offered.as_ref().is_none_or(Offered::has_ended) {
            offered = rendezvous.door.offer(meeting, LEADER, at).ok();
        }
        let Ok((socket, _)) = listener.accept() else {
            continue;
        };
        match greet(options, rendezvous, socket) {
            Ok(met) => return Ok(met),
            // Somebody else may still come.
            Err(error) => printer.say(&format!(
                "somebody came who is not the other half: {error:#}."
            )),
        }
        printer.write(mizzen_proto::boot::Stream::Err);
    }
}

fn greet(options: &Run, rendezvous: &Rendezvous, socket: TcpStream) -> anyhow::Result<Met> {
    socket.set_nonblocking(false)?;
    let mut tls = rendezvous.shared.shake(Part::Leader, &socket)?;
    let hello: Hello = hear(&mut tls, &socket)?;
    let cast = agree(options, rendezvous, &hello);
    let cast = match cast {
        Ok(cast) => cast,
        Err(error) => {
            let why = Welcome::No(format!("{error:#}"));
            let _ = say(&mut tls, &socket, &why);
            return Err(error);
        }
    };
    let (first, size) = (options.processes, cast.places.len() as u32);
    say(&mut tls, &socket, &Welcome::Met { first, size })?;
    // A host each, its gateway, and one for the launchers' own words.
    let (tunnel, mut ends) = Tunnel::open(socket, tls, hello.hosts.len() + 2)?;
    let lines = Lines::new(ends.pop().context("an end is missing")?)?;
    Ok((cast, Far { lines, tunnel }, ends))
}

fn agree(options: &Run, rendezvous: &Rendezvous, hello: &Hello) -> anyhow::Result<Cast> {
    hello.check()?;
    for ((name, here), (_, there)) in options.agreed().iter().zip(&hello.agreed) {
        anyhow::ensure!(
            here == there,
            "{name} is {here} at site \"{}\" and {there} at site \"{}\"; give the same at both",
            rendezvous.site,
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
    Cast::of_halves(rendezvous.meeting.job(), leader, other)
}

/// What the leader's launcher is offered as.
pub(super) const LEADER: &str = "launcher";
