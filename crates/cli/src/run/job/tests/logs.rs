//! The launcher reads what roots decided in simulated jobs in which everything went wrong: whatever the log is, each end is told once,
//! the exit code is right, and the job is over when the last process is.

use crate::hosts::deal;
use std::collections::{BTreeMap, BTreeSet};

use mizzen_proto::id::ProcessId;
use mizzen_proto::membership::{Change, Members, Policy};
use mizzen_sim::worlds::members::{Decided, decided};

use super::super::*;

/// How many logs are read.
const LOGS: u64 = 300;

/// What follows from a log, found in another way: from the changes that all members see.
#[derive(Debug, Default)]
struct Expected {
    /// Ranks whose end is to be told in a sentence of its own, with how often.
    told: BTreeMap<u32, usize>,
    /// Hosts that were lost with processes that lived.
    lost: usize,
    /// The code of the failure that ended the job.
    ended_by: Option<u8>,
    failed: Option<u8>,
    killed: Option<u8>,
    succeeded: bool,
}

impl Expected {
    fn read(&mut self, news: &News, members: &mut Members, hosts: &[u32]) {
        let mut before = members.clone();
        let changes = members.apply_news(news).expect("a root contradicts nobody");
        let mut handled = 0;
        if let Some(at) = news.entries.iter().position(loses_root) {
            let entries = news.entries[..at].to_vec();
            let epoch = news.epoch;
            let first = before.apply_news(&News { epoch, entries });
            handled = first.expect("it is a part").len();
            self.handle(&changes[..handled], 0, hosts);
            if before.running() > 0 {
                // No job goes on without the root, also if nobody ran on its host.
                self.ended_by.get_or_insert(LOST_HOST);
            }
        }
        self.handle(&changes, handled, hosts);
    }

    /// What became of the first `count` changes of an epoch was handled before.
    fn handle(&mut self, changes: &[Change], count: usize, hosts: &[u32]) {
        let mut lost = BTreeSet::new();
        for change in &changes[count..] {
            match *change {
                Change::Ended { process, how } => {
                    self.handle_ended(process, how, changes);
                    if how == Death::HostLost && self.ended_by.is_none() {
                        lost.insert(hosts[process.rank.index()]);
                    }
                }
                Change::JobEnds(Ending::Host { host, .. }) if self.ended_by.is_none() => {
                    lost.remove(&host.0);
                    self.ended_by = Some(LOST_HOST);
                }
                _ => {}
            }
        }
        self.lost += lost.len();
    }

    fn handle_ended(&mut self, process: ProcessId, how: Death, changes: &[Change]) {
        self.succeeded |= how == Death::Exit(0);
        if self.ended_by.is_some() || how == Death::Exit(0) {
            return;
        }
        let is_cause = |change: &Change| matches!(change, Change::JobEnds(Ending::Process { process: one, .. }) if *one == process);
        let comes_back = |change: &Change| matches!(change, Change::Restarted { process: next } if next.rank == process.rank);
        if changes.iter().any(is_cause) {
            self.ended_by = Some(code(how));
            return;
        }
        if how != Death::HostLost {
            *self.told.entry(process.rank.0).or_default() += 1;
        }
        if !changes.iter().any(comes_back) {
            let first = match how {
                Death::Exit(_) => &mut self.failed,
                Death::Signal(_) | Death::HostLost => &mut self.killed,
            };
            first.get_or_insert(code(how));
        }
    }

    fn exit_code(&self) -> u8 {
        let killed = self.killed.filter(|_| !self.succeeded);
        self.ended_by.or(self.failed).or(killed).unwrap_or(0)
    }
}

fn loses_root(entry: &Entry) -> bool {
    let Entry::HostEnded { agent, how } = entry else {
        return false;
    };
    agent.host.0 as usize == ROOT && *how != HostEnd::Left
}

#[test]
fn each_end_is_told_once_and_the_exit_code_is_right_whatever_the_log() {
    let mut read = 0;
    let mut ended = 0;
    for seed in 0..LOGS {
        let decided = decided(seed);
        // The launcher deals ranks in its own way, the larger shares first.
        let dealt = deal(decided.ranks.len() as u32, decided.hosts as usize);
        if !dealt.eq(decided.ranks.iter().map(|host| *host as usize)) {
            continue;
        }
        read += 1;
        ended += u64::from(read_log(seed, &decided));
    }
    assert!(read > LOGS / 2, "{read} logs were read");
    assert!(ended > 10, "{ended} jobs ended for a failure");
}

/// Returns whether a failure ended the job.
fn read_log(seed: u64, decided: &Decided) -> bool {
    let size = decided.ranks.len() as u32;
    let places: Vec<usize> = deal(size, decided.hosts as usize).collect();
    let hosts = (0..decided.hosts).map(|host| format!("h{host}")).collect();
    let Policy {
        on_death,
        max_restarts,
    } = decided.policy;
    let mut job = Job::new(&places, hosts, on_death, max_restarts, decided.pace);
    let mut members = Members::default();
    let mut expected = Expected::default();
    let mut sentences = vec![];
    for news in &decided.log {
        let actions = job.read(news);
        expected.read(news, &mut members, &decided.ranks);
        sentences.extend(actions.into_iter().filter_map(|action| match action {
            Action::Say(sentence) => Some(sentence),
            _ => None,
        }));
        let alive = members.running() as usize;
        assert_eq!(job.alive, alive, "seed {seed}, epoch {:?}", news.epoch);
        assert_eq!(job.is_over(), alive == 0);
        let stopping = expected.ended_by.is_some();
        assert_eq!(job.is_stopping(), stopping, "seed {seed}: {news:?}");
    }
    for rank in 0..size {
        let subject = format!("rank {rank} on ");
        let told = sentences.iter().filter(|one| one.starts_with(&subject));
        let wanted = expected.told.get(&rank).copied().unwrap_or(0);
        assert_eq!(
            told.count(),
            wanted,
            "seed {seed}, rank {rank}: {sentences:#?}"
        );
    }
    let lost = sentences.iter().filter(|one| one.starts_with("host "));
    assert_eq!(lost.count(), expected.lost, "seed {seed}: {sentences:#?}");
    assert_eq!(job.exit_code(), expected.exit_code(), "seed {seed}");
    // What ended the job is said last, and once.
    let verdict = job.verdict();
    assert_eq!(verdict.is_some(), expected.ended_by.is_some());
    expected.ended_by.is_some()
}
