//! The questions of this host's processes: asked once for all of them, again if nobody answers, and of the next holder if the view
//! changes. What was answered is remembered under a lease.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::limits::lease;
use super::outbox::{Outbox, Repeat, Seen, Timer};
use super::{
    Answer, Bound, MAX_CACHED, MAX_OPEN, MAX_QUESTIONS, Outcome, Patience, Question, Refusal, Said,
    Wish,
};
use crate::id::{Address, ProcessId, RequestId};
use crate::membership::AgentId;
use crate::time::Time;

/// What the processes of this host were told to have bound, unless they are about to unbind it. It goes to each new holder, so that
/// such a binding outlives the loss of all who keep it.
pub(super) type Owned = BTreeMap<Arc<str>, Bound>;

#[derive(Debug, Default)]
pub(super) struct Front {
    names: BTreeMap<Arc<str>, Asked>,
    /// Which reads each process has open, to cancel them; and how many wishes.
    open: BTreeMap<ProcessId, Open>,
    pub(super) questions: usize,
    cache: BTreeMap<Arc<str>, Remembered>,
    pub(super) owned: Owned,
    last_request: u64,
    /// The numbers of the wishes that were not answered.
    unanswered: BTreeSet<u64>,
}

#[derive(Debug, Default)]
struct Open {
    reads: BTreeMap<RequestId, Arc<str>>,
    wishes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Remembered {
    bound: Bound,
    until: Time,
}

/// What is asked of the holder of one name.
#[derive(Debug, Default)]
struct Asked {
    readers: BTreeMap<(ProcessId, RequestId), Reader>,
    /// The read that is under way.
    read: Option<Repeat>,
    /// In order; the first is under way.
    wishes: VecDeque<Wished>,
}

#[derive(Debug, Clone, Copy)]
struct Reader {
    patience: Patience,
    called: Time,
}

#[derive(Debug, Clone, Copy)]
struct Wished {
    process: ProcessId,
    request: RequestId,
    /// Our number for it.
    number: u64,
    wish: Wish,
    address: Address,
    sent: Option<Repeat>,
    /// Whether a holder, also one of an earlier view, may have done it.
    may_be_done: bool,
}

impl Front {
    /// A process asks.
    pub(super) fn handle_question(
        &mut self,
        process: ProcessId,
        question: Question,
        out: &mut Outbox,
        seen: Seen<'_>,
    ) {
        if let Question::Cancel { request } = question {
            return self.cancel(process, request, out);
        }
        let request = question.request();
        let open = self.open.entry(process).or_default();
        if open.reads.contains_key(&request) {
            // Its own mistake; the first is answered.
            return;
        }
        if open.reads.len() + open.wishes >= MAX_OPEN || self.questions >= MAX_QUESTIONS {
            let outcome = Outcome::Refused(Refusal::QuestionsFull);
            return out.answer(process, Answer::Done { request, outcome });
        }
        let (name, wish, mailbox) = match question {
            Question::Read { name, patience, .. } => {
                return self.read(process, request, name, patience, out, seen);
            }
            Question::Bind { name, mailbox, .. } => (name, Wish::Bind, mailbox),
            Question::Unbind { name, mailbox, .. } => (name, Wish::Unbind, mailbox),
            Question::Cancel { .. } | Question::Near { .. } => return,
        };
        open.wishes += 1;
        self.questions += 1;
        self.last_request += 1;
        self.unanswered.insert(self.last_request);
        let wished = Wished {
            process,
            request,
            number: self.last_request,
            wish,
            address: Address { process, mailbox },
            sent: None,
            may_be_done: false,
        };
        let asked = self.names.entry(Arc::clone(&name)).or_default();
        asked.wishes.push_back(wished);
        self.wish(&name, out, seen.now);
    }

