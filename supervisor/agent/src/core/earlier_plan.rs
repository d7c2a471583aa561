//! A plan that was made before the session: the user has it executed, and the planner is asked only where it has to be revised.

use gate::tools::WRITE_PLAN;
use ipc::id::CallId;
use protocol::event::{NoticeCode, PlanAuthor};
use serde_json::json;

use super::Agent;
use super::call::ToolUse;
use super::conversation::{EARLIER_PLAN, UserSaid};
use super::turn::{NOT_EXECUTED, Phase};

impl Agent {
    pub(super) fn on_execute_plan(&mut self, markdown: String) {
        let why = match self.turn.phase() {
            _ if self.config.planning.is_none() => Some("this agent makes no plans"),
            Phase::Resting => None,
            Phase::Waiting | Phase::Asking | Phase::Working | Phase::Closed => Some("the agent is at work"),
        };
        if let Some(why) = why {
            return self.out.notice(NoticeCode::PlanRefused, &format!("{NOT_EXECUTED}: {why}"));
        }
        let text = format!(
            "I have this plan from before. Another agent executes it now, and its account follows:\n\n{markdown}"
        );
        self.turn.plan_ahead(markdown);
        self.on_user_turn(UserSaid { text, images: Vec::new() });
    }

    /// The plan as a call of the user's, as if it had just been written.
    pub(super) fn begin_earlier_plan(&mut self, markdown: &str) {
        let input = json!({ "markdown": markdown }).to_string();
        let Some(tool_use) = ToolUse::ours(EARLIER_PLAN.to_owned(), WRITE_PLAN, input) else {
            return self.end_turn();
        };
        self.turn.begin_plan();
        self.turn.work();
        let call = self.reserve_call();
        self.calls.push_of_user(call, tool_use);
        self.go_on();
    }

    /// The author of the plan that a call writes.
    pub(super) fn author_of(&self, call: CallId) -> PlanAuthor {
        if self.calls.is_of_user(call) { PlanAuthor::Earlier } else { PlanAuthor::Planner }
    }
}
