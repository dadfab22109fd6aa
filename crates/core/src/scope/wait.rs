//! Waiting for an operation, and moving on all of the process meanwhile.

use std::sync::Arc;
use std::time::Duration;

use crate::blocking::block_in_place;
use crate::operations::Operation;
use crate::process::Process;
use crate::progress::Progress;
use crate::wait::{Contention, Patience, Step};

/// The first nap of a thread that waits for an operation, and the longest.
const FIRST_NAP: Duration = Duration::from_micros(20);
const LONGEST_NAP: Duration = Duration::from_millis(1);

/// Waits until an operation is done. Tells how many bytes went, whenever there are more.
pub(super) fn wait(process: &Arc<Process>, operation: &Operation, mut tell: impl FnMut(u64)) {
    let contention = Contention::default();
    let mut patience = Patience::until(None, &contention);
    let (mut nap, mut told) = (FIRST_NAP, 0);
    while !operation.is_done() {
        process.pump_all();
        let has_moved = process.operations.move_on();
        if let Some(moved) = operation.moved().filter(|moved| *moved > told) {
            told = moved;
            tell(moved);
        }
        if has_moved {
            (patience, nap) = (Patience::until(None, &contention), FIRST_NAP);
            continue;
        }
        if let Step::Sleep(most) = patience.step() {
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
