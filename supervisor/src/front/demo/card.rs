use std::fmt::Write as _;

use ipc::path::WirePath;
use protocol::approval::{ApplyPatchApprovalParams, FileChange};

pub(super) fn counts(diff: &str) -> (usize, usize) {
    let of = |sign: char| diff.lines().filter(|line| line.starts_with(sign)).count();
    (of('+'), of('-'))
}

/// Returns an approval request as a framed card, with the change and the access that the change needs.
pub(super) fn card(request: &ApplyPatchApprovalParams, project: &WirePath) -> String {
    let (mut card, mut names) = (String::new(), Vec::new());
    for (path, change) in &request.file_changes.0 {
        let diff = diff(change);
        let (added, removed) = counts(&diff);
        names.push(format!("{} +{added} -{removed}", relative(path, project)));
        for line in diff.trim_end().lines() {
            row(&mut card, line);
        }
    }
    row(&mut card, "");
    let places: Vec<_> = request.grant.write.iter().map(|path| relative(path, project)).collect();
    row(&mut card, &format!("allows: write {}, once", places.join(", ")));
    format!("  ╔ Approve this edit? {}\n{card}  ╚", names.join(", "))
}

pub(super) fn relative(path: &WirePath, project: &WirePath) -> String {
    let below = path.as_path().strip_prefix(project.as_path());
    below.map_or_else(|_| path.to_string(), |below| below.display().to_string())
}

fn row(card: &mut String, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(card, "{}", format!("  ║ {text}").trim_end());
}

fn diff(change: &FileChange) -> String {
    match change {
        FileChange::Update { unified_diff, .. } => unified_diff.clone(),
        FileChange::Add { content } => signed("+", content),
        FileChange::Delete { content } => signed("-", content),
    }
}

fn signed(sign: &str, content: &str) -> String {
    content.lines().flat_map(|line| [sign, line, "\n"]).collect()
}
