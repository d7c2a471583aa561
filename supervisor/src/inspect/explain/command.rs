//! The policy for a command: the programs that it names, and how a `shell_exec` call with it is handled.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use boundary::policy::leads_to;
use gate::Verdict as Judged;
use gate::command_line::{self, covers, offered_prefix};
use gate::judgement::judge;
use gate::modes::Position;
use gate::tools::Invocation;
use ipc::path::WirePath;
use ipc::rights::Network;
use ipc::tool::{Access, ShellExec, ToolCall};
use serde::Serialize;

use super::ExplainPolicy;
use super::answer::{ExplainAnswer, ExplainVerdict};

#[derive(Debug, Serialize)]
pub(super) struct CommandExplained {
    pub command: String,
    /// Words of the command that name programs; `None` if it is uncertain how bash reads the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub programs: Option<Vec<ExplainProgram>>,
    /// The setting that approves commands with this beginning, with the setting's origin; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preapproved: Option<String>,
    /// The beginning of the command that an approval would offer to allow for the session; `None` without an offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_prefix: Option<Vec<String>>,
    /// The handling of a call with this command, for each access that the call could declare.
    pub calls: Vec<ExplainedCall>,
}

#[derive(Debug, Serialize)]
pub(super) struct ExplainProgram {
    pub name: String,
    #[serde(flatten)]
    pub found: FoundProgram,
}

/// The result of looking up a program's name.
#[derive(Debug, Serialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub(super) enum FoundProgram {
    /// A built-in command of the shell.
    Shell,
    File {
        path: WirePath,
    },
    Hidden {
        path: WirePath,
    },
    Nothing,
}

#[derive(Debug, Serialize)]
pub(super) struct ExplainedCall {
    /// The access that the call declares, such as `access "write", network true`.
    pub declares: String,
    pub answer: ExplainAnswer,
}

const DECLARED: [(Access, Option<Network>, &str); 4] = [
    (Access::Read, None, "access \"read\""),
    (Access::Standing, None, "nothing"),
    (Access::Write, None, "access \"write\""),
    (Access::Standing, Some(Network::On), "network true"),
];

impl CommandExplained {
    pub(super) fn new(command: &str, policy: &ExplainPolicy<'_>) -> Self {
        let programs = command_line::programs_of(command);
        let prefixes = &policy.approvals.preapproved;
        let by = prefixes.iter().any(|_| covers(prefixes, command));
        let calls = DECLARED.into_iter().map(|(access, network, declares)| ExplainedCall {
            declares: declares.to_owned(),
            answer: call(command, access, network, policy),
        });
        Self {
            programs: programs.map(|names| names.into_iter().map(|name| program(name, policy)).collect()),
            preapproved: by.then(|| policy.origins.of_key("approvals.preapproved")),
            offered_prefix: offered_prefix(command),
            calls: calls.collect(),
            command: command.to_owned(),
        }
    }
}

fn call(
    command: &str,
    access: Access,
    network: Option<Network>,
    policy: &ExplainPolicy<'_>,
) -> ExplainAnswer {
    let shell = ShellExec { command: command.to_owned(), access, network, cwd: None, timeout_ms: None };
    let call = ToolCall::ShellExec(shell);
    let invocation = Invocation::Worker(call);
    let standing = policy.standing;
    let mode = Some(policy.origins.of_key("mode"));
    match judge::call(standing, &invocation, Position::FIRST) {
        Judged::Run | Judged::Prepare => ExplainAnswer::allowed("runs in the sandbox, without asking", None),
        Judged::Ask(ask) if ask.grant.is_empty() => ExplainAnswer {
            origin: mode,
            ..ExplainAnswer::new(
                ExplainVerdict::Asked,
                "every command needs your approval (approvals.confirm_shell)",
            )
        },
        Judged::Ask(ask) => {
            let because = format!(
                "mode {} asks for your approval; then the command runs once with: {}",
                standing.mode(),
                ask.grant
            );
            ExplainAnswer { origin: mode, ..ExplainAnswer::new(ExplainVerdict::Asked, because) }
        }
        Judged::Deny(denial) => {
            ExplainAnswer::denied(&denial, format!("missing access: {}", denial.missing_right), mode)
        }
    }
}

fn program(name: String, policy: &ExplainPolicy<'_>) -> ExplainProgram {
    let found = if command_line::is_of_the_shell(&name) { FoundProgram::Shell } else { find(&name, policy) };
    ExplainProgram { name, found }
}

/// Searches for a program in the `PATH` of commands, as execvp(3) does.
fn find(name: &str, policy: &ExplainPolicy<'_>) -> FoundProgram {
    let readable = |path: &WirePath| {
        policy.standing.allows_read(path)
            && policy.standing.allows_read(&leads_to(path.as_path()).path.into())
    };
    let mut hidden = None;
    for place in places(name, policy) {
        let path = WirePath::from(&place);
        if !readable(&path) {
            hidden = hidden.or_else(|| place.symlink_metadata().is_ok().then_some(path));
        } else if is_executable(&place) {
            return FoundProgram::File { path };
        }
    }
    hidden.map_or(FoundProgram::Nothing, |path| FoundProgram::Hidden { path })
}

fn places(name: &str, policy: &ExplainPolicy<'_>) -> Vec<PathBuf> {
    let project = policy.standing.project().as_path();
    if name.contains('/') {
        return vec![project.join(name)];
    }
    let set = policy.setup.variable("PATH");
    let path = match set {
        Some(value) => Some(std::ffi::OsStr::from_bytes(value).to_owned()),
        None => std::env::var_os("PATH"),
    };
    let path = path.unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    std::env::split_paths(&path).map(|directory| project.join(directory).join(name)).collect()
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
