//! The question of a request, in one row.

use ipc::approval::{ApplyPatchApprovalParams, FileChange, ServerRequest};
use ipc::path::WirePath;

use super::content::in_project;
use crate::text::{Clusters, SafeText};

/// The question of a request: `Edit src/app.py?  +3 -1`.
#[derive(Debug)]
pub(crate) struct Title {
    verb: &'static str,
    /// The file, where there is one.
    name: SafeText,
    rest: String,
}

impl Title {
    pub(super) fn new(request: &ServerRequest, project: &WirePath) -> Self {
        let plain = |verb| Self { verb, name: SafeText::default(), rest: String::new() };
        match request {
            ServerRequest::ApplyPatchApproval(params) => files(params, project),
            ServerRequest::ExecCommandApproval(_) => plain("Run this command?"),
            ServerRequest::NetworkApproval(_) => plain("Run this command with the network on?"),
        }
    }

    /// The title in at most so many columns; of a path that is too long the end stays.
    pub(crate) fn within(&self, columns: usize) -> String {
        let left = columns.saturating_sub(self.verb.chars().count() + self.rest.chars().count());
        format!("{}{}{}", self.verb, end_of(self.name.as_str(), left), self.rest)
    }
}

fn files(params: &ApplyPatchApprovalParams, project: &WirePath) -> Title {
    let changes = &params.file_changes.0;
    let counts = changes.values().map(counted).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let counts: String = [("+", counts.0), ("-", counts.1)]
        .iter()
        .filter(|(_, lines)| *lines > 0)
        .map(|(sign, lines)| format!(" {sign}{lines}"))
        .collect();
    let space = if counts.is_empty() { "" } else { " " };
    match changes.iter().next().filter(|_| changes.len() == 1) {
        Some((path, change)) => Title {
            verb: verb(change),
            name: SafeText::bytes(in_project(path, project)),
            rest: format!("?{space}{counts}"),
        },
        None => Title {
            verb: "Edit ",
            name: SafeText::default(),
            rest: format!("{} files?{space}{counts}", changes.len()),
        },
    }
}

const fn verb(change: &FileChange) -> &'static str {
    match change {
        FileChange::Add { .. } => "Create ",
        FileChange::Delete { .. } => "Delete ",
        FileChange::Update { move_path: Some(_), .. } => "Move ",
        FileChange::Update { move_path: None, .. } => "Edit ",
    }
}

/// The lines that a change adds, and those that it removes.
fn counted(change: &FileChange) -> (usize, usize) {
    match change {
        FileChange::Add { content } => (content.lines().count(), 0),
        FileChange::Delete { content } => (0, content.lines().count()),
        FileChange::Update { unified_diff, .. } => {
            // Headers come before the first hunk.
            let hunks = unified_diff.lines().skip_while(|line| !line.starts_with("@@"));
            hunks.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
                Some(b'+') => (added + 1, removed),
                Some(b'-') => (added, removed + 1),
                _ => (added, removed),
            })
        }
    }
}

/// The end of a safe text, in at most so many columns.
fn end_of(text: &str, columns: usize) -> String {
    let clusters: Vec<_> = Clusters::new(text, 0).collect();
    let all: usize = clusters.iter().map(|cluster| cluster.columns).sum();
    if all <= columns {
        return text.to_owned();
    }
    let (mut left, mut from) = (columns.saturating_sub(1), text.len());
    for cluster in clusters.iter().rev() {
        let Some(rest) = left.checked_sub(cluster.columns) else { break };
        (left, from) = (rest, cluster.at);
    }
    format!("…{}", text.get(from..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_path_the_end_stays() {
        let title = Title {
            verb: "Edit ",
            name: SafeText::line("src/deep/漢字/app.py"),
            rest: "?  +3 -1".to_owned(),
        };
        assert_eq!(title.within(40), "Edit src/deep/漢字/app.py?  +3 -1");
        assert_eq!(title.within(24), "Edit …字/app.py?  +3 -1");
        assert_eq!(title.within(9), "Edit …?  +3 -1");
    }
}
