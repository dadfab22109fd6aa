//! Who the members of a group are.

use std::sync::Arc;

use mizzen_core::service::{Address, MailboxId};
use mizzen_core::{Endpoint, Rank, Topology};
use mizzen_proto::group::layout::Layout;
use mizzen_proto::group::schedule::Member;

/// The members of a group, where they are, and how they are reached. The same at all.
#[derive(Clone, Debug)]
pub(super) struct Roster {
    members: Members,
    places: Arc<[Place]>,
    pub(super) layout: Arc<Layout>,
}

#[derive(Clone, Debug)]
enum Members {
    /// All processes of the job, by rank, at a mailbox and with a slate that each has.
    Everybody(MailboxId, u32),
    Listed(Arc<[Listed]>),
}

/// A member that is known by its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    pub(super) address: Address,
    /// The number of its slate, if it has one.
    pub(super) slate: Option<u32>,
    pub(super) place: Place,
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
    Of(Rank, MailboxId),
}

impl Roster {
    /// All processes of a job.
    pub(super) fn everybody(
        process: &Endpoint,
        topology: &Topology,
        mailbox: MailboxId,
        slate: u32,
    ) -> Self {
        let nowhere = Place {
            cluster: 0,
            host: 0,
        };
        let mut places = vec![nowhere; process.size() as usize];
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
        Self::new(Members::Everybody(mailbox, slate), places)
    }

    /// Members that are known by their addresses.
    pub(super) fn listed(members: Vec<Listed>) -> Self {
        let places = members.iter().map(|member| member.place).collect();
        Self::new(Members::Listed(members.into()), places)
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
            Members::Everybody(..) => Rank(member.0),
            Members::Listed(members) => members[member.index()].address.process.rank,
        }
    }

    pub(super) fn way(&self, member: Member) -> Way {
        match &self.members {
            Members::Everybody(mailbox, _) => Way::Of(Rank(member.0), *mailbox),
            Members::Listed(members) => Way::At(members[member.index()].address),
        }
    }

    /// The slates of all members, if each has one and all are on one host.
    pub(super) fn slates(&self) -> Option<Vec<u32>> {
        if self.layout.hosts() != 1 {
            return None;
        }
        match &self.members {
            Members::Everybody(_, slate) => Some(vec![*slate; self.places.len()]),
            Members::Listed(members) => members.iter().map(|member| member.slate).collect(),
        }
    }

    pub(super) fn members(&self) -> impl Iterator<Item = Member> + use<> {
        (0..self.size()).map(Member)
    }
}
