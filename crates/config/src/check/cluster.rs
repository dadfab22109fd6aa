//! `[[cluster]]`.

use toml::de::DeTable;

use super::source::Source;
use crate::error::quote;
use crate::{Cluster, Error, ErrorKind, limits};

impl Source<'_> {
    pub(super) fn clusters(&self, root: &DeTable<'_>) -> Result<Vec<Cluster>, Error> {
        let mut clusters: Vec<Cluster> = Vec::new();
        let mut names = Vec::new();
        for (value, table) in self.tables(root, "cluster", limits::CLUSTERS)? {
            self.known_keys(table, "a cluster", CLUSTER_KEYS)?;
            let name = self.name("cluster", value, table)?;
            let place = table.get("name").unwrap_or(value);
            self.no_other("clusters", &name, place, &names)?;
            let list = self.needed("cluster", "hosts", value, table)?;
            let hosts = self.hosts(list, None)?;
            let both = clusters.iter().find_map(|known| {
                let host = known.hosts.intersection(&hosts).next()?;
                Some((known, host))
            });
            if let Some((known, host)) = both {
                let kind = ErrorKind::InTwoClusters {
                    host: quote(host),
                    first: known.name.clone(),
                };
                return Err(self.at(self.entry(list, host), "hosts", kind));
            }
            names.push((name.clone(), self.line(place)));
            clusters.push(Cluster { name, hosts });
        }
        Ok(clusters)
    }
}

const CLUSTER_KEYS: &[&str] = &["name", "hosts"];
