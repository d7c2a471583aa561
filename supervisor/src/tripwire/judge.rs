//! What a change of a watched place means.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::config::{Entry, parse};
use super::keys::is_harmless;
use super::state::{Body, Kind, Listing, Place};

/// What becomes of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may stay.
    Pass,
    /// The place becomes again what it was.
    Restore(String),
    /// Only this part of a configuration stays.
    Keep(Vec<u8>, String),
    /// What came into a directory since goes, without a look at each.
    Thin(Listing),
}

/// What is around a place, for what can point elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    /// The root's canonical path.
    pub(super) root: &'a Path,
    /// The git directories beneath it that are looked at.
    pub(super) repositories: [&'a BTreeSet<PathBuf>; 2],
}

impl Surroundings<'_> {
    /// Judges one place.
    pub(super) fn judge(self, path: &Path, before: Option<&Place>, now: Option<&Place>) -> Verdict {
        let alike = match (before, now) {
            (None, None) => true,
            (Some(before), Some(now)) => before.is_like(now),
            _ => false,
        };
        if alike {
            return Verdict::Pass;
        }
        let kinds = [before, now].map(|place| place.map(|place| place.kind));
        let kind = match kinds {
            [Some(one), Some(other)] if one != other => Kind::Whole,
            [one, other] => other.or(one).unwrap_or(Kind::Whole),
        };
        let harmless = |test: &dyn Fn(&Place) -> bool| before.is_none_or(test) && now.is_none_or(test);
        let passes = match kind {
            Kind::Config => return self.config(path, before, now),
            Kind::Whole | Kind::Hook => false,
            Kind::CommonDirectory => harmless(&|place| is_common_of_worktree(path, place)),
            Kind::Todo => harmless(&names_no_command),
            // Where there is none any more, git finds what lies above, or nothing.
            Kind::GitFile => now.is_none_or(|place| {
                before.is_none_or(|before| self.leads_to_own_repository(path, before))
                    && self.leads_to_own_repository(path, place)
            }),
        };
        if passes { Verdict::Pass } else { Verdict::Restore(what_happened(before, now).to_owned()) }
    }

    /// What an agent may not change has to be the same, in the same order.
    fn config(self, path: &Path, before: Option<&Place>, now: Option<&Place>) -> Verdict {
        let (Some(kept), Some(found)) = (self.guarded(path, before), self.guarded(path, now)) else {
            return Verdict::Restore("no configuration that git accepts".to_owned());
        };
        if kept.iter().map(Entry::meaning).eq(found.iter().map(Entry::meaning)) {
            return Verdict::Pass;
        }
        let mut names: Vec<_> = kept
            .iter()
            .filter(|entry| !found.iter().any(|other| other.meaning() == entry.meaning()))
            .chain(found.iter().filter(|entry| !kept.iter().any(|other| other.meaning() == entry.meaning())))
            .map(Entry::name)
            .collect();
        names.dedup();
        if names.is_empty() {
            names.push("the order of its keys".to_owned());
        }
        let why = names.join(", ");
        let text = now.and_then(content).filter(|_| kept.is_empty()).map(|text| without(text, &found));
        match text {
            Some(text) if self.is_worth_keeping(path, &text, before) => Verdict::Keep(text, why),
            _ => Verdict::Restore(why),
        }
    }

    /// What is left is read again: it has to be free of what was cut out, and to say more than there was.
    fn is_worth_keeping(self, path: &Path, text: &[u8], before: Option<&Place>) -> bool {
        let Ok(left) = parse(text) else { return false };
        let known = before.and_then(content).and_then(|text| parse(text).ok()).unwrap_or_default();
        left.iter().all(|entry| self.is_harmless(path, entry))
            && !left.iter().map(Entry::meaning).eq(known.iter().map(Entry::meaning))
    }

    /// The entries of a configuration that an agent may not change; a missing one has none, a strange one is none.
    fn guarded(self, path: &Path, place: Option<&Place>) -> Option<Vec<Entry>> {
        let Some(place) = place else { return Some(Vec::new()) };
        let entries = parse(content(place)?).ok()?;
        Some(entries.into_iter().filter(|entry| !self.is_harmless(path, entry)).collect())
    }

    fn is_harmless(self, path: &Path, entry: &Entry) -> bool {
        is_harmless(entry, |value| self.is_worktree_of_module(path, value))
    }

    /// Whether `core.worktree` of a module names a directory of the project that is not in a git directory.
    fn is_worktree_of_module(self, config: &Path, value: &[u8]) -> bool {
        let is_module = config.components().any(|part| part.as_os_str() == "modules");
        let value = Path::new(std::ffi::OsStr::from_bytes(value));
        let Some(place) = config.parent().and_then(|module| lexically(module, value)) else { return false };
        let is_inside =
            place.components().next().is_some() && place.components().all(|part| part.as_os_str() != ".git");
        is_module && value.is_relative() && is_inside && !has_links(self.root, &place)
    }

    /// Whether a `.git` file names a directory of the project that is looked at itself: one that is known, or one that
    /// the walk finds, which enters everything but git directories.
    fn leads_to_own_repository(self, path: &Path, place: &Place) -> bool {
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

/// What a configuration says of its worktree: the last word counts, as with git.
pub(crate) fn worktree_in(config: &[u8]) -> Option<PathBuf> {
    let mut entries = parse(config).ok()?;
    entries
        .retain(|entry| entry.section == b"core" && entry.subsection.is_none() && entry.key == b"worktree");
    let value = entries.pop()?.value?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(&value)))
}

