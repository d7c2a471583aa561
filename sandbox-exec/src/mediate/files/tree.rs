//! Directory trees in which mediated programs may reach sockets and change metadata.
//!
//! A path is resolved once, to a descriptor. The name that the kernel gives the descriptor's file is judged, so links
//! in the path do not matter.
//!
//! The roots of the trees are held open from the start, so a file that gets a root's name later is no root. A file on
//! another mount than the root's can have a false name (another namespace, mounted over, gone). So it is opened again
//! by that name, beneath the root and without links, and must be the same inode.
//!
//! A granted socket is the file at exactly the granted path at the time of the call, checked in the same way.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ipc::refusal::Target;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstat};
use nix::unistd::{AccessFlags, access, geteuid};

use crate::mediate::refusals::Denied;
use crate::system::file::mount_of;

/// Maximum number of checks of a file whose name keeps changing.
const MOST_LOOKS: usize = 16;

/// Suffix that the kernel adds to the last name of a deleted file (`d_path` of `fs/d_path.c`).
const DELETED: &[u8] = b" (deleted)";

#[derive(Debug)]
pub(in crate::mediate) struct ProcessTree {
    roots: Vec<Root>,
    /// Hidden paths, compared by bytes: comparing components takes ten times as long.
    hidden: Vec<PathBuf>,
    sockets: Vec<PathBuf>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    opened: OwnedFd,
    mount: u64,
}

impl ProcessTree {
    /// Opens the roots, canonical paths. A root beneath a hidden path is allowed. Skips a root that cannot be opened.
    pub(in crate::mediate) fn new(roots: Vec<PathBuf>, hidden: Vec<PathBuf>) -> Self {
        let roots = roots.into_iter().filter_map(|path| {
            let opened = openat2(AT_FDCWD, &path, without_links(ResolveFlag::empty())).ok()?;
            let mount = mount_of(&opened).ok()?;
            Some(Root { path, opened, mount })
        });
        Self { roots: roots.collect(), hidden, sockets: vec![] }
    }

    #[must_use]
    pub(in crate::mediate) fn with_sockets(self, sockets: Vec<PathBuf>) -> Self {
        Self { sockets, ..self }
    }

    /// Opens a unix socket that is in the tree or granted. Other failures than those by the rules are no denials:
    /// without the sandbox, plain permissions or the kind of file would let the call fail, too (unix(7)).
    pub(in crate::mediate) fn open(&self, path: &Path) -> Result<OwnedFd, Denied> {
        let found = open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        match self.contains(&found) {
            Err(Errno::EACCES) if self.is_granted(&found)? => Ok(found),
            Err(Errno::EACCES) if is_socket(&found)? && (geteuid().is_root() || is_writable(&found)) => {
                Err(Denied::Rules { target: Target::Socket(name(&found)?.into()), errno: Errno::EACCES })
            }
            contained => Ok(contained.map(|()| found)?),
        }
    }

    /// Checks that the file is in the tree. Fails with `EACCES` if it is not.
    pub(super) fn contains(&self, found: &OwnedFd) -> Result<(), Errno> {
        // The file may be moved during the search, within the tree too, and back.
        for _ in 0..MOST_LOOKS {
            let name = name(found)?;
            if self.places(&name).next().is_none() {
                break;
            }
            if self.vouches(found, &name)? || self.proves(found, &name)? {
                return Ok(());
            }
            if fstat(found)?.st_nlink == 0 {
                break;
            }
        }
        Err(Errno::EACCES)
    }

    fn is_granted(&self, found: &OwnedFd) -> Result<bool, Errno> {
        if self.sockets.is_empty() {
            return Ok(false);
        }
        let name = name(found)?;
        let found = identity(found)?;
        let leads = || openat2(AT_FDCWD, &name, without_links(ResolveFlag::empty()));
        let is_there = || leads().is_ok_and(|named| identity(&named) == Ok(found));
        Ok(self.sockets.contains(&name) && is_there())
    }

