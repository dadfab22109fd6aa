//! `[[network]]`.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::Source;
use crate::error::{quote, shorten};
use crate::{Driver, Error, ErrorKind, Hosts, Interface, Network, Security, limits};

impl Source<'_> {
    pub(super) fn network(
        &self,
        value: &Spanned<DeValue<'_>>,
        table: &DeTable<'_>,
    ) -> Result<Network, Error> {
        self.known_keys(table, "a network", NETWORK_KEYS)?;
        let name = self.name("network", value, table)?;
        let driver = self.driver(table)?;
        let hosts = match table.get("hosts") {
            Some(value) => Hosts::Only(self.hosts(value, Some("all hosts are on the network"))?),
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
        let streams = table.get("streams").map(|value| self.streams(value));
        let streams = streams.transpose()?;
        let rate = table.get("rate").map(|value| self.rate(value));
        let rate = rate.transpose()?;
        Ok(Network {
            name,
            driver,
            hosts,
            interfaces,
            security,
            streams,
            rate,
        })
    }

    fn driver(&self, table: &DeTable<'_>) -> Result<Driver, Error> {
        let driver = match table.get("driver") {
            Some(value) => self.choice(value, "driver", DRIVERS)?,
            None => "tcp",
        };
        let (foreign, of): (&[&'static str], _) = if driver == "tcp" {
            (&["provider"], "ofi")
        } else {
            (&["port", "streams", "rate"], "tcp")
        };
        for foreign in foreign {
            if let Some((key, _)) = table.get_key_value(*foreign) {
                let kind = ErrorKind::OtherDriver {
                    key: foreign,
                    of,
                    driver,
                };
                return Err(self.error(&key.span(), Some(foreign), kind));
            }
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
        self.number(value, "port", 0..=u16::MAX, |port| ErrorKind::BadPort {
            port,
        })
    }

    fn streams(&self, value: &Spanned<DeValue<'_>>) -> Result<u8, Error> {
        let bad = |streams| ErrorKind::BadStreams { streams };
        self.number(value, "streams", 1..=limits::STREAMS, bad)
    }

    fn rate(&self, value: &Spanned<DeValue<'_>>) -> Result<u64, Error> {
        self.number(value, "rate", 1..=limits::RATE, |rate| ErrorKind::BadRate {
            rate,
        })
    }

    /// A whole number in a range; `bad` says what is wrong with another, as it is written.
    fn number<T: TryFrom<u64> + PartialOrd>(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
        range: RangeInclusive<T>,
        bad: impl Fn(String) -> ErrorKind,
    ) -> Result<T, Error> {
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong_type(value, key, "a number"));
        };
        let read = u64::from_str_radix(number.as_str(), number.radix()).ok();
        let read = read.and_then(|read| T::try_from(read).ok());
        read.filter(|read| range.contains(read))
            .ok_or_else(|| self.at(value, key, bad(shorten(number.as_str()))))
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

    fn interfaces(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<Interface>, Error> {
        let mut interfaces = Vec::new();
        for entry in self.entries(
            value,
            "interfaces",
            limits::INTERFACES,
            Some("interfaces are chosen by what can be reached"),
        )? {
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
}

const NETWORK_KEYS: &[&str] = &[
    "name",
    "driver",
    "hosts",
    "interfaces",
    "security",
    "port",
    "provider",
    "streams",
    "rate",
];
const DRIVERS: &[&str] = &["tcp", "ofi"];
const SECURITIES: &[&str] = &["tls", "trusted"];
