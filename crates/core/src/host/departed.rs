//! Processes of this host that left or misbehaved, and may live on. They may still read what we lent them, so that is free when
//! they do not exist any more.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use mizzen_shm::{ProcessError, ProcessFd, ProcessStamp};
use rustix::event::epoll;

use crate::error::Departure;
use crate::link::MemoryLink;
use crate::memory::{Arena, Ending};
use crate::rank::ProcessId;

/// Such processes, by the key of their descriptor: at most one life of each rank of this host.
#[derive(Default)]
pub(super) struct DepartedPeers(HashMap<u64, Departed>);

struct Departed {
    id: ProcessId,
    stamp: ProcessStamp,
    /// `None` as long as no descriptor is free for it.
    process_fd: Option<ProcessFd>,
    link: Weak<MemoryLink>,
    ending: Ending,
}

impl DepartedPeers {
    /// The link to a peer is over.
    pub(super) fn add(
        &mut self,
        key: u64,
        stamp: ProcessStamp,
        link: &Arc<MemoryLink>,
        how: Departure,
    ) {
        let ending = match how {
            Departure::Left => Ending::InOrder,
            _ => Ending::Killed,
        };
        let departed = Departed {
            id: link.peer,
            stamp,
            process_fd: None,
            link: Arc::downgrade(link),
            ending,
        };
        self.0.insert(key, departed);
    }

    /// Whether the end of one of them would not be noticed.
    pub(super) fn has_unwatched(&self) -> bool {
        self.0.values().any(|peer| peer.process_fd.is_none())
    }

    /// Watches those that are not watched yet, as far as descriptors are free.
    pub(super) fn watch(&mut self, epoll: &OwnedFd, arena: &Arena) {
        let mut dead = Vec::new();
        let peers = self.0.iter_mut();
        for (key, peer) in peers.filter(|(_, peer)| peer.process_fd.is_none()) {
            match peer.stamp.open() {
                Ok(process_fd) => {
                    let (fd, data) = (process_fd.as_fd(), epoll::EventData::new_u64(*key));
                    // If there is no memory for that, then later.
                    if epoll::add(epoll, fd, data, epoll::EventFlags::IN).is_ok() {
                        peer.process_fd = Some(process_fd);
                    }
                }
                Err(ProcessError::Gone) => dead.push(*key),
                Err(_) => (),
            }
        }
        for key in dead {
            self.reclaim(epoll, arena, key);
        }
    }

    /// One of them is dead, if this is the key of one.
    pub(super) fn reclaim(&mut self, epoll: &OwnedFd, arena: &Arena, key: u64) {
        let Some(peer) = self.0.remove(&key) else {
            return;
        };
        if let Some(process_fd) = &peer.process_fd {
            let _ = epoll::delete(epoll, process_fd.as_fd());
        }
        match peer.link.upgrade() {
            Some(link) => link.borrower.reclaim(arena, peer.ending),
            None => arena.reclaim(peer.id, peer.ending),
        }
    }
}
