mod logs;

use super::*;
use crate::hosts::deal;
use mizzen_proto::id::{Incarnation, ProcessId, Rank as RankId};
use mizzen_proto::membership::{AgentId, Epoch, HostId};

fn job(policy: OnDeath) -> Job {
    let hosts = vec!["h1".into(), "h2".into()];
    let mut job = Job::new(&[0, 0, 1, 1], hosts, policy, 2, Pace::FAST);
    for rank in 0..4 {
        job.handle_started(rank, 0, 100 + rank);
    }
    let joined = |host| Entry::HostJoined {
        agent: agent(host),
        locator: String::new(),
    };
    assert_eq!(job.read(&news(vec![joined(0), joined(1)])), []);
    job
}

fn agent(host: u32) -> AgentId {
    AgentId::new(HostId(host), 1)
}

fn news(entries: Vec<Entry>) -> News {
    let epoch = Epoch(1);
    News { epoch, entries }
}

fn life(rank: u32, incarnation: u32) -> ProcessId {
    ProcessId::new(RankId(rank), Incarnation(incarnation))
}

/// What the log says of a death, by the policy of the job.
fn exited(job: &mut Job, rank: u32, incarnation: u32, how: Death) -> Vec<Action> {
    let process = life(rank, incarnation);
    let mut entries = vec![Entry::Ended { process, how }];
    let state = job.ranks.get(rank as usize);
    let is_last = state.is_some_and(|state| state.incarnation == incarnation);
    if how != Death::Exit(0) && is_last && !job.stopping {
        let ends = Entry::JobEnds(Ending::Process { process, how });
        let again = Entry::Restarted {
            process: life(rank, incarnation + 1),
            host: HostId(0),
        };
        match job.policy {
            _ if !job.interrupts.is_empty() => entries.push(ends),
            OnDeath::Continue => {}
            OnDeath::Restart if job.restarts < job.max_restarts => entries.push(again),
            OnDeath::Stop | OnDeath::Restart => entries.push(ends),
        }
    }
    job.read(&news(entries))
}

fn host_lost(job: &mut Job, host: u32, how: HostEnd) -> Vec<Action> {
    let agent = agent(host);
    let mut entries = vec![Entry::HostEnded { agent, how }];
    if job.policy != OnDeath::Continue {
        let host = HostId(host);
        entries.push(Entry::JobEnds(Ending::Host { host, how }));
    }
    job.read(&news(entries))
}

fn left(job: &mut Job, rank: u32) -> Vec<Action> {
    let process = life(rank, 0);
    job.read(&news(vec![Entry::Left { process }]))
}

fn stop(code: u8) -> Action {
    Action::Broadcast(ToAgent::Stop { code })
}

#[test]
fn ranks_are_dealt_in_blocks() {
    assert_eq!(deal(4, 2).collect::<Vec<_>>(), [0, 0, 1, 1]);
    assert_eq!(deal(5, 2).collect::<Vec<_>>(), [0, 0, 0, 1, 1]);
    assert_eq!(deal(3, 3).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(job(OnDeath::Stop).ranks_of(1), [2, 3]);
}

#[test]
fn a_job_whose_processes_all_exit_with_zero_succeeds() {
    let mut job = job(OnDeath::Stop);
    for rank in 0..4 {
        assert!(!job.is_over());
        assert_eq!(exited(&mut job, rank, 0, Death::Exit(0)), []);
    }
    assert!(job.is_over());
    assert_eq!((job.exit_code(), job.verdict()), (0, None));
}

#[test]
fn the_first_failure_stops_the_job_and_is_the_only_one_told() {
    let mut job = job(OnDeath::Stop);
    assert_eq!(exited(&mut job, 2, 0, Death::Signal(9)), [stop(137)]);
    for rank in [0, 1, 3] {
        assert_eq!(exited(&mut job, rank, 0, Death::Signal(15)), []);
    }
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 137);
    let verdict = job.verdict().unwrap();
    assert_eq!(
        verdict,
        "rank 2 on h2 (pid 102) was killed by signal 9 (SIGKILL); ended the other 3 processes."
    );
}

