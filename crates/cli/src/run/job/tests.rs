use super::*;

fn job(policy: OnDeath) -> Job {
    let mut job = Job::new(4, vec!["h1".into(), "h2".into()], policy, 2);
    for rank in 0..4 {
        assert_eq!(job.handle_started(rank, 0, 100 + rank), []);
    }
    job
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
        assert_eq!(job.handle_exited(rank, 0, Death::Exit(0)), []);
    }
    assert!(job.is_over());
    assert_eq!((job.exit_code(), job.verdict()), (0, None));
}

#[test]
fn the_first_failure_stops_the_job_and_is_the_only_one_told() {
    let mut job = job(OnDeath::Stop);
    assert_eq!(
        job.handle_exited(2, 0, Death::Signal(9)),
        [Action::Broadcast(ToAgent::Stop)]
    );
    for rank in [0, 1, 3] {
        assert_eq!(job.handle_exited(rank, 0, Death::Signal(15)), []);
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
    let actions = job.handle_exited(1, 0, Death::Exit(3));
    let died = ToAgent::Died {
        rank: 1,
        incarnation: 0,
        how: Death::Exit(3),
    };
    assert!(actions.contains(&Action::Broadcast(died)), "{actions:?}");
    job.handle_exited(0, 0, Death::Exit(5));
    for rank in [2, 3] {
        job.handle_exited(rank, 0, Death::Exit(0));
    }
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 3);
}

#[test]
fn a_job_that_continues_succeeds_without_those_that_were_killed() {
    let mut job = job(OnDeath::Continue);
    job.handle_exited(1, 0, Death::Signal(9));
    job.handle_host_lost(1, "its remote shell ended");
    assert_eq!(job.exit_code(), 137, "nobody has ended well yet");
    job.handle_exited(0, 0, Death::Exit(0));
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 0);
}

#[test]
fn a_restarted_process_is_announced_when_it_runs() {
    let mut job = job(OnDeath::Restart);
    let actions = job.handle_exited(3, 0, Death::Signal(11));
    let died = ToAgent::Died {
        rank: 3,
        incarnation: 0,
        how: Death::Signal(11),
    };
    let restart = ToAgent::Restart {
        rank: 3,
        incarnation: 1,
    };
    assert_eq!(
        actions[1..],
        [Action::Broadcast(died), Action::Tell(1, restart)]
    );
    let joined = ToAgent::Joined {
        rank: 3,
        incarnation: 1,
    };
    assert_eq!(job.handle_started(3, 1, 200), [Action::Broadcast(joined)]);
    assert_eq!(
        job.handle_exited(3, 0, Death::Signal(11)),
        [],
        "a late word of its last life"
    );
    for rank in 0..4 {
        job.handle_exited(rank, u32::from(rank == 3), Death::Exit(0));
    }
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 0);
}

#[test]
fn restarts_have_a_limit() {
    let mut job = job(OnDeath::Restart);
    for incarnation in 0..2 {
        let actions = job.handle_exited(0, incarnation, Death::Exit(1));
        assert!(!actions.contains(&Action::Broadcast(ToAgent::Stop)));
    }
    let actions = job.handle_exited(0, 2, Death::Exit(1));
    assert!(actions.contains(&Action::Broadcast(ToAgent::Stop)));
    assert!(job.verdict().unwrap().contains("--max-restarts"));
}

#[test]
fn an_interrupted_job_starts_nothing_again() {
    let mut job = job(OnDeath::Restart);
    job.handle_signal(2);
    assert_eq!(
        job.handle_exited(0, 0, Death::Signal(2)),
        [Action::Broadcast(ToAgent::Stop)]
    );
    assert_eq!(job.exit_code(), 130);
}

#[test]
fn who_ends_of_a_signal_that_was_passed_on_is_not_blamed() {
    for how in [Death::Signal(15), Death::Exit(143)] {
        let mut job = job(OnDeath::Stop);
        job.handle_signal(1);
        job.handle_signal(15);
        assert_eq!(
            job.handle_exited(2, 0, how),
            [Action::Broadcast(ToAgent::Stop)]
        );
        for rank in [0, 1, 3] {
            job.handle_exited(rank, 0, Death::Signal(15));
        }
        let verdict = job.verdict().unwrap();
        assert_eq!(verdict, "got SIGTERM; ended the 4 processes.");
        assert_eq!(job.exit_code(), 143);
    }
}

#[test]
fn only_those_who_ran_when_a_signal_came_are_said_to_be_ended_by_it() {
    let mut job = job(OnDeath::Stop);
    job.handle_exited(0, 0, Death::Exit(0));
    job.handle_signal(2);
    job.handle_exited(1, 0, Death::Exit(0));
    job.handle_exited(2, 0, Death::Signal(2));
    let verdict = job.verdict().unwrap();
    assert_eq!(verdict, "got SIGINT; ended the 3 processes that still ran.");
}

#[test]
fn who_fails_otherwise_after_a_signal_is_named() {
    let mut job = job(OnDeath::Continue);
    job.handle_signal(15);
    job.handle_exited(2, 0, Death::Exit(3));
    assert_eq!(
        job.verdict().unwrap(),
        "rank 2 on h2 (pid 102) exited with code 3 after SIGTERM; ended the other 3 processes."
    );
    assert_eq!(job.exit_code(), 3);
}

