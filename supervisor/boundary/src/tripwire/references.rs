//! Finds other files in watched directories to which watched files lead by a link, an include or a hooks path.
//!
//! This happens once, when the session starts, since an agent cannot change the watched files later. This module only
//! finds paths; the files are then watched like all others.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use gate::protected;
use nix::libc;
use nix::sys::statfs::{PROC_SUPER_MAGIC, SYSFS_MAGIC, fstatfs};

use super::WatchedRoots;
use super::bounds::{Bound, LONGEST_CHAIN, MOST_REFERENCES, MOST_REFERENCES_IN_ALL};
use super::config::{GitConfigEntry, parse};
use super::root::{GIT, Root};
use super::sources::GitSources;
use super::state::{FileBody, FileKind, WatchState, WatchedPlace};

/// Maximum number of links on the way to one file, as in `path_resolution(7)`.
const MOST_LINKS: usize = 40;

/// Maximum size in bytes of a configuration file outside of watched directories, since an include can name any file.
const LARGEST: u64 = 2 << 20;
/// Maximum number of bytes in all configuration files outside of watched directories.
const MOST_BYTES: usize = 16 << 20;

/// Maximum number of configuration files outside of watched directories.
const MOST_OUTSIDE: usize = 2_000;

/// Names of the hooks that git runs (githooks(5)).
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "post-index-change",
];

pub(super) type References = BTreeMap<PathBuf, FileKind>;

/// Adds to the watched files those to which they lead, and the sources of settings and hooks that `git` reports.
pub(super) fn follow(roots: &mut [WatchedRoots], git: Option<&GitSources>) {
    for round in 0..=LONGEST_CHAIN {
        let Search { found, met, .. } = Search::new(roots).everything(git);
        let mut has_grown = false;
        for watched in roots.iter_mut() {
            // A state that was read from a journal is as the person left it.
            if !watched.is_taken_anew() {
                continue;
            }
            let new = new_in(watched, &found);
            let Some((first, _)) = new.first_key_value() else { continue };
            has_grown = true;
            if round == LONGEST_CHAIN {
                watched.state.met.push((first.clone(), Bound::Chain));
            } else {
                watched.look_further(new);
            }
        }
        if let (false, [first, ..]) = (met.is_empty(), &mut *roots) {
            // Joining an absolute path to a directory gives the absolute path.
            first.state.met.extend(met);
            return;
        }
        if !has_grown {
            return;
        }
    }
}

fn new_in(watched: &WatchedRoots, found: &References) -> References {
    let inside = found.iter().filter_map(|(path, kind)| {
        let inside = path.strip_prefix(&watched.path).ok()?;
        let is_new = !watched.state.places.contains_key(inside)
            && !watched.references.contains_key(inside)
            && !holds_git(&watched.state, inside);
        (inside != Path::new("") && is_new).then(|| (inside.to_owned(), *kind))
    });
    inside.collect()
}

fn holds_git(state: &WatchState, place: &Path) -> bool {
    state.repositories.iter().any(|repository| repository != Path::new("") && repository.starts_with(place))
}

struct Included {
    path: PathBuf,
    by: PathBuf,
}

pub(super) struct Search<'a> {
    sources: Vec<(&'a Path, &'a WatchState)>,
    /// Directories in which hooks run. A relative hooks path is resolved against each of them.
    tops: Vec<PathBuf>,
    found: References,
    /// Unread configuration files outside of watched directories, each with the file that refers to it.
    outside: Vec<Included>,
    leading: BTreeMap<PathBuf, usize>,
    origin: PathBuf,
    met: Vec<(PathBuf, Bound)>,
}

impl<'a> Search<'a> {
    fn new(roots: &'a [WatchedRoots]) -> Self {
        let states =
            |root: &'a WatchedRoots| [&root.state, &root.nested].map(|state| (root.path.as_path(), state));
        let sources: Vec<_> = roots.iter().flat_map(states).collect();
        let projects = roots.iter().filter(|root| root.root == Root::Project);
        let tops = projects.flat_map(|root| tops(&root.path, &root.nested)).collect();
        Self {
            sources,
            tops,
            found: References::new(),
            outside: personal().into_iter().map(|path| Included { by: path.clone(), path }).collect(),
            leading: BTreeMap::new(),
            origin: PathBuf::new(),
            met: Vec::new(),
        }
    }

    fn everything(mut self, git: Option<&GitSources>) -> Self {
        // The person's own configurations are read first, so that no repository uses up the limits.
        self.read_outside();
        if let Some(git) = git {
            self.said_by(git);
        }
        for (root, state) in self.sources.clone() {
            for (path, place) in &state.places {
                // The links in a directory count as references of the directory.
                let top = path.ancestors().filter(|above| state.places.contains_key(*above)).last();
                self.origin = root.join(top.unwrap_or(path));
                self.place(root, path, place);
            }
        }
        self.read_outside();
        self
    }

