//! A registry without a network: a job whose processes are all of one host, or threads of one test.

use super::{Action, Answer, Question, Registry, Seen};
use crate::boot::Death;
use crate::id::{ProcessId, Rank};
use crate::membership::{AgentId, Entry, Epoch, HostId, Members, News, Pace};
use crate::time::Time;

/// The same machine as each agent has, as the only one: it sends nothing, and its lease is never over.
#[derive(Debug)]
pub struct Alone {
    registry: Registry,
    members: Members,
}

impl Alone {
    /// For the ranks below `size`.
    ///
    /// # Panics
    ///
    /// If there are none, or more than [`MAX_PROCESSES`](crate::boot::MAX_PROCESSES).
    #[must_use]
    pub fn new(size: u32) -> Self {
        let (host, agent) = (HostId(0), AgentId::new(HostId(0), 1));
        let placed = Entry::Placed {
            host,
            first: Rank(0),
            count: size,
        };
        let joined = Entry::HostJoined {
            agent,
            locator: String::new(),
        };
        let mut alone = Self {
            registry: Registry::new(agent, Pace::DEFAULT),
            members: Members::default(),
        };
        assert!(alone.decide(vec![placed, joined]), "a job has processes");
        alone
    }

    /// A process asks. What it is answered comes out of [`poll_answer`](Self::poll_answer), with what others waited for.
    pub fn handle_question(&mut self, process: ProcessId, question: Question) {
        self.registry
            .handle_question(process, question, seen(&self.members));
    }

    /// A process has ended or left: its names are free.
    pub fn handle_ended(&mut self, process: ProcessId, how: Death) {
        self.registry.handle_gone(process, seen(&self.members));
        self.decide(vec![Entry::Ended { process, how }]);
    }

    /// The next life of a process that ended.
    pub fn handle_restarted(&mut self, process: ProcessId) {
        let host = HostId(0);
        self.decide(vec![Entry::Restarted { process, host }]);
    }

    /// The next answer, and whose it is.
    pub fn poll_answer(&mut self) -> Option<(ProcessId, Answer)> {
        loop {
            if let Action::Answer(process, answer) = self.registry.poll_action()? {
                return Some((process, answer));
            }
        }
    }

    /// The machine.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Whether that was possible.
    fn decide(&mut self, entries: Vec<Entry>) -> bool {
        let epoch = Epoch(self.members.epoch().0 + 1);
        let done = self.members.apply_news(&News { epoch, entries }).is_ok();
        self.registry.handle_members(seen(&self.members));
        done
    }
}

/// Without others, time does not matter.
fn seen(members: &Members) -> Seen<'_> {
    Seen {
        members,
        lease: Time(u64::MAX),
        now: Time(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Address, Incarnation, MailboxId};
    use crate::registry::{Asker, Outcome, Patience};

    #[test]
    fn threads_of_a_test_bind_and_fetch() {
        let mut alone = Alone::new(2);
        let process = |rank, life| ProcessId::new(Rank(rank), Incarnation(life));
        let (mut one, mut two) = (Asker::default(), Asker::default());
        alone.handle_question(process(1, 0), two.read("sum", Patience::Wait).unwrap());
        assert_eq!(alone.poll_answer(), None);
        alone.handle_question(process(0, 0), one.bind("sum", MailboxId(7)).unwrap());
        let (who, bound) = alone.poll_answer().unwrap();
        assert_eq!(who, process(0, 0));
        assert_eq!(one.handle_answer(&bound), Ok(true));
        let Some((_, Answer::Found { bound, .. })) = alone.poll_answer() else {
            panic!("the fetch is answered");
        };
        let mailbox = MailboxId(7);
        let address = Address {
            process: process(0, 0),
            mailbox,
        };
        assert_eq!(bound.address, address);
        alone.handle_ended(process(0, 0), Death::Signal(9));
        alone.handle_question(process(1, 0), two.read("sum", Patience::Look).unwrap());
        assert!(matches!(
            alone.poll_answer(),
            Some((_, Answer::Free { .. }))
        ));
        alone.handle_restarted(process(0, 1));
        alone.handle_question(process(0, 1), one.bind("sum", mailbox).unwrap());
        let Some((_, Answer::Done { outcome, .. })) = alone.poll_answer() else {
            panic!("the bind is answered");
        };
        assert!(matches!(outcome, Outcome::Bound(_)));
        assert_eq!(alone.registry().next_wakeup(), None);
    }
}
