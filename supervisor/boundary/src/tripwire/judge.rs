use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use protocol::event::PlaceChange;

use super::access::PlaceAccess;
use super::addresses::Ground;
use super::config::{GitConfigEntry, parse};
use super::keys::{KeyPlaces, is_harmless};
use super::led::{Led, leads};
use super::paused;
use super::promised::Promised;
use super::root::GIT;
use super::state::{FileBody, FileKind, TripwireListing, TripwireRule, WatchedPlace};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TripwireVerdict {
    Pass,
    Restore(PlaceChange),
    /// The file is rewritten with this content: the changed content without the forbidden entries or commands.
    Keep(Vec<u8>, PlaceChange),
    Close(PlaceAccess),
    /// The directory has too many new entries to check one by one, so all new entries are removed.
    Thin(TripwireListing),
}

impl TripwireVerdict {
    /// True if the verdict writes content, which needs disk space. `was_there` is true if the file existed before.
    pub(super) const fn needs_room(&self, was_there: bool) -> bool {
        match self {
            Self::Restore(_) => was_there,
            Self::Keep(..) => true,
            Self::Pass | Self::Close(_) | Self::Thin(_) => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct JudgedSurroundings<'a> {
    pub(super) root: &'a Path,
    /// Watched git directories, relative to `root`: those in the state before, and those in the current snapshot.
    pub(super) repositories: [&'a BTreeSet<PathBuf>; 2],
    /// The person's configuration entries that no agent may change.
    pub(super) own: &'a Own,
    /// Branches of the repository at the start of the session. `None` if git did not list them.
    pub(super) branches: Option<&'a BTreeSet<Vec<u8>>>,
    pub(super) ground: Ground<'a>,
}

/// The person's entries in each configuration file that no agent may change. `None` if git does not accept the file.
pub(super) type Own = BTreeMap<PathBuf, Option<Vec<OwnEntry>>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnEntry {
    pub(super) entry: GitConfigEntry,
    /// True if no agent may set such an entry. False if only the entry that the person has set must not be changed.
    is_guarded: bool,
}

impl TripwireVerdict {
    /// Returns the change that is undone; `None` if the change may stay.
    pub(super) fn change(self) -> Option<PlaceChange> {
        match self {
            Self::Pass => None,
            Self::Restore(what) | Self::Keep(_, what) => Some(what),
            Self::Close(_) => Some(PlaceChange::Permissions),
            Self::Thin(_) => Some(PlaceChange::Crowded),
        }
    }
}

impl JudgedSurroundings<'_> {
    pub(super) fn judge(
        self,
        path: &Path,
        before: Option<&WatchedPlace>,
        now: Option<&WatchedPlace>,
    ) -> TripwireVerdict {
        let alike = match (before, now) {
            (None, None) => true,
            (Some(before), Some(now)) => before.is_like(now),
            _ => false,
        };
        let kinds = [before, now].map(|place| place.map(|place| place.kind));
        let kind = match kinds {
            [Some(one), Some(other)] if one != other => FileKind::Whole,
            [one, other] => other.or(one).unwrap_or(FileKind::Whole),
        };
        // The targets of these files can change while the files stay the same.
        let leads_on = matches!(kind, FileKind::Config | FileKind::State(TripwireRule::ConflictedPaths));
        if alike && !leads_on {
            return TripwireVerdict::Pass;
        }
        let harmless = |test: &dyn Fn(&WatchedPlace) -> bool| before.is_none_or(test) && now.is_none_or(test);
        let passes = match kind {
            FileKind::Config => return self.config(path, before, now),
            FileKind::State(rule) => return self.state(path, rule, before, now),
            FileKind::Unknown if now.is_some() => return TripwireVerdict::Restore(PlaceChange::NoPartOfGit),
            FileKind::Unknown | FileKind::Whole | FileKind::Hook => false,
            FileKind::CommonDirectory => harmless(&|place| is_common_of_worktree(path, place)),
            // Without a `.git` file, git finds the repository above, or none.
            FileKind::GitFile => now.is_none_or(|place| {
                before.is_none_or(|before| self.leads_to_own_repository(path, before))
                    && self.leads_to_own_repository(path, place)
            }),
        };
        if passes { TripwireVerdict::Pass } else { TripwireVerdict::Restore(what_happened(before, now)) }
    }

    /// Judges a file of a paused git operation. The operation may begin, continue or end, but because of its files git
    /// must neither execute a command nor use other files.
    fn state(
        self,
        path: &Path,
        rule: TripwireRule,
        before: Option<&WatchedPlace>,
        now: Option<&WatchedPlace>,
    ) -> TripwireVerdict {
        let Some(now) = now else { return TripwireVerdict::Pass };
        let before = before.and_then(content);
        let Some(text) = content(now) else { return TripwireVerdict::Restore(PlaceChange::NotAFile) };
        let is_harmless = match rule {
            TripwireRule::ConflictedPaths => self.are_files_of_the_work_tree(path, text),
            TripwireRule::Alternates => self.are_open_stores(path, text),
            _ => paused::is_harmless(rule, text, before),
        };
        if is_harmless {
            return TripwireVerdict::Pass;
        }
        let without = if rule == TripwireRule::Todo { paused::without_commands(text, before) } else { None };
        match without {
            Some((kept, commands)) => TripwireVerdict::Keep(kept, PlaceChange::Commands(commands)),
            None => TripwireVerdict::Restore(PlaceChange::LeadsElsewhere),
        }
    }

    /// True if every path in `text`, to which `git rerere` writes, is a file of the work tree and not behind a link.
    fn are_files_of_the_work_tree(self, path: &Path, text: &[u8]) -> bool {
        let Some(top) = path.ancestors().find(|above| above.file_name().is_some_and(|name| name == ".git"))
        else {
            return text.is_empty();
        };
        let top = top.parent().unwrap_or(Path::new(""));
        // A linked worktree or a submodule has its files elsewhere.
        let is_own = path.parent().is_some_and(|git| git.file_name().is_some_and(|name| name == ".git"));
        let stays = |file: &Path| {
            let inside = lexically(top, file).filter(|_| file.is_relative() && is_own);
            inside.is_some_and(|inside| inside.starts_with(top) && !has_links(self.root, &inside))
        };
        paused::conflicted_paths(text).is_some_and(|files| files.into_iter().all(stays))
    }

    fn are_open_stores(self, path: &Path, text: &[u8]) -> bool {
        // Paths of alternates are relative to `objects`.
        let objects = path.parent().and_then(Path::parent).map(|objects| self.root.join(objects));
        let is_open = |line: &[u8]| {
            let line = Path::new(std::ffi::OsStr::from_bytes(line));
            objects.as_deref().is_some_and(|objects| self.ground.has_open_store(objects, line))
        };
        text.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
            .all(is_open)
    }

    /// Judges a configuration file: the entries that no agent may change must be the same as before, in the same order.
    fn config(
        self,
        path: &Path,
        before: Option<&WatchedPlace>,
        now: Option<&WatchedPlace>,
    ) -> TripwireVerdict {
        let alike = before.zip(now).is_some_and(|(before, now)| before.is_like(now));
        let kept = match self.own.get(path) {
            Some(own) => own.as_ref().map(|own| self.still_own(path, own)),
            None => Some(Vec::new()),
        };
        let of_person =
            OfPerson { promised: Promised::of(kept.as_deref().unwrap_or_default()), led: self.led(path) };
        let (Some(kept), Some(found)) = (kept.as_deref(), self.guarded(path, now, &of_person)) else {
            return if alike {
                TripwireVerdict::Pass
            } else {
                TripwireVerdict::Restore(PlaceChange::BadConfiguration)
            };
        };
        let goes_along = now.is_none() && kept.iter().all(leads) && self.is_gone_with(path);
        if goes_along || is_same(kept, &found) {
            return TripwireVerdict::Pass;
        }
        let is_in = |entry: &GitConfigEntry, others: &[GitConfigEntry]| {
            others.iter().any(|other| other.meaning() == entry.meaning())
        };
        let added: Vec<_> = found.iter().filter(|entry| !is_in(entry, kept)).cloned().collect();
        let mut names: Vec<_> = kept
            .iter()
            .filter(|entry| !is_in(entry, &found))
            .chain(&added)
            .map(GitConfigEntry::name)
            .collect();
        names.dedup();
        let why = PlaceChange::Keys(names);
        match now.and_then(content).map(|text| without(text, &added)) {
            Some(text) if self.is_worth_keeping(path, &text, before, kept) => {
                TripwireVerdict::Keep(text, why)
            }
            _ => TripwireVerdict::Restore(why),
        }
    }

    fn is_gone_with(self, path: &Path) -> bool {
        let directory = path.parent().unwrap_or(Path::new(""));
        let is_gone = || {
            self.root
                .join(directory)
                .symlink_metadata()
                .is_err_and(|error| error.kind() == ErrorKind::NotFound)
        };
        directory.iter().any(|name| name == GIT) && is_gone()
    }

    /// Judges `text`, the content of a file without its forbidden entries. True if it still has the person's entries,
    /// has no other forbidden ones, and differs from `before`.
    fn is_worth_keeping(
        self,
        path: &Path,
        text: &[u8],
        before: Option<&WatchedPlace>,
        kept: &[GitConfigEntry],
    ) -> bool {
        let Ok(left) = parse(text) else { return false };
        let known = before.and_then(content).and_then(|text| parse(text).ok()).unwrap_or_default();
        let of_person = OfPerson { promised: Promised::of(kept), led: self.led(path) };
        let guarded = self.guarded_of(path, &left, &of_person);
        is_same(kept, &guarded) && !is_same(&left, &known)
    }

    /// Returns the person's entries in a file that no agent may change. `None` if the file cannot be parsed.
    pub(super) fn own(self, path: &Path, place: &WatchedPlace) -> Option<Vec<OwnEntry>> {
        let entries = parse(content(place)?).ok()?;
        let of_person = OfPerson { promised: Promised::of(&entries), led: Led::default() };
        let guarded = self.guarded_of(path, &entries, &of_person);
        let own = entries.into_iter().filter_map(|entry| {
            let is_guarded = guarded.contains(&entry);
            (is_guarded || leads(&entry)).then_some(OwnEntry { entry, is_guarded })
        });
        Some(own.collect())
    }

    /// Returns the person's entries that stay protected: all but addresses that now lead to an agent's repository.
    fn still_own(self, path: &Path, own: &[OwnEntry]) -> Vec<GitConfigEntry> {
        let places = OfConfiguration { around: self, path };
        let stays = |own: &&OwnEntry| own.is_guarded || is_harmless(&own.entry, &places);
        own.iter().filter(stays).map(|own| own.entry.clone()).collect()
    }

    /// Returns the entries of a file that no agent may set. `None` if it cannot be parsed; empty if it is missing.
    fn guarded(
        self,
        path: &Path,
        place: Option<&WatchedPlace>,
        of_person: &OfPerson<'_>,
    ) -> Option<Vec<GitConfigEntry>> {
        let Some(place) = place else { return Some(Vec::new()) };
        let entries = parse(content(place)?).ok()?;
        Some(self.guarded_of(path, &entries, of_person))
    }

    fn guarded_of(
        self,
        path: &Path,
        entries: &[GitConfigEntry],
        of_person: &OfPerson<'_>,
    ) -> Vec<GitConfigEntry> {
        let places = OfConfiguration { around: self, path };
        let all = self.is_main_configuration(path).then_some(entries);
        let is_guarded = |entry: &&GitConfigEntry| {
            !is_harmless(entry, &places)
                || of_person.promised.leads_away(entry, all)
                || of_person.led.has(entry)
        };
        entries.iter().filter(is_guarded).cloned().collect()
    }

    /// True if `path` is `config` in a git directory, and not `config.worktree` or an included file.
    fn is_main_configuration(self, path: &Path) -> bool {
        let directory = path.parent().unwrap_or(Path::new(""));
        path.file_name().is_some_and(|name| name == "config")
            && self.repositories.iter().any(|repositories| repositories.contains(directory))
    }

    /// True if `config` belongs to a submodule, and `value` is a directory of the project outside of git directories.
    fn is_worktree_of_module(self, config: &Path, value: &[u8]) -> bool {
        let is_module = config.components().any(|part| part.as_os_str() == "modules");
        let value = Path::new(std::ffi::OsStr::from_bytes(value));
        let Some(place) = config.parent().and_then(|module| lexically(module, value)) else { return false };
        let is_inside =
            place.components().next().is_some() && place.components().all(|part| part.as_os_str() != ".git");
        is_module && value.is_relative() && is_inside && !has_links(self.root, &place)
    }

    /// True if the `.git` file `place` names a repository in the project that is watched or that the search finds.
    fn leads_to_own_repository(self, path: &Path, place: &WatchedPlace) -> bool {
        let Some(target) = content(place).and_then(git_file_target) else { return false };
        let (base, target) = match target.strip_prefix(self.root) {
            Ok(inside) => (Path::new(""), inside),
            Err(_) => (path.parent().unwrap_or(Path::new("")), target.as_path()),
        };
        let Some(target) = lexically(base, target) else { return false };
        let is_walked = target.components().all(|part| part.as_os_str() != ".git");
        let is_known = self.repositories.iter().any(|known| known.contains(&target));
        (is_walked || is_known) && !has_links(self.root, &target)
    }
}

/// Returns the last value of `core.worktree` in a configuration, which is the one that git uses; `None` without one.
pub fn worktree_in(config: &[u8]) -> Option<PathBuf> {
    let mut entries = parse(config).ok()?;
    entries
        .retain(|entry| entry.section == b"core" && entry.subsection.is_none() && entry.key == b"worktree");
    let value = entries.pop()?.value?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(&value)))
}