#[test]
fn a_job_that_continues_tells_all_and_fails_in_the_end() {
    let mut job = job(OnDeath::Continue);
    let actions = exited(&mut job, 1, 0, Death::Exit(3));
    let said = "rank 1 on h1 (pid 101) exited with code 3; the other 3 processes go on.";
    assert_eq!(actions, says(said));
    exited(&mut job, 0, 0, Death::Exit(5));
    for rank in [2, 3] {
        exited(&mut job, rank, 0, Death::Exit(0));
    }
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 3);
}

#[test]
fn a_job_that_continues_succeeds_without_those_that_were_killed() {
    let mut job = job(OnDeath::Continue);
    exited(&mut job, 1, 0, Death::Signal(9));
    host_lost(&mut job, 1, HostEnd::Refused);
    assert_eq!(job.exit_code(), 137, "nobody has ended well yet");
    exited(&mut job, 0, 0, Death::Exit(0));
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 0);
}

#[test]
fn a_restarted_process_is_told_once() {
    let mut job = job(OnDeath::Restart);
    let actions = exited(&mut job, 3, 0, Death::Signal(11));
    let said = "rank 3 on h2 (pid 103) was killed by signal 11 (SIGSEGV); started it again (incarnation 1).";
    assert_eq!(actions, says(said));
    job.handle_started(3, 1, 200);
    assert_eq!(
        exited(&mut job, 3, 0, Death::Signal(11)),
        [],
        "a late word of its last life"
    );
    for rank in 0..4 {
        exited(&mut job, rank, u32::from(rank == 3), Death::Exit(0));
    }
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 0);
}

#[test]
fn restarts_have_a_limit() {
    let mut job = job(OnDeath::Restart);
    for incarnation in 0..2 {
        let actions = exited(&mut job, 0, incarnation, Death::Exit(1));
        assert!(!actions.contains(&stop(1)));
    }
    let actions = exited(&mut job, 0, 2, Death::Exit(1));
    assert!(actions.contains(&stop(1)));
    assert!(job.verdict().unwrap().contains("--max-restarts"));
}

#[test]
fn an_interrupted_job_starts_nothing_again() {
    let mut job = job(OnDeath::Restart);
    job.handle_signal(2);
    assert_eq!(exited(&mut job, 0, 0, Death::Signal(2)), [stop(130)]);
    assert_eq!(job.exit_code(), 130);
}

#[test]
fn who_ends_of_a_signal_that_was_passed_on_is_not_blamed() {
    for how in [Death::Signal(15), Death::Exit(143)] {
        let mut job = job(OnDeath::Stop);
        job.handle_signal(1);
        job.handle_signal(15);
        assert_eq!(exited(&mut job, 2, 0, how), [stop(143)]);
        for rank in [0, 1, 3] {
            exited(&mut job, rank, 0, Death::Signal(15));
        }
        let verdict = job.verdict().unwrap();
        assert_eq!(verdict, "got SIGTERM; ended the 4 processes.");
        assert_eq!(job.exit_code(), 143);
    }
}

#[test]
fn only_those_who_ran_when_a_signal_came_are_said_to_be_ended_by_it() {
    let mut job = job(OnDeath::Stop);
    exited(&mut job, 0, 0, Death::Exit(0));
    job.handle_signal(2);
    exited(&mut job, 1, 0, Death::Exit(0));
    exited(&mut job, 2, 0, Death::Signal(2));
    let verdict = job.verdict().unwrap();
    assert_eq!(verdict, "got SIGINT; ended the 3 processes that still ran.");
}

#[test]
fn who_fails_otherwise_after_a_signal_is_named() {
    let mut job = job(OnDeath::Continue);
    job.handle_signal(15);
    exited(&mut job, 2, 0, Death::Exit(3));
    assert_eq!(
        job.verdict().unwrap(),
        "rank 2 on h2 (pid 102) exited with code 3 after SIGTERM; ended the other 3 processes."
    );
    assert_eq!(job.exit_code(), 3);
}

#[test]
fn who_ended_before_a_signal_came_is_named() {
    let mut job = job(OnDeath::Stop);
    exited(&mut job, 2, 0, Death::Signal(15));
    job.handle_signal(15);
    let verdict = job.verdict().unwrap();
    assert!(verdict.starts_with("rank 2 on h2"), "{verdict}");
}

