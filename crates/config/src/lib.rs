//! The job's file, `mizzen.toml`, and the site's, `site.toml`: parsed, checked, explained.
//!
//! The file says which networks a job may use. Everything in it is checked here, once, so that what comes out of
//! [`JobFile::parse`] needs no further questions, and what is wrong is told with its line and with what to write instead.
//!
//! ```
//! use mizzen_config::{Driver, JobFile, Security};
//!
//! let file = JobFile::parse("mizzen.toml", r#"
//!     [[network]]
//!     name = "site"
//!
//!     [[network]]
//!     name = "fast"
//!     driver = "ofi"
//!     hosts = ["a", "b"]
//!     security = "trusted"
//! "#)?;
//! let of_c: Vec<_> = file.networks_of("c").map(|network| network.name.as_str()).collect();
//! assert_eq!(of_c, ["site"]);
//! assert_eq!(file.networks()[0].driver, Driver::Tcp { port: 0 });
//! assert_eq!(file.networks()[1].security, Security::Trusted);
//! # Ok::<(), mizzen_config::Error>(())
//! ```
//!
//! # The format
//!
//! One `[[network]]` for each network, at least one; the rest may be left out.
//!
//! ## `[[network]]`: what carries messages between some hosts
//!
//! | key | meaning | without it |
//! | --- | --- | --- |
//! | `name` | what the network is called: 1 to 32 of `a-z`, `0-9` and `-`; no two alike | required |
//! | `driver` | `"tcp"` or `"ofi"` (libfabric) | `"tcp"` |
//! | `hosts` | the hosts that are on it, as `--hosts` names them | all |
//! | `interfaces` | names of interfaces or subnets, in order of preference | what can be reached |
//! | `security` | `"tls"`, or `"trusted"`: nobody else can read or write on this network | `"tls"` |
//! | `port` | where processes listen, `"tcp"` only | a free one |
//! | `streams` | its hosts are far from each other: so many connections, 1 to 16, two gateways have over it, `"tcp"` only | near, 1 |
//! | `rate` | the same: so many Mbit/s two gateways send each other at most, `"tcp"` only | what they find |
//! | `provider` | the libfabric provider, `"ofi"` only | libfabric's choice |
//!
//! A network with the driver `"ofi"` does not encrypt, so it must be declared `security = "trusted"`: the author of the file
//! decides that, not a default.
//!
//! ## `[[channel]]`: a plane of its own over one network
//!
//! | key | meaning | without it |
//! | --- | --- | --- |
//! | `name` | what the channel is called, as a network is; no two channels alike, virtual or not | required |
//! | `network` | the network that carries it; several channels may be over one | required |
//! | `hosts` | the hosts that are on it | all of its network |
//!
//! A network over which the file has no channel has one that is called like it, for virtual channels: programs name only those that
//! the file declares.
//!
//! ## `[[vchannel]]`: channels joined
//!
//! | key | meaning | without it |
//! | --- | --- | --- |
//! | `name` | as above | required |
//! | `channels` | the channels that it joins, in order of preference | required |
//!
//! A host that is on two channels of a virtual channel is a gateway between them. The channel called `default` is the one that
//! everybody is on; if the file has none of that name, it is a virtual channel that joins all others, in the order of the file.
//!
//! ## `[[cluster]]`: hosts that are near each other
//!
//! | key | meaning | without it |
//! | --- | --- | --- |
//! | `name` | as above | required |
//! | `hosts` | its hosts; none may be in two clusters | required |
//!
//! A host that is in none is in the cluster that is called like the first network that it is on.
//!
//! ```
//! # use mizzen_config::JobFile;
//! // Two clusters that share no network, and a host that is on both of theirs.
//! let file = JobFile::parse("mizzen.toml", r#"
//!     [[network]]
//!     name = "sci"
//!     hosts = ["foo0", "foo1", "foo2"]
//!
//!     [[network]]
//!     name = "bip"
//!     hosts = ["foo2", "goo0", "goo1"]
//!
//!     [[vchannel]]
//!     name = "default"
//!     channels = ["sci", "bip"]
//! "#)?;
//! let hosts = ["foo0", "foo1", "foo2", "goo0", "goo1"];
//! assert_eq!(file.gateways("default", &hosts), ["foo2"]);
//! assert_eq!(file.cluster_of("goo1"), Some("bip"));
//! # Ok::<(), mizzen_config::Error>(())
//! ```
//!
//! # The site's file
//!
//! What a gateway between sites reads is another file: see [`SiteFile`].
//!
//! Why this is a separate crate: the TOML parser stays out of the library that programs link, and the file, which may come
//! from somebody else, is read without unsafe code.
//!
//! | module | subject |
//! | --- | --- |
//! | `check` | from text to networks, channels and clusters: which key may say what |
//! | `network`, `interface`, `channel`, `cluster` | what comes out |
//! | `site` | the site's file: what comes out, which key may say what, and adding to it |
//! | `error` | what is wrong, where, and what to write instead |
//! | `near` | which known word was meant |
//! | [`limits`] | how much a file may hold |

