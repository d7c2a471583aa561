use ipc::path::WirePath;
use protocol::approval::{ApplyPatchApprovalParams, FileChange, ServerRequest};

use super::content::in_project;
use super::denied;
use crate::text::{Clusters, SafeText};

#[derive(Debug, Default)]
pub(crate) struct Title {
    verb: &'static str,
    /// File name; empty for a request that is not about a file.
    name: SafeText,
    rest: String,
    /// Number of added and removed lines, shown if there is room.
    counts: String,
}

/// Minimum columns for a file name. If fewer would be left, the line counts are omitted.
const NAME: usize = 12;

impl Title {
    pub(super) fn new(request: &ServerRequest, project: &WirePath) -> Self {
        let verb = match request {
            ServerRequest::ApplyPatchApproval(params) => return files(params, project),
            ServerRequest::ExecCommandApproval(_) => "Run this command?",
            ServerRequest::DeniedCommandApproval(params) => {
                let (verb, counts) =
                    (denied::title(&params.denial), denied::grade(&params.denial).to_owned());
                return Self { verb, counts, ..Self::default() };
            }
            ServerRequest::NetworkApproval(_) => "Run with network?",
            ServerRequest::AgentRightsApproval(_) => "Start this sub-agent?",
            ServerRequest::PlanApproval(_) => "Execute this plan?",
            ServerRequest::HostApproval(params) => {
                let (name, rest) = (SafeText::line(&params.host.to_string()), "?".to_owned());
                return Self { verb: "Connect to ", name, rest, ..Self::default() };
            }
            ServerRequest::ServerForm(params) => {
                let (name, rest) = (SafeText::line(&params.server), "?".to_owned());
                return Self { verb: "Answer the MCP server ", name, rest, ..Self::default() };
            }
            ServerRequest::FetchApproval(_) => "Fetch this page?",
            ServerRequest::ExternalToolApproval(params) => {
                let (name, rest) = (SafeText::line(&params.tool), "?".to_owned());
                return Self { verb: "Call ", name, rest, ..Self::default() };
            }
        };
        Self { verb, ..Self::default() }
    }

    pub(crate) fn within(&self, columns: usize) -> String {
        let left = columns.saturating_sub(self.verb.chars().count() + self.rest.chars().count());
        let name = Clusters::new(self.name.as_str(), 0).map(|cluster| cluster.columns).sum::<usize>();
        let counts = Some(&self.counts).filter(|counts| counts.len() + name.min(NAME) <= left);
        let counts = counts.map_or("", String::as_str);
        let name = end_of(self.name.as_str(), left.saturating_sub(counts.len()));
        format!("{}{name}{}{counts}", self.verb, self.rest)
    }
}

fn files(params: &ApplyPatchApprovalParams, project: &WirePath) -> Title {
    let changes = &params.file_changes.0;
    let (added, removed) =
        changes.values().map(counted).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let counts = match (added, removed) {
        (0, 0) => String::new(),
        (added, 0) => format!("  +{added}"),
        (0, removed) => format!("  -{removed}"),
        (added, removed) => format!("  +{added} -{removed}"),
    };
    match changes.iter().next().filter(|_| changes.len() == 1) {
        Some((path, change)) => Title {
            verb: verb(change),
            name: SafeText::bytes(in_project(path, project)),
            rest: "?".to_owned(),
            counts,
        },
        None => {
            Title { verb: "Edit ", rest: format!("{} files?", changes.len()), counts, ..Title::default() }
        }
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

fn counted(change: &FileChange) -> (usize, usize) {
    match change {
        FileChange::Add { content } => (content.lines().count(), 0),
        FileChange::Delete { content } => (0, content.lines().count()),
        FileChange::Update { unified_diff, .. } => {
            // Headers precede the first hunk.
            let hunks = unified_diff.lines().skip_while(|line| !line.starts_with("@@"));
            hunks.fold((0, 0), |(added, removed), line| match line.as_bytes().first() {
                Some(b'+') => (added + 1, removed),
                Some(b'-') => (added, removed + 1),
                _ => (added, removed),
            })
        }
    }
}

/// Returns the last characters of a text, in at most `columns` columns.
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
            rest: "?".to_owned(),
            counts: "  +3 -1".to_owned(),
        };
        assert_eq!(title.within(40), "Edit src/deep/漢字/app.py?  +3 -1");
        assert_eq!(title.within(26), "Edit …/漢字/app.py?  +3 -1");
        assert_eq!(title.within(22), "Edit …eep/漢字/app.py?");
        assert_eq!(title.within(9), "Edit …py?");
    }
}
