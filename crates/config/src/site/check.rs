//! Which key of a site's file may say what.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{PeerSite, SiteFile};
use crate::check::source::Source;
use crate::check::{parse, read};
use crate::error::quote;
use crate::{Error, ErrorKind, SiteFault, limits};

impl SiteFile {
    /// Parses and checks a file. `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// The first thing in the file that is wrong: see [`ErrorKind`].
    pub fn parse(name: &str, text: impl AsRef<[u8]>) -> Result<Self, Error> {
        parse(name, text.as_ref(), site_file)
    }

    /// Reads, parses and checks a file.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse), and [`ErrorKind::Unreadable`] if it cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let (name, text) = read(path.as_ref())?;
        Self::parse(&name, &text)
    }
}

/// A pin, and who has it.
struct Taken {
    pin: String,
    site: String,
    line: usize,
}

fn site_file(source: &Source<'_>, root: &DeTable<'_>) -> Result<SiteFile, Error> {
    source.known_keys(root, "a site's file", FILE_KEYS)?;
    let own = |key: &'static str, what: &'static str| match root.get(key) {
        Some(value) => source.site_name(value, key, what),
        None => Err(Error::whole(
            source.file,
            SiteFault::Nameless { key }.into(),
        )),
    };
    let name = own("name", "site")?;
    let gateway = own("gateway", "gateway")?;
    let address = |key| root.get(key).map(|value| source.address(value, key));
    let listen = address("listen").transpose()?;
    let inside = address("inside").unwrap_or(Ok(INSIDE))?;
    let proxy = root.get("proxy").map(|value| source.proxy(value));
    let proxy = proxy.transpose()?;
    let revoked = match root.get("revoked") {
        Some(list) => source.texts(list, "revoked", limits::REVOKED, is_pin)?,
        None => Vec::new(),
    };
    let (mut sites, mut names, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for (value, table) in source.tables(root, "site", limits::SITES)? {
        let site = source.site(value, table, &mut taken)?;
        let place = table.get("name").unwrap_or(value);
        if site.name == name {
            return Err(source.at(place, "name", SiteFault::Itself { name }.into()));
        }
        source.no_other("sites", &site.name, place, &names)?;
        names.push((site.name.clone(), source.line(place)));
        sites.push(site);
    }
    Ok(SiteFile {
        name,
        gateway,
        listen,
        inside,
        proxy,
        revoked,
        sites,
    })
}

impl Source<'_> {
    fn site(
        &self,
        value: &Spanned<DeValue<'_>>,
        table: &DeTable<'_>,
        taken: &mut Vec<Taken>,
    ) -> Result<PeerSite, Error> {
        for key in ["revoked", "listen", "inside", "proxy", "gateway"] {
            if let Some(misplaced) = table.get(key) {
                return Err(self.at(misplaced, key, SiteFault::Misplaced { key }.into()));
            }
        }
        self.known_keys(table, "a site", SITE_KEYS)?;
        let name = match table.get("name") {
            Some(name) => self.site_name(name, "name", "site")?,
            None => {
                let kind = ErrorKind::NoName { what: "site" };
                return Err(self.at(value, "name", kind));
            }
        };
        let Some(list) = table.get("keys") else {
            return Err(self.at(value, "keys", SiteFault::NoKeys.into()));
        };
        self.entries(list, "keys", limits::KEYS, None)?;
        let keys = self.texts(list, "keys", limits::KEYS, is_pin)?;
        for key in &keys {
            if let Some(first) = taken.iter().find(|known| known.pin == *key) {
                let (first, line) = (first.site.clone(), first.line);
                let fault = SiteFault::Taken { first, line };
                return Err(self.at(self.entry(list, key), "keys", fault.into()));
            }
        }
        taken.extend(keys.iter().map(|pin| Taken {
            pin: pin.clone(),
            site: name.clone(),
            line: self.line(list),
        }));
        let optional = |key, most, check: fn(&str) -> Result<(), SiteFault>| match table.get(key) {
            Some(list) => self.texts(list, key, most, check),
            None => Ok(Vec::new()),
        };
        Ok(PeerSite {
            name,
            keys,
            reach: optional("reach", limits::REACH, is_reach)?,
            exports: optional("exports", limits::EXPORTS, is_export)?,
        })
    }

    fn site_name(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
        what: &'static str,
    ) -> Result<String, Error> {
        let name = self.text(value, key)?;
        if !is_name(name) {
            let name = quote(name);
            return Err(self.at(value, key, SiteFault::BadName { what, name }.into()));
        }
        Ok(name.to_owned())
    }

    fn address(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
    ) -> Result<SocketAddr, Error> {
        let text = self.text(value, key)?;
        text.parse().map_err(|_| {
            let address = quote(text);
            self.at(value, key, SiteFault::BadListen { address }.into())
        })
    }

    fn proxy(&self, value: &Spanned<DeValue<'_>>) -> Result<String, Error> {
        let text = self.text(value, "proxy")?;
        is_reach(text).map_err(|_| {
            let address = quote(text);
            self.at(value, "proxy", SiteFault::BadProxy { address }.into())
        })?;
        Ok(text.to_owned())
    }

    /// A list of texts that are all good, and none twice.
    fn texts(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
        most: usize,
        check: fn(&str) -> Result<(), SiteFault>,
    ) -> Result<Vec<String>, Error> {
        let mut texts: Vec<String> = Vec::new();
        for entry in self.list(value, key, most)? {
            let text = self.text(entry, key)?;
            check(text).map_err(|fault| self.at(entry, key, fault.into()))?;
            if texts.iter().any(|known| known == text) {
                return Err(self.repeated(entry, key, text));
            }
            texts.push(text.to_owned());
        }
        Ok(texts)
    }
}

