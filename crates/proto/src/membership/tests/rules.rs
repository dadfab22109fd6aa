//! The rules, one by one.

use super::bed::{Bed, CONTINUE, Party, process};
use crate::boot::{Death, OnDeath};
use crate::id::{Incarnation, ProcessId, Rank};
use crate::membership::*;
use crate::time::Time;
use std::time::Duration;

const STOP: Policy = Policy {
    on_death: OnDeath::Stop,
    max_restarts: 0,
};

fn lost(rank: u32) -> (crate::id::ProcessId, Death) {
    (process(rank, 0), Death::HostLost)
}

fn here(bed: &Bed) -> Vec<u32> {
    bed.root
        .members()
        .agents()
        .map(|agent| agent.host.0)
        .collect()
}

#[test]
fn all_hosts_join_in_one_epoch_and_start_their_processes() {
    let bed = Bed::running(4, CONTINUE);
    assert_eq!(here(&bed), [0, 1, 2, 3]);
    let joins = bed.log.iter().map(|news| news.entries.len());
    assert!(
        joins.clone().count() <= 2,
        "{:?}",
        joins.collect::<Vec<_>>()
    );
    assert_eq!(bed.started.len(), 8);
}

#[test]
fn a_silent_host_is_lost_after_lease_and_killing_and_not_before() {
    let mut bed = Bed::running(3, CONTINUE);
    bed.isolate(2, true);
    let cut = bed.now;
    bed.run(Pace::DEFAULT.verdict() - Duration::from_secs(1));
    assert_eq!(here(&bed), [0, 1, 2]);
    assert_eq!(bed.ends.len(), 1, "its agent ended its processes before");
    let (host, why, when) = bed.ends[0];
    assert_eq!((host, why), (2, Why::LeaseOver));
    assert!(when.since(cut) <= Pace::DEFAULT.lease);
    bed.run_ms(1300);
    assert_eq!(here(&bed), [0, 1]);
    assert_eq!(bed.verdicts(), [lost(4), lost(5)]);
    assert_eq!(bed.finished, [2].into());
}

#[test]
fn a_cut_below_the_lease_changes_nothing() {
    let mut bed = Bed::running(3, CONTINUE);
    for _ in 0..5 {
        bed.isolate(2, true);
        bed.run_ms(6000);
        bed.isolate(2, false);
        bed.run_ms(3000);
    }
    assert_eq!(bed.verdicts(), []);
    assert_eq!(bed.ends, []);
}

#[test]
fn a_refused_port_is_a_verdict_at_once() {
    let mut bed = Bed::running(3, CONTINUE);
    bed.kill_host(1);
    bed.root.handle_refused(AgentId::new(HostId(1), 1), bed.now);
    bed.run_ms(300);
    assert_eq!(bed.verdicts(), [lost(2), lost(3)]);
}

#[test]
fn a_process_that_cannot_reach_another_makes_the_root_look() {
    let mut bed = Bed::running(4, CONTINUE);
    bed.kill_host(1);
    bed.agents
        .get_mut(&0)
        .expect("there")
        .report_unreachable(process(2, 0));
    bed.run(Pace::DEFAULT.refused);
    assert_eq!(bed.verdicts(), [lost(2), lost(3)]);
}

#[test]
fn who_cannot_be_reached_by_a_process_but_beats_lives() {
    let mut bed = Bed::running(4, CONTINUE);
    for _ in 0..20 {
        bed.agents
            .get_mut(&0)
            .expect("there")
            .report_unreachable(process(2, 0));
        bed.run_ms(1000);
    }
    assert_eq!(bed.verdicts(), []);
}

#[test]
fn one_bad_link_to_the_root_kills_nobody() {
    for ways in [[true, true], [true, false], [false, true]] {
        let mut bed = Bed::running(3, CONTINUE);
        bed.cut_way(Party::Root, Party::Host(2), ways[0]);
        bed.cut_way(Party::Host(2), Party::Root, ways[1]);
        bed.run(Duration::from_secs(60));
        assert_eq!(
            (bed.verdicts(), &bed.ends[..]),
            (vec![], &[][..]),
            "{ways:?}"
        );
        // News reach it as well, and its reports the root.
        bed.kill(0, 0, Death::Signal(6));
        bed.kill(4, 0, Death::Signal(11));
        bed.run(Duration::from_secs(4));
        let both = [
            (process(0, 0), Death::Signal(6)),
            (process(4, 0), Death::Signal(11)),
        ];
        assert_eq!(bed.verdicts(), both, "{ways:?}");
        let members = bed.agent(2).members();
        assert_eq!(members, bed.root.members(), "{ways:?}");
    }
}