pub fn git_file_target(text: &[u8]) -> Option<PathBuf> {
    let line = text.strip_prefix(b"gitdir: ")?;
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    let line = &line[..=end];
    (!line.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)))
        .then(|| PathBuf::from(std::ffi::OsStr::from_bytes(line)))
}

/// True if the file `commondir` of a linked worktree contains `../..`, as `git worktree add` writes it.
fn is_common_of_worktree(path: &Path, place: &WatchedPlace) -> bool {
    let holder = path.ancestors().nth(2).and_then(Path::file_name);
    holder.is_some_and(|name| name == "worktrees")
        && content(place).is_some_and(|text| text.strip_suffix(b"\n").unwrap_or(text) == b"../..")
}

fn is_same(one: &[GitConfigEntry], other: &[GitConfigEntry]) -> bool {
    one.iter().map(GitConfigEntry::meaning).eq(other.iter().map(GitConfigEntry::meaning))
}

/// The person's configuration on which verdicts about entries depend: promisor remotes, and settings of pushes and
/// fetches.
struct OfPerson<'a> {
    promised: Promised<'a>,
    led: Led<'a>,
}

struct OfConfiguration<'a> {
    around: JudgedSurroundings<'a>,
    path: &'a Path,
}

impl KeyPlaces for OfConfiguration<'_> {
    fn worktree_leads_back(&self, value: &[u8]) -> bool {
        self.around.is_worktree_of_module(self.path, value)
    }

    fn may_be_remote(&self, path: &Path) -> bool {
        let directory = self.around.root.join(self.path.parent().unwrap_or(Path::new("")));
        self.around.ground.is_open(&directory, path)
    }
}