    /// True for an open file that was deleted and had its last name in the tree, such as a temporary file.
    pub(super) fn contained(&self, found: &OwnedFd) -> Result<bool, Errno> {
        let name = name(found)?;
        let last = name.as_os_str().as_bytes().strip_suffix(DELETED);
        let last = last.map(|last| Path::new(OsStr::from_bytes(last)));
        Ok(last.is_some_and(|last| self.places(last).next().is_some()) && fstat(found)?.st_nlink == 0)
    }

    /// True if the open file is on the same mount as a root, if that root contains `name`, and if the root still has
    /// its own name. Then `name` is true unless the file is deleted: its name could be another file's now.
    fn vouches(&self, found: &OwnedFd, name: &Path) -> Result<bool, Errno> {
        if name.as_os_str().as_bytes().ends_with(DELETED) {
            return Ok(false);
        }
        let mount = mount_of(found)?;
        Ok(self
            .places(name)
            .any(|(root, _)| root.mount == mount && self::name(&root.opened).as_ref() == Ok(&root.path)))
    }

    /// True if the name, opened beneath a root and without links, leads to the open file.
    fn proves(&self, found: &OwnedFd, name: &Path) -> Result<bool, Errno> {
        let found = identity(found)?;
        let leads = |(root, rest): (&Root, &Path)| {
            if rest.as_os_str().is_empty() {
                return identity(&root.opened) == Ok(found);
            }
            openat2(&root.opened, rest, without_links(ResolveFlag::RESOLVE_BENEATH))
                .is_ok_and(|named| identity(&named) == Ok(found))
        };
        Ok(self.places(name).any(leads))
    }

    /// Returns the roots that contain a name, each with the rest of the name; none if the name is hidden.
    fn places<'a>(&'a self, name: &'a Path) -> impl Iterator<Item = (&'a Root, &'a Path)> {
        let hides = |root: &Root| {
            self.hidden.iter().any(|hidden| name.starts_with(hidden) && !root.path.starts_with(hidden))
        };
        let roots = self.roots.iter().filter(move |root| !hides(root));
        roots.filter_map(move |root| name.strip_prefix(&root.path).ok().map(|rest| (root, rest)))
    }
}

fn without_links(more: ResolveFlag) -> OpenHow {
    OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(more | ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS)
}

fn is_socket(file: &OwnedFd) -> Result<bool, Errno> {
    Ok(fstat(file)?.st_mode & libc::S_IFMT == libc::S_IFSOCK)
}

fn identity(file: &OwnedFd) -> Result<(libc::dev_t, libc::ino_t), Errno> {
    fstat(file).map(|FileStat { st_dev, st_ino, .. }| (st_dev, st_ino))
}

pub(super) fn name(file: &OwnedFd) -> Result<PathBuf, Errno> {
    fs::read_link(by_descriptor(file)).map_err(|_| Errno::EACCES)
}

/// True if plain permissions let this process's user write the file.
pub(super) fn is_writable(file: &OwnedFd) -> bool {
    access(by_descriptor(file).as_str(), AccessFlags::W_OK).is_ok()
}

