//! How much a call may change.

use ipc::rights::Network;
use ipc::tool::{Access, ShellExec, ToolCall};

/// What a call needs before it may run, by its nature; the rights say whether it has that already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Risk {
    /// It reads: it runs at once.
    Auto,
    /// It may change something: standing rights or an approval have to cover it.
    Confirm,
    /// It is never carried out.
    Deny,
}

impl Risk {
    /// The risk of a call of one of the six tools.
    pub const fn of(call: &ToolCall) -> Self {
        match call {
            ToolCall::ReadFile(_) | ToolCall::ListDirectory(_) | ToolCall::SearchFiles(_) => Self::Auto,
            ToolCall::WriteFile(_) | ToolCall::EditFile(_) => Self::Confirm,
            ToolCall::ShellExec(call) => Self::of_command(call),
        }
    }

    // A command that declares to read is held to it by the kernel; one that also wants the network could send out what
    // it reads.
    const fn of_command(call: &ShellExec) -> Self {
        match (call.access, call.network) {
            (Access::Read, None | Some(Network::Off)) => Self::Auto,
            _ => Self::Confirm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Registry;

    #[test]
    fn every_tool_and_argument_shape_has_its_risk() {
        let table = [
            ("read_file", r#"{"path":"a"}"#, Risk::Auto),
            ("read_file", r#"{"path":"/etc/shadow","offset":2,"limit":3}"#, Risk::Auto),
            ("list_directory", r#"{"path":"."}"#, Risk::Auto),
            ("list_directory", r#"{"path":"/","depth":9}"#, Risk::Auto),
            ("search_files", r#"{"pattern":"x"}"#, Risk::Auto),
            ("search_files", r#"{"pattern":"x","path":"src","glob":"*.rs"}"#, Risk::Auto),
            ("write_file", r#"{"path":"a","content":""}"#, Risk::Confirm),
            ("edit_file", r#"{"path":"a","old_string":"b","new_string":"c"}"#, Risk::Confirm),
            ("edit_file", r#"{"path":"a","edits":[{"old_string":"b","new_string":"c"}]}"#, Risk::Confirm),
            ("shell_exec", r#"{"command":"ls"}"#, Risk::Confirm),
            ("shell_exec", r#"{"command":"ls","access":"standing"}"#, Risk::Confirm),
            ("shell_exec", r#"{"command":"ls","access":"write"}"#, Risk::Confirm),
            ("shell_exec", r#"{"command":"ls","access":"read"}"#, Risk::Auto),
            ("shell_exec", r#"{"command":"ls","access":"read","network":false}"#, Risk::Auto),
            ("shell_exec", r#"{"command":"ls","access":"read","network":true}"#, Risk::Confirm),
            ("shell_exec", r#"{"command":"ls","network":true}"#, Risk::Confirm),
            ("shell_exec", r#"{"command":"ls","network":false}"#, Risk::Confirm),
        ];
        let registry = Registry::builtin();
        for (tool, input, risk) in table {
            assert_eq!(registry.parse(tool, input).unwrap().risk, risk, "{tool} {input}");
        }
    }
}
