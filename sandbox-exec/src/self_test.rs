//! Forbidden acts that this process tries for `doctor`: once *inside* a confinement, and once outside as the control.
//! Each is harmless if it succeeds.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};

use ipc::rights::Network;
use nix::libc::{self, c_int};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::getppid;
use serde::Serialize;

use crate::descendants;
use crate::system::forbidden;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub act: &'static str,
    pub denied: bool,
    pub errno: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    pub hidden: Option<PathBuf>,
    pub name: Option<OsString>,
}

pub fn run(targets: &Targets, net: &Network, out: &mut impl Write) -> io::Result<()> {
    for (act, outcome) in acts(targets, net) {
        let errno = outcome.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        let denied = matches!(errno, libc::EPERM | libc::EACCES | libc::ENOSYS | libc::EROFS)
            || ABSENT.iter().any(|(absent, answer)| *absent == act && *answer == errno);
        serde_json::to_writer(&mut *out, &Outcome { act, denied, errno })?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Errors that also count as denials of an act: its target is missing, for example in the sandbox's own `/dev`.
const ABSENT: &[(&str, c_int)] = &[
    ("write the home", libc::ENOENT),
    ("open /dev/tty", libc::ENXIO),
    ("open the kernel's log", libc::ENOENT),
    ("read a hidden file", libc::ENOENT),
    ("reach the network", libc::ENETUNREACH),
    ("reach the network", libc::ECONNREFUSED),
    ("reach the network over IPv6", libc::ENETUNREACH),
    ("reach an abstract unix socket", libc::ECONNREFUSED),
];

fn acts(targets: &Targets, net: &Network) -> Vec<(&'static str, io::Result<()>)> {
    let parent = getppid().as_raw();
    let mut acts = vec![
        ("write the home", write_home()),
        ("write /proc/self/comm", open(Path::new("/proc/self/comm"), true)),
        ("open /dev/tty", open(Path::new("/dev/tty"), true)),
        ("open the kernel's log", open(Path::new("/dev/kmsg"), true)),
        ("signal the parent", descendants::send(parent, 0)),
        ("trace the parent", forbidden::seize(parent)),
        ("read the parent's environment", open(&PathBuf::from(format!("/proc/{parent}/environ")), false)),
        ("make a user namespace", unshare(CloneFlags::CLONE_NEWUSER).map_err(Into::into)),
        ("use io_uring", forbidden::io_uring().or_else(allow(libc::EFAULT))),
        ("use a kernel keyring", forbidden::keyring().or_else(allow(libc::ENOKEY))),
        ("change the mounts", forbidden::mount().or_else(allow(libc::EFAULT))),
        ("take a lease", forbidden::lease().or_else(allow(libc::EBADF))),
        ("set a set-id bit", set_id().or_else(allow(libc::ENOENT))),
    ];
    if !net.is_the_machines() {
        let of_nobody = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        acts.push(("reach the network", reach(Ipv4Addr::new(192, 0, 2, 1).into())));
        acts.push(("reach the network over IPv6", reach(of_nobody.into())));
    }
    acts.extend(SOCKETS.iter().map(|(act, family, kind)| (*act, forbidden::socket(*family, *kind))));
    if let Some(hidden) = &targets.hidden {
        acts.push(("read a hidden file", open(hidden, false)));
    }
    if let Some(name) = &targets.name {
        acts.push(("reach an abstract unix socket", meet(name)));
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

fn set_id() -> io::Result<()> {
    fs::set_permissions("/nonexistent/sandbox-exec", fs::Permissions::from_mode(0o4755))
}

fn meet(name: &OsStr) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(name.as_bytes())?).map(drop)
}

/// Looks for a route to an unassigned address (RFC 5737, RFC 3849); sends nothing.
fn reach(address: IpAddr) -> io::Result<()> {
    let own: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((own, 0))?.connect((address, 9))
}

/// Returns a function that treats the error `errno` as success: the kernel reports it only after the permission check.
fn allow(errno: c_int) -> impl Fn(io::Error) -> io::Result<()> {
    move |error| {
        if error.raw_os_error() == Some(errno) { Ok(()) } else { Err(error) }
    }
}
