//! Membership: a root, agents and processes, who lives and who knows it (docs/design/membership.md).
//!
//! 3 to 50 processes on 2 to 8 hosts work with each other while everything goes wrong that the simulator knows. The root's host stays,
//! though it may stand still and be cut off. [`MISTAKES`] are the same with something done wrong on purpose.

mod agent;
mod calls;
mod message;
mod names;
mod oracle;
mod plan;
mod process;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use mizzen_proto::membership::{News, Pace, Policy};
use mizzen_proto::time::Time;

use self::agent::Keeper;
use self::message::{Message, Note};
use self::oracle::Oracle;
use self::plan::{Mistake, Plan};
use self::process::Process;
use crate::campaign::Scenario;
use crate::ids::{ConnectionId, MachineId, Place};
use crate::kernel::run;
use crate::machine::{Context, Machine, Opened};
use crate::tally::Marks;
use crate::world::{Layout, Truth, Violation, World};

/// Who lives, and who knows it.
pub const SCENARIO: Scenario = Scenario {
    name: "members",
    about: "who lives, decided by the root: leases, verdicts, news, fences",
    expected: &[],
    sometimes: &[
        "a lease was over",
        "an agent heard that it was lost",
        "a port refused",
        "a job ended",
        "a process was started again",
        "agents spoke with each other",
        "a frame of an ended life was refused",
        "a host was pronounced silent",
        "a host was pronounced absent",
        "a host came back in a new life",
        "a partition",
        "a host paused",
        "a host lost power",
    ],
    run: |seed, record| run(Job::new(seed, None), seed, record),
};

/// Names, and everything that goes wrong.
pub const NAMES: Scenario = Scenario {
    name: "registry",
    about: "names at agents: linear, one owner, numbers that grow, nothing waits for ever",
    expected: &[],
    sometimes: &[
        "a lease was over",
        "a process was started again",
        "a host was pronounced silent",
        "a host came back in a new life",
        "a partition",
        "a host paused",
        "a host lost power",
        "a name was taken",
        "a name was bound",
        "a name was unbound",
        "a name moved",
        "a fetch waited",
        "a fetch was cancelled",
        "a name was free",
        "an answer was remembered",
        "names were handed over",
        "a lease of a name was revoked",
        "a wish was answered in a later view",
    ],
    run: |seed, record| run(Job::of(Plan::with_names(seed)), seed, record),
};

/// Mistakes, each with the oracle that must find it.
pub const MISTAKES: &[Scenario] = &[
    mistake("members-out-of-order", &[oracle::SAME], |seed, record| {
        run(Job::new(seed, Some(Mistake::OutOfOrder)), seed, record)
    }),
    mistake(
        "members-lease-ignored",
        &[oracle::FENCED],
        |seed, record| run(Job::new(seed, Some(Mistake::LeaseIgnored)), seed, record),
    ),
    mistake("members-epoch-counted", &[oracle::GAPS], |seed, record| {
        run(Job::new(seed, Some(Mistake::EpochCounted)), seed, record)
    }),
    mistake("members-stale-beat", &[oracle::FENCED], |seed, record| {
        run(Job::new(seed, Some(Mistake::StaleBeatRenews)), seed, record)
    }),
    mistake("members-no-fence", &[oracle::ENDED], |seed, record| {
        run(Job::new(seed, Some(Mistake::NoFence)), seed, record)
    }),
    mistake("members-dead-unknown", &[oracle::GAPS], |seed, record| {
        run(Job::new(seed, Some(Mistake::DeadUnknown)), seed, record)
    }),
    mistake("members-hasty", &[oracle::FENCED], |seed, record| {
        run(Job::new(seed, Some(Mistake::HastyVerdict)), seed, record)
    }),
    mistake("members-no-answer", &[oracle::FENCED], |seed, record| {
        run(
            Job::new(seed, Some(Mistake::SilenceIsRefusal)),
            seed,
            record,
        )
    }),
    mistake("members-not-resent", &[oracle::HEARD], |seed, record| {
        run(Job::new(seed, Some(Mistake::NothingResent)), seed, record)
    }),
    mistake("members-deduced", &[oracle::SAME], |seed, record| {
        run(Job::new(seed, Some(Mistake::DeducedSilently)), seed, record)
    }),
];

const fn mistake(
    name: &'static str,
    oracles: &'static [&'static str],
    run: fn(u64, crate::history::Record) -> crate::world::Report,
) -> Scenario {
    Scenario {
        name,
        about: "a mistake planted in `members`",
        expected: oracles,
        sometimes: &[],
        run,
    }
}

/// What the root of one history of [`SCENARIO`] decided: for whoever reads such a log.
#[derive(Debug)]
pub struct Decided {
    /// The host of each rank, growing.
    pub ranks: Vec<u32>,
    /// How many hosts there are.
    pub hosts: u32,
    /// What a death means.
    pub policy: Policy,
    /// How patient the job is.
    pub pace: Pace,
    /// The log.
    pub log: Vec<News>,
}

/// Runs one history, and returns what its root decided.
pub fn decided(seed: u64) -> Decided {
    let job = Job::new(seed, None);
    let (plan, log) = (Rc::clone(&job.plan), Rc::clone(&job.log));
    run(job, seed, crate::history::Record::Hash);
    Decided {
        ranks: plan.ranks.clone(),
        hosts: plan.hosts,
        policy: plan.policy,
        pace: plan.pace,
        log: log.take(),
    }
}

