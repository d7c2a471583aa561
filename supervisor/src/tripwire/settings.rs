//! Settings of other programs in a project, as they are found there.

use std::os::fd::OwnedFd;
use std::path::Path;

use super::repository::Depth;
use super::state::{FileKind, TripwireListing, TripwireLook};
use crate::protected::{self, GIT};

impl TripwireLook<'_> {
    /// Looks at the settings in a project, and at its git directory.
    pub(super) fn project(&mut self, root: &OwnedFd) {
        for path in protected::plain() {
            self.watched(root, path, FileKind::Whole);
        }
        for directory in protected::listed() {
            self.patterns(root, directory);
        }
        if let Some(git) = self.enter(root, Path::new(GIT)) {
            self.git_directory(&git, Path::new(GIT), Depth::OWN);
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
