//! Attacks by sockets. The host's own listeners stand for all other machines: the listeners work without a network, and
//! are forbidden with the network on.

use nix::libc::{self, EACCES, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENOSYS, EPERM, c_int};

use crate::attack::Group::{Network, UnixSockets};
use crate::attack::Held::{Apart, With};
use crate::attack::Unconfined::{Harms, Reaches, Works};
use crate::attack::{Attack, Who, rows};

const DENIED: &[i32] = &[EPERM, EACCES];
/// Errors of connections: nobody listens on loopback in the sandbox, and on the host's network the broker refuses.
const NOBODY: &[i32] = &[ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, EACCES];

pub(super) fn all() -> Vec<Attack> {
    [internet(), families(), unix_sockets()].concat()
}

fn internet() -> Vec<Attack> {
    let streams = [
        "tcp {tcp4}",
        "tcp {tcp6}",
        "tcp [::ffff:127.0.0.1]:{port}",
        "tcp 0.0.0.0:{port}",
        "tcp [::]:{port6}",
        "tcp {tcp127}",
        "tcp-fast-open {tcp4}",
        "tcp-fast-open-connect {tcp4}",
    ];
    // A datagram without a receiver is lost without an error, unless the broker noticed that there is none.
    let datagrams = [
        "udp {udp}",
        "udp 0.0.0.0:{udpport}",
        "udp [::ffff:127.0.0.1]:{udpport}",
        "udp {udp6}",
        "udp-connected {udp}",
        "udp-sendmsg {udp}",
        "udp-sendmmsg {udp}",
        "dns {udp}",
    ];
    [
        rows(Network, Harms, With(NOBODY), With(NOBODY), &streams),
        rows(Network, Harms, Apart, With(NOBODY), &datagrams),
        rows(Network, Harms, With(DENIED), With(DENIED), &["mptcp {tcp4}"]),
        rows(Network, Harms, With(&[ENOSYS]), With(&[ENOSYS]), &["io-uring-connect {tcp4}"]),
        rows(Network, Harms, With(&[-1]), With(&[-1]), &["int80-connect {tcp4}"]),
        rows(Network, Works, Apart, Apart, &["tcp-listen"]),
        rows(Network, Reaches, With(&[EPERM]), With(&[EPERM]), &["root: netlink-admin"]),
    ]
    .concat()
}

fn families() -> Vec<Attack> {
    const TABLE: [(bool, c_int, c_int, c_int); 15] = [
        (true, libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        (true, libc::AF_PACKET, libc::SOCK_RAW, 0),
        (true, libc::AF_PACKET, libc::SOCK_DGRAM, 0),
        (true, libc::AF_INET, 10, 0),
        (false, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER),
        (false, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT),
        (false, libc::AF_VSOCK, libc::SOCK_STREAM, 0),
        (false, libc::AF_ALG, libc::SOCK_SEQPACKET, 0),
        (false, libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP),
        (true, libc::AF_KEY, libc::SOCK_RAW, 2),
        (false, libc::AF_BLUETOOTH, libc::SOCK_RAW, 1),
        (false, libc::AF_TIPC, libc::SOCK_RDM, 0),
        (true, libc::AF_XDP, libc::SOCK_RAW, 0),
        (false, libc::AF_CAN, libc::SOCK_RAW, 1),
        (false, libc::AF_RDS, libc::SOCK_SEQPACKET, 0),
    ];
    let row = |(root, family, kind, protocol): (bool, c_int, c_int, c_int)| Attack {
        group: Network,
        act: format!("socket {family} {kind} {protocol}"),
        who: if root { Who::Root } else { Who::Anybody },
        unconfined: Reaches,
        full: With(DENIED),
        floor: With(DENIED),
    };
    TABLE.into_iter().map(row).collect()
}

fn unix_sockets() -> Vec<Attack> {
    let named = [
        "unix-stream {o}/stream",
        "unix-stream {p}/../outside/stream",
        "unix-stream {p}/streamlink",
        "unix-stream /proc/self/root{o}/stream",
        "unix-stream-path {o}/stream",
        "unix-stream-here {o} stream",
        "unix-stream-here {o} ./dir/../stream",
        "unix-seqpacket {o}/packets",
        "unix-datagram {o}/datagram",
        "unix-datagram {p}/datagramlink",
        "unix-datagram-connected {o}/datagram",
        "unix-datagram-sendmsg {o}/datagram",
        "unix-datagram-sendmmsg {o}/datagram",
        "unix-pass-descriptor {o}/datagram",
        "socketpair-sendto {o}/datagram 2",
    ];
    let abstract_names = [
        "abstract-stream {name}",
        "abstract-datagram {name}-d",
        "abstract-seqpacket {name}-p",
        "abstract-stream-beside {name}",
        "abstract-datagram-beside {name}-d",
        "abstract-seqpacket-beside {name}-p",
    ];
    [
        rows(UnixSockets, Harms, With(&[EACCES]), With(DENIED), &named),
        rows(UnixSockets, Harms, With(&[ECONNREFUSED, EPERM]), With(&[ECONNREFUSED, EPERM]), &abstract_names),
    ]
    .concat()
}
