//! What is wrong with a file, where, and what to write instead.

mod excerpt;
mod kind;
mod site;

use std::fmt;
use std::ops::Range;

use excerpt::Excerpt;
pub(crate) use excerpt::harmless;
pub use kind::ErrorKind;
pub(crate) use kind::{quote, shorten};
pub use site::SiteFault;

/// Why a file is not a job's file, or not a site's.
///
/// Shown, it names the file and the line, shows the line with a mark under what is wrong, and ends with what to do:
///
/// ```
/// let text = "[[network]]\nname = \"fast\"\ndriver = \"ofi\"\n";
/// let error = mizzen_config::JobFile::parse("mizzen.toml", text).unwrap_err();
/// assert_eq!(
///     format!("{error}\n"),
///     r#"mizzen.toml, line 3: a network with driver "ofi" carries its data without encryption
///   |
/// 3 | driver = "ofi"
///   |          ^^^^^
/// if nobody else can read or write on this network, add security = "trusted"; otherwise use driver = "tcp"
/// "#
/// );
/// ```
#[derive(Debug)]
pub struct Error {
    /// Boxed, because results carry it and most of them are good.
    inner: Box<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: String,
    place: Option<(Place, Excerpt)>,
    kind: ErrorKind,
}

/// Where something is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The character of the line, from 1.
    pub column: usize,
    /// The key it belongs to, if it is about one.
    pub key: Option<&'static str>,
}

impl Error {
    /// About the whole file.
    pub(crate) fn whole(file: &str, kind: ErrorKind) -> Self {
        Self::new(file, None, kind)
    }

    /// About the bytes `span` of the text.
    pub(crate) fn at(
        file: &str,
        text: &str,
        span: &Range<usize>,
        key: Option<&'static str>,
        kind: ErrorKind,
    ) -> Self {
        let excerpt = Excerpt::new(text, span);
        let place = Place {
            line: excerpt.line(),
            column: excerpt.column(),
            key,
        };
        Self::new(file, Some((place, excerpt)), kind)
    }

    /// The name of the file, as it was given.
    pub fn file(&self) -> &str {
        &self.inner.file
    }

    /// Where it is wrong; none if it is about the whole file.
    pub fn place(&self) -> Option<&Place> {
        self.inner.place.as_ref().map(|(place, _)| place)
    }

    /// What is wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.inner.kind
    }

    fn new(file: &str, place: Option<(Place, Excerpt)>, kind: ErrorKind) -> Self {
        let file = file.to_owned();
        let inner = Box::new(Inner { file, place, kind });
        Self { inner }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { file, place, kind } = &*self.inner;
        f.write_str(file)?;
        match place {
            Some((place, excerpt)) => writeln!(f, ", line {}: {kind}\n{excerpt}", place.line)?,
            None => writeln!(f, ": {kind}")?,
        }
        f.write_str(&kind.advice())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.inner.kind {
            ErrorKind::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}
