//! What programs may rely on, whatever the path between their ranks.
//!
//! A scenario is a function over a [`Job`], which starts ranks and has a path between them. The list at the end of this file
//! names each once, and makes a test of it for each path: `crates/mizzen/tests/threads.rs` for ranks that are threads (`heap`,
//! `tcp_threads`), `crates/cli/tests/processes.rs` for processes that the command starts (`segments`, `tcp`, `tls`, `ofi`).
//! A scenario that is missing in the list is never called, and the compiler says so.
//!
//! Ranks share nothing but messages: what a scenario captures is a copy in each process. A scenario that needs more says which
//! capability of the path it needs, and its tests over other paths are ignored with that reason.

pub(crate) mod addresses;
pub(crate) mod departures;
pub(crate) mod finish;
pub(crate) mod flushing;
pub(crate) mod groups;
pub(crate) mod handing_on;
pub(crate) mod lent;
pub(crate) mod long;
pub(crate) mod messages;
pub(crate) mod migration;
pub(crate) mod names;
pub(crate) mod operations;
pub(crate) mod pool;
pub(crate) mod posted;
pub(crate) mod posted_in_scope;
pub(crate) mod posting;
pub(crate) mod pushed;
pub(crate) mod rpc;
pub(crate) mod scope;
pub(crate) mod several;
pub(crate) mod tasks;
pub(crate) mod timeouts;
pub(crate) mod types;

use mizzen::{Deck, Error, Mailbox, MailboxRef, Message, Result};

/// What is between the ranks of a job, and what the ranks are.
pub(crate) trait Path: Sync {
    /// Runs `body` as each of `size` ranks, and says how each ended. The death of one ends no other.
    fn run(&self, size: u32, body: &(dyn Fn(Deck) -> Result<()> + Sync)) -> Vec<Ended>;

    /// Whether this machine has it. If not, that has been said.
    fn is_here(&self) -> bool {
        true
    }

    /// How often a scenario runs a job that might fail now and then. Where to start one takes long, less often.
    fn repetitions(&self) -> u32 {
        20
    }

    /// The rank that calls this is gone, as if by a kill; or, where a rank is a thread, as soon as it has returned the error.
    fn die(&self) -> Error;
}

/// How a rank ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    /// It returned an error.
    Failed(String),
    /// It panicked, or its process is gone.
    Died,
}

/// What a scenario has: it runs jobs over the path that is being tested.
pub(crate) struct Job<'a>(&'a dyn Path);

impl Job<'_> {
    /// Runs a job of which every rank ends well.
    fn run(&self, size: u32, body: impl Fn(Deck) -> Result<()> + Sync) {
        for (rank, ended) in self.0.run(size, &body).into_iter().enumerate() {
            assert_eq!(ended, Ended::Well, "rank {rank} of {size}");
        }
    }

    /// Runs a job of which every rank ends well but one, and says how that one ended.
    fn run_losing(&self, lost: u32, size: u32, body: impl Fn(Deck) -> Result<()> + Sync) -> Ended {
        let mut ended = self.0.run(size, &body);
        let lost = ended.remove(lost as usize);
        assert_eq!(ended, vec![Ended::Well; ended.len()], "of the others");
        assert_ne!(lost, Ended::Well, "of the one that should not");
        lost
    }

    /// Runs a job again and again.
    fn repeat(&self, size: u32, body: impl Fn(Deck) -> Result<()> + Sync) {
        (0..self.0.repetitions()).for_each(|_| self.run(size, &body));
    }

    /// This rank dies: what it holds is neither closed nor said goodbye for.
    fn die<T>(&self, holds: T) -> Result<()> {
        std::mem::forget(holds);
        Err(self.0.die())
    }
}

fn bytes(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number * 31 + at * 7) as u8).collect()
}

fn inbox_of(deck: &Deck, name: &str) -> Result<Mailbox> {
    let inbox = deck.mailbox()?;
    deck.bind(name, &inbox)?;
    Ok(inbox)
}

