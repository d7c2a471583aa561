//! Private temporary directories.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::{Builder, TempDir};

/// Directories that are tried if the system's temporary directory cannot be used.
const ELSEWHERE: [&str; 2] = ["/tmp", "/var/tmp"];

/// Creates a private directory in the system's temporary directory, or elsewhere if that fails. Dropping the value
/// removes the directory.
pub(crate) fn private_directory(prefix: &str) -> io::Result<TempDir> {
    private_in(&std::env::temp_dir(), prefix).or_else(|error| {
        let made = ELSEWHERE.iter().find_map(|place| private_in(Path::new(place), prefix).ok());
        made.ok_or(error)
    })
}

/// Creates a private directory in `place` with mode 0700, independent of the umask.
pub(crate) fn private_in(place: &Path, prefix: &str) -> io::Result<TempDir> {
    Builder::new().permissions(Permissions::from_mode(0o700)).prefix(prefix).tempdir_in(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_enters_it() {
        let made = private_directory("bailiwick-").unwrap();
        assert_eq!(made.path().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
