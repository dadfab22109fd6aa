//! The interfaces of this host, as the kernel lists them, and their addresses.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use super::read::read;

/// An interface, or one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) interface: String,
    pub(crate) up: bool,
    /// None: the entry says only that there is such an interface.
    pub(crate) address: Option<IpAddr>,
}

/// All interfaces and all their addresses, in the system's order.
pub(crate) fn entries() -> io::Result<Vec<Entry>> {
    let mut entries = named_in(Path::new(NET));
    for one in if_addrs::get_if_addrs()? {
        entries.push(Entry {
            // Whether it was switched on is known by its name above; what runs is on in any case.
            up: one.is_oper_up(),
            address: Some(one.ip()),
            interface: one.name,
        });
    }
    Ok(entries)
}

/// The interfaces in the kernel's list: if-addrs leaves out those without an address, and does not say which are up.
fn named_in(net: &Path) -> Vec<Entry> {
    let folders = std::fs::read_dir(net).into_iter().flatten().flatten();
    let mut found: Vec<(u32, Entry)> = folders
        .filter_map(|folder| {
            // Not everything there is an interface: the list of bonds has no number.
            let index = read(folder.path().join("ifindex"))?.parse().ok()?;
            let flags = read(folder.path().join("flags")).and_then(|text| {
                let digits = text.strip_prefix("0x")?;
                u32::from_str_radix(digits, 16).ok()
            });
            let entry = Entry {
                interface: folder.file_name().to_string_lossy().into_owned(),
                up: flags.is_some_and(|flags| flags & IFF_UP != 0),
                address: None,
            };
            Some((index, entry))
        })
        .collect();
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, entry)| entry).collect()
}

/// Where the kernel lists interfaces.
pub(crate) const NET: &str = "/sys/class/net";
/// The flag of an interface that was switched on, as `netdevice(7)` numbers them.
const IFF_UP: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_loopback_interface() {
        let entries = entries().unwrap();
        let lo: Vec<_> = entries.iter().filter(|one| one.interface == "lo").collect();
        assert!(lo.iter().any(|one| one.address.is_none()), "{lo:?}");
        assert!(lo.iter().any(|one| one.address.is_some()), "{lo:?}");
    }

    #[test]
    fn interfaces_without_an_address_are_listed_in_the_kernels_order() {
        let net = std::env::temp_dir().join(format!("mizzen-list-{}", std::process::id()));
        for (name, index, flags) in [("b", "1", "0x1003"), ("a", "2", "0x1002")] {
            std::fs::create_dir_all(net.join(name)).unwrap();
            std::fs::write(net.join(name).join("ifindex"), index).unwrap();
            std::fs::write(net.join(name).join("flags"), flags).unwrap();
        }
        std::fs::write(net.join("bonding_masters"), "").unwrap();
        let found = named_in(&net);
        std::fs::remove_dir_all(&net).unwrap();
        let entry = |interface: &str, up| Entry {
            interface: interface.to_owned(),
            up,
            address: None,
        };
        assert_eq!(found, [entry("b", true), entry("a", false)]);
        assert_eq!(named_in(&net), []);
    }
}