#[test]
fn a_paused_host_below_the_lease_lives_and_beyond_it_ends_itself() {
    let mut bed = Bed::running(3, CONTINUE);
    bed.paused.insert(1);
    bed.run_ms(6000);
    bed.paused.clear();
    bed.run_ms(5000);
    assert_eq!(bed.verdicts(), []);
    bed.paused.insert(1);
    bed.run_ms(30_000);
    assert_eq!(bed.verdicts(), [lost(2), lost(3)]);
    assert_eq!(bed.ends, []);
    bed.paused.clear();
    bed.run_ms(100);
    assert_eq!(bed.ends.len(), 1);
    assert_eq!(bed.finished, [1].into());
}

#[test]
fn a_root_that_was_late_looks_for_nobody() {
    let mut bed = Bed::running(3, CONTINUE);
    let frames = bed.frames;
    // Nobody is served for 5 s, then ticks come before anything that was sent.
    bed.now = bed.now + Duration::from_secs(5);
    bed.root.handle_tick(bed.now);
    assert_eq!(bed.root.poll_action(), None);
    assert_eq!(bed.frames, frames);
}

#[test]
fn who_says_that_it_is_starved_is_suspected_later_and_lost_no_later() {
    let mut root = Root::new(Pace::DEFAULT, CONTINUE);
    root.place(HostId(0), crate::id::Rank(0), 1, Time(0));
    root.place(HostId(1), crate::id::Rank(1), 1, Time(0));
    let agents = [0, 1].map(|host| AgentId::new(HostId(host), 1));
    let up = |agent: AgentId, said| FromAgent {
        agent,
        epoch: Epoch(0),
        said,
    };
    let hello = || Said::Hello {
        number: 1,
        locator: String::new(),
    };
    let beat = |number, late| Said::Beat {
        number,
        late: Duration::from_millis(late),
        reports: 0,
    };
    for agent in agents {
        root.handle_frame(agent.host, up(agent, hello()), Time(0));
    }
    let mut looked = vec![];
    root.handle_frame(HostId(1), up(agents[1], beat(2, 800)), Time(0));
    for tenths in 1..130 {
        let now = Time(tenths * 100_000_000);
        if tenths % 10 == 0 {
            root.handle_frame(HostId(0), up(agents[0], beat(2 + tenths, 0)), now);
        }
        if root.next_wakeup().is_some_and(|due| due <= now) {
            root.handle_tick(now);
        }
        while let Some(action) = root.poll_action() {
            if matches!(
                &action,
                RootAction::Send(
                    _,
                    FromRoot {
                        said: Order::Look { .. },
                        ..
                    }
                )
            ) {
                looked.push(tenths);
            }
        }
        let lives = root.members().is_here(agents[1]);
        assert_eq!(lives, tenths < 120, "at {tenths} tenths of a second");
    }
    assert_eq!(looked, [80, 100]);
}

#[test]
fn a_stale_beat_renews_nothing() {
    let mut root = Root::new(Pace::DEFAULT, CONTINUE);
    let agent = AgentId::new(HostId(0), 1);
    let up = |said| FromAgent {
        agent,
        epoch: Epoch(0),
        said,
    };
    root.handle_frame(
        HostId(0),
        up(Said::Hello {
            number: 1,
            locator: String::new(),
        }),
        Time(0),
    );
    let beat = |number| {
        up(Said::Beat {
            number,
            late: Duration::ZERO,
            reports: 0,
        })
    };
    root.handle_frame(HostId(0), beat(5), Time(0));
    for second in 1..12 {
        let now = Time(second * 1_000_000_000);
        root.handle_frame(HostId(0), beat(4), now);
        root.handle_frame(HostId(0), beat(5), now);
        root.handle_tick(now);
        assert!(root.members().is_here(agent));
    }
    root.handle_tick(Time(12_000_000_000));
    assert!(!root.members().is_here(agent));
}

