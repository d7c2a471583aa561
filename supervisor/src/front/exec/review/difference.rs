//! The change under review, from git.

use super::git::{GitError, ProjectGit};

/// Maximum number of bytes of git's diff that are read.
const MOST: usize = 16 << 20;

const MOST_NAMES: usize = 4 << 20;

const MOST_WORDS: usize = 64 << 10;

/// The change that is to be reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReviewTarget {
    /// Uncommitted changes, including new files.
    Uncommitted,
    /// Changes since the current branch diverged from the named branch, including uncommitted changes.
    Base(String),
    Commit(String),
}

/// The state of the files after the change: in the working tree or in a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NewSide {
    WorkingTree,
    Commit(String),
}

#[derive(Debug)]
pub(super) struct Difference {
    pub(super) about: String,
    /// Git tree or commit before the change.
    pub(super) old: String,
    pub(super) new: NewSide,
    pub(super) prefix: String,
    pub(super) files: Vec<ChangedPath>,
    /// Changed files that are hidden from agents, and therefore left out of the review.
    pub(super) hidden: Vec<String>,
    /// True if the change was too large, and its end is therefore missing.
    pub(super) is_cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChangedPath {
    pub(super) path: String,
    pub(super) change: PathChange,
    /// The part of the difference for this file, without a final line end; empty for a new file.
    pub(super) patch: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathChange {
    Added,
    Deleted,
    Changed,
    /// A file that is not in git's index.
    New,
}

impl ChangedPath {
    /// Returns the number of the last old line that the patch shows: in a deleted file, the number of its lines.
    pub(super) fn old_lines(&self) -> u64 {
        let ranges = self.patch.lines().filter_map(|line| line.strip_prefix("@@ -"));
        let last = |range: &str| {
            let (first, count) = range.split(' ').next()?.split_once(',').unwrap_or((range, "1"));
            let first: u64 = first.split(' ').next()?.parse().ok()?;
            Some(first.saturating_add(count.parse().ok()?).saturating_sub(1))
        };
        ranges.filter_map(last).max().unwrap_or(0)
    }
}

impl Difference {
    pub(super) async fn read(git: &ProjectGit, target: &ReviewTarget) -> Result<Self, GitError> {
        let prefix = git.read(&["rev-parse", "--show-prefix"], MOST_WORDS).await?.line();
        let (old, new, about) = sides(git, target).await?;
        let mut words = vec![
            "diff",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=dirty",
            "--find-renames",
            "--relative",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        let excluded = git.hidden("exclude,literal");
        let paths: Vec<_> = ["."].into_iter().chain(excluded.iter().map(String::as_str)).collect();
        let sides = match &new {
            NewSide::WorkingTree => vec![old.as_str(), "--"],
            NewSide::Commit(commit) => vec![old.as_str(), commit.as_str(), "--"],
        };
        let last = [&sides[..], &paths].concat();
        let names = [&words[..], &["--name-status", "-z"], &last].concat();
        let names = git.read(&names, MOST_NAMES).await?;
        words.extend(last);
        let patch = git.read(&words, MOST).await?;
        let mut files = files(&names.bytes, &String::from_utf8_lossy(&patch.bytes), patch.is_cut);
        let mut is_cut = names.is_cut || patch.is_cut;
        if new == NewSide::WorkingTree {
            let words = [&["ls-files", "--others", "--exclude-standard", "-z", "--"][..], &paths].concat();
            let others = git.read(&words, MOST_NAMES).await?;
            is_cut |= others.is_cut;
            files.extend(texts(&others.bytes).into_iter().map(|path| ChangedPath {
                path,
                change: PathChange::New,
                patch: String::new(),
            }));
        }
        let hidden = hidden(git).await?;
        Ok(Self { about, old, new, prefix, files, hidden, is_cut })
    }
}

async fn hidden(git: &ProjectGit) -> Result<Vec<String>, GitError> {
    let places = git.hidden("literal");
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let words: Vec<_> =
        ["ls-files", "-z", "--"].into_iter().chain(places.iter().map(String::as_str)).collect();
    Ok(texts(&git.read(&words, MOST_NAMES).await?.bytes))
}

async fn sides(git: &ProjectGit, target: &ReviewTarget) -> Result<(String, NewSide, String), GitError> {
    match target {
        ReviewTarget::Uncommitted => {
            let old = match commit(git, "HEAD").await {
                Ok(head) => head,
                // There is no commit yet.
                Err(GitError::NoCommit { .. }) => empty_tree(git).await?,
                Err(error) => return Err(error),
            };
            Ok((old, NewSide::WorkingTree, "the changes that are not committed".to_owned()))
        }
        ReviewTarget::Base(branch) => {
            let branch_commit = commit(git, branch).await?;
            let old = git.read(&["merge-base", &branch_commit, "HEAD"], MOST_WORDS).await?.line();
            Ok((old, NewSide::WorkingTree, format!("the changes since this branch left {branch}")))
        }
        ReviewTarget::Commit(name) => {
            let new = commit(git, name).await?;
            let old = match commit(git, &format!("{new}^")).await {
                Ok(parent) => parent,
                // The first commit has no parent.
                Err(GitError::NoCommit { .. }) => empty_tree(git).await?,
                Err(error) => return Err(error),
            };
            let about = format!("the commit {}", new.get(..12).unwrap_or(&new));
            Ok((old, NewSide::Commit(new), about))
        }
    }
}

async fn commit(git: &ProjectGit, name: &str) -> Result<String, GitError> {
    let wanted = format!("{name}^{{commit}}");
    let found = git.read(&["rev-parse", "--verify", "--end-of-options", &wanted], MOST_WORDS).await;
    found.map(|found| found.line()).map_err(|error| match error {
        GitError::Failed { .. } => GitError::NoCommit { name: name.to_owned() },
        error => error,
    })
}

async fn empty_tree(git: &ProjectGit) -> Result<String, GitError> {
    Ok(git.read(&["hash-object", "-t", "tree", "/dev/null"], MOST_WORDS).await?.line())
}

fn texts(bytes: &[u8]) -> Vec<String> {
    let names = bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Combines the names from `--name-status -z` with the patches in `whole`. Names and patches have the same order.
fn files(names: &[u8], whole: &str, is_cut: bool) -> Vec<ChangedPath> {
    let mut patches = parts(whole);
    if is_cut {
        // The last part may be incomplete.
        patches.pop();
    }
    let mut patches = patches.into_iter();
    let mut words = texts(names).into_iter();
    let mut files = Vec::new();
    while let Some(status) = words.next() {
        let is_moved = status.starts_with(['R', 'C']);
        let (first, second) = (words.next(), if is_moved { words.next() } else { None });
        let Some(path) = second.or(first) else { break };
        let change = match status.as_bytes().first() {
            Some(b'A') => PathChange::Added,
            Some(b'D') => PathChange::Deleted,
            _ => PathChange::Changed,
        };
        files.push(ChangedPath { path, change, patch: patches.next().unwrap_or_default() });
    }
    files
}

/// Splits a diff into a part for each file. Each line of a file has a sign before it, so it cannot begin a part.
fn parts(patch: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in patch.split_inclusive('\n') {
        if line.starts_with("diff --git ") || parts.is_empty() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(line);
        }
    }
    parts.iter().map(|part| part.trim_end_matches('\n').to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "diff --git a/gone b/gone\n--- a/gone\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-diff --git a/x b/x\n-2\n-3\n\
        diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n\
        diff --git a/one b/one\n--- a/one\n+++ b/one\n@@ -1 +1 @@\n-x\n+y\n";

    #[test]
    fn each_file_has_its_part_of_the_difference() {
        let found = files(b"D\0gone\0R100\0a\0b\0M\0one\0", PATCH, false);
        let told: Vec<_> =
            found.iter().map(|file| (file.path.as_str(), file.change, file.patch.lines().count())).collect();
        let expected = [
            ("gone", PathChange::Deleted, 7),
            ("b", PathChange::Changed, 4),
            ("one", PathChange::Changed, 6),
        ];
        assert_eq!(told, expected);
        assert_eq!((found[0].old_lines(), found[2].old_lines()), (3, 1));
        assert!(found[2].patch.ends_with("+y"));
    }

    #[test]
    fn a_difference_that_was_cut_leaves_its_last_files_without_a_part() {
        let found = files(b"D\0gone\0R100\0a\0b\0M\0one\0M\0never read\0", PATCH, true);
        let empty: Vec<_> = found.iter().map(|file| file.patch.is_empty()).collect();
        assert_eq!(empty, [false, false, true, true]);
        assert!(files(b"", "", false).is_empty());
    }
}
