//! Waiting until what was posted is with those it was posted to.

use std::time::{Duration, Instant};

use tracing::{debug, warn};

use super::Process;
use crate::error::{FlushError, Messages};
use crate::net::Networks;
use crate::progress::Progress;
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Contention, Noted, Patience, Step};

/// How long a thread that flushes sleeps before it looks again.
const NAP: Duration = Duration::from_micros(200);

impl Process {
    /// Waits until each process has what was posted to it, or is gone, or `deadline`.
    pub(crate) fn flush_until(&self, deadline: Option<Instant>) -> Result<(), FlushError> {
        let since = Instant::now();
        let contention = Contention::default();
        let mut patience = Patience::until(deadline, &contention);
        let mut marks = None;
        let mut noted = Noted::default();
        loop {
            self.pump_all();
            // What waits for its reader has no number yet.
            let late = self.waiting().or_else(|| {
                let networks = self.networks.get()?;
                let marks = marks.get_or_insert_with(|| networks.begin_flush());
                marks.retain(|mark| !mark.is_flushed());
                marks.first().map(|mark| (mark.peer(), mark.messages()))
            });
            let Some((peer, messages)) = late else {
                return self.tell_first_untaken();
            };
            match patience.step() {
                Step::Again => (),
                Step::Expired(_) => {
                    return Err(FlushError::TimedOut {
                        rank: peer.rank,
                        messages,
                        waited: since.elapsed(),
                    });
                }
                Step::Sleep(nap) => {
                    let what = || format!("for rank {peer} to take what was posted to it");
                    let waits = || WaitsFor::one(Kind::Room, peer.rank, what());
                    noted.keep(&mut patience, waits);
                    if let Some(waited) = patience.remarkable() {
                        Progress::remark(self, waited, &what());
                    }
                    std::thread::sleep(nap.min(NAP));
                }
            }
        }
    }

    fn tell_first_untaken(&self) -> Result<(), FlushError> {
        match self.networks.get().and_then(Networks::take_untaken) {
            None => Ok(()),
            Some((gone, untaken)) => Err(FlushError::PeerGone {
                gone,
                messages: untaken.messages,
                uncertain: untaken.uncertain,
            }),
        }
    }

    /// Has the user told what nobody took, when the process leaves. Of who left, only [`flush_until`](Self::flush_until) tells.
    pub(super) fn tell_untaken(&self) {
        while let Some((gone, untaken)) = self.networks.get().and_then(Networks::take_untaken) {
            let (messages, perhaps) = (Messages(untaken.messages), untaken.perhaps());
            let text = format!("posted {messages} that nobody took{perhaps}: {gone}");
            if gone.is_failure() {
                warn!(parent: &self.span, "{text}");
                self.neighbours.remark(text);
            } else {
                // Those who part need not hear each other's last words: of services, mostly.
                debug!(parent: &self.span, "{text}");
            }
        }
    }
}