#[test]
fn processes_that_end_in_order_after_a_signal_are_no_failure() {
    let mut job = job(OnDeath::Stop);
    job.handle_signal(15);
    for rank in 0..4 {
        assert_eq!(exited(&mut job, rank, 0, Death::Exit(0)), []);
    }
    assert_eq!((job.exit_code(), job.verdict()), (0, None));
}

fn says(sentence: &str) -> Vec<Action> {
    vec![Action::Say(sentence.to_owned())]
}

#[test]
fn who_waits_while_others_end_is_told_how_many() {
    let mut job = job(OnDeath::Stop);
    let mut now = Time(1);
    let expected = [
        "rank 0 on h1 has waited.",
        "rank 0 on h1 has waited; 1 of the other 3 processes has ended.",
        "rank 0 on h1 has waited; 2 of the other 3 processes have ended.",
        "rank 0 on h1 has waited; the other 3 processes have ended.",
    ];
    for (ended, sentence) in (1..).zip(expected) {
        assert_eq!(job.handle_waiting(0, "has waited", now), says(sentence));
        exited(&mut job, ended, 0, Death::Exit(0));
        now = now + HINT_INTERVAL;
    }
    assert_eq!(words::have_ended(1, 1), "; the other process has ended");
}

#[test]
fn several_who_wait_are_not_told_who_ended() {
    let mut job = job(OnDeath::Stop);
    let now = Time(1);
    exited(&mut job, 3, 0, Death::Exit(0));
    job.handle_waiting(1, "waits", now);
    assert_eq!(
        job.handle_waiting(0, "waits", now),
        says("rank 0 on h1 waits.")
    );
    exited(&mut job, 1, 0, Death::Exit(0));
    assert_eq!(
        job.handle_waiting(0, "waits", now + HINT_INTERVAL),
        says("rank 0 on h1 waits; 2 of the other 3 processes have ended.")
    );
}

#[test]
fn hints_of_a_rank_are_apart_even_if_it_is_started_again() {
    let mut job = job(OnDeath::Restart);
    let now = Time(1);
    let soon = now + (HINT_INTERVAL - Duration::from_millis(1));
    assert_eq!(job.handle_waiting(2, "waits", now).len(), 1);
    assert_eq!(job.handle_waiting(3, "waits", now).len(), 1);
    assert_eq!(job.handle_waiting(2, "waits", soon), []);
    exited(&mut job, 2, 0, Death::Exit(1));
    job.handle_started(2, 1, 200);
    assert_eq!(job.handle_waiting(2, "waits", soon), []);
    assert_eq!(job.handle_waiting(2, "waits", now + HINT_INTERVAL).len(), 1);
}

#[test]
fn a_hint_is_one_line_without_control_characters() {
    let mut job = job(OnDeath::Stop);
    let now = Time(1);
    assert_eq!(
        job.handle_waiting(0, "waits\nfor \x1b[31m\u{9b}.\r\n", now),
        says("rank 0 on h1 waits for  [31m.")
    );
    assert_eq!(job.handle_waiting(1, " \n", now), []);
}

#[test]
fn hints_of_nobody_and_of_those_who_end_are_not_told() {
    let mut job = job(OnDeath::Stop);
    let now = Time(1);
    assert_eq!(job.handle_waiting(4, "waits", now), []);
    exited(&mut job, 1, 0, Death::Exit(0));
    assert_eq!(job.handle_waiting(1, "waits", now), []);
    exited(&mut job, 2, 0, Death::Exit(1));
    assert_eq!(job.handle_waiting(0, "waits", now), []);
}

#[test]
fn who_asks_early_is_answered_when_the_process_is_ready() {
    let mut job = job(OnDeath::Stop);
    assert_eq!(job.handle_locate(0, 3, 0), []);
    let located = ToAgent::Located {
        rank: 3,
        incarnation: 0,
        locator: "there".into(),
    };
    assert_eq!(
        job.handle_ready(3, 0, "there".into()),
        [Action::Tell(0, located.clone())]
    );
    assert_eq!(job.handle_locate(0, 3, 0), [Action::Tell(0, located)]);
}

