//! Failures: one sentence for the model with what to do, and for the supervisor the system call that failed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ipc::denial::Operation;
use ipc::tool::{FailedAccess, ToolError, ToolErrorKind};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::libc;
use nix::unistd::{AccessFlags, faccessat};

/// Why a tool stopped before it was done.
#[derive(Debug)]
pub enum Stop {
    /// It failed.
    Failed(ToolError),
    /// It was cancelled, or nobody listens any more.
    Cancelled,
}

/// What a tool brings.
pub type Result<T> = std::result::Result<T, Stop>;

/// A failure that no system call reported.
pub fn failed(kind: ToolErrorKind, message: impl Into<String>) -> Stop {
    Stop::Failed(ToolError { kind, message: message.into(), access: None })
}

/// A failure that a system call reported.
pub fn refused(operation: Operation, path: &Path, errno: Errno) -> Stop {
    let permitted_by_mode = permitted_by_mode(operation, path);
    let access = FailedAccess {
        operation,
        path: path.into(),
        errno: errno as i32,
        permitted_by_mode,
        nearest: missing(path).then(|| nearest_existing(path).map(Into::into)).flatten(),
    };
    let message = sentence(operation, path, errno, permitted_by_mode);
    Stop::Failed(ToolError { kind: kind(errno), message, access: Some(access) })
}

/// As [`refused`], of an error of the standard library; one without an error number counts as `EIO`.
pub fn refused_io(operation: Operation, path: &Path, error: &io::Error) -> Stop {
    refused(operation, path, errno_of(error))
}

/// The error number of an error of the standard library; `EIO` where it has none.
pub fn errno_of(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn kind(errno: Errno) -> ToolErrorKind {
    match errno {
        Errno::ENOENT => ToolErrorKind::NotFound,
        Errno::ENOTDIR | Errno::EISDIR | Errno::ELOOP | Errno::ENXIO => ToolErrorKind::WrongKind,
        Errno::EACCES | Errno::EPERM | Errno::EROFS => ToolErrorKind::Refused,
        Errno::ENAMETOOLONG | Errno::EINVAL => ToolErrorKind::InvalidArgument,
        _ => ToolErrorKind::System,
    }
}

fn sentence(operation: Operation, path: &Path, errno: Errno, permitted_by_mode: bool) -> String {
    let shown = path.display();
    match errno {
        Errno::ENOENT => match nearest_existing(path) {
            Some(nearest) => format!(
                "`{shown}` does not exist; `{}` does: list_directory shows what is in it.",
                nearest.display()
            ),
            None => format!("`{shown}` does not exist."),
        },
        Errno::ENOTDIR => {
            format!("`{shown}` leads through something that is not a directory; check the path.")
        }
        Errno::EISDIR => format!("`{shown}` is a directory; name a file in it."),
        Errno::ELOOP => format!("`{shown}` leads through too many symbolic links; name the file itself."),
        // open(2): a socket, or a device that is not there.
        Errno::ENXIO => {
            format!("`{shown}` is a socket or an absent device; only regular files can be read or changed.")
        }
        Errno::EACCES | Errno::EPERM | Errno::EROFS if permitted_by_mode => {
            format!("The sandbox refused to {operation} `{shown}` ({errno:?}); work within what it allows.")
        }
        Errno::EACCES | Errno::EPERM | Errno::EROFS => format!(
            "The permissions of `{shown}` do not let this user {operation} it ({errno:?}); leave it alone, or say that it is needed."
        ),
        _ => format!("Could not {operation} `{shown}`: {} ({errno:?}).", errno.desc()),
    }
}

fn missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The nearest ancestor that exists.
fn nearest_existing(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).find(|ancestor| ancestor.exists())
}

/// Whether plain permissions would have allowed it: access(2) asks them, for Landlock does not restrict it (landlock(7),
/// "Current limitations"), and a read-only mount only after them. What does not exist is judged by its nearest existing
/// ancestor.
pub fn permitted_by_mode(operation: Operation, path: &Path) -> bool {
    let allowed = |path: &Path, mode| match faccessat(AT_FDCWD, path, mode, AtFlags::AT_EACCESS) {
        Ok(()) => true,
        // A file system that is read-only as a whole says so before the permissions are asked.
        Err(Errno::EROFS) => !is_read_only_file_system(path),
        Err(_) => false,
    };
    match operation {
        Operation::Read => allowed(path, AccessFlags::R_OK),
        Operation::Execute => allowed(path, AccessFlags::X_OK),
        Operation::Write if path.symlink_metadata().is_ok() => allowed(path, AccessFlags::W_OK),
        Operation::Write => nearest_existing(path)
            .is_some_and(|parent| allowed(parent, AccessFlags::W_OK | AccessFlags::X_OK)),
        Operation::Network => true,
    }
}

/// Whether the file system itself is read-only, whatever the mount: the options after ` - ` in `proc_pid_mountinfo(5)`.
fn is_read_only_file_system(path: &Path) -> bool {
    let device = fs::metadata(path).map(|meta| (libc::major(meta.dev()), libc::minor(meta.dev())));
    let (Ok((major, minor)), Ok(mounts)) = (device, fs::read_to_string("/proc/self/mountinfo")) else {
        return false;
    };
    is_read_only_in(&mounts, &format!("{major}:{minor}"))
}

fn is_read_only_in(mounts: &str, device: &str) -> bool {
    let options =
        |line: &str| line.split_once(" - ").and_then(|(_, rest)| Some(rest.split(' ').nth(2)?.to_owned()));
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device));
    line.and_then(options).is_some_and(|options| options.split(',').any(|option| option == "ro"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(stop: Stop) -> ToolError {
        match stop {
            Stop::Failed(error) => error,
            Stop::Cancelled => panic!("cancelled"),
        }
    }

    #[test]
    fn a_missing_file_names_the_nearest_directory() {
        let error = error(refused(Operation::Read, Path::new("/usr/no/such"), Errno::ENOENT));
        assert_eq!(error.kind, ToolErrorKind::NotFound);
        assert_eq!(
            error.message,
            "`/usr/no/such` does not exist; `/usr` does: list_directory shows what is in it."
        );
    }

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

    #[test]
    fn a_refusal_says_whether_it_was_the_sandbox() {
        let directory = tempfile::tempdir().unwrap();
        let stop = refused(Operation::Write, &directory.path().join("new"), Errno::EACCES);
        let error = error(stop);
        assert_eq!(error.kind, ToolErrorKind::Refused);
        assert!(error.message.starts_with("The sandbox refused to write"), "{}", error.message);
        let access = error.access.unwrap();
        assert_eq!((access.errno, access.permitted_by_mode), (13, true));
    }
}
