use std::collections::BTreeMap;

use serde::Serialize;

use super::difference::{Difference, NewSide, PathChange};
use super::finding::ReviewFinding;
use super::git::{GitError, ProjectGit};

/// Maximum number of bytes that are read of git's output with the lines of the files that have findings.
const MOST: usize = 64 << 20;

#[derive(Clone, Debug, Serialize)]
pub(super) struct PlacedFinding {
    #[serde(flatten)]
    pub(super) finding: ReviewFinding,
    pub(super) placed: bool,
    /// Text of the first line that the finding is about; `None` if the new files have no such line.
    #[serde(skip)]
    pub(super) line: Option<String>,
}

type Lines = BTreeMap<String, Vec<String>>;

/// Looks up the lines of each finding in the files after the change.
pub(super) async fn place(
    git: &ProjectGit,
    difference: &Difference,
    findings: Vec<ReviewFinding>,
) -> Result<Vec<PlacedFinding>, GitError> {
    let mut paths: Vec<String> = findings.iter().filter_map(|finding| project_path(&finding.file)).collect();
    paths.sort();
    paths.dedup();
    let lines = if paths.is_empty() { Lines::new() } else { lines(git, &difference.new, &paths).await? };
    Ok(findings.into_iter().map(|finding| placed(finding, difference, &lines)).collect())
}

async fn lines(git: &ProjectGit, side: &NewSide, paths: &[String]) -> Result<Lines, GitError> {
    let mut words = vec!["grep", "--no-textconv", "--no-color", "-a", "-n", "-z", "-e", ""];
    let prefix = match side {
        NewSide::WorkingTree => {
            words.insert(1, "--untracked");
            String::new()
        }
        NewSide::Commit(commit) => {
            words.push(commit);
            format!("{commit}:")
        }
    };
    words.push("--");
    // The model chose the paths, so git must not read them as patterns.
    let paths: Vec<_> = paths.iter().map(|path| format!(":(literal){path}")).collect();
    words.extend(paths.iter().map(String::as_str));
    match git.read(&words, MOST).await {
        Ok(output) => Ok(parse(&String::from_utf8_lossy(&output.bytes), &prefix)),
        // None of the files exists, or all are empty.
        Err(GitError::Failed { .. }) => Ok(Lines::new()),
        Err(error) => Err(error),
    }
}

/// Parses the output of `git grep -nz`. Removes `prefix` from each path.
fn parse(output: &str, prefix: &str) -> Lines {
    let mut files = Lines::new();
    for line in output.lines() {
        let mut fields = line.splitn(3, '\0');
        let (Some(path), Some(_), Some(text)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let path = path.strip_prefix(prefix).unwrap_or(path);
        files.entry(path.to_owned()).or_default().push(text.to_owned());
    }
    files
}

fn placed(mut finding: ReviewFinding, difference: &Difference, lines: &Lines) -> PlacedFinding {
    let Some(path) = project_path(&finding.file) else {
        return PlacedFinding { finding, placed: false, line: None };
    };
    path.clone_into(&mut finding.file);
    let deleted =
        difference.files.iter().find(|file| file.path == path && file.change == PathChange::Deleted);
    let file = lines.get(&path);
    let count = match (file, deleted) {
        (Some(file), _) => file.len() as u64,
        (None, Some(deleted)) => deleted.old_lines(),
        (None, None) => 0,
    };
    let placed = (1..=finding.last_line).contains(&finding.first_line) && finding.last_line <= count;
    let first = usize::try_from(finding.first_line).ok().and_then(|line| line.checked_sub(1));
    let line = first.filter(|_| placed).and_then(|at| file?.get(at).cloned());
    PlacedFinding { finding, placed, line }
}

/// Returns a finding's path without a leading `./`; `None` if it could lead out of the project.
fn project_path(name: &str) -> Option<String> {
    let name = name.strip_prefix("./").unwrap_or(name);
    let is_plain = |part: &str| !matches!(part, "" | "." | ".." | ".git");
    (name.split('/').all(is_plain) && !name.contains(char::is_control)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::difference::ChangedPath;
    use super::super::finding::{Category, Severity};
    use super::*;

    fn at(file: &str, first_line: u64, last_line: u64) -> ReviewFinding {
        let (title, explanation) = ("t".to_owned(), "e".to_owned());
        ReviewFinding {
            file: file.to_owned(),
            first_line,
            last_line,
            severity: Severity::Low,
            category: Category::Tests,
            title,
            explanation,
            suggestion: None,
        }
    }

    #[test]
    fn a_place_is_a_line_of_a_file_that_exists_or_that_the_change_deleted() {
        let gone = ChangedPath {
            path: "gone".to_owned(),
            change: PathChange::Deleted,
            patch: "--- a/gone\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-1\n-2\n-3".to_owned(),
        };
        let difference = Difference {
            about: String::new(),
            old: String::new(),
            new: NewSide::WorkingTree,
            prefix: String::new(),
            hidden: Vec::new(),
            files: vec![gone],
            is_cut: false,
        };
        let lines = parse("src/a b.rs\x001\x00one\nsrc/a b.rs\x002\x00two\0x\n", "");
        for (file, first, last, expected) in [
            ("src/a b.rs", 1, 2, Some(Some("one"))),
            ("./src/a b.rs", 2, 2, Some(Some("two\0x"))),
            ("src/a b.rs", 2, 3, None),
            ("src/a b.rs", 2, 1, None),
            ("src/a b.rs", u64::MAX, u64::MAX, None),
            ("gone", 1, 3, Some(None)),
            ("gone", 4, 4, None),
            ("never", 1, 1, None),
            ("/etc/passwd", 1, 1, None),
            ("../a", 1, 1, None),
            ("src/../../a", 1, 1, None),
            (".git/config", 1, 1, None),
            ("a\nb", 1, 1, None),
            ("", 1, 1, None),
        ] {
            let placed = placed(at(file, first, last), &difference, &lines);
            let found = placed.placed.then_some(placed.line.as_deref());
            assert_eq!(found, expected, "{file}:{first}-{last}");
        }
    }

    #[test]
    fn lines_of_a_commit_have_its_name_before_them() {
        assert_eq!(parse("abc:x\x001\x00one\n", "abc:")["x"], ["one"]);
    }
}
