//! Registries of some hosts, a network between them that a test can cut, and one log for all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::boot::Death;
use crate::id::{Address, Incarnation, MailboxId, ProcessId, Rank, RequestId};
use crate::membership::{AgentId, Entry, Epoch, HostEnd, HostId, Members, News, Pace};
use crate::registry::{
    Action, Answer, Bound, Frame, Outcome, Patience, Question, Registry, Said, Seen,
};
use crate::time::Time;

pub(super) const PACE: Pace = Pace::DEFAULT;

pub(super) struct Bed {
    pub(super) now: Time,
    /// What the root has decided.
    pub(super) log: Members,
    pub(super) hosts: BTreeMap<u32, Host>,
    /// From whom to whom nothing gets.
    pub(super) cut: BTreeSet<(u32, u32)>,
    /// Frames of these kinds are lost.
    pub(super) loses: fn(&Said) -> bool,
    wire: VecDeque<Frame>,
    pub(super) frames: Vec<Frame>,
    pub(super) answers: BTreeMap<(ProcessId, RequestId), Answer>,
    requests: u64,
}

pub(super) struct Host {
    pub(super) registry: Registry,
    pub(super) members: Members,
    pub(super) lease: Time,
}

pub(super) fn process(rank: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(0))
}

pub(super) fn address(rank: u32, mailbox: u64) -> Address {
    Address {
        process: process(rank),
        mailbox: MailboxId(mailbox),
    }
}

impl Bed {
    /// So many hosts, with ten ranks each: 0 to 9 on the first, and so on. All are here, and the view is established.
    pub(super) fn new(hosts: u32) -> Self {
        let mut bed = Self {
            now: Time(1),
            log: Members::default(),
            hosts: BTreeMap::new(),
            cut: BTreeSet::new(),
            loses: |_| false,
            wire: VecDeque::new(),
            frames: vec![],
            answers: BTreeMap::new(),
            requests: 0,
        };
        let placed = (0..hosts).map(|host| Entry::Placed {
            host: HostId(host),
            first: Rank(10 * host),
            count: 10,
        });
        bed.decide(placed.collect());
        for host in 0..hosts {
            bed.join(host, 1);
        }
        bed.run();
        bed
    }

    /// The agent of a host joins.
    pub(super) fn join(&mut self, host: u32, life: u32) {
        let agent = AgentId::new(HostId(host), life);
        let registry = Registry::new(agent, PACE);
        let entry = Entry::HostJoined {
            agent,
            locator: String::new(),
        };
        self.decide(vec![entry]);
        let newcomer = Host {
            registry,
            members: self.log.clone(),
            lease: Time(u64::MAX),
        };
        self.hosts.insert(host, newcomer);
        self.tell(host);
    }

    /// A host is gone for good, and all are told.
    pub(super) fn lose(&mut self, hosts: &[u32]) {
        let ended = |host: &u32| Entry::HostEnded {
            agent: AgentId::new(HostId(*host), 1),
            how: HostEnd::Silent,
        };
        for host in hosts {
            self.hosts.remove(host);
        }
        self.decide(hosts.iter().map(ended).collect());
    }

    pub(super) fn kill(&mut self, process: ProcessId) {
        let how = Death::Signal(9);
        self.decide(vec![Entry::Ended { process, how }]);
    }

    /// The root decides, and all who are here are told.
    pub(super) fn decide(&mut self, entries: Vec<Entry>) {
        self.decide_silently(entries);
        let hosts: Vec<u32> = self.hosts.keys().copied().collect();
        for host in hosts {
            self.tell(host);
        }
    }

    /// The root decides, and nobody hears it yet.
    pub(super) fn decide_silently(&mut self, entries: Vec<Entry>) {
        let epoch = Epoch(self.log.epoch().0 + 1);
        self.log.apply_news(&News { epoch, entries }).unwrap();
    }

    /// A host hears all that was decided.
    pub(super) fn tell(&mut self, host: u32) {
        let log = self.log.clone();
        let now = self.now;
        let Some(one) = self.hosts.get_mut(&host) else {
            return;
        };
        one.members = log;
        one.registry.handle_members(Seen {
            members: &one.members,
            lease: one.lease,
            now,
        });
        self.drain(host);
    }

    /// Delivers what is under way, and what follows, without time passing.
    pub(super) fn run(&mut self) {
        while let Some(frame) = self.wire.pop_front() {
            self.deliver(frame);
        }
    }

    pub(super) fn deliver(&mut self, frame: Frame) {
        let host = frame.to.host.0;
        let now = self.now;
        let Some(one) = self.hosts.get_mut(&host) else {
            return;
        };
        let seen = Seen {
            members: &one.members,
            lease: one.lease,
            now,
        };
        one.registry.handle_frame(frame, seen);
        self.drain(host);
    }

