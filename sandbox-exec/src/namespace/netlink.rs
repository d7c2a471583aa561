use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

/// Type of the attribute that describes the other device of a veth pair: `VETH_INFO_PEER` (linux/veth.h).
const VETH_PEER: u16 = 1;
// `IFLA_INET6_ADDR_GEN_MODE`, `IN6_ADDR_GEN_MODE_NONE` (`linux/if_link.h`).
const ADDRESSES_BY_ITSELF: u16 = 8;
const NEVER: u8 = 1;
/// Maximum packet size (MTU) of a device in bytes: `ETH_MAX_MTU` of `linux/if_ether.h`.
const LARGEST: u32 = 65535;
/// Size of `struct nlmsghdr` in bytes. In an answer, the error number follows it.
const HEADER: usize = 16;

/// Index of the loopback device (`LOOPBACK_IFINDEX` of net/flow.h).
pub(super) const LOOPBACK: Device = Device(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct Device(pub(super) u32);

#[derive(Clone, Copy, Debug)]
pub(super) struct Subnet {
    pub(super) address: Ipv4Addr,
    pub(super) prefix: u8,
}

#[derive(Debug)]
pub(super) struct Netlink(File);

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let protocol = SockProtocol::NetlinkRoute;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        Ok(Self(socket.into()))
    }

    /// Creates a pair of virtual network devices (`veth(4)`), one of them in the namespace `other`.
    pub(super) fn make_pair(&mut self, both: Device, name: &str, other: BorrowedFd<'_>) -> io::Result<()> {
        let common = [
            attribute(libc::IFLA_IFNAME, &[name.as_bytes(), &[0]].concat()),
            attribute(libc::IFLA_MTU, &LARGEST.to_ne_bytes()),
        ]
        .concat();
        let place = attribute(libc::IFLA_NET_NS_FD, &other.as_raw_fd().to_ne_bytes());
        let peer = attribute(VETH_PEER, &[&link(both, 0)[..], &common, &place].concat());
        let data = attribute(libc::IFLA_INFO_DATA, &peer);
        let kind = attribute(libc::IFLA_INFO_KIND, b"veth");
        let information = attribute(libc::IFLA_LINKINFO, &[kind, data].concat());
        let new = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.request(libc::RTM_NEWLINK, new, &[&link(both, 0)[..], &common, &information].concat())
    }

    /// Prevents the kernel from giving a device an IPv6 address.
    pub(super) fn forbid_v6(&mut self, device: Device) -> io::Result<()> {
        let mode = attribute(ADDRESSES_BY_ITSELF, &[NEVER]);
        let family = u16::try_from(libc::AF_INET6).unwrap_or_default();
        let families = attribute(libc::IFLA_AF_SPEC, &attribute(family, &mode));
        match self.request(libc::RTM_NEWLINK, 0, &[&link(device, 0)[..], &families].concat()) {
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => Ok(()),
            done => done,
        }
    }

    pub(super) fn switch_on(&mut self, device: Device) -> io::Result<()> {
        self.request(libc::RTM_NEWLINK, 0, &link(device, libc::IFF_UP.cast_unsigned()))
    }

    /// Adds an address to a device, and a route to the subnet around the address.
    pub(super) fn add_address(
        &mut self,
        device: Device,
        Subnet { address, prefix }: Subnet,
        label: &str,
    ) -> io::Result<()> {
        // struct ifaddrmsg
        let body = [&[AF_INET, prefix, 0, 0], &device.0.to_ne_bytes()[..]].concat();
        let attributes = [
            attribute(libc::IFA_LOCAL, &address.octets()),
            attribute(libc::IFA_ADDRESS, &address.octets()),
            attribute(libc::IFA_LABEL, &[label.as_bytes(), &[0]].concat()),
        ];
        let new = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.request(libc::RTM_NEWADDR, new, &[body, attributes.concat()].concat())
    }

    /// Makes every address of a range local to this network namespace.
    pub(super) fn own_range(&mut self, range: Subnet) -> io::Result<()> {
        let device = attribute(libc::RTA_OIF, &LOOPBACK.0.to_ne_bytes());
        self.add_route(range, libc::RT_TABLE_LOCAL, libc::RT_SCOPE_HOST, libc::RTN_LOCAL, &device)
    }

    /// Routes packets for a range of addresses over a neighbour.
    pub(super) fn send_by(&mut self, range: Subnet, neighbour: Ipv4Addr) -> io::Result<()> {
        let gateway = attribute(libc::RTA_GATEWAY, &neighbour.octets());
        self.add_route(range, libc::RT_TABLE_MAIN, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST, &gateway)
    }

    fn add_route(
        &mut self,
        Subnet { address, prefix }: Subnet,
        table: u8,
        scope: u8,
        kind: u8,
        way: &[u8],
    ) -> io::Result<()> {
        // struct rtmsg
        let body = [AF_INET, prefix, 0, 0, table, libc::RTPROT_BOOT, scope, kind, 0, 0, 0, 0];
        let to = attribute(libc::RTA_DST, &address.octets());
        let new = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        self.request(libc::RTM_NEWROUTE, new, &[&body[..], &to, way].concat())
    }

    /// Sends a request, and waits for the answer (`struct nlmsghdr`, `struct nlmsgerr`).
    fn request(&mut self, kind: u16, flags: c_int, body: &[u8]) -> io::Result<()> {
        let flags = u16::try_from(flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK).map_err(io::Error::other)?;
        let length = u32::try_from(HEADER + body.len()).map_err(io::Error::other)?;
        let header = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes(), &[0; 8]];
        self.0.write_all(&[&header.concat(), body].concat())?;
        let mut answer = [0; 4096];
        let length = self.0.read(&mut answer)?;
        let error = answer.get(..length).and_then(|answer| answer.get(HEADER..)?.first_chunk());
        match error.map(|error| c_int::from_ne_bytes(*error)) {
            Some(0) => Ok(()),
            Some(error) => Err(Errno::from_raw(error.saturating_neg()).into()),
            None => Err(Errno::EIO.into()),
        }
    }
}

const AF_INET: u8 = 2;

fn link(device: Device, flags: u32) -> Vec<u8> {
    [[0; 4], device.0.to_ne_bytes(), flags.to_ne_bytes(), flags.to_ne_bytes()].concat()
}

/// Returns the bytes of an attribute: length, type, and the value, padded to a multiple of four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
    let mut bytes = [&length.to_ne_bytes(), &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
