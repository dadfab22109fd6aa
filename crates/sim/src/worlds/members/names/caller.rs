//! What a process does with names: binds, moves, unbinds, fetches, looks, and gives up.

use std::collections::BTreeMap;
use std::time::Duration;

use mizzen_proto::id::{Address, MailboxId, ProcessId, RequestId};
use mizzen_proto::registry::{Answer, Outcome, Patience, Question};
use mizzen_proto::time::Time;

use super::super::calls::{Call, NameNote, Return, name};
use super::super::message::{Message, Note, Speaker};
use crate::ids::ConnectionId;
use crate::machine::Context;

/// A process has at most so many calls open.
const OPEN_MAX: usize = 3;

#[derive(Debug)]
pub(in super::super) struct Caller {
    me: ProcessId,
    names: u32,
    between: Duration,
    last: u64,
    open: BTreeMap<u64, (u32, Call, Time)>,
    owned: BTreeMap<u32, Address>,
}

impl Caller {
    pub(in super::super) fn new(me: ProcessId, names: u32, between: Duration) -> Self {
        Self {
            me,
            names,
            between,
            last: 0,
            open: BTreeMap::new(),
            owned: BTreeMap::new(),
        }
    }

    /// Time to call something. Returns when to come again.
    pub(in super::super) fn work(
        &mut self,
        agent: ConnectionId,
        context: &mut Context<'_, impl Speaker>,
    ) -> Duration {
        let dice = context.rng().u32(..100);
        let fetches = |(_, call, _): &(u32, Call, Time)| *call == Call::Fetch;
        let fetch = self.open.iter().find(|(_, open)| fetches(open));
        if let Some(call) = fetch.map(|(call, _)| *call).filter(|_| dice < 10) {
            self.open.remove(&call);
            let request = RequestId(call);
            context.note(Note::Name(NameNote::GivesUp(call)));
            context.sometimes("a fetch was cancelled");
            send(agent, &Question::Cancel { request }, context);
        } else if self.open.len() < OPEN_MAX {
            self.call(agent, dice, context);
        }
        let most = self.between.as_millis() as u64;
        Duration::from_millis(context.rng().u64(20..most))
    }

    fn call(&mut self, agent: ConnectionId, dice: u32, context: &mut Context<'_, impl Speaker>) {
        // Few processes use each name, so that what they see can be judged.
        let number = (self.me.rank.0 / 6 + context.rng().u32(..2)) % self.names;
        let busy = |(one, call, _): &(u32, Call, Time)| {
            *one == number && matches!(call, Call::Bind(_) | Call::Unbind(_))
        };
        let busy = self.open.values().any(busy);
        self.last += 1;
        let request = RequestId(self.last);
        let process = self.me;
        let fresh = Address {
            process,
            mailbox: MailboxId(self.last),
        };
        let owned = self.owned.get(&number).copied();
        let call = match (dice, owned) {
            (..50, _) if busy => Call::Fetch,
            (..35, Some(address)) => Call::Unbind(address),
            (..50, _) => {
                if owned.is_some() {
                    context.sometimes("a name moved");
                }
                Call::Bind(fresh)
            }
            (50..75, _) => Call::Look,
            _ => Call::Fetch,
        };
        let text = name(number).into();
        let question = match call {
            Call::Bind(Address { mailbox, .. }) => {
                self.owned.remove(&number);
                Question::Bind {
                    request,
                    name: text,
                    mailbox,
                }
            }
            Call::Unbind(Address { mailbox, .. }) => {
                self.owned.remove(&number);
                Question::Unbind {
                    request,
                    name: text,
                    mailbox,
                }
            }
            Call::Fetch => Question::Read {
                request,
                name: text,
                patience: Patience::Wait,
            },
            Call::Look => Question::Read {
                request,
                name: text,
                patience: Patience::Look,
            },
        };
        self.open.insert(self.last, (number, call, context.now()));
        context.note(Note::Name(NameNote::Calls(self.last, number, call)));
        send(agent, &question, context);
    }

    pub(in super::super) fn handle_answer(
        &mut self,
        bytes: &[u8],
        context: &mut Context<'_, impl Speaker>,
    ) {
        let answer = Answer::decode(bytes).expect("an agent encoded it");
        let call = answer.request().0;
        let Some((number, what, since)) = self.open.remove(&call) else {
            return;
        };
        let returned = match answer {
            Answer::Done { outcome, .. } => Return::Done(outcome),
            Answer::Found { bound, .. } => Return::Found(bound),
            Answer::Free { .. } => Return::Free,
            // Nobody asks for that here.
            Answer::Near { .. } => return,
        };
        match (what, returned) {
            (Call::Bind(address), Return::Done(Outcome::Bound(_))) => {
                self.owned.insert(number, address);
                context.sometimes("a name was bound");
            }
            (_, Return::Done(Outcome::Unbound(Some(_)))) => {
                context.sometimes("a name was unbound");
            }
            (_, Return::Done(Outcome::Taken(_))) => context.sometimes("a name was taken"),
            (_, Return::Free) => context.sometimes("a name was free"),
            (Call::Fetch, Return::Found(_)) if context.now().since(since).as_millis() > 100 => {
                context.sometimes("a fetch waited");
            }
            _ => {}
        }
        context.note(Note::Name(NameNote::Returns(call, returned)));
    }
}

fn send(agent: ConnectionId, question: &Question, context: &mut Context<'_, impl Speaker>) {
    let mut bytes = vec![];
    question.encode(&mut bytes).expect("the name is short");
    context.send(agent, Message::Question(bytes));
}