#[test]
fn who_ended_before_a_signal_came_is_named() {
    let mut job = job(OnDeath::Stop);
    job.handle_exited(2, 0, Death::Signal(15));
    job.handle_signal(15);
    let verdict = job.verdict().unwrap();
    assert!(verdict.starts_with("rank 2 on h2"), "{verdict}");
}

#[test]
fn processes_that_end_in_order_after_a_signal_are_no_failure() {
    let mut job = job(OnDeath::Stop);
    job.handle_signal(15);
    for rank in 0..4 {
        assert_eq!(job.handle_exited(rank, 0, Death::Exit(0)), []);
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
        job.handle_exited(ended, 0, Death::Exit(0));
        now = now + HINT_INTERVAL;
    }
    assert_eq!(words::have_ended(1, 1), "; the other process has ended");
}

#[test]
fn several_who_wait_are_not_told_who_ended() {
    let mut job = job(OnDeath::Stop);
    let now = Time(1);
    job.handle_exited(3, 0, Death::Exit(0));
    job.handle_waiting(1, "waits", now);
    assert_eq!(
        job.handle_waiting(0, "waits", now),
        says("rank 0 on h1 waits.")
    );
    job.handle_exited(1, 0, Death::Exit(0));
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
    job.handle_exited(2, 0, Death::Exit(1));
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
    job.handle_exited(1, 0, Death::Exit(0));
    assert_eq!(job.handle_waiting(1, "waits", now), []);
    job.handle_exited(2, 0, Death::Exit(1));
    assert_eq!(job.handle_waiting(0, "waits", now), []);
}

#[test]
fn who_asks_early_is_answered_when_the_process_is_ready() {
    let mut job = job(OnDeath::Stop);
    assert_eq!(job.handle_locate(0, 3), []);
    let located = ToAgent::Located {
        rank: 3,
        incarnation: 0,
        locator: "there".into(),
    };
    assert_eq!(
        job.handle_ready(3, 0, "there".into()),
        [Action::Tell(0, located.clone())]
    );
    assert_eq!(job.handle_locate(0, 3), [Action::Tell(0, located)]);
}

#[test]
fn who_asks_for_the_gone_is_told_so() {
    let unreachable = |rank, reason| vec![Action::Tell(0, ToAgent::Unreachable { rank, reason })];
    let mut job = job(OnDeath::Continue);
    assert_eq!(
        job.handle_locate(0, 9),
        unreachable(9, Unreachable::NoSuchRank)
    );
    assert_eq!(job.handle_locate(0, 2), []);
    assert_eq!(job.handle_left(2, 0), unreachable(2, Unreachable::Left));
    assert_eq!(job.handle_locate(0, 2), unreachable(2, Unreachable::Left));
    assert_eq!(job.handle_locate(0, 3), []);
    let actions = job.handle_exited(3, 0, Death::Exit(1));
    assert_eq!(actions[..1], unreachable(3, Unreachable::Dead));
    assert_eq!(job.handle_locate(0, 3), unreachable(3, Unreachable::Dead));
}

#[test]
fn a_lost_host_stops_the_job_in_one_sentence() {
    let mut job = job(OnDeath::Stop);
    assert_eq!(
        job.handle_host_lost(1, "its remote shell ended"),
        [Action::Broadcast(ToAgent::Stop)]
    );
    assert_eq!(
        job.verdict().unwrap(),
        "host h2 was lost: its remote shell ended; ended the other 2 processes."
    );
    job.handle_exited(0, 0, Death::Signal(15));
    job.handle_exited(1, 0, Death::Signal(15));
    assert!(job.is_over());
    assert_eq!(job.exit_code(), 255);
}

#[test]
fn a_job_that_continues_survives_a_lost_host() {
    let mut job = job(OnDeath::Continue);
    let actions = job.handle_host_lost(1, "its remote shell ended");
    for rank in [2, 3] {
        let died = ToAgent::Died {
            rank,
            incarnation: 0,
            how: Death::HostLost,
        };
        assert!(actions.contains(&Action::Broadcast(died)), "{actions:?}");
    }
    assert_eq!(
        actions
            .iter()
            .filter(|a| matches!(a, Action::Say(_)))
            .count(),
        1
    );
    assert!(!job.is_over());
}

#[test]
fn who_asks_is_told_once_that_it_is_the_last_and_only_when_nobody_will_be_started_again() {
    let mut job = job(OnDeath::Restart);
    let last = Action::Tell(1, ToAgent::Last { rank: 3 });
    job.handle_ask_last(3, 0);
    for rank in [0, 1] {
        job.handle_exited(rank, 0, Death::Exit(0));
        assert_eq!(job.poll_last(), None);
    }
    // It said that it leaves, but may fail yet and be started again.
    job.handle_left(2, 0);
    assert_eq!(job.poll_last(), None);
    job.handle_exited(2, 0, Death::Signal(9));
    job.handle_started(2, 1, 202);
    assert_eq!(job.poll_last(), None);
    job.handle_exited(2, 1, Death::Exit(0));
    assert_eq!(job.poll_last(), Some(last.clone()));
    assert_eq!(job.poll_last(), None);

    // Its next life asks for itself.
    job.handle_ask_last(3, 0);
    job.handle_exited(3, 0, Death::Signal(9));
    job.handle_started(3, 1, 203);
    job.handle_ask_last(3, 0);
    assert_eq!(job.poll_last(), None);
    job.handle_ask_last(3, 1);
    assert_eq!(job.poll_last(), Some(last));
    job.handle_exited(3, 1, Death::Exit(0));
    assert_eq!(job.poll_last(), None);
    job.handle_ask_last(9, 0);
}
