use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::{Mode, fchmod, fstat, mkdirat};
use nix::unistd::geteuid;

#[derive(Debug)]
pub(super) struct RecordingDirectory {
    descriptor: OwnedFd,
    path: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    #[error("{0}: the directory is not empty\n  hint: name a directory that does not exist yet")]
    NotEmpty(PathBuf),
    #[error("{0}: the directory belongs to another user\n  hint: name a directory that does not exist yet")]
    NotOurs(PathBuf),
    #[error("{path}: {source}")]
    Unusable { path: PathBuf, source: io::Error },
}

impl RecordingDirectory {
    pub(super) fn create(path: &Path) -> Result<Self, DirectoryError> {
        let unusable =
            |errno: Errno| DirectoryError::Unusable { path: path.to_owned(), source: errno.into() };
        match mkdirat(nix::fcntl::AT_FDCWD, path, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(unusable(errno)),
        }
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let descriptor = open(path, flags, Mode::empty()).map_err(unusable)?;
        if fstat(&descriptor).map_err(unusable)?.st_uid != geteuid().as_raw() {
            return Err(DirectoryError::NotOurs(path.to_owned()));
        }
        let mut entries = std::fs::read_dir(path)
            .map_err(|source| DirectoryError::Unusable { path: path.to_owned(), source })?;
        if entries.next().is_some() {
            return Err(DirectoryError::NotEmpty(path.to_owned()));
        }
        fchmod(&descriptor, Mode::S_IRWXU).map_err(unusable)?;
        Ok(Self { descriptor, path: path.to_owned() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(openat(&self.descriptor, name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?.into())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn it_is_made_for_us_alone_or_was_empty() {
        let temp = tempfile::tempdir().unwrap();
        let place = temp.path().join("run");
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        let directory = RecordingDirectory::create(&place).unwrap();
        assert_eq!(mode(&place), 0o700);
        // An empty directory of this user is used. Other users lose access to it.
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
        RecordingDirectory::create(&place).unwrap();
        assert_eq!(mode(&place), 0o700);
        directory.file("a").unwrap();
        assert_eq!(mode(&place.join("a")), 0o600);
        assert!(directory.file("a").is_err(), "nothing is written twice");
        let error = RecordingDirectory::create(&place).unwrap_err().to_string();
        assert!(error.contains("is not empty") && error.contains("hint:"), "{error}");
    }

    #[test]
    fn a_link_a_file_and_a_missing_parent_are_refused() {
        let temp = tempfile::tempdir().unwrap();
        let place = |name: &str| temp.path().join(name);
        std::fs::create_dir(place("real")).unwrap();
        symlink("real", place("link")).unwrap();
        std::fs::write(place("file"), "").unwrap();
        for name in ["link", "file", "missing/run"] {
            assert!(
                matches!(RecordingDirectory::create(&place(name)), Err(DirectoryError::Unusable { .. })),
                "{name}"
            );
        }
    }
}
