//! Decides, before a call is sent, if an agent's access allows it without an approval.

#![deny(
    clippy::wildcard_enum_match_arm,
    reason = "a new tool is judged when somebody has thought of it, and not by default"
)]

use std::path::{Component, Path, PathBuf};

use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::path::WirePath;
use ipc::rights::{Execution, Grant, Network};
use ipc::tool::{Access, EditFile, ShellExec, ToolCall, WriteFile};
use protocol::approval::AskKind;

use super::StandingRights;
use super::standing::is_kernel_tree;
use crate::modes::{Position, permits};
use crate::protected::is_acted_on;
use crate::tools::Invocation;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The worker executes the call, and the kernel checks every path.
    Run,
    /// The worker prepares the exact change, which [`StandingRights::judge_change`] then decides on.
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
    /// The path that must be writable: the file, or for a new one the nearest existing directory. `None` if a link is
    /// on the way, since its target is not known. `/` is never granted.
    pub grant: Option<WirePath>,
}

impl StandingRights {
    /// Leaves paths of file tools to the kernel or the worker, since only they can resolve them.
    pub fn judge(&self, invocation: &Invocation, agent: Position) -> Verdict {
        let asks = permits(agent, self.mode).asks();
        match invocation {
            Invocation::Worker(call) => self.judge_worker(call, asks),
            // For the access of a sub-agent, see [`StandingRights::judge_spawn`].
            Invocation::Supervisor(_) | Invocation::Agent(_) | Invocation::Plan(_) | Invocation::Tasks(_) => {
                Verdict::Run
            }
            Invocation::External(call)
                if call.guest.as_ref().is_some_and(|guest| self.covers_guest(guest)) =>
            {
                Verdict::Run
            }
            Invocation::External(call) if agent == Position::FIRST && self.runs_by_settings(call) => {
                Verdict::Run
            }
            Invocation::Fetch(call) => self.judge_fetch(call, asks),
            // No right of an agent covers the actions of another server.
            Invocation::External(_) if asks => {
                Verdict::Ask(Ask { kind: AskKind::ExternalTool, grant: Grant::default() })
            }
            Invocation::External(call) => Verdict::Deny(self.no_external(call, agent)),
        }
    }

    fn judge_worker(&self, call: &ToolCall, asks: bool) -> Verdict {
        match call {
            ToolCall::ShellExec(command) if asks => self.judge_to_ask(command),
            ToolCall::ShellExec(command) => self.judge_command(command).map_or(Verdict::Run, Verdict::Deny),
            ToolCall::WriteFile(WriteFile { path, .. }) | ToolCall::EditFile(EditFile { path, .. }) => {
                if asks && !self.writes_as_named(path) { Verdict::Prepare } else { Verdict::Run }
            }
            ToolCall::ReadFile(_) | ToolCall::ListDirectory(_) | ToolCall::SearchFiles(_) => Verdict::Run,
        }
    }

    pub fn judge_change(&self, places: &[Place]) -> Verdict {
        let beyond: Vec<_> = places.iter().filter(|place| !self.writes_unasked(&place.path)).collect();
        if let Some(denial) = beyond.iter().find_map(|place| self.closed_place(place)) {
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

    /// The denial for a path that no approval can make writable.
    pub(super) fn closed_place(&self, place: &Place) -> Option<Denial> {
        let path = &place.path;
        let within = |roots: &[WirePath]| roots.iter().any(|root| path.is_within(root));
        let later = || path.as_path().strip_prefix(&self.project).is_ok_and(is_acted_on);
        let rule = if self.hidden_root(path).is_some() {
            ClosedBy::Hidden
        } else if place.grant.as_ref().is_some_and(|grant| grant.as_path() == Path::new("/")) {
            ClosedBy::Wide
        } else if self.is_git_config(path) && place.grant.is_some() {
            return None;
        } else if within(&self.rights.protected) || self.is_in_levels(path) || later() {
            ClosedBy::Protected
        } else if is_kernel_tree(path) {
            ClosedBy::Kernel
        } else if place.grant.is_none() {
            ClosedBy::Link
        } else {
            return None;
        };
        let missing = MissingRight::Write { path: path.clone(), closed_by: Some(rule) };
        Some(refused(Operation::Write, Object::Path(path.clone()), missing, None))
    }

    /// True if the path, as written, may be changed without a request. The kernel checks its actual target.
    fn writes_as_named(&self, path: &WirePath) -> bool {
        let named = plain(&self.project.as_path().join(path.as_path()));
        named.is_some_and(|named| self.writes_unasked(&named.into()))
    }

    pub(super) fn judge_to_ask(&self, call: &ShellExec) -> Verdict {
        if self.rights.exec == Execution::Denied {
            return Verdict::Deny(no_commands(call));
        }
        let network = call.network.as_ref().is_some_and(Network::reaches_out);
        let reads = call.access == Access::Read;
        let writes = call.access == Access::Write && !self.holds_a_write_root();
        let lacks_network = network && self.rights.net.is_off();
        let grant = Grant {
            write: writes.then(|| self.project.clone()).into_iter().collect(),
            ..self.lacked_network(call)
        };
        let kind = match () {
            // A command that can read everything could send it out.
            () if writes || (reads && network) => AskKind::Exec,
            () if lacks_network => AskKind::Network,
            () if self.confirm_shell && !reads => AskKind::Exec,
            () => return Verdict::Run,
        };
        Verdict::Ask(Ask { kind, grant })
    }

    pub(super) fn lacked_network(&self, call: &ShellExec) -> Grant {
        if !call.network.as_ref().is_some_and(Network::reaches_out) || self.rights.net.reaches_out() {
            return Grant::default();
        }
        Grant { net: Network::On, reach: self.reach, ..Grant::default() }
    }

    fn judge_command(&self, call: &ShellExec) -> Option<Denial> {
        if self.rights.exec == Execution::Denied {
            return Some(no_commands(call));
        }
        let network = call.network.as_ref().is_some_and(Network::reaches_out);
        if network && call.access == Access::Read {
            // Only another declaration helps: a command that can read everything must not be able to send it out.
            return Some(refused(Operation::Network, address(), MissingRight::NetworkInReadingCommand, None));
        }
        if network && self.rights.net.is_off() {
            return Some(refused(
                Operation::Network,
                address(),
                MissingRight::Network,
                self.offered("--net on"),
            ));
        }
        if call.access == Access::Write && !self.holds_a_write_root() {
            let missing = self.right_to_write(&self.project);
            let object = Object::Path(self.project.clone());
            return Some(refused(Operation::Write, object, missing, self.write_grant(&self.project)));
        }
        None
    }
}

/// Removes `.` from a path. `None` if it has `..`, which only the file system can resolve.
pub fn plain(path: &Path) -> Option<PathBuf> {
    let up = path.components().any(|component| component == Component::ParentDir);
    (!up).then(|| path.components().collect())
}

pub(super) fn refused(
    operation: Operation,
    object: Object,
    missing: MissingRight,
    grant: Option<String>,
) -> Denial {
    Denial {
        layer: Layer::Policy,
        operation,
        object,
        program: None,
        missing_right: missing.into(),
        grant,
        grade: Grade::Proved,
        errno: None,
    }
}

fn no_commands(call: &ShellExec) -> Denial {
    refused(Operation::Execute, command(call), MissingRight::RunCommands, None)
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