pub(in crate::mediate) fn by_descriptor(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir, hard_link, remove_file, rename};
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

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
        let tree = ProcessTree::new(vec![base.join("in")], vec![base.join("in/secret")]);
        let open = |name: &str| tree.open(&base.join(name)).map(drop).map_err(|hindrance| hindrance.errno());
        assert_eq!(open("in/file"), Ok(()));
        assert_eq!(open("into"), Ok(()));
        for name in ["file", "in/out", "in/../file", "in-side/file", "in/secret/file", "in/revealed/file"] {
            assert_eq!(open(name), Err(Errno::EACCES), "{name}");
        }
        assert_eq!(open("in/missing"), Err(Errno::ENOENT));
    }

    #[test]
    fn a_root_in_a_hidden_place_is_granted_and_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["hidden", "hidden/own", "hidden/others", "hidden/own/secret"] {
            create_dir(base.join(name)).unwrap();
        }
        for name in ["hidden/own/file", "hidden/others/file", "hidden/own/secret/file", "file"] {
            File::create(base.join(name)).unwrap();
        }
        let roots = ["", "hidden/own"].map(|name| base.join(name).components().collect());
        let tree = ProcessTree::new(roots.into(), vec![base.join("hidden"), base.join("hidden/own/secret")]);
        let open = |name: &str| tree.open(&base.join(name)).map(drop).map_err(|hindrance| hindrance.errno());
        assert_eq!([open("file"), open("hidden/own/file")], [Ok(()), Ok(())]);
        for name in ["hidden/others/file", "hidden/own/secret/file"] {
            assert_eq!(open(name), Err(Errno::EACCES), "{name}");
        }
    }

    #[test]
    fn a_root_may_be_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().canonicalize().unwrap();
        let tree = ProcessTree::new(vec![path.clone()], vec![]);
        assert!(tree.open(&path).is_ok());
    }

    #[test]
    fn a_granted_socket_is_what_its_path_leads_to_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let [granted, beside, linked, hard] =
            ["granted", "beside", "linked", "hard"].map(|name| base.join(name));
        let _listeners = [&granted, &beside].map(|path| UnixListener::bind(path).unwrap());
        symlink("granted", &linked).unwrap();
        hard_link(&granted, &hard).unwrap();
        let tree = ProcessTree::new(vec![], vec![]).with_sockets(vec![granted.clone()]);
        let open = |path: &Path| tree.open(path).map(drop).map_err(|hindrance| hindrance.errno());
        assert_eq!([open(&granted), open(&linked)], [Ok(()), Ok(())]);
        assert_eq!([open(&beside), open(&hard)], [Err(Errno::EACCES), Err(Errno::EACCES)]);
        let held = tree.open(&granted).unwrap();
        rename(&granted, base.join("moved")).unwrap();
        assert_eq!(tree.is_granted(&held), Ok(false), "it has another name now");
        symlink("beside", &granted).unwrap();
        assert_eq!(open(&granted), Err(Errno::EACCES), "the path is a link now");
        remove_file(&granted).unwrap();
        let _again = UnixListener::bind(&granted).unwrap();
        assert_eq!(open(&granted), Ok(()), "its server made it again");
    }

    #[test]
    fn what_was_deleted_or_replaced_is_not_in_the_tree() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let tree = ProcessTree::new(vec![base.clone()], vec![]);
        File::create(base.join("file")).unwrap();
        let found = tree.open(&base.join("file")).unwrap();
        remove_file(base.join("file")).unwrap();
        assert_eq!(tree.contains(&found), Err(Errno::EACCES));
        File::create(base.join("file (deleted)")).unwrap();
        assert_eq!(tree.contains(&found), Err(Errno::EACCES), "the name is another file's");
        rename(base.join("file (deleted)"), base.join("file")).unwrap();
        assert_eq!(tree.contains(&found), Err(Errno::EACCES));
    }

    #[test]
    fn what_was_in_the_tree_when_it_was_deleted_was_contained() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in ["in", "in/secret"] {
            create_dir(base.join(name)).unwrap();
        }
        let tree = ProcessTree::new(vec![base.join("in")], vec![base.join("in/secret")]);
        let deleted = |name: &str| {
            let file: OwnedFd = File::create(base.join(name)).unwrap().into();
            assert_eq!(tree.contained(&file), Ok(false), "{name} is there");
            remove_file(base.join(name)).unwrap();
            tree.contained(&file)
        };
        assert_eq!(deleted("in/file"), Ok(true));
        assert_eq!(deleted("in/secret/file"), Ok(false));
        assert_eq!(deleted("file"), Ok(false));
        assert_eq!(deleted("in-side (deleted)"), Ok(false));
        let linked: OwnedFd = File::create(base.join("in/file")).unwrap().into();
        hard_link(base.join("in/file"), base.join("file")).unwrap();
        remove_file(base.join("in/file")).unwrap();
        assert_eq!(tree.contained(&linked), Ok(false), "it has a name elsewhere");
    }

    #[test]
    fn what_takes_the_name_of_a_root_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let (root, file) = (base.join("in"), base.join("in/file"));
        create_dir(&root).unwrap();
        let tree = ProcessTree::new(vec![root.clone()], vec![]);
        rename(&root, base.join("moved")).unwrap();
        create_dir(&root).unwrap();
        File::create(&file).unwrap();
        for path in [&file, &root] {
            assert_eq!(tree.open(path).map(drop), Err(Denied::Other(Errno::EACCES)));
        }
    }
}
