//! What can be wrong with a file, and what to do about each.

use super::excerpt::harmless;
use super::site::SiteFault;
use crate::limits;

/// What is wrong with a file. Shown, it is what is wrong; [`advice`](Self::advice) is what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// It does not exist, or we may not read it.
    #[error("{0}")]
    Unreadable(#[source] std::io::Error),
    /// It is longer than [`limits::FILE`].
    #[error("the file has more than {} bytes", limits::FILE)]
    FileTooLong,
    /// It is not text.
    #[error("this is not UTF-8 text")]
    NotText,
    /// It is not TOML.
    #[error("{message}")]
    Syntax {
        /// What the parser of TOML says.
        message: String,
    },
    /// An unknown key.
    #[error("{within} has no `{key}`")]
    UnknownKey {
        /// The key.
        key: String,
        /// Where it was found: `the file`, `a network`.
        within: &'static str,
        /// The known key that was probably meant.
        near: Option<&'static str>,
        /// The keys that are known there.
        known: &'static [&'static str],
    },
    /// `[network]` instead of `[[network]]`.
    #[error("`{key}` is a list, and this is one table")]
    SingleTable {
        /// The key.
        key: &'static str,
    },
    /// No network at all.
    #[error("there is no network")]
    NoNetwork,
    /// More than [`limits`] allows.
    #[error("`{key}` has {count} entries")]
    TooMany {
        /// Of what.
        key: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A network, a channel or a cluster without a name.
    #[error("this {what} has no name")]
    NoName {
        /// Which of them it is.
        what: &'static str,
    },
    /// A table without a key that it needs.
    #[error("this {what} has no `{key}`")]
    Missing {
        /// What the table is.
        what: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A network or a channel that the file does not have.
    #[error("there is no {what} called {name}")]
    UnknownName {
        /// Which of them it is.
        what: &'static str,
        /// The name, quoted.
        name: String,
        /// The name that was probably meant.
        near: Option<String>,
    },
    /// A channel that is called like a network it is not over.
    #[error(
        "this channel is called \"{name}\" like the network on line {line}, and is over another"
    )]
    NameOfNetwork {
        /// The name.
        name: String,
        /// The line of the network.
        line: usize,
    },
    /// A channel with a host that its network does not have.
    #[error("{host} is not on the network \"{network}\"")]
    NotOnNetwork {
        /// The host, quoted.
        host: String,
        /// The network.
        network: String,
    },
    /// A virtual channel of which some part has no gateway to the others.
    #[error(
        "nothing gets from \"{one}\" to \"{other}\": no host is on both, and none leads from one to the other"
    )]
    Apart {
        /// A channel of it.
        one: String,
        /// One that cannot be reached from there.
        other: String,
    },
    /// A host in two clusters.
    #[error("{host} is in the cluster \"{first}\" already")]
    InTwoClusters {
        /// The host, quoted.
        host: String,
        /// The first cluster that has it.
        first: String,
    },
    /// A value of the wrong type for its key.
    #[error("`{key}` is {expected}, and this is {found}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A name that is not valid.
    #[error("{name} cannot be the name of a {what}")]
    BadName {
        /// Of what.
        what: &'static str,
        /// The name, quoted.
        name: String,
    },
    /// Two networks, channels or clusters with one name.
    #[error("two {what} are called \"{name}\"; the first is on line {first}")]
    SameName {
        /// Two of what.
        what: &'static str,
        /// The name.
        name: String,
        /// The line of the first.
        first: usize,
    },
    /// An unknown word where one of a few is expected.
    #[error("{value} is no `{key}`")]
    UnknownValue {
        /// The key.
        key: &'static str,
        /// The value, quoted.
        value: String,
        /// The known value that was probably meant.
        near: Option<&'static str>,
        /// The values that are known.
        known: &'static [&'static str],
    },
    /// `hosts = []`, or `interfaces = []`.
    #[error("`{key}` is empty")]
    Empty {
        /// The key.
        key: &'static str,
        /// What holds without the key, if it may be left out.
        without: Option<&'static str>,
    },
    /// The same entry twice in a list.
    #[error("{value} is in `{key}` twice")]
    Repeated {
        /// The key.
        key: &'static str,
        /// The entry, quoted.
        value: String,
    },
    /// What cannot be the name of a host.
    #[error("{host} cannot be the name of a host")]
    BadHost {
        /// It, quoted.
        host: String,
    },
    /// What is neither the name of an interface nor a subnet.
    #[error("{interface} is neither the name of an interface nor a subnet")]
    BadInterface {
        /// It, quoted.
        interface: String,
        /// What to write instead.
        instead: String,
    },
    /// A number that is not a port.
    #[error("{port} is not a port")]
    BadPort {
        /// It, as written.
        port: String,
    },
    /// A number of connections that gateways cannot have with each other.
    #[error("two gateways cannot have {streams} connections with each other")]
    BadStreams {
        /// It, as written.
        streams: String,
    },
    /// What no cable carries.
    #[error("a cable cannot carry {rate} Mbit/s")]
    BadRate {
        /// It, as written.
        rate: String,
    },
    /// What cannot be the name of a provider.
    #[error("{provider} cannot be the name of a provider")]
    BadProvider {
        /// It, quoted.
        provider: String,
    },
    /// A key that belongs to the other driver.
    #[error("`{key}` is for networks with driver \"{of}\", and this one has \"{driver}\"")]
    OtherDriver {
        /// The key.
        key: &'static str,
        /// The driver it belongs to.
        of: &'static str,
        /// The driver of the network.
        driver: &'static str,
    },
    /// An `ofi` network that is not declared trusted.
    #[error("a network with driver \"ofi\" carries its data without encryption")]
    NotTrusted,
    /// What only a site's file can have wrong.
    #[error(transparent)]
    Site(#[from] SiteFault),
}

