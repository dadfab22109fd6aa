//! Who is believed, and who is still welcome.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use super::error::{SiteError, SiteListError};
use super::name::{GatewayName, check_site_name};
use super::pin::Pin;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SitePeer {
    /// Its site.
    pub site: String,
    /// Which gateway of that site.
    pub gateway: String,
    /// By which keys it proved that.
    pub pins: Pins,
}

/// The keys of a gateway: its site's, which is believed, and its own, which that one certified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pins {
    /// The key of the site.
    pub site: Pin,
    /// The key of the gateway.
    pub gateway: Pin,
}

/// The sites that are believed, with their keys, and the keys that are not believed any more. Nobody, when it is new.
///
/// A site has two keys while it replaces one: the new is added before the site uses it, the old removed after.
///
/// ```
/// use mizzen_identity::{SiteKey, SiteList};
///
/// let (old, new) = (SiteKey::generate()?.pin(), SiteKey::generate()?.pin());
/// let mut list = SiteList::new();
/// list.believe("b", old)?;
/// list.believe("b", new)?;
/// list.revoke(old);
/// assert!(list.believe("c", new).is_err(), "a key is that of one site");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteList {
    sites: BTreeMap<String, BTreeSet<Pin>>,
    revoked: BTreeSet<Pin>,
}

impl SiteList {
    /// Believes nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Believes that whoever has this key is that site. Said twice, it is said once.
    ///
    /// # Errors
    ///
    /// [`SiteListError`] if the name is not valid, or the key is another site's.
    pub fn believe(&mut self, site: &str, pin: Pin) -> Result<(), SiteListError> {
        check_site_name(site)?;
        let has = |(other, pins): &(&String, &BTreeSet<Pin>)| *other != site && pins.contains(&pin);
        if let Some((first, _)) = self.sites.iter().find(has) {
            return Err(SiteListError::Taken {
                pin,
                first: first.clone(),
                second: site.to_owned(),
            });
        }
        self.sites.entry(site.to_owned()).or_default().insert(pin);
        Ok(())
    }

    /// Believes nobody with this key, be it that of a site or of a gateway, and whatever else is listed.
    pub fn revoke(&mut self, pin: Pin) {
        self.revoked.insert(pin);
    }

    /// Whether who has proved these keys is let in.
    pub(super) fn check(&self, peer: &GatewayName, pins: Pins) -> Result<(), SiteError> {
        let peer = || peer.clone();
        for pin in [pins.site, pins.gateway] {
            if self.revoked.contains(&pin) {
                return Err(SiteError::Revoked { peer: peer(), pin });
            }
        }
        let Some(listed) = self.sites.get(peer().site()) else {
            return Err(SiteError::NotListed { peer: peer() });
        };
        if !listed.contains(&pins.site) {
            let shown = pins.site;
            return Err(SiteError::OtherKey {
                peer: peer(),
                shown,
            });
        }
        Ok(())
    }
}

/// The list that holds now, shared by all connections of a gateway. Cloning shares it.
///
/// Whoever replaces it asks for each connection that is up whether its peer is still [`welcome`](Self::welcome).
#[derive(Debug, Clone, Default)]
pub struct Sites {
    /// Locked for as long as it takes to clone or swap a pointer.
    list: Arc<RwLock<Arc<SiteList>>>,
}

impl Sites {
    /// Begins with a list.
    pub fn new(list: SiteList) -> Self {
        Self {
            list: Arc::new(RwLock::new(Arc::new(list))),
        }
    }

    /// From now on this list holds: for handshakes that are not complete, and for [`welcome`](Self::welcome).
    pub fn replace(&self, list: SiteList) {
        // Nothing panics while it is locked.
        let mut held = self.list.write().unwrap_or_else(PoisonError::into_inner);
        *held = Arc::new(list);
    }

    /// The list that holds now.
    pub fn list(&self) -> Arc<SiteList> {
        Arc::clone(&self.list.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a peer whose handshake is complete would be let in now. Looks at the list only: a certificate that has expired since then
    /// ends no connection.
    ///
    /// # Errors
    ///
    /// [`SiteError`] if not: close the connection, and everything that goes over it.
    pub fn welcome(&self, peer: &SitePeer) -> Result<(), SiteError> {
        let name = GatewayName::new(&peer.site, &peer.gateway)?;
        self.list().check(&name, peer.pins)
    }
}
