use std::ffi::OsStr;

use super::Entry;

/// Entries of a directory that a requested name can mean; more than one if the file system folds case.
pub(super) struct Candidates<'a>(Vec<&'a Entry>);

impl<'a> Candidates<'a> {
    pub(super) fn of(listed: &'a [Entry], name: &OsStr) -> Self {
        Self(listed.iter().filter(|entry| might_be(&entry.name, name)).collect())
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the name with which this inode is listed; `None` if that is the requested name.
    ///
    /// On file systems that give each requested spelling an inode number of its own (FUSE without `use_ino`), names are
    /// compared instead.
    pub(super) fn called(&self, name: &OsStr, inode: u64) -> Option<&'a OsStr> {
        let Self(candidates) = self;
        if candidates.iter().any(|entry| entry.name == name) {
            return None;
        }
        let folded_name = folded(name);
        let by = |is_it: &dyn Fn(&Entry) -> bool| candidates.iter().find(|entry| is_it(entry));
        let other = by(&|entry| entry.inode == inode)
            .or_else(|| by(&|entry| entry.name.eq_ignore_ascii_case(name)))
            .or_else(|| by(&|entry| folded_name.is_some() && folded(&entry.name) == folded_name));
        other.map(|entry| entry.name.as_os_str())
    }
}

/// True if a file system that folds case may take both names for the same. That is assumed for all names with other
/// characters than ASCII, since file systems differ.
fn might_be(listed: &OsStr, name: &OsStr) -> bool {
    listed.eq_ignore_ascii_case(name) || !listed.is_ascii() || !name.is_ascii()
}

fn folded(name: &OsStr) -> Option<String> {
    Some(name.to_str()?.to_uppercase().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    #[test]
    fn names_that_may_be_one_are_exactly_these() {
        let can_be = |(listed, name): (&str, &str)| might_be(listed.as_ref(), name.as_ref());
        let same =
            [(".env", ".env"), (".ENV", ".env"), ("\u{212a}ey", "key"), ("key", "\u{212a}ey"), ("Ü", "ü")];
        assert!(same.into_iter().all(can_be));
        assert!(![(".env", ".envrc"), ("a", "b"), ("", "a")].into_iter().any(can_be));
    }

    #[test]
    fn an_inode_says_more_than_a_name_and_a_name_more_than_nothing() {
        let entry = |(inode, name): (u64, &str)| Entry { name: name.into(), kind: Kind::Other, inode };
        let listed =
            [(1, ".ENV"), (2, "Straße"), (3, "STRASSE"), (4, "\u{212a}ey"), (5, "ÜBER"), (6, "other")]
                .map(entry);
        let called = |name: &str, inode| {
            let name = OsStr::new(name);
            Candidates::of(&listed, name).called(name, inode).map(|called| called.to_str().unwrap())
        };
        assert_eq!(called("strasse", 2), Some("Straße"), "by its inode");
        for (name, as_listed) in [
            (".env", ".ENV"),
            ("strasse", "STRASSE"),
            ("straße", "Straße"),
            ("key", "\u{212a}ey"),
            ("über", "ÜBER"),
        ] {
            assert_eq!(called(name, 77), Some(as_listed), "{name} by its name alone");
        }
        assert_eq!(called("other", 77), None, "its own name is listed");
        assert_eq!(called("ähnlich", 77), None, "none is like it");
    }
}
