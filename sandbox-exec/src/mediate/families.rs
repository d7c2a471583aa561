//! Whether the kernel has a kind of sockets that it would make for a user without capabilities: one is made and closed.
//!
//! Only of protocols that are there already, as `/proc` lists them: to ask for another may have the kernel load a module, and what
//! cannot be made inside must not have code loaded by being asked for.

use std::collections::VecDeque;
use std::fs;
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::libc::{self, c_int};

use super::socket;

/// How many kinds are remembered.
const MOST: usize = 64;

/// `SOCK_TYPE_MASK` (linux/net.h).
const TYPE: c_int = 0xf;

/// What is listed in `/proc/net/protocols` of a protocol, `None` for all that a family has; and its name.
const PROTOCOLS: [(c_int, Option<c_int>, &str, &str); 18] = [
    (libc::AF_UNIX, None, "UNIX", ""),
    (libc::AF_INET, Some(libc::IPPROTO_MPTCP), "MPTCP", "IPPROTO_MPTCP"),
    (libc::AF_INET, Some(libc::IPPROTO_SCTP), "SCTP", "IPPROTO_SCTP"),
    (libc::AF_INET, Some(libc::IPPROTO_ICMP), "PING", "IPPROTO_ICMP"),
    (libc::AF_INET, Some(libc::IPPROTO_UDPLITE), "UDP-Lite", "IPPROTO_UDPLITE"),
    (libc::AF_INET6, Some(libc::IPPROTO_MPTCP), "MPTCPv6", "IPPROTO_MPTCP"),
    (libc::AF_INET6, Some(libc::IPPROTO_SCTP), "SCTPv6", "IPPROTO_SCTP"),
    (libc::AF_INET6, Some(libc::IPPROTO_ICMPV6), "PINGv6", "IPPROTO_ICMPV6"),
    (libc::AF_INET6, Some(libc::IPPROTO_UDPLITE), "UDPLITEv6", "IPPROTO_UDPLITE"),
    (libc::AF_PACKET, None, "PACKET", ""),
    (libc::AF_RDS, None, "RDS", ""),
    (libc::AF_CAN, Some(CAN_RAW), "CAN_RAW", "CAN_RAW"),
    (libc::AF_TIPC, None, "TIPC", ""),
    (libc::AF_BLUETOOTH, Some(BTPROTO_L2CAP), "L2CAP", "BTPROTO_L2CAP"),
    (libc::AF_BLUETOOTH, Some(BTPROTO_HCI), "HCI", "BTPROTO_HCI"),
    (libc::AF_ALG, None, "ALG", ""),
    (libc::AF_VSOCK, None, "AF_VSOCK", ""),
    (libc::AF_XDP, None, "XDP", ""),
];

/// linux/can.h, net/bluetooth/bluetooth.h of the kernel.
const CAN_RAW: c_int = 1;
const BTPROTO_L2CAP: c_int = 0;
const BTPROTO_HCI: c_int = 1;

/// The families by name, as far as anything of them is found here.
const FAMILIES: [(c_int, &str); 12] = [
    (libc::AF_UNIX, "AF_UNIX"),
    (libc::AF_INET, "AF_INET"),
    (libc::AF_INET6, "AF_INET6"),
    (libc::AF_NETLINK, "AF_NETLINK"),
    (libc::AF_PACKET, "AF_PACKET"),
    (libc::AF_RDS, "AF_RDS"),
    (libc::AF_CAN, "AF_CAN"),
    (libc::AF_TIPC, "AF_TIPC"),
    (libc::AF_BLUETOOTH, "AF_BLUETOOTH"),
    (libc::AF_ALG, "AF_ALG"),
    (libc::AF_VSOCK, "AF_VSOCK"),
    (libc::AF_XDP, "AF_XDP"),
];

/// The types by name.
const TYPES: [(c_int, &str); 6] = [
    (libc::SOCK_STREAM, "SOCK_STREAM"),
    (libc::SOCK_DGRAM, "SOCK_DGRAM"),
    (libc::SOCK_RAW, "SOCK_RAW"),
    (libc::SOCK_RDM, "SOCK_RDM"),
    (libc::SOCK_SEQPACKET, "SOCK_SEQPACKET"),
    (libc::SOCK_DCCP, "SOCK_DCCP"),
];

