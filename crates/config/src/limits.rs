//! How much a file may hold. Checked before anything is kept.

/// Bytes of a file. 64 networks that each list some hundred hosts take a tenth of it.
pub const FILE: usize = 1 << 20;

/// Networks of a file. A host with eight adapters, in eight clusters.
pub const NETWORKS: usize = 64;

/// Channels of a file, and virtual channels.
pub const CHANNELS: usize = 256;

/// Clusters of a file.
pub const CLUSTERS: usize = 1024;

/// Hosts that a network, a channel or a cluster lists: as many as a job has processes.
pub const HOSTS: usize = 65_536;

/// Interfaces and subnets that a network lists.
pub const INTERFACES: usize = 64;

/// Connections that two gateways have over a network: enough for 10 Gbit/s at 50 ms, with the memory that Linux gives to one.
pub const STREAMS: u8 = 16;

/// What a cable carries, in Mbit/s.
pub const RATE: u64 = 1_000_000;

/// Bytes of the name of a network, a channel or a cluster.
pub const NAME: usize = 32;

/// Bytes of a host's name, as in the DNS.
pub const HOST: usize = 255;

/// Bytes of an interface's name: one less than Linux's `IFNAMSIZ`.
pub const INTERFACE: usize = 15;

/// Bytes of the name of a libfabric provider, with its layers (`verbs;ofi_rxm`).
pub const PROVIDER: usize = 64;

/// Bytes of the name of a site or a gateway: a DNS label, as certificates have it.
pub const SITE_NAME: usize = 63;

/// Other sites that a site's file lists. People make these entries, and talk to each other for each.
pub const SITES: usize = 1024;

/// Keys of a site: one, two while it is being replaced, and old ones that nobody removed.
pub const KEYS: usize = 16;

/// Keys that are revoked.
pub const REVOKED: usize = 4096;

/// Addresses at which a site is reached.
pub const REACH: usize = 16;

/// Jobs, or patterns of them, that may be met with a site.
pub const EXPORTS: usize = 256;
