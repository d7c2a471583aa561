use std::fs;

use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Bare,
    Container,
}

pub(crate) fn deny_as_containers_do() {
    let rules = [libc::SYS_pidfd_getfd, libc::SYS_kcmp].map(|call| (call, vec![]));
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules.into(), SeccompAction::Allow, denied, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

pub(crate) fn private_network() {
    let (uid, gid) = (Uid::effective(), Gid::effective());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).unwrap();
    fs::write("/proc/self/setgroups", "deny").unwrap();
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1")).unwrap();
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1")).unwrap();
    raise_loopback();
    // SAFETY: integers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }, 0);
}

pub(crate) fn raise_loopback() {
    // SAFETY: a structure of bytes and integers, which the kernel reads.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[..2].copy_from_slice(&[b'l'.cast_signed(), b'o'.cast_signed()]);
        request.ifr_ifru.ifru_flags = i16::try_from(libc::IFF_UP).unwrap();
        assert_eq!(libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &raw const request), 0);
        libc::close(socket);
    }
}

pub(crate) fn drop_capabilities() {
    for set in
        [caps::CapSet::Ambient, caps::CapSet::Inheritable, caps::CapSet::Effective, caps::CapSet::Permitted]
    {
        caps::clear(None, set).unwrap();
    }
}
