//! Moves unwanted files out of the project instead of deleting them.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::SFlag;
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::beneath;

/// Maximum number of bytes that are copied if a file cannot be moved by a rename.
const MOST_BYTES: u64 = 1 << 30;

/// Maximum depth of a copied directory. The copy holds an open descriptor for each level.
const DEEPEST: usize = 100;

/// Prefix of the new names of files that cannot leave the project: a rename within the project needs no free space.
const BESIDE: &str = "bailiwick-moved-aside-";

#[derive(Clone, Copy, Debug)]
pub(super) struct Aside<'a> {
    /// Directory to which files are moved. If `None`, files are removed instead.
    pub(super) directory: Option<&'a Path>,
    /// Project, as an open directory and its path. If a move to `directory` fails, files are moved to the top of the
    /// project; if `None`, they are then removed.
    pub(super) project: Option<(&'a OwnedFd, &'a Path)>,
}

#[derive(Debug, Default)]
pub(super) struct TakenOut {
    /// New path of the file. `None` if it was removed.
    pub(super) moved_to: Option<PathBuf>,
    /// Error because of which the file was removed instead of moved; `None` without an error.
    pub(super) unmoved: Option<io::Error>,
}

impl Aside<'_> {
    /// Moves the entry `from` out of the directory `parent`, under the new `name`. Removes the entry if the move fails.
    pub(super) fn take_out(self, parent: &OwnedFd, from: &OsStr, name: &OsStr) -> nix::Result<TakenOut> {
        let is_gone = |removed: nix::Result<()>| matches!(removed, Ok(()) | Err(Errno::ENOENT));
        // An empty directory is removed: it has no content to keep.
        if is_gone(unlinkat(parent, from, UnlinkatFlags::RemoveDir)) {
            return Ok(TakenOut::default());
        }
        match self.move_out(parent, from, name) {
            Some(Ok(to)) => Ok(TakenOut { moved_to: Some(to), unmoved: None }),
            Some(Err(error)) => {
                beneath::remove(parent, from)?;
                Ok(TakenOut { moved_to: None, unmoved: Some(error) })
            }
            None => beneath::remove(parent, from).map(|()| TakenOut::default()),
        }
    }

    /// Moves the entry `from` and returns its new path. `None` if no directory to move files to is set.
    pub(super) fn move_out(
        self,
        parent: &OwnedFd,
        from: &OsStr,
        name: &OsStr,
    ) -> Option<io::Result<PathBuf>> {
        let moved = move_aside(parent, from, name, self.directory?);
        Some(match (moved, self.project) {
            (Err(_), Some((top, path))) => move_beside(parent, from, name, top).map(|to| path.join(to)),
            (moved, _) => moved,
        })
    }

    /// Returns the path of a new subdirectory for files that belong together. `None` if `directory` is `None`.
    pub(super) fn directory_for(self, name: &OsStr) -> Option<PathBuf> {
        let directory = self.directory?;
        Some(free_names(directory, name).find(|path| path.symlink_metadata().is_err()).unwrap_or_default())
    }
}

/// Moves a file into `directory`, and creates `directory` if it is missing. Returns the file's new path.
fn move_aside(parent: &OwnedFd, from: &OsStr, name: &OsStr, directory: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    for target in free_names(directory, name).filter(|path| path.symlink_metadata().is_err()) {
        match renameat2(parent, from, AT_FDCWD, &target, RenameFlags::RENAME_NOREPLACE) {
            // Another process took the name meanwhile.
            Err(Errno::EEXIST) => continue,
            // Another file system, or one without `RENAME_NOREPLACE`.
            Err(Errno::EXDEV | Errno::EINVAL) => {
                copy(parent, from, &target, &mut { MOST_BYTES }, DEEPEST).inspect_err(|_| remove(&target))?;
                beneath::remove(parent, from)?;
            }
            moved => moved?,
        }
        return Ok(target);
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Renames a file so that it is at the top of its project. Returns its new name there.
fn move_beside(parent: &OwnedFd, from: &OsStr, name: &OsStr, top: &OwnedFd) -> io::Result<PathBuf> {
    let mut beside = OsString::from(BESIDE);
    beside.push(name);
    for target in free_names(Path::new(""), &beside) {
        match renameat2(parent, from, top, &target, RenameFlags::RENAME_NOREPLACE) {
            Err(Errno::EEXIST) => {}
            moved => return Ok(moved.map(|()| target)?),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn free_names<'a>(directory: &'a Path, name: &'a OsStr) -> impl Iterator<Item = PathBuf> + 'a {
    (0..100_000).map(move |number: u32| {
        let mut name = name.to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        directory.join::<OsString>(name)
    })
}

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

/// Copies a file, link or directory tree. Skips devices, sockets and pipes, which have no content.
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

        let directory = place.path().join("aside");
        let aside = Aside { directory: Some(&directory), project: Some((&root, place.path())) };
        let name = OsStr::new("annex");
        let moved = || aside.take_out(&root, name, name).unwrap().moved_to;
        assert_eq!(moved(), Some(directory.join("annex")));
        fs::write(place.path().join("annex"), "y").unwrap();
        assert_eq!(moved(), Some(directory.join("annex.1")));
        assert!(!place.path().join("annex").exists());
        assert_eq!(moved(), None, "nothing is there");
    }

    #[test]
    fn without_room_it_goes_to_the_top_of_the_project_and_is_not_deleted() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("full"), "").unwrap();
        fs::create_dir(place.path().join("deep")).unwrap();
        fs::write(place.path().join("deep/hook"), "x").unwrap();
        let root = beneath::open_root(place.path()).unwrap();
        let deep = beneath::open_directory(&root, OsStr::new("deep")).unwrap();
        // No directory can be made below a file.
        let directory = place.path().join("full/aside");
        let aside = Aside { directory: Some(&directory), project: Some((&root, place.path())) };
        let taken = aside.take_out(&deep, OsStr::new("hook"), OsStr::new("hook")).unwrap();
        assert_eq!(taken.moved_to, Some(place.path().join("bailiwick-moved-aside-hook")));
        assert_eq!(fs::read(taken.moved_to.unwrap()).unwrap(), b"x");
        assert!(!place.path().join("deep/hook").exists());
    }
}
