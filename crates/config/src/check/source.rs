//! The file that errors are about, and what keys of all tables have in common.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{quote, shorten};
use crate::{Error, ErrorKind, limits, near};

/// The file that errors are about.
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// The name of something, which must have one.
    pub(crate) fn name(
        &self,
        what: &'static str,
        value: &Spanned<DeValue<'_>>,
        table: &DeTable<'_>,
    ) -> Result<String, Error> {
        let Some(value) = table.get("name") else {
            return Err(self.at(value, "name", ErrorKind::NoName { what }));
        };
        let name = self.text(value, "name")?;
        let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if !(1..=limits::NAME).contains(&name.len()) || !name.bytes().all(fits) {
            let name = quote(name);
            return Err(self.at(value, "name", ErrorKind::BadName { what, name }));
        }
        Ok(name.to_owned())
    }

    /// The tables of a list such as `[[network]]`, each with its place.
    pub(crate) fn tables<'v, 'i>(
        &self,
        root: &'v DeTable<'i>,
        key: &'static str,
        most: usize,
    ) -> Result<Vec<(&'v Spanned<DeValue<'i>>, &'v DeTable<'i>)>, Error> {
        let Some(value) = root.get(key) else {
            return Ok(Vec::new());
        };
        if value.get_ref().is_table() {
            return Err(self.at(value, key, ErrorKind::SingleTable { key }));
        }
        let list = self.list(value, key, most)?;
        let table = |value: &'v Spanned<DeValue<'i>>| match value.get_ref().as_table() {
            Some(table) => Ok((value, table)),
            None => Err(self.wrong_type(value, key, "a table")),
        };
        list.iter().map(table).collect()
    }

    /// Names of hosts.
    pub(crate) fn hosts(
        &self,
        value: &Spanned<DeValue<'_>>,
        without: Option<&'static str>,
    ) -> Result<BTreeSet<String>, Error> {
        let mut hosts = BTreeSet::new();
        for entry in self.entries(value, "hosts", limits::HOSTS, without)? {
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

    /// The line of something, from 1.
    pub(crate) fn line(&self, value: &Spanned<DeValue<'_>>) -> usize {
        let before = &self.text[..value.span().start.min(self.text.len())];
        before.matches('\n').count() + 1
    }

    /// Nothing before may be called so, of what is called `what`.
    pub(crate) fn no_other(
        &self,
        what: &'static str,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        before: &[(String, usize)],
    ) -> Result<(), Error> {
        match before.iter().find(|known| known.0 == name) {
            None => Ok(()),
            Some((_, first)) => {
                let (name, first) = (name.to_owned(), *first);
                Err(self.at(value, "name", ErrorKind::SameName { what, name, first }))
            }
        }
    }

    pub(crate) fn known_keys(
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

    /// The list behind a key, which must not be empty; `without` is what holds if the key is left out, if it may be.
    pub(crate) fn entries<'v, 'i>(
        &self,
        value: &'v Spanned<DeValue<'i>>,
        key: &'static str,
        most: usize,
        without: Option<&'static str>,
    ) -> Result<&'v DeArray<'i>, Error> {
        let list = self.list(value, key, most)?;
        if list.is_empty() {
            return Err(self.at(value, key, ErrorKind::Empty { key, without }));
        }
        Ok(list)
    }

    pub(crate) fn list<'v, 'i>(
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

    pub(crate) fn text<'v>(
        &self,
        value: &'v Spanned<DeValue<'_>>,
        key: &'static str,
    ) -> Result<&'v str, Error> {
        let text = value.get_ref().as_str();
        text.ok_or_else(|| self.wrong_type(value, key, "a text"))
    }

    /// One of a few words.
    pub(crate) fn choice(
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

    pub(crate) fn wrong_type(
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

    pub(crate) fn repeated(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
        text: &str,
    ) -> Error {
        let value_text = quote(text);
        let kind = ErrorKind::Repeated {
            key,
            value: value_text,
        };
        self.at(value, key, kind)
    }

    pub(crate) fn at(
        &self,
        value: &Spanned<DeValue<'_>>,
        key: &'static str,
        kind: ErrorKind,
    ) -> Error {
        self.error(&value.span(), Some(key), kind)
    }

    pub(crate) fn error(
        &self,
        span: &Range<usize>,
        key: Option<&'static str>,
        kind: ErrorKind,
    ) -> Error {
        Error::at(self.file, self.text, span, key, kind)
    }
}
