//! A command of the user's own: `!cargo test`. It is no call of the model's, which reads the command and its output with the next message.

use gate::Ask;
use gate::approval::{Proposal, Subject};
use gate::tools::SHELL_EXEC;
use ipc::rights::{Execution, Grant};
use ipc::tool::{Access, ShellExec, ToolCall};
use protocol::approval::{AskKind, ReviewDecision};
use protocol::event::{DecidedBy, NoticeCode, ToolCallStatus};
use serde_json::json;

use super::Agent;
use super::approvals::Case;
use super::call::{CallResult, ToolUse};
use super::conversation::{OWN_COMMAND, UserSaid};
use super::end::Ending;
use super::turn::Phase;

impl Agent {
    /// The command runs now, where the agent rests. The model is asked nothing.
    pub(super) fn on_own_command(&mut self, command: String) {
        let said = UserSaid { text: format!("!{command}"), images: Vec::new() };
        let why = match self.turn.phase() {
            Phase::Closed => return,
            _ if command.trim().is_empty() => Some("it is empty"),
            Phase::Resting => None,
            Phase::Waiting | Phase::Asking | Phase::Working => Some("a turn is running"),
        };
        if let Some(why) = why {
            return self.out.notice(NoticeCode::CommandNotRun, &format!("the command was not run: {why}"));
        }
        if let Some(why) = self.conversation.too_long(&said, &self.seen) {
            return self.finish(Ending::context_full(&why));
        }
        self.conversation.hear(said);
        self.turn.command_ahead(command);
        if self.turn.begin() {
            self.begin_own_command();
        }
    }

    /// Begins the command that waits; false if there is none.
    pub(super) fn begin_own_command(&mut self) -> bool {
        let Some(command) = self.turn.take_command() else { return false };
        let input = json!({ "command": command, "access": "write" }).to_string();
        let Some(tool_use) = ToolUse::ours(OWN_COMMAND.to_owned(), SHELL_EXEC, input) else { return false };
        self.conversation.say_what_waits(&mut self.out);
        self.turn.work_for_user();
        let call = self.reserve_call();
        self.calls.push_of_user(call, tool_use.clone());
        self.log_started(call, &tool_use);
        match self.own_subject(command) {
            Ok(subject) => {
                self.log_answer(call, None, ReviewDecision::Approved, DecidedBy::OwnCommand, None);
                // The project, as far as it is not writable anyway, and nothing else.
                let grant = Grant { write: vec![self.seen.project.clone()], ..Grant::default() };
                self.carry_out(Case { call, ask: Ask { kind: AskKind::Exec, grant }, subject }, None);
            }
            Err(why) => {
                let text = format!("the command was not run: {why}");
                self.close_at_once(call, CallResult::not_done(ToolCallStatus::Failed, text));
                self.go_on();
            }
        }
        true
    }

    fn own_subject(&self, command: String) -> Result<Subject, String> {
        if self.seen.rights.exec == Execution::Denied {
            return Err("this session executes no commands".to_owned());
        }
        if self.replacement.has_failed() {
            return Err("there is no worker under the present rights".to_owned());
        }
        let call = ShellExec { command, access: Access::Write, network: None, cwd: None, timeout_ms: None };
        let proposal = Proposal::of_command(&self.seen, &call).map_err(|error| error.to_string())?;
        Ok(Subject::Effect { tool: ToolCall::ShellExec(call), proposal, denied: None })
    }
}