#[test]
fn a_lease_counts_from_when_the_answered_beat_was_sent() {
    let mut bed = Bed::running(2, CONTINUE);
    let agent = bed.agents.get_mut(&1).expect("there");
    let before = agent.lease_until();
    let due = agent.next_wakeup().expect("beats");
    agent.handle_tick(due);
    let mut number = 0;
    while let Some(action) = agent.poll_action() {
        if let AgentAction::ToRoot(FromAgent {
            said: Said::Beat { number: beat, .. },
            ..
        }) = action
        {
            number = beat;
        }
    }
    let (to, epoch) = (agent.id(), agent.members().epoch());
    let grant = |number, age| FromRoot {
        to,
        epoch,
        said: Order::Grant {
            number,
            age,
            reports: 0,
        },
    };
    // Whatever was never sent is worth nothing.
    agent.handle_root(grant(number + 1, Duration::ZERO), due);
    assert_eq!(agent.lease_until(), before);
    agent.handle_root(
        grant(number, Duration::from_secs(3)),
        due + Duration::from_secs(5),
    );
    assert_eq!(
        agent.lease_until(),
        Some(due + Duration::from_secs(7)).max(before)
    );
    agent.handle_root(grant(number, Duration::ZERO), due + Duration::from_secs(6));
    assert_eq!(agent.lease_until(), Some(due + Pace::DEFAULT.lease));
}

#[test]
fn a_death_has_one_cause_and_the_first_that_was_told_counts() {
    let mut bed = Bed::running(3, CONTINUE);
    bed.kill(2, 0, Death::Signal(6));
    bed.run_ms(10);
    bed.kill_host(1);
    bed.root.handle_refused(AgentId::new(HostId(1), 1), bed.now);
    bed.run_ms(500);
    assert_eq!(bed.verdicts(), [(process(2, 0), Death::Signal(6)), lost(3)]);
    let told: Vec<&Vec<Notice>> = [0, 2].iter().map(|host| &bed.told[host]).collect();
    assert_eq!(told[0], told[1]);
}

#[test]
fn everybody_is_told_the_same_in_the_same_order_without_gaps() {
    let mut bed = Bed::running(5, CONTINUE);
    for rank in [0, 9, 4, 7] {
        bed.kill(rank, 0, Death::Exit(1));
        bed.run_ms(70);
    }
    bed.run_ms(2000);
    for told in bed.told.values() {
        assert_eq!(told, &bed.told[&0]);
    }
    let epochs: Vec<u64> = bed.told[&0].iter().map(|notice| notice.epoch.0).collect();
    assert!(
        epochs.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{epochs:?}"
    );
    assert_eq!(bed.verdicts().len(), 4);
}

#[test]
fn a_lost_rack_is_one_epoch() {
    let mut bed = Bed::running(6, CONTINUE);
    let before = bed.log.len();
    for host in [3, 4, 5] {
        bed.kill_host(host);
        bed.root
            .handle_refused(AgentId::new(HostId(host), 1), bed.now);
        bed.run_ms(30);
    }
    bed.run_ms(1000);
    assert_eq!(bed.log.len(), before + 1);
    assert_eq!(bed.verdicts().len(), 6);
}

#[test]
fn news_that_never_stop_are_told_after_250_ms() {
    let mut bed = Bed::running(5, CONTINUE);
    let before = bed.log.len();
    for rank in 0..8 {
        bed.kill(rank, 0, Death::Exit(3));
        bed.run_ms(40);
    }
    assert_eq!(bed.log.len(), before + 1, "320 ms of news, 40 ms apart");
}

#[test]
fn news_that_were_lost_are_sent_again() {
    let mut bed = Bed::running(3, CONTINUE);
    bed.isolate(2, true);
    for rank in 0..4 {
        bed.kill(rank, 0, Death::Exit(1));
        bed.run_ms(300);
    }
    bed.run_ms(2000);
    bed.isolate(2, false);
    bed.run_ms(3500);
    assert_eq!(bed.told[&2], bed.told[&0]);
    assert_eq!(bed.root.kept(), 0, "what all have is forgotten");
}

#[test]
fn reports_that_were_lost_are_sent_again_and_taken_in_order() {
    let mut bed = Bed::running(3, CONTINUE);
    bed.cut_way(Party::Host(1), Party::Root, true);
    bed.kill(3, 0, Death::Signal(6));
    bed.kill(2, 0, Death::Exit(7));
    bed.run_ms(1500);
    assert_eq!(bed.verdicts(), []);
    bed.cut_way(Party::Host(1), Party::Root, false);
    bed.run_ms(3000);
    let both = [
        (process(3, 0), Death::Signal(6)),
        (process(2, 0), Death::Exit(7)),
    ];
    assert_eq!(bed.verdicts(), both);
}

