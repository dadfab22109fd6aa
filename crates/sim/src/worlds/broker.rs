//! Introductions: who can be reached, asked of the agent of one's host (`mizzen_proto::broker`).
//!
//! Processes of 1 to 4 hosts ask for each other while they come, leave, die and come again, descriptors run out, and the launcher, which
//! knows where processes of other hosts listen, answers late. The connections hold: who loses its agent, or whose agent loses the
//! launcher, ends.

mod agent;
mod launcher;
mod message;
mod oracle;
mod plan;
mod process;

use std::rc::Rc;

use mizzen_proto::time::Time;

use self::agent::Agent;
use self::launcher::{Launcher, Log};
use self::message::{Message, Note};
use self::oracle::Oracle;
use self::plan::{LAUNCHER, LOG, Plan};
use self::process::Process;
use crate::campaign::Scenario;
use crate::ids::{ConnectionId, Place};
use crate::kernel::run;
use crate::machine::{Context, Machine, Opened};
use crate::tally::Marks;
use crate::world::{Layout, Truth, Violation, World};

/// Who is introduced to whom.
pub const SCENARIO: Scenario = Scenario {
    name: "broker",
    about: "introductions: every question answered, once, with the truth, through deaths and restarts",
    expected: &[],
    sometimes: &[
        "two were introduced",
        "who had not asked was introduced",
        "a process of another host was located",
        "somebody could not be reached",
        "there was no descriptor left",
        "one of two had ended when they were introduced",
        "the launcher waited for a process to listen",
        "a process was started again",
        "a job ended",
        "a host paused",
        "a partition",
    ],
    run: |seed, record| run(Introductions::new(seed), seed, record),
};

#[derive(Debug)]
struct Introductions {
    plan: Rc<Plan>,
    oracle: Oracle,
}

#[derive(Debug)]
enum Part {
    Log(Log),
    Launcher(Launcher),
    Agent(Box<Agent>),
    Process(Process),
}

impl Introductions {
    fn new(seed: u64) -> Self {
        let plan = Rc::new(Plan::new(seed));
        Self {
            oracle: Oracle::new(Rc::clone(&plan)),
            plan,
        }
    }
}

impl World for Introductions {
    type Machine = Part;

    fn layout(&self) -> Layout {
        self.plan.layout()
    }

    fn machine(&mut self, place: Place) -> Part {
        let plan = Rc::clone(&self.plan);
        match (place.machine, plan.rank_of(place.machine)) {
            (LOG, _) => Part::Log(Log::new(plan)),
            (LAUNCHER, _) => Part::Launcher(Launcher::new(plan)),
            (_, Some(rank)) => Part::Process(Process::new(plan, rank)),
            (machine, None) => Part::Agent(Box::new(Agent::new(plan, machine))),
        }
    }

    fn handle_truth(&mut self, _: Time, truth: Truth) -> Result<(), Violation> {
        self.oracle.handle_truth(truth)
    }

    fn handle_note(&mut self, _: Time, place: Place, note: Note) -> Result<(), Violation> {
        self.oracle.handle_note(place, note)
    }

    fn finish(&mut self, _: Time, lives: &[Option<Part>], _: &mut Marks) -> Result<(), Violation> {
        for (index, life) in lives.iter().enumerate() {
            let Some(Part::Process(process)) = life else {
                continue;
            };
            if let Some(target) = process.open.first() {
                let what = format!("m{index} asked for rank {target} and was told nothing");
                return Err(Violation::new(oracle::ANSWERED, what));
            }
        }
        Ok(())
    }
}

impl Machine for Part {
    type Message = Message;
    type Note = Note;

    fn start(&mut self, context: &mut Context<'_, Self>) {
        match self {
            Self::Log(_) => {}
            Self::Launcher(launcher) => launcher.start(context),
            Self::Agent(agent) => agent.start(context),
            Self::Process(process) => process.start(context),
        }
    }

    fn receive(&mut self, from: ConnectionId, message: Message, context: &mut Context<'_, Self>) {
        match self {
            Self::Log(log) => log.receive(message, context),
            Self::Launcher(launcher) => launcher.receive(from, message, context),
            Self::Agent(agent) => agent.receive(from, message, context),
            Self::Process(process) => process.receive(message, context),
        }
    }

    fn timer(&mut self, key: u64, context: &mut Context<'_, Self>) {
        match self {
            Self::Log(_) => {}
            Self::Launcher(launcher) => launcher.timer(context),
            Self::Agent(agent) => agent.timer(key, context),
            Self::Process(process) => process.timer(key, context),
        }
    }

    fn connected(
        &mut self,
        connection: ConnectionId,
        peer: Place,
        _: Opened,
        context: &mut Context<'_, Self>,
    ) {
        match self {
            Self::Log(log) => log.connected(connection, context),
            Self::Launcher(launcher) => launcher.connected(connection, peer),
            Self::Agent(agent) => agent.connected(connection, peer, context),
            Self::Process(process) => process.connected(connection, context),
        }
    }

    fn lost(&mut self, _: ConnectionId, context: &mut Context<'_, Self>) {
        if let Self::Process(process) = self {
            process.lost(context.me(), context);
        }
    }

    fn child_ended(&mut self, child: Place, context: &mut Context<'_, Self>) {
        if let Self::Agent(agent) = self {
            agent.child_ended(child, context);
        }
    }
}
