//! `[[channel]]` and `[[vchannel]]`.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::Source;
use crate::error::quote;
use crate::{
    Channel, DEFAULT_CHANNEL, Error, ErrorKind, Hosts, Network, VirtualChannel, limits, near,
};

impl Source<'_> {
    /// All channels over networks: those of the file, then one for each network that has none, called like it.
    pub(super) fn channels(
        &self,
        root: &DeTable<'_>,
        networks: &[(Network, usize)],
        names: &mut Vec<(String, usize)>,
    ) -> Result<Vec<Channel>, Error> {
        let mut channels = Vec::new();
        for (value, table) in self.tables(root, "channel", limits::CHANNELS)? {
            let channel = self.channel(value, table, networks)?;
            let name = table.get("name").unwrap_or(value);
            self.no_other("channels", &channel.name, name, names)?;
            let same = networks
                .iter()
                .find(|(known, _)| known.name == channel.name);
            if let Some((_, line)) = same.filter(|(known, _)| known.name != channel.network) {
                let kind = ErrorKind::NameOfNetwork {
                    name: channel.name,
                    line: *line,
                };
                return Err(self.at(name, "name", kind));
            }
            names.push((channel.name.clone(), self.line(name)));
            channels.push(channel);
        }
        for (network, line) in networks {
            if !channels
                .iter()
                .any(|channel: &Channel| channel.network == network.name)
            {
                names.push((network.name.clone(), *line));
                channels.push(Channel {
                    name: network.name.clone(),
                    network: network.name.clone(),
                    hosts: network.hosts.clone(),
                    is_declared: false,
                });
            }
        }
        Ok(channels)
    }

    fn channel(
        &self,
        value: &Spanned<DeValue<'_>>,
        table: &DeTable<'_>,
        networks: &[(Network, usize)],
    ) -> Result<Channel, Error> {
        self.known_keys(table, "a channel", CHANNEL_KEYS)?;
        let name = self.name("channel", value, table)?;
        let over = self.needed("channel", "network", value, table)?;
        let known: Vec<&str> = networks.iter().map(|(known, _)| &known.name[..]).collect();
        let index = self.known(over, "network", "network", &known)?;
        let network = &networks[index].0;
        let hosts = match table.get("hosts") {
            None => network.hosts.clone(),
            Some(value) => {
                let hosts = self.hosts(value, Some("it has all hosts of its network"))?;
                let stranger = hosts.iter().find(|host| !network.hosts.contains(host));
                if let Some(host) = stranger {
                    let kind = ErrorKind::NotOnNetwork {
                        host: quote(host),
                        network: network.name.clone(),
                    };
                    return Err(self.at(self.entry(value, host), "hosts", kind));
                }
                Hosts::Only(hosts)
            }
        };
        Ok(Channel {
            name,
            network: network.name.clone(),
            hosts,
            is_declared: true,
        })
    }

    /// The virtual channels: those of the file, and the default one if the file has none, which joins all channels.
    pub(super) fn virtual_channels(
        &self,
        root: &DeTable<'_>,
        channels: &[Channel],
        names: &mut Vec<(String, usize)>,
    ) -> Result<Vec<VirtualChannel>, Error> {
        let mut joined = Vec::new();
        for (value, table) in self.tables(root, "vchannel", limits::CHANNELS)? {
            self.known_keys(table, "a virtual channel", VIRTUAL_KEYS)?;
            let channel = self.virtual_channel(value, table, channels)?;
            let name = table.get("name").unwrap_or(value);
            self.no_other("channels", &channel.name, name, names)?;
            names.push((channel.name.clone(), self.line(name)));
            joined.push(channel);
        }
        if !names.iter().any(|(name, _)| name == DEFAULT_CHANNEL) {
            joined.push(VirtualChannel {
                name: DEFAULT_CHANNEL.to_owned(),
                channels: channels
                    .iter()
                    .map(|channel| channel.name.clone())
                    .collect(),
            });
        }
        Ok(joined)
    }

    fn virtual_channel(
        &self,
        value: &Spanned<DeValue<'_>>,
        table: &DeTable<'_>,
        channels: &[Channel],
    ) -> Result<VirtualChannel, Error> {
        let name = self.name("virtual channel", value, table)?;
        let list = self.needed("virtual channel", "channels", value, table)?;
        let known: Vec<&str> = channels.iter().map(|channel| &channel.name[..]).collect();
        let mut parts: Vec<&Channel> = Vec::new();
        for entry in self.entries(list, "channels", limits::CHANNELS, None)? {
            let channel = &channels[self.known(entry, "channels", "channel", &known)?];
            if parts.contains(&channel) {
                return Err(self.repeated(entry, "channels", &channel.name));
            }
            parts.push(channel);
        }
        if let Some((one, other)) = apart(&parts) {
            let kind = ErrorKind::Apart {
                one: one.name.clone(),
                other: other.name.clone(),
            };
            return Err(self.at(self.entry(list, &other.name), "channels", kind));
        }
        Ok(VirtualChannel {
            name,
            channels: parts.iter().map(|part| part.name.clone()).collect(),
        })
    }

    /// What a table must have.
    pub(super) fn needed<'v, 'i>(
        &self,
        what: &'static str,
        key: &'static str,
        value: &Spanned<DeValue<'_>>,
        table: &'v DeTable<'i>,
    ) -> Result<&'v Spanned<DeValue<'i>>, Error> {
        let missing = || self.at(value, key, ErrorKind::Missing { what, key });
        table.get(key).ok_or_else(missing)
    }

    /// Which of the known names a text is.
    fn known(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
        what: &'static str,
        known: &[&str],
    ) -> Result<usize, Error> {
        let name = self.text(value, key)?;
        known
            .iter()
            .position(|known| *known == name)
            .ok_or_else(|| {
                let near = near::nearest(name, known).map(str::to_owned);
                let name = quote(name);
                self.at(value, key, ErrorKind::UnknownName { what, name, near })
            })
    }

    /// The entry of a list that is this text, or the list.
    pub(crate) fn entry<'v, 'i>(
        &self,
        list: &'v Spanned<DeValue<'i>>,
        text: &str,
    ) -> &'v Spanned<DeValue<'i>> {
        let mut entries = list.get_ref().as_array().into_iter().flatten();
        let entry = entries.find(|entry| entry.get_ref().as_str() == Some(text));
        entry.unwrap_or(list)
    }
}

/// Two channels between which nothing gets through these: no chain of channels with hosts in common leads from the first to the other.
fn apart<'c>(channels: &[&'c Channel]) -> Option<(&'c Channel, &'c Channel)> {
    let (first, mut others) = (*channels.first()?, channels[1..].to_vec());
    let mut reached = vec![first];
    let mut next = 0;
    while let Some(here) = reached.get(next).copied() {
        let (met, left) = others
            .into_iter()
            .partition(|other: &&Channel| meet(here, other));
        reached.extend::<Vec<_>>(met);
        others = left;
        next += 1;
    }
    Some((first, others.first()?))
}

/// Whether a host is on both.
fn meet(one: &Channel, other: &Channel) -> bool {
    match (&one.hosts, &other.hosts) {
        (Hosts::All, _) | (_, Hosts::All) => true,
        (Hosts::Only(one), Hosts::Only(other)) => !one.is_disjoint(other),
    }
}

const CHANNEL_KEYS: &[&str] = &["name", "network", "hosts"];
const VIRTUAL_KEYS: &[&str] = &["name", "channels"];
