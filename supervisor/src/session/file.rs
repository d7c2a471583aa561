//! The log's file: private, new, never a link, and appended to in whole lines.

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

use super::LogError;

/// Makes the directory of the logs, if it is missing, and makes sure that it is ours alone.
pub(super) fn open_directory(path: &Path) -> Result<File, LogError> {
    let failed = |source| LogError::Directory { path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let directory = File::from(open(path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?);
    let metadata = directory.metadata().map_err(failed)?;
    let user = nix::unistd::geteuid().as_raw();
    if metadata.uid() != user {
        return Err(LogError::Owner { path: path.to_owned(), owner: metadata.uid(), user });
    }
    if metadata.mode() & 0o077 != 0 {
        directory.set_permissions(PermissionsExt::from_mode(0o700)).map_err(failed)?;
    }
    Ok(directory)
}

/// A file of whole lines.
#[derive(Debug)]
pub(super) struct LineFile {
    file: File,
    path: PathBuf,
    /// How many bytes are whole lines.
    whole: u64,
    /// Whether bytes beyond `whole` may be in the file.
    torn: bool,
}

impl LineFile {
    /// Makes a new file; one that exists, or a link, is an error.
    pub(super) fn create(directory: &File, path: PathBuf) -> Result<Self, LogError> {
        let name = path.file_name().unwrap_or_default();
        let flags = OFlag::O_WRONLY
            | OFlag::O_APPEND
            | OFlag::O_CREAT
            | OFlag::O_EXCL
            | OFlag::O_NOFOLLOW
            | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        match openat(directory, name, flags, mode) {
            Ok(descriptor) => Ok(Self { file: descriptor.into(), path, whole: 0, torn: false }),
            Err(errno) => Err(LogError::Create { path, source: errno.into() }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line with its line feed. On an error the file is as long as before: a half-written line is cut off,
    /// now or before the next one.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.mend()?;
        self.torn = true;
        // One write(2) a line: the kernel takes all of it or the disk is full.
        let written = self.file.write_all(line);
        if written.is_ok() {
            self.torn = false;
            self.whole += line.len() as u64;
            return Ok(());
        }
        // If this fails too, the next append tries again before it writes.
        let _ = self.mend();
        written
    }

    fn mend(&mut self) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.whole)?;
            self.torn = false;
        }
        Ok(())
    }

    /// Another handle of the same file.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Waits until everything is on the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
