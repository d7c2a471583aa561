//! Files of the store: our own, read whole and written whole.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Makes the directory.
pub(super) fn make(place: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(place)
}

/// Reads a regular file of our own user that nobody else may write, of at most this many bytes.
pub(super) fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if meta.uid() != nix::unistd::geteuid().as_raw() || meta.mode() & 0o022 != 0 {
        return Err(io::Error::other("another user could have written it"));
    }
    let mut bytes = Vec::new();
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Makes a file, if there is none of the name.
pub(super) fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a file by one that is whole.
pub(super) fn replace(place: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Made with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(place)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(place)?.sync_all()
}
