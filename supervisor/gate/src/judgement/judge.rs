//! Decides on calls before they are sent: if the agent's access allows them without an approval.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new tool is judged when somebody has thought of it, and not by default"
)]

use std::path::{Component, Path, PathBuf};

use ipc::denial::{Denial, Object, Operation};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::path::WirePath;
use ipc::rights::{Execution, Grant, Network};
use ipc::tool::{Access, EditFile, ShellExec, ToolCall, WriteFile};
use protocol::approval::AskKind;

use super::denial::{by_policy, right_to_write};
use super::standing::is_kernel_tree;
use super::{StandingRights, fetch, flags, guest};
use crate::modes::{Position, permits};
use crate::protected::is_acted_on;
use crate::tools::Invocation;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The worker executes the call, and the kernel checks every path.
    Run,
    /// The worker prepares the exact change, which [`change`] then decides on.
    Prepare,
    /// A person has to approve the call.
    Ask(Ask),
    Deny(Denial),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    pub kind: AskKind,
    pub grant: Grant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub path: WirePath,
    /// Path that must be writable: the file, or for a new one the nearest existing directory. `None` if a link leads to
    /// the file, since then its target is not known. `/` is never granted.
    pub grant: Option<WirePath>,
}

/// Decides on a call. The paths of file tools are left to the kernel or the worker, since only these can resolve them.
pub fn call(standing: &StandingRights, invocation: &Invocation, agent: Position) -> Verdict {
    let asks = permits(agent, standing.mode).asks();
    match invocation {
        Invocation::Worker(call) => worker_call(standing, call, asks),
        // For the access of a sub-agent, see `spawn::judge`.
        Invocation::Supervisor(_) | Invocation::Agent(_) | Invocation::Plan(_) | Invocation::Tasks(_) => {
            Verdict::Run
        }
        Invocation::External(call)
            if call.guest.as_ref().is_some_and(|guest| guest::covers(standing, guest)) =>
        {
            Verdict::Run
        }
        Invocation::External(call) if agent == Position::FIRST && guest::runs_by_settings(standing, call) => {
            Verdict::Run
        }
        Invocation::Fetch(call) => fetch::judge(standing, call, asks),
        // No right of an agent covers the actions of another server.
        Invocation::External(_) if asks => {
            Verdict::Ask(Ask { kind: AskKind::ExternalTool, grant: Grant::default() })
        }
        Invocation::External(call) => Verdict::Deny(guest::denial(standing, call, agent)),
    }
}

fn worker_call(standing: &StandingRights, call: &ToolCall, asks: bool) -> Verdict {
    match call {
        ToolCall::ShellExec(command) if asks => command_to_ask(standing, command),
        ToolCall::ShellExec(command) => command_denial(standing, command).map_or(Verdict::Run, Verdict::Deny),
        ToolCall::WriteFile(WriteFile { path, .. }) | ToolCall::EditFile(EditFile { path, .. }) => {
            if asks && !writes_as_named(standing, path) { Verdict::Prepare } else { Verdict::Run }
        }
        ToolCall::ReadFile(_) | ToolCall::ListDirectory(_) | ToolCall::SearchFiles(_) => Verdict::Run,
    }
}

pub fn change(standing: &StandingRights, places: &[Place]) -> Verdict {
    let beyond: Vec<_> = places.iter().filter(|place| !standing.writes_unasked(&place.path)).collect();
    if let Some(denial) = beyond.iter().find_map(|place| closed_place(standing, place)) {
        return Verdict::Deny(denial);
    }
    let mut write: Vec<_> = beyond.iter().filter_map(|place| place.grant.clone()).collect();
    write.sort_unstable();
    write.dedup();
    if write.is_empty() {
        return Verdict::Run;
    }
    Verdict::Ask(Ask { kind: AskKind::Patch, grant: Grant { write, ..Grant::default() } })
}

