//! The contract of [`Driver`] as tests.
//!
//! A case is a function over a [`Harness`], which says how to make drivers of the kind under test. Each
//! cites the lines of the contract that it checks. No case is left out: where a capability may be
//! missing, the case checks that the driver says so consistently.
//!
//! ```
//! use mizzen_driver::conformance::Harness;
//! use mizzen_driver::sim::{SimDriver, SimNet, SimOptions};
//! use mizzen_driver::{Locator, PeerId};
//!
//! struct Calm(SimNet);
//!
//! impl Harness for Calm {
//!     type Driver = SimDriver;
//!     fn driver(&mut self, me: PeerId) -> SimDriver {
//!         self.0.driver(me)
//!     }
//!     fn nobody(&mut self) -> Locator {
//!         self.0.nowhere()
//!     }
//!     fn cut(&mut self, (a, _): (PeerId, &mut SimDriver), (b, _): (PeerId, &mut SimDriver)) {
//!         self.0.cut(a, b);
//!     }
//! }
//!
//! mizzen_driver::conformance!(Calm(SimNet::new(SimOptions::calm(1))));
//! # fn main() {}
//! ```
#![allow(
    clippy::missing_panics_doc,
    reason = "a case that fails panics: that is its purpose"
)]

pub mod bodies;
pub mod connection;
pub mod frames;
pub mod loss;
pub mod polling;
pub mod pressure;
pub mod pushing;
pub mod random;
pub mod violations;

mod fleet;
mod lending;

use crate::{Driver, Locator, PeerId};

/// How the suite gets drivers of one kind. Each case has its own harness and its own network.
pub trait Harness {
    /// The driver under test.
    type Driver: Driver;

    /// A driver that attaches to the network as `me`. It reaches all others of this harness.
    fn driver(&mut self, me: PeerId) -> Self::Driver;

    /// A locator that the driver understands and at which nobody is.
    fn nobody(&mut self) -> Locator;

    /// Breaks the link between two drivers without either asking for it, as a failing network would.
    fn cut(&mut self, a: (PeerId, &mut Self::Driver), b: (PeerId, &mut Self::Driver));
}

