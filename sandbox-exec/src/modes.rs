//! Checks of plain file permissions, which apply without the sandbox, too: a failure by them is no denial of it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ipc::denial::Operation;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::libc;
use nix::unistd::{AccessFlags, faccessat, getegid, geteuid};

/// True if plain permissions allow the operation. Uses access(2), which ignores Landlock (landlock(7), "Current
/// limitations") and checks permissions before a read-only mount. For a missing path, checks the nearest existing
/// directory above it.
pub fn permitted_by_mode(operation: Operation, path: &Path) -> bool {
    let allowed = |path: &Path, mode| match faccessat(AT_FDCWD, path, mode, AtFlags::AT_EACCESS) {
        Ok(()) => true,
        // A file system that is read-only as a whole fails before the permissions are checked.
        Err(Errno::EROFS) => !is_read_only_file_system(path),
        // In the floor tier the broker returns this, too, where a write would be denied.
        Err(Errno::EACCES) if mode.contains(AccessFlags::W_OK) => mode_allows(path, mode),
        Err(_) => false,
    };
    match operation {
        Operation::Read => allowed(path, AccessFlags::R_OK),
        Operation::Execute => allowed(path, AccessFlags::X_OK),
        Operation::Write if path.symlink_metadata().is_ok() => allowed(path, AccessFlags::W_OK),
        Operation::Write => nearest_existing(path)
            .is_some_and(|parent| allowed(parent, AccessFlags::W_OK | AccessFlags::X_OK)),
        Operation::Network | Operation::Signal | Operation::Share | Operation::Call => true,
    }
}

/// True if the mode bits allow the access `wanted` to this user. Ignores access control lists.
fn mode_allows(path: &Path, wanted: AccessFlags) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    let has_group = || meta.gid() == getegid().as_raw() || groups().contains(&meta.gid());
    let shift = match () {
        () if meta.uid() == geteuid().as_raw() => 6,
        () if has_group() => 3,
        () => 0,
    };
    let wanted = wanted.bits().cast_unsigned();
    meta.mode() >> shift & wanted == wanted
}

fn groups() -> Vec<u32> {
    nix::unistd::getgroups().unwrap_or_default().into_iter().map(nix::unistd::Gid::as_raw).collect()
}

/// True if the file system is read-only, not only its mount: `ro` in the options after ` - ` (`proc_pid_mountinfo(5)`).
fn is_read_only_file_system(path: &Path) -> bool {
    let device = fs::metadata(path).map(|meta| (libc::major(meta.dev()), libc::minor(meta.dev())));
    let (Ok((major, minor)), Ok(mounts)) = (device, fs::read("/proc/self/mountinfo")) else {
        return false;
    };
    // Names in it hold any bytes.
    is_read_only_in(&String::from_utf8_lossy(&mounts), &format!("{major}:{minor}"))
}

fn is_read_only_in(mounts: &str, device: &str) -> bool {
    let options =
        |line: &str| line.split_once(" - ").and_then(|(_, rest)| Some(rest.split(' ').nth(2)?.to_owned()));
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device));
    line.and_then(options).is_some_and(|options| options.split(',').any(|option| option == "ro"))
}

/// True if nothing exists at the path, not even a dangling link.
pub fn missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

pub fn nearest_existing(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).find(|ancestor| ancestor.exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_of_a_missing_file_is_that_of_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        assert!(permitted_by_mode(Operation::Write, &directory.path().join("a/b")));
        assert!(!permitted_by_mode(Operation::Read, &directory.path().join("a")));
    }

    #[test]
    fn a_file_system_that_is_read_only_is_no_refusal_of_ours() {
        let mounts = "29 1 254:0 / / ro,relatime - ext4 /dev/vda rw,discard\n\
                      30 29 7:1 / /usr ro,relatime shared:1 - squashfs /dev/loop1 ro\n";
        assert!(!is_read_only_in(mounts, "254:0"));
        assert!(is_read_only_in(mounts, "7:1"));
        assert!(!is_read_only_in(mounts, "7:2"));
    }
}
