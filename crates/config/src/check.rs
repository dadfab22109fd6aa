//! From text to networks, channels and clusters: which key may say what.
//!
//! The parser of TOML says what is where; this says what it means. Keys are looked at in the order of the file, so
//! that the first thing wrong is the first that a reader of the file comes to.

mod channel;
mod cluster;
mod network;
pub(crate) mod source;

use std::io::Read;
use std::path::Path;

use toml::de::DeTable;

use crate::error::harmless;
use crate::{Channel, Cluster, Error, ErrorKind, Network, VirtualChannel, limits};
use source::Source;

/// What a file says.
pub(crate) struct Contents {
    pub(crate) networks: Vec<Network>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) virtual_channels: Vec<VirtualChannel>,
    pub(crate) clusters: Vec<Cluster>,
    /// Whether it names channels itself.
    pub(crate) has_channels: bool,
}

/// Reads and checks a job's file.
pub(crate) fn file(file: &str, bytes: &[u8]) -> Result<Contents, Error> {
    parse(file, bytes, |source, root| source.file(root))
}

/// The name of a file, for errors, and what is in it.
pub(crate) fn read(path: &Path) -> Result<(String, Vec<u8>), Error> {
    let name = path.to_string_lossy().into_owned();
    // One byte more than is allowed shows that there is too much, whatever the file says about its size.
    let mut text = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(limits::FILE as u64 + 1).read_to_end(&mut text))
        .map_err(|error| Error::whole(&name, ErrorKind::Unreadable(error)))?;
    Ok((name, text))
}

/// Parses a file, and has `check` say what it means.
pub(crate) fn parse<T>(
    file: &str,
    bytes: &[u8],
    check: impl FnOnce(&Source<'_>, &DeTable<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    if bytes.len() > limits::FILE {
        return Err(Error::whole(file, ErrorKind::FileTooLong));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let end = good.len()..good.len();
            return Err(Error::at(file, &good, &end, None, ErrorKind::NotText));
        }
    };
    let source = Source { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        let message = shorten_message(error.message());
        source.error(&span, None, ErrorKind::Syntax { message })
    })?;
    check(&source, root.get_ref())
}

impl Source<'_> {
    fn file(&self, root: &DeTable<'_>) -> Result<Contents, Error> {
        self.known_keys(root, "the file", FILE_KEYS)?;
        let networks = self.networks(root)?;
        let mut names = Vec::new();
        let channels = self.channels(root, &networks, &mut names)?;
        let virtual_channels = self.virtual_channels(root, &channels, &mut names)?;
        let clusters = self.clusters(root)?;
        Ok(Contents {
            networks: networks.into_iter().map(|(network, _)| network).collect(),
            channels,
            virtual_channels,
            clusters,
            has_channels: root.contains_key("channel") || root.contains_key("vchannel"),
        })
    }

    /// The networks, with their lines.
    fn networks(&self, root: &DeTable<'_>) -> Result<Vec<(Network, usize)>, Error> {
        let tables = self.tables(root, "network", limits::NETWORKS)?;
        if tables.is_empty() {
            return Err(match root.get("network") {
                Some(value) => self.at(value, "network", ErrorKind::NoNetwork),
                None => Error::whole(self.file, ErrorKind::NoNetwork),
            });
        }
        let (mut networks, mut names) = (Vec::new(), Vec::new());
        for (value, table) in tables {
            let network = self.network(value, table)?;
            let name = table.get("name").unwrap_or(value);
            self.no_other("networks", &network.name, name, &names)?;
            names.push((network.name.clone(), self.line(name)));
            networks.push((network, self.line(name)));
        }
        Ok(networks)
    }
}

/// What the parser says, on one line and without what a terminal acts on.
fn shorten_message(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .take(MESSAGE)
        .map(harmless)
        .collect()
}

const FILE_KEYS: &[&str] = &["network", "channel", "vchannel", "cluster"];

/// Characters of what the parser says.
const MESSAGE: usize = 200;
