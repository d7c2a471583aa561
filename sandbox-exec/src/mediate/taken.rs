//! Ports that sockets outside hold: no socket from inside shares one, even where both allow it (`SO_REUSEADDR`, `SO_REUSEPORT`,
//! socket(7)). The kernel would lead to one of them what is meant for the other: of datagrams all (`compute_score` of
//! net/ipv4/udp.c), of connections each second one.
//!
//! It is looked who holds a port before a socket is bound, and again afterwards, since only then it is known which port the kernel
//! has chosen, and whether somebody came meanwhile. A port that was chosen is then given up. One that was asked for stays bound until
//! its program closes it, as it would if the service outside had come a moment later: that one may share it, and decides so itself.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc;

use super::address::{Address, Meaning};
use super::host::HostNetwork;
use super::socket::{self, SocketKind};

impl HostNetwork {
    /// Fails with `EADDRINUSE` if a socket outside holds the port of the address that a socket is to be bound to.
    pub(super) fn check_before_bind(
        &self,
        socket: &OwnedFd,
        kind: SocketKind,
        address: &Address,
    ) -> Result<(), Errno> {
        // inet_bind of the kernel takes an address without a family for one of all.
        let address = match address.meaning() {
            Meaning::Unspecified => address.clone().in_family(libc::AF_INET),
            _ => address.clone(),
        };
        match address.meaning() {
            // Whether it keeps to IPv6 its program can change until it is bound.
            Meaning::Internet(own) if own.port() != 0 => self.check(socket, kind, own, false),
            _ => Ok(()),
        }
    }

    /// The same of a socket that was bound, which gives up its port if the kernel has chosen it.
    pub(super) fn check_after_bind(&self, socket: &OwnedFd, kind: SocketKind) -> Result<(), Errno> {
        match socket::own_name(socket)?.meaning() {
            Meaning::Internet(own) => {
                let v6_only = socket::keeps_to_v6(socket);
                self.check(socket, kind, own, v6_only).inspect_err(|_| socket::release_port(socket))
            }
            _ => Ok(()),
        }
    }

    /// A kernel that does not list sockets (`CONFIG_INET_UDP_DIAG`) keeps those apart that share nothing.
    fn check(&self, socket: &OwnedFd, kind: SocketKind, own: SocketAddr, v6_only: bool) -> Result<(), Errno> {
        let is_free = match self.holders(kind, own.port()) {
            Ok(mut holders) => {
                holders.retain(|holder| holder.overlaps(own.ip(), v6_only));
                self.are_own(&holders)
            }
            Err(errno) => {
                does_not_list(errno) && !socket::shares_address(socket) && !socket::shares_port(socket)
            }
        };
        if is_free { Ok(()) } else { Err(Errno::EADDRINUSE) }
    }
}

/// True if it is no fault of the moment: there is no such family of netlink (`netlink_create`), no such list of it
/// (`inet_diag_lock_handler`), or none of TCP in the old form (`sock_diag_rcv_msg`); or whoever started us keeps netlink from us, as
/// systemd's `RestrictAddressFamilies` does, a filter of a container, or a module of the kernel.
fn does_not_list(errno: Errno) -> bool {
    let never = matches!(errno, Errno::EPROTONOSUPPORT | Errno::ENOENT | Errno::EOPNOTSUPP);
    never || matches!(errno, Errno::EAFNOSUPPORT | Errno::EPERM | Errno::EACCES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_kernel_that_never_lists_sockets_is_trusted_to_keep_them_apart() {
        assert!([Errno::EPROTONOSUPPORT, Errno::ENOENT, Errno::EOPNOTSUPP].into_iter().all(does_not_list));
        assert!([Errno::EAFNOSUPPORT, Errno::EPERM, Errno::EACCES].into_iter().all(does_not_list));
        let passing = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM, Errno::EIO, Errno::EINTR];
        assert!(!passing.into_iter().any(does_not_list));
    }
}
