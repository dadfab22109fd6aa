//! What is to be simulated: a cluster, who runs on it, and what must hold.

use mizzen_proto::time::Time;

use crate::ids::{HostId, MachineId, Place};
use crate::machine::Machine;
use crate::options::Options;
use crate::tally::{Marks, Traffic};

/// A scenario with its oracles. One value of it runs one history.
pub trait World {
    /// Its machines; an enum if there are several kinds.
    type Machine: Machine;

    /// Who is where, and what may go wrong.
    fn layout(&self) -> Layout;

    /// A life begins.
    fn machine(&mut self, place: Place) -> Self::Machine;

    /// Something is known of a machine that it does not tell itself.
    ///
    /// # Errors
    /// An oracle does not agree.
    fn handle_truth(&mut self, now: Time, truth: Truth) -> Result<(), Violation> {
        let _ = (now, truth);
        Ok(())
    }

    /// A machine told what an observer of it would see.
    ///
    /// # Errors
    /// An oracle does not agree.
    fn handle_note(
        &mut self,
        now: Time,
        place: Place,
        note: <Self::Machine as Machine>::Note,
    ) -> Result<(), Violation>;

    /// Whether nothing more is to be expected: asked in the calm phase only.
    fn is_done(&self) -> bool {
        false
    }

    /// The history is over. `lives` are the machines that live now, by number.
    ///
    /// # Errors
    /// An oracle does not agree.
    fn finish(
        &mut self,
        now: Time,
        lives: &[Option<Self::Machine>],
        marks: &mut Marks,
    ) -> Result<(), Violation>;
}

/// Who is where, and what may go wrong.
#[derive(Debug, Clone)]
pub struct Layout {
    /// How many hosts there are.
    pub hosts: u32,
    /// Each machine, by its number.
    pub machines: Vec<Seat>,
    /// The frame of the history.
    pub options: Options,
}

/// Where a machine is, and how it comes to live.
#[derive(Debug, Clone, Copy)]
pub struct Seat {
    /// Its host.
    pub host: HostId,
    /// Whether it lives from the start, and whenever its host starts again. Otherwise another machine spawns it.
    pub starts: bool,
    /// Whether it may crash, or its host lose power.
    pub may_crash: bool,
}

impl Seat {
    /// One that lives from the start, and may crash.
    pub const fn on(host: HostId) -> Self {
        Self {
            host,
            starts: true,
            may_crash: true,
        }
    }
}

/// What only the simulator knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// A life began.
    Started(Place),
    /// A life ended.
    Ended(Place),
    /// Nothing goes wrong any more.
    Calm,
    /// A host does nothing from now on.
    Paused(HostId),
    /// It goes on.
    Resumed(HostId),
    /// Nothing gets from the first host to the second from now on.
    Cut(HostId, HostId),
    /// It does again.
    Healed(HostId, HostId),
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle says so.
    pub oracle: &'static str,
    /// What it saw.
    pub what: String,
}

impl Violation {
    /// An oracle does not agree.
    pub fn new(oracle: &'static str, what: impl Into<String>) -> Self {
        Self {
            oracle,
            what: what.into(),
        }
    }
}

/// What one history came to.
#[derive(Debug, Clone)]
pub struct Report {
    /// What must not be, if it was.
    pub violation: Option<Violation>,
    /// Equal for equal histories.
    pub hash: u64,
    /// The history, if it was recorded.
    pub lines: Vec<String>,
    /// What occurred.
    pub marks: Marks,
    /// What each machine sent and got.
    pub traffic: Vec<Traffic>,
    /// How many things happened.
    pub events: u64,
    /// When it was over.
    pub ended: Time,
}

impl Report {
    /// The machine that sent and got the most messages.
    pub fn busiest(&self) -> Option<(MachineId, Traffic)> {
        let all = self.traffic.iter().enumerate();
        let busiest = all.max_by_key(|(_, traffic)| traffic.sent + traffic.received)?;
        Some((MachineId(busiest.0 as u32), *busiest.1))
    }
}
