use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};

use ipc::confinement::Tier;
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};

use crate::calls::{
    DATAGRAM, control, errno, header, part, send_message, send_messages, send_to, socket, unix,
};
use crate::harness::{as_each_user, pipe};

pub(crate) fn receive_descriptor(socket: &impl AsRawFd) -> File {
    let (mut byte, mut room) = ([0_u8], [0_u8; 24]);
    let mut parts = [part(&byte)];
    parts[0].iov_base = byte.as_mut_ptr().cast();
    let mut header = header(&mut parts, &[], &[]);
    (header.msg_control, header.msg_controllen) = (room.as_mut_ptr().cast(), room.len() as _);
    // SAFETY: the kernel writes to what the header points to, as much as it says.
    assert_eq!(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, 0) }, 1);
    let number = i32::from_ne_bytes(*room[16..].first_chunk().unwrap());
    // SAFETY: the kernel has just made it.
    unsafe { File::from_raw_fd(number) }
}

#[test]
fn descriptors_pass_over_pairs_and_over_paths() {
    as_each_user(|place| {
        place.mediated(|| {
            let (mut read, write) = pipe();
            let rights = control(libc::SOL_SOCKET, libc::SCM_RIGHTS, &write.as_raw_fd().to_ne_bytes());
            let (left, right) = UnixStream::pair().unwrap();
            send_message(&left.into(), b"x", &[], &rights, 0).unwrap();
            let server = UnixDatagram::bind(place.path("in/server")).unwrap();
            let to = unix(place.path("in/server"));
            let sent = errno(send_message(&socket(libc::AF_UNIX, DATAGRAM), b"x", &to, &rights, 0));
            // The mediator sends messages with an address, and has none of the caller's files but the sockets
            // that it made.
            assert_eq!(sent, if place.makes_sockets() { libc::EPERM } else { 0 });
            drop(write);
            let mut passed = vec![receive_descriptor(&right)];
            if sent == 0 {
                passed.push(receive_descriptor(&server));
            }
            for file in &mut passed {
                file.write_all(b"through").unwrap();
            }
            let count = passed.len();
            drop(passed);
            let mut text = String::new();
            read.read_to_string(&mut text).unwrap();
            assert_eq!(text, "through".repeat(count));
        });
    });
}

#[test]
fn control_data_is_hostile() {
    as_each_user(|place| {
        place.mediated(|| {
            let (left, _right) = UnixStream::pair().unwrap();
            let left: OwnedFd = left.into();
            let send = |control: &[u8]| errno(send_message(&left, b"x", &[], control, libc::MSG_DONTWAIT));
            let rights = |content: &[u8]| control(libc::SOL_SOCKET, libc::SCM_RIGHTS, content);
            assert_eq!(send(&rights(&999_i32.to_ne_bytes())), libc::EBADF);
            assert_eq!(send(&rights(&(-1_i32).to_ne_bytes())), libc::EBADF);
            let many: Vec<u8> = std::iter::repeat_n(0_i32.to_ne_bytes(), 254).flatten().collect();
            assert_eq!(send(&rights(&many)), libc::EINVAL);
            assert_eq!(send(&rights(&many[..4 * 253])), 0);
            let mut long = rights(&0_i32.to_ne_bytes());
            long[..8].copy_from_slice(&u64::MAX.to_ne_bytes());
            assert_eq!(send(&long), libc::EINVAL);
            long[..8].copy_from_slice(&3_u64.to_ne_bytes());
            assert_eq!(send(&long), libc::EINVAL);
            assert_eq!(send(&vec![0; 1 << 20]), libc::ENOBUFS);
        });
    });
}

#[test]
fn credentials_are_the_callers_own_or_refused() {
    as_each_user(|place| {
        place.mediated(|| {
            let (left, right) = UnixStream::pair().unwrap();
            setsockopt(&right, sockopt::PassCred, &true).unwrap();
            let left: OwnedFd = left.into();
            let credentials = |pid: u32, uid: u32| {
                let gid = nix::unistd::getgid().as_raw();
                let content: Vec<u8> = [pid, uid, gid].iter().flat_map(|id| id.to_ne_bytes()).collect();
                let control = control(libc::SOL_SOCKET, libc::SCM_CREDENTIALS, &content);
                errno(send_message(&left, b"x", &[], &control, 0))
            };
            let (pid, uid) = (std::process::id(), nix::unistd::getuid().as_raw());
            assert_eq!(credentials(pid, uid), 0);
            assert_eq!(credentials(1, uid), libc::EPERM);
            // If the call is left to the kernel, the kernel does not know the user in a namespace of its own.
            let unknown = place.makes_sockets() && place.tier() == Tier::Full;
            assert_eq!(credentials(pid, uid + 1), if unknown { libc::EINVAL } else { libc::EPERM });
        });
    });
}

