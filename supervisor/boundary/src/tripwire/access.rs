use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;

use nix::sys::stat::{FileStat, SFlag};
use nix::unistd::geteuid;

use super::beneath;
use crate::system::{attribute, set_attribute};

/// Extended attribute that holds a file's access control list (xattr(7)).
const LIST: &CStr = c"system.posix_acl_access";
const DEFAULT: &CStr = c"system.posix_acl_default";

/// Mode bits that let anybody other than the owner write.
const OTHERS_WRITE: u32 = 0o022;
const GROUP_WRITES: u32 = 0o020;
const STICKY: u32 = 0o1000;

/// Mode, owner, group and access control lists (acl(5)) of a watched file, or of a directory above one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PlaceAccess {
    pub(super) mode: u32,
    pub(super) owner: u32,
    pub(super) group: u32,
    /// Access control list, in addition to the mode. `None` if the file has none, or if the lists were not read.
    pub(super) list: Option<Arc<[u8]>>,
    /// Default access control list of a directory, for new entries; `None` if there is none.
    pub(super) default: Option<Arc<[u8]>>,
}

impl PlaceAccess {
    /// Returns the access of a file by its status alone, without access control lists.
    pub(super) fn of(stat: &FileStat) -> Self {
        Self {
            mode: stat.st_mode & 0o7777,
            owner: stat.st_uid,
            group: stat.st_gid,
            list: None,
            default: None,
        }
    }

    /// Returns the access of a file, with the access control lists of its open descriptor `held`.
    pub(super) fn with_lists(stat: &FileStat, held: impl AsFd) -> Self {
        let list = |name| attribute(held.as_fd(), name).ok().flatten().map(Arc::from);
        let is_directory = beneath::kind(stat) == SFlag::S_IFDIR;
        let default = if is_directory { list(DEFAULT) } else { None };
        Self { list: list(LIST), default, ..Self::of(stat) }
    }

    /// True if `self` and `other` give everybody the same access. Owners are compared only if this process runs as
    /// root, since only root can change them.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let owners = !may_give_away() || (self.owner, self.group) == (other.owner, other.group);
        owners && self.mode == other.mode && self.list == other.list && self.default == other.default
    }

    /// True if somebody can write to the file who could not `before`. As root, also true if the owner has changed.
    pub(super) fn is_wider_than(&self, before: &Self) -> bool {
        let owner = may_give_away() && self.owner != before.owner;
        owner || self.is_open_beside(before, before.default.as_deref())
    }

    /// True if somebody can write to a new file who cannot write to `around`, the directory that contains it. Access
    /// that new entries inherit from the directory does not count.
    pub(super) fn is_wider_than_around(&self, around: &Self) -> bool {
        self.is_open_beside(around, around.default.as_deref().or(around.list.as_deref()))
    }

    fn is_open_beside(&self, other: &Self, default: Option<&[u8]>) -> bool {
        let bits = self.mode & OTHERS_WRITE & !other.mode;
        let is_other_group = self.group != other.group && self.mode & GROUP_WRITES != 0;
        let is_unstuck =
            other.mode & STICKY != 0 && self.mode & STICKY == 0 && other.mode & 0o002 & self.mode != 0;
        let listed = |list: Option<&[u8]>| list.map(writers).unwrap_or_default();
        let known: BTreeSet<_> = listed(other.list.as_deref()).into_iter().chain(listed(default)).collect();
        let has_news = |list: Option<&[u8]>| listed(list).iter().any(|writer| !known.contains(writer));
        bits != 0
            || is_other_group
            || is_unstuck
            || has_news(self.list.as_deref())
            || has_news(self.default.as_deref())
    }

    /// Returns this access without those write permissions that the directory `around` does not give.
    pub(super) fn narrowed_to(&self, around: &Self) -> Self {
        let mut kept = !OTHERS_WRITE | (around.mode & OTHERS_WRITE);
        if self.group != around.group {
            kept &= !GROUP_WRITES;
        }
        Self { mode: self.mode & kept, list: None, default: None, ..self.clone() }
    }

    /// Gives the file at `path` this access. Links are followed, so `path` must be a link in /proc to an open file.
    pub(super) fn give(&self, path: &Path) -> io::Result<()> {
        let found = fs::metadata(path)?;
        let mut mode = self.mode;
        if !self.is_owned_alike(&found) && !self.own(path, &found) {
            mode &= !GROUP_WRITES;
        }
        // The mode's group bits are the mask of an access control list, so the mode is set last.
        set_attribute(path, LIST, self.list.as_deref())?;
        if found.is_dir() {
            set_attribute(path, DEFAULT, self.default.as_deref())?;
        }
        fs::set_permissions(path, Permissions::from_mode(mode))
    }

    fn is_owned_alike(&self, found: &fs::Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        (found.uid(), found.gid()) == (self.owner, self.group)
    }

    /// Changes owner and group as far as this process may. Returns true if at least the group is then right.
    fn own(&self, path: &Path, found: &fs::Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        chown(path, Some(self.owner), Some(self.group)).is_ok()
            || found.gid() == self.group
            || chown(path, None, Some(self.group)).is_ok()
    }
}

