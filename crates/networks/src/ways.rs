//! Which hosts share which networks: what everybody in a job with gateways knows.

use mizzen_proto::boot::Span;
use mizzen_proto::membership::HostId;
use mizzen_proto::route::{Cost, Part, Plan, Table};

/// What stands in a process's locator for links through gateways. No network has this name.
pub const RELAYED: &str = "@";

/// The parts of a channel, and the network of each.
#[derive(Debug, Clone)]
pub struct Ways {
    plan: Plan,
    networks: Vec<String>,
    is_trusted: bool,
}

impl Ways {
    /// As the job's file says.
    ///
    /// ```
    /// use mizzen_networks::Ways;
    /// use mizzen_proto::boot::Span;
    ///
    /// let span = |network: &str, hosts: &[(u32, u32)]| Span {
    ///     network: network.into(), hosts: hosts.to_vec(), trusted: false,
    /// };
    /// let ways = Ways::new(&[span("sci", &[(0, 3)]), span("bip", &[(2, 5)])]);
    /// assert_eq!(ways.networks(), ["sci", "bip"]);
    /// ```
    #[must_use]
    pub fn new(spans: &[Span]) -> Self {
        let ranges = |span: &Span| span.hosts.iter().map(|&(first, end)| first..end).collect();
        let parts = spans.iter().map(|span| Part {
            hosts: ranges(span),
            cost: Cost::default(),
        });
        Self {
            plan: Plan::new(parts.collect()),
            networks: spans.iter().map(|span| span.network.clone()).collect(),
            is_trusted: spans.iter().all(|span| span.trusted),
        }
    }

    /// The network of each part.
    #[must_use]
    pub fn networks(&self) -> &[String] {
        &self.networks
    }

    /// Whether all networks are trusted: then what goes through gateways is not sealed from end to end either.
    #[must_use]
    pub fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Whether two hosts are on one network.
    fn share(&self, one: HostId, other: HostId) -> bool {
        let mut parts = self.plan.parts_of(one);
        parts.any(|part| self.plan.parts()[part].hosts.contains(other))
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The ways from a host, through gateways that are known; those of its own networks must be linked, too.
    pub(crate) fn table(
        &self,
        of: HostId,
        is_known: impl Fn(HostId) -> bool,
        is_linked: impl Fn(HostId) -> bool,
    ) -> Table {
        let leads_on = |host| is_known(host) && (!self.share(of, host) || is_linked(host));
        Table::new(&self.plan, of, |host| !leads_on(host))
    }
}
