//! Searches a project for repositories: a person may enter a directory of one and run git there.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::stat::SFlag;

use super::beneath;
use super::bounds::{Bound, DEEPEST_WALK, LONGEST_WALK, MOST_REPOSITORIES, MOST_WALKED};
use super::look::TripwireLook;
use super::repository::Depth;
use super::root::GIT;
use super::state::{FileKind, WatchState};
use super::watch::Given;

/// Takes a snapshot of every repository in a project except the `known` ones.
pub(super) fn nested(
    root: &OwnedFd,
    known: &BTreeSet<PathBuf>,
    given: &Given,
    before: Option<&WatchState>,
) -> WatchState {
    let mut look = TripwireLook::new(before, given);
    look.top(root);
    let until = Instant::now() + Duration::from_secs(LONGEST_WALK);
    let unreached = before.map(|before| &before.unreached);
    let mut walk = Walk {
        look,
        root,
        known,
        unreached,
        seen: 0,
        at: Crowd::default(),
        widest: Crowd::default(),
        until,
        bounded: None,
    };
    if let Some(before) = before {
        walk.again(before);
    }
    walk.directory(root, Path::new(""), DEEPEST_WALK);
    walk.finish()
}

/// Names that show that a directory is a git directory or contains one.
const TELLING: &[&str] = &[GIT, "HEAD", "objects", "refs", "commondir"];

#[derive(Default)]
struct Seen {
    telling: BTreeSet<OsString>,
    directories: Vec<OsString>,
}

impl Seen {
    fn note(&mut self, name: OsString, leads_on: bool) {
        if TELLING.iter().any(|telling| name == *telling) {
            self.telling.insert(name.clone());
        }
        if leads_on {
            self.directories.push(name);
        }
    }

    fn has(&self, name: &str) -> bool {
        self.telling.contains(OsStr::new(name))
    }

    fn is_git_directory(&self) -> bool {
        self.has("HEAD") && (self.has("objects") && self.has("refs") || self.has("commondir"))
    }
}

#[derive(Clone, Debug, Default)]
struct Crowd {
    name: PathBuf,
    entries: usize,
}

struct Walk<'a> {
    look: TripwireLook<'a>,
    root: &'a OwnedFd,
    known: &'a BTreeSet<PathBuf>,
    /// Directories that could not be opened at the start of the session. `None` for the search at the start itself.
    unreached: Option<&'a BTreeSet<PathBuf>>,
    seen: usize,
    /// Directory at the project's top that is being searched, and the number of entries seen in it.
    at: Crowd,
    /// Directory at the project's top in which the most entries were seen.
    widest: Crowd,
    until: Instant,
    bounded: Option<(PathBuf, Bound)>,
}