#[derive(Debug)]
struct Job {
    plan: Rc<Plan>,
    oracle: Oracle,
    names: Option<names::Oracle>,
    log: Rc<RefCell<Vec<News>>>,
}

#[derive(Debug)]
enum Member {
    Agent(Box<Keeper>),
    Process(Box<Process>),
}

impl Job {
    fn new(seed: u64, mistake: Option<Mistake>) -> Self {
        Self::of(Plan::new(seed, mistake))
    }

    fn of(plan: Plan) -> Self {
        let plan = Rc::new(plan);
        let names = (plan.names > 0).then(|| names::Oracle::new(Rc::clone(&plan)));
        Self {
            oracle: Oracle::new(Rc::clone(&plan)),
            plan,
            names,
            log: Rc::default(),
        }
    }
}

impl World for Job {
    type Machine = Member;

    fn layout(&self) -> Layout {
        self.plan.layout()
    }

    fn machine(&mut self, place: Place) -> Member {
        let plan = Rc::clone(&self.plan);
        match self.plan.host_of_agent(place.machine) {
            Some(_) => Member::Agent(Box::new(Keeper::new(plan, place))),
            None => Member::Process(Box::new(Process::new(plan))),
        }
    }

    fn handle_truth(&mut self, now: Time, truth: Truth) -> Result<(), Violation> {
        if let Some(names) = &mut self.names {
            names.handle_truth(now, truth);
        }
        self.oracle.handle_truth(now, truth)
    }

    fn handle_note(&mut self, now: Time, place: Place, note: Note) -> Result<(), Violation> {
        if let Note::Appended(news) = &note {
            self.log.borrow_mut().push(news.clone());
        }
        match (&mut self.names, note) {
            (Some(names), Note::Name(note)) => names.handle_note(now, place, note),
            (Some(names), Note::Appended(news)) => {
                names.handle_news(now, &news);
                self.oracle.handle_note(now, place, Note::Appended(news))
            }
            (_, note) => self.oracle.handle_note(now, place, note),
        }
    }

    fn finish(
        &mut self,
        now: Time,
        lives: &[Option<Member>],
        marks: &mut Marks,
    ) -> Result<(), Violation> {
        self.oracle.count(marks);
        let mut epochs = BTreeMap::new();
        let mut joining = vec![];
        for (index, life) in lives.iter().enumerate() {
            let machine = MachineId(index as u32);
            let Some(place) = self.oracle.life_of(machine) else {
                continue;
            };
            match life {
                Some(Member::Agent(keeper)) => match &keeper.agent {
                    Some(agent) if agent.is_member() => {
                        epochs.insert(place, agent.members().epoch().0);
                    }
                    Some(_) if !keeper.is_finished => joining.push(place),
                    _ => {}
                },
                Some(Member::Process(process)) => {
                    epochs.insert(place, process.fence.epoch().0);
                }
                None => {}
            }
        }
        if let Some(place) = joining.first() {
            let what = format!("{place} is neither a member nor gone");
            return Err(Violation::new(oracle::HEARD, what));
        }
        self.oracle.finish(now, &epochs)?;
        let registries: Vec<_> = lives
            .iter()
            .enumerate()
            .filter_map(|(index, life)| match life {
                Some(Member::Agent(keeper)) => {
                    let place = self.oracle.life_of(MachineId(index as u32))?;
                    Some((place, &keeper.desk.as_ref()?.registry))
                }
                _ => None,
            })
            .collect();
        match &mut self.names {
            Some(names) => names.finish(now, &registries, marks),
            None => Ok(()),
        }
    }
}

impl Machine for Member {
    type Message = Message;
    type Note = Note;

    fn start(&mut self, context: &mut Context<'_, Self>) {
        match self {
            Self::Agent(keeper) => keeper.start(context),
            Self::Process(process) => process.start(context),
        }
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        message: Message,
        context: &mut Context<'_, Self>,
    ) {
        match self {
            Self::Agent(keeper) => keeper.receive(connection, message, context),
            Self::Process(process) => process.receive(message, context),
        }
    }

    fn timer(&mut self, key: u64, context: &mut Context<'_, Self>) {
        match self {
            Self::Agent(keeper) => keeper.timer(key, context),
            Self::Process(process) => process.timer(context),
        }
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        opened: Opened,
        context: &mut Context<'_, Self>,
    ) {
        match self {
            Self::Agent(keeper) => keeper.connected(connection, peer, opened, context),
            Self::Process(process) => process.connected(connection, peer, opened, context),
        }
    }

    fn lost(&mut self, connection: ConnectionId, context: &mut Context<'_, Self>) {
        match self {
            Self::Agent(keeper) => keeper.lost(connection, context),
            Self::Process(process) => process.lost(connection, context),
        }
    }

    fn refused(
        &mut self,
        connection: ConnectionId,
        to: MachineId,
        context: &mut Context<'_, Self>,
    ) {
        match self {
            Self::Agent(keeper) => keeper.refused(connection, false, context),
            Self::Process(process) => process.refused(connection, to, context),
        }
    }

    fn nobody_listens(
        &mut self,
        connection: ConnectionId,
        to: MachineId,
        context: &mut Context<'_, Self>,
    ) {
        match self {
            Self::Agent(keeper) => keeper.refused(connection, true, context),
            Self::Process(process) => process.refused(connection, to, context),
        }
    }

    fn child_ended(&mut self, child: Place, context: &mut Context<'_, Self>) {
        if let Self::Agent(keeper) = self {
            keeper.child_ended(child, context);
        }
    }
}
