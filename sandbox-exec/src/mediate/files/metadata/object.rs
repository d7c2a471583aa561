use std::os::fd::OwnedFd;

use ipc::refusal::Target;
use nix::errno::Errno;
use nix::libc;
use nix::sys::stat::{FileStat, fstat, major};
use nix::sys::statfs::{FsType, fstatfs};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use nix::unistd::{getegid, geteuid, getgroups};

use super::Metadata;
use super::change::Change;
use super::resolve::FoundFile;
use crate::mediate::files::tree::{self, ProcessTree};
use crate::mediate::refusals::Denied;

// `PIPEFS_MAGIC` and `SOCKFS_MAGIC` (linux/magic.h).
const PIPES: FsType = FsType(0x5049_5045);
const SOCKETS: FsType = FsType(0x534F_434B);

/// Major number of the null device and similar memory devices (Documentation/admin-guide/devices.txt).
const MEMORY_DEVICES: libc::c_uint = 1;

impl Metadata {
    /// Checks that a change to a file is allowed. Fails with `EACCES` if it is not.
    pub(super) fn admit(&self, tree: &ProcessTree, found: &FoundFile, change: &Change) -> Result<(), Denied> {
        let Err(denied) = tree.contains(&found.file) else {
            return Ok(());
        };
        let status = fstat(&found.file)?;
        let admitted = tree.contained(&found.file)?
            || found.held && self.is_of_its_holders(&found.file, &status)?
            || change.is_touch() && is_memory_device(&status);
        if admitted { Ok(()) } else { Err(of_rules(&found.file, &status, change, denied)) }
    }

    fn is_of_its_holders(&self, file: &OwnedFd, status: &FileStat) -> Result<bool, Errno> {
        let memory = status.st_dev == self.memory && status.st_nlink == 0;
        Ok(memory || matches!(fstatfs(file)?.filesystem_type(), PIPES | SOCKETS))
    }
}

/// Returns the denial of a change. It counts as a denial by the rules only if the file has a name, and if the user
/// could make the change without the sandbox.
fn of_rules(file: &OwnedFd, status: &FileStat, change: &Change, errno: Errno) -> Denied {
    match tree::name(file) {
        Ok(name) if errno == Errno::EACCES && status.st_nlink > 0 && permits(file, status, change) => {
            Denied::Rules { target: Target::File(name.into()), errno }
        }
        _ => errno.into(),
    }
}

/// True if plain permissions and the mount allow a change. Root may make any, the owner all but some changes of the
/// owner, and any user with write permission may set the times to now.
fn permits(file: &OwnedFd, status: &FileStat, change: &Change) -> bool {
    if fstatvfs(file).is_ok_and(|mounted| mounted.flags().contains(FsFlags::ST_RDONLY)) {
        return false;
    }
    let user = geteuid();
    let owns = status.st_uid == user.as_raw();
    user.is_root()
        || match change {
            Change::Owner(owner, group) => {
                let groups = || getgroups().unwrap_or_default().into_iter().chain([getegid()]);
                let unchanged = [libc::uid_t::MAX, status.st_uid].contains(owner);
                owns && unchanged
                    && (*group == libc::gid_t::MAX || groups().any(|own| own.as_raw() == *group))
            }
            change if change.is_touch() => owns || tree::is_writable(file),
            _ => owns,
        }
}

fn is_memory_device(status: &FileStat) -> bool {
    status.st_mode & libc::S_IFMT == libc::S_IFCHR && major(status.st_rdev) == u64::from(MEMORY_DEVICES)
}
