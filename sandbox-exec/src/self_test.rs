//! Forbidden acts for `doctor`, tried by this process itself: run it *inside* a confinement, and beside it as the control.
//!
//! Each act is harmless where it succeeds: what it made is removed or closed at once.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::ptr;

use nix::libc::{self, c_int};
use serde::Serialize;

use crate::descendants;
use crate::system::check;

/// The outcome of one act.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// What was tried.
    pub act: &'static str,
    /// Whether the kernel refused it.
    pub denied: bool,
    /// The error number, 0 if the act succeeded.
    pub errno: i32,
}

/// Tries every act and writes a JSON object a line.
pub fn run(hidden: Option<&Path>, out: &mut impl Write) -> io::Result<()> {
    for (act, outcome) in acts(hidden) {
        let errno = outcome.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        let denied = matches!(errno, libc::EPERM | libc::EACCES | libc::ENOSYS | libc::EROFS)
            || ABSENT.iter().any(|(absent, answer)| *absent == act && *answer == errno);
        serde_json::to_writer(&mut *out, &Outcome { act, denied, errno })?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// What is not forbidden but not there: a terminal, a device in a `/dev` of its own, a file or a home under a `/tmp` of its own, a
/// network.
const ABSENT: &[(&str, c_int)] = &[
    ("write the home", libc::ENOENT),
    ("open /dev/tty", libc::ENXIO),
    ("open the kernel's log", libc::ENOENT),
    ("read a hidden file", libc::ENOENT),
    ("reach the network", libc::ENETUNREACH),
    ("reach the network over IPv6", libc::ENETUNREACH),
];

fn acts(hidden: Option<&Path>) -> Vec<(&'static str, io::Result<()>)> {
    // SAFETY: no arguments.
    let parent = unsafe { libc::getppid() };
    let mut acts = vec![
        ("write the home", write_home()),
        ("write /proc/self/comm", open(Path::new("/proc/self/comm"), true)),
        ("open /dev/tty", open(Path::new("/dev/tty"), true)),
        ("open the kernel's log", open(Path::new("/dev/kmsg"), true)),
        ("signal the parent", descendants::send(parent, 0)),
        ("trace the parent", trace(parent)),
        ("read the parent's environment", open(&PathBuf::from(format!("/proc/{parent}/environ")), false)),
        ("make a user namespace", unshare()),
        ("use io_uring", io_uring()),
        ("use a kernel keyring", keyring()),
        ("change the mounts", mount()),
        ("reach the network", reach(Ipv4Addr::new(192, 0, 2, 1).into())),
        ("reach the network over IPv6", reach(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into())),
    ];
    acts.extend(SOCKETS.iter().map(|(act, family, kind)| (*act, socket(*family, *kind))));
    if let Some(hidden) = hidden {
        acts.push(("read a hidden file", open(hidden, false)));
    }
    acts
}

const SOCKETS: &[(&str, c_int, c_int)] = &[
    ("open a raw socket", libc::AF_INET, libc::SOCK_RAW),
    ("open a packet socket", libc::AF_PACKET, libc::SOCK_RAW),
    ("open a vsock socket", libc::AF_VSOCK, libc::SOCK_STREAM),
    ("open a crypto socket", libc::AF_ALG, libc::SOCK_SEQPACKET),
];

fn write_home() -> io::Result<()> {
    let home = std::env::var_os("HOME").unwrap_or_else(|| "/".into());
    let path = Path::new(&home).join(format!(".sandbox-exec-self-test-{}", std::process::id()));
    File::create_new(&path)?;
    fs::remove_file(path)
}

fn open(path: &Path, write: bool) -> io::Result<()> {
    File::options().read(!write).write(write).open(path).map(drop)
}

fn trace(pid: c_int) -> io::Result<()> {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: seizing does not stop the tracee, and ends with this process.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, nothing, nothing) })
}

fn unshare() -> io::Result<()> {
    // SAFETY: takes flags; where it succeeds, this process is in a namespace of its own until it ends.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into())
}

fn io_uring() -> io::Result<()> {
    // SAFETY: the null pointer is a bad address where the call exists; nothing is made.
    let made = check(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, ptr::null::<libc::c_void>()) });
    made.or_else(allow(libc::EFAULT))
}

fn keyring() -> io::Result<()> {
    // SAFETY: KEYCTL_GET_KEYRING_ID of the session's keyring, without creating one; integers only.
    let found = check(unsafe { libc::syscall(libc::SYS_keyctl, libc::KEYCTL_GET_KEYRING_ID, -3, 0) });
    found.or_else(allow(libc::ENOKEY))
}

fn mount() -> io::Result<()> {
    // SAFETY: null pointers; where the call is permitted, the target is a bad address.
    let mounted = unsafe { libc::mount(ptr::null(), ptr::null(), ptr::null(), libc::MS_BIND, ptr::null()) };
    check(mounted.into()).or_else(allow(libc::EFAULT))
}

/// Asks for a way to an address of nobody's (RFC 5737, RFC 3849); nothing is sent.
fn reach(address: IpAddr) -> io::Result<()> {
    let own: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((own, 0))?.connect((address, 9))
}

fn socket(family: c_int, kind: c_int) -> io::Result<()> {
    // SAFETY: integers; the descriptor closes with this process.
    check(unsafe { libc::socket(family, kind, 0) }.into())
}

/// An error that comes only after the call was permitted.
fn allow(errno: c_int) -> impl Fn(io::Error) -> io::Result<()> {
    move |error| {
        if error.raw_os_error() == Some(errno) { Ok(()) } else { Err(error) }
    }
}
