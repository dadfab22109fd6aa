//! Who the members of a group are.

use std::sync::Arc;

use mizzen_core::service::Address;
use mizzen_core::{Endpoint, Rank, Topology};
use mizzen_proto::group::layout::Layout;

use super::Member;

/// The members of a group, where they are, and how they are reached. The same at all.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    members: Members,
    places: Arc<[Place]>,
    pub(super) layout: Arc<Layout>,
}

#[derive(Clone, Debug)]
enum Members {
    /// All processes of the job, by rank, at a mailbox that each has.
    Everybody(mizzen_core::service::MailboxId),
    Listed(Arc<[Address]>),
}

/// Where a member is: cluster and host, by their numbers in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cluster: u32,
    pub(super) host: u32,
}

/// How a member is reached.
pub(super) enum Way {
    /// At this address.
    At(Address),
    /// At this mailbox of the life that a rank has.
    Of(Rank, mizzen_core::service::MailboxId),
}

impl Roster {
    /// All processes of a job.
    pub(super) fn everybody(
        process: &Endpoint,
        topology: &Topology,
        mailbox: mizzen_core::service::MailboxId,
    ) -> Self {
        let mut places = vec![
            Place {
                cluster: 0,
                host: 0
            };
            process.size() as usize
        ];
        let clusters = topology.clusters();
        for (number, host) in (0..).zip(topology.hosts()) {
            let cluster = clusters.iter().position(|name| *name == host.cluster);
            let place = Place {
                cluster: cluster.unwrap_or(0) as u32,
                host: number,
            };
            for rank in host.ranks() {
                if let Some(known) = places.get_mut(rank.index()) {
                    *known = place;
                }
            }
        }
        Self::new(Members::Everybody(mailbox), places)
    }

    /// Those with these addresses, who are at these places.
    pub(super) fn listed(members: Vec<(Address, Place)>) -> Self {
        let (addresses, places): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        Self::new(Members::Listed(addresses.into()), places)
    }

    fn new(members: Members, places: Vec<Place>) -> Self {
        let layout = Layout::new(places.iter().map(|place| (place.cluster, place.host)));
        Self {
            members,
            places: places.into(),
            layout: Arc::new(layout),
        }
    }

    pub(super) fn size(&self) -> u32 {
        self.places.len() as u32
    }

    pub(super) fn place(&self, member: Member) -> Place {
        self.places[member.index()]
    }

    pub(super) fn rank(&self, member: Member) -> Rank {
        match &self.members {
            Members::Everybody(_) => Rank(member.0),
            Members::Listed(addresses) => addresses[member.index()].process.rank,
        }
    }

    pub(super) fn way(&self, member: Member) -> Way {
        match &self.members {
            Members::Everybody(mailbox) => Way::Of(Rank(member.0), *mailbox),
            Members::Listed(addresses) => Way::At(addresses[member.index()]),
        }
    }

    pub(super) fn members(&self) -> impl Iterator<Item = Member> + use<> {
        (0..self.size()).map(Member)
    }
}