#[test]
fn the_log_replayed_into_another_root_gives_the_same_members() {
    let policy = Policy {
        on_death: OnDeath::Restart,
        max_restarts: 9,
    };
    let mut bed = Bed::running(4, policy);
    bed.kill(1, 0, Death::Signal(6));
    bed.run_ms(400);
    bed.kill(1, 1, Death::Exit(2));
    bed.kill(5, 0, Death::Exit(0));
    bed.run_ms(1000);
    assert!(bed.root.is_told());
    let other = Root::resume(Pace::DEFAULT, policy, bed.log.clone(), bed.now);
    assert_eq!(other.expect("a log").members(), bed.root.members());
    assert_eq!(bed.root.members().restarts(), 2);
}

#[test]
fn a_log_with_a_hole_is_refused() {
    let mut bed = Bed::running(4, CONTINUE);
    bed.kill(1, 0, Death::Signal(6));
    bed.run_ms(400);
    bed.kill(2, 0, Death::Signal(6));
    bed.run_ms(400);
    bed.log.remove(1);
    assert!(Root::resume(Pace::DEFAULT, CONTINUE, bed.log, bed.now).is_err());
}

#[test]
fn a_root_that_takes_over_goes_on_and_pronounces_nobody_for_a_lease() {
    let mut bed = Bed::running(4, CONTINUE);
    bed.kill(1, 0, Death::Signal(6));
    bed.run_ms(1500);
    bed.isolate(3, true);
    bed.run_ms(5000);
    // The former root is gone; for 3 s nobody answers.
    bed.now = bed.now + Duration::from_secs(3);
    bed.root = Root::resume(Pace::DEFAULT, CONTINUE, bed.log.clone(), bed.now).expect("a log");
    let took_over = bed.now;
    bed.run(Pace::DEFAULT.lease);
    assert_eq!(here(&bed), [0, 1, 2, 3]);
    bed.kill(2, 0, Death::Signal(11));
    bed.run_ms(3000);
    assert!(bed.now.since(took_over) > Pace::DEFAULT.verdict());
    assert_eq!(here(&bed), [0, 1, 2]);
    assert!(bed.verdicts().contains(&(process(2, 0), Death::Signal(11))));
    assert_eq!(bed.agent(0).members(), bed.root.members());
}

#[test]
fn the_death_of_a_process_ends_the_job_unless_told_otherwise() {
    let mut bed = Bed::running(3, STOP);
    bed.kill(3, 0, Death::Signal(6));
    bed.run_ms(3000);
    let ending = Ending::Process {
        process: process(3, 0),
        how: Death::Signal(6),
    };
    assert_eq!(bed.endings(), [ending]);
    assert!(
        bed.ends
            .iter()
            .all(|(_, why, _)| *why == Why::JobEnds(ending))
    );
    assert_eq!(bed.finished, [0, 1, 2].into());
    assert!(here(&bed).is_empty());
}

#[test]
fn the_loss_of_a_host_ends_the_job_unless_it_is_to_go_on() {
    let restart = Policy {
        on_death: OnDeath::Restart,
        max_restarts: 9,
    };
    for policy in [STOP, restart] {
        let mut bed = Bed::running(3, policy);
        bed.kill_host(2);
        bed.run_ms(8000);
        let ending = Ending::Host {
            host: HostId(2),
            how: HostEnd::Refused,
        };
        assert_eq!(bed.endings(), [ending]);
        assert_eq!(bed.finished, [0, 1].into());
    }
}

#[test]
fn a_process_is_started_again_as_often_as_is_allowed() {
    let mut bed = Bed::running(
        2,
        Policy {
            on_death: OnDeath::Restart,
            max_restarts: 2,
        },
    );
    for life in 0..3 {
        bed.kill(1, life, Death::Signal(6));
        bed.run_ms(1000);
    }
    assert_eq!(bed.started[4..], [process(1, 1), process(1, 2)]);
    let ending = Ending::Process {
        process: process(1, 2),
        how: Death::Signal(6),
    };
    assert_eq!(bed.endings(), [ending]);
}

#[test]
fn a_job_whose_processes_have_all_ended_is_done_and_agents_go() {
    let mut bed = Bed::running(3, STOP);
    for rank in 0..6 {
        bed.kill(rank, 0, Death::Exit(0));
        bed.run_ms(20);
    }
    bed.run_ms(3000);
    assert_eq!(bed.endings(), [Ending::Done]);
    assert_eq!(bed.finished, [0, 1, 2].into());
}

