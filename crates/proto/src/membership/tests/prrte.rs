//! The mistakes that PRRTE met when its daemons learned to survive, each as a test.

use super::bed::{Bed, CONTINUE, Party, process};
use crate::boot::{Death, OnDeath};
use crate::membership::*;
use std::time::Duration;

fn ended(bed: &Bed, host: u32, rank: u32) -> bool {
    let state = bed.agent(host).members().state(process(rank, 0).rank);
    matches!(state.map(|state| state.standing), Some(Standing::Ended(_)))
}

/// openpmix/prrte#2637: only who lost the socket told the job layer.
#[test]
fn whoever_notices_a_loss_everybody_is_told() {
    for noticing in [Party::Root, Party::Host(0), Party::Host(3)] {
        let mut bed = Bed::running(4, CONTINUE);
        bed.kill_host(2);
        let agent = AgentId::new(HostId(2), 1);
        match noticing {
            Party::Root => bed.root.handle_refused(agent, bed.now),
            Party::Host(host) => bed
                .agents
                .get_mut(&host)
                .expect("there")
                .handle_refused(agent),
        }
        bed.run_ms(400);
        for host in [0, 1, 3] {
            assert!(
                ended(&bed, host, 4) && ended(&bed, host, 5),
                "{noticing:?} {host}"
            );
            assert_eq!(bed.told[&host], bed.told[&0]);
        }
    }
}

/// openpmix/prrte 72e8b5a844: a deduced death was repaired silently, and the real notice then looked like a duplicate.
#[test]
fn a_death_that_follows_from_another_is_told_and_its_own_notice_adds_nothing() {
    let mut bed = Bed::running(3, CONTINUE);
    // The report of a process's end is under way while its host is pronounced.
    bed.kill(2, 0, Death::Signal(6));
    bed.root.handle_refused(AgentId::new(HostId(1), 1), bed.now);
    bed.run_ms(600);
    let lost = |rank| (process(rank, 0), Death::HostLost);
    assert_eq!(bed.verdicts(), [lost(2), lost(3)]);
    let told: Vec<Change> = bed.told[&0]
        .iter()
        .flat_map(|notice| notice.changes.clone())
        .collect();
    let deaths = told
        .iter()
        .filter(|change| matches!(change, Change::Ended { .. }));
    assert_eq!(deaths.count(), 2);
}

/// openpmix/prrte#2697: each daemon counted the epoch, so newcomers stayed behind and their messages were dropped.
#[test]
fn a_newcomer_has_the_epoch_of_the_root() {
    let mut bed = Bed::new(3, CONTINUE);
    bed.begin(0, 1);
    bed.begin(1, 1);
    bed.run_ms(1000);
    for rank in 0..3 {
        bed.kill(rank, 0, Death::Exit(1));
        bed.run_ms(500);
    }
    bed.begin(2, 1);
    bed.run_ms(500);
    for host in 0..3 {
        assert_eq!(
            bed.agent(host).members().epoch(),
            bed.root.members().epoch()
        );
    }
    bed.kill(4, 0, Death::Exit(1));
    bed.run_ms(500);
    assert!(ended(&bed, 0, 4), "what a newcomer says counts");
}

/// openpmix/prrte 870408d6b5: a newcomer did not know who had left: its parent was a corpse.
#[test]
fn a_newcomer_knows_the_dead_before_anything_else() {
    let mut bed = Bed::new(3, CONTINUE);
    bed.begin(0, 1);
    bed.begin(1, 1);
    bed.run_ms(1000);
    bed.kill_host(1);
    bed.root.handle_refused(AgentId::new(HostId(1), 1), bed.now);
    bed.run_ms(500);
    bed.begin(2, 1);
    bed.run_ms(500);
    assert!(ended(&bed, 2, 2) && ended(&bed, 2, 3));
    let here: Vec<HostId> = bed
        .agent(2)
        .members()
        .agents()
        .map(|agent| agent.host)
        .collect();
    assert_eq!(here, [HostId(0), HostId(2)]);
    let fence = Fence::new(bed.agent(2).members());
    assert_eq!(fence.admission(process(2, 0)), Admission::Ended);
    assert_eq!(fence.admission(process(0, 0)), Admission::Admit);
}

/// openpmix/prrte b575203de2: not yet reported was read as dead.
#[test]
fn who_has_not_reported_is_not_dead() {
    let mut bed = Bed::new(3, CONTINUE);
    bed.begin(0, 1);
    bed.run(Duration::from_secs(120));
    assert_eq!(bed.verdicts(), []);
    bed.begin(1, 1);
    bed.begin(2, 1);
    bed.run_ms(1500);
    assert_eq!(bed.started.len(), 6);
}