    /// A process is gone, or has closed its socket: it wants no answers.
    pub(super) fn handle_gone(&mut self, process: ProcessId, out: &mut Outbox, now: Time) {
        let Some(open) = self.open.remove(&process) else {
            return;
        };
        self.questions -= open.reads.len() + open.wishes;
        let concerned: BTreeSet<Arc<str>> = open.reads.into_values().collect();
        for name in concerned {
            if let Some(asked) = self.names.get_mut(&name) {
                asked.readers.retain(|key, _| key.0 != process);
            }
            self.withdraw(&name, out);
        }
        if open.wishes == 0 {
            return;
        }
        let wishing = |asked: &Asked| asked.wishes.iter().any(|one| one.process == process);
        let names: Vec<Arc<str>> = self
            .names
            .iter()
            .filter(|(_, asked)| wishing(asked))
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for name in names {
            if let Some(asked) = self.names.get_mut(&name) {
                let gone = asked.wishes.iter().filter(|one| one.process == process);
                for wished in gone {
                    self.unanswered.remove(&wished.number);
                }
                asked.wishes.retain(|one| one.process != process);
            }
            self.wish(&name, out, now);
            self.tidy(&name);
        }
    }

    /// What was remembered of an earlier view is not known to be true.
    pub(super) fn handle_view(&mut self) {
        self.cache.clear();
        for asked in self.names.values_mut() {
            asked.read = None;
            for wished in &mut asked.wishes {
                wished.sent = None;
            }
        }
    }

    /// Processes may be gone.
    pub(super) fn handle_epoch(&mut self, seen: Seen<'_>) {
        self.owned
            .retain(|_, bound| seen.runs(bound.address.process));
        self.cache
            .retain(|_, known| seen.runs(known.bound.address.process));
    }

    /// Binds that a holder may have done without our knowing.
    pub(super) fn binds_under_way(&self) -> Vec<(Arc<str>, Address)> {
        let first = |asked: &Asked| asked.wishes.front().copied();
        let names = self.names.iter();
        let wished = names.filter_map(|(name, asked)| Some((name, first(asked)?)));
        wished
            .filter(|(_, wished)| wished.wish == Wish::Bind && wished.may_be_done)
            .map(|(name, wished)| (Arc::clone(name), wished.address))
            .collect()
    }

    /// Holders may be asked.
    pub(super) fn ask_all(&mut self, out: &mut Outbox, now: Time) {
        let names: Vec<Arc<str>> = self.names.keys().map(Arc::clone).collect();
        for name in names {
            self.ask(&name, out, now);
            self.wish(&name, out, now);
        }
    }

    pub(super) fn handle_found(
        &mut self,
        from: AgentId,
        name: &Arc<str>,
        found: (Bound, u64, bool),
        out: &mut Outbox,
        now: Time,
    ) {
        let (bound, stamp, leased) = found;
        let stamp = Time(stamp);
        let until = stamp + lease(&out.pace);
        let good = leased && stamp <= now && now < until;
        if good && (self.cache.len() < MAX_CACHED || self.cache.contains_key(name)) {
            self.cache
                .insert(Arc::clone(name), Remembered { bound, until });
        }
        // What is only known to have been true after the stamp is no answer to who asked after it.
        let is_good = |reader: &Reader| good || from == out.me || reader.called <= stamp;
        let done = self.take_readers(name, is_good);
        for (process, request) in done {
            out.answer(process, Answer::Found { request, bound });
        }
        self.ask(name, out, now);
    }

    pub(super) fn handle_free(&mut self, name: &Arc<str>, stamp: u64, out: &mut Outbox, now: Time) {
        let answered = |one: &Reader| one.patience == Patience::Look && one.called <= Time(stamp);
        for (process, request) in self.take_readers(name, answered) {
            out.answer(process, Answer::Free { request });
        }
        self.ask(name, out, now);
    }

    pub(super) fn handle_full(&mut self, name: &Arc<str>, out: &mut Outbox) {
        let outcome = Outcome::Refused(Refusal::WaitingFull);
        for (process, request) in self.take_readers(name, |_| true) {
            out.answer(process, Answer::Done { request, outcome });
        }
    }

