use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;

use gate::protected;

use super::beneath;
use super::look::TripwireLook;
use super::repository::Depth;
use super::root::GIT;
use super::state::{FileKind, TripwireListing};

impl TripwireLook<'_> {
    pub(super) fn project(&mut self, root: &OwnedFd) {
        self.budget.begin(Path::new(GIT));
        if let Some(git) = self.enter(root, Path::new(GIT)) {
            self.git_directory(&git, Path::new(GIT), Depth::OWN);
        }
        let top = TopNames::of(root);
        for path in protected::plain().filter(|path| top.may_have(path)) {
            self.budget.begin(path);
            self.watched(root, path, FileKind::Whole);
        }
        for directory in protected::listed().into_iter().filter(|directory| top.may_have(directory)) {
            self.budget.begin(directory);
            self.patterns(root, directory);
        }
    }

    fn patterns(&mut self, root: &OwnedFd, directory: &'static Path) {
        self.within(root, directory, |look, held| {
            for (name, _) in look.entries(held, directory, TripwireListing::Settings(directory)) {
                look.place(held, directory.join(name), FileKind::Whole);
            }
        });
    }
}

/// Names at the top of a project, in lower case, which rule out most settings. `None` if the listing is incomplete.
struct TopNames(Option<BTreeSet<OsString>>);

impl TopNames {
    const MOST: usize = 2_000;

    fn of(root: &OwnedFd) -> Self {
        let mut names = BTreeSet::new();
        let mut is_complete = true;
        let listed = beneath::each(root, |name, _| {
            // File systems that fold case take some letters beyond ASCII for ASCII ones.
            is_complete = names.len() < Self::MOST && name.is_ascii();
            names.insert(name.to_ascii_lowercase());
            if is_complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        Self((is_complete && listed.is_ok()).then_some(names))
    }

    /// True if a file may be at `path`, in any spelling that the file system accepts.
    fn may_have(&self, path: &Path) -> bool {
        let first = path.iter().next().map(OsStr::to_ascii_lowercase);
        first.zip(self.0.as_ref()).is_none_or(|(first, names)| names.contains(&first))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_list_says_what_is_not_there_and_no_more_than_that() {
        let place = tempfile::tempdir().unwrap();
        let root = beneath::open_root(place.path()).unwrap();
        let may_have = |path: &str| TopNames::of(&root).may_have(Path::new(path));
        fs::create_dir(place.path().join(".VSCode")).unwrap();
        fs::write(place.path().join("a.txt"), "").unwrap();
        for (path, expected) in [
            ("", true),
            (".vscode", true),
            (".vscode/tasks.json", true),
            (".VSCODE", true),
            (".idea", false),
            (".config/mise/config.toml", false),
        ] {
            assert_eq!(may_have(path), expected, "{path}");
        }
        // ext4 and others fold the Kelvin sign to a `k`.
        fs::write(place.path().join(".\u{212a}iro"), "").unwrap();
        assert!(may_have(".idea"));
        fs::remove_file(place.path().join(".\u{212a}iro")).unwrap();
        (0..TopNames::MOST).for_each(|n| fs::write(place.path().join(n.to_string()), "").unwrap());
        assert!(may_have(".idea"));
    }
}