/// What `gitdir: …` names.
pub(crate) fn git_file_target(text: &[u8]) -> Option<PathBuf> {
    let line = text.strip_prefix(b"gitdir: ")?;
    let end = line.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    let line = &line[..=end];
    (!line.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)))
        .then(|| PathBuf::from(std::ffi::OsStr::from_bytes(line)))
}

/// `git worktree add` writes `../..`.
fn is_common_of_worktree(path: &Path, place: &Place) -> bool {
    let holder = path.ancestors().nth(2).and_then(Path::file_name);
    holder.is_some_and(|name| name == "worktrees")
        && content(place).is_some_and(|text| text.strip_suffix(b"\n").unwrap_or(text) == b"../..")
}

/// Whether a rebase that goes on will run nothing but git: `exec`, or `x` for short, names a command.
fn names_no_command(place: &Place) -> bool {
    let Some(text) = content(place) else { return false };
    text.split(|byte| *byte == b'\n').all(|line| {
        let word = line.trim_ascii_start().split(u8::is_ascii_whitespace).next().unwrap_or_default();
        !matches!(word, b"exec" | b"x")
    })
}

fn content(place: &Place) -> Option<&[u8]> {
    match &place.body {
        Body::File(content) => Some(content),
        _ => None,
    }
}

/// `base` and then `path`, without `.` and `..`; absent if it leaves the root.
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

/// Whether a link stands anywhere on the way: what it says would not be where it leads.
fn has_links(root: &Path, path: &Path) -> bool {
    let mut whole = root.to_owned();
    path.components().any(|part| {
        whole.push(part);
        std::fs::symlink_metadata(&whole).is_ok_and(|meta| meta.is_symlink())
    })
}

/// A text without these entries.
fn without(text: &[u8], entries: &[Entry]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut at = 0;
    for entry in entries {
        kept.extend_from_slice(&text[at..entry.span.start]);
        // The line end stays if something else began the line.
        let own_line = kept.iter().rposition(|byte| !matches!(byte, b' ' | b'\t'));
        if own_line.is_some_and(|last| kept[last] != b'\n') {
            kept.push(b'\n');
        }
        at = entry.span.end;
    }
    kept.extend_from_slice(&text[at..]);
    kept
}

const fn what_happened(before: Option<&Place>, now: Option<&Place>) -> &'static str {
    match (before, now) {
        (None, _) => "created",
        (_, None) => "removed",
        _ => "changed",
    }
}