    pub(super) fn handle_changed(
        &mut self,
        name: &Arc<str>,
        number: u64,
        outcome: Outcome,
        out: &mut Outbox,
        now: Time,
    ) {
        let Some(asked) = self.names.get_mut(name) else {
            return;
        };
        if asked.wishes.front().is_none_or(|one| one.number != number) {
            return;
        }
        let Some(wished) = asked.wishes.pop_front() else {
            return;
        };
        let (process, request, address) = (wished.process, wished.request, wished.address);
        let owned = self.owned.get(name).map(|bound| bound.address.process);
        if let Outcome::Bound(number) = outcome {
            self.owned
                .insert(Arc::clone(name), Bound { number, address });
        } else if wished.wish == Wish::Bind && owned == Some(process) {
            // It cannot have been ours.
            self.owned.remove(name);
        }
        self.unanswered.remove(&wished.number);
        self.questions -= 1;
        self.close(process, |open| open.wishes -= 1);
        out.answer(process, Answer::Done { request, outcome });
        self.wish(name, out, now);
        self.tidy(name);
    }

    /// The holder is about to change it.
    pub(super) fn handle_revoke(&mut self, name: &str) {
        self.cache.remove(name);
    }

    pub(super) fn handle_timer(&mut self, timer: &Timer, out: &mut Outbox, now: Time) {
        match timer {
            Timer::Read(name) => {
                let read = self.names.get(name).and_then(|asked| asked.read);
                if read.is_some_and(|read| read.due <= now) {
                    self.say_read(name, out, now);
                }
            }
            Timer::Change(name) => {
                let first = self.names.get(name).and_then(|asked| asked.wishes.front());
                let sent = first.and_then(|wished| wished.sent);
                if sent.is_some_and(|sent| sent.due <= now) {
                    self.say_wish(name, out, now);
                }
            }
            _ => {}
        }
    }

    /// How many answers are remembered.
    pub(super) fn cached(&self) -> usize {
        self.cache.len()
    }

    /// How many names are asked for.
    pub(super) fn asked(&self) -> usize {
        self.names.len()
    }

    fn read(
        &mut self,
        process: ProcessId,
        request: RequestId,
        name: Arc<str>,
        patience: Patience,
        out: &mut Outbox,
        seen: Seen<'_>,
    ) {
        let now = seen.now;
        let known = self.cache.get(&name).filter(|known| now < known.until);
        if let Some(known) = known.filter(|_| seen.may_act()) {
            let bound = known.bound;
            return out.answer(process, Answer::Found { request, bound });
        }
        self.cache.remove(&name);
        self.questions += 1;
        let open = self.open.entry(process).or_default();
        open.reads.insert(request, Arc::clone(&name));
        let asked = self.names.entry(Arc::clone(&name)).or_default();
        let reader = Reader {
            patience,
            called: now,
        };
        asked.readers.insert((process, request), reader);
        // Who looks is not made to wait behind one who waits.
        let looks = patience == Patience::Look && asked.read.is_some();
        if looks && out.established {
            self.say_read(&name, out, now);
        }
        self.ask(&name, out, now);
    }

    fn cancel(&mut self, process: ProcessId, request: RequestId, out: &mut Outbox) {
        let open = self.open.get_mut(&process);
        let Some(name) = open.and_then(|open| open.reads.remove(&request)) else {
            return;
        };
        self.questions -= 1;
        self.close(process, |_| ());
        if let Some(asked) = self.names.get_mut(&name) {
            asked.readers.remove(&(process, request));
        }
        self.withdraw(&name, out);
    }

    /// Nobody here may want the name any more.
    fn withdraw(&mut self, name: &Arc<str>, out: &mut Outbox) {
        let Some(asked) = self.names.get_mut(name) else {
            return;
        };
        if asked.readers.is_empty() && asked.read.take().is_some() {
            if let Some(holder) = out.holder(name) {
                let name = Arc::clone(name);
                out.send(holder, Said::Withdraw { name });
            }
        }
        self.tidy(name);
    }

