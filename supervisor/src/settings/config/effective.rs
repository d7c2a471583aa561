//! The settings in force, as typed values.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use agent::core::{RunLimits, TreeLimits, Window};
use gate::approval::ApprovalSettings;
use gate::roles::Roles;
use ipc::confinement::Bounds;
use ipc::rights::{Limits, Network, Reach};
use model::provider::catalogue::{self, Api, Facts};
use model::provider::{CacheLifetime, Effort, ProviderKind, RetryPolicy, Timeouts};
use nix::sys::sysinfo::sysinfo;
use protocol::approval::ApprovalMode;
use protocol::cost::Usd;
use protocol::own_command::OwnCommand;
use protocol::plan::OnFailure;
use tui::keymap::{Keymap, KeymapError};
use tui::{StatusWords, ThemeName};

use super::layer::{Binding, ModelEntry, RoleEntry};
use super::mcp::{McpServer, ToolGrant};
use super::origin::ConfigOrigin;
use super::settled::{Ignored, Resolution};
use super::value::{Element, Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The value in force of each key, in the order of [`KEYS`](super::KEYS).
    pub settled: Vec<Resolution>,
    /// Settings of the project's file that are ignored, because they would add access.
    pub ignored: Vec<Ignored>,
    /// Keys of the terminal UI that the person changed.
    pub bindings: Vec<Binding>,
    pub models: Vec<ModelEntry>,
    /// Roles of sub-agents: first the person's, then those of the project that the person trusts.
    pub roles: Vec<RoleEntry>,
    /// The person's commands, and those of the project that the person trusts.
    pub commands: Vec<OwnCommand>,
    /// The person's MCP servers.
    pub mcp: Vec<McpServer>,
    /// The person's own instructions for every project; `None` without any.
    pub instructions: Option<String>,
}

impl Effective {
    /// Returns the approval mode in which a session starts.
    pub fn mode(&self) -> ApprovalMode {
        // An unknown word becomes the strictest mode.
        self.text("mode").and_then(ApprovalMode::named).unwrap_or(ApprovalMode::Deny)
    }

    pub fn model(&self) -> &str {
        self.text("model").unwrap_or_default()
    }

    /// Returns the provider: from the settings, or else the provider that the catalogue states for the model.
    pub fn provider(&self) -> ProviderKind {
        let of_model = || match self.facts().api {
            Api::Messages => ProviderKind::Anthropic,
            Api::Chat => ProviderKind::OpenAi,
            Api::Responses => ProviderKind::Responses,
        };
        self.text("provider").and_then(ProviderKind::named).unwrap_or_else(of_model)
    }

    pub fn reason_of_provider(&self) -> Option<String> {
        let kind = self.provider().as_str();
        match (self.text("provider"), self.facts() == Facts::default()) {
            (Some(_), _) => None,
            (None, true) => Some(format!("{kind} is the default")),
            (None, false) => Some(format!("{kind} follows from the model's name {:?}", self.model())),
        }
    }

    /// Returns the base URL of the provider; `None` for the default one.
    pub fn base_url(&self) -> Option<&str> {
        self.text("base_url")
    }

    pub fn net(&self) -> Network {
        match self.value("rights.net") {
            Some(Value::Network(net)) => net.clone(),
            _ => Network::Off,
        }
    }

    /// Returns the kinds of addresses that agents may reach besides the internet.
    pub fn reach(&self) -> Reach {
        let within =
            |place: &str| self.elements("rights.reach").iter().any(|element| element.first() == place);
        Reach {
            host: within("host"),
            lan: within("lan"),
            link_local: within("link-local"),
            metadata: within("metadata"),
        }
    }

    pub fn write(&self) -> &[Element] {
        self.elements("rights.write")
    }

    /// Returns the unix sockets of other programs that agents may reach, as they were written.
    pub fn sockets(&self) -> &[Element] {
        self.elements("rights.sockets")
    }

    /// Returns the paths that the settings hide in addition to the default ones, as they were written.
    pub fn hide(&self) -> &[Element] {
        self.elements("rights.hide")
    }

    /// Returns the protected paths inside the project, as they were written.
    pub fn protect(&self) -> &[Element] {
        self.elements("rights.protect")
    }

    pub fn env(&self) -> &[Element] {
        self.elements("rights.env")
    }

    pub fn run_limits(&self) -> RunLimits {
        let steps = self.number("limits.max_steps").map(|steps| u32::try_from(steps).unwrap_or(u32::MAX));
        let max_usd = self.amount("limits.max_usd");
        RunLimits { max_steps: steps, max_tokens: self.number("limits.max_tokens"), max_usd }
    }