fn may_give_away() -> bool {
    geteuid().is_root()
}

/// Returns the users and groups that an access control list (`struct posix_acl_xattr_entry` of the kernel) lets write,
/// as pairs of entry type and id.
fn writers(list: &[u8]) -> BTreeSet<(u16, u32)> {
    const USER: u16 = 0x02;
    const GROUP: u16 = 0x08;
    const MASK: u16 = 0x10;
    const WRITE: u16 = 0x02;
    let (entries, _) = list.get(4..).unwrap_or_default().as_chunks::<8>();
    let entries = entries.iter().map(|[t0, t1, p0, p1, i0, i1, i2, i3]| {
        let of = |bytes| u16::from_le_bytes(bytes);
        (of([*t0, *t1]), of([*p0, *p1]), u32::from_le_bytes([*i0, *i1, *i2, *i3]))
    });
    let is_masked = entries.clone().any(|(tag, rights, _)| tag == MASK && rights & WRITE == 0);
    let may_write = |(tag, rights, _): &(u16, u16, u32)| [USER, GROUP].contains(tag) && rights & WRITE != 0;
    let writing = entries.filter(may_write).map(|(tag, _, id)| (tag, id));
    if is_masked { BTreeSet::new() } else { writing.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: PlaceAccess = PlaceAccess { mode: 0o755, owner: 1, group: 1, list: None, default: None };

    /// Returns an access control list that gives user 7 the permissions `rights`, and has this mask.
    #[expect(clippy::unnecessary_wraps, reason = "it stands where there may be no list")]
    fn list(rights: u16, mask: u16) -> Option<Arc<[u8]>> {
        let entry = |tag: u16, rights: u16, id: u32| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        let entries = [
            entry(0x01, 7, u32::MAX),
            entry(0x02, rights, 7),
            entry(0x04, 5, u32::MAX),
            entry(0x10, mask, u32::MAX),
            entry(0x20, 5, u32::MAX),
        ];
        Some([2_u32.to_le_bytes().to_vec(), entries.concat()].concat().into())
    }

    #[test]
    fn whoever_comes_to_write_makes_it_wider_and_nobody_else_does() {
        let rows = [
            ("the same", OWN, false),
            ("narrower", PlaceAccess { mode: 0o700, ..OWN }, false),
            ("readable", PlaceAccess { mode: 0o777 & !0o022, ..OWN }, false),
            ("group", PlaceAccess { mode: 0o775, ..OWN }, true),
            ("others", PlaceAccess { mode: 0o757, ..OWN }, true),
            ("another group", PlaceAccess { group: 2, ..OWN }, false),
            ("a list that reads", PlaceAccess { list: list(5, 7), ..OWN }, false),
            ("a list that writes", PlaceAccess { list: list(7, 7), ..OWN }, true),
            ("a list behind a mask", PlaceAccess { list: list(7, 5), ..OWN }, false),
            ("a default list", PlaceAccess { default: list(7, 7), ..OWN }, true),
        ];
        for (name, now, wider) in rows {
            assert_eq!(now.is_wider_than(&OWN), wider, "{name}");
            assert_eq!(now.is_wider_than_around(&OWN), wider, "{name}");
            assert!(!now.narrowed_to(&OWN).is_wider_than_around(&OWN), "{name}");
        }
    }

    #[test]
    fn what_was_open_may_stay_open() {
        let open = PlaceAccess { mode: 0o777, default: list(7, 7), ..OWN };
        for now in [PlaceAccess { list: list(7, 7), ..open.clone() }, PlaceAccess { mode: 0o775, ..OWN }] {
            assert!(!now.is_wider_than_around(&open), "{now:?}");
        }
        let shared = PlaceAccess { mode: 0o1777, ..OWN };
        assert!(PlaceAccess { mode: 0o777, ..OWN }.is_wider_than(&shared));
        let of_group = PlaceAccess { mode: 0o775, ..OWN };
        assert!(PlaceAccess { group: 2, ..of_group.clone() }.is_wider_than(&of_group));
    }
}
