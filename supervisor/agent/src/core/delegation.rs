//! Calls that another agent serves: a sub-agent starts under rights of its own, and its end is the call's result.

use std::fmt::{Display, Write};

use gate::approval::{AgentSpawn, Subject};
use gate::tools::SpawnAgent;
use gate::{Ask, ChildRights};
use ipc::codec::CodecError;
use ipc::denial::Denial;
use ipc::id::CallId;
use ipc::rights::Rights;
use protocol::event::{Account, DecidedBy, SubAgentResult, SubAgentStatus, ToolCallStatus};

use super::approvals::Case;
use super::call::CallResult;
use super::calls::Open;
use super::results::Observation;
use super::turn::Phase;
use super::{Agent, Effect, NewAgent, Purpose};

/// The result of a call whose rights went while a sub-agent worked for it, or that was interrupted.
pub(super) const SUBTREE_ENDED: &str =
    "the sub-agent was ended with everything below it; what it had done stays";

impl Agent {
    pub(super) fn delegate(&mut self, call: CallId, spawn: SpawnAgent, child: ChildRights) {
        let ChildRights { rights, grant } = child;
        let purpose = Purpose::Task(self.config.activity);
        let agent = Box::new(NewAgent { spawn, rights, grant, purpose });
        self.out.push(Effect::SpawnAgent { call, agent });
        self.calls.open_as(call, Open::Delegated);
    }

    /// Asks for the rights of a sub-agent that its parent does not have.
    pub(super) fn ask_to_delegate(&mut self, call: CallId, spawn: Result<AgentSpawn, CodecError>, ask: Ask) {
        match spawn {
            Ok(spawn) => self.ask(Case { call, ask, subject: Subject::Agent(Box::new(spawn)) }),
            Err(error) => {
                let cause = format!("the rights of the sub-agent cannot be shown: {error}");
                self.deny(call, None, DecidedBy::BadAnswer, &cause);
            }
        }
    }

    pub(super) fn on_agent_finished(&mut self, call: CallId, report: &SubAgentResult) {
        if !matches!(self.calls.open(call), Some(Open::Delegated)) {
            return;
        }
        let content = format!("{}{}", account_of(report), self.after_execution(call, report));
        let result = match report.status {
            SubAgentStatus::Done => CallResult::answered(content),
            SubAgentStatus::Interrupted => CallResult::not_done(ToolCallStatus::Interrupted, content),
            _ => CallResult::not_done(ToolCallStatus::Failed, content),
        };
        self.finish_call(call, result, Observation::by_supervisor(report.duration_ms));
        self.go_on();
    }

    /// The rights of an agent above this one became less, and so do its own: whatever ran is ended, since it had more.
    pub(super) fn on_narrowed(&mut self, rights: Rights) {
        if self.turn.phase() == Phase::Closed || rights == self.config.standing.rights {
            return;
        }
        self.replace_worker(rights);
    }
}

/// The most files that a parent's model reads of; the log has them all.
const LISTED_FILES: usize = 100;

/// The end of a sub-agent as the parent's model reads it: the supervisor's account, then what the sub-agent says.
pub fn account_of(report: &SubAgentResult) -> String {
    let SubAgentResult {
        agent,
        status,
        message,
        files,
        unseen,
        denials,
        denied,
        steps,
        usage,
        cost_usd,
        plan,
        text,
        ..
    } = report;
    let mut told = format!("[account of the supervisor] sub-agent {agent}: {}", status.as_str());
    if let Some(message) = message {
        // A String takes every write, here and below.
        let _ = write!(told, " ({})", line(message));
    }
    for step in plan {
        let _ = write!(told, "\nstep {}", line(step));
        for outcome in step.acceptance.iter().filter(|outcome| !outcome.passed) {
            let _ = write!(told, "\n  {}", line(outcome.without_time()));
        }
    }
    let account = Account::of(*usage, *cost_usd);
    let unit = if *steps == 1 { "step" } else { "steps" };
    let _ = write!(told, "\n{steps} {unit}, {account}");
    if !files.is_empty() {
        told.push_str("\nfiles that it changed:");
        for path in files.iter().take(LISTED_FILES) {
            let _ = write!(told, "\n  {}", line(path));
        }
        if files.len() > LISTED_FILES {
            let _ = write!(told, "\n  and {} more", files.len() - LISTED_FILES);
        }
    }
    if let Some(unseen) = unseen {
        let _ = write!(told, "\nits commands may have changed other files: {}", line(unseen));
    }
    if *denials > 0 {
        let unit = if *denials == 1 { "denial" } else { "denials" };
        let _ = write!(told, "\n{denials} {unit}: something was beyond its rights");
        for Denial { operation, object, layer, .. } in denied {
            let _ = write!(told, "\n  {operation} {} ({layer})", line(object));
        }
    }
    if text.is_empty() {
        told.push_str("\n[it left no message]");
    } else {
        let _ = write!(told, "\n[its last message: a claim that you may have to check]\n{text}");
    }
    told
}

/// Names and words of others in one line: none of them begins a line of the account.
fn line(text: impl Display) -> String {
    let ends = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    let mut line = String::new();
    for character in text.to_string().chars() {
        if ends(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use ipc::denial::{Grade, Layer, Object, Operation};
    use ipc::missing_right::MissingRight;
    use protocol::event::TokenUsage;

    use super::*;

    fn report() -> SubAgentResult {
        SubAgentResult {
            agent: "1.2".into(),
            call: Some(CallId(3)),
            status: SubAgentStatus::Done,
            message: None,
            files: vec![],
            unseen: None,
            denials: 0,
            denied: vec![],
            steps: 1,
            usage: TokenUsage { input: 1200, output: 34, ..TokenUsage::default() },
            cost_usd: None,
            duration_ms: 5,
            plan: vec![],
            text: "the bug is in a.rs:3".to_owned(),
        }
    }

    #[test]
    fn the_supervisors_account_comes_before_the_sub_agents_words() {
        insta::assert_snapshot!(account_of(&report()), @"
        [account of the supervisor] sub-agent 1.2: done
        1 step, 1.2k in, 0% cached, 34 out
        [its last message: a claim that you may have to check]
        the bug is in a.rs:3
        ");
        let failed = SubAgentResult {
            status: SubAgentStatus::Budget,
            message: Some("the limit of 5 steps is reached".to_owned()),
            files: vec!["/p/a.rs".into(), "/p/b.rs".into()],
            unseen: None,
            denials: 2,
            denied: vec![Denial {
                layer: Layer::Mounts,
                operation: Operation::Write,
                object: Object::Path("/p/c.rs".into()),
                program: None,
                missing_right: MissingRight::Write { path: "/p/c.rs".into(), closed_by: None }.into(),
                grant: None,
                grade: Grade::Proved,
                errno: None,
            }],
            steps: 5,
            text: String::new(),
            ..report()
        };
        insta::assert_snapshot!(account_of(&failed), @r"
        [account of the supervisor] sub-agent 1.2: budget (the limit of 5 steps is reached)
        5 steps, 1.2k in, 0% cached, 34 out
        files that it changed:
          /p/a.rs
          /p/b.rs
        2 denials: something was beyond its rights
          write /p/c.rs (read-only mount)
        [it left no message]
        ");
    }
}
