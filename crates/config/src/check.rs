//! From text to networks: which key may say what.
//!
//! The parser of TOML says what is where; this says what it means. Keys are looked at in the order of the file, so
//! that the first thing wrong is the first that a reader of the file comes to.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{harmless, quote, shorten};
use crate::{Driver, Error, ErrorKind, Hosts, Interface, Network, Security, limits, near};

/// The networks of a file.
pub(crate) fn networks(file: &str, bytes: &[u8]) -> Result<Vec<Network>, Error> {
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
    source.file(root.get_ref())
}

/// The file that errors are about.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn file(&self, root: &DeTable<'_>) -> Result<Vec<Network>, Error> {
        self.known_keys(root, "the file", FILE_KEYS)?;
        let Some(value) = root.get("network") else {
            return Err(Error::whole(self.file, ErrorKind::NoNetwork));
        };
        if value.get_ref().is_table() {
            return Err(self.at(value, "network", ErrorKind::SingleNetwork));
        }
        let list = self.list(value, "network", limits::NETWORKS)?;
        if list.is_empty() {
            return Err(self.at(value, "network", ErrorKind::NoNetwork));
        }
        let mut networks: Vec<Network> = Vec::new();
        let mut lines = Vec::new();
        for value in list {
            let Some(table) = value.get_ref().as_table() else {
                return Err(self.wrong_type(value, "network", "a table"));
            };
            let network = self.network(value, table)?;
            let name = table.get("name").unwrap_or(value);
            if let Some(i) = networks.iter().position(|known| known.name == network.name) {
                let kind = ErrorKind::SameName {
                    name: network.name,
                    first: lines[i],
                };
                return Err(self.at(name, "name", kind));
            }
            lines.push(
                self.text[..name.span().start.min(self.text.len())]
                    .matches('\n')
                    .count()
                    + 1,
            );
            networks.push(network);
        }
        Ok(networks)
    }

    fn network(&self, value: &Spanned<DeValue<'_>>, table: &DeTable<'_>) -> Result<Network, Error> {
        self.known_keys(table, "a network", NETWORK_KEYS)?;
        let Some(name) = table.get("name") else {
            return Err(self.at(value, "name", ErrorKind::NoName));
        };
        let name = self.name(name)?;
        let driver = self.driver(table)?;
        let hosts = match table.get("hosts") {
            Some(value) => Hosts::Only(self.hosts(value)?),
            None => Hosts::All,
        };
        let interfaces = match table.get("interfaces") {
            Some(value) => self.interfaces(value)?,
            None => Vec::new(),
        };
        let security = match table.get("security") {
            Some(value) => match self.choice(value, "security", SECURITIES)? {
                "trusted" => Security::Trusted,
                _ => Security::Tls,
            },
            None => Security::Tls,
        };
        if matches!(driver, Driver::Ofi { .. }) && security != Security::Trusted {
            let place = table.get("security").or(table.get("driver"));
            return Err(self.at(place.unwrap_or(value), "security", ErrorKind::NotTrusted));
        }
        Ok(Network {
            name,
            driver,
            hosts,
            interfaces,
            security,
        })
    }

    fn name(&self, value: &Spanned<DeValue<'_>>) -> Result<String, Error> {
        let name = self.text(value, "name")?;
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if !(1..=limits::NAME).contains(&name.len()) || !name.bytes().all(fits) {
            let name = quote(name);
            return Err(self.at(value, "name", ErrorKind::BadName { name }));
        }
        Ok(name.to_owned())
    }

    fn driver(&self, table: &DeTable<'_>) -> Result<Driver, Error> {
        let driver = match table.get("driver") {
            Some(value) => self.choice(value, "driver", DRIVERS)?,
            None => "tcp",
        };
        let (foreign, of) = if driver == "tcp" {
            ("provider", "ofi")
        } else {
            ("port", "tcp")
        };
        if let Some((key, _)) = table.get_key_value(foreign) {
            let kind = ErrorKind::OtherDriver {
                key: foreign,
                of,
                driver,
            };
            return Err(self.error(&key.span(), Some(foreign), kind));
        }
        if driver == "tcp" {
            let port = table.get("port").map(|value| self.port(value));
            let port = port.transpose()?.unwrap_or(0);
            Ok(Driver::Tcp { port })
        } else {
            let provider = table.get("provider").map(|value| self.provider(value));
            let provider = provider.transpose()?;
            Ok(Driver::Ofi { provider })
        }
    }

    fn port(&self, value: &Spanned<DeValue<'_>>) -> Result<u16, Error> {
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong_type(value, "port", "a number"));
        };
        u16::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
            let port = shorten(number.as_str());
            self.at(value, "port", ErrorKind::BadPort { port })
        })
    }

    fn provider(&self, value: &Spanned<DeValue<'_>>) -> Result<String, Error> {
        let provider = self.text(value, "provider")?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_;-^".contains(&byte);
        if !(1..=limits::PROVIDER).contains(&provider.len()) || !provider.bytes().all(fits) {
            let provider = quote(provider);
            return Err(self.at(value, "provider", ErrorKind::BadProvider { provider }));
        }
        Ok(provider.to_owned())
    }

    fn hosts(&self, value: &Spanned<DeValue<'_>>) -> Result<BTreeSet<String>, Error> {
        let mut hosts = BTreeSet::new();
        for entry in self.entries(value, "hosts", limits::HOSTS)? {
            let host = self.text(entry, "hosts")?;
            let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ',' | '=');
            let fits = (1..=limits::HOST).contains(&host.len());
            if !fits || host.starts_with('-') || host.contains(odd) {
                let host = quote(host);
                return Err(self.at(entry, "hosts", ErrorKind::BadHost { host }));
            }
            if !hosts.insert(host.to_owned()) {
                return Err(self.repeated(entry, "hosts", host));
            }
        }
        Ok(hosts)
    }

    fn interfaces(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Interface>, Error> {
        let mut interfaces = Vec::new();
        for entry in self.entries(value, "interfaces", limits::INTERFACES)? {
            let text = self.text(entry, "interfaces")?;
            let interface = Interface::parse(text).map_err(|no| {
                let interface = quote(text);
                let instead = no.0;
                self.at(
                    entry,
                    "interfaces",
                    ErrorKind::BadInterface { interface, instead },
                )
            })?;
            if interfaces.contains(&interface) {
                return Err(self.repeated(entry, "interfaces", text));
            }
            interfaces.push(interface);
        }
        Ok(interfaces)
    }

    fn known_keys(
        &self,
        table: &DeTable<'_>,
        within: &'static str,
        known: &'static [&'static str],
    ) -> Result<(), Error> {
        let unknown = table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else {
            return Ok(());
        };
        let kind = ErrorKind::UnknownKey {
            key: shorten(key.get_ref()),
            within,
            near: near::nearest(key.get_ref(), known),
            known,
        };
        Err(self.error(&key.span(), None, kind))
    }

    /// The list behind a key, which must not be empty.
    fn entries<'v, 'i>(
        &self,
        value: &'v Spanned<DeValue<'i>>,
        key: &'static str,
        most: usize,
    ) -> Result<&'v DeArray<'i>, Error> {
        let list = self.list(value, key, most)?;
        if list.is_empty() {
            return Err(self.at(value, key, ErrorKind::Empty { key }));
        }
        Ok(list)
    }

    fn list<'v, 'i>(
        &self,
        value: &'v Spanned<DeValue<'i>>,
        key: &'static str,
        most: usize,
    ) -> Result<&'v DeArray<'i>, Error> {
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.wrong_type(value, key, "a list"));
        };
        let count = list.len();
        if count > most {
            return Err(self.at(value, key, ErrorKind::TooMany { key, count, most }));
        }
        Ok(list)
    }

    fn text<'v>(
        &self,
        value: &'v Spanned<DeValue<'_>>,
        key: &'static str,
    ) -> Result<&'v str, Error> {
        let text = value.get_ref().as_str();
        text.ok_or_else(|| self.wrong_type(value, key, "a text"))
    }

    /// One of a few words.
    fn choice(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
        known: &'static [&'static str],
    ) -> Result<&'static str, Error> {
        let text = self.text(value, key)?;
        let found = known.iter().find(|known| **known == text);
        found.copied().ok_or_else(|| {
            let kind = ErrorKind::UnknownValue {
                key,
                value: quote(text),
                near: near::nearest(text, known),
                known,
            };
            self.at(value, key, kind)
        })
    }

    fn wrong_type(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
        expected: &'static str,
    ) -> Error {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let kind = ErrorKind::WrongType {
            key,
            expected,
            found,
        };
        self.at(value, key, kind)
    }

    fn repeated(&self, value: &Spanned<DeValue<'_>>, key: &'static str, text: &str) -> Error {
        let value_text = quote(text);
        let kind = ErrorKind::Repeated {
            key,
            value: value_text,
        };
        self.at(value, key, kind)
    }

    fn at(&self, value: &Spanned<DeValue<'_>>, key: &'static str, kind: ErrorKind) -> Error {
        self.error(&value.span(), Some(key), kind)
    }

    fn error(&self, span: &Range<usize>, key: Option<&'static str>, kind: ErrorKind) -> Error {
        Error::at(self.file, self.text, span, key, kind)
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

const FILE_KEYS: &[&str] = &["network"];
const NETWORK_KEYS: &[&str] = &[
    "name",
    "driver",
    "hosts",
    "interfaces",
    "security",
    "port",
    "provider",
];
const DRIVERS: &[&str] = &["tcp", "ofi"];
const SECURITIES: &[&str] = &["tls", "trusted"];

/// Characters of what the parser says.
const MESSAGE: usize = 200;
