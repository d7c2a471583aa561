use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};

use nix::libc::{self, c_int};
use nix::sys::resource::{Resource, setrlimit};

use crate::calls::{DATAGRAM, STREAM, errno, socket};
use crate::harness::as_each_user;

#[test]
fn pairs_of_datagram_sockets_are_denied() {
    as_each_user(|place| {
        place.mediated(|| {
            let expected = if place.makes_sockets() { libc::EPERM } else { 0 };
            assert_eq!(errno(UnixDatagram::pair()), expected);
            UnixStream::pair().unwrap();
        });
    });
}

#[test]
fn what_is_made_is_what_was_asked_for() {
    as_each_user(|place| {
        place.mediated(|| {
            let flags = |style: c_int| {
                // SAFETY: integers.
                unsafe {
                    let socket = libc::socket(libc::AF_INET, style, 0);
                    let answer = (
                        libc::fcntl(socket, libc::F_GETFD),
                        libc::fcntl(socket, libc::F_GETFL) & libc::O_NONBLOCK,
                    );
                    libc::close(socket);
                    answer
                }
            };
            assert_eq!(flags(STREAM), (0, 0));
            assert_eq!(flags(STREAM | libc::SOCK_CLOEXEC), (libc::FD_CLOEXEC, 0));
            assert_eq!(flags(DATAGRAM | libc::SOCK_NONBLOCK), (0, libc::O_NONBLOCK));
            let error = |family, style, protocol| {
                // SAFETY: integers.
                assert_eq!(unsafe { libc::socket(family, style, protocol) }, -1);
                std::io::Error::last_os_error().raw_os_error().unwrap()
            };
            assert_eq!(error(999, STREAM, 0), libc::EAFNOSUPPORT);
            assert_eq!(error(libc::AF_INET, 0xff, 0), libc::EINVAL);
            assert_eq!(error(libc::AF_INET, STREAM, libc::IPPROTO_UDP), libc::EPROTONOSUPPORT);
            // The lowest number that is free, as everywhere.
            let first = socket(libc::AF_INET, STREAM);
            let number = first.as_raw_fd();
            drop(first);
            assert_eq!(socket(libc::AF_UNIX, STREAM).as_raw_fd(), number);
            setrlimit(Resource::RLIMIT_NOFILE, 8, 8).unwrap();
            let mut all = vec![];
            let full = loop {
                // SAFETY: integers; the descriptor is new.
                match unsafe { libc::socket(libc::AF_INET, STREAM, 0) } {
                    -1 => break std::io::Error::last_os_error(),
                    // SAFETY: as above.
                    number => all.push(unsafe { OwnedFd::from_raw_fd(number) }),
                }
            };
            assert_eq!(full.raw_os_error(), Some(libc::EMFILE));
        });
    });
}
