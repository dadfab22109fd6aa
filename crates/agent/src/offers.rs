//! What a gateway offers to another site, at the gateway of its own.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use mizzen_proto::boot;
use mizzen_site::{Door, Meeting};

/// Offers where a driver listens, under each of its addresses: that is how others ask for it. Goes on for as long as this program lives;
/// the site's gateway may end and come back.
pub(crate) fn offer(door: &boot::Door, locator: &impl std::fmt::Display) -> anyhow::Result<()> {
    let at = door.at.parse();
    let at = at.with_context(|| format!("the gateway of the site cannot be at {:?}", door.at))?;
    let meeting: Meeting = door.meeting.parse()?;
    let (mut is_offered, mut failure) = (false, None);
    for thing in locator.to_string().split(',') {
        let address: SocketAddr = thing.parse().context("it listens at what is no address")?;
        let (door, meeting, thing) = (Door::new(at), meeting.clone(), thing.to_owned());
        let mut offered = match door.offer(&meeting, &thing, address) {
            Ok(offered) => {
                is_offered = true;
                Some(offered)
            }
            // A host may have addresses from which the gateway is not reached.
            Err(error) => {
                failure = Some(error);
                None
            }
        };
        let keep = move || {
            loop {
                if let Some(mut offered) = offered.take() {
                    offered.wait_for_end();
                }
                thread::sleep(AGAIN);
                offered = door.offer(&meeting, &thing, address).ok();
            }
        };
        let keeper = thread::Builder::new().name("offer".into()).spawn(keep);
        keeper.context("no thread to keep an offer up")?;
    }
    match failure.filter(|_| !is_offered) {
        // Who runs this should hear why not.
        Some(failure) => Err(failure.into()),
        None => Ok(()),
    }
}

/// How soon something is offered again that was taken back.
const AGAIN: Duration = Duration::from_millis(500);
