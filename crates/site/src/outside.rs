//! Other sites that dial us.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use mizzen_identity::SitePeer;

use crate::callers::accept;
use crate::live::{Entry, Kind, Registered, Stranger};
use crate::lock::lock;
use crate::peering::talk;
use crate::refusal::Refusal;
use crate::sealed::{Sealed, wrong};
use crate::state::{State, Wanted, after};
use crate::streams::{join, reach_in};
use crate::word::{First, Line};

/// Serves who dials, until the gateway ends.
pub(crate) fn serve(state: &Arc<State>, listener: &TcpListener) {
    accept(
        state,
        listener,
        &state.strangers[0],
        "outside",
        |state, socket, stranger| {
            let from = socket
                .peer_addr()
                .map_or_else(|_| "somebody".to_owned(), |at| at.to_string());
            if let Err(error) = admit(&state, socket, stranger) {
                state.tell(&format!("{from} was not let in: {error}"));
            }
        },
    );
}

fn admit(state: &Arc<State>, socket: TcpStream, stranger: Stranger) -> io::Result<()> {
    let deadline = after(state.pace.hello);
    let (mut sealed, peer) = Sealed::accepted(socket, &state.credentials, deadline)?;
    let line = sealed.hear(deadline)?;
    let first = First::read(&line).ok_or_else(|| wrong("it does not speak as a gateway does"))?;
    drop(stranger);
    let deadline = after(state.pace.wish);
    match first {
        First::Words => {
            sealed.say(&Line::Ok, deadline)?;
            // How it ended was told.
            let _ = talk(state, sealed, peer, None);
            Ok(())
        }
        First::Stream { job, thing } => match prepare(state, &peer, &job, &thing) {
            Ok((stream, inside)) => {
                sealed.say(&Line::Ok, deadline)?;
                let outside = sealed.into_raw()?;
                join(state, &stream, peer, &job, &inside, &outside).map_err(wrong)
            }
            Err(refusal) => {
                if refusal.code != Refusal::NOT_OFFERED {
                    state.tell(&format!(
                        "gateway \"{}\" of site \"{}\" was refused: {refusal}",
                        peer.gateway, peer.site
                    ));
                }
                sealed.say(&Line::No(refusal), deadline)
            }
        },
        First::Come { ticket } => {
            let mut wanted = lock(&state.wanted);
            let is_theirs = wanted
                .get(&ticket)
                .is_some_and(|wanted| wanted.site == peer.site);
            let came = is_theirs.then(|| wanted.remove(&ticket)).flatten();
            drop(wanted);
            let Some(Wanted { waiting, .. }) = came else {
                let refusal = Refusal::new(Refusal::FORBIDDEN, "nobody waits for this connection");
                return sealed.say(&Line::No(refusal), deadline);
            };
            sealed.say(&Line::Ok, deadline)?;
            // Who waited may have given up: then it is closed.
            let _ = waiting.send(Ok((sealed.into_raw()?, peer)));
            Ok(())
        }
    }
}

/// The end inside, if there is room for a stream.
fn prepare(
    state: &State,
    peer: &SitePeer,
    job: &str,
    thing: &str,
) -> Result<(Registered, TcpStream), Refusal> {
    state.may_meet(&peer.site, job)?;
    let mut entry = Entry::new(Kind::Stream, &peer.site);
    entry.job = Some(job.to_owned());
    let stream = state.live.add(entry)?;
    let inside = reach_in(state, &peer.site, job, thing)?;
    Ok((stream, inside))
}
