//! The options of a session, and the one place where settings become options.

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

/// Options for opening a session.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own, not a state among others")]
pub(crate) struct SessionOptions {
    pub directory: PathBuf,
    /// Handling of a call beyond the standing rights.
    pub mode: ApprovalMode,
    /// How it is asked, in mode `ask`.
    pub approvals: ApprovalSettings,
    /// What is confined, and how.
    pub wanted: ConfinementOptions,
    pub model: ModelOptions,
    /// The models that it may change to; none if absent.
    pub models: Option<Arc<SettingsModels>>,
    /// Who the model is asked of.
    pub provider: ProviderKind,
    /// The address of the provider, if it is another than its own.
    pub base_url: Option<String>,
    /// How much the model's context holds.
    pub window: Window,
    /// Bounds on one turn.
    pub limits: RunLimits,
    /// The longest that the session may last.
    pub timeout: Option<Duration>,
    /// Where the change of the project goes, if it is wanted.
    pub patch: Option<PathBuf>,
    /// Remarks on the settings for a person, where the front end shows nothing but events.
    pub notices: Vec<String>,
    /// True if the changed files are listed also without a patch.
    pub lists_changes: bool,
    /// True if the files are kept as they were, so that they can be taken back.
    pub keeps_files: bool,
    /// True if a turn that ends after a denied call has failed.
    pub fails_when_denied: bool,
    /// The check of its first agent's answers, if they have to fit a schema.
    pub answer: Option<Arc<dyn AnswerCheck>>,
    /// Number of turns: one, or as many as the user takes.
    pub turns: Turns,
    /// Whether and where the traffic with the model is recorded.
    pub record: Option<Record>,
    /// Bounds on its sub-agents.
    pub agents: TreeLimits,
    /// The roles that sub-agents may have.
    pub roles: Roles,
    /// The models that sub-agents may have beside the session's own and those of the user's roles.
    pub agent_models: Vec<String>,
    /// The equipment of its first agent.
    pub profile: Profile,
    /// What its first agent is there for.
    pub activity: Activity,
    pub plan: PlanOptions,
    /// The session that goes on; a new one begins if absent.
    pub resume: Option<Resume>,
    /// The user's own instructions, which hold in every project.
    pub instructions: Option<String>,
    /// The earlier sessions that are kept.
    pub keep: Keep,
    /// The servers of MCP whose tools its first agent is offered.
    pub mcp: Vec<McpServer>,
    /// Those of a file that a person named for this run.
    pub file_servers: Vec<FileServer>,
    /// True if the session waits while the disk of its log is full, instead of ending.
    pub pauses: bool,
}

impl SessionOptions {
    /// The same, with every model that the settings which made them know of.
    #[must_use]
    pub(crate) fn choosing_from(mut self, sources: Sources, asked: Layer) -> Self {
        self.models = Some(Arc::new(SettingsModels::new(&self, sources, asked)));
        self
    }

    /// The options that the settings make, for a front end that answers approvals. Whoever has many turns can end a
    /// wait that is too long, so that the model is tried for longer.
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

/// The options of plans as the settings have them.
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

/// The settings that are asked for, with the model that the settings name for planning, where nobody asked for another
/// one. Execution keeps the model that it would have had.
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
