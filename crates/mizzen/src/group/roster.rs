//! Who the members of a group are.

use std::sync::Arc;

use mizzen_core::service::{Address, MailboxId, SlateNumber, SlateUse};
use mizzen_core::{Endpoint, Incarnation, Mailbox, ProcessId, Rank, Topology};
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
    Everybody(MailboxId, SlateUse),
    Listed(Arc<[Listed]>),
}

/// A member that is known by its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    pub(super) address: Address,
    /// Its slate, if it has one.
    pub(super) slate: Option<SlateUse>,
    pub(super) place: Place,
}

/// How others know a member: its process, its mailbox and its slate, as numbers, which hosts of any order of bytes tell each other.
pub(super) type Record = [u64; 3];

/// What stands for no slate.
const NO_SLATE: u64 = u64::MAX;

impl Listed {
    /// What others are told of a member of this process.
    pub(super) fn record(inbox: &Mailbox, slate: Option<&SlateNumber>) -> Record {
        let Address { process, mailbox } = inbox.full_address();
        let ProcessId { rank, incarnation } = process;
        let process = u64::from(rank.0) << 32 | u64::from(incarnation.0);
        let slate = slate.and_then(SlateNumber::get);
        [process, mailbox.0, slate.map_or(NO_SLATE, SlateUse::get)]
    }

    /// A member of a new group, of which a member of another one told.
    pub(super) fn told(
        roster: &Roster,
        teller: Member,
        [process, mailbox, slate]: &Record,
    ) -> Self {
        let (rank, incarnation) = (Rank((process >> 32) as u32), Incarnation(*process as u32));
        Self {
            address: Address {
                process: ProcessId::new(rank, incarnation),
                mailbox: MailboxId(*mailbox),
            },
            slate: (*slate != NO_SLATE).then_some(SlateUse::from_told(*slate)),
            place: roster.place(teller),
        }
    }
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
        slate: SlateUse,
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
    pub(super) fn slates(&self) -> Option<Vec<SlateUse>> {
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
