//! The jobs of this site.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::callers::accept;
use crate::live::{Entry, Stranger};
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
            let (outside, peer) = reach_out(state, &meeting, &thing)?;
            say(socket, "HTTP/1.1 200 Connected\r\n\r\n")?;
            // From here on what is written is not ours.
            let _ = join(state, peer, meeting.job(), socket, &outside);
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
    let host = socket.peer_addr().map_err(broken)?;
    let at = SocketAddr::new(host.ip(), port);
    if is_own_door(state, at) {
        let sentence = "this is a door of the gateway itself: whoever came in there from another site could go on to the next";
        return Err(Refusal::new(Refusal::FORBIDDEN, sentence));
    }
    let about = Some((meeting.site().to_owned(), meeting.job().to_owned()));
    let ends = vec![socket.try_clone().map_err(broken)?];
    let registered = state.live.add(Entry {
        peer: None,
        about,
        ends,
    })?;
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
