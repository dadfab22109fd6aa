//! A channel of the job that programs may name, as a process is told of it.

use super::codec::{Reader, Writer};
use super::network::{MAX_RANGES, MAX_WORD, flag, is_name};
use super::{DecodeError, MAX_PROCESSES, TooLarge};

/// A channel besides the one that everybody is on: which processes are on it, and over which networks it goes here. Channels have the
/// same order for all processes of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// What the user calls it.
    pub name: String,
    /// The ranks on it: ranges, the end not among them.
    pub ranks: Vec<(u32, u32)>,
    /// The networks of this host that carry it, by name, in order of preference; each has a driver for it alone. Empty, if this host is
    /// not on it.
    pub networks: Vec<String>,
    /// Whether it joins several networks, so that gateways lead from one to the other.
    pub is_joined: bool,
}

impl Channel {
    pub(super) fn encode_all(channels: &[Self], w: &mut Writer<'_>) -> Result<(), TooLarge> {
        if !is_few(channels) {
            return Err(TooLarge);
        }
        w.count(channels.len())?;
        for channel in channels {
            w.text(&channel.name, MAX_WORD)?;
            w.count(channel.ranks.len())?;
            for (first, end) in &channel.ranks {
                w.u32(*first);
                w.u32(*end);
            }
            w.count(channel.networks.len())?;
            for network in &channel.networks {
                w.text(network, MAX_WORD)?;
            }
            w.u8(u8::from(channel.is_joined));
        }
        Ok(())
    }

    pub(super) fn decode_all(r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        let channels = r.list(|r| {
            Ok(Self {
                name: r.text(MAX_WORD)?,
                ranks: r.list(|r| Ok((r.u32()?, r.u32()?)))?,
                networks: r.list(|r| r.text(MAX_WORD))?,
                is_joined: flag(r)?,
            })
        })?;
        let ranges = || channels.iter().flat_map(|channel| &channel.ranks);
        let networks = channels.iter().flat_map(|channel| &channel.networks);
        let mut names = channels.iter().map(|channel| &channel.name).chain(networks);
        let is_sound = |(first, end): &(u32, u32)| first < end && *end <= MAX_PROCESSES;
        if !is_few(&channels) || !ranges().all(is_sound) || !names.all(|name| is_name(name)) {
            return Err(DecodeError::Value);
        }
        Ok(channels)
    }
}

fn is_few(channels: &[Channel]) -> bool {
    let ranges: usize = channels.iter().map(|channel| channel.ranks.len()).sum();
    let drivers: usize = channels.iter().map(|channel| channel.networks.len()).sum();
    channels.len() <= MAX_CHANNELS && ranges <= MAX_RANGES && drivers <= MAX_OWN_DRIVERS
}

/// The most channels that a job has besides the one that everybody is on.
pub const MAX_CHANNELS: usize = 64;
/// The most drivers of a process for those: each is a port, a thread, and a part of its locator.
pub const MAX_OWN_DRIVERS: usize = 16;