    /// Adds the sources of settings that git reports, which environment variables and compiled-in paths may name. Git
    /// does not report includes whose condition is not met now; `configuration` follows those.
    fn said_by(&mut self, git: &GitSources) {
        for file in &git.files {
            self.origin.clone_from(file);
            self.leads_to(Path::new("/"), file, FileKind::Config);
            self.outside.push(Included { path: file.clone(), by: file.clone() });
        }
        for hooks in &git.hooks {
            if !self.is_of_repository(hooks) {
                self.origin.clone_from(hooks);
                self.hooks(Path::new("/"), hooks);
            }
        }
        self.read_outside();
    }

    fn is_of_repository(&self, hooks: &Path) -> bool {
        let is_in = |(root, state): &(&Path, &WatchState)| {
            let git = hooks.parent().and_then(|git| git.strip_prefix(root).ok());
            git.is_some_and(|git| state.repositories.contains(git))
        };
        hooks.ends_with("hooks") && self.sources.iter().any(is_in)
    }

    /// Reads the configuration files in `outside`, and their includes. Returns the paths that were read.
    fn read_outside(&mut self) -> Vec<PathBuf> {
        let (mut read, mut bytes) = (Vec::new(), 0);
        while let Some(Included { path, by }) = self.outside.pop() {
            if read.contains(&path) {
                continue;
            }
            let Some((directory, text)) = configuration(&path) else { continue };
            if read.len() == MOST_OUTSIDE || bytes > MOST_BYTES {
                self.met.push((by, Bound::Included));
                break;
            }
            bytes += text.len();
            self.origin = by;
            self.configuration(&directory, &text);
            read.push(path);
        }
        read
    }

    fn place(&mut self, root: &Path, path: &Path, place: &WatchedPlace) {
        let Some(parent) = path.parent().map(|parent| root.join(parent)) else { return };
        match &place.body {
            FileBody::Link(target) => {
                let kind = if place.kind == FileKind::Config { FileKind::Config } else { FileKind::Whole };
                for inside in protected::led_to(path) {
                    self.leads_to(&parent, &Path::new(target).join(inside), kind);
                }
            }
            FileBody::File(text) if place.kind == FileKind::Config => self.configuration(&parent, text),
            _ => {}
        }
    }

    fn configuration(&mut self, directory: &Path, text: &[u8]) {
        for entry in parse(text).unwrap_or_default() {
            let Some(path) = entry.value.as_deref().and_then(expanded) else { continue };
            if is_include(&entry) {
                let end = self.leads_to(directory, &path, FileKind::Config);
                let outside = end.filter(|end| !self.is_watched(end));
                self.outside.extend(outside.map(|path| Included { path, by: self.origin.clone() }));
            } else if (&*entry.section, &*entry.key) == (b"core", b"hookspath") {
                let origin = self.origin.clone();
                for top in self.tops.clone() {
                    // Each repository has hooks of its own.
                    self.origin.clone_from(&top);
                    self.hooks(&top, &path);
                }
                self.origin = origin;
            }
        }
    }

    /// Adds a hooks directory. If it is in fact a repository, adds only the hooks of the repository.
    fn hooks(&mut self, top: &Path, path: &Path) {
        let places = steps(top, path);
        let Some(directory) = places.last().cloned() else { return };
        let holds = |(root, state): &(&Path, &WatchState)| {
            directory
                .strip_prefix(root)
                .is_ok_and(|inside| inside == Path::new("") || holds_git(state, inside))
        };
        if self.sources.iter().any(holds) {
            for name in HOOKS {
                self.leads_to(&directory, Path::new(name), FileKind::Whole);
            }
        }
        self.leads_to(top, path, FileKind::Whole);
    }

    /// Adds the file to which a path leads, and the links on the way. Returns the path of that file without links.
    fn leads_to(&mut self, from: &Path, path: &Path, kind: FileKind) -> Option<PathBuf> {
        let places = steps(from, path);
        let end = places.last().cloned();
        for place in places {
            if self.is_watched(&place) && !self.found.contains_key(&place) && self.may_lead_on() {
                self.found.insert(place, kind);
            }
        }
        end
    }

    fn may_lead_on(&mut self) -> bool {
        let leads = self.leading.entry(self.origin.clone()).or_default();
        *leads += 1;
        let in_all = (self.found.len() >= MOST_REFERENCES_IN_ALL).then_some(MOST_REFERENCES_IN_ALL);
        let bound = if *leads > MOST_REFERENCES { Some(MOST_REFERENCES) } else { in_all };
        let Some(most) = bound else { return true };
        if self.met.last().is_none_or(|(origin, _)| *origin != self.origin) {
            self.met.push((self.origin.clone(), Bound::References(most)));
        }
        false
    }

    fn is_watched(&self, path: &Path) -> bool {
        self.sources.iter().any(|(root, _)| path.starts_with(root))
    }
}

fn is_include(entry: &GitConfigEntry) -> bool {
    let section = (entry.section.as_slice(), entry.subsection.is_some());
    entry.key == b"path" && [(&b"include"[..], false), (b"includeif", true)].contains(&section)
}

