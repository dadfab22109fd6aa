//! Groups of some members, and groups of threads.

use core::panic::Location;

use mizzen_core::service::SlateNumber;
use mizzen_core::{Channel, ChannelError, Mailbox, MailboxError, Result};
use mizzen_proto::group::plan::Operation;
use mizzen_proto::group::schedule::Member;

use super::call::Call;
use super::member::Group;
use super::roster::{Listed, Record, Roster};
use super::seat::Seat;

impl Group {
    /// Groups of those members that give the same colour, in the order of their keys, and of their numbers where keys are the same. A member that gives no
    /// colour is in none.
    ///
    /// ```
    /// mizzen::local(4, |deck| {
    ///     let mut all = deck.group()?;
    ///     let me = deck.rank().0;
    ///     let row = all.split(Some(me / 2), me)?.expect("a colour was given");
    ///     assert_eq!((row.size(), row.member().0), (2, me % 2));
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError), or if the process has no room for another mailbox.
    #[track_caller]
    pub fn split(&mut self, colour: Option<u32>, key: u32) -> Result<Option<Self>> {
        let call = Call::new("split", Operation::AllGather, Location::caller());
        self.split_with(call, colour, key, Mailbox::open_beside)
    }

    /// The group of those on this member's host, in their order.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let near = deck.group()?.by_host()?;
    ///     assert_eq!(near.size(), 3);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split).
    #[track_caller]
    pub fn by_host(&mut self) -> Result<Self> {
        let call = Call::new("by_host", Operation::AllGather, Location::caller());
        let (seat, _) = self.parts();
        let host = seat.roster.place(seat.me).host;
        self.split_for_all(call, host)
    }

    /// The group of those in this member's cluster, in their order.
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split).
    #[track_caller]
    pub fn by_cluster(&mut self) -> Result<Self> {
        let call = Call::new("by_cluster", Operation::AllGather, Location::caller());
        let (seat, _) = self.parts();
        let cluster = seat.roster.place(seat.me).cluster;
        self.split_for_all(call, cluster)
    }

    /// The group of those whose hosts are on a network of the job's file, in their order; `None` for the others.
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split), or if the launcher does not answer.
    #[track_caller]
    pub fn by_network(&mut self, network: &str) -> Result<Option<Self>> {
        let call = Call::new("by_network", Operation::AllGather, Location::caller());
        let process = self.parts().0.process.clone();
        let topology = process.topology()?;
        let host = topology.host_of(process.id().rank);
        let is_on_it =
            host.is_some_and(|host| topology.networks_of(host).any(|of| of.name == network));
        self.split_with(call, is_on_it.then_some(0), 0, Mailbox::open_beside)
    }

    /// The group of those on a channel, in their order; `None` for the others. What its members say to each other goes over the networks of that channel and
    /// no others.
    ///
    /// ```
    /// mizzen::local(2, |deck| {
    ///     let mut bulk = deck.group()?.on_channel("default")?.expect("everybody is on it");
    ///     bulk.barrier()
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split); [`ChannelError::Unknown`] if the job has no such channel.
    #[track_caller]
    pub fn on_channel(&mut self, name: &str) -> Result<Option<Self>> {
        let call = Call::new("on_channel", Operation::AllGather, Location::caller());
        let process = self.parts().0.process.clone();
        let channel = match Channel::named(&process, name) {
            Ok(channel) => Some(channel),
            Err(ChannelError::NotOnIt { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let colour = channel.as_ref().map(|_| 0);
        self.split_with(call, colour, 0, |inbox| match channel {
            Some(channel) => channel.mailbox(),
            None => inbox.open_beside(),
        })
    }

    /// A group of threads: this member becomes as many as it says, each of which is a member in its own right. Those of the first member come first.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(2, |deck| {
    ///     let seats = deck.group()?.seats(3)?;
    ///     std::thread::scope(|threads| {
    ///         for mut seat in seats {
    ///             threads.spawn(move || {
    ///                 let sum = seat.all_reduce_value(u64::from(seat.member().0), Sum).unwrap();
    ///                 assert_eq!(sum, 0 + 1 + 2 + 3 + 4 + 5);
    ///             });
    ///         }
    ///     });
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`split`](Self::split).
    #[track_caller]
    pub fn seats(&mut self, threads: usize) -> Result<Vec<Self>> {
        let call = Call::new("seats", Operation::AllGather, Location::caller());
        let seat = self.parts().0;
        let process = seat.process.clone();
        let inboxes = (0..threads).map(|_| seat.inbox.open_beside());
        let inboxes: Vec<Mailbox> = inboxes.collect::<Result<_, _>>()?;
        let slates: Vec<_> = inboxes
            .iter()
            .map(|_| SlateNumber::take(&process))
            .collect();
        let own = inboxes.iter().zip(&slates);
        let own: Vec<Record> = own
            .map(|(inbox, slate)| Listed::record(inbox, slate.as_ref()))
            .collect();
        let all = self.all_gather_under(call, &own)?;
        let roster = &self.parts().0.roster;
        let mut members = Vec::with_capacity(all.all().len());
        for (member, records) in (0..).map(Member).zip(all.iter()) {
            members.extend(
                records
                    .iter()
                    .map(|record| Listed::told(roster, member, record)),
            );
        }
        let before: usize = all.iter().take(self.member().index()).map(<[_]>::len).sum();
        let roster = Roster::listed(members);
        let seats = inboxes.into_iter().zip(slates).zip(before as u32..);
        let seat = |((inbox, slate), me)| {
            let seat = Seat::new(process.clone(), inbox, slate, Member(me), roster.clone());
            Self::new(seat, None)
        };
        Ok(seats.map(seat).collect())
    }

    fn split_for_all(&mut self, call: Call, colour: u32) -> Result<Self> {
        let own = self.split_with(call, Some(colour), 0, Mailbox::open_beside)?;
        match own {
            Some(group) => Ok(group),
            None => unreachable!("a colour was given"),
        }
    }

    fn split_with(
        &mut self,
        call: Call,
        colour: Option<u32>,
        key: u32,
        open: impl FnOnce(&Mailbox) -> Result<Mailbox, MailboxError>,
    ) -> Result<Option<Self>> {
        let seat = self.parts().0;
        let process = seat.process.clone();
        // It is there before anybody knows of it.
        let inbox = open(&seat.inbox)?;
        let slate = SlateNumber::take(&process);
        let [first, second, third] = Listed::record(&inbox, slate.as_ref());
        let own = [
            colour.map_or(NO_COLOUR, u64::from),
            u64::from(key),
            first,
            second,
            third,
        ];
        let all = self.all_gather_under(call, &[own])?;
        if colour.is_none() {
            return Ok(None);
        }
        let roster = &self.parts().0.roster;
        let records = (0..).map(Member).zip(all.all());
        let mut alike: Vec<(u64, Member, Listed)> = records
            .filter(|(_, record)| record[0] == own[0])
            .map(|(member, [_, key, record @ ..])| {
                (*key, member, Listed::told(roster, member, record))
            })
            .collect();
        alike.sort_unstable_by_key(|(key, member, _)| (*key, *member));
        let me = self.member();
        let place = alike.iter().position(|(_, member, _)| *member == me);
        let me = Member(place.unwrap_or(0) as u32);
        let roster = Roster::listed(alike.into_iter().map(|(.., listed)| listed).collect());
        let mut seat = Seat::new(process, inbox, slate, me, roster);
        seat.choice = self.parts().0.choice.inherited();
        Ok(Some(Self::new(seat, None)))
    }
}

/// What stands for no colour.
const NO_COLOUR: u64 = u64::MAX;