/// Nobody goes on before all ranks are here. Each meeting of a job has its own name.
fn meet(deck: &Deck, name: &str) -> Result<()> {
    let inbox = deck.mailbox()?;
    if deck.rank() != 0 {
        let mut message = Message::new();
        message.pack_mailbox(&inbox.address());
        deck.fetch(name)?.post(&mut message)?;
        inbox.receive::<u8>()?;
        return Ok(());
    }
    deck.bind(name, &inbox)?;
    let others: Vec<MailboxRef> = (1..deck.size())
        .map(|_| inbox.retrieve()?.unpack_mailbox())
        .collect::<Result<_>>()?;
    others.iter().try_for_each(|other| other.send(&0u8))
}

/// A job of two: rank 0 has the mailbox, rank 1 its address.
fn pair(
    job: &Job<'_>,
    receive: impl Fn(&Deck, Mailbox) -> Result<()> + Sync,
    send: impl Fn(&Deck, MailboxRef) -> Result<()> + Sync,
) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            receive(&deck, inbox_of(&deck, "inbox")?)
        } else {
            send(&deck, deck.fetch("inbox")?)
        }
    });
}

/// Runs a scenario over a path.
pub(crate) fn check(path: &dyn Path, scenario: fn(&Job<'_>)) {
    if path.is_here() {
        scenario(&Job(path));
    }
}

/// Makes a test of every scenario over a path: `scenarios!(heap = Threads(mizzen::local));`, with the name of the path and an
/// expression that makes it. It is a macro because only a macro can make tests that are named, run and reported one by one.
macro_rules! scenarios {
    ($name:ident = $path:expr) => {
        $crate::scenarios::suite! {
            $name = $path;
            addresses {
                an_address_is_an_argument_and_a_result_of_a_call,
                an_address_is_a_key_and_a_part_of_a_value,
                an_address_of_no_rank_of_the_job_is_refused,
            }
            groups {
                every_operation_of_every_type_comes_to_the_reference,
                operations_on_much_data_come_to_the_reference,
                one_to_33_members_come_to_the_reference,
                every_way_comes_to_the_reference_and_costs_are_agreed_on,
                nobody_passes_a_barrier_before_all_have_come,
                groups_do_not_mix_their_messages,
                members_that_do_different_things_are_told_what,
                members_that_wait_for_each_other_are_told_why,
                members_that_give_what_does_not_fit_end_the_group,
                a_group_that_is_revoked_ends_for_all,
                the_death_of_a_member_ends_the_operation_at_all,
                a_member_that_leaves_ends_what_needs_it_and_nothing_before,
                who_has_done_its_part_may_leave,
                survivors_settle_shrink_and_go_on,
                a_group_that_was_revoked_shrinks_to_all_its_members,
                a_member_that_drops_its_seat_is_not_waited_for,
                who_is_ahead_goes_on_when_the_others_come,
                groups_come_and_go_while_their_last_words_are_read,
                lent_buffers_come_to_the_reference,
                a_panic_in_an_operation_is_told_to_the_others,
                very_long_data_are_exchanged_by_all_at_once [memory],
            }
            messages {
                every_length_arrives_through_post_and_through_a_sender,
                pieces_come_out_as_they_went_in,
                a_message_is_posted_again_cleared_and_used_anew,
                an_empty_message_has_no_pieces,
                a_mismatched_unpack_is_an_error_and_loses_nothing,
                messages_of_one_thread_keep_their_order_whatever_their_kind,
                many_threads_post_to_many_mailboxes,
                try_and_deadline_forms_do_not_wait_longer,
                a_mailbox_that_nobody_reads_stops_its_senders_and_nobody_else,
                a_sender_waits_for_room_and_goes_on,
                a_closed_mailbox_refuses,
                one_mailbox_serves_async_and_blocking_retrieval,
                a_process_may_have_ten_thousand_mailboxes,
                a_detached_message_outlives_what_it_came_through,
                two_busy_senders_do_not_keep_a_posted_message_from_its_turn,
                a_message_is_not_passed_over_when_another_sender_ends,
                a_type_of_the_programs_own_is_received_as_what_it_is_made_of,
                fifty_thousand_messages_of_mixed_lengths_arrive_intact_and_in_order,
            }
            operations {
                one_ranks_messages_are_retrieved_and_others_stay_in_their_order,
                one_ranks_messages_of_every_kind_and_length_come_in_their_order,
                try_retrieve_from_finds_nothing_but_that_ranks,
                a_deadline_of_retrieve_from_passes_though_others_sent,
                retrieve_from_is_awaited_under_every_runtime,
                a_rank_may_retrieve_from_itself,
                retrieve_from_knows_the_ranks_of_the_job,
                the_death_of_the_awaited_rank_ends_the_wait,
                the_death_of_the_awaited_rank_ends_the_task,
                the_leave_of_the_awaited_rank_ends_the_wait_after_its_messages,
                what_others_send_meanwhile_is_bounded_by_their_windows,
                a_dropped_retrieve_from_loses_nothing,
                long_messages_of_pieces_are_awaited_under_every_runtime,
                a_message_being_opened_is_not_lost_nor_overtaken,
                a_message_being_opened_stays_while_another_rank_is_asked_for,
                a_long_message_is_awaited_until_it_has_arrived,
            }
            several {
                the_first_message_of_several_mailboxes_is_retrieved,
                a_busy_mailbox_does_not_keep_the_others_waiting,
                mailboxes_take_turns_however_often_they_are_selected_anew,
                try_and_deadline_forms_of_several_do_not_wait_longer,
                messages_of_every_kind_come_to_several_mailboxes,
                several_mailboxes_are_awaited_under_every_runtime,
                several_mailboxes_are_awaited_on_workers,
                several_mailboxes_are_awaited_beside_a_timer,
                a_selection_says_in_which_mailbox_a_loss_was_told,
                a_dropped_selection_loses_nothing,
                a_selection_of_none_is_refused,
                a_selection_of_two_ranks_is_refused [one_process],
                a_descriptor_is_readable_while_there_is_something,
                a_descriptor_becomes_readable_whatever_comes,
                a_descriptor_becomes_readable_when_a_rank_is_lost,
                a_descriptor_and_the_other_forms_serve_one_mailbox,
                several_descriptors_are_polled_at_once,
                a_descriptor_is_awaited_by_epoll_and_under_smol,
            }
            lent {
                lent_buffers_move_and_come_back,
                a_lent_buffer_cannot_be_given_away_twice,
                lent_pieces_of_every_length_are_read_from_a_buffer,
                a_lent_buffer_goes_only_through_the_process_that_made_it [one_process],
                what_was_lent_stays_as_it_is_after_its_reader_left [one_process],
            }
            handing_on {
                buffers_go_through_a_chain_and_come_back,
                a_buffer_may_come_back_to_its_owner_and_go_on_again,
                what_was_read_in_part_is_handed_on_whole,
                buffers_of_several_owners_go_on_in_one_message,
                a_sender_and_a_task_hand_on_too,
                a_scope_hands_on_to_a_mailbox_that_is_full,
                what_a_scope_takes_back_is_its_owners_again,
                buffers_are_handed_on_between_long_and_short_messages,
                what_was_handed_on_to_a_mailbox_that_closes_comes_back,
                a_buffer_whose_post_failed_can_go_elsewhere,
                who_handed_on_may_leave,
                an_owner_may_leave_before_its_buffer_is_handed_on,
                an_owner_may_leave_before_its_buffer_is_read,
                a_limit_is_waited_for_tried_and_timed,
                a_limit_counts_what_was_handed_on,
                buffers_that_came_back_are_used_first,
                a_buffer_longer_than_the_limit_is_refused,
                a_holder_that_is_killed_gives_its_buffer_back [killed],
                a_holder_that_is_killed_after_handing_on_loses_nothing_of_its_owner [killed],
                a_last_reader_that_is_killed_gives_its_buffer_back [killed],
                who_waits_for_the_limit_goes_on_when_a_holder_is_killed [killed],
                what_a_killed_owner_lent_is_read_and_handed_on [killed],
            }
            long {
                long_pieces_go_where_they_were_told_to,
                a_message_of_thousands_of_pieces_arrives,
                a_long_message_that_nobody_reads_holds_nobody_up,
                long_messages_of_a_sender_arrive_whatever_becomes_of_those_before_them,
                long_messages_that_are_awaited_are_right_whatever_way_they_go,
                long_messages_that_follow_one_another_are_what_was_sent,
                long_messages_are_tried_without_waiting_for_their_receiver,
                a_message_in_hand_does_not_disturb_the_next_sender,
                ranks_that_first_post_long_messages_to_each_other_do_not_wait,
                long_messages_that_together_exceed_the_arena_wait_before_they_begin,
                as_much_as_may_be_unread_is_posted_to_oneself_and_no_more,
                a_message_longer_than_may_be_unread_is_read_in_every_way,
                a_message_of_two_hundred_megabytes_arrives_through_little_memory [memory],
                what_was_unpacked_of_a_very_long_message_cannot_be_again [memory],
                very_long_messages_cross_while_both_ranks_read,
                very_long_messages_to_two_mailboxes_go_on_as_each_is_read,
                a_rank_that_reads_nothing_stops_long_messages_to_nobody_else [memory],
                a_very_long_message_that_is_dropped_in_the_middle_stops_its_sender,
                the_memory_of_long_messages_that_nobody_reads_comes_back_with_their_mailbox,
                a_long_message_whose_receiver_does_not_come_is_taken_back [rendezvous],
            }
            pushed {
                one_that_nobody_reads_does_not_hold_up_what_is_behind_it [pushes],
                those_that_are_thrown_away_make_room_for_others,
                one_that_is_whole_is_read_after_its_sender_has_left [pushes],
                threads_that_post_at_once_share_the_way_and_keep_their_order,
            }
            posting {
                who_reads_late_finds_all_that_was_posted,
                who_reads_late_finds_all_that_a_sender_posted,
                what_a_sender_left_behind_arrives_after_its_end,
                what_a_rank_left_behind_arrives_though_it_leaves,
                a_rank_may_post_much_to_itself,
                messages_of_every_kind_keep_their_order_behind_others,
                what_was_left_behind_for_a_closed_mailbox_is_given_back,
                ranks_that_all_post_to_all_first_do_not_wait,
                a_silent_reader_stops_nobody_else,
                an_async_post_beyond_the_allowance_waits_for_the_reader,
                one_thread_posts_and_reads_in_turns,
                an_async_sender_posts_in_order,
                an_async_post_to_a_mailbox_that_closes_ends,
            }
            posted {
                messages_of_every_length_go_into_posted_memory,
                long_messages_come_into_posted_memory_without_pauses,
                receives_are_matched_in_the_order_in_which_they_were_posted,
                a_receive_of_one_rank_gets_that_ranks_messages,
                the_older_of_two_receives_that_want_a_message_gets_it,
                retrieve_gets_what_no_receive_wanted,
                a_selection_gets_what_no_receive_wanted,
                a_descriptor_is_readable_for_what_no_receive_wanted,
                a_mailbox_is_as_before_when_nothing_is_posted,
                receives_are_awaited_under_every_runtime,
                receives_are_awaited_by_tasks_of_the_process,
                threads_wait_for_receives_while_the_owner_retrieves,
                a_receive_that_is_cancelled_leaves_its_message_to_the_next,
                a_receive_that_has_its_message_is_not_cancelled,
                no_message_is_lost_by_cancelling_at_any_step,
                a_receive_that_is_dropped_leaves_the_messages_behind_it,
                a_receive_whose_deadline_passes_is_still_posted,
                a_message_that_is_too_long_is_retrieved,
                what_is_not_one_plain_piece_is_retrieved,
                a_receive_from_a_rank_that_dies_ends_after_its_messages,
                a_receive_from_a_rank_that_leaves_ends_after_its_messages,
                a_loss_is_told_to_the_oldest_receive_of_anybody,
                a_receive_from_a_rank_that_does_not_exist_is_refused,
                a_thousand_receives_are_done_whatever_the_order_of_the_messages,
                receives_of_a_mailbox_that_is_dropped_end,
                a_receive_goes_on_while_its_thread_waits_for_something_else,
            }
            posted_in_scope {
                memory_of_a_scope_is_filled_by_the_messages_that_come,
                the_end_of_a_scope_waits_for_its_receives,
                a_receive_of_a_scope_that_is_cancelled_leaves_its_message_to_the_next,
                a_panic_in_a_scope_withdraws_its_receives,
                what_does_not_fit_memory_of_a_scope_is_retrieved,
            }
            scope {
                what_is_posted_goes_on_while_the_closure_computes,
                very_long_messages_that_are_posted_to_each_other_first_cross,
                a_rank_posts_a_very_long_message_to_itself,
                what_is_posted_later_comes_after_what_is_under_way,
                messages_that_together_exceed_what_may_be_unread_go_one_after_the_other,
                posts_of_a_scope_keep_their_order_whatever_their_length,
                the_death_of_a_rank_ends_what_is_under_way_to_it,
                the_leave_of_a_rank_ends_what_is_under_way_to_it,
                a_mailbox_that_closes_ends_what_is_under_way_to_it,
                the_end_of_a_scope_waits_for_what_is_under_way,
                a_panic_in_a_scope_takes_back_what_is_under_way,
                posts_under_way_are_waited_for_in_any_order,
                a_post_is_done_though_nobody_waits_for_it,
                several_messages_are_finished_at_once,
                messages_are_finished_while_others_are_posted,
                pieces_are_finished_in_a_scope_as_without,
                a_scope_tells_how_far_its_messages_are,
                a_scope_tells_of_a_short_message_once,
                the_leave_of_a_rank_ends_what_is_finished_of_it,
                ten_thousand_posts_under_way_make_no_thread,
                what_is_lent_in_a_message_under_way_arrives,
            }
            names {
                a_name_of_one_mailbox_is_taken_for_another_of_the_same_process,
                a_name_of_a_dropped_or_unbound_mailbox_can_be_bound_again,
                a_misspelt_name_is_answered_with_names_like_it,
                a_name_goes_with_its_mailbox_and_another_may_have_it,
                a_fetch_without_patience_finds_what_is_bound,
                fetch_waits_for_bind_and_tells_when_nobody_does,
                names_are_bound_and_found_while_a_rank_leaves,
            }
            types {
                plain_data_is_not_received_as_a_serde_value_nor_the_reverse,
                each_piece_knows_whether_it_is_a_serde_value,
                in_debug_builds_a_number_is_not_received_as_another,
                what_has_the_same_elements_or_is_only_bytes_is_received_as_before,
            }
            timeouts {
                the_longest_timeout_is_as_good_as_none,
                a_call_and_a_pool_may_take_the_longest_timeout,
            }
            departures {
                a_rank_that_fails_is_named_to_those_who_heard_from_it,
                a_rank_that_fails_is_named_to_those_who_wait_for_it [one_process],
                what_a_process_sent_before_it_left_is_retrieved_first,
                a_rank_that_dies_fails_those_who_post_to_it_and_those_who_wait_for_it,
                what_was_posted_just_before_leaving_arrives,
                a_peer_that_left_is_named_with_how_it_went,
            }
            flushing {
                what_was_flushed_outlives_its_sender,
                a_flush_waits_for_a_reader_and_no_longer_than_it_may,
            }
            rpc {
                a_call_to_a_rank_that_has_left_says_so_at_once,
                arguments_and_results_of_any_length_arrive,
                errors_of_the_function_arrive_with_their_type,
                a_panic_costs_one_call_and_not_the_service,
                a_long_word_of_a_panic_is_no_answer,
                wrong_types_are_refused_with_a_sentence,
                many_calls_under_way_are_answered_each_with_its_own,
                a_call_has_a_deadline_and_the_service_learns_that_nobody_waits,
                an_async_function_that_nobody_waits_for_ends_where_it_awaits,
                one_way_calls_are_carried_out_in_their_order,
                a_body_of_unknown_size_goes_into_memory_that_the_function_makes,
                raw_messages_of_any_length_and_number_of_pieces_come_back,
                short_answers_that_wait_for_their_turn_are_what_was_sent,
                answers_that_wait_for_their_turn_leave_room_for_others,
                a_raw_request_that_is_dropped_is_answered_with_an_error,
                a_service_that_ends_fails_its_calls_and_is_found_again,
                the_death_of_who_serves_fails_the_call,
                services_are_called_by_rank_by_address_and_anywhere,
                services_that_call_each_other_do_not_wait_for_ever,
                calls_are_awaited_in_tasks,
                a_name_is_served_once_by_a_process,
                one_way_calls_that_await_do_not_end_each_other,
            }
            tasks {
                more_tasks_than_workers_that_wait_for_each_other_all_end,
                tasks_that_await_messages_cost_no_thread,
                a_mailbox_is_awaited_retrieved_and_awaited_again,
                a_panic_reaches_who_joins,
                a_blocked_task_is_woken_while_all_workers_compute,
                ranks_start_and_leave_with_workers_many_times,
                a_wait_inside_of_a_wait_or_one_that_panics_costs_no_worker,
            }
            pool {
                results_come_in_the_order_of_the_items,
                every_rank_may_have_items_and_gets_their_results,
                others_help_the_one_that_has_all_the_work,
                maps_follow_each_other,
                a_panic_fails_the_map_of_its_owner_with_words,
                a_map_is_ended_when_enough_is_known,
                a_process_may_come_late_and_leave_early,
                an_empty_map_returns,
                the_function_may_borrow_what_surrounds_it,
                in_a_job_of_one_the_pool_is_the_threads_of_the_process,
            }
            migration {
                tasks_carry_their_state_from_rank_to_rank,
                a_panic_reaches_the_home,
                who_has_too_many_tasks_gives_some_to_who_has_none,
                a_task_that_cannot_go_goes_on_where_it_is,
            }
            finish {
                services_are_there_until_all_have_finished,
                who_left_before_is_not_waited_for,
                if_the_first_rank_left_before_the_next_one_knows_when_all_have_finished,
                a_process_finishes_once,
            }
        }
    };
}

macro_rules! suite {
    ($name:ident = $path:expr; $($subject:ident { $($case:ident $([$capability:ident])?,)* })*) => {
        mod $name {
            use super::*;
            $(
                mod $subject {
                    use super::*;
                    $($crate::scenarios::case!($name = $path; $subject $case $($capability)?);)*
                }
            )*
        }
    };
}

/// One test, if the path has the capability that is asked for. Which path has which is said here and nowhere else.
macro_rules! case {
    ($name:ident = $path:expr; $subject:ident $case:ident) => {
        $crate::scenarios::test!($path; $subject $case);
    };
    (heap = $path:expr; $subject:ident $case:ident one_process) => {
        $crate::scenarios::test!($path; $subject $case);
    };
    (tcp_threads = $path:expr; $subject:ident $case:ident one_process) => {
        $crate::scenarios::test!($path; $subject $case);
    };
    ($name:ident = $path:expr; $subject:ident $case:ident one_process) => {
        $crate::scenarios::test!($path; $subject $case "needs ranks that are threads of one process");
    };
    (ofi = $path:expr; $subject:ident $case:ident pushes) => {
        $crate::scenarios::test!($path; $subject $case "needs a path that takes a message of 100 KiB before its receiver comes");
    };
    ($name:ident = $path:expr; $subject:ident $case:ident pushes) => {
        $crate::scenarios::test!($path; $subject $case);
    };
    (heap = $path:expr; $subject:ident $case:ident memory) => {
        $crate::scenarios::test!($path; $subject $case);
    };
    (segments = $path:expr; $subject:ident $case:ident memory) => {
        $crate::scenarios::test!($path; $subject $case);
    };
    ($name:ident = $path:expr; $subject:ident $case:ident memory) => {
        $crate::scenarios::test!($path; $subject $case "needs ranks that share memory");
    };
    (heap = $path:expr; $subject:ident $case:ident killed) => {
        $crate::scenarios::test!($path; $subject $case "needs ranks that are processes, which can be killed");
    };
    (tcp_threads = $path:expr; $subject:ident $case:ident killed) => {
        $crate::scenarios::test!($path; $subject $case "needs ranks that are processes, which can be killed");
    };
    ($name:ident = $path:expr; $subject:ident $case:ident killed) => {
        $crate::scenarios::test!($path; $subject $case);
    };
    (heap = $path:expr; $subject:ident $case:ident rendezvous) => {
        $crate::scenarios::test!($path; $subject $case "needs a path that keeps a long message until its receiver comes");
    };
    (segments = $path:expr; $subject:ident $case:ident rendezvous) => {
        $crate::scenarios::test!($path; $subject $case "needs a path that keeps a long message until its receiver comes");
    };
    ($name:ident = $path:expr; $subject:ident $case:ident rendezvous) => {
        $crate::scenarios::test!($path; $subject $case);
    };
}

/// With a reason, a test that is left out for it; it can still be run, to see why.
macro_rules! test {
    ($path:expr; $subject:ident $case:ident $($left_out:literal)?) => {
        #[test]
        $(#[ignore = $left_out])?
        fn $case() {
            use $crate::scenarios;
            scenarios::check(&$path, scenarios::$subject::$case);
        }
    };
}

pub(crate) use {case, scenarios, suite, test};
