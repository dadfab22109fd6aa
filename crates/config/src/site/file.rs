//! What a site's file says.

use std::net::SocketAddr;

/// A site's file that has been checked.
///
/// | key | meaning | without it |
/// | --- | --- | --- |
/// | `name` | of this site: 1 to 63 of `a-z`, `0-9` and, not at its ends, `-` | required |
/// | `gateway` | of this gateway, among those of the site; the same rule | required |
/// | `listen` | IP address and port at which other sites connect | dials outwards only |
/// | `inside` | IP address and port at which jobs of this site ask for others; only this site may reach it | `127.0.0.1:4434` |
/// | `proxy` | host and port of the HTTP proxy through which other sites are dialled | dials them itself |
/// | `revoked` | pins of keys that are not believed any more, of sites or of gateways | none |
///
/// These stand above the first `[[site]]`: in TOML, what follows it belongs to that site. Then one `[[site]]` for each other site:
///
/// | key | meaning | without it |
/// | --- | --- | --- |
/// | `name` | of that site, by the same rule; no two alike | required |
/// | `keys` | pins of its key: what `mizzen site show` prints there; two while it is being replaced | required |
/// | `reach` | hosts and ports of its gateways | they connect to us |
/// | `exports` | jobs that may be met with that site: names, or beginnings of names and a `*` | none |
///
/// ```
/// use mizzen_config::SiteFile;
///
/// let pin = format!("sha256:{}", "07".repeat(32));
/// let file = SiteFile::parse("site.toml", format!(r#"
///     name = "a"
///     gateway = "gw1"
///     listen = "0.0.0.0:4433"
///
///     [[site]]
///     name = "b"
///     keys = ["{pin}"]
///     reach = ["gw.b.example:4433"]
///     exports = ["render", "tiles-*"]
/// "#))?;
/// let b = file.site("b").expect("it is listed");
/// assert_eq!(b.keys, [pin]);
/// assert!(b.exports("tiles-7") && !b.exports("payroll"));
/// # Ok::<(), mizzen_config::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SiteFile {
    /// This site.
    pub name: String,
    /// This gateway, among those of the site.
    pub gateway: String,
    /// Where other sites connect. None: this gateway dials outwards only.
    pub listen: Option<SocketAddr>,
    /// Where jobs of this site ask for others.
    pub inside: SocketAddr,
    /// Host and port of the HTTP proxy through which other sites are dialled.
    pub proxy: Option<String>,
    /// Pins of keys that are not believed any more.
    pub revoked: Vec<String>,
    /// The other sites.
    pub sites: Vec<PeerSite>,
}

/// Another site.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerSite {
    /// What it is called. No other site of the file has this name.
    pub name: String,
    /// Pins of its key, at least one. No other site of the file has one of them.
    pub keys: Vec<String>,
    /// Host and port of each of its gateways. Empty: they connect to us.
    pub reach: Vec<String>,
    /// Names of jobs that may be met with it, or their beginnings and a `*`.
    pub exports: Vec<String>,
}

impl SiteFile {
    /// Another site, by its name.
    pub fn site(&self, name: &str) -> Option<&PeerSite> {
        self.sites.iter().find(|site| site.name == name)
    }
}

impl PeerSite {
    /// Whether a job may be met with that site.
    pub fn exports(&self, job: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => job.starts_with(beginning),
            None => job == pattern,
        };
        self.exports.iter().any(matches)
    }
}
