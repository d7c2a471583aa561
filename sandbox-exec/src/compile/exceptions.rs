use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::iter;
use std::path::{Path, PathBuf};

use ipc::confinement::FileIdentity;
use ipc::rights::Rights;

use super::rules::above;
use crate::tree::{Identity, Tree};

pub(super) struct Exceptions<'a> {
    hidden: HashMap<Cow<'a, OsStr>, Option<Identity>>,
    /// Directories that contain a hidden path or `/dev`, at any depth.
    ancestors: HashSet<OsString>,
    /// Inodes of files that are hidden, or were hidden when the session began: device numbers by inode number.
    files: HashMap<u64, Vec<u64>>,
}

impl<'a> Exceptions<'a> {
    /// Records each hidden path, also with links resolved, and the files `moved` by device and inode.
    pub(super) fn new(rights: &'a Rights, moved: &[FileIdentity], tree: &impl Tree) -> Self {
        let mut hidden = HashMap::with_capacity(rights.hidden.len());
        for path in rights.hidden.iter().map(AsRef::<Path>::as_ref) {
            let found = tree.find(path);
            if found.path.as_os_str() != path.as_os_str() {
                let identity = tree.identity(&found.path).ok();
                hidden.insert(Cow::Owned(found.path.into_owned().into()), identity);
            }
            hidden.insert(Cow::Borrowed(path.as_os_str()), found.identity);
        }
        let mut files: HashMap<u64, Vec<u64>> = HashMap::new();
        for identity in hidden.values().flatten().filter(|identity| !identity.directory) {
            files.entry(identity.inode).or_default().push(identity.device);
        }
        for FileIdentity { device, inode } in moved {
            files.entry(*inode).or_default().push(*device);
        }
        let mut ancestors = HashSet::new();
        for path in hidden.keys().map(AsRef::as_ref).chain([OsStr::new("/dev")]) {
            for place in above(Path::new(path)) {
                // The directories above `place` were added with it.
                if ancestors.contains(place) {
                    break;
                }
                ancestors.insert(place.to_owned());
            }
        }
        Self { hidden, ancestors, files }
    }

    /// Returns the innermost hidden path that is or contains `path`, if there is one.
    pub(super) fn holding<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let found =
            iter::once(path.as_os_str()).chain(above(path)).find(|place| self.hidden.contains_key(*place));
        found.map(Path::new)
    }

    pub(super) fn lie_beneath(&self, path: &Path) -> bool {
        self.ancestors.contains(path.as_os_str())
    }

    /// True if `path` is hidden, or if its inode is a hidden file's (a hard link).
    pub(super) fn has(&self, path: &Path, inode: u64, tree: &impl Tree) -> bool {
        self.hidden.contains_key(path.as_os_str())
            || self
                .files
                .get(&inode)
                .is_some_and(|devices| tree.identity(path).is_ok_and(|found| devices.contains(&found.device)))
    }

    pub(super) fn witness(self) -> Option<PathBuf> {
        let is_file = |identity: Option<Identity>| identity.is_some_and(|identity| !identity.directory);
        let files = self.hidden.into_iter().filter(|(_, identity)| is_file(*identity));
        files.map(|(path, _)| PathBuf::from(path.into_owned())).min()
    }
}
