//! Removal of temporary files that a worker could not rename, since it was killed.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ipc::message::Leftovers;
use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{SFlag, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::commit::{PREFIX, SUFFIX};
use super::place::{Missing, open_directory, resolve};

/// Maximum number of entries of a directory that are checked.
const MOST_ENTRIES: usize = 100_000;

/// Removes the temporary files in the given directories. Ignores errors.
pub fn remove(leftovers: &Leftovers) {
    let mut directories = Vec::new();
    for place in &leftovers.places {
        let Ok(path) = resolve(place.as_path()) else { continue };
        directories.extend(path.parent().map(Path::to_owned));
        directories.push(path);
    }
    directories.sort();
    directories.dedup();
    for directory in directories {
        // No message could report an error, and later work does not depend on this.
        let _ = remove_in(&directory, leftovers.before_ns);
    }
}

fn remove_in(directory: &Path, before_ns: i64) -> io::Result<()> {
    let opened = open_directory(directory, Missing::Fail)?;
    for entry in fs::read_dir(directory)?.take(MOST_ENTRIES) {
        let name = entry?.file_name();
        if is_temporary(name.as_bytes()) && is_old(&opened, &name, before_ns)? {
            unlinkat(&opened, name.as_os_str(), UnlinkatFlags::NoRemoveDir)?;
        }
    }
    Ok(())
}

/// True for a name that [`super::commit`] gives to temporary files.
fn is_temporary(name: &[u8]) -> bool {
    let digits = name.strip_prefix(PREFIX.as_bytes()).and_then(|name| name.strip_suffix(SUFFIX.as_bytes()));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// True for a file or link whose last change was before `before_ns`. A newer one may be in use by another process.
fn is_old(directory: &OwnedFd, name: &OsStr, before_ns: i64) -> Result<bool, Errno> {
    let status = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let changed_ns = status.st_ctime.saturating_mul(1_000_000_000).saturating_add(status.st_ctime_nsec);
    let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
    Ok(matches!(kind, SFlag::S_IFREG | SFlag::S_IFLNK) && changed_ns < before_ns)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_cut_off_writes_left_goes_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir(root.join(".bw-00000000000000ff.tmp")).unwrap();
        let left = [".bw-0123456789abcdef.tmp", "a/.bw-0123456789abcdef.tmp"];
        let kept = ["file", ".bw-0123456789abcdeg.tmp", ".bw-012345.tmp", "a/b/.bw-0123456789abcdef.tmp"];
        for name in left.iter().chain(&kept) {
            fs::write(root.join(name), "x").unwrap();
        }
        symlink("file", root.join(".bw-1111111111111111.tmp")).unwrap();
        symlink("a/there", root.join("link")).unwrap();
        let places = ["file", "link", "missing/file"].map(|name| (&root.join(name)).into()).to_vec();
        remove(&Leftovers { places: places.clone(), before_ns: 0 });
        assert!(root.join(left[0]).exists(), "another process may have made what is newer");
        remove(&Leftovers { places, before_ns: i64::MAX });
        for name in left {
            assert!(!root.join(name).exists(), "{name}");
        }
        assert!(root.join(".bw-1111111111111111.tmp").symlink_metadata().is_err());
        assert!(root.join(".bw-00000000000000ff.tmp").is_dir());
        for name in kept {
            assert!(root.join(name).exists(), "{name}");
        }
    }
}
