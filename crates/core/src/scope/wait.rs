//! Waiting for an operation, and moving on all of the process meanwhile.

use std::sync::Arc;
use std::time::Duration;

use crate::blocking::block_in_place;
use crate::operations::Operation;
use crate::process::Process;
use crate::progress::Progress;
use crate::rank::Rank;
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Contention, Noted, Patience, Step};

/// The first nap of a thread that waits for an operation, and the longest.
const FIRST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// Waits until an operation is done. Tells how many bytes went, whenever there are more.
pub(super) fn wait(process: &Arc<Process>, operation: &Operation, mut tell: impl FnMut(u64)) {
    let contention = Contention::default();
    let mut patience = Patience::until(None, &contention);
    let (mut nap, mut told) = (FIRST_NAP, 0);
    let mut noted = Noted::default();
    while !operation.is_done() {
        process.pump_all();
        let has_moved = process.operations.move_on();
        if let Some(moved) = operation.moved().filter(|moved| *moved > told) {
            told = moved;
            tell(moved);
        }
        if has_moved {
            (patience, nap) = (Patience::until(None, &contention), FIRST_NAP);
            noted = Noted::default();
            continue;
        }
        if let Step::Sleep(most) = patience.step() {
            noted.keep(&mut patience, || waits_for(operation));
            if let Some(waited) = patience.remarkable() {
                let what = operation.waits_for();
                what.iter()
                    .for_each(|what| Progress::remark(&**process, waited, what));
            }
            block_in_place(|| std::thread::sleep(nap.min(most)));
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }
}

#[cold]
fn waits_for(operation: &Operation) -> WaitsFor {
    let whom = operation.waits_for_whom().map(Rank);
    // Another thread moves it on just now.
    let what = operation.waits_for();
    let what = what.unwrap_or_else(|| "for an operation under way".to_owned());
    WaitsFor::some(Kind::Other, whom.into_iter().collect(), what)
}
