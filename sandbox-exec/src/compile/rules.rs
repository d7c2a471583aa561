use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::ops::BitOr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Access that a rule allows on its path and beneath it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Access(u8);

impl Access {
    const NOTHING: Self = Self(0);
    /// Right to list names.
    pub const LIST: Self = Self(1);
    /// Right to read and execute files.
    pub const READ: Self = Self(2);
    /// Right to write, create, remove and rename files.
    pub const WRITE: Self = Self(4);
    /// Right to read and write a device.
    pub const DEVICE: Self = Self(8);
    /// Rights on a directory of terminals: to list it, and to read and write the devices.
    pub const TERMINALS: Self = Self(1 | 8);
    /// Rights on a read root: to list names, and to read and execute files.
    pub const TREE: Self = Self(1 | 2);
    pub const ALL: Self = Self(1 | 2 | 4);

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Access {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRule {
    pub path: PathBuf,
    pub access: Access,
    /// True if the rights name the path, which must then exist. Other paths are from listings, and may be gone.
    pub named: bool,
    /// True if a directory listing showed that the path is a file; saves a look at the file itself.
    pub file: bool,
}

impl PathRule {
    pub(super) fn new(path: impl Into<PathBuf>, access: Access, named: bool) -> Self {
        Self { path: path.into(), access, named, file: access == Access::DEVICE }
    }
}

/// Rules, by canonical path as a string: comparing paths by components costs twenty times as much.
#[derive(Debug, Default)]
pub(super) struct Rules {
    all: Vec<PathRule>,
    places: HashMap<OsString, usize>,
}

impl Rules {
    pub(super) fn add(&mut self, path: &Path, access: Access) -> &mut PathRule {
        let next = self.all.len();
        let place = *self.places.entry(path.as_os_str().to_owned()).or_insert(next);
        if place == next {
            self.all.push(PathRule::new(path, access, false));
        }
        let rule = &mut self.all[place];
        rule.access = rule.access | access;
        rule
    }

    pub(super) fn name(&mut self, path: &Path) {
        if let Some(place) = self.places.get(path.as_os_str()) {
            self.all[*place].named = true;
        }
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the rules, except those that allow nothing beyond the rules of the directories above them.
    pub(super) fn needed(self) -> Vec<PathRule> {
        let Self { all, places } = self;
        let of = |path: &OsStr| places.get(path).map_or(Access::NOTHING, |place| all[*place].access);
        let inherited = |rule: &PathRule| above(&rule.path).map(of).fold(Access::NOTHING, BitOr::bitor);
        let needed: Vec<_> = all.iter().map(|rule| rule.named || !inherited(rule).has(rule.access)).collect();
        all.into_iter().zip(needed).filter_map(|(rule, needed)| needed.then_some(rule)).collect()
    }
}

/// Returns the directories above a canonical path, the innermost first.
pub(super) fn above(path: &Path) -> impl Iterator<Item = &OsStr> {
    let bytes = path.as_os_str().as_bytes();
    let slashes = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/').map(|(place, _)| place);
    slashes.filter(|_| bytes.len() > 1).map(|place| OsStr::from_bytes(&bytes[..place.max(1)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_above_a_path_is_every_directory_on_the_way_to_it() {
        let all = |path| above(Path::new(path)).map(|path| path.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(all("/a/bc/d"), ["/a/bc", "/a", "/"]);
        assert_eq!(all("/a"), ["/"]);
        assert!(all("/").is_empty());
    }

    #[test]
    fn a_rule_that_allows_nothing_more_is_not_needed_unless_it_is_named() {
        let mut rules = Rules::default();
        for (path, access) in [
            ("/", Access::LIST),
            ("/a", Access::LIST),
            ("/a/b", Access::TREE),
            ("/a/b/c", Access::READ),
            ("/ab", Access::LIST),
            ("/ab", Access::WRITE),
            ("/ab/c", Access::ALL),
        ] {
            rules.add(Path::new(path), access);
        }
        rules.name(Path::new("/a/b/c"));
        let needed = rules.needed();
        let paths: Vec<_> = needed.iter().map(|rule| rule.path.to_str().unwrap()).collect();
        assert_eq!(paths, ["/", "/a/b", "/a/b/c", "/ab", "/ab/c"]);
    }
}