/// openpmix/prrte#2707: the order to exit never reached a late reporter.
#[test]
fn a_late_reporter_hears_that_the_job_ends() {
    let mut bed = Bed::new(2, CONTINUE);
    bed.begin(0, 1);
    bed.run_ms(1000);
    bed.root.stop(3, bed.now);
    bed.run_ms(1000);
    bed.begin(1, 1);
    bed.run_ms(3000);
    assert_eq!(bed.started.len(), 2, "it starts nothing");
    assert_eq!(
        bed.agent(1).members().ending(),
        Some(Ending::Asked { code: 3 })
    );
    assert_eq!(bed.finished, [0, 1].into());
}

/// openpmix/prrte#2528, #2599: a death failed what bystanders did together.
#[test]
fn a_death_leaves_bystanders_alone() {
    let mut bed = Bed::running(4, CONTINUE);
    bed.kill_host(3);
    bed.run_ms(20_000);
    assert_eq!(bed.verdicts().len(), 2);
    assert_eq!(bed.ends, []);
    for host in 0..3 {
        assert!(bed.agent(host).is_member());
        assert_eq!(bed.agent(host).running().count(), 2);
    }
}

/// openpmix/prrte#2507: a stale report buried a daemon that had returned.
#[test]
fn a_stale_report_buries_nobody_who_returned() {
    let mut bed = Bed::running(3, CONTINUE);
    bed.kill_host(1);
    let first = AgentId::new(HostId(1), 1);
    bed.root.handle_refused(first, bed.now);
    bed.run_ms(400);
    bed.begin(1, 2);
    bed.run_ms(1500);
    // Both the root and another agent hear late that the first life is gone.
    bed.root.handle_refused(first, bed.now);
    let stale = FromAgent {
        agent: AgentId::new(HostId(2), 1),
        epoch: bed.root.members().epoch(),
        said: Said::Refused { agent: first },
    };
    bed.root.handle_frame(HostId(2), stale, bed.now);
    bed.run_ms(400);
    assert!(bed.root.members().is_here(AgentId::new(HostId(1), 2)));
    assert!(bed.agent(1).is_member());
}

/// openpmix/prrte#2491: a host was added again at once.
#[test]
fn a_new_life_of_an_agent_waits_until_the_old_one_is_pronounced() {
    let mut bed = Bed::running(3, CONTINUE);
    // The old agent cannot be heard, and may well run; somebody starts a new one.
    bed.isolate(1, true);
    bed.run_ms(2000);
    let old = bed.agents.remove(&1).expect("there");
    bed.isolate(1, false);
    for party in [Party::Root, Party::Host(0), Party::Host(1), Party::Host(2)] {
        bed.cut_way(party, Party::Host(1), false);
        bed.cut_way(Party::Host(1), party, false);
    }
    bed.begin(1, 2);
    bed.run_ms(4000);
    assert!(
        !bed.agent(1).is_member(),
        "the lease of the old one is not over"
    );
    assert!(old.lease_until().expect("granted") > bed.now);
    bed.run_ms(8000);
    assert!(bed.agent(1).is_member());
    assert_eq!(bed.verdicts().len(), 2);
    assert_eq!(bed.agent(1).running().count(), 0, "who is dead stays dead");
}

/// openpmix/prrte 273e89c44d: a child was reaped before its pid was published; 0.3 % of runs hung.
#[test]
fn a_process_that_ended_before_it_was_said_to_have_started_has_ended() {
    let policy = Policy {
        on_death: OnDeath::Continue,
        max_restarts: 0,
    };
    let mut root = Root::new(Pace::DEFAULT, policy);
    let (me, now) = (AgentId::new(HostId(0), 1), crate::time::Time(0));
    root.place(HostId(0), crate::id::Rank(0), 1, now);
    let mut agent = Agent::new(me, Pace::DEFAULT, String::new(), now);
    agent.handle_tick(now);
    let mut ended = false;
    for _ in 0..4 {
        while let Some(action) = agent.poll_action() {
            match action {
                AgentAction::ToRoot(up) => root.handle_frame(HostId(0), up, now),
                AgentAction::Start(process, _) => {
                    agent.handle_ended(process, Death::Exit(0));
                    agent.handle_started(process, 77);
                }
                AgentAction::Tell(notice) => {
                    ended |= notice
                        .changes
                        .iter()
                        .any(|change| matches!(change, Change::Ended { .. }));
                }
                _ => {}
            }
        }
        root.handle_tick(now + Duration::from_millis(60));
        while let Some(action) = root.poll_action() {
            assert!(!matches!(action, RootAction::Started { .. }));
            if let RootAction::Send(_, down) = action {
                agent.handle_root(down, now);
            }
        }
    }
    assert!(ended);
    assert_eq!(root.members().ending(), Some(Ending::Done));
}
