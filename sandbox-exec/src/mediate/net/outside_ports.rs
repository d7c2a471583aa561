//! Checks that no socket inside the sandbox shares a port with a socket outside, even if both allow it (`SO_REUSEADDR`,
//! `SO_REUSEPORT`, socket(7)). Else the kernel could deliver packets for one socket to the other (`compute_score` of
//! net/ipv4/udp.c).
//!
//! The sockets with a port are looked up before a `bind`. They are looked up again afterwards: only then is a port
//! known that the kernel chose, and a process outside may have taken the port meanwhile. A port that the kernel chose
//! is then given up. A port that the program named stays bound: the process outside has allowed sharing itself.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::libc;

use super::host::HostNetwork;
use crate::mediate::call::address::{Address, Meaning};
use crate::mediate::call::socket::{self, SocketKind};

impl HostNetwork {
    /// Fails with `EADDRINUSE` if a socket outside has the port to bind.
    pub(super) fn check_before_bind(
        &self,
        socket: &OwnedFd,
        kind: SocketKind,
        address: &Address,
    ) -> Result<(), Errno> {
        // inet_bind of the kernel treats an address without a family as all addresses.
        let address = match address.meaning() {
            Meaning::Unspecified => address.clone().in_family(libc::AF_INET),
            _ => address.clone(),
        };
        match address.meaning() {
            // The program can change `IPV6_V6ONLY` until the socket is bound.
            Meaning::Internet(own) if own.port() != 0 => self.check(socket, kind, own, false),
            _ => Ok(()),
        }
    }

    /// Gives up a port that the kernel chose and a socket outside has, too. Fails with `EADDRINUSE` then.
    pub(super) fn check_after_bind(&self, socket: &OwnedFd, kind: SocketKind) -> Result<(), Errno> {
        match socket::own_name(socket)?.meaning() {
            Meaning::Internet(own) => {
                let v6_only = socket::keeps_to_v6(socket);
                self.check(socket, kind, own, v6_only).inspect_err(|_| socket::release_port(socket))
            }
            _ => Ok(()),
        }
    }

    /// Fails with `EADDRINUSE` if a socket outside has the port. Succeeds if the kernel cannot list sockets (no
    /// `CONFIG_INET_UDP_DIAG`), since sockets share a port only if both allow it.
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

/// True for an error that stays: netlink lacks this family (`netlink_create`), this list (`inet_diag_lock_handler`) or
/// the old query for TCP (`sock_diag_rcv_msg`), or this process may not use it.
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
