//! Explanations of the denials of a command's operations, inferred from its error messages and exit status.

use std::ffi::OsString;

use complaint::{named_in, start};
use gate::StandingRights;
use gate::judgement::denied;
use gate::modes::{Position, permits};
use ipc::confinement::Tier;
use ipc::denial::{Denial, Grade, Object, Operation};
use ipc::named::NamedPlace;
use ipc::refusal::Refusal;
use ipc::rights::Rights;
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};

use crate::engine::place::{ProjectSandbox, User};
use crate::process::messages::PlainDenial;
use crate::process::messages::say;

pub(super) struct Finished<'a> {
    pub(super) command: String,
    pub(super) status: u8,
    /// Last part of what the command wrote to standard error.
    pub(super) errors: &'a [u8],
    pub(super) refused: Vec<Refusal>,
}

/// Explains the denials of a command; after success only those for which [`is_told_of_success`] is true.
pub(super) fn explain(setup: &ProjectSandbox, rights: Rights, tier: Tier, finished: Finished<'_>) {
    let Finished { command, status, errors, refused } = finished;
    // Most commands met no denial. The file system is not searched for those.
    if status == 0 && errors.is_empty() && refused.is_empty() {
        return;
    }
    let standing = setup.standing().with_rights(rights).seen_in(tier);
    let call = ShellExec { command, access: Access::Standing, network: None, cwd: None, timeout_ms: None };
    let head = String::from_utf8_lossy(errors).into_owned();
    let result = CommandResult {
        exit: CommandExit::Code(status.into()),
        named: places(setup, &standing, &call.command, &head),
        head,
        omitted_bytes: 0,
        tail: String::new(),
        saved: None,
        process: 0,
        refused,
        duration_ms: 0,
    };
    if let Some(hint) = denied::connection_hint(&standing, &result) {
        say(hint);
    }
    for advice in denied::advice(&standing, &call.command, &result) {
        say(advice.trim_matches(['(', ')']));
    }
    let mut denials = denied::denials(&standing, &call, &result);
    denials.retain(|denial| status != 0 || is_told_of_success(denial));
    let shown = if status == 0 { one_of_each(&denials) } else { denials.clone() };
    for mut denial in shown {
        denial.grant = grant(&denial, &standing);
        say(&PlainDenial(&denial).to_string());
    }
    if !denials.is_empty() {
        say(&format!("access: {}", standing.line()));
    }
    if denials.is_empty()
        && let Some(hint) = denied::git_config_hint(&standing, &result)
    {
        say(hint.trim_matches(['(', ')']));
    }
}

/// True if a denial is printed even though the command succeeded: a write, or a connection that the broker denied. A
/// program that only checks its access opens no connection.
fn is_told_of_success(denial: &Denial) -> bool {
    let is_network = denial.operation == Operation::Network && denial.grade == Grade::Proved;
    denial.operation == Operation::Write || is_network
}

/// Returns all denials, but of those for the network only the first for each missing right.
fn one_of_each(denials: &[Denial]) -> Vec<Denial> {
    let is_first = |(at, denial): &(usize, &Denial)| {
        let is_network = denial.operation == Operation::Network;
        !is_network || !denials[..*at].iter().any(|other| other.missing_right == denial.missing_right)
    };
    denials.iter().enumerate().filter(is_first).map(|(_, denial)| denial.clone()).collect()
}

/// Returns the text of a command; for `sh -c LINE` only the line.
pub(super) fn text_of(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    match words.as_slice() {
        [shell, flag, line, ..] if shell.ends_with("sh") && flag.ends_with('c') => line.to_string(),
        _ => words.join(" "),
    }
}

/// Finds the files that the command's error messages name. The person gave the command, so these may be inspected.
fn places(setup: &ProjectSandbox, standing: &StandingRights, command: &str, errors: &str) -> Vec<NamedPlace> {
    let user = User::of(setup.identity);
    let directory = start(command, standing.project().as_path());
    let mut names = named_in([errors, ""]);
    names.retain(|name| directory.is_some() || name.starts_with('/'));
    let directory = directory.unwrap_or_default();
    let looked = |named| complaint::find(named, &directory, |path| user.permits(path));
    names.into_iter().map(looked).collect()
}

/// Returns the flags of `bailiwick sandbox` that would allow a denied operation; `None` if no flag does.
fn grant(denial: &Denial, standing: &StandingRights) -> Option<String> {
    let in_project = matches!(&denial.object, Object::Path(path) if path.is_within(standing.project()));
    let by_mode = in_project
        && !permits(Position::FIRST, standing.mode()).may_come_to_write()
        && denial.operation == Operation::Write;
    denial.grant.clone().map(|grant| if by_mode { "--access write".to_owned() } else { grant })
}