#[test]
fn an_agent_that_said_goodbye_and_was_not_heard_goes_all_the_same() {
    let mut bed = Bed::running(2, CONTINUE);
    bed.root.stop(1, bed.now);
    bed.run_ms(52);
    bed.isolate(1, true);
    bed.run_ms(15_000);
    assert_eq!(bed.finished, [0, 1].into());
    assert!(here(&bed).is_empty());
}

#[test]
fn frames_for_another_life_or_from_another_host_are_ignored() {
    let mut bed = Bed::running(3, CONTINUE);
    let agent = AgentId::new(HostId(1), 1);
    let report = Report::Ended {
        process: process(2, 0),
        how: Death::Exit(1),
    };
    let forged = FromAgent {
        agent,
        epoch: Epoch(1),
        said: Said::Report { number: 3, report },
    };
    bed.root.handle_frame(HostId(2), forged, bed.now);
    // One's own report on another's process.
    let agent = AgentId::new(HostId(2), 1);
    let number = 3;
    let foreign = FromAgent {
        agent,
        epoch: Epoch(1),
        said: Said::Report { number, report },
    };
    bed.root.handle_frame(HostId(2), foreign, bed.now);
    bed.run_ms(500);
    assert_eq!(bed.verdicts(), []);
    let how = HostEnd::Silent;
    let to = AgentId::new(HostId(2), 2);
    let over = FromRoot {
        to,
        epoch: Epoch(9),
        said: Order::Over { how },
    };
    let now = bed.now;
    bed.agents
        .get_mut(&2)
        .expect("there")
        .handle_root(over, now);
    bed.run_ms(500);
    assert_eq!(bed.ends, []);
}

#[test]
fn an_agent_refuses_what_is_of_an_old_epoch() {
    let mut bed = Bed::running(2, CONTINUE);
    bed.kill(0, 0, Death::Exit(1));
    bed.run_ms(500);
    let (to, now) = (AgentId::new(HostId(1), 1), bed.now);
    let agent = bed.agents.get_mut(&1).expect("there");
    let epoch = Epoch(agent.members().epoch().0 - 1);
    let old = FromRoot {
        to,
        epoch,
        said: Order::Over {
            how: HostEnd::Silent,
        },
    };
    agent.handle_root(old, now);
    assert!(agent.is_member());
}

#[test]
fn an_idle_job_sends_a_beat_and_a_grant_a_second_for_each_agent() {
    let mut bed = Bed::running(4, CONTINUE);
    bed.run_ms(2000);
    let before = bed.frames;
    bed.run(Duration::from_secs(60));
    assert_eq!(bed.frames - before, 4 * 2 * 60);
}

#[test]
fn a_welcome_that_comes_after_its_lease_is_none_and_the_next_one_counts() {
    let mut bed = Bed::new(2, CONTINUE);
    bed.begin(0, 1);
    bed.begin(1, 1);
    let late = bed.now + Pace::DEFAULT.lease;
    let me = AgentId::new(HostId(1), 1);
    let mut agent = Agent::new(me, Pace::DEFAULT, String::new(), bed.now);
    agent.handle_tick(bed.now);
    bed.run_ms(1000);
    let welcome = |number| FromRoot {
        to: me,
        epoch: bed.root.members().epoch(),
        said: Order::Welcome {
            number,
            members: Box::new(bed.root.members().clone()),
        },
    };
    agent.handle_root(welcome(1), late);
    assert!(!agent.is_member());
    agent.handle_tick(late);
    assert!(agent.next_wakeup() > Some(late), "it would ring for ever");
    agent.handle_root(welcome(2), late);
    assert!(agent.is_member());
}

