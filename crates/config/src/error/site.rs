//! What can be wrong with a site's file only, and what to do about each.

use crate::limits;

/// What is wrong with a site's file. Shown, it is what is wrong; [`advice`](Self::advice) is what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SiteFault {
    /// The file does not say who this is.
    #[error("the file has no `{key}`")]
    Nameless {
        /// Which name is missing.
        key: &'static str,
    },
    /// A site without keys.
    #[error("this site has no `keys`")]
    NoKeys,
    /// What cannot be the name of a site or a gateway.
    #[error("{name} cannot be the name of a {what}")]
    BadName {
        /// Of what.
        what: &'static str,
        /// It, quoted.
        name: String,
    },
    /// What is not a pin.
    #[error("{pin} is not the pin of a key")]
    BadPin {
        /// It, quoted.
        pin: String,
    },
    /// Two sites with one key.
    #[error("this key is that of \"{first}\" already, on line {line}")]
    Taken {
        /// The site that has it.
        first: String,
        /// Its line.
        line: usize,
    },
    /// A site that is called like the one whose file it is.
    #[error("\"{name}\" is the name of this site itself")]
    Itself {
        /// The name.
        name: String,
    },
    /// A key of the whole file under a site.
    #[error("`{key}` stands under a [[site]], so it would be about that site only")]
    Misplaced {
        /// The key.
        key: &'static str,
    },
    /// Where nobody can listen.
    #[error("{address} is not an address to listen at")]
    BadListen {
        /// It, quoted.
        address: String,
    },
    /// Where nobody can be reached.
    #[error("{address} is not an address at which a gateway is reached")]
    BadReach {
        /// It, quoted.
        address: String,
    },
    /// Where no proxy can be.
    #[error("{address} is not the address of a proxy")]
    BadProxy {
        /// It, quoted.
        address: String,
    },
    /// What no job can be called.
    #[error("{pattern} matches no job")]
    BadExport {
        /// It, quoted.
        pattern: String,
    },
}

impl SiteFault {
    /// What to do about it.
    pub fn advice(&self) -> String {
        match self {
            Self::Nameless { key } => {
                format!("add {key} = \"…\" above the first [[site]], or make the file with `mizzen site init`")
            }
            Self::NoKeys => {
                "add keys = [\"sha256:…\"], with the pin that `mizzen site show` prints at that site"
                    .to_owned()
            }
            Self::BadName { .. } => format!(
                "use 1 to {} of the characters a-z, 0-9 and, not at its ends, -",
                limits::SITE_NAME
            ),
            Self::BadPin { .. } => {
                "write sha256: and 64 digits of 0-9 and a-f, as `mizzen site show` prints it"
                    .to_owned()
            }
            Self::Taken { .. } => {
                "whoever has a key can be its site: ask both for what `mizzen site show` prints there"
                    .to_owned()
            }
            Self::Itself { .. } => "list other sites only; remove this one".to_owned(),
            Self::Misplaced { key } => format!("move `{key}` above the first [[site]]"),
            Self::BadListen { .. } => {
                "write an IP address and a port, as in \"0.0.0.0:4433\" or \"[::]:4433\"".to_owned()
            }
            Self::BadReach { .. } => {
                "write a host and a port, as in \"gw.b.example:4433\", \"192.0.2.7:4433\" or \"[2001:db8::7]:4433\""
                    .to_owned()
            }
            Self::BadProxy { .. } => {
                "write its host and its port, as in \"proxy.a.example:3128\", without http://".to_owned()
            }
            Self::BadExport { .. } => format!(
                "write the name of a job, 1 to {} of a-z, 0-9 and -, or its beginning and a * at the end, as in \"tiles-*\"",
                limits::SITE_NAME
            ),
        }
    }
}
