//! The job's file, `mizzen.toml`: parsed, checked, explained.
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
//! One `[[network]]` for each network, at least one.
//!
//! | key | meaning | without it |
//! | --- | --- | --- |
//! | `name` | what the network is called: 1 to 32 of `a-z`, `0-9` and `-`; no two alike | required |
//! | `driver` | `"tcp"` or `"ofi"` (libfabric) | `"tcp"` |
//! | `hosts` | the hosts that are on it, as `--hosts` names them | all |
//! | `interfaces` | names of interfaces or subnets, in order of preference | what can be reached |
//! | `security` | `"tls"`, or `"trusted"`: nobody else can read or write on this network | `"tls"` |
//! | `port` | where processes listen, `"tcp"` only | a free one |
//! | `provider` | the libfabric provider, `"ofi"` only | libfabric's choice |
//!
//! A network with the driver `"ofi"` does not encrypt, so it must be declared `security = "trusted"`: the author of the file
//! decides that, not a default.
//!
//! Why this is a separate crate: the TOML parser stays out of the library that programs link, and the file, which may come
//! from somebody else, is read without unsafe code.
//!
//! | module | subject |
//! | --- | --- |
//! | `check` | from text to networks: which key may say what |
//! | `network`, `interface` | what comes out |
//! | `error` | what is wrong, where, and what to write instead |
//! | `near` | which known word was meant |
//! | [`limits`] | how much a file may hold |

#![forbid(unsafe_code)]

mod check;
mod error;
mod interface;
pub mod limits;
mod near;
mod network;

use std::io::Read;
use std::path::Path;

pub use error::{Error, ErrorKind, Place};
pub use interface::{Interface, Subnet};
pub use network::{Driver, Hosts, Network, Security};

/// A job's file that has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    networks: Vec<Network>,
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
        let networks = check::networks(name, text.as_ref())?;
        Ok(Self { networks })
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
        let path = path.as_ref();
        let name = path.to_string_lossy();
        // One byte more than is allowed shows that there is too much, whatever the file says about its size.
        let mut text = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(limits::FILE as u64 + 1).read_to_end(&mut text))
            .map_err(|error| Error::whole(&name, ErrorKind::Unreadable(error)))?;
        Self::parse(&name, &text)
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
}
