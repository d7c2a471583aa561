//! A place for what has no part in a git directory: moved there, nothing acts on it, and nothing is lost.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::SFlag;

use super::beneath;

/// The most bytes that are copied where a rename is not possible: 1 GiB.
const MOST_BYTES: u64 = 1 << 30;

/// How deep a directory is copied; each level holds a descriptor.
const DEEPEST: usize = 100;

/// Moves what stands under a name below `directory`, which is made for it; its new path.
pub(super) fn move_aside(root: &OwnedFd, path: &Path, directory: &Path) -> io::Result<PathBuf> {
    let (parent, name) = beneath::open_parent(root, path, false)?;
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let target = free_name(directory, name);
    match renameat2(&parent, name, AT_FDCWD, &target, RenameFlags::RENAME_NOREPLACE) {
        // Another file system, or one that has no such rename.
        Err(Errno::EXDEV | Errno::EINVAL) => {
            copy(&parent, name, &target, &mut { MOST_BYTES }, DEEPEST).inspect_err(|_| remove(&target))?;
            beneath::remove(&parent, name)?;
        }
        moved => moved?,
    }
    Ok(target)
}

fn free_name(directory: &Path, name: &OsStr) -> PathBuf {
    let mut names = (0..).map(|number: u32| {
        let mut name = name.to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        directory.join::<OsString>(name)
    });
    names.find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| directory.join(name))
}

/// A copy that was not finished is of no use to anybody.
fn remove(target: &Path) {
    let removed = match fs::symlink_metadata(target) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(target),
        Ok(_) => fs::remove_file(target),
        Err(_) => Ok(()),
    };
    if let Err(error) = removed {
        tracing::warn!(path = %target.display(), %error, "cannot remove a partial copy");
    }
}

/// Copies files, directories and links; the rest has no content.
fn copy(at: &OwnedFd, name: &OsStr, target: &Path, left: &mut u64, depth: usize) -> io::Result<()> {
    let stat = beneath::stat(at, name)?;
    match beneath::kind(&stat) {
        SFlag::S_IFREG => copy_file(File::from(beneath::open_file(at, name)?), target, left),
        SFlag::S_IFLNK => symlink(beneath::target(at, name)?, target),
        SFlag::S_IFDIR => {
            let depth = depth.checked_sub(1).ok_or(Errno::ENAMETOOLONG)?;
            DirBuilder::new().mode(0o700).create(target)?;
            let directory = beneath::open_own_directory(at, name)?;
            for (entry, _) in beneath::list(&directory, usize::MAX)? {
                copy(&directory, &entry, &target.join(&entry), left, depth)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn copy_file(mut from: File, target: &Path, left: &mut u64) -> io::Result<()> {
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
    let size = from.metadata()?.len();
    *left = left.checked_sub(size).ok_or(Errno::EFBIG)?;
    io::copy(&mut io::Read::take(&mut from, size), &mut to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_copied_without_following_links_and_a_second_one_has_a_name_of_its_own() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("annex");
        fs::create_dir_all(tree.join("deep")).unwrap();
        fs::write(tree.join("deep/file"), "x").unwrap();
        symlink("/etc/passwd", tree.join("link")).unwrap();
        let root = beneath::open_root(place.path()).unwrap();
        let target = place.path().join("copy");
        copy(&root, OsStr::new("annex"), &target, &mut { 10 }, 3).unwrap();
        assert_eq!(fs::read(target.join("deep/file")).unwrap(), b"x");
        assert_eq!(fs::read_link(target.join("link")).unwrap(), Path::new("/etc/passwd"));
        let too_large = copy(&root, OsStr::new("annex"), &place.path().join("other"), &mut { 0 }, 3);
        assert_eq!(too_large.unwrap_err().raw_os_error(), Some(libc::EFBIG));

        let aside = place.path().join("aside");
        assert_eq!(move_aside(&root, Path::new("annex"), &aside).unwrap(), aside.join("annex"));
        fs::write(place.path().join("annex"), "y").unwrap();
        assert_eq!(move_aside(&root, Path::new("annex"), &aside).unwrap(), aside.join("annex.1"));
        assert!(!place.path().join("annex").exists());
    }
}
