//! What is met: the names of meetings, and of what is offered there.

use std::fmt;
use std::str::FromStr;

/// A job that is met with another site: `render@b` at site a, `render@a` at site b.
///
/// ```
/// use mizzen_site::Meeting;
///
/// let meeting: Meeting = "render@b".parse()?;
/// assert_eq!((meeting.job(), meeting.site()), ("render", "b"));
/// assert!("Render@b".parse::<Meeting>().is_err());
/// # Ok::<(), mizzen_site::BadName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Meeting {
    job: String,
    site: String,
}

impl Meeting {
    pub(crate) fn new(job: &str, site: &str) -> Result<Self, BadName> {
        let named = |name: &str| is_name(name).then(|| name.to_owned());
        match (named(job), named(site)) {
            (Some(job), Some(site)) => Ok(Self { job, site }),
            _ => Err(BadName),
        }
    }

    /// The job.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// The other site.
    pub fn site(&self) -> &str {
        &self.site
    }
}

impl FromStr for Meeting {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let (job, site) = text.split_once('@').ok_or(BadName)?;
        Self::new(job, site)
    }
}

impl fmt::Display for Meeting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.job, self.site)
    }
}

/// This is not a job and a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write JOB@SITE, both 1 to 63 of the characters a-z, 0-9 and, not at their ends, -")]
pub struct BadName;

/// As the site's file has the names of sites; those of jobs follow the same rule, so that no pattern is needed to write one.
pub(crate) fn is_name(name: &str) -> bool {
    let letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let inside = !name.starts_with('-') && !name.ends_with('-');
    (1..=63).contains(&name.len()) && inside && name.bytes().all(letter)
}

/// What something is offered as: a word, or an address as its host has it.
pub(crate) fn is_thing(thing: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b':' | b'-' | b'[' | b']');
    (1..=64).contains(&thing.len()) && thing.bytes().all(fits)
}
