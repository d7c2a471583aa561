use std::sync::Arc;

use gate::StandingRights;
use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::tools::Registry;
use ipc::id::{AgentId, ConversationId};
use protocol::cost::Prices;
use protocol::event::PromptFixed;

use super::turn::fixed_prompt;
use super::{AnswerCheck, Backoff, Execution, Planning, RunLimits, Window};
use crate::conversation::RequestOptions;
use crate::prompt::PromptEnvironment;

pub struct AgentConfig {
    pub model: String,
    pub system: Arc<str>,
    pub tools: Arc<Registry>,
    pub max_tokens: u32,
    pub options: RequestOptions,
    pub sees_images: bool,
    /// Prices of the model; `None` if they are unknown.
    pub prices: Option<Prices>,
    pub window: Window,
    /// Facts about the agent's surroundings. Each context of the agent begins with them.
    pub surroundings: PromptEnvironment,
    pub limits: RunLimits,
    pub fails_when_denied: bool,
    /// Check of the last reply of a task against a schema; `None` if the reply may be any text.
    pub answer: Option<Arc<dyn AnswerCheck>>,
    pub backoff: Box<dyn Backoff>,
    /// Access that needs no approval, with host paths.
    pub standing: StandingRights,
    pub conversation: ConversationId,
    pub approvals: ApprovalSettings,
    pub id: AgentId,
    pub activity: Activity,
    pub planning: Option<Planning>,
    pub execution: Option<Execution>,
}

impl AgentConfig {
    pub fn prompt(&self) -> PromptFixed {
        fixed_prompt(&self.system, &self.tools)
    }
}

/// Limits for a session's sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Maximum number of levels below the first agent.
    pub depth: u32,
    /// Maximum number of sub-agents on one level that work at the same time. Others wait.
    pub at_once: u32,
    /// Maximum number of sub-agents that all agents of the session start in one turn of the user.
    pub per_turn: u32,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { depth: 2, at_once: 8, per_turn: 32 }
    }
}