    pub fn agents(&self) -> TreeLimits {
        let preset = TreeLimits::default();
        let count =
            |key, preset| self.number(key).map_or(preset, |number| u32::try_from(number).unwrap_or(u32::MAX));
        TreeLimits {
            depth: count("agents.depth", preset.depth),
            at_once: count("agents.at_once", preset.at_once),
            per_turn: count("agents.per_turn", preset.per_turn),
        }
    }

    /// Returns the default reaction to a failed step of a plan, which decides about the remaining steps.
    pub fn on_failure(&self) -> OnFailure {
        match self.text("plan.on_failure") {
            Some("retry") => OnFailure::Retry,
            Some("replan") => OnFailure::Replan,
            _ => OnFailure::Stop,
        }
    }

    /// Returns the number of times that a failed step of a plan is repeated.
    pub fn plan_retries(&self) -> u32 {
        self.number("plan.retries").map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    pub fn acceptance_timeout(&self) -> Duration {
        Duration::from_secs(self.number("plan.acceptance_timeout_s").unwrap_or(600))
    }

    /// Returns the model that is set under the key `key`; `None` if none is set.
    pub fn model_of(&self, key: &str) -> Option<String> {
        self.text(key).map(str::to_owned)
    }

    pub fn roles(&self) -> Roles {
        self.roles.iter().map(|entry| entry.role.clone()).collect()
    }

    pub fn names_model(&self, name: &str) -> bool {
        let of_keys = ["plan.model", "execute.model"].iter().filter_map(|key| self.model_of(key));
        let of_tables = self.models.iter().map(|entry| entry.pattern.as_str().to_owned());
        let of_session = std::iter::once(self.model().to_owned());
        of_session.chain(of_keys).chain(of_tables).chain(self.agent_models()).any(|known| known == name)
    }

    /// Returns the models that sub-agents may use besides the session's model.
    pub fn agent_models(&self) -> Vec<String> {
        let listed = self.elements("agents.models").iter();
        listed.map(|element| element.first().to_string_lossy().into_owned()).collect()
    }

    /// Returns the theme of the terminal UI; `None` if it depends on the terminal's background.
    pub fn theme(&self) -> Option<ThemeName> {
        match self.text("theme") {
            Some("dark") => Some(ThemeName::Dark),
            Some("light") => Some(ThemeName::Light),
            Some("high-contrast") => Some(ThemeName::HighContrast),
            _ => None,
        }
    }

    pub fn has_plain_keys(&self) -> bool {
        self.text("key_modes") == Some("plain")
    }

    pub fn status_words(&self) -> StatusWords {
        if self.text("status") == Some("short") { StatusWords::Short } else { StatusWords::Full }
    }

    pub fn has_wheel(&self) -> bool {
        self.text("mouse") != Some("off")
    }

    /// Returns the window of a session: the part of the model's context window that the session uses.
    pub fn window(&self) -> Window {
        self.number("limits.context_tokens").map_or_else(Window::default, Window::new)
    }

    pub fn timeout(&self) -> Option<Duration> {
        match self.value("limits.timeout_s") {
            Some(Value::Time(time)) => Some(*time),
            _ => None,
        }
    }

    pub fn call_limits(&self) -> Limits {
        let preset = Limits::default();
        let timeout_ms = self.number("limits.command_timeout_s").map(|seconds| seconds.saturating_mul(1000));
        Limits {
            timeout_ms: timeout_ms.unwrap_or(preset.timeout_ms),
            output_bytes: self.number("limits.output_bytes").unwrap_or(preset.output_bytes),
        }
    }

    /// Returns the resource limits of a worker and its commands together.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            processes: self.number("limits.processes"),
            memory: self.number("limits.memory_bytes").or_else(most_of_the_memory),
        }
    }

    /// Returns the settings for approvals in mode `ask`. `answerer` is true if a person or program can answer.
    pub fn approvals(&self, answerer: bool) -> ApprovalSettings {
        let preset = ApprovalSettings::default();
        let words = |element: &Element| {
            element.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        ApprovalSettings {
            timeout: self.number("approvals.timeout_s").map_or(preset.timeout, Duration::from_secs),
            confirm_shell: self.value("approvals.confirm_shell") == Some(&Value::Switch(true)),
            preapproved: self.elements("approvals.preapproved").iter().map(words).collect(),
            kept_in: None,
            offers: false,
            answerer,
        }
    }

    /// Returns one sentence for each command or tool that runs without a question in this project, with the place of
    /// the setting that allows it.
    pub fn unasked(&self) -> Vec<String> {
        let prefixes = self.elements("approvals.preapproved").iter().map(|element| {
            let words: Vec<_> = element.words.iter().map(|word| word.to_string_lossy()).collect();
            format!("commands that begin with {} · {}", words.join(" "), element.origin)
        });
        let tools = self.elements("approvals.tools").iter().flat_map(|element| {
            let grants = element.words.iter().filter_map(|word| ToolGrant::parse(word.to_str()?));
            grants.map(|ToolGrant { server, tool, .. }| format!("{tool} of {server} · {}", element.origin))
        });
        prefixes.chain(tools).collect()
    }

    /// Returns the tools of MCP servers that run without a question in this project.
    pub(super) fn tools_always(&self) -> impl Iterator<Item = ToolGrant> {
        let words = self.elements("approvals.tools").iter().flat_map(|element| &element.words);
        words.filter_map(|word| ToolGrant::parse(word.to_str()?))
    }

    pub fn is_set(&self, key: &str) -> bool {
        self.get(key).is_some_and(|settled| settled.origin != ConfigOrigin::Default)
    }

    /// Returns the origin of a key's value as text.
    pub fn origin(&self, key: &str) -> String {
        self.get(key).map_or_else(|| ConfigOrigin::Default.to_string(), |settled| settled.origin.to_string())
    }

    pub fn keymap(&self) -> Result<Keymap, KeymapError> {
        let rebindings: Vec<_> = self.bindings.iter().map(|binding| binding.rebinding.clone()).collect();
        Keymap::new(&rebindings)
    }

    /// Returns the person's entries for the session's model. An earlier entry has precedence over a later one.
    pub fn of_model(&self) -> Vec<&ModelEntry> {
        self.said_of(self.model())
    }

    fn said_of(&self, model: &str) -> Vec<&ModelEntry> {
        let said: Vec<_> = self.models.iter().map(|model| (model.pattern.clone(), model)).collect();
        catalogue::matching(&said, model).into_iter().copied().collect()
    }

    pub fn facts(&self) -> Facts {
        self.facts_of(self.model())
    }

    /// Returns the facts about the model with this name, from the person's entries and the catalogue.
    pub fn facts_of(&self, model: &str) -> Facts {
        let entries: Vec<_> = self.said_of(model).into_iter().map(|model| &model.entry).collect();
        Facts::of(&[entries, catalogue::built_in(model)].concat())
    }

    pub fn effort(&self) -> Option<Effort> {
        let word = self.text("effort")?;
        Effort::ALL.into_iter().find(|effort| effort.as_str() == word)
    }

    /// True if the model should think before it answers, false if not; `None` if no setting decides that.
    pub fn thinking(&self) -> Option<bool> {
        Some(self.text("thinking")? == "on")
    }

    /// Returns the time for which the provider caches the beginning of a prompt. The default is longer if a person
    /// `watches`, because they may answer late.
    pub fn cache(&self, watches: bool) -> CacheLifetime {
        match self.text("cache_ttl") {
            Some("1h") => CacheLifetime::OneHour,
            Some("5m") => CacheLifetime::FiveMinutes,
            _ if watches => CacheLifetime::OneHour,
            _ => CacheLifetime::FiveMinutes,
        }
    }

    pub fn timeouts(&self) -> Timeouts {
        let preset = Timeouts::default();
        let seconds = |name, preset| self.number(name).map_or(preset, Duration::from_secs);
        Timeouts {
            connect: seconds("timeouts.connect_s", preset.connect),
            first_byte: seconds("timeouts.first_byte_s", preset.first_byte),
            idle: seconds("timeouts.idle_s", preset.idle),
            progress: seconds("timeouts.progress_s", preset.progress),
        }
    }

    /// Returns how requests are repeated after errors. Default waits are longer if a person `watches`.
    pub fn retries(&self, watches: bool) -> RetryPolicy {
        let preset = RetryPolicy::default();
        let longest = if watches { Duration::from_hours(1) } else { preset.longest_wait };
        let seconds = |name, preset| self.number(name).map_or(preset, Duration::from_secs);
        let attempts = self.number("retries.attempts").and_then(|attempts| attempts.try_into().ok());
        RetryPolicy {
            attempts: attempts.unwrap_or(preset.attempts),
            longest_wait: seconds("retries.longest_wait_s", longest),
            budget: seconds("retries.budget_s", preset.budget),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Resolution> {
        self.settled.iter().find(|settled| settled.key.name == name)
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.get(name)?.value.as_ref()
    }

    pub fn amount(&self, name: &str) -> Option<Usd> {
        match self.value(name)? {
            Value::Amount(amount) => Some(*amount),
            _ => None,
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(crate) fn elements(&self, name: &str) -> &[Element] {
        self.value(name).map(Value::elements).unwrap_or_default()
    }
}

/// Returns three quarters of this machine's memory in bytes; `None` if its size is unknown.
fn most_of_the_memory() -> Option<u64> {
    sysinfo().ok().map(|machine| machine.ram_total() / 4 * 3)
}

/// Returns a path with `~` replaced by the home directory.
pub fn at_home(named: &OsStr, home: Option<&std::path::Path>) -> PathBuf {
    let path = PathBuf::from(named);
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}
