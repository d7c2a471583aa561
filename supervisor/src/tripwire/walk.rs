//! Repositories anywhere in a project: whoever enters their directories runs git in them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::stat::SFlag;

use super::beneath::{self, Entries};
use super::repository::Depth;
use super::root::GIT;
use super::state::{FileKind, TripwireLook, WatchState};

/// The most entries that a walk sees.
const MOST_ENTRIES: usize = 500_000;

/// The most repositories that are looked at.
const MOST_REPOSITORIES: usize = 2_000;

/// How deep a walk goes; each level holds a descriptor.
const DEEPEST: usize = 100;

/// The longest that a walk may take.
const LONGEST: Duration = Duration::from_secs(5);

/// Looks at every repository beneath a project but those that are `known`: its own, and its modules and worktrees.
pub(super) fn nested(root: &OwnedFd, known: &BTreeSet<PathBuf>, before: Option<&WatchState>) -> WatchState {
    let look = TripwireLook::new(before);
    let mut walk = Walk { look, known, entries: 0, until: Instant::now() + LONGEST, bounded: None };
    match beneath::list(root, walk.most()) {
        Ok(entries) => walk.directory(root, entries, Path::new(""), DEEPEST),
        Err(error) => walk.stop(&format!("the project: {error}")),
    }
    let Walk { mut look, bounded, .. } = walk;
    if let Some(why) = bounded {
        look.state.notes.push(format!("not everything was searched for planted repositories: {why}"));
    }
    look.state
}

struct Walk<'a> {
    look: TripwireLook<'a>,
    known: &'a BTreeSet<PathBuf>,
    entries: usize,
    until: Instant,
    bounded: Option<String>,
}

impl Walk<'_> {
    /// One more than may still be seen.
    const fn most(&self) -> usize {
        MOST_ENTRIES.saturating_sub(self.entries) + 1
    }

    fn directory(&mut self, held: &OwnedFd, entries: Entries, path: &Path, depth: usize) {
        self.entries += entries.len();
        if self.entries > MOST_ENTRIES || Instant::now() > self.until {
            return self.stop("the project is too large");
        }
        let has = |name: &str| entries.iter().any(|(entry, _)| entry == name);
        let is_new = !self.known.contains(path) && !self.look.state.repositories.contains(path);
        if is_new && has("HEAD") && (has("objects") && has("refs") || has("commondir")) {
            self.look.state.directories.insert(path.to_owned());
            self.look.git_directory(held, path, Depth::BARE);
        }
        if has(GIT) && path != Path::new("") {
            self.git(held, path.join(GIT));
        }
        if self.look.state.repositories.len() > MOST_REPOSITORIES {
            return self.stop("there are too many repositories");
        }
        // Git directories last: they shall not use up what a walk may take. A remote's address may lead into one.
        let (git, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(name, _)| name == GIT);
        for (name, _) in others.into_iter().chain(git).filter(|(_, leads_on)| *leads_on) {
            self.below(held, path, name, depth);
        }
    }

    fn below(&mut self, held: &OwnedFd, path: &Path, name: OsString, depth: usize) {
        let path = path.join(&name);
        match beneath::open_and_list(held, &name, self.most()) {
            Ok((directory, entries)) => match depth.checked_sub(1) {
                Some(depth) => self.directory(&directory, entries, &path, depth),
                None => self.stop(&format!("{} is too deep", path.display())),
            },
            // A link: where it leads inside the project, the walk comes by itself.
            Err(nix::errno::Errno::ENOTDIR | nix::errno::Errno::ELOOP | nix::errno::Errno::ENOENT) => {}
            Err(error) => self.stop(&format!("{}: {error}", path.display())),
        }
    }

    fn git(&mut self, held: &OwnedFd, path: PathBuf) {
        let stat = beneath::stat(held, std::ffi::OsStr::new(GIT));
        if stat.is_ok_and(|stat| beneath::kind(&stat) == SFlag::S_IFREG) {
            self.look.place(held, path, FileKind::GitFile);
        } else if let Some(git) = self.look.enter(held, &path) {
            self.look.git_directory(&git, &path, Depth::NESTED);
        }
    }

    fn stop(&mut self, why: &str) {
        self.bounded.get_or_insert_with(|| why.to_owned());
    }
}
