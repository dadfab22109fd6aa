//! Names of sites and of their gateways, as values and as URIs.

use std::fmt;
use std::str::FromStr;

use crate::identity::{MAX_CLUSTER, check_cluster};

/// The longest URI of a gateway.
pub const MAX_GATEWAY_URI: usize = SCHEME.len() + MAX_CLUSTER + 1 + MAX_CLUSTER;

const SCHEME: &str = "mizzen-site://";

/// Which gateway of which site.
///
/// Its text is `mizzen-site://<site>/<gateway>`, and there is one text for each: lower case, nothing before or after. Both names
/// follow the rule for names of clusters. No name of a process begins so ([`Identity`](crate::Identity)).
///
/// ```
/// use mizzen_identity::GatewayName;
///
/// let name: GatewayName = "mizzen-site://a/gw1".parse()?;
/// assert_eq!((name.site(), name.gateway()), ("a", "gw1"));
/// assert!("mizzen-site://A/gw1".parse::<GatewayName>().is_err());
/// # Ok::<(), mizzen_identity::SiteNameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GatewayName {
    site: String,
    gateway: String,
}

impl GatewayName {
    /// Names a gateway of a site.
    ///
    /// # Errors
    ///
    /// [`SiteNameError::Site`] or `Gateway` unless both have 1 to [`MAX_CLUSTER`] characters of `a-z`, `0-9` and, between others, `-`.
    pub fn new(site: &str, gateway: &str) -> Result<Self, SiteNameError> {
        check_site_name(site)?;
        check_cluster(gateway).map_err(|_| SiteNameError::Gateway)?;
        Ok(Self {
            site: site.to_owned(),
            gateway: gateway.to_owned(),
        })
    }

    /// The site.
    pub fn site(&self) -> &str {
        &self.site
    }

    /// The gateway, among those of its site.
    pub fn gateway(&self) -> &str {
        &self.gateway
    }
}

/// Why a text or its parts are not the name of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SiteNameError {
    /// It has too many bytes to be one.
    #[error("the name of a gateway has at most {MAX_GATEWAY_URI} bytes")]
    TooLong,
    /// It does not begin with `mizzen-site://`.
    #[error("the name of a gateway begins with mizzen-site://, and this one does not")]
    Scheme,
    /// It does not have two parts.
    #[error("the name of a gateway is mizzen-site://site/gateway, and this is something else")]
    Fields,
    /// The name of the site is not valid. Choose another.
    #[error("a site's name has 1 to {MAX_CLUSTER} of a-z, 0-9 and, not at its ends, -")]
    Site,
    /// The name of the gateway is not valid. Choose another.
    #[error("a gateway's name has 1 to {MAX_CLUSTER} of a-z, 0-9 and, not at its ends, -")]
    Gateway,
}

impl FromStr for GatewayName {
    type Err = SiteNameError;

    fn from_str(uri: &str) -> Result<Self, SiteNameError> {
        if uri.len() > MAX_GATEWAY_URI {
            return Err(SiteNameError::TooLong);
        }
        let path = uri.strip_prefix(SCHEME).ok_or(SiteNameError::Scheme)?;
        let (site, gateway) = path.split_once('/').ok_or(SiteNameError::Fields)?;
        if gateway.contains('/') {
            return Err(SiteNameError::Fields);
        }
        Self::new(site, gateway)
    }
}

impl fmt::Display for GatewayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.site, self.gateway)
    }
}

impl fmt::Debug for GatewayName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GatewayName({self})")
    }
}

/// Checks the name of a site: the same rule as for clusters.
///
/// # Errors
///
/// [`SiteNameError::Site`].
pub fn check_site_name(name: &str) -> Result<(), SiteNameError> {
    check_cluster(name).map_err(|_| SiteNameError::Site)
}