/// Family, type and protocol.
type Kind = [c_int; 3];

/// What was found out lately.
#[derive(Debug, Default)]
pub(super) struct Families(Mutex<VecDeque<(Kind, bool)>>);

impl Families {
    /// `socket(2)` of these, if anybody could have made it.
    pub(super) fn socket(&self, family: c_int, style: c_int, protocol: c_int) -> Option<String> {
        let kind = [family, style, protocol];
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.iter().find(|(other, _)| *other == kind).map(|(_, made)| *made);
        let made = before
            .map_or_else(|| if is_there(family, protocol) { is_made(kind) } else { Some(false) }, Some)?;
        if before.is_none() {
            known.truncate(MOST - 1);
            known.push_front((kind, made));
        }
        made.then(|| named(family, style & TYPE, protocol))
    }
}

/// Whether it can be made; nothing where that fails for reasons of this process.
fn is_made([family, style, protocol]: Kind) -> Option<bool> {
    match socket::make(family, style, protocol) {
        Ok(_) => Some(true),
        Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => None,
        Err(_) => Some(false),
    }
}

fn is_there(family: c_int, protocol: c_int) -> bool {
    let listed = |file: &str, is_it: &dyn Fn(&str) -> bool| {
        fs::read_to_string(format!("/proc/self/net/{file}")).is_ok_and(|text| text.lines().skip(1).any(is_it))
    };
    if family == libc::AF_NETLINK {
        // Every protocol has a socket of the kernel's own in each network namespace: address, protocol, …
        return listed("netlink", &|line| line.split_whitespace().nth(1) == Some(&protocol.to_string()));
    }
    let is_of = |of: &Option<c_int>| of.is_none_or(|of| of == protocol);
    let known = PROTOCOLS.iter().find(|(of, which, ..)| *of == family && is_of(which));
    known.is_some_and(|(_, _, name, _)| {
        listed("protocols", &|line| line.split_whitespace().next() == Some(name))
    })
}

/// As C has it. The type says something where the protocol does not.
fn named(family: c_int, style: c_int, protocol: c_int) -> String {
    let name = |table: &[(c_int, &str)], value: c_int| {
        let known = table.iter().find(|(known, _)| *known == value);
        known.map_or_else(|| value.to_string(), |(_, name)| (*name).to_owned())
    };
    let known = PROTOCOLS.iter().find(|(of, which, ..)| *of == family && *which == Some(protocol));
    let protocol = match known {
        Some((.., name)) => (*name).to_owned(),
        None => protocol.to_string(),
    };
    format!("socket({}, {}, {protocol})", name(&FAMILIES, family), name(&TYPES, style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_has_is_told_by_name_and_what_it_would_have_to_load_is_not_asked_for() {
        let families = Families::default();
        let told = families.socket(libc::AF_UNIX, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
        assert_eq!(told.unwrap(), "socket(AF_UNIX, SOCK_RAW, 0)");
        assert_eq!(families.socket(libc::AF_UNIX, libc::SOCK_DCCP, 0), None, "there is no such type");
        assert_eq!(
            families.socket(libc::AF_UNIX, libc::SOCK_RAW | 1 << 20, 0),
            None,
            "there is no such flag"
        );
        for (family, protocol) in [(-1, 0), (45, 0), (libc::AF_INET, 200), (libc::AF_NETLINK, 31)] {
            assert!(!is_there(family, protocol), "{family} {protocol}");
        }
        let uevents = families.socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT);
        assert_eq!(uevents.unwrap(), "socket(AF_NETLINK, SOCK_RAW, 15)");
    }

    #[test]
    fn so_many_kinds_are_remembered() {
        let families = Families::default();
        for protocol in 1000..1200 {
            assert_eq!(families.socket(libc::AF_INET, libc::SOCK_STREAM, protocol), None);
        }
        assert_eq!(families.0.lock().unwrap().len(), MOST);
    }
}