#![forbid(unsafe_code)]

mod channel;
mod check;
mod cluster;
mod error;
mod interface;
pub mod limits;
mod near;
mod network;
mod site;

use std::path::Path;

pub use channel::{Channel, DEFAULT_CHANNEL, VirtualChannel};
pub use cluster::Cluster;
pub use error::{Error, ErrorKind, Place, SiteFault};
pub use interface::{Interface, Subnet};
pub use network::{Driver, Hosts, Network, Security};
pub use site::{EditError, NewSite, PeerSite, SiteFile};

/// A job's file that has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    text: String,
    networks: Vec<Network>,
    channels: Vec<Channel>,
    virtual_channels: Vec<VirtualChannel>,
    clusters: Vec<Cluster>,
    has_channels: bool,
}

impl JobFile {
    /// Parses and checks a file. `name` is what errors call it.
    ///
    /// The text may be anything, UTF-8 or not: whatever is not a job's file is an error.
    ///
    /// ```
    /// use mizzen_config::{ErrorKind, JobFile};
    ///
    /// let error = JobFile::parse("mizzen.toml", "[[network]]\nnam = \"site\"\n").unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::UnknownKey { near: Some("name"), .. }));
    /// assert_eq!(error.place().map(|place| (place.line, place.column)), Some((2, 1)));
    /// assert_eq!(
    ///     error.to_string(),
    ///     "mizzen.toml, line 2: a network has no `nam`\n\
    ///      \x20 |\n\
    ///      2 | nam = \"site\"\n\
    ///      \x20 | ^^^\n\
    ///      did you mean `name`?"
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// The first thing in the file that is wrong: see [`ErrorKind`].
    pub fn parse(name: &str, text: impl AsRef<[u8]>) -> Result<Self, Error> {
        let contents = check::file(name, text.as_ref())?;
        Ok(Self {
            text: String::from_utf8_lossy(text.as_ref()).into_owned(),
            networks: contents.networks,
            channels: contents.channels,
            virtual_channels: contents.virtual_channels,
            clusters: contents.clusters,
            has_channels: contents.has_channels,
        })
    }

