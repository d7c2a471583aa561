//! Unix sockets by path: which may be reached.
//!
//! A path is resolved once, to a descriptor; the descriptor is judged, and the act is performed on the descriptor. Which
//! symbolic links led there does not matter, since it is the kernel's own name of what was found that is judged. A name can lie
//! (a descriptor of another mount namespace, a mount over it), so it is proven: opened again beneath the root, without
//! links, it must lead to the same inode.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat};

/// The trees whose sockets may be reached.
#[derive(Debug)]
pub(super) struct Tree {
    roots: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
}

impl Tree {
    /// Of roots, but for what is hidden inside; both canonical.
    pub(super) fn new(roots: Vec<PathBuf>, hidden: Vec<PathBuf>) -> Self {
        Self { roots, hidden }
    }

    /// Opens what a path leads to, if it lies in the tree.
    pub(super) fn open(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let found = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        self.contains(&found)?;
        Ok(found)
    }

    /// Fails with `EACCES` unless what is open lies in the tree.
    pub(super) fn contains(&self, found: &OwnedFd) -> Result<(), Errno> {
        let name = fs::read_link(by_descriptor(found)).map_err(|_| Errno::EACCES)?;
        let beneath = |roots: &[PathBuf]| roots.iter().any(|root| name.starts_with(root));
        if !beneath(&self.roots) || beneath(&self.hidden) {
            return Err(Errno::EACCES);
        }
        let how = OpenHow::new()
            .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        // A name that ends in " (deleted)", or was renamed since, leads nowhere or elsewhere.
        let named = openat2(AT_FDCWD, &name, how).map_err(|_| Errno::EACCES)?;
        if identity(found)? == identity(&named)? { Ok(()) } else { Err(Errno::EACCES) }
    }
}

fn identity(file: &OwnedFd) -> Result<(libc::dev_t, libc::ino_t), Errno> {
    fstat(file).map(|FileStat { st_dev, st_ino, .. }| (st_dev, st_ino))
}

/// The path by which a call acts on an open file, in this process.
pub(super) fn by_descriptor(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir, remove_file, rename};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_and_what_they_lead_to_is_judged() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["in", "in/secret", "in-side"] {
            create_dir(base.join(name)).unwrap();
        }
        for name in ["in/file", "in/secret/file", "in-side/file", "file"] {
            File::create(base.join(name)).unwrap();
        }
        symlink("../file", base.join("in/out")).unwrap();
        symlink("in/file", base.join("into")).unwrap();
        symlink("secret", base.join("in/revealed")).unwrap();
        let tree = Tree::new(vec![base.join("in")], vec![base.join("in/secret")]);
        let open = |name: &str| tree.open(&base.join(name)).map(drop);
        assert_eq!(open("in/file"), Ok(()));
        assert_eq!(open("into"), Ok(()));
        for name in ["file", "in/out", "in/../file", "in-side/file", "in/secret/file", "in/revealed/file"] {
            assert_eq!(open(name), Err(Errno::EACCES), "{name}");
        }
        assert_eq!(open("in/missing"), Err(Errno::ENOENT));
    }

    #[test]
    fn a_root_may_be_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap();
        let tree = Tree::new(vec![path.clone()], vec![]);
        assert!(tree.open(&path).is_ok());
    }

    #[test]
    fn what_was_deleted_or_replaced_is_not_in_the_tree() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let tree = Tree::new(vec![base.clone()], vec![]);
        File::create(base.join("file")).unwrap();
        let found = tree.open(&base.join("file")).unwrap();
        remove_file(base.join("file")).unwrap();
        assert_eq!(tree.contains(&found), Err(Errno::EACCES));
        File::create(base.join("file (deleted)")).unwrap();
        assert_eq!(tree.contains(&found), Err(Errno::EACCES), "the name is another file's");
        rename(base.join("file (deleted)"), base.join("file")).unwrap();
        assert_eq!(tree.contains(&found), Err(Errno::EACCES));
    }
}
