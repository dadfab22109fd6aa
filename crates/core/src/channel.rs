//! Channels that programs name.

use core::fmt;

use crate::endpoint::Endpoint;
use crate::error::{ChannelError, MailboxError};
use crate::mailbox::Mailbox;
use crate::rank::{ChannelId, KnownChannel, Rank};

/// What the channel is called that everybody is on.
pub(crate) const DEFAULT: &str = "default";

/// A channel: some or all processes of the job, and the networks over which they reach each other there.
///
/// A program that names none uses the channel `default`, which everybody is on. What is posted to a mailbox of another channel goes over
/// the networks of that channel and no others, and waits for nothing that is under way on the others; between processes of one host it
/// goes through memory, as ever. Everything else is as with any mailbox: its address may be bound to a name, packed and handed on, and
/// knows which channel it is on.
///
/// ```
/// mizzen::local(2, |deck| {
///     let channel = deck.channel("default")?;
///     assert_eq!(channel.members().count(), 2);
///     let inbox = channel.mailbox()?;
///     inbox.address().send(&7u64)?;
///     assert_eq!(inbox.receive::<u64>()?, 7);
///     Ok(())
/// }).unwrap();
/// ```
#[derive(Clone)]
pub struct Channel {
    process: Endpoint,
    id: ChannelId,
}

impl Channel {
    /// The channel of this name.
    ///
    /// # Errors
    ///
    /// [`ChannelError`] if the job has none of that name, or this process is not on it.
    pub fn named(process: &Endpoint, name: &str) -> Result<Self, ChannelError> {
        let channel = |id| Self {
            process: process.clone(),
            id,
        };
        if name == DEFAULT {
            return Ok(channel(ChannelId::DEFAULT));
        }
        let known = process.known_channels();
        let names = || known.iter().map(|channel| channel.name.clone());
        let unknown = || ChannelError::Unknown {
            name: name.to_owned(),
            known: names().chain([DEFAULT.to_owned()]).collect(),
        };
        let found = known.iter().position(|channel| channel.name == name);
        let index = found.ok_or_else(unknown)?;
        let found = channel(ChannelId(u8::try_from(index + 1).map_err(|_| unknown())?));
        if !found.contains(process.id().rank) {
            return Err(ChannelError::NotOnIt {
                name: name.to_owned(),
                host: process.host().to_owned(),
            });
        }
        Ok(found)
    }

    /// The names of all channels of the job that this process is on; the one that everybody is on is the first.
    pub fn names(process: &Endpoint) -> Vec<String> {
        let known = process.known_channels().iter();
        let own = known.filter(|channel| channel.contains(process.id().rank));
        let names = own.map(|channel| channel.name.clone());
        [DEFAULT.to_owned()].into_iter().chain(names).collect()
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.known().map_or(DEFAULT, |known| &known.name)
    }

    /// The ranks on it, in order.
    pub fn members(&self) -> impl Iterator<Item = Rank> + '_ {
        let everybody = [(0, self.process.size())];
        let ranks = match self.known() {
            Some(known) => known.ranks.clone(),
            None => everybody.to_vec(),
        };
        let all = ranks.into_iter().flat_map(|(first, end)| first..end);
        all.map(Rank)
    }

    /// Whether a rank is on it.
    #[must_use]
    pub fn contains(&self, rank: impl Into<Rank>) -> bool {
        let rank = rank.into();
        match self.known() {
            Some(known) => known.contains(rank),
            None => rank.0 < self.process.size(),
        }
    }

    /// A new mailbox on it, owned by the caller: what is posted to it comes over this channel.
    ///
    /// # Errors
    ///
    /// [`MailboxError::TooMany`] if the process has no room for another.
    pub fn mailbox(&self) -> Result<Mailbox, MailboxError> {
        Mailbox::open_on(&self.process, self.id)
    }

    /// What is known of it, if it is not the one that everybody is on.
    fn known(&self) -> Option<&KnownChannel> {
        let index = usize::from(self.id.0).checked_sub(1)?;
        self.process.known_channels().get(index)
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Channel").field(&self.name()).finish()
    }
}
