//! One end of a connection for words, for those who have something to say.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::word::Line;

/// What is known of the connection, and how something is said there.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    pub(crate) number: u64,
    pub(crate) gateway: String,
    /// Where we dialled, if we did.
    pub(crate) dialled: Option<String>,
    pub(crate) since: Instant,
    pub(crate) round_trip: Arc<Mutex<Option<Duration>>>,
    pub(crate) lines: SyncSender<Line>,
    pub(crate) bell: Arc<UnixStream>,
}

impl Words {
    /// Says something. Whether it can be heard: not if the connection has ended, or more waits there than a gateway has to say.
    pub(crate) fn say(&self, line: Line) -> bool {
        let is_taken = self.lines.try_send(line).is_ok();
        let _ = (&*self.bell).write(&[1]);
        is_taken
    }

    /// Whether the other end knows where to dial us.
    pub(crate) fn may_want(&self) -> bool {
        self.dialled.is_none()
    }

    /// Who dialled whom.
    pub(crate) fn way(&self) -> String {
        let gateway = &self.gateway;
        match &self.dialled {
            Some(address) => format!("dialled {gateway} at {address}"),
            None => format!("dialled by {gateway}"),
        }
    }

    pub(crate) fn describe(&self) -> String {
        let way = self.way();
        let trip = match *lock(&self.round_trip) {
            Some(trip) => format!(", round trip {:.1} ms", trip.as_secs_f64() * 1e3),
            None => String::new(),
        };
        format!("{way} {} s ago{trip}", self.since.elapsed().as_secs())
    }
}