    /// Asks for a name that somebody waits for, unless that was done.
    fn ask(&mut self, name: &Arc<str>, out: &mut Outbox, now: Time) {
        let asked = self.names.get(name);
        let due = asked.is_some_and(|asked| asked.read.is_none() && !asked.readers.is_empty());
        if due && out.established {
            self.say_read(name, out, now);
        }
    }

    fn say_read(&mut self, name: &Arc<str>, out: &mut Outbox, now: Time) {
        let (Some(asked), Some(holder)) = (self.names.get_mut(name), out.holder(name)) else {
            return;
        };
        let looks = |one: &Reader| one.patience == Patience::Look;
        let patience = if asked.readers.values().any(looks) {
            Patience::Look
        } else {
            Patience::Wait
        };
        let again = asked.read.filter(|read| read.due <= now);
        let repeat = match again {
            Some(read) => read.next(&out.pace, now),
            None => Repeat::new(&out.pace, now),
        };
        asked.read = Some(repeat);
        if holder != out.me {
            out.set_timer(repeat.due, Timer::Read(Arc::clone(name)));
        }
        let (name, stamp) = (Arc::clone(name), now.0);
        out.send(
            holder,
            Said::Read {
                name,
                patience,
                stamp,
            },
        );
    }

    /// Takes out those who are answered. The read that was under way is over; whoever is left is asked for anew.
    fn take_readers(
        &mut self,
        name: &Arc<str>,
        answered: impl Fn(&Reader) -> bool,
    ) -> Vec<(ProcessId, RequestId)> {
        let Some(asked) = self.names.get_mut(name) else {
            return vec![];
        };
        let done = asked.readers.iter().filter(|(_, reader)| answered(reader));
        let done: Vec<(ProcessId, RequestId)> = done.map(|(key, _)| *key).collect();
        for key in &done {
            asked.readers.remove(key);
        }
        asked.read = None;
        for (process, request) in &done {
            self.questions -= 1;
            self.close(*process, |open| drop(open.reads.remove(request)));
        }
        self.tidy(name);
        done
    }

    /// Sends the first wish, unless that was done.
    fn wish(&mut self, name: &Arc<str>, out: &mut Outbox, now: Time) {
        let first = self.names.get(name).and_then(|asked| asked.wishes.front());
        if first.is_some_and(|wished| wished.sent.is_none()) && out.established {
            self.say_wish(name, out, now);
        }
    }

    fn say_wish(&mut self, name: &Arc<str>, out: &mut Outbox, now: Time) {
        let first = self.names.get_mut(name);
        let first = first.and_then(|asked| asked.wishes.front_mut());
        let (Some(wished), Some(holder)) = (first, out.holder(name)) else {
            return;
        };
        let repeat = match wished.sent {
            Some(sent) => sent.next(&out.pace, now),
            None => Repeat::new(&out.pace, now),
        };
        wished.sent = Some(repeat);
        wished.may_be_done = true;
        let owned = self.owned.get(name).map(|bound| bound.address);
        if wished.wish == Wish::Unbind && owned == Some(wished.address) {
            self.owned.remove(name);
        }
        if holder != out.me {
            out.set_timer(repeat.due, Timer::Change(Arc::clone(name)));
        }
        let said = Said::Change {
            name: Arc::clone(name),
            request: wished.number,
            oldest: self.unanswered.first().copied().unwrap_or(wished.number),
            wish: wished.wish,
            address: wished.address,
        };
        out.send(holder, said);
    }

    fn close(&mut self, process: ProcessId, close: impl FnOnce(&mut Open)) {
        if let Some(open) = self.open.get_mut(&process) {
            close(open);
            if open.reads.is_empty() && open.wishes == 0 {
                self.open.remove(&process);
            }
        }
    }

    fn tidy(&mut self, name: &Arc<str>) {
        let idle = |asked: &Asked| asked.readers.is_empty() && asked.wishes.is_empty();
        if self.names.get(name).is_some_and(idle) {
            self.names.remove(name);
        }
    }
}
