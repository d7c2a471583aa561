//! Relation of an internet address to this machine. An address that can be bound, which sends nothing, is local.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use serde::{Deserialize, Serialize};

use crate::rights::Reach;

/// Addresses of the credential services of AWS, Google, Azure, Alibaba, Oracle, Tencent and Scaleway.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 0, 23)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 42, 42)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
];

/// Error number of "Address family not supported": the kernel has no IPv6. [`io::ErrorKind`] has no kind for it. All
/// supported architectures use this number (`asm-generic/errno.h`).
const EAFNOSUPPORT: i32 = 97;

/// The relation of an address to this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Place {
    /// An address of this machine.
    Host,
    /// A link-local address, unicast or multicast.
    LinkLocal,
    /// Address of a service that gives credentials to programs in a cloud.
    Metadata,
    /// Address in a private network (RFC 1918, RFC 4193, RFC 6598), as of an office, of containers, of a VPN.
    Lan,
    /// Any other address.
    Elsewhere,
}

impl Place {
    /// Returns the relation of an address to this machine. For a link-local address, its interface (scope) counts.
    pub fn of(address: SocketAddr) -> Self {
        match Self::of_any_scope(address.ip()) {
            Self::LinkLocal if is_own_link_local(address) => Self::Host,
            place => place,
        }
    }

    fn of_any_scope(address: IpAddr) -> Self {
        Self::by_form(address).unwrap_or_else(|| {
            if is_local(address) {
                Self::Host
            } else if is_private(address) {
                Self::Lan
            } else {
                Self::Elsewhere
            }
        })
    }

    /// Returns the relation of an address if it is the same on every machine; `None` if it depends on the interfaces.
    fn by_form(address: IpAddr) -> Option<Self> {
        if METADATA.contains(&address) {
            return Some(Self::Metadata);
        }
        match address {
            IpAddr::V4(v4) => match v4.octets() {
                // "This host on this network" (RFC 1122): the kernel takes 0.0.0.0 for loopback.
                [0 | 127, ..] => Some(Self::Host),
                [169, 254, ..] | [224..=239, ..] | [255, 255, 255, 255] => Some(Self::LinkLocal),
                _ => None,
            },
            IpAddr::V6(Ipv6Addr::UNSPECIFIED | Ipv6Addr::LOCALHOST) => Some(Self::Host),
            IpAddr::V6(v6) => match embedded(v6) {
                Some(v4) => Some(Self::of(SocketAddr::new(v4.into(), 0))),
                None if v6.is_unicast_link_local() || v6.is_multicast() => Some(Self::LinkLocal),
                None => None,
            },
        }
    }

    /// True if `reach` includes addresses of this kind.
    pub const fn is_within(self, reach: Reach) -> bool {
        match self {
            Self::Host => reach.host,
            Self::LinkLocal => reach.link_local,
            Self::Metadata => reach.metadata,
            Self::Lan => reach.lan,
            Self::Elsewhere => true,
        }
    }
}

/// True if the internet does not route the address: 10/8, 172.16/12, 192.168/16, 100.64/10, `fc00::/7`, `fec0::/10`.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || matches!(v4.octets(), [100, 64..=127, ..]),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.segments()[0] & 0xffc0 == 0xfec0,
    }
}

/// Returns the IPv4 address in an IPv4-mapped IPv6 address, and any other address unchanged.
pub fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Port of DNS resolvers.
pub const DOMAIN: u16 = 53;

/// True if the address is one of the resolvers, with the port for DNS.
pub fn is_resolver(address: SocketAddr, resolvers: &[IpAddr]) -> bool {
    address.port() == DOMAIN && resolvers.contains(&plain(address.ip()))
}

/// Returns the nameservers in the text of resolv.conf(5), or this machine if it has none, as the C library does.
pub fn resolvers(text: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let address = line.strip_prefix("nameserver")?.trim();
        address.split(['%', ' ', '\t']).next()?.parse().ok()
    };
    let found: Vec<IpAddr> = text.lines().filter_map(address).collect();
    if found.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { found }
}

/// Returns the IPv4 address that an IPv6 address embeds: mapped (`::ffff:0:0/96`), compatible (`::/96`), translated
/// (`64:ff9b::/96`, `64:ff9b:1::/48`) or 6to4 (`2002::/16`).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        _ => None,
    }
}