/// Instantiates the whole suite, one test for each case, for a harness.
///
/// The argument is an expression that makes a new [`Harness`](crate::conformance::Harness); see
/// [`conformance`](mod@crate::conformance) for an example. It is a macro because only a macro can make
/// tests that are named, run and reported one by one.
#[macro_export]
macro_rules! conformance {
    (@cases $harness:expr; $($subject:ident { $($case:ident,)* })*) => {
        $(
            mod $subject {
                #[allow(unused_imports, reason = "the harness may be named by a path")]
                use super::*;
                $(
                    #[test]
                    fn $case() {
                        $crate::conformance::$subject::$case($harness);
                    }
                )*
            }
        )*
    };
    ($harness:expr) => {
        $crate::conformance! {
            @cases $harness;
            connection {
                a_connect_is_reported_once_at_both_ends,
                the_process_that_was_reached_may_send_first,
                a_frame_sent_at_once_follows_the_report_of_the_link,
                simultaneous_connects_make_one_link,
                simultaneous_connects_lose_no_frame,
                eight_processes_connect_all_to_all_at_once,
                a_process_does_not_connect_to_itself,
                a_second_connect_is_refused,
                a_connect_back_over_a_link_is_refused,
                a_locator_of_another_kind_is_refused,
                a_connect_to_nobody_fails,
                a_connect_that_finds_another_process_fails,
                a_connect_to_a_process_that_left_fails,
                a_failed_connect_can_be_repeated,
                an_attempt_that_fails_does_not_spoil_the_other_ends,
                one_process_connects_to_seven,
                seven_processes_connect_to_one,
                an_attempt_under_way_is_not_a_link,
                attempts_leave_links_alone,
            }
            frames {
                frames_arrive_in_order,
                frames_cross,
                a_frame_comes_back_as_it_went,
                frames_reach_only_their_peer,
                a_frame_without_slices_arrives,
                many_empty_frames_arrive,
                empty_slices_add_nothing,
                slices_are_joined_in_order,
                thousands_of_slices_are_joined,
                a_frame_is_taken_before_the_call_returns,
                frames_of_every_short_length_arrive,
                frames_around_powers_of_two_arrive,
                long_and_short_frames_keep_their_order,
                the_longest_frame_arrives,
                a_frame_one_byte_too_long_is_refused,
                a_frame_without_a_link_is_refused,
                capabilities_are_not_below_the_least,
            }
            pressure {
                a_peer_that_does_not_poll_makes_the_sender_wait,
                a_refused_frame_leaves_no_trace,
                writable_follows_busy_once,
                after_writable_the_longest_frame_is_accepted,
                bodies_do_not_use_up_promised_room,
                without_busy_there_is_no_writable,
                two_floods_against_each_other_drain,
                a_full_link_leaves_the_others_open,
                a_flood_does_not_starve_another_peer,
                a_long_body_does_not_starve_another_peer,
            }
            bodies {
                a_body_arrives_in_its_place,
                a_body_goes_back,
                an_empty_body_arrives,
                a_body_of_one_byte_arrives,
                bodies_around_a_page_arrive,
                bodies_around_a_mebibyte_arrive,
                a_long_body_arrives,
                each_end_splits_as_it_likes,
                long_bodies_are_split_as_either_end_likes,
                as_many_parts_as_the_capabilities_say_are_carried,
                one_part_too_many_is_refused,
                as_many_bodies_as_the_capabilities_say_are_carried,
                one_body_too_many_is_refused,
                bodies_cross,
                many_bodies_in_flight_arrive,
                bodies_are_asked_for_in_any_order,
                a_body_may_be_asked_for_early,
                the_same_id_goes_both_ways,
                the_same_id_comes_from_two_peers,
                an_id_in_flight_is_refused,
                an_id_can_be_used_again,
                a_body_one_byte_too_long_is_refused,
                a_body_without_a_link_is_refused,
                frames_before_a_body_are_reported_before_it,
                a_frame_overtakes_a_long_body,
                frames_and_bodies_interleave,
                sent_memory_is_not_read_after_the_report,
                received_memory_is_not_written_after_the_report,
            }
            violations {
                a_body_nobody_asked_for_costs_the_link,
                an_empty_body_nobody_asked_for_costs_the_link,
                a_body_under_another_id_costs_the_link,
                a_body_sent_twice_costs_the_link,
                a_shorter_body_costs_the_link,
                an_empty_body_where_bytes_are_awaited_costs_the_link,
                a_longer_body_costs_the_link,
                a_much_longer_body_costs_the_link,
                frames_before_a_violation_arrive,
                a_violation_leaves_other_links_alone,
            }
            pushing {
                pushing_is_as_the_capabilities_say,
                a_pushed_body_waits_for_its_place,
                a_pushed_body_that_has_a_place_does_not_wait,
                the_link_waits_with_its_body,
                a_body_that_waits_leaves_other_links_alone,
                a_driver_that_waits_for_a_place_is_quiet,
                a_place_of_another_length_costs_the_link,
                a_body_that_waits_ends_with_its_link,
                gathered_frames_arrive_in_order,
                a_gathered_frame_comes_before_its_body,
                gathering_ends_in_busy,
            }
            loss {
                a_cut_is_reported_once_at_both_ends,
                a_body_that_is_cut_is_in_place_as_far_as_is_said,
                bodies_in_flight_fail_before_the_loss,
                nothing_follows_a_loss,
                frames_before_a_cut_arrive_without_gaps,
                nothing_can_be_sent_after_a_loss,
                a_loss_ends_the_wait_for_room,
                a_disconnect_is_reported_at_the_other_end_only,
                a_disconnect_ends_an_attempt,
                a_disconnect_without_a_link_does_nothing,
                a_second_disconnect_does_nothing,
                nothing_arrives_after_a_disconnect,
                both_ends_disconnect_at_once,
                a_disconnect_frees_memory_being_received_into,
                a_disconnect_frees_memory_being_sent_from,
                a_loss_frees_memory,
                dropping_a_driver_disconnects_every_peer,
                dropping_a_driver_frees_its_memory,
                a_lost_peer_can_be_connected_again,
                a_peer_can_be_connected_again_at_once,
                a_successor_with_the_same_id_can_connect,
                a_successor_with_the_same_id_can_be_connected,
                a_successor_with_another_id_can_connect,
                body_ids_are_free_on_the_new_link,
                a_cut_leaves_other_links_alone,
            }
            polling {
                a_small_budget_reports_everything_in_the_end,
                without_budget_nothing_is_reported,
                a_loss_keeps_to_the_budget,
                an_idle_driver_reports_nothing,
                an_idle_poll_does_not_block,
                there_is_a_wakeup_if_the_capabilities_say_so,
                an_idle_driver_is_quiet,
                a_frame_wakes_its_receiver,
                events_left_over_keep_the_wakeup_readable,
                a_connect_wakes_both_ends,
                a_failed_connect_wakes_the_caller,
                a_loss_wakes_the_other_end,
                room_wakes_a_sender_that_waits,
                the_end_of_a_body_wakes_both_ends,
                a_driver_may_change_threads,
            }
            random {
                random_frames_are_as_the_oracle_says,
                random_bodies_are_as_the_oracle_says,
                random_frames_and_bodies_are_as_the_oracle_says,
                random_traffic_among_eight_is_as_the_oracle_says,
                random_cuts_lose_no_more_than_the_end,
            }
        }
    };
}

