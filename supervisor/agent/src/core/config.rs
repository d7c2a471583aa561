//! What an agent is made with: fixed for its life, but for the model and what follows from it.

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
    /// The model's name.
    pub model: String,
    pub system: Arc<str>,
    pub tools: Arc<Registry>,
    /// The most tokens of one reply.
    pub max_tokens: u32,
    /// Further demands of each request.
    pub options: RequestOptions,
    /// True if the model sees pictures.
    pub sees_images: bool,
    /// The model's prices, where they are known.
    pub prices: Option<Prices>,
    /// Size of the model's context.
    pub window: Window,
    /// Surroundings of the agent; each of its contexts tells them.
    pub surroundings: PromptEnvironment,
    /// Bounds on one run.
    pub limits: RunLimits,
    /// True if a turn that ends after a denied call has failed.
    pub fails_when_denied: bool,
    /// The check of the last reply of a task, if it has to fit a schema.
    pub answer: Option<Arc<dyn AnswerCheck>>,
    /// Decides whether and when a failed request is sent again.
    pub backoff: Box<dyn Backoff>,
    /// The standing rights, with the host's own paths.
    pub standing: StandingRights,
    pub conversation: ConversationId,
    /// Settings of approvals, in mode `ask`.
    pub approvals: ApprovalSettings,
    pub id: AgentId,
    pub activity: Activity,
    /// The planning that it does, if it does any.
    pub planning: Option<Planning>,
    /// The plan that it executes, if it does.
    pub execution: Option<Execution>,
}

impl AgentConfig {
    /// The system prompt and the tools of each of its requests, for the log.
    pub fn prompt(&self) -> PromptFixed {
        fixed_prompt(&self.system, &self.tools)
    }
}

/// Bounds on a session's sub-agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLimits {
    /// Number of levels below an agent of the top level.
    pub depth: u32,
    /// The most sub-agents of one level that work at a time; others wait.
    pub at_once: u32,
    /// The most sub-agents that one turn of the user's may start.
    pub per_turn: u32,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { depth: 2, at_once: 8, per_turn: 32 }
    }
}