/// Returns the denial of a change that no approval can permit; `None` if an approval can make the path writable.
pub(super) fn closed_place(standing: &StandingRights, place: &Place) -> Option<Denial> {
    let path = &place.path;
    let within = |roots: &[WirePath]| roots.iter().any(|root| path.is_within(root));
    let later = || path.as_path().strip_prefix(&standing.project).is_ok_and(is_acted_on);
    let rule = if standing.hidden_root(path).is_some() {
        ClosedBy::Hidden
    } else if place.grant.as_ref().is_some_and(|grant| grant.as_path() == Path::new("/")) {
        ClosedBy::Wide
    } else if standing.is_git_config(path) && place.grant.is_some() {
        return None;
    } else if within(&standing.rights.protected) || standing.is_in_levels(path) || later() {
        ClosedBy::Protected
    } else if is_kernel_tree(path) {
        ClosedBy::Kernel
    } else if place.grant.is_none() {
        ClosedBy::Link
    } else {
        return None;
    };
    let missing = MissingRight::Write { path: path.clone(), closed_by: Some(rule) };
    Some(by_policy(Operation::Write, Object::Path(path.clone()), missing, None))
}

/// True if a path may be changed without a request, judged by its text. The kernel checks the path's actual target.
fn writes_as_named(standing: &StandingRights, path: &WirePath) -> bool {
    let named = plain(&standing.project.as_path().join(path.as_path()));
    named.is_some_and(|named| standing.writes_unasked(&named.into()))
}

pub(super) fn command_to_ask(standing: &StandingRights, call: &ShellExec) -> Verdict {
    if standing.rights.exec == Execution::Denied {
        return Verdict::Deny(no_commands(call));
    }
    let network = call.network.as_ref().is_some_and(Network::reaches_out);
    let reads = call.access == Access::Read;
    let writes = call.access == Access::Write && !standing.holds_a_write_root();
    let lacks_network = network && standing.rights.net.is_off();
    let grant = Grant {
        write: writes.then(|| standing.project.clone()).into_iter().collect(),
        ..lacked_network(standing, call)
    };
    let kind = match () {
        // A command that can read everything could send it out.
        () if writes || (reads && network) => AskKind::Exec,
        () if lacks_network => AskKind::Network,
        () if standing.confirm_shell && !reads => AskKind::Exec,
        () => return Verdict::Run,
    };
    Verdict::Ask(Ask { kind, grant })
}

pub(super) fn lacked_network(standing: &StandingRights, call: &ShellExec) -> Grant {
    if !call.network.as_ref().is_some_and(Network::reaches_out) || standing.rights.net.reaches_out() {
        return Grant::default();
    }
    Grant { net: Network::On, reach: standing.reach, ..Grant::default() }
}

fn command_denial(standing: &StandingRights, call: &ShellExec) -> Option<Denial> {
    if standing.rights.exec == Execution::Denied {
        return Some(no_commands(call));
    }
    let network = call.network.as_ref().is_some_and(Network::reaches_out);
    if network && call.access == Access::Read {
        // Only another declaration helps: a command that can read everything must not be able to send it out.
        return Some(by_policy(Operation::Network, address(), MissingRight::NetworkInReadingCommand, None));
    }
    if network && standing.rights.net.is_off() {
        return Some(by_policy(
            Operation::Network,
            address(),
            MissingRight::Network,
            flags::offered(standing, "--net on"),
        ));
    }
    if call.access == Access::Write && !standing.holds_a_write_root() {
        let missing = right_to_write(standing, &standing.project);
        let object = Object::Path(standing.project.clone());
        return Some(by_policy(
            Operation::Write,
            object,
            missing,
            flags::for_write(standing, &standing.project),
        ));
    }
    None
}

/// Removes `.` from a path. `None` if it contains `..`, which only the file system can resolve.
pub fn plain(path: &Path) -> Option<PathBuf> {
    let up = path.components().any(|component| component == Component::ParentDir);
    (!up).then(|| path.components().collect())
}

fn no_commands(call: &ShellExec) -> Denial {
    by_policy(Operation::Execute, command(call), MissingRight::RunCommands, None)
}

fn address() -> Object {
    Object::Address("the network".to_owned())
}

fn command(call: &ShellExec) -> Object {
    const LENGTH: usize = 80;
    let line = call.command.lines().next().unwrap_or_default();
    let mut text: String = line.chars().take(LENGTH).collect();
    if text.len() < call.command.len() {
        text.push('…');
    }
    Object::Command(text)
}