    /// Reads, parses and checks a file.
    ///
    /// ```
    /// use mizzen_config::{ErrorKind, JobFile};
    ///
    /// let error = JobFile::read("/no/such/mizzen.toml").unwrap_err();
    /// assert!(matches!(error.kind(), ErrorKind::Unreadable(_)));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`JobFile::parse`], and [`ErrorKind::Unreadable`] if there is no such file or it cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let (name, text) = check::read(path.as_ref())?;
        Self::parse(&name, &text)
    }

    /// What was parsed: whoever parses it has the same file.
    ///
    /// ```
    /// # use mizzen_config::JobFile;
    /// let file = JobFile::parse("mizzen.toml", "[[network]]\nname = 'site'\n")?;
    /// assert_eq!(JobFile::parse("elsewhere", file.text())?, file);
    /// # Ok::<(), mizzen_config::Error>(())
    /// ```
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The networks, in the order of the file. There is at least one.
    pub fn networks(&self) -> &[Network] {
        &self.networks
    }

    /// The networks that a host is on, in the order of the file.
    ///
    /// ```
    /// # use mizzen_config::JobFile;
    /// let file = JobFile::parse("mizzen.toml", "[[network]]\nname = 'pair'\nhosts = ['a', 'b']\n")?;
    /// assert_eq!(file.networks_of("a").count(), 1);
    /// assert_eq!(file.networks_of("c").count(), 0);
    /// # Ok::<(), mizzen_config::Error>(())
    /// ```
    pub fn networks_of(&self, host: &str) -> impl Iterator<Item = &Network> {
        self.networks
            .iter()
            .filter(move |network| network.hosts.contains(host))
    }

    /// The channels over one network each: those of the file, then one for each network that has none.
    ///
    /// ```
    /// # use mizzen_config::JobFile;
    /// let file = JobFile::parse("mizzen.toml", "[[network]]\nname = 'site'\n")?;
    /// assert_eq!(file.channels()[0].name, "site");
    /// # Ok::<(), mizzen_config::Error>(())
    /// ```
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// The virtual channels, [`DEFAULT_CHANNEL`] too, unless a channel over one network has that name.
    pub fn virtual_channels(&self) -> &[VirtualChannel] {
        &self.virtual_channels
    }

    /// Whether the file itself names a channel, virtual or not.
    pub fn has_channels(&self) -> bool {
        self.has_channels
    }

    /// The clusters that the file names.
    pub fn clusters(&self) -> &[Cluster] {
        &self.clusters
    }

    /// The cluster of a host: one that has it, or the first network that it is on. None, if it is on none.
    pub fn cluster_of(&self, host: &str) -> Option<&str> {
        let mut declared = self
            .clusters
            .iter()
            .filter(|cluster| cluster.hosts.contains(host));
        let declared = declared.next().map(|cluster| &cluster.name[..]);
        declared.or_else(|| Some(&self.networks_of(host).next()?.name))
    }

    /// The channels that make up a channel: those that it joins, or itself. Empty, if there is none of that name.
    ///
    /// ```
    /// # use mizzen_config::JobFile;
    /// let file = JobFile::parse("mizzen.toml", "[[network]]\nname = 'a'\n[[network]]\nname = 'b'\n")?;
    /// let names = |of| file.parts(of).map(|part| part.name.as_str()).collect::<Vec<_>>();
    /// assert_eq!(names("default"), ["a", "b"]);
    /// assert_eq!(names("b"), ["b"]);
    /// # Ok::<(), mizzen_config::Error>(())
    /// ```
    pub fn parts(&self, channel: &str) -> impl Iterator<Item = &Channel> {
        let joined = self
            .virtual_channels
            .iter()
            .find(|known| known.name == channel);
        let names: Vec<&str> = match joined {
            Some(joined) => joined.channels.iter().map(String::as_str).collect(),
            None => self
                .channels
                .iter()
                .map(|known| &known.name[..])
                .filter(|name| *name == channel)
                .collect(),
        };
        let part = |name| self.channels.iter().find(move |known| known.name == name);
        names.into_iter().filter_map(part)
    }

    /// Which of a job's hosts are gateways of a channel: those that are on two of its parts between which somebody needs them.
    ///
    /// A host is needed between two parts if one of them has a host that is not on the other, and the other way round.
    pub fn gateways<'h>(&self, channel: &str, hosts: &[&'h str]) -> Vec<&'h str> {
        let parts: Vec<&Channel> = self.parts(channel).collect();
        let only = |one: &Channel, other: &Channel| {
            hosts
                .iter()
                .any(|host| one.hosts.contains(host) && !other.hosts.contains(host))
        };
        let is_gateway = |host: &str| {
            let on = || parts.iter().filter(|part| part.hosts.contains(host));
            on().any(|one| on().any(|other| only(one, other) && only(other, one)))
        };
        hosts
            .iter()
            .copied()
            .filter(|host| is_gateway(host))
            .collect()
    }
}