/// True if this process can bind the address. There is no list of local addresses, since interfaces change and whole
/// networks can be local. With `ip_nonlocal_bind`, every address counts as local.
pub fn is_local(address: IpAddr) -> bool {
    let strange = |error: &io::Error| {
        error.kind() != io::ErrorKind::AddrNotAvailable && error.raw_os_error() != Some(EAFNOSUPPORT)
    };
    UdpSocket::bind(SocketAddr::new(address, 0)).as_ref().err().is_none_or(strange)
}

/// True if the address is link-local, unicast and this machine's own. (Any machine can bind a multicast group.)
fn is_own_link_local(mut address: SocketAddr) -> bool {
    let unicast = match plain(address.ip()) {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    address.set_port(0);
    unicast && UdpSocket::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: &str) -> Place {
        Place::of(SocketAddr::new(address.parse().unwrap(), 0))
    }

    #[test]
    fn every_way_to_write_this_machine() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:0.0.0.0",
            "::127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::7f00:1",
            "2002:7f00:1::",
        ] {
            assert_eq!(place(address), Place::Host, "{address}");
        }
    }

    #[test]
    fn neighbours_and_credentials() {
        for address in
            ["169.254.1.1", "fe80::1", "224.0.0.251", "ff02::fb", "255.255.255.255", "::ffff:169.254.1.1"]
        {
            assert_eq!(place(address), Place::LinkLocal, "{address}");
        }
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "fd00:ec2::254",
            "100.100.100.200",
            "168.63.129.16",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert_eq!(place(address), Place::Metadata, "{address}");
        }
        for address in ["192.0.2.1", "2001:db8::1", "126.255.255.255", "128.0.0.1", "::ffff:192.0.2.1"] {
            assert_eq!(place(address), Place::Elsewhere, "{address}");
        }
    }

    #[test]
    fn private_networks_are_known_however_they_are_written() {
        for address in [
            "10.254.253.252",
            "172.16.0.99",
            "172.31.255.254",
            "192.168.254.253",
            "100.64.0.99",
            "100.127.255.254",
            "fc00::99",
            "fdff:ffff::99",
            "fec0::99",
            "::ffff:10.254.253.252",
            "64:ff9b::10.254.253.252",
            "2002:afe:fdfc::",
        ] {
            assert_eq!(place(address), Place::Lan, "{address}");
        }
        for address in
            ["9.255.255.255", "11.0.0.1", "172.15.255.255", "172.32.0.1", "192.167.0.1", "192.169.0.1"]
        {
            assert_eq!(place(address), Place::Elsewhere, "{address}");
        }
        for address in ["100.63.255.255", "100.128.0.1", "fbff::1", "64:ff9b::192.0.2.1"] {
            assert_eq!(place(address), Place::Elsewhere, "{address}");
        }
    }

    #[test]
    fn each_place_is_a_right_of_its_own() {
        let none = Reach::default();
        for (place, reach) in [
            (Place::Host, Reach { host: true, ..none }),
            (Place::LinkLocal, Reach { link_local: true, ..none }),
            (Place::Metadata, Reach { metadata: true, ..none }),
            (Place::Lan, Reach { lan: true, ..none }),
        ] {
            assert!(place.is_within(reach) && !place.is_within(none));
        }
        assert!(Place::Elsewhere.is_within(none));
    }

    #[test]
    fn nameservers_are_read_as_the_library_reads_them() {
        let text =
            "# nameserver 1.1.1.1\nsearch x\nnameserver 127.0.0.53\nnameserver\tfe80::1%eth0\nnameserver x\n";
        let expected: [IpAddr; 2] = ["127.0.0.53".parse().unwrap(), "fe80::1".parse().unwrap()];
        assert_eq!(resolvers(text), expected);
        assert_eq!(resolvers(""), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
        let at = |address: &str| is_resolver(address.parse().unwrap(), &expected);
        assert!(at("127.0.0.53:53") && at("[::ffff:127.0.0.53]:53"));
        assert!(!at("127.0.0.53:54") && !at("127.0.0.1:53"));
    }
}
