//! Files that tell a program how to resolve names (`resolv.conf(5)`, `hosts(5)`), if it reaches hosts by name.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use ipc::rights::HostName;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::gethostname;

use crate::hosts::RESOLVER;
use crate::tree::resolve;

const SETTINGS: &str = "resolv.conf";
const HOSTS: &str = "hosts";

/// Returns the files to replace, as paths without links, each with the name of its replacement. A missing file is not
/// replaced: programs then ask 127.0.0.1, where the broker's resolver is, too.
pub(crate) fn files() -> Vec<(PathBuf, &'static str)> {
    [SETTINGS, HOSTS].map(|name| (resolve(&Path::new("/etc").join(name)), name)).into()
}

pub(crate) fn host_name() -> Option<HostName> {
    gethostname().ok()?.to_str()?.parse().ok()
}

pub(super) fn write(directory: BorrowedFd<'_>) -> io::Result<()> {
    let own = host_name().map(|name| format!("127.0.0.1 {name}\n")).unwrap_or_default();
    let contents = [
        (SETTINGS, format!("nameserver {RESOLVER}\n")),
        (HOSTS, format!("127.0.0.1 localhost\n::1 localhost\n{own}")),
    ];
    for (name, content) in contents {
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let file = openat(directory, name, flags, Mode::from_bits_truncate(0o444))?;
        File::from(file).write_all(content.as_bytes())?;
    }
    Ok(())
}
