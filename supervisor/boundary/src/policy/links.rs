mod listing;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ipc::path::{WirePath, is_joined, split};
use listing::LinkListing;

/// Cache of resolved directories. Each is used only for a moment, since agents can change links.
#[derive(Debug, Default)]
pub(super) struct Links<'a> {
    known: HashMap<OsString, Rc<Directory>>,
    expected: HashMap<&'a OsStr, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedLink {
    pub path: PathBuf,
    pub exists: bool,
}

pub(super) struct Found<'a> {
    /// Path in which the links of all existing directories are resolved.
    pub(super) path: Cow<'a, Path>,
    pub(super) presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    There,
    Nothing,
    /// The path is a link to a missing file, or the file cannot be examined.
    Unknown,
}

#[derive(Debug)]
struct Directory {
    /// Path of the directory with links resolved. `None` if the path contains no links.
    leads: Option<PathBuf>,
    presence: Presence,
    listing: LinkListing,
}

pub fn leads_to(path: &Path) -> ResolvedLink {
    Links::default().follow(path)
}

/// Returns those of the paths at which a file may exist. Lists a directory once instead of looking up many names in it.
pub fn perhaps_there(paths: &[WirePath]) -> impl Iterator<Item = &WirePath> {
    let mut links = Links::expecting(paths.iter().map(WirePath::as_path));
    paths.iter().filter(move |path| links.find(path.as_path()).presence != Presence::Nothing)
}

impl<'a> Links<'a> {
    pub(super) fn expecting(paths: impl Iterator<Item = &'a Path>) -> Self {
        let mut expected = HashMap::new();
        for path in paths {
            let mut next = split(path);
            while let Some((parent, _)) = next {
                let names = expected.entry(parent.as_os_str()).or_insert(0);
                *names += 1;
                // A directory that is new here will be looked up in its own parent.
                next = if *names == 1 { split(parent) } else { None };
            }
        }
        Self { known: HashMap::new(), expected }
    }

    /// Resolves the links in a path. Directories that do not exist stay as they are.
    pub(super) fn follow(&mut self, path: &Path) -> ResolvedLink {
        let Found { path, presence } = self.find(path);
        ResolvedLink { path: path.into_owned(), exists: presence == Presence::There }
    }

    /// Resolves the links in a path, and finds out if a file exists there.
    pub(super) fn find<'p>(&mut self, path: &'p Path) -> Found<'p> {
        let Some((above, name)) = split(path) else { return canonical(Cow::Borrowed(path)) };
        let parent = self.directory(above);
        let place = match &parent.leads {
            Some(leads) => Cow::Owned(leads.join(name)),
            None if is_joined(path, above, name) => Cow::Borrowed(path),
            None => Cow::Owned(above.join(name)),
        };
        if parent.presence != Presence::There {
            return Found { path: place, presence: parent.presence };
        }
        if parent.lacks(above, name) {
            return Found { path: place, presence: Presence::Nothing };
        }
        match fs::symlink_metadata(&place) {
            Ok(meta) if meta.is_symlink() => canonical(place),
            Ok(_) => Found { path: place, presence: Presence::There },
            Err(error) => Found { path: place, presence: Presence::after(&error) },
        }
    }

    /// True if directory listings show that neither a file nor a link exists at `path`.
    pub(super) fn lack(&mut self, path: &Path) -> bool {
        split(path).is_some_and(|(above, name)| self.directory(above).lacks(above, name))
    }

    fn directory(&mut self, path: &Path) -> Rc<Directory> {
        if let Some(known) = self.known.get(path.as_os_str()) {
            return Rc::clone(known);
        }
        let Found { path: leads, presence } = self.find(path);
        let leads = (leads.as_os_str() != path.as_os_str()).then(|| leads.into_owned());
        let listing =
            LinkListing::expecting(self.expected.get(path.as_os_str()).copied().unwrap_or_default());
        let directory = Rc::new(Directory { leads, presence, listing });
        self.known.insert(path.as_os_str().to_owned(), Rc::clone(&directory));
        directory
    }
}

impl Directory {
    fn lacks(&self, path: &Path, name: &OsStr) -> bool {
        match self.presence {
            Presence::There => self.listing.lacks(self.leads.as_deref().unwrap_or(path), name),
            Presence::Nothing => true,
            Presence::Unknown => false,
        }
    }
}

impl Presence {
    fn after(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::Nothing,
            _ => Self::Unknown,
        }
    }
}

/// Resolves all links of a path. Returns the path unchanged after an error.
fn canonical(path: Cow<'_, Path>) -> Found<'_> {
    match fs::canonicalize(&path) {
        Ok(path) => Found { path: Cow::Owned(path), presence: Presence::There },
        Err(_) => Found { path, presence: Presence::Unknown },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_is_asked_for_once_however_much_lies_in_it() {
        let paths =
            ["/h/.ssh", "/h/.config/a/x", "/h/.config/a/y", "/h/.config/b/z", "/h/.netrc"].map(Path::new);
        let expected = Links::expecting(paths.into_iter()).expected;
        let names = |directory: &str| expected.get(OsStr::new(directory)).copied();
        assert_eq!(["/", "/h", "/h/.config", "/h/.config/a"].map(names), [1, 3, 2, 2].map(Some));
    }

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
            ("real//deep", "real/deep", true),
            ("real/./deep/", "real/deep", true),
            ("./link/./new", "real/new", false),
        ] {
            let expected = ResolvedLink { path: root.join(leads), exists };
            assert_eq!(links.follow(&root.join(given)), expected, "{given}");
            assert_eq!(links.follow(&root.join(given)), expected, "{given}, again");
        }
        assert_eq!(links.follow(Path::new("/")), ResolvedLink { path: "/".into(), exists: true });
    }
}
