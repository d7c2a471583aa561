//! What the standing rights say of a call before it is sent.

use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::rights::{Execution, Network};
use ipc::tool::{Access, ShellExec, ToolCall};

use super::Standing;
use crate::tools::{Invocation, Risk};

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes to the worker, whose ruleset judges every path.
    Run,
    /// It is not sent.
    Deny(Denial),
}

impl Standing {
    /// Judges a call. Paths of file tools are left to the kernel: only it knows what they lead to.
    pub fn judge(&self, invocation: &Invocation) -> Verdict {
        let Invocation { call, risk } = invocation;
        let denial = match (risk, call) {
            (Risk::Deny, call) => Some(forbidden(call)),
            (_, ToolCall::ShellExec(command)) => self.judge_command(command),
            _ => None,
        };
        denial.map_or(Verdict::Run, Verdict::Deny)
    }

    fn judge_command(&self, call: &ShellExec) -> Option<Denial> {
        if self.rights.exec == Execution::Denied {
            return Some(refused(Operation::Execute, command(call), "run commands", None));
        }
        let network = call.network == Some(Network::On);
        if network && call.access == Access::Read {
            // Nothing but another declaration helps: what may read everything must not be able to send it out.
            let missing = "network in a command with access \"read\" (declare another access)";
            return Some(refused(Operation::Network, address(), missing, None));
        }
        if network && self.rights.net == Network::Off {
            return Some(refused(Operation::Network, address(), "network", Some("--net on".to_owned())));
        }
        let writable = self.allows_write(&self.project);
        if call.access == Access::Write && !writable {
            let missing = format!("write {}", self.project);
            let object = Object::Path(self.project.clone());
            return Some(refused(Operation::Write, object, &missing, self.write_grant(&self.project)));
        }
        None
    }
}

fn refused(operation: Operation, object: Object, missing: &str, grant: Option<String>) -> Denial {
    let missing_right = missing.to_owned();
    Denial {
        layer: Layer::Policy,
        operation,
        object,
        missing_right,
        grant,
        grade: Grade::Proved,
        errno: None,
    }
}

fn forbidden(call: &ToolCall) -> Denial {
    let name = call.name();
    let object = Object::Command(name.to_owned());
    refused(Operation::Execute, object, &format!("a call of {name} with these arguments"), None)
}

fn address() -> Object {
    Object::Address("the network".to_owned())
}

/// The command, short enough for a sentence.
fn command(call: &ShellExec) -> Object {
    const LENGTH: usize = 80;
    let line = call.command.lines().next().unwrap_or_default();
    let mut text: String = line.chars().take(LENGTH).collect();
    if text.len() < call.command.len() {
        text.push('…');
    }
    Object::Command(text)
}
