//! Names in a git directory, each with the check that it needs.
//!
//! They are from gitrepository-layout(5) and from the names compiled into git 2.47. The list is an allowlist, since a
//! file of any other name might be executed or included by another version of git or another tool.

use std::ffi::OsStr;
use std::fs::FileType;

use super::state::{FileKind, TripwireRule};

/// Role of an entry at the top of a git directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LayoutPart {
    Data,
    Tree,
    /// Object store. Only its top and its lists of packs are checked, since git never writes objects through links.
    Objects,
    Judged(FileKind),
    Paused(Operation),
    /// Configuration, hooks, and directories of repositories, for which there are separate checks.
    Watched,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `git rebase` with the default backend, named `merge`.
    RebaseMerge,
    /// `git am`, and `git rebase --apply`.
    RebaseApply,
    /// `git cherry-pick` and `git revert` of several commits.
    Sequencer,
}

const DATA: &[&str] = &[
    "ADD_EDIT.patch",
    "AUTO_MERGE",
    "BISECT_ANCESTORS_OK",
    "BISECT_EXPECTED_REV",
    "BISECT_FIRST_PARENT",
    "BISECT_LOG",
    "BISECT_RUN",
    "EDIT_DESCRIPTION",
    "HEAD",
    "MERGE_MODE",
    "NOTES_MERGE_PARTIAL",
    "NOTES_MERGE_REF",
    "addp-hunk-edit.diff",
    "description",
    "gc.log",
    "gc.pid",
    "gitdir",
    "index",
    "locked",
    "packed-refs",
    "packed-refs.new",
    "shallow",
];

/// Prefixes of data files' names: split indexes, and temporary files that git renames later.
const DATA_PREFIXES: &[&str] = &["index.", "sharedindex.", "sharedindex_", "next-index-", "shallow_"];

const TREES: &[&str] = &[
    "NOTES_MERGE_WORKTREE",
    "filter-repo",
    "info",
    "lfs",
    "logs",
    "refs",
    "reftable",
    "rr-cache",
    "subtree-cache",
];

const JUDGED: &[(&str, TripwireRule)] = &[
    ("BISECT_NAMES", TripwireRule::QuotedWords),
    ("BISECT_START", TripwireRule::Revision),
    ("BISECT_TERMS", TripwireRule::Revision),
    ("MERGE_AUTOSTASH", TripwireRule::Revision),
    ("MERGE_RR", TripwireRule::ConflictedPaths),
];

const WATCHED: &[&str] =
    &["branches", "commondir", "config", "config.worktree", "hooks", "modules", "remotes", "worktrees"];

/// Names of files in the directory of a paused operation that git only reads as data.
const PAUSED_DATA: &[(Operation, &[&str])] = &[
    (
        Operation::RebaseMerge,
        &[
            "allow_rerere_autoupdate",
            "amend",
            "cdate_is_adate",
            "current-fixups",
            "drop_redundant_commits",
            "dropped",
            "end",
            "head-name",
            "ignore_date",
            "interactive",
            "keep_redundant_commits",
            "message",
            "message-fixup",
            "message-squash",
            "msgnum",
            "no-reschedule-failed-exec",
            "onto",
            "orig-head",
            "patch",
            "quiet",
            "refs-to-delete",
            "reschedule-failed-exec",
            "rewritten-list",
            "rewritten-pending",
            "signoff",
            "squash-onto",
            "stopped-sha",
            "trailer",
            "update-refs",
            "verbose",
        ],
    ),
    (
        Operation::RebaseApply,
        &[
            "abort-safety",
            "allow_rerere_autoupdate",
            "applying",
            "dirtyindex",
            "final-commit",
            "head-name",
            "info",
            "interactive",
            "keep",
            "last",
            "messageid",
            "msg",
            "msg-clean",
            "next",
            "no_inbody_headers",
            "onto",
            "orig-head",
            "original-commit",
            "patch",
            "patch-format",
            "patch-merge-index",
            "quiet",
            "quoted-cr",
            "rebasing",
            "rewritten",
            "scissors",
            "sign",
            "signoff",
            "threeway",
            "utf8",
            "verbose",
        ],
    ),
    (Operation::Sequencer, &["abort-safety", "head"]),
];

const PAUSED_JUDGED: &[(Operation, &[(&str, TripwireRule)])] = &[
    (
        Operation::RebaseMerge,
        &[
            ("author-script", TripwireRule::Author),
            ("autostash", TripwireRule::Revision),
            ("done", TripwireRule::Todo),
            ("git-rebase-todo", TripwireRule::Todo),
            ("git-rebase-todo.backup", TripwireRule::Todo),
            ("gpg_sign_opt", TripwireRule::Sign),
            ("strategy", TripwireRule::Strategy),
            ("strategy_opts", TripwireRule::StrategyOptions),
        ],
    ),
    (
        Operation::RebaseApply,
        &[
            ("apply-opt", TripwireRule::ApplyOptions),
            ("author-script", TripwireRule::Author),
            ("autostash", TripwireRule::Revision),
            ("gpg_sign_opt", TripwireRule::Sign),
            ("strategy", TripwireRule::Strategy),
            ("strategy_opts", TripwireRule::StrategyOptions),
        ],
    ),
    (Operation::Sequencer, &[("opts", TripwireRule::SequencerOptions), ("todo", TripwireRule::Todo)]),
];

