//! The directory that holds names, and the memory of those that others hold, under frames of hostile processes.

use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::names::{CACHE_MAX, Directory, DirectoryLimits, NameCache, shard_of};
use mizzen_proto::wire::{Frame, Keep, NameFrame};

use crate::tape::Tape;

/// So low that a short input reaches them.
const LIMITS: DirectoryLimits = DirectoryLimits {
    names: 6,
    waiters: 6,
    keepers: 4,
};

/// Events: what happens, who does it (rank and life in half a byte each), and, unless a process is gone, a frame.
pub fn run(data: &[u8]) {
    let mut tape = Tape::new(data);
    let mut directory = Directory::new(LIMITS);
    let mut cache = NameCache::new();
    while !tape.is_over() {
        let event = tape.byte();
        let who = tape.byte();
        let rank = Rank(u32::from(who & 0xf));
        let who = ProcessId::new(rank, Incarnation(u32::from(who >> 4)));
        if event % 8 == 0 {
            directory.handle_process_gone(who);
            cache.handle_process_gone(who);
        } else if let Ok(Frame::Name(frame)) = Frame::decode(tape.bytes()) {
            handle(&mut directory, &mut cache, who, frame);
        }
        // An engine drains after each event, so that what waits is bounded by one.
        let mut replies = 0;
        while let Some(reply) = directory.poll_reply() {
            replies += 1;
            let bytes = reply.frame().to_vec();
            assert_eq!(Frame::decode(&bytes), Ok(reply.frame()));
        }
        assert!(replies <= 1 + LIMITS.waiters + LIMITS.keepers);
        assert!(directory.len() <= LIMITS.names);
        assert!(directory.waiters() <= LIMITS.waiters);
        assert!(directory.bindings().count() <= directory.len());
        assert!(cache.len() <= CACHE_MAX);
    }
}

fn handle(directory: &mut Directory, cache: &mut NameCache, who: ProcessId, frame: NameFrame<'_>) {
    if let NameFrame::Bind { name, address, .. } = frame {
        assert!(shard_of(name, 7).0 < 7);
        cache.handle_found(name, address, Keep::UntilForgotten);
        assert_eq!(cache.lookup(name), Some(address));
    }
    match directory.handle_frame(who, frame) {
        Some(NameFrame::Forget { name }) => {
            cache.handle_forget(name);
            assert_eq!(cache.lookup(name), None);
        }
        Some(NameFrame::Conflict { holder, .. }) => cache.handle_address_gone(holder),
        _ => (),
    }
}
