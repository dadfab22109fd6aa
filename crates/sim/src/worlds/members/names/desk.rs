//! The names of an agent: what its driver does around the registry.

use std::collections::BTreeMap;

use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::{Agent, AgentId, Pace};
use mizzen_proto::registry::{Action, Bound, Frame, Question, Registry, Said, Seen};
use mizzen_proto::time::Time;

use super::super::calls::{NameNote, name};
use super::super::message::{Note, Speaker};
use crate::machine::Context;

#[derive(Debug)]
pub(in super::super) struct Desk {
    me: AgentId,
    pub(in super::super) registry: Registry,
    /// What was told to the oracles of each name: what is kept, and what is held.
    told: BTreeMap<u32, (Option<Bound>, Option<Bound>)>,
    names: Vec<String>,
    /// For each wish that was sent, the view in which.
    wishes: BTreeMap<u64, u64>,
}

impl Desk {
    pub(in super::super) fn new(me: AgentId, pace: Pace, names: u32) -> Self {
        Self {
            me,
            registry: Registry::new(me, pace),
            told: BTreeMap::new(),
            names: (0..names).map(name).collect(),
            wishes: BTreeMap::new(),
        }
    }

    pub(in super::super) fn handle_frame(
        &mut self,
        bytes: &[u8],
        agent: &Agent,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let frame = Frame::decode(bytes).expect("an agent encoded it");
        match &frame.said {
            Said::Revoke { .. } => context.sometimes("a lease of a name was revoked"),
            Said::Hand { .. } => context.sometimes("names were handed over"),
            Said::Changed { request, .. } => {
                let sent = self.wishes.remove(request);
                if sent.is_some_and(|view| view < frame.view.0) {
                    context.sometimes("a wish was answered in a later view");
                }
            }
            _ => {}
        }
        let now = context.now();
        self.registry.handle_frame(frame, Seen::of(agent, now));
        self.tell(context);
    }

    pub(in super::super) fn handle_question(
        &mut self,
        process: ProcessId,
        bytes: &[u8],
        agent: &Agent,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let question = Question::decode(bytes).expect("a process encoded it");
        let cached = self.registry.sizes().cached > 0;
        let asks = matches!(question, Question::Read { .. });
        let now = context.now();
        let before = self.registry.sizes().questions;
        self.registry
            .handle_question(process, question, Seen::of(agent, now));
        if asks && cached && self.registry.sizes().questions == before {
            context.sometimes("an answer was remembered");
        }
        self.tell(context);
    }

    pub(in super::super) fn handle_gone(
        &mut self,
        process: ProcessId,
        agent: &Agent,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let now = context.now();
        self.registry.handle_gone(process, Seen::of(agent, now));
        self.tell(context);
    }

    pub(in super::super) fn handle_members(
        &mut self,
        agent: &Agent,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let now = context.now();
        self.registry.handle_members(Seen::of(agent, now));
        self.tell(context);
    }

    pub(in super::super) fn handle_tick(
        &mut self,
        agent: &Agent,
        context: &mut Context<'_, impl Speaker>,
    ) {
        let now = context.now();
        self.registry.handle_tick(Seen::of(agent, now));
        self.tell(context);
    }

    /// What to send, or to tell a process.
    pub(in super::super) fn poll(&mut self) -> Option<Action> {
        let action = self.registry.poll_action()?;
        if let Action::Send(frame) = &action {
            if let Said::Change { request, .. } = &frame.said {
                self.wishes.entry(*request).or_insert(frame.view.0);
            }
        }
        Some(action)
    }

    pub(in super::super) fn next_wakeup(&self) -> Option<Time> {
        self.registry.next_wakeup()
    }

    /// Tells the oracles what has changed.
    fn tell(&mut self, context: &mut Context<'_, impl Speaker>) {
        for (number, text) in (0..).zip(&self.names) {
            let kept = self.registry.kept(text);
            let held = match kept {
                Some(_) => self.registry.held(text),
                None => None,
            };
            let told = self.told.entry(number).or_default();
            if told.0 != kept {
                context.note(Note::Name(NameNote::Keeps(self.me, number, kept)));
            }
            let placement = self.registry.placement();
            if let (Some(bound), Some(placement)) = (held.filter(|_| told.1 != held), placement) {
                let keepers = placement.holders(text);
                context.note(Note::Name(NameNote::Holds(number, bound, keepers)));
            }
            *told = (kept, held);
        }
    }
}
