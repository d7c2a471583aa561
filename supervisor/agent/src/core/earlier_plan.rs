//! A plan that was made before the session: the user has it executed, and the planner is asked only where it has to be revised.

use gate::tools::WRITE_PLAN;
use ipc::id::{CallId, ToolUseId};
use protocol::event::{NoticeCode, PlanAuthor, ToolCallStatus};
use serde_json::json;
use serde_json::value::RawValue;

use super::Agent;
use super::agent::AgentState;
use super::conversation::{EARLIER_PLAN, UserSaid};
use super::reply::ToolUse;

/// The end of a plan that never began.
const NOT_EXECUTED: &str = "the plan was not executed";

impl Agent {
    pub(super) fn on_execute_plan(&mut self, markdown: String) {
        let why = match self.state {
            _ if self.config.planning.is_none() => Some("this agent makes no plans"),
            AgentState::Resting if !self.turn_waits => None,
            _ => Some("the agent is at work"),
        };
        if let Some(why) = why {
            return self.out.notice(NoticeCode::PlanRefused, &format!("{NOT_EXECUTED}: {why}"));
        }
        let text = format!(
            "I have this plan from before. Another agent executes it now, and its account follows:\n\n{markdown}"
        );
        self.earlier_plan = Some(markdown);
        self.on_user_turn(UserSaid { text, images: Vec::new() });
    }

    /// The plan as a call of the user's, as if it had just been written.
    pub(super) fn begin_earlier_plan(&mut self, markdown: &str) {
        let input = json!({ "markdown": markdown }).to_string();
        let Ok(echoed) = RawValue::from_string(input.clone()) else { return self.end_turn() };
        let tool_use = ToolUse {
            id: ToolUseId(EARLIER_PLAN.to_owned()),
            name: WRITE_PLAN.to_owned(),
            input: Ok(input),
            echoed,
            said: None,
        };
        self.run.unexecuted = Some(NOT_EXECUTED.to_owned());
        self.state = AgentState::Working;
        let call = self.reserve_call();
        self.calls.push_of_user(call, tool_use);
        self.go_on();
    }

    /// The author of the plan that a call writes.
    pub(super) fn author_of(&self, call: CallId) -> PlanAuthor {
        if self.calls.is_of_user(call) { PlanAuthor::Earlier } else { PlanAuthor::Planner }
    }

    /// The user's call is closed: a plan that did not begin is no success.
    pub(super) fn conclude_earlier_plan(&mut self) {
        let Some(result) = self.calls.results().next() else { return };
        self.run.text.clone_from(&result.content);
        if result.denial.is_some() {
            self.run.unexecuted = None;
        } else if result.status == ToolCallStatus::Failed
            && self.run.unexecuted.as_deref() == Some(NOT_EXECUTED)
        {
            self.run.unexecuted = Some(result.content.clone());
        }
    }
}
