//! Rules about sockets: the families, types and protocols that are allowed in each tier.

use super::Test::{Is, IsNot, Masked};
#[allow(clippy::wildcard_imports, reason = "what the kernel calls its arguments, and nothing else")]
use super::constants::*;
use super::{Conditional, calls};

/// Calls that are denied if no broker mediates unix sockets.
pub(super) const UNMEDIATED: &[Conditional] = &[Conditional {
    reason: "a datagram socket of a pair can still be sent to any path (so can SOCK_RAW, which unix(7) takes for it), \
             and other families' pairs are attack surface",
    call: calls::SOCKETPAIR,
    any_of: &[
        &[IsNot(0, AF_UNIX)],
        &[Masked(1, SOCK_TYPE_MASK, SOCK_DGRAM)],
        &[Masked(1, SOCK_TYPE_MASK, SOCK_RAW)],
    ],
}];

/// Calls that are denied in the unmediated floor tier with the network off. Unix sockets are always denied in this
/// tier: those of docker, an ssh agent or D-Bus lead out, and BPF cannot read the destination of `connect`.
pub(super) const NET_OFF: &[Conditional] = &[Conditional {
    reason: "no socket leaves the sandbox; NETLINK_ROUTE stays, since getifaddrs(3) needs it",
    call: calls::SOCKET,
    any_of: &[&[IsNot(0, AF_NETLINK)], &[IsNot(2, NETLINK_ROUTE)]],
}];

/// Calls that are denied in the unmediated floor tier with the network on.
pub(super) const NET_ON: &[Conditional] = &[Conditional {
    reason: "TCP, UDP and NETLINK_ROUTE alone: vsock talks to the hypervisor, packet and raw sockets sniff, MPTCP and SCTP \
             pass by port rules, the others are attack surface; unix sockets are a way out",
    call: calls::SOCKET,
    any_of: &[
        &[IsNot(0, AF_NETLINK), IsNot(0, AF_INET), IsNot(0, AF_INET6)],
        &[Is(0, AF_NETLINK), IsNot(2, NETLINK_ROUTE)],
        &[IsNot(0, AF_NETLINK), IsNot(2, 0), IsNot(2, IPPROTO_TCP), IsNot(2, IPPROTO_UDP)],
        &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_RAW)],
        &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_RDM)],
        &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_SEQPACKET)],
        &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_DCCP)],
        &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_PACKET)],
    ],
}];

/// Calls that are denied if a broker mediates, with any network. Other sockets are allowed: in a private network they
/// reach only the sandbox itself, and elsewhere the broker judges destinations, also the paths of unix sockets.
pub(super) const MEDIATED: &[Conditional] = &[
    Conditional {
        reason: "TCP, UDP, unix sockets and NETLINK_ROUTE alone: vsock talks to the hypervisor past every network \
                 namespace, packet and raw sockets sniff, nobody mediates MPTCP and SCTP, the others are attack surface",
        call: calls::SOCKET,
        any_of: &[
            &[IsNot(0, AF_NETLINK), IsNot(0, AF_UNIX), IsNot(0, AF_INET), IsNot(0, AF_INET6)],
            &[Is(0, AF_NETLINK), IsNot(2, NETLINK_ROUTE)],
            &[
                IsNot(0, AF_NETLINK),
                IsNot(0, AF_UNIX),
                IsNot(2, 0),
                IsNot(2, IPPROTO_TCP),
                IsNot(2, IPPROTO_UDP),
            ],
            &[IsNot(0, AF_NETLINK), IsNot(0, AF_UNIX), Masked(1, SOCK_TYPE_MASK, SOCK_SEQPACKET)],
            &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_RAW)],
            &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_RDM)],
            &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_DCCP)],
            &[IsNot(0, AF_NETLINK), Masked(1, SOCK_TYPE_MASK, SOCK_PACKET)],
        ],
    },
    Conditional {
        reason: "pairs of other families are attack surface",
        call: calls::SOCKETPAIR,
        any_of: &[&[IsNot(0, AF_UNIX)], &[Masked(1, SOCK_TYPE_MASK, SOCK_RAW)]],
    },
];