#[test]
fn a_long_stream_arrives_whole() {
    as_each_user(|place| {
        place.mediated(|| {
            let (left, mut right) = UnixStream::pair().unwrap();
            let data: Vec<u8> = (0..3_000_000_u32).map(|number| number.to_le_bytes()[1]).collect();
            let sent = data.clone();
            let sender = std::thread::spawn(move || send_message(&left.into(), &sent, &[], &[], 0).unwrap());
            let mut received = vec![];
            right.read_to_end(&mut received).unwrap();
            assert_eq!(sender.join().unwrap(), data.len());
            assert!(received == data);
        });
    });
}

#[test]
fn what_cannot_be_sent_fails_as_without_a_mediator() {
    as_each_user(|place| {
        let each = || {
            let flags = SockFlag::SOCK_CLOEXEC;
            let (packets, _other) =
                socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
            let (stream, gone) = UnixStream::pair().unwrap();
            drop(gone);
            let stream: OwnedFd = stream.into();
            let file: OwnedFd = File::open("/dev/null").unwrap().into();
            let mut errors = vec![
                errno(send_message(&packets, &vec![0; 8 << 20], &[], &[], 0)),
                errno(send_message(&stream, b"x", &[], &[], libc::MSG_NOSIGNAL)),
                errno(send_message(&file, b"x", &[], &[], 0)),
                errno(send_to(&file, b"x", &unix("x"), 0)),
                errno(send_messages(&packets, &[], &[])),
                errno(send_to(&packets, b"x", &[0; 200], 0)),
                errno(send_to(&packets, b"x", &unix(""), 0)),
                errno(send_to(&socket(libc::AF_UNIX, DATAGRAM), b"x", &unix("missing"), 0)),
                errno(send_to(
                    &socket(libc::AF_UNIX, DATAGRAM),
                    b"x",
                    &crate::calls::internet("1.2.3.4:5"),
                    0,
                )),
            ];
            // SAFETY: the kernel refuses each of these pointers and counts.
            unsafe {
                let number = packets.as_raw_fd();
                for (call, arguments) in [
                    (libc::SYS_sendmsg, [8, 0, 0, 0]),
                    (libc::SYS_sendmmsg, [8, 1, 0, 0]),
                    (libc::SYS_connect, [8, 16, 0, 0]),
                    (libc::SYS_connect, [8, 0, 0, 0]),
                    (libc::SYS_connect, [8, -1, 0, 0]),
                ] {
                    let [first, second, third, fourth]: [libc::c_long; 4] = arguments;
                    let answer = libc::syscall(call, number, first, second, third, fourth);
                    assert!(answer < 0);
                    errors.push(std::io::Error::last_os_error().raw_os_error().unwrap());
                }
            }
            format!("{errors:?}")
        };
        let (mut read, mut write) = pipe();
        place.unmediated(|| write.write_all(each().as_bytes()).unwrap());
        drop(write);
        let mut expected = String::new();
        read.read_to_string(&mut expected).unwrap();
        place.mediated(|| assert_eq!(each(), expected));
    });
}

#[test]
fn a_broken_pipe_signals_its_sender() {
    as_each_user(|place| {
        place.mediated(|| {
            use nix::sys::signal::{SigSet, Signal};
            let set = SigSet::from(Signal::SIGPIPE);
            set.thread_block().unwrap();
            let (left, right) = UnixStream::pair().unwrap();
            drop(right);
            assert_eq!(errno(send_message(&left.into(), b"x", &[], &[], 0)), libc::EPIPE);
            // Returns at once, or the test never ends.
            assert_eq!(set.wait().unwrap(), Signal::SIGPIPE);
        });
    });
}

#[test]
fn a_caller_that_hides_itself_is_refused() {
    as_each_user(|place| {
        place.mediated(|| {
            let _server = UnixDatagram::bind(place.path("in/server")).unwrap();
            for (dumpable, expected) in [(0, libc::EPERM), (1, 0)] {
                // SAFETY: integers.
                assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, dumpable, 0, 0, 0) }, 0);
                let answer =
                    send_to(&socket(libc::AF_UNIX, DATAGRAM), b"x", &unix(place.path("in/server")), 0);
                assert_eq!(errno(answer), expected);
            }
        });
    });
}