#[test]
fn who_asks_for_the_gone_is_told_so() {
    let unreachable = |rank, reason| vec![Action::Tell(0, ToAgent::Unreachable { rank, reason })];
    let mut job = job(OnDeath::Continue);
    assert_eq!(
        job.handle_locate(0, 9, 0),
        unreachable(9, Unreachable::NoSuchRank)
    );
    assert_eq!(job.handle_locate(0, 2, 0), []);
    assert_eq!(left(&mut job, 2), unreachable(2, Unreachable::Left));
    assert_eq!(
        job.handle_locate(0, 2, 0),
        unreachable(2, Unreachable::Left)
    );
    assert_eq!(job.handle_locate(0, 3, 0), []);
    let actions = exited(&mut job, 3, 0, Death::Exit(1));
    assert_eq!(actions[..1], unreachable(3, Unreachable::Dead));
    assert_eq!(
        job.handle_locate(0, 3, 0),
        unreachable(3, Unreachable::Dead)
    );
}

#[test]
fn a_process_that_is_ready_before_the_log_tells_of_it_is_found() {
    let mut job = job(OnDeath::Restart);
    job.handle_ready(3, 0, "old".into());
    assert_eq!(job.handle_locate(0, 3, 1), [], "of a life not heard of");
    let located = ToAgent::Located {
        rank: 3,
        incarnation: 1,
        locator: "new".into(),
    };
    let told = [Action::Tell(0, located)];
    assert_eq!(job.handle_ready(3, 1, "new".into()), told);
    exited(&mut job, 3, 0, Death::Signal(9));
    assert_eq!(job.handle_ready(3, 0, "old".into()), []);
    assert_eq!(job.handle_locate(0, 3, 0), told);
}

#[test]
fn a_lost_host_stops_the_job_in_one_sentence() {
    let mut job = job(OnDeath::Stop);
    assert_eq!(host_lost(&mut job, 1, HostEnd::Refused), [stop(255)]);
    // How its remote shell ended may be known later, and says more.
    assert_eq!(job.handle_closed(1, "its remote shell ended".into()), []);
    assert_eq!(
        job.verdict().unwrap(),
        "host h2 was lost: its remote shell ended; ended the other 2 processes."
    );
    exited(&mut job, 0, 0, Death::Signal(15));
    exited(&mut job, 1, 0, Death::Signal(15));
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 255);
}

#[test]
fn a_job_that_continues_survives_a_lost_host() {
    let mut job = job(OnDeath::Continue);
    assert_eq!(job.handle_closed(1, "its remote shell ended".into()), []);
    let said = "host h2 was lost: its remote shell ended; the others go on.";
    assert_eq!(host_lost(&mut job, 1, HostEnd::Refused), says(said));
    assert!(!job.is_over());
}

#[test]
fn a_silent_host_is_said_to_be_silent() {
    let mut job = job(OnDeath::Continue);
    let said = "host h2 was lost: nothing was heard of it for 4.5 s; the others go on.";
    assert_eq!(host_lost(&mut job, 1, HostEnd::Silent), says(said));
}

#[test]
fn no_job_goes_on_without_the_root() {
    let mut job = job(OnDeath::Continue);
    assert_eq!(job.handle_root_silent(), [stop(255)]);
    assert_eq!(
        job.verdict().unwrap(),
        "host h1 was lost: nothing was heard of it for 2.5 s; ended the other 2 processes."
    );
}

#[test]
fn a_signal_is_passed_on_when_the_log_has_it() {
    let mut job = job(OnDeath::Restart);
    let origin = SignalOrigin::Terminal;
    let interrupt = Action::Tell(0, ToAgent::Interrupt { number: 2 });
    assert_eq!(job.pass_on(2, origin), [interrupt]);
    let signal = |number| Action::Broadcast(ToAgent::Signal { number, origin });
    let told = news(vec![Entry::Interrupted { signal: 2 }]);
    assert_eq!(job.read(&told), [signal(2)]);
    // Those that ask for nothing go at once.
    assert_eq!(job.pass_on(10, origin), [signal(10)]);
}

#[test]
fn several_hosts_that_end_themselves_are_one_sentence() {
    let mut job = job(OnDeath::Continue);
    let said = "host h2 has not heard the first.";
    assert_eq!(job.handle_fenced(1, "has not heard the first"), says(said));
    assert_eq!(job.handle_fenced(1, "has not heard the first"), []);
}
