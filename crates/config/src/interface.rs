//! Interfaces of a host: by name, or by the subnet that their addresses are in.

use std::fmt;
use std::net::IpAddr;

use crate::limits;

/// Which interface of a host a network may use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interface {
    /// The one with this name, such as `eth0`.
    Name(String),
    /// Any that has an address in this subnet.
    Subnet(Subnet),
}

/// A range of addresses, such as `10.1.0.0/16` or `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subnet {
    first: IpAddr,
    prefix: u8,
}

/// Why a text is no interface: what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoInterface(pub(crate) String);

impl Interface {
    pub(crate) fn parse(text: &str) -> Result<Self, NoInterface> {
        if text.contains('/') {
            return Subnet::parse(text).map(Self::Subnet);
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            let all = bits(address);
            return Err(NoInterface(format!(
                "write the subnet that has one address, \"{address}/{all}\", or a larger one"
            )));
        }
        // As the kernel has it: no blanks, no slash, no colon, and neither of the two names of folders.
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == ':';
        if text.is_empty() || text.contains(odd) || matches!(text, "." | "..") {
            return Err(NoInterface(
                "write a name such as \"eth0\" or a subnet such as \"10.1.0.0/16\"".to_owned(),
            ));
        }
        if text.len() > limits::INTERFACE {
            let most = limits::INTERFACE;
            return Err(NoInterface(format!(
                "names of interfaces have at most {most} bytes; write one that `ip link` shows"
            )));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Subnet(subnet) => subnet.fmt(f),
        }
    }
}

impl Subnet {
    /// Whether an address is in it. Addresses of the other family never are.
    ///
    /// ```
    /// use mizzen_config::{Interface, JobFile};
    ///
    /// let text = "[[network]]\nname = 'site'\ninterfaces = ['10.1.0.0/16']\n";
    /// let file = JobFile::parse("mizzen.toml", text)?;
    /// let Interface::Subnet(subnet) = file.networks()[0].interfaces[0] else { panic!() };
    /// assert!(subnet.contains("10.1.255.7".parse().unwrap()));
    /// assert!(!subnet.contains("10.2.0.1".parse().unwrap()));
    /// assert!(!subnet.contains("::1".parse().unwrap()));
    /// # Ok::<(), mizzen_config::Error>(())
    /// ```
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4() && first_of(address, self.prefix) == self.first
    }

    /// The lowest address in it.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// How many leading bits all its addresses share.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    fn parse(text: &str) -> Result<Self, NoInterface> {
        let example =
            || NoInterface("write a subnet as in \"10.1.0.0/16\" or \"fd00:1::/64\"".to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(example)?;
        let address: IpAddr = address.parse().map_err(|_| example())?;
        // No sign, no blank: `u8::from_str` would take `+8`.
        if prefix.is_empty() || !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(example());
        }
        let prefix: u8 = prefix.parse().unwrap_or(u8::MAX);
        if prefix > bits(address) {
            let most = bits(address);
            return Err(NoInterface(format!(
                "what follows the slash is at most {most} for such an address"
            )));
        }
        let first = first_of(address, prefix);
        if first != address {
            return Err(NoInterface(format!(
                "{address} is not the first address of that subnet; write \"{first}/{prefix}\""
            )));
        }
        Ok(Self { first, prefix })
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address with all bits after the prefix cleared.
fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let shift = 32 - u32::from(prefix.min(32));
            let mask = u32::MAX.checked_shl(shift).unwrap_or(0);
            IpAddr::V4((u32::from(v4) & mask).into())
        }
        IpAddr::V6(v6) => {
            let shift = 128 - u32::from(prefix.min(128));
            let mask = u128::MAX.checked_shl(shift).unwrap_or(0);
            IpAddr::V6((u128::from(v6) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_subnets_are_told_apart() {
        assert_eq!(
            Interface::parse("eth0"),
            Ok(Interface::Name("eth0".to_owned()))
        );
        for text in [
            "10.1.0.0/16",
            "0.0.0.0/0",
            "10.1.2.3/32",
            "fd00::/8",
            "::/0",
            "::1/128",
        ] {
            assert_eq!(Interface::parse(text).unwrap().to_string(), text);
            assert!(matches!(Interface::parse(text), Ok(Interface::Subnet(_))));
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_what_to_write() {
        for (text, advice) in [
            ("", "a name such as"),
            ("eth 0", "a name such as"),
            ("an-interface-too-long", "at most 15 bytes"),
            ("10.1.0.4", "\"10.1.0.4/32\""),
            ("::1", "\"::1/128\""),
            ("10.1.2.3/16", "write \"10.1.0.0/16\""),
            ("10.0.0.0/33", "at most 32"),
            ("fd00::/129", "at most 128"),
            ("10.0.0.0/999", "at most 32"),
            ("10.0.0.0/+8", "as in"),
            ("10.0.0.0/", "as in"),
            ("eth0/8", "as in"),
            ("/", "as in"),
        ] {
            let NoInterface(said) = Interface::parse(text).unwrap_err();
            assert!(said.contains(advice), "{text}: {said}");
        }
    }

    #[test]
    fn a_subnet_without_prefix_holds_its_whole_family() {
        let all = Subnet::parse("0.0.0.0/0").unwrap();
        assert!(all.contains("255.255.255.255".parse().unwrap()));
        assert!(!all.contains("::".parse().unwrap()));
    }
}