/// Calls that are denied if the network namespace is the host's.
pub(super) const HOST_NETWORK: &[Conditional] = &[
    Conditional {
        reason: "one program steers all sockets that share a port, those of a host's service among them if it joins later",
        call: calls::SETSOCKOPT,
        any_of: &[
            &[Is(1, SOL_SOCKET), Is(2, SO_ATTACH_REUSEPORT_CBPF)],
            &[Is(1, SOL_SOCKET), Is(2, SO_ATTACH_REUSEPORT_EBPF)],
            &[Is(1, SOL_SOCKET), Is(2, SO_DETACH_REUSEPORT_BPF)],
        ],
    },
    Conditional {
        reason: "leaves the kernel, which gives a datagram socket its port unasked, no port but one that the host shares",
        call: calls::SETSOCKOPT,
        any_of: &[&[Is(1, IPPROTO_IP), Is(2, IP_LOCAL_PORT_RANGE)]],
    },
];

/// Calls that are denied in the host's network namespace, unless the program may reach the local network.
pub(super) const GROUPS: &[Conditional] = &[Conditional {
    reason: "joining or leaving a group sends its address (112 bits of the program's choice) to every neighbour, whatever \
             device the socket is tied to; the masks take 36 to 39, 40 to 47, 20 and 21, 42 and 43, and 44 to 47",
    call: calls::SETSOCKOPT,
    any_of: &[
        &[Is(1, IPPROTO_IP), Is(2, IP_ADD_MEMBERSHIP)],
        &[Is(1, IPPROTO_IP), Masked(2, !3, IP_DROP_MEMBERSHIP)],
        &[Is(1, IPPROTO_IP), Masked(2, !7, IP_DROP_SOURCE_MEMBERSHIP)],
        &[Is(1, IPPROTO_IP), Is(2, MCAST_MSFILTER)],
        &[Is(1, IPPROTO_IPV6), Masked(2, !1, IPV6_JOIN_GROUP)],
        &[Is(1, IPPROTO_IPV6), Is(2, IPV6_JOIN_ANYCAST)],
        &[Is(1, IPPROTO_IPV6), Is(2, IPV6_LEAVE_ANYCAST)],
        &[Is(1, IPPROTO_IPV6), Masked(2, !1, MCAST_JOIN_GROUP)],
        &[Is(1, IPPROTO_IPV6), Masked(2, !3, MCAST_UNBLOCK_SOURCE)],
        &[Is(1, IPPROTO_IPV6), Is(2, MCAST_MSFILTER)],
    ],
}];

/// Calls that are denied, with a broker, to a command that needs no network if its worker has the host's.
pub(super) const OFFLINE: &[Conditional] = &[Conditional {
    reason: "the command declared that it needs no network; its unix sockets are mediated by path as its worker's are",
    call: calls::SOCKET,
    any_of: &[&[Is(0, AF_INET)], &[Is(0, AF_INET6)]],
}];

/// Calls that are denied to a command that only reads, in every tier.
pub(super) const READ_ONLY: &[Conditional] = &[Conditional {
    reason: "it could send away what it reads, whatever the network right of its worker",
    call: calls::SOCKET,
    any_of: &[&[IsNot(0, AF_NETLINK)]],
}];

/// Calls that are denied to a command that only reads and was given the network, in every tier.
pub(super) const READ_ONLY_ONLINE: &[Conditional] = &[Conditional {
    reason: "a unix socket leads to other programs of its agent, which may write; the network that it was given does not",
    call: calls::SOCKET,
    any_of: &[&[IsNot(0, AF_NETLINK), IsNot(0, AF_INET), IsNot(0, AF_INET6)]],
}];
