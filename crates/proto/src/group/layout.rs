//! Who is near whom in a group.

use super::schedule::Member;

/// The members of a group by cluster and host, each list in their order. All members have the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    size: u32,
    /// For each cluster its hosts, for each host its members.
    clusters: Vec<Vec<Vec<u32>>>,
    is_in_order: bool,
}

impl Layout {
    /// That of members of which each is in a cluster and on a host, both by number: hosts of two clusters have two numbers.
    pub fn new(places: impl IntoIterator<Item = (u32, u32)>) -> Self {
        type Hosts = Vec<(u32, Vec<u32>)>;
        let mut clusters: Vec<(u32, Hosts)> = Vec::new();
        let mut size = 0;
        for (member, (cluster, host)) in (0..).zip(places) {
            let hosts = entry(&mut clusters, cluster);
            entry(hosts, host).push(member);
            size = member + 1;
        }
        let hosts = |hosts: Hosts| hosts.into_iter().map(|(_, of)| of).collect();
        let clusters: Vec<Vec<Vec<u32>>> = clusters.into_iter().map(|(_, of)| hosts(of)).collect();
        let is_in_order = clusters.iter().flatten().flatten().is_sorted();
        Self {
            size,
            clusters,
            is_in_order,
        }
    }

    /// That of members who are all on one host.
    #[must_use]
    pub fn on_one_host(size: u32) -> Self {
        Self::new((0..size).map(|_| (0, 0)))
    }

    /// How many members there are.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether those of each host, and of each cluster, follow each other in the order of the members: what is combined by host first is then combined in that
    /// order.
    #[must_use]
    pub fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    /// How many clusters there are.
    #[must_use]
    pub fn clusters(&self) -> u32 {
        self.clusters.len() as u32
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.clusters.iter().map(Vec::len).sum::<usize>() as u32
    }

    /// Those of a member's host, in order. The first leads it.
    #[must_use]
    pub fn host_of(&self, member: Member) -> &[u32] {
        let mut hosts = self.clusters.iter().flatten();
        let found = hosts.find(|host| host.contains(&member.0));
        found.map_or(&[], Vec::as_slice)
    }

    /// Those who lead the hosts of a member's cluster, in order. The first leads the cluster.
    #[must_use]
    pub fn leaders_near(&self, member: Member) -> Vec<u32> {
        let mut clusters = self.clusters.iter();
        let holds = |host: &Vec<u32>| host.contains(&member.0);
        let found = clusters.find(|hosts| hosts.iter().any(holds));
        leaders(found.map_or(&[], Vec::as_slice))
    }

    /// Those who lead the clusters, in order.
    #[must_use]
    pub fn cluster_leaders(&self) -> Vec<u32> {
        let first = |hosts: &Vec<Vec<u32>>| leaders(hosts).first().copied();
        self.clusters.iter().filter_map(first).collect()
    }

    /// Those of the first host that has several; none if no host has.
    #[must_use]
    pub fn first_host_of_several(&self) -> Vec<u32> {
        let mut hosts = self.clusters.iter().flatten();
        let found = hosts.find(|host| host.len() > 1);
        found.cloned().unwrap_or_default()
    }

    /// Those who lead the hosts of the first cluster that has several; none if no cluster has.
    #[must_use]
    pub fn first_leaders_of_several(&self) -> Vec<u32> {
        let mut clusters = self.clusters.iter();
        let found = clusters.find(|hosts| hosts.len() > 1);
        found.map(|hosts| leaders(hosts)).unwrap_or_default()
    }

    /// The most members that a host has, and the most hosts that a cluster has.
    #[must_use]
    pub fn widest(&self) -> (u32, u32) {
        let members = self.clusters.iter().flatten().map(Vec::len).max();
        let hosts = self.clusters.iter().map(Vec::len).max();
        (members.unwrap_or(0) as u32, hosts.unwrap_or(0) as u32)
    }

    /// The same, but `member` leads its host, and its cluster: where it alone has what all want, or all send it.
    #[must_use]
    pub fn led_by(&self, member: Member) -> Self {
        let mut layout = self.clone();
        let holds = |host: &Vec<u32>| host.contains(&member.0);
        let clusters = &mut layout.clusters;
        if let Some(at) = clusters.iter().position(|hosts| hosts.iter().any(holds)) {
            clusters[..=at].rotate_right(1);
            let hosts = &mut clusters[0];
            let at = hosts.iter().position(holds).unwrap_or(0);
            hosts[..=at].rotate_right(1);
            let at = hosts[0].iter().position(|of| *of == member.0).unwrap_or(0);
            hosts[0][..=at].rotate_right(1);
        }
        layout.is_in_order = layout.clusters.iter().flatten().flatten().is_sorted();
        layout
    }
}

fn leaders(hosts: &[Vec<u32>]) -> Vec<u32> {
    hosts
        .iter()
        .filter_map(|host| host.first().copied())
        .collect()
}

fn entry<T: Default>(list: &mut Vec<(u32, T)>, key: u32) -> &mut T {
    let at = list.iter().position(|(of, _)| *of == key);
    let at = at.unwrap_or_else(|| {
        list.push((key, T::default()));
        list.len() - 1
    });
    &mut list[at].1
}
