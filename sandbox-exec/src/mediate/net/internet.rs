//! Internet addresses of connections; [`ipc::place`] relates them to this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipc::place::{is_local, plain};

/// Replaces the unspecified address by a loopback address, as the kernel does for a destination.
pub(super) fn named(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V6(v6) if v6.to_ipv4_mapped() == Some(Ipv4Addr::UNSPECIFIED) => {
            address.set_ip(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into());
        }
        _ => {}
    }
    address
}

/// True if packets to the address stay on this machine. Else a gateway could send them back to it.
pub(super) fn stays_here(address: IpAddr) -> bool {
    plain(address).is_loopback() || is_local(address)
}