impl Walk<'_> {
    fn again(&mut self, before: &WatchState) {
        let files = before.places.iter().filter(|(_, place)| place.kind == FileKind::GitFile);
        for path in files.map(|(path, _)| path).chain(&before.repositories) {
            let above = path.parent().unwrap_or(Path::new(""));
            let Ok((parent, _)) = beneath::open_parent(self.root, path, false) else { continue };
            if path.ends_with(GIT) {
                self.git(&parent, above);
            } else if let Some(git) = self.look.enter(&parent, path) {
                self.bare(&git, path);
            }
        }
    }

    fn directory(&mut self, held: &OwnedFd, path: &Path, depth: usize) {
        let mut seen = Seen::default();
        let mut count = 0;
        let most = MOST_WALKED.saturating_sub(self.seen);
        let listed = beneath::each(held, |name, file_type| {
            count += 1;
            seen.note(name, beneath::leads_on(file_type));
            if count > most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.count(path, count);
        if let Err(error) = listed {
            return self.unreached(path, beneath::errno(&error));
        }
        if self.is_bounded(path) {
            return;
        }
        if seen.is_git_directory() {
            self.bare(held, path);
        }
        if seen.has(GIT) && path != Path::new("") {
            self.git(held, path);
        }
        if self.look.state.repositories.len() > MOST_REPOSITORIES {
            self.bound(path, Bound::Repositories);
        }
        // Git directories come last, so that they do not use up the limits. A remote's address may lead into one.
        seen.directories.sort_by_key(|name| name == GIT);
        for name in seen.directories {
            self.below(held, path.join(&name), &name, depth);
        }
    }

    fn below(&mut self, held: &OwnedFd, path: PathBuf, name: &OsStr, depth: usize) {
        if self.bounded.is_some() || self.look.is_given(&path) || self.is_unreached(held, &path, name) {
            return;
        }
        match beneath::open_readable(held, name) {
            Ok((directory, closed)) => {
                match depth.checked_sub(1) {
                    Some(depth) => self.directory(&directory, &path, depth),
                    None => self.deep(&path),
                }
                if let Some(mode) = closed {
                    // The directory may be gone.
                    let _ = beneath::set_mode(held, name, mode);
                }
            }
            // The entry is a link or no directory. The search reaches a link's target in the project by itself.
            Err(Errno::ENOTDIR | Errno::ELOOP | Errno::ENOENT) => {}
            Err(error) => self.unreached(&path, error),
        }
    }

    fn git(&mut self, held: &OwnedFd, above: &Path) {
        let path = above.join(GIT);
        if self.look.state.knows(&path) {
            return;
        }
        self.way(above);
        self.look.budget.begin(&path);
        let stat = beneath::stat(held, OsStr::new(GIT));
        if stat.is_ok_and(|stat| beneath::kind(&stat) == SFlag::S_IFREG) {
            self.look.place(held, path, FileKind::GitFile);
        } else if !self.known.contains(&path)
            && let Some(git) = self.look.enter(held, &path)
        {
            self.look.git_directory(&git, &path, Depth::NESTED);
        }
    }

    fn bare(&mut self, git: &OwnedFd, path: &Path) {
        if self.known.contains(path) || self.look.state.repositories.contains(path) {
            return;
        }
        self.way(path);
        self.look.budget.begin(path);
        self.look.git_directory(git, path, Depth::BARE);
    }

    fn way(&mut self, path: &Path) {
        if !path.ancestors().all(|above| self.look.state.directories.contains_key(above)) {
            self.look.within(self.root, path, |_, _| {});
        }
    }

    fn count(&mut self, path: &Path, entries: usize) {
        self.seen += entries;
        let top = path.iter().next().map_or(Path::new(""), Path::new);
        if self.at.name != top {
            self.at = Crowd { name: top.to_owned(), entries: 0 };
        }
        self.at.entries += entries;
        if self.at.entries > self.widest.entries && top != Path::new("") {
            self.widest = self.at.clone();
        }
    }

    fn is_bounded(&mut self, path: &Path) -> bool {
        if self.seen > MOST_WALKED {
            self.bound(path, Bound::Walked);
        } else if Instant::now() > self.until {
            self.bound(path, Bound::Time);
        }
        self.bounded.is_some()
    }

    fn bound(&mut self, path: &Path, bound: Bound) {
        let crowd = if bound == Bound::Repositories { &self.at } else { &self.widest };
        let place = if crowd.entries == 0 { path.to_owned() } else { crowd.name.clone() };
        self.bounded.get_or_insert((place, bound));
    }

    fn deep(&mut self, path: &Path) {
        if self.look.is_first() {
            self.look.met(path, Bound::Depth(DEEPEST_WALK));
        } else {
            self.not_searched(path, "the directory is too deep");
        }
    }

    /// True for another user's directory that could not be opened at the start of the session.
    fn is_unreached(&self, held: &OwnedFd, path: &Path, name: &OsStr) -> bool {
        self.unreached.is_some_and(|unreached| unreached.contains(path))
            && beneath::stat(held, name).is_ok_and(|stat| !beneath::is_own(&stat))
    }

    /// Records a directory of another user that cannot be opened. No agent can write there either.
    fn unreached(&mut self, path: &Path, error: Errno) {
        if self.look.is_first() {
            self.look.state.unreached.insert(path.to_owned());
        }
        self.not_searched(path, error.desc());
    }

    fn not_searched(&mut self, path: &Path, why: &str) {
        let path = ipc::text::one_line(&path.to_string_lossy());
        let notes = &mut self.look.state.notes;
        if !notes.iter().any(|note| note.starts_with(NOT_SEARCHED)) {
            notes.push(format!("{NOT_SEARCHED}: {path}: {why}"));
        }
    }

    fn finish(mut self) -> WatchState {
        if let Some((place, bound)) = self.bounded.take() {
            self.look.met(&place, bound);
            if !self.look.is_first() {
                self.not_searched(&place, &bound.to_string());
            }
        }
        self.look.state
    }
}

const NOT_SEARCHED: &str = "not everything was searched for planted repositories";
