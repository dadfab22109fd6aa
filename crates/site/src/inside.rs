//! The jobs of this site.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::callers::accept;
use crate::live::{Entry, Kind, Stranger};
use crate::lock::lock;
use crate::meeting::Meeting;
use crate::refusal::Refusal;
use crate::request::{MAX_HEAD, Request};
use crate::state::{State, after};
use crate::streams::{is_own_door, join, reach_out};

/// Serves who asks, until the gateway ends.
pub(crate) fn serve(state: &Arc<State>, listener: &TcpListener) {
    accept(
        state,
        listener,
        &state.strangers[1],
        "inside",
        |state, mut socket, stranger| {
            let answered = answer(&state, &socket, stranger);
            if let Err(refusal) = answered {
                let head = format!(
                    "HTTP/1.1 {} {}\r\nContent-Length: 0\r\n\r\n",
                    refusal.code, refusal.sentence
                );
                let _ = socket.write_all(head.as_bytes());
            }
        },
    );
}

fn answer(state: &Arc<State>, socket: &TcpStream, stranger: Stranger) -> Result<(), Refusal> {
    let head = read_head(socket, after(state.pace.hello)).map_err(broken)?;
    drop(stranger);
    match Request::read(&head)? {
        Request::Connect { meeting, thing } => {
            state.may_meet(meeting.site(), meeting.job())?;
            let mut entry = Entry::new(Kind::Stream, meeting.site());
            entry.job = Some(meeting.job().to_owned());
            entry.host = Some(host_of(socket)?.ip());
            let stream = state.live.add(entry)?;
            let (outside, peer) = reach_out(state, &meeting, &thing)?;
            say(socket, "HTTP/1.1 200 Connected\r\n\r\n")?;
            // From here on what is written is not ours.
            let _ = join(state, &stream, peer, meeting.job(), socket, &outside);
            Ok(())
        }
        Request::Offer {
            meeting,
            thing,
            port,
        } => offer(state, socket, &meeting, &thing, port),
        Request::Site => say_text(socket, &format!("{}\n", state.file().name)),
        Request::Status => say_text(socket, &state.status()),
    }
}

/// Offers a port of whoever asks, while the connection with it is up.
fn offer(
    state: &Arc<State>,
    mut socket: &TcpStream,
    meeting: &Meeting,
    thing: &str,
    port: u16,
) -> Result<(), Refusal> {
    state.may_meet(meeting.site(), meeting.job())?;
    // Of its own host only: nobody opens to another site what is not theirs.
    let mut at = host_of(socket)?;
    at.set_port(port);
    if is_own_door(state, at) || port < UNPRIVILEGED {
        let sentence = format!(
            "port {port} is not for jobs: it is that of a gateway, through which whoever came in from another site could go on to the \
             next, or of the host's own services"
        );
        return Err(Refusal::new(Refusal::FORBIDDEN, sentence));
    }
    let mut entry = Entry::new(Kind::Offer, meeting.site());
    entry.job = Some(meeting.job().to_owned());
    entry.host = Some(at.ip());
    let registered = state.live.add(entry)?;
    registered.attach(None, &[socket]).map_err(broken)?;
    lock(&state.offers).offer(registered.number, meeting, thing, at)?;
    let is_allowed = state.may_meet(meeting.site(), meeting.job()).is_ok() && !state.has_ended();
    if is_allowed && say(socket, "HTTP/1.1 200 Offered\r\n\r\n").is_ok() {
        let _ = socket.set_read_timeout(None);
        // Whatever is said now, the end is what counts.
        while matches!(socket.read(&mut [0; 64]), Ok(1..)) {}
    }
    lock(&state.offers).take_back(registered.number);
    Ok(())
}

/// Who asks.
fn host_of(socket: &TcpStream) -> Result<SocketAddr, Refusal> {
    let mut host = socket.peer_addr().map_err(broken)?;
    // An address of IPv6 that stands for one of IPv4 is that one.
    host.set_ip(host.ip().to_canonical());
    Ok(host)
}

fn read_head(mut socket: &TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() >= MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        socket.set_read_timeout(Some(left))?;
        // One at a time: what follows the head is not ours.
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(head)
}

fn say_text(socket: &TcpStream, text: &str) -> Result<(), Refusal> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    say(socket, &(head + text))
}

fn say(mut socket: &TcpStream, text: &str) -> Result<(), Refusal> {
    let _ = socket.set_write_timeout(Some(Duration::from_secs(5)));
    socket.write_all(text.as_bytes()).map_err(broken)
}

fn broken(error: io::Error) -> Refusal {
    Refusal::new(Refusal::BAD, format!("the request did not come: {error}"))
}

/// The first port that is not a service of the host.
const UNPRIVILEGED: u16 = 1024;