pub(super) fn content(place: &WatchedPlace) -> Option<&[u8]> {
    match &place.body {
        FileBody::File(content) => Some(content),
        _ => None,
    }
}

/// Resolves `path` against the relative path `base`, without file accesses. `None` if `path` is absolute, or if its
/// `..` lead out of the directory to which `base` is relative.
fn lexically(base: &Path, path: &Path) -> Option<PathBuf> {
    let mut found = PathBuf::new();
    for part in base.components().chain(path.components()) {
        match part {
            Component::Normal(name) => found.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !found.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

/// True if a component of `path` is a link, so that the text of the path does not show the file.
fn has_links(root: &Path, path: &Path) -> bool {
    let mut whole = root.to_owned();
    path.components().any(|part| {
        whole.push(part);
        std::fs::symlink_metadata(&whole).is_ok_and(|meta| meta.is_symlink())
    })
}

fn without(text: &[u8], entries: &[GitConfigEntry]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut at = 0;
    for entry in entries {
        kept.extend_from_slice(&text[at..entry.span.start]);
        // The line end stays if other text began the line.
        let own_line = kept.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
        if own_line.is_some_and(|last| kept[last] != b'\n') {
            kept.push(b'\n');
        }
        at = entry.span.end;
    }
    kept.extend_from_slice(&text[at..]);
    kept
}

const fn what_happened(before: Option<&WatchedPlace>, now: Option<&WatchedPlace>) -> PlaceChange {
    match (before, now) {
        (None, _) => PlaceChange::Created,
        (_, None) => PlaceChange::Removed,
        _ => PlaceChange::Changed,
    }
}
