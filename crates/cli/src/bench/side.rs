//! One side of a measurement, and what it shares with the others.

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use mizzen::{Deck, Mailbox, MailboxRef};
use rustix::thread::CpuSet;
use rustix::time::{ClockId, clock_gettime};

use super::figures::Said;
use super::meeting::Meeting;
use super::memory::Memory;
use super::plan::{Path, Plan};

/// A participant, and what it shares with the others.
pub(crate) struct Side {
    pub(crate) number: usize,
    pub(crate) plan: Plan,
    pub(crate) deck: Deck,
    pub(crate) memory: Memory,
    pub(crate) meeting: Meeting,
    /// How many mailboxes it has bound: their names are numbered.
    bound: u32,
}

impl Side {
    pub(crate) fn new(
        number: usize,
        plan: Plan,
        deck: Deck,
        memory: Memory,
    ) -> anyhow::Result<Self> {
        if let Some(core) = plan.cores.get(number) {
            pin(*core)?;
        }
        let meeting = Meeting::new(memory, number, plan.participants() as usize);
        Ok(Self {
            number,
            plan,
            deck,
            memory,
            meeting,
            bound: 0,
        })
    }

    pub(crate) fn is_first(&self) -> bool {
        self.number == 0
    }

    /// A mailbox here, and the address of the one that the other side makes in the same step.
    pub(crate) fn mailboxes(&mut self) -> anyhow::Result<(Mailbox, MailboxRef)> {
        self.bound += 1;
        connect(&self.deck, self.number, &self.bound.to_string())
    }

    /// Sets the shared memory to zero for the next measurement.
    pub(crate) fn clear_memory(&mut self) {
        self.meeting.meet();
        if self.is_first() {
            self.memory.clear();
        }
        self.meeting.meet();
    }

    /// Tells the front end; the first side only.
    pub(crate) fn say(&self, said: &Said) -> anyhow::Result<()> {
        if self.is_first() {
            let mut line = serde_json::to_string(said)?;
            line.push('\n');
            std::io::stdout().write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// Processor time that all participants have used.
    pub(crate) fn processor_time(&mut self) -> Duration {
        let mine = spent(ClockId::ProcessCPUTime);
        let all = self.meeting.gather(mine.as_secs_f64());
        match self.plan.path {
            Path::Thread => mine,
            // Each member tells that of its process.
            _ => {
                Duration::from_secs_f64(all.iter().sum::<f64>() / f64::from(self.plan.members_each))
            }
        }
    }
}

/// Keeps this thread on a core.
pub(crate) fn pin(core: usize) -> anyhow::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    rustix::thread::sched_setaffinity(None, &cores)
        .with_context(|| format!("core {core} cannot be used; try --no-pin"))
}

/// A mailbox of side `number` that is called `name`, and the address of the other side's.
pub(crate) fn connect(
    deck: &Deck,
    number: usize,
    name: &str,
) -> anyhow::Result<(Mailbox, MailboxRef)> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("side {number}, {name}"), &inbox)?;
    let other = deck.fetch(&format!("side {}, {name}", 1 - number))?;
    Ok((inbox, other))
}

/// Processor time by one of the clocks that count it.
pub(crate) fn spent(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