#[test]
fn an_agent_that_joined_with_the_first_of_two_welcomes_gets_what_was_decided_between() {
    let mut bed = Bed::new(2, CONTINUE);
    bed.begin(0, 1);
    bed.run_ms(1000);
    let agent = AgentId::new(HostId(1), 1);
    let said = |number| Said::Hello {
        number,
        locator: String::new(),
    };
    let up = |epoch, said| FromAgent { agent, epoch, said };
    let say = |bed: &mut Bed, epoch, said| {
        bed.root.handle_frame(HostId(1), up(epoch, said), bed.now);
        let mut got = vec![];
        while let Some(action) = bed.root.poll_action() {
            match action {
                RootAction::Send(HostId(1), frame) => got.push(frame.said),
                RootAction::Append(news) => bed.log.push(news),
                _ => {}
            }
        }
        got
    };
    say(&mut bed, Epoch(0), said(1));
    let joined = bed.root.members().epoch();
    bed.kill(0, 0, Death::Exit(1));
    bed.run_ms(500);
    assert!(bed.root.members().epoch() > joined);
    say(&mut bed, Epoch(0), said(2));
    let beat = |number| Said::Beat {
        number,
        late: Duration::ZERO,
        reports: 0,
    };
    let got = [3, 4].map(|number| say(&mut bed, joined, beat(number)));
    let lacks = got
        .iter()
        .flatten()
        .any(|said| matches!(said, Order::News(news) if news.epoch.0 == joined.0 + 1));
    assert!(lacks, "{got:?}");
}

#[test]
fn after_a_signal_of_the_user_nobody_is_started_again() {
    for on_death in [OnDeath::Restart, OnDeath::Continue] {
        let policy = Policy {
            on_death,
            max_restarts: 9,
        };
        let mut bed = Bed::running(3, policy);
        bed.root.interrupt(2, bed.now);
        bed.run_ms(1);
        let told = bed.log.last().unwrap();
        assert_eq!(told.entries, [Entry::Interrupted { signal: 2 }], "at once");
        let started = bed.started.len();
        bed.kill(2, 0, Death::Signal(2));
        bed.run_ms(1000);
        assert_eq!(bed.started.len(), started);
        let ending = bed.root.members().ending();
        assert!(matches!(ending, Some(Ending::Process { .. })), "{ending:?}");
    }
}

#[test]
fn a_death_and_what_follows_from_it_are_of_one_epoch() {
    let policy = Policy {
        on_death: OnDeath::Restart,
        max_restarts: 1 << 20,
    };
    let mut root = Root::new(Pace::ALONE, policy);
    let me = AgentId::new(HostId(0), 1);
    assert!(root.place(HostId(0), Rank(0), 2, Time(0)));
    let say = |root: &mut Root, said| {
        let epoch = root.members().epoch();
        let agent = me;
        root.handle_frame(HostId(0), FromAgent { agent, epoch, said }, Time(1));
    };
    let locator = String::new();
    say(&mut root, Said::Hello { number: 1, locator });
    for life in 0..2 * MAX_ENTRIES as u32 {
        let process = ProcessId::new(Rank(0), Incarnation(life));
        let how = Death::Signal(9);
        let report = Report::Ended { process, how };
        let number = u64::from(life) + 1;
        say(&mut root, Said::Report { number, report });
    }
    while let Some(action) = root.poll_action() {
        if let RootAction::Append(news) = action {
            let last = news.entries.last();
            assert!(
                !matches!(last, Some(Entry::Ended { .. })),
                "epoch {}",
                news.epoch
            );
            assert!(news.entries.len() <= MAX_ENTRIES);
        }
    }
}

#[test]
fn an_agent_with_many_reports_does_not_wait_for_its_next_beat() {
    let mut root = Root::new(Pace::ALONE, CONTINUE);
    let mut agent = Agent::new(
        AgentId::new(HostId(0), 1),
        Pace::ALONE,
        String::new(),
        Time(0),
    );
    let count = 4 * MAX_UNACKNOWLEDGED as u32;
    assert!(root.place(HostId(0), Rank(0), count, Time(0)));
    let (mut started, mut now) = (0, Time(0));
    loop {
        now = now + std::time::Duration::from_nanos(1);
        root.handle_tick(now);
        agent.handle_tick(now);
        let mut quiet = true;
        while let Some(action) = agent.poll_action() {
            quiet = false;
            match action {
                AgentAction::ToRoot(frame) => root.handle_frame(HostId(0), frame, now),
                AgentAction::Start(process, _) => agent.handle_started(process, 1),
                _ => {}
            }
        }
        while let Some(action) = root.poll_action() {
            quiet = false;
            match action {
                RootAction::Send(_, frame) => agent.handle_root(frame, now),
                RootAction::Started { .. } => started += 1,
                RootAction::Append(_) => {}
            }
        }
        if quiet && agent.is_member() {
            break;
        }
    }
    assert_eq!(started, count);
}