/// Returns the directories in which a person runs git: the project, and the repositories and worktrees below it.
fn tops(project: &Path, nested: &WatchState) -> Vec<PathBuf> {
    let files =
        nested.places.iter().filter(|(_, place)| place.kind == FileKind::GitFile).map(|(path, _)| path);
    let nested = nested.repositories.iter().chain(files).map(|path| {
        let top = if path.ends_with(GIT) { path.parent() } else { None };
        project.join(top.unwrap_or(path))
    });
    [project.to_owned()].into_iter().chain(nested).collect()
}

/// Returns the person's configuration files for all repositories (git-config(1), "FILES").
fn personal() -> Vec<PathBuf> {
    let home = home();
    let own = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let own = own.or_else(|| home.as_ref().map(|home| home.join(".config")));
    let places = [home.map(|home| home.join(".gitconfig")), own.map(|own| own.join("git/config"))];
    places.into_iter().flatten().chain([PathBuf::from("/etc/gitconfig")]).collect()
}

pub(super) fn home() -> Option<PathBuf> {
    std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
}

/// Returns the directory and the text of a configuration file outside of watched directories. `None` for special files:
/// a hostile repository could name a device, or a file of /proc whose reader blocks.
fn configuration(path: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let path = fs::canonicalize(path).ok()?;
    let is_text = |meta: &Metadata| meta.is_file() && (1..=LARGEST).contains(&meta.len());
    if !is_text(&fs::metadata(&path).ok()?) {
        return None;
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(&path).ok()?;
    if !is_text(&file.metadata().ok()?) || is_made_up(&file) {
        return None;
    }
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text).ok()?;
    Some((path.parent()?.to_owned(), text))
}

fn is_made_up(file: &File) -> bool {
    let kinds = [PROC_SUPER_MAGIC, SYSFS_MAGIC];
    !fstatfs(file).is_ok_and(|system| !kinds.contains(&system.filesystem_type()))
}

/// Expands a path in a configuration as git does. `None` if the path cannot lead into a project.
fn expanded(value: &[u8]) -> Option<PathBuf> {
    let value = value.strip_prefix(b":(optional)").unwrap_or(value);
    match value.strip_prefix(b"~/") {
        Some(rest) => Some(home()?.join(OsStr::from_bytes(rest))),
        None if value.is_empty() || value.starts_with(b"~") || value.starts_with(b"%(prefix)") => None,
        None => Some(PathBuf::from(OsStr::from_bytes(value))),
    }
}

/// Returns the path of every link on the way to a file, and last the path of the file, which may not exist.
pub(super) fn steps(from: &Path, path: &Path) -> Vec<PathBuf> {
    let reversed = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|step| step.as_os_str().to_owned()).collect()
    };
    let mut places = Vec::new();
    let mut at = from.to_owned();
    let mut left = reversed(path);
    while let Some(step) = left.pop() {
        if step == ".." {
            at.pop();
            continue;
        }
        if step == "." {
            continue;
        }
        // Pushing an absolute path replaces the whole path.
        at.push(step);
        if let Ok(target) = fs::read_link(&at) {
            places.push(at.clone());
            if places.len() > MOST_LINKS {
                return places;
            }
            at.pop();
            left.extend(reversed(&target));
        }
    }
    places.push(at);
    places
}

#[cfg(test)]
impl Search<'_> {
    pub(super) fn files_from(top: PathBuf) -> Vec<PathBuf> {
        let mut search = Search::new(&[]);
        search.outside = vec![Included { by: top.clone(), path: top }];
        search.read_outside()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_the_kernel_makes_up_is_no_configuration() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().join("config");
        fs::write(&real, "[core]\n").unwrap();
        assert_eq!(configuration(&real).map(|(_, text)| text), Some(b"[core]\n".to_vec()));
        fs::write(&real, vec![b'#'; 3 << 20]).unwrap();
        // The first file never ends, and reading the second one blocks.
        for path in ["/proc/self/pagemap", "/proc/kmsg", "/sys/kernel/notes", "/dev/zero"] {
            assert_eq!(configuration(Path::new(path)), None, "{path}");
        }
        assert_eq!(configuration(&real), None, "it is too long");
    }

    #[test]
    fn every_link_on_the_way_is_a_step() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real", root.join("one")).unwrap();
        symlink("../one/deep", root.join("real/two")).unwrap();
        symlink(root.join("one/two/end"), root.join("three")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let found = |path: &str| -> Vec<_> {
            let inside = |path: PathBuf| path.strip_prefix(&root).map(Path::to_owned).unwrap();
            steps(&root, Path::new(path)).into_iter().map(inside).collect()
        };
        assert_eq!(found("real/./missing/../end"), [Path::new("real/end")]);
        let all = ["three", "one", "real/two", "one", "real/deep/end"];
        assert_eq!(found("three"), all.map(PathBuf::from));
        assert!(found("loop/x").len() > MOST_LINKS);
    }
}