impl ErrorKind {
    /// What to do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::Unreadable(_) => "check the path, and that you may read the file".to_owned(),
            Self::FileTooLong => "list less: a network without `hosts` has all of them".to_owned(),
            Self::NotText => "save the file as UTF-8".to_owned(),
            Self::Syntax { .. } => "see https://toml.io for how TOML is written".to_owned(),
            Self::UnknownKey {
                near: Some(near), ..
            } => format!("did you mean `{near}`?"),
            Self::UnknownKey { known, .. } => match known {
                [only] => format!("it has only `{only}` today; remove this"),
                _ => format!(
                    "its keys are {}; remove this, or choose one",
                    list(known, '`')
                ),
            },
            Self::SingleTable { key } => {
                format!("write [[{key}]], with two brackets on each side")
            }
            Self::NoNetwork => {
                "add one; two lines are enough: [[network]], and under it name = \"site\""
                    .to_owned()
            }
            Self::TooMany { most, .. } => format!("at most {most} are allowed; leave some out"),
            Self::NoName { .. } => "add name = \"site\", or what you like to call it".to_owned(),
            Self::Missing { key, .. } => match *key {
                "network" => "add network = \"site\", the network that carries it",
                "channels" => "add channels = [\"one\", \"two\"], the channels that it joins",
                _ => "add hosts = [\"a\", \"b\"], the hosts that are in it",
            }
            .to_owned(),
            Self::UnknownName {
                near: Some(near), ..
            } => format!("did you mean \"{near}\"?"),
            Self::UnknownName { what, name, .. } => {
                format!("add [[{what}]] with name = {name}, or name one that is there")
            }
            Self::NameOfNetwork { .. } => "give this channel another name".to_owned(),
            Self::NotOnNetwork { .. } => {
                "add it to the hosts of that network, or remove it here".to_owned()
            }
            Self::Apart { .. } => {
                "put a host on both: it is the gateway; or leave one of them out".to_owned()
            }
            Self::InTwoClusters { .. } => "write it in one of them only".to_owned(),
            Self::WrongType { expected, .. } => match *expected {
                "a text" => "write it in quotes".to_owned(),
                "a list" => "write it in brackets, as in [\"a\", \"b\"]".to_owned(),
                "a number" => "write it without quotes and without a point".to_owned(),
                _ => "write its name in two brackets on a line, and its keys on the lines below"
                    .to_owned(),
            },
            Self::BadName { .. } => {
                format!("use 1 to {} of the characters a-z, 0-9 and -", limits::NAME)
            }
            Self::SameName { .. } => "give this one another name".to_owned(),
            Self::UnknownValue {
                near: Some(near), ..
            } => format!("did you mean \"{near}\"?"),
            Self::UnknownValue { known, .. } => format!("write {}", list(known, '"')),
            Self::Empty {
                key,
                without: Some(all),
            } => format!("write what you mean, or leave `{key}` out: then {all}"),
            Self::Empty { .. } => "write what you mean".to_owned(),
            Self::Repeated { .. } => "write it once".to_owned(),
            Self::BadHost { .. } => format!(
                "write it as in --hosts: 1 to {} characters, no blanks, commas or =, no dash in front",
                limits::HOST
            ),
            Self::BadInterface { instead, .. } => instead.clone(),
            Self::BadPort { .. } => {
                "write a whole number from 1 to 65535, or 0 for any that is free".to_owned()
            }
            Self::BadStreams { .. } => format!(
                "write a whole number from 1 to {}, or remove `streams` if the hosts are near each other",
                crate::limits::STREAMS
            ),
            Self::BadRate { .. } => format!(
                "write the megabits a second that it carries: a whole number from 1 to {}",
                crate::limits::RATE
            ),
            Self::BadProvider { .. } => format!(
                "write one that `fi_info -l` shows, as in \"tcp;ofi_rxm\": at most {} characters",
                limits::PROVIDER
            ),
            Self::OtherDriver { of, key, .. } => {
                format!("remove `{key}`, or write driver = \"{of}\"")
            }
            Self::NotTrusted => "if nobody else can read or write on this network, add \
                                 security = \"trusted\"; otherwise use driver = \"tcp\""
                .to_owned(),
            Self::Site(fault) => fault.advice(),
        }
    }
}

/// Text of a file for a sentence of ours: short, and nothing that a terminal acts on.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", shorten(text))
}

/// As [`quote`], without quotes.
pub(crate) fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED).map(harmless).collect();
    if text.chars().nth(QUOTED).is_some() {
        shown.push('…');
    }
    shown
}

/// `a`, `b` or `c`.
fn list(words: &[&str], quote: char) -> String {
    let mut text = String::new();
    for (i, word) in words.iter().enumerate() {
        if i > 0 {
            text.push_str(if i + 1 == words.len() { " or " } else { ", " });
        }
        text.extend([quote]);
        text.push_str(word);
        text.push(quote);
    }
    text
}

/// Characters of a value that are shown.
const QUOTED: usize = 40;