/// As certificates have them.
fn is_name(name: &str) -> bool {
    let inside = !name.starts_with('-') && !name.ends_with('-');
    (1..=limits::SITE_NAME).contains(&name.len()) && inside && name.bytes().all(is_letter)
}

fn is_letter(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')
}

fn is_pin(text: &str) -> Result<(), SiteFault> {
    let digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match text.strip_prefix("sha256:") {
        Some(digits) if digits.len() == 64 && digits.bytes().all(digit) => Ok(()),
        _ => Err(SiteFault::BadPin { pin: quote(text) }),
    }
}

fn is_reach(text: &str) -> Result<(), SiteFault> {
    let wrong = || SiteFault::BadReach {
        address: quote(text),
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port: u16 = port.parse().map_err(|_| wrong())?;
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let somewhere = match inner {
        Some(inner) => inner.parse().is_ok_and(|ip: Ipv6Addr| !ip.is_unspecified()),
        None => is_host(host),
    };
    match digits && port != 0 && somewhere {
        true => Ok(()),
        false => Err(wrong()),
    }
}

/// A name in the DNS, or an address of four numbers.
fn is_host(host: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let known = (1..=limits::HOST).contains(&host.len()) && !host.starts_with(['-', '.']);
    let nowhere = host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
    known && host.bytes().all(fits) && !nowhere
}

fn is_export(pattern: &str) -> Result<(), SiteFault> {
    let beginning = pattern.strip_suffix('*').unwrap_or(pattern);
    let fits = (1..=limits::SITE_NAME).contains(&pattern.len());
    match fits && beginning.bytes().all(is_letter) {
        true => Ok(()),
        false => Err(SiteFault::BadExport {
            pattern: quote(pattern),
        }),
    }
}

/// Nobody but this host, unless somebody says so.
const INSIDE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4434);
const FILE_KEYS: &[&str] = &[
    "name", "gateway", "listen", "inside", "proxy", "revoked", "site",
];
const SITE_KEYS: &[&str] = &["name", "keys", "reach", "exports"];