    /// Lets time pass.
    pub(super) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.run();
            let due = self
                .hosts
                .values()
                .filter_map(|one| one.registry.next_wakeup());
            let Some(next) = due.min().filter(|due| *due <= until) else {
                break;
            };
            self.now = self.now.max(next);
            let hosts: Vec<u32> = self.hosts.keys().copied().collect();
            for host in hosts {
                let now = self.now;
                let one = self.hosts.get_mut(&host).unwrap();
                one.registry.handle_tick(Seen {
                    members: &one.members,
                    lease: one.lease,
                    now,
                });
                self.drain(host);
            }
        }
        self.now = until;
    }

    fn drain(&mut self, host: u32) {
        let one = self.hosts.get_mut(&host).unwrap();
        while let Some(action) = one.registry.poll_action() {
            match action {
                Action::Send(frame) => {
                    let mut bytes = vec![];
                    frame.encode(&mut bytes).unwrap();
                    assert_eq!(Frame::decode(&bytes), Ok(frame.clone()));
                    self.frames.push(frame.clone());
                    let way = (frame.from.host.0, frame.to.host.0);
                    if !self.cut.contains(&way) && !(self.loses)(&frame.said) {
                        self.wire.push_back(frame);
                    }
                }
                Action::Answer(process, answer) => {
                    let key = (process, answer.request());
                    assert_eq!(self.answers.insert(key, answer), None, "answered twice");
                }
            }
        }
    }

    pub(super) fn ask(
        &mut self,
        rank: u32,
        question: impl FnOnce(RequestId) -> Question,
    ) -> RequestId {
        self.ask_as(process(rank), question)
    }

    pub(super) fn ask_as(
        &mut self,
        process: ProcessId,
        question: impl FnOnce(RequestId) -> Question,
    ) -> RequestId {
        self.requests += 1;
        let request = RequestId(self.requests);
        let host = process.rank.0 / 10;
        let now = self.now;
        let one = self.hosts.get_mut(&host).unwrap();
        let seen = Seen {
            members: &one.members,
            lease: one.lease,
            now,
        };
        one.registry
            .handle_question(process, question(request), seen);
        self.drain(host);
        request
    }

    pub(super) fn bind(&mut self, rank: u32, name: &str, mailbox: u64) -> RequestId {
        let (name, mailbox): (Arc<str>, _) = (name.into(), MailboxId(mailbox));
        self.ask(rank, |request| Question::Bind {
            request,
            name,
            mailbox,
        })
    }

    pub(super) fn unbind(&mut self, rank: u32, name: &str, mailbox: u64) -> RequestId {
        let (name, mailbox): (Arc<str>, _) = (name.into(), MailboxId(mailbox));
        self.ask(rank, |request| Question::Unbind {
            request,
            name,
            mailbox,
        })
    }

    pub(super) fn fetch(&mut self, rank: u32, name: &str) -> RequestId {
        self.read(rank, name, Patience::Wait)
    }

    pub(super) fn look(&mut self, rank: u32, name: &str) -> RequestId {
        self.read(rank, name, Patience::Look)
    }

    fn read(&mut self, rank: u32, name: &str, patience: Patience) -> RequestId {
        let name: Arc<str> = name.into();
        self.ask(rank, |request| Question::Read {
            request,
            name,
            patience,
        })
    }

    pub(super) fn answer(&self, rank: u32, request: RequestId) -> Option<Answer> {
        self.answers.get(&(process(rank), request)).cloned()
    }

    /// What a bind or unbind came to.
    pub(super) fn outcome(&self, rank: u32, request: RequestId) -> Option<Outcome> {
        match self.answer(rank, request)? {
            Answer::Done { outcome, .. } => Some(outcome),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn found(&self, rank: u32, request: RequestId) -> Option<Address> {
        match self.answer(rank, request)? {
            Answer::Found { bound, .. } => Some(bound.address),
            other => panic!("{other:?}"),
        }
    }

    /// Binds, and waits for it.
    pub(super) fn bound(&mut self, rank: u32, name: &str, mailbox: u64) -> Outcome {
        let request = self.bind(rank, name, mailbox);
        self.run();
        self.outcome(rank, request).expect("it was answered")
    }

    /// The hosts that keep a name, the holder first.
    pub(super) fn holders(&self, name: &str) -> Vec<u32> {
        let placement = crate::registry::Placement::of(&self.log);
        let holders = placement.holders(name);
        holders.iter().map(|agent| agent.host.0).collect()
    }

    /// A name that this host holds.
    pub(super) fn name_held_by(&self, host: u32) -> String {
        let names = (0..).map(|number| format!("name {number}"));
        let mut names = names.filter(|name| self.holders(name)[0] == host);
        names.next().unwrap()
    }

    pub(super) fn kept(&self, host: u32, name: &str) -> Option<Bound> {
        self.hosts[&host].registry.kept(name)
    }
}
