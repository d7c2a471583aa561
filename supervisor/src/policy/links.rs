//! Where paths lead, when many are asked about that have most of their directories in common.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Where directories lead, once that is known. It is kept for a moment only: an agent can change where a link leads.
#[derive(Debug, Default)]
pub(super) struct Links {
    known: HashMap<OsString, LedTo>,
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedTo {
    /// The path without links, as far as it exists.
    pub path: PathBuf,
    /// Whether there is something.
    pub exists: bool,
}

/// Where a single path leads.
pub(crate) fn leads_to(path: &Path) -> LedTo {
    Links::default().follow(path)
}

impl Links {
    /// Follows a path's links, as far as it exists.
    pub(super) fn follow(&mut self, path: &Path) -> LedTo {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return canonical(path);
        };
        let parent = self.directory(parent);
        let place = parent.path.join(name);
        if !parent.exists {
            return LedTo { path: place, exists: false };
        }
        match fs::symlink_metadata(&place) {
            Ok(meta) if meta.is_symlink() => canonical(&place),
            Ok(_) => LedTo { path: place, exists: true },
            Err(_) => LedTo { path: place, exists: false },
        }
    }

    fn directory(&mut self, path: &Path) -> LedTo {
        if let Some(known) = self.known.get(path.as_os_str()) {
            return known.clone();
        }
        let place = self.follow(path);
        self.known.insert(path.as_os_str().to_owned(), place.clone());
        place
    }
}

/// What leads nowhere stays as it is.
fn canonical(path: &Path) -> LedTo {
    match fs::canonicalize(path) {
        Ok(path) => LedTo { path, exists: true },
        Err(_) => LedTo { path: path.to_owned(), exists: false },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_followed_as_far_as_the_path_exists() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        fs::write(root.join("real/file"), "").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        let mut links = Links::default();
        for (given, leads, exists) in [
            ("real/file", "real/file", true),
            ("link", "real", true),
            ("link/deep", "real/deep", true),
            ("link/.ssh/new", "real/.ssh/new", false),
            ("link/../real/file", "real/file", true),
            ("real/file/beneath", "real/file/beneath", false),
            ("dangling", "dangling", false),
            ("dangling/more", "dangling/more", false),
        ] {
            let expected = LedTo { path: root.join(leads), exists };
            assert_eq!(links.follow(&root.join(given)), expected, "{given}");
            assert_eq!(links.follow(&root.join(given)), expected, "{given}, again");
        }
        assert_eq!(links.follow(Path::new("/")), LedTo { path: "/".into(), exists: true });
    }
}
