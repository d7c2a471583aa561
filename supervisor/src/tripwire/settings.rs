//! Settings of other programs in a project, as they are found there.

use std::os::fd::OwnedFd;
use std::path::Path;

use super::look::TripwireLook;
use super::repository::Depth;
use super::state::{FileKind, TripwireListing};
use crate::protected::{self, GIT};

impl TripwireLook<'_> {
    /// Looks at a project's git directory, and at the settings in it.
    pub(super) fn project(&mut self, root: &OwnedFd) {
        self.budget.begin(Path::new(GIT));
        if let Some(git) = self.enter(root, Path::new(GIT)) {
            self.git_directory(&git, Path::new(GIT), Depth::OWN);
        }
        for path in protected::plain() {
            self.budget.begin(path);
            self.watched(root, path, FileKind::Whole);
        }
        for directory in protected::listed() {
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
