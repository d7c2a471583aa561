//! Errors of tools. Each has a sentence with a remedy for the model, and the failed system call for the supervisor.

use std::io;
use std::path::Path;

use ipc::denial::Operation;
use ipc::tool::{FailedAccess, ToolError, ToolErrorKind};
use nix::errno::Errno;
use sandbox_exec::modes::{missing, nearest_existing, permitted_by_mode};

#[derive(Debug)]
pub enum Stop {
    Failed(ToolError),
    /// The call was cancelled, or nobody receives its messages any more.
    Cancelled,
}

pub type Result<T> = std::result::Result<T, Stop>;

/// Returns an error that does not come from a system call.
pub fn failed(kind: ToolErrorKind, message: impl Into<String>) -> Stop {
    Stop::Failed(ToolError { kind, message: message.into(), access: None })
}

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

/// Returns the error of a failed system call. An `error` without an error number counts as `EIO`.
pub fn refused_io(operation: Operation, path: &Path, error: &io::Error) -> Stop {
    refused(operation, path, errno_of(error))
}

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
        // open(2): a socket, or a missing device.
        Errno::ENXIO => {
            format!("`{shown}` is a socket or an absent device; only regular files can be read or changed.")
        }
        // A read-only mount may be the sandbox's or the machine's; the supervisor finds out which.
        Errno::EROFS => format!(
            "Cannot {operation} `{shown}`: its file system is mounted read-only ({errno:?}); leave the path alone, or say that you need to change it."
        ),
        Errno::EACCES | Errno::EPERM if permitted_by_mode => {
            format!("The sandbox refused to {operation} `{shown}` ({errno:?}); work within what it allows.")
        }
        Errno::EACCES | Errno::EPERM => format!(
            "The permissions of `{shown}` do not let this user {operation} it ({errno:?}); leave the path alone, or say that you need it."
        ),
        _ => format!("Could not {operation} `{shown}`: {} ({errno:?}).", errno.desc()),
    }
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
    fn a_read_only_file_system_is_not_taken_for_permissions() {
        for permitted_by_mode in [true, false] {
            let said = sentence(Operation::Write, Path::new("/p/a"), Errno::EROFS, permitted_by_mode);
            assert!(
                said.starts_with("Cannot write `/p/a`: its file system is mounted read-only (EROFS)"),
                "{said}"
            );
        }
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
