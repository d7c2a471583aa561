//! Options of a session, derived from settings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agent::core::{AnswerCheck, Approver, RunLimits, TreeLimits, Window};
use agent::prompt::Profile;
use gate::activity::Activity;
use gate::approval::ApprovalSettings;
use gate::modes::ApprovalMode;
use gate::roles::Roles;
use model::provider::ProviderKind;

use super::model::ModelOptions;
use super::models::SettingsModels;
use super::past::Resume;
use super::plan::PlanOptions;
use super::record::Record;
use crate::engine::driver::Turns;
use crate::engine::mcp::FileServer;
use crate::engine::place::ConfinementOptions;
use crate::journal::sessions::Keep;
use crate::settings::config::{Effective, Layer, McpServer, Sources};

#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
pub(crate) struct SessionOptions {
    pub directory: PathBuf,
    pub mode: ApprovalMode,
    pub approvals: ApprovalSettings,
    pub wanted: ConfinementOptions,
    pub model: ModelOptions,
    /// Models that the session may change to; `None` if the session cannot change its model.
    pub models: Option<Arc<SettingsModels>>,
    pub provider: ProviderKind,
    /// Address of the provider; `None` for the provider's default.
    pub base_url: Option<String>,
    pub window: Window,
    /// Limits of one turn.
    pub limits: RunLimits,
    /// Maximum duration of the session; `None` for no limit.
    pub timeout: Option<Duration>,
    /// File to which the changes of the project are written as a patch; `None` if no patch is wanted.
    pub patch: Option<PathBuf>,
    /// Notes about the settings. They are logged for front ends that show only events.
    pub notices: Vec<String>,
    /// True if the changed files are listed at the end even without a patch.
    pub lists_changes: bool,
    /// True if copies of files are kept for rewinds.
    pub keeps_files: bool,
    /// True if a turn that ends after a denied call counts as failed.
    pub fails_when_denied: bool,
    /// Check of the first agent's answers against a JSON schema.
    pub answer: Option<Arc<dyn AnswerCheck>>,
    pub turns: Turns,
    pub record: Option<Record>,
    pub agents: TreeLimits,
    pub roles: Roles,
    /// Models that calls may name for sub-agents, besides the session's model and models of the user's roles.
    pub agent_models: Vec<String>,
    /// Choice of prompt and tools of the first agent.
    pub profile: Profile,
    pub activity: Activity,
    pub plan: PlanOptions,
    /// Session to continue; `None` for a new one.
    pub resume: Option<Resume>,
    /// The user's instructions for all projects.
    pub instructions: Option<String>,
    /// Limits on the number and age of earlier sessions. Sessions beyond these limits are deleted.
    pub keep: Keep,
    /// MCP servers of the first agent.
    pub mcp: Vec<McpServer>,
    /// MCP servers of a file that the user named for this run.
    pub file_servers: Vec<FileServer>,
    /// True if the session pauses while its log's disk is full, instead of ending.
    pub pauses: bool,
}

impl SessionOptions {
    /// Allows the session to change to any model in these settings.
    #[must_use]
    pub(crate) fn choosing_from(mut self, sources: Sources, asked: Layer) -> Self {
        self.models = Some(Arc::new(SettingsModels::new(&self, sources, asked)));
        self
    }

    /// Returns the options for a front end that answers approval requests. With many turns, requests to the model are
    /// retried for longer, because the user can interrupt the wait.
    pub(crate) fn new(
        effective: &Effective,
        directory: PathBuf,
        wanted: ConfinementOptions,
        turns: Turns,
    ) -> Self {
        Self {
            profile: Profile::default(),
            directory,
            mode: effective.mode(),
            approvals: ApprovalSettings { offers: true, ..effective.approvals(true) },
            wanted,
            model: ModelOptions::new(effective, turns == Turns::Many),
            models: None,
            provider: effective.provider(),
            base_url: effective.base_url().map(str::to_owned),
            window: effective.window(),
            limits: effective.run_limits(),
            timeout: effective.timeout(),
            patch: None,
            notices: Vec::new(),
            lists_changes: false,
            keeps_files: true,
            fails_when_denied: true,
            answer: None,
            turns,
            record: None,
            agents: effective.agents(),
            roles: effective.roles(),
            agent_models: effective.agent_models(),
            activity: Activity::Execute,
            plan: plan_options(effective),
            resume: None,
            instructions: effective.instructions.clone(),
            keep: Keep {
                days: effective.number("sessions.keep_days"),
                mib: effective.number("sessions.keep_mib"),
            },
            mcp: effective.mcp.iter().filter(|server| server.enabled).cloned().collect(),
            file_servers: Vec::new(),
            pauses: false,
        }
    }
}

pub(crate) fn plan_options(effective: &Effective) -> PlanOptions {
    PlanOptions {
        approver: Approver::Person,
        earlier: None,
        on_failure: effective.on_failure(),
        retries: effective.plan_retries(),
        acceptance_timeout: effective.acceptance_timeout(),
        models: (effective.model_of("plan.model"), effective.model_of("execute.model")),
        max_usd: (effective.amount("plan.max_usd"), effective.amount("execute.max_usd")),
    }
}

/// Returns `asked`. For planning, adds the settings' model for planning unless `asked` names a model.
pub(crate) fn for_activity(asked: Layer, sources: &Sources, activity: Activity) -> Layer {
    let effective = sources.effective(&asked);
    let settled = |key: &str| effective.get(key).filter(|settled| settled.value.is_some());
    match settled("plan.model") {
        Some(plan) if activity == Activity::Plan && asked.value("model").is_none() => {
            let executor = settled("execute.model").or_else(|| settled("model"));
            let executor = executor.map(|settled| (settled.value.clone(), settled.origin.clone()));
            let asked = asked.with("model", plan.value.clone(), plan.origin.clone());
            match executor {
                Some((value, origin)) => asked.with("execute.model", value, origin),
                None => asked,
            }
        }
        _ => asked,
    }
}