pub(super) fn part(name: &OsStr) -> LayoutPart {
    let Some(name) = name.to_str() else { return LayoutPart::Unknown };
    match name {
        "objects" => return LayoutPart::Objects,
        "rebase-merge" => return LayoutPart::Paused(Operation::RebaseMerge),
        "rebase-apply" => return LayoutPart::Paused(Operation::RebaseApply),
        "sequencer" => return LayoutPart::Paused(Operation::Sequencer),
        _ => {}
    }
    if let Some((_, rule)) = JUDGED.iter().find(|(judged, _)| *judged == name) {
        return LayoutPart::Judged(FileKind::State(*rule));
    }
    if WATCHED.contains(&name) {
        return LayoutPart::Watched;
    }
    if TREES.contains(&name) {
        return LayoutPart::Tree;
    }
    let is_lock =
        name.strip_suffix(".lock").is_some_and(|name| part(OsStr::new(name)) != LayoutPart::Unknown);
    if is_lock || is_data(name) { LayoutPart::Data } else { LayoutPart::Unknown }
}

fn is_data(name: &str) -> bool {
    DATA.contains(&name)
        || DATA_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || is_root_ref(name)
        || is_message(name)
}

/// True for the name of a ref outside of `refs`, such as `ORIG_HEAD` (`is_root_ref_syntax` of git).
fn is_root_ref(name: &str) -> bool {
    name.ends_with("_HEAD") && name.bytes().all(|byte| byte.is_ascii_uppercase() || b"_-".contains(&byte))
}

/// True for the name of a file with a message that the user edits for git, such as `COMMIT_EDITMSG`.
fn is_message(name: &str) -> bool {
    (name.ends_with("EDITMSG") || name.ends_with("_MSG"))
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// Returns the check for a file in the directory of a paused operation. `None` if git only reads the file as data.
pub(super) fn kind_in(operation: Operation, name: &OsStr) -> Option<FileKind> {
    let Some(name) = name.to_str() else { return Some(FileKind::Unknown) };
    let judged = PAUSED_JUDGED.iter().filter(|(one, _)| *one == operation).flat_map(|(_, files)| *files);
    if let Some((_, rule)) = judged.clone().find(|(file, _)| *file == name) {
        return Some(FileKind::State(*rule));
    }
    let base = name.strip_suffix(".lock").unwrap_or(name);
    let mut data = PAUSED_DATA.iter().filter(|(one, _)| *one == operation).flat_map(|(_, files)| *files);
    let is_known = data.any(|file| *file == base);
    // The patches that are still to be applied are numbered.
    let is_patch = operation == Operation::RebaseApply && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_lock = base != name && judged.clone().any(|(file, _)| *file == base);
    (!is_patch && !is_lock && !is_known).then_some(FileKind::Unknown)
}

/// True for a regular file that git only reads as data. Such a file needs no check.
pub(super) fn is_plain_data(name: &OsStr, file_type: Option<FileType>) -> bool {
    part(name) == LayoutPart::Data && file_type.is_some_and(|kind| kind.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_git_are_parts_and_others_are_not() {
        for name in [
            "HEAD",
            "ORIG_HEAD",
            "FETCH_HEAD",
            "index",
            "index.lock",
            "COMMIT_EDITMSG",
            "MERGE_MSG",
            "config.lock",
        ] {
            assert_eq!(part(OsStr::new(name)), LayoutPart::Data, "{name}");
        }
        for name in [
            "annex",
            "branchless",
            "sl",
            "hooks2",
            "HOOKS",
            ".COMMIT_EDITMSG.swp",
            "head",
            "X_HEAD.bak",
            "x.lock",
        ] {
            assert_eq!(part(OsStr::new(name)), LayoutPart::Unknown, "{name}");
        }
        assert_eq!(part(OsStr::new("refs")), LayoutPart::Tree);
        assert_eq!(part(OsStr::new("hooks")), LayoutPart::Watched);
    }

    #[test]
    fn the_files_of_a_paused_operation_are_data_judged_or_unknown() {
        let kind = |operation, name: &str| kind_in(operation, OsStr::new(name));
        assert_eq!(kind(Operation::RebaseMerge, "onto"), None);
        assert_eq!(kind(Operation::RebaseMerge, "git-rebase-todo.lock"), None);
        assert_eq!(
            kind(Operation::RebaseMerge, "git-rebase-todo"),
            Some(FileKind::State(TripwireRule::Todo))
        );
        assert_eq!(kind(Operation::RebaseMerge, "git-merge-x"), Some(FileKind::Unknown));
        assert_eq!(kind(Operation::RebaseApply, "0001"), None);
        assert_eq!(kind(Operation::Sequencer, "0001"), Some(FileKind::Unknown));
        assert_eq!(kind(Operation::Sequencer, "opts"), Some(FileKind::State(TripwireRule::SequencerOptions)));
    }
}