#[cfg(test)]
mod tests {
    const SUITE: &str = include_str!("mod.rs");
    const CONTRACT: &str = include_str!("../driver.rs");
    const CASES: [&str; 9] = [
        include_str!("connection.rs"),
        include_str!("frames.rs"),
        include_str!("pressure.rs"),
        include_str!("bodies.rs"),
        include_str!("violations.rs"),
        include_str!("pushing.rs"),
        include_str!("loss.rs"),
        include_str!("polling.rs"),
        include_str!("random.rs"),
    ];

    /// Names and documentation of all cases.
    fn cases() -> Vec<(String, String)> {
        let mut cases = Vec::new();
        for source in CASES {
            let mut doc = String::new();
            for line in source.lines() {
                if let Some(text) = line.strip_prefix("/// ") {
                    doc.push_str(text);
                } else if let Some((name, _)) = line
                    .strip_prefix("pub fn ")
                    .and_then(|line| line.split_once('<'))
                {
                    cases.push((name.to_owned(), std::mem::take(&mut doc)));
                } else {
                    doc.clear();
                }
            }
        }
        cases
    }

    /// The numbers that a case says it checks.
    fn cited(doc: &str) -> Vec<usize> {
        let text = doc.strip_prefix("Contract ").unwrap_or_default();
        let list = text.split(['.', ':']).next().unwrap_or_default();
        let list = list
            .split(", and `")
            .next()
            .unwrap_or_default()
            .replace(" and ", ", ");
        list.split(", ")
            .filter_map(|number| number.parse().ok())
            .collect()
    }

    #[test]
    fn the_macro_instantiates_every_case_once() {
        let names: Vec<String> = cases().into_iter().map(|(name, _)| name).collect();
        assert!(names.len() >= 65, "only {} cases", names.len());
        for name in names {
            let listed = SUITE
                .lines()
                .filter(|line| line.trim() == format!("{name},"))
                .count();
            assert_eq!(listed, 1, "{name}");
        }
    }

    #[test]
    fn every_case_cites_the_contract_and_every_line_has_a_case() {
        let is_line = |number: &usize| {
            CONTRACT
                .lines()
                .any(|line| line.starts_with(&format!("/// {number}. ")))
        };
        let lines = (1..).take_while(is_line).count();
        assert_eq!(lines, 27);
        let cases = cases();
        for (name, doc) in &cases {
            let cited = cited(doc);
            assert!(
                !cited.is_empty() && cited.iter().all(|number| (1..=lines).contains(number)),
                "{name}"
            );
        }
        for line in 1..=lines {
            assert!(
                cases.iter().any(|(_, doc)| cited(doc).contains(&line)),
                "no case for line {line}"
            );
        }
    }
}
