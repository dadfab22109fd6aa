//! Slots of a shared lane that are too short for the address that each must begin with.

use std::sync::{Arc, Weak};

use super::{life, link, place};
use crate::error::{Departure, PostError};
use crate::fuzzing::{SharedMemory, Victim};
use crate::message::{Mark, Single};
use crate::progress::Progress as _;
use crate::rank::{ChannelId, MailboxId};
use crate::wait::Until;

/// The word that announces a short message of `len` bytes in the first slot of a lane.
fn short_slot(len: u64) -> [u8; 8] {
    (1 | 1 << 32 | len << 40_u64).to_ne_bytes()
}

/// Where the first slot of a lane is.
const FIRST_SLOT: usize = 128;
/// Where in it the word is.
const CONTROL: usize = FIRST_SLOT + 56;

#[test]
fn a_short_slot_without_an_address_on_a_shared_lane_costs_the_peer_its_link() {
    for len in 0..8 {
        let process = place(life(0, 0));
        let core = process.mailboxes.open(ChannelId::DEFAULT).unwrap();
        let (link, inbound) = link(life(1, 0), Weak::new());
        process.links.add(Arc::clone(&link));
        // SAFETY: the peer and the process that reads its memory are in this thread.
        unsafe { inbound.copy_in(CONTROL, &short_slot(len)) };
        process.pump_all();
        let gone = link.gone().expect("it is cut off");
        assert_eq!(gone.how(), Departure::Misbehaved);
        assert!(
            core.next_entry(|_| false).is_none(),
            "nothing was delivered"
        );
        let route = link.route(MailboxId(0));
        let refused = link.post(
            &*process,
            &route,
            &Single(&[1, 2, 3], Mark::of::<u8>()),
            Until::Now,
        );
        assert!(
            matches!(refused, Err(PostError::PeerGone(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn a_mailbox_outlives_short_slots_of_every_length_on_a_shared_lane() {
    for len in 0..=255 {
        let victim = Victim::new();
        victim.write(SharedMemory::SharedLane, CONTROL, &short_slot(len));
        for _ in 0..3 {
            let _ = victim.next();
        }
    }
}
