//! Protects configuration entries on which the person's next push, fetch or commit depends. An agent may not change
//! such entries that the person has set.
//!
//! Otherwise, the next `git push` could send everything to a host of the agent's choice. A new remote has no effect
//! until somebody names it, so it may stay, and the user is told about it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ipc::text::one_line;

use super::config::{GitConfigEntry, parse};
use super::judge::{JudgedSurroundings, OwnEntry, content};
use super::root::GIT;
use super::state::{FileKind, WatchState};

/// Keys in sections with a subsection that determine the target and the refs of a push or fetch, git-config(1). Keys
/// that no agent may set for any remote are not included.
const LEADING: &[(&str, &[&str])] = &[
    ("remote", &["url", "pushurl", "fetch", "tagopt", "prune"]),
    ("branch", &["remote", "pushremote", "merge"]),
    ("submodule", &["url"]),
];

/// Keys in sections without a subsection that an agent may not change once the person has set them.
const SET: &[(&str, &str)] = &[
    ("core", "bare"),
    ("user", "name"),
    ("user", "email"),
    ("author", "name"),
    ("author", "email"),
    ("committer", "name"),
    ("committer", "email"),
];

/// Maximum number of new entries that a message about one file names.
const MOST_TOLD: usize = 5;

/// Subject of an entry: the section and the subsection; for a section without subsections, the section and the key.
type LedName<'a> = (&'a [u8], &'a [u8]);

#[derive(Debug, Default)]
pub(super) struct Led<'a>(BTreeSet<LedName<'a>>);

impl<'a> Led<'a> {
    fn of(
        entries: impl Iterator<Item = &'a GitConfigEntry>,
        branches: impl Iterator<Item = &'a Vec<u8>>,
    ) -> Self {
        let branches = branches.map(|branch| (&b"branch"[..], branch.as_slice()));
        Self(entries.filter_map(named).chain(branches).collect())
    }

    /// True if the entry is about a remote, branch or key that the person's configuration contains already.
    pub(super) fn has(&self, entry: &GitConfigEntry) -> bool {
        named(entry).is_some_and(|named| self.0.contains(&named))
    }
}

impl<'a> JudgedSurroundings<'a> {
    /// Returns the subjects of the person's entries in this configuration file, and in those that git reads with it.
    pub(super) fn led(self, path: &Path) -> Led<'a> {
        let directory = path.parent().unwrap_or(Path::new(""));
        let is_git = self.repositories.iter().any(|known| known.contains(directory));
        let holder = directory.parent().filter(|holder| holder.ends_with("worktrees"));
        let shared = holder.and_then(Path::parent);
        let is_read_with = |(other, _): &(&PathBuf, &Option<Vec<OwnEntry>>)| {
            let other = other.parent();
            // An included file may belong to any of them.
            !is_git || other == Some(directory) || (shared.is_some() && other == shared)
        };
        let entries = self
            .own
            .iter()
            .filter(is_read_with)
            .filter_map(|(_, entries)| entries.as_ref())
            .flatten()
            .map(|own| &own.entry);
        let is_top = |git: &Path| git == Path::new(GIT) || git == Path::new("");
        let is_projects = !is_git || is_top(directory) || shared.is_some_and(is_top);
        Led::of(entries, self.branches.filter(|_| is_projects).into_iter().flatten())
    }
}

pub(super) fn leads(entry: &GitConfigEntry) -> bool {
    named(entry).is_some()
}

/// Returns the subject of an entry; `None` if no push, fetch or commit depends on the entry.
fn named(entry: &GitConfigEntry) -> Option<LedName<'_>> {
    let (section, subsection, key, _) = entry.meaning();
    let is = |known: &str, found: &[u8]| known.as_bytes() == found;
    match subsection {
        Some(subsection) => {
            let (_, keys) = LEADING.iter().find(|(known, _)| is(known, section))?;
            keys.iter().any(|known| is(known, key)).then_some((section, subsection))
        }
        None => SET.iter().any(|(one, other)| is(one, section) && is(other, key)).then_some((section, key)),
    }
}

/// Returns messages about new entries that may stay: one sentence for each configuration file.
pub(super) fn news(before: &WatchState, now: &WatchState) -> Vec<String> {
    let configurations = now.places.iter().filter(|(_, place)| place.kind == FileKind::Config);
    let sentences = configurations.filter_map(|(path, place)| {
        let before = before.places.get(path);
        // A new repository has remotes of its own.
        if before.is_none() && path.ends_with("config") {
            return None;
        }
        let known = before.and_then(content).and_then(|text| parse(text).ok());
        news_of(path, &known.unwrap_or_default(), &parse(content(place)?).ok()?)
    });
    sentences.collect()
}

fn news_of(path: &Path, before: &[GitConfigEntry], now: &[GitConfigEntry]) -> Option<String> {
    let is_new = |entry: &&GitConfigEntry| {
        leads(entry) && !before.iter().any(|known| known.meaning() == entry.meaning())
    };
    let mut told: Vec<_> = now.iter().filter(is_new).map(text).collect();
    if told.is_empty() {
        return None;
    }
    if told.len() > MOST_TOLD {
        let more = told.len() - MOST_TOLD;
        told.truncate(MOST_TOLD);
        told.push(format!("{more} more"));
    }
    Some(one_line(&format!(
        "new settings in {}, for your next push, fetch or commit: {}",
        path.display(),
        told.join(", ")
    )))
}

fn text(entry: &GitConfigEntry) -> String {
    let value = entry.value.as_deref().unwrap_or(b"true");
    format!("{} = {}", entry.name(), String::from_utf8_lossy(value))
}
