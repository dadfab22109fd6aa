//! Ways through clusters of clusters: over which network, and through which gateway, a host reaches another.
//!
//! A channel has *parts*: each is a network, or some hosts of one. A host that is on two parts is a gateway between them. [`Plan`] knows
//! all parts; a [`Table`] is what one host makes of it: for each part, what it costs to get there and through whom to begin. It has an
//! entry for each part and none for each host, so it does not grow with the processes of remote clusters.
//!
//! Gateways that cost the same share the load by flow. When one is lost, a new table is made without it, and only its flows move. While
//! tables differ for a moment, a way may turn back; what is under way counts its hops, and above [`MAX_HOPS`] it is dropped, so it
//! cannot go round for ever. With equal tables each hop is nearer to its end: there is no loop.
//!
//! ```
//! use mizzen_proto::membership::HostId;
//! use mizzen_proto::route::{Cost, Hosts, Part, Plan, Table};
//!
//! // Hosts 0 to 2 on one network, 2 to 5 on another: host 2 is the gateway.
//! let part = |hosts| Part { hosts: Hosts::from(hosts), cost: Cost::default() };
//! let plan = Plan::new(vec![part(0..3), part(2..6)]);
//! let table = Table::new(&plan, HostId(0), |_| false);
//! let hop = table.next(&plan, HostId(5), 7).expect("there is a way");
//! assert_eq!((hop.part, hop.to), (0, HostId(2)));
//! ```

mod hosts;
mod plan;
mod table;

pub use hosts::Hosts;
pub use plan::{Cost, FRAGMENT, MAX_HOPS, Part, Plan};
pub use table::{Entry, Hop, Table};
