//! Classic BPF filter (`SO_ATTACH_FILTER`, socket(7)) by which a datagram socket receives only from certain ports.
//!
//! The kernel runs the filter on each datagram, from the UDP header on, before it queues the datagram
//! (`udp_queue_rcv_one_skb`, `udpv6_queue_rcv_one_skb`).

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc::{self, sock_filter};

use crate::mediate::call::socket;
use crate::mediate::filter::{answer, equal, jump, statement};

/// Maximum number of ports. A filter counts in `net.core.optmem_max` (20 KiB before Linux 6.9), twice when replaced.
pub(super) const MOST: usize = 1024;

/// Offset at which a filter finds a packet's network protocol (`SKF_AD_OFF + SKF_AD_PROTOCOL`, linux/filter.h).
#[expect(clippy::cast_sign_loss, reason = "the kernel takes it for an offset that is negative")]
const PROTOCOL: u32 = libc::SKF_AD_OFF as u32;
const SOURCE_PORT: u32 = 0;
// Protocols (`linux/if_ether.h`).
const V4: u32 = 0x0800;
const V6: u32 = 0x86dd;
/// Maximum number of port comparisons before the answer that they share: a jump skips at most 255 instructions.
const REACH: usize = 255;
/// Filter answer that accepts the whole datagram: the maximum number of bytes to keep.
const ALL: u32 = u32::MAX;
const NOTHING: u32 = 0;

pub(in crate::mediate) fn hear_only(socket: &OwnedFd, senders: &[SocketAddr]) -> Result<(), Errno> {
    socket::filter(socket, &program(senders))
}

/// Returns the filter that accepts datagrams from these senders' ports:
///
/// ```text
///     protocol == IPv4 ? go on : to IPv6
///     port == … ? all : …                       of IPv4
///     nothing
///     protocol == IPv6 ? go on : nothing
///     port == … ? all : …                       of IPv6
///     nothing
/// ```
fn program(senders: &[SocketAddr]) -> Vec<sock_filter> {
    let ports = |is_v4| {
        let of_family = senders.iter().filter(move |sender| sender.is_ipv4() == is_v4);
        comparisons(&of_family.map(|sender| sender.port().into()).collect::<Vec<u32>>())
    };
    let (v4, v6) = (ports(true), ports(false));
    let mut program = vec![load(libc::BPF_W, PROTOCOL), equal(V4, 1, 0), jump(v4.len())];
    program.extend(v4);
    program.extend([equal(V6, 1, 0), answer(NOTHING)]);
    program.extend(v6);
    program
}

fn comparisons(ports: &[u32]) -> Vec<sock_filter> {
    let mut program = vec![load(libc::BPF_H, SOURCE_PORT)];
    for some in ports.chunks(REACH) {
        // Skips the remaining comparisons and the negative answer.
        let left = (1..=some.len()).rev().map(|left| u8::try_from(left).unwrap_or(u8::MAX));
        program.extend(some.iter().zip(left).map(|(&port, left)| equal(port, left, 0)));
        program.extend([jump(1), answer(ALL)]);
    }
    program.push(answer(NOTHING));
    program
}

fn load(size: u32, at: u32) -> sock_filter {
    statement(libc::BPF_LD | size | libc::BPF_ABS, 0, 0, at)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    struct Pair {
        receiver: OwnedFd,
        sender: UdpSocket,
    }

    impl Pair {
        fn new(receiver: &str, sender: &str) -> Self {
            let (receiver, sender) = (UdpSocket::bind(receiver).unwrap(), UdpSocket::bind(sender).unwrap());
            receiver.set_nonblocking(true).unwrap();
            sender
                .connect((sender.local_addr().unwrap().ip(), receiver.local_addr().unwrap().port()))
                .unwrap();
            Self { receiver: receiver.into(), sender }
        }

        fn hears(&self, senders: &[SocketAddr]) -> bool {
            hear_only(&self.receiver, senders).unwrap();
            self.sender.send(b"x").unwrap();
            UdpSocket::from(self.receiver.try_clone().unwrap()).recv(&mut [0]).is_ok()
        }

        fn port(&self) -> u16 {
            self.sender.local_addr().unwrap().port()
        }
    }

    #[test]
    fn a_sender_is_heard_by_its_port_and_its_family() {
        for (receiver, sender) in
            [("127.0.0.1:0", "127.0.0.1:0"), ("[::1]:0", "[::1]:0"), ("[::]:0", "127.0.0.1:0")]
        {
            let pair = Pair::new(receiver, sender);
            let (v4, v6) =
                (SocketAddr::from(([0; 4], pair.port())), SocketAddr::from(([0; 16], pair.port())));
            let (own, other) = if sender.starts_with('[') { (v6, v4) } else { (v4, v6) };
            let another = SocketAddr::new(own.ip(), own.port() ^ 1);
            assert!(pair.hears(&[own]) && pair.hears(&[another, other, own]), "{receiver}");
            assert!(!pair.hears(&[]) && !pair.hears(&[other, another]), "{receiver}");
        }
    }

    #[test]
    fn each_of_as_many_as_there_may_be_is_heard() {
        let pair = Pair::new("127.0.0.1:0", "127.0.0.1:0");
        let own = SocketAddr::from(([127, 0, 0, 1], pair.port()));
        let others: Vec<_> = (1..).filter(|&port| port != pair.port()).take(MOST - 1).collect();
        let others: Vec<_> = others.into_iter().map(|port| SocketAddr::from(([0; 4], port))).collect();
        assert!(!pair.hears(&others));
        for at in [0, 1, REACH - 1, REACH, REACH + 1, 2 * REACH, MOST - 1] {
            let mut all = others.clone();
            all.insert(at, own);
            assert!(pair.hears(&all), "{at}");
        }
    }
}
