//! What holds, by its meaning.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use ipc::approval::ApprovalMode;
use ipc::rights::{Limits, Network, Reach};
use tui::Prices;
use tui::keymap::{Keymap, KeymapError};

use super::layer::{Binding, Price};
use super::settled::{Ignored, Settled};
use super::value::{Element, Value};
use crate::approval::ApprovalSettings;
use crate::core::RunLimits;
use crate::provider::ProviderKind;

/// What holds of every key.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// Of each key, in the order of the table.
    pub settled: Vec<Settled>,
    /// What the project's file would widen, and does not.
    pub ignored: Vec<Ignored>,
    /// The keys of the terminal UI that the user has changed.
    pub bindings: Vec<Binding>,
    /// What models cost.
    pub prices: BTreeMap<String, Price>,
}

impl Effective {
    /// What becomes of a call beyond the standing rights, where a terminal UI starts.
    pub fn mode(&self) -> ApprovalMode {
        let word = self.text("mode");
        // A word that is none of them would be the narrowest.
        ApprovalMode::ALL.into_iter().find(|mode| Some(mode.as_str()) == word).unwrap_or(ApprovalMode::Deny)
    }

    /// The model.
    pub fn model(&self) -> &str {
        self.text("model").unwrap_or_default()
    }

    /// Who the model is asked of.
    pub fn provider(&self) -> ProviderKind {
        self.text("provider").and_then(ProviderKind::named).unwrap_or_default()
    }

    /// The address of the provider, if it is another than its own.
    pub fn base_url(&self) -> Option<&str> {
        self.text("base_url")
    }

    /// The network.
    pub fn net(&self) -> Network {
        if self.text("rights.net") == Some("on") { Network::On } else { Network::Off }
    }

    /// Where the network leads besides.
    pub fn reach(&self) -> Reach {
        let within =
            |place: &str| self.elements("rights.reach").iter().any(|element| element.first() == place);
        Reach { host: within("host"), link_local: within("link-local"), metadata: within("metadata") }
    }

    /// Further write roots, as they were named.
    pub fn write(&self) -> &[Element] {
        self.elements("rights.write")
    }

    /// Hidden paths beside the default ones, as they were named.
    pub fn hide(&self) -> &[Element] {
        self.elements("rights.hide")
    }

    /// Places inside the project that stay as they are, as they were named.
    pub fn protect(&self) -> &[Element] {
        self.elements("rights.protect")
    }

    /// Variables: `NAME` or `NAME=VALUE`.
    pub fn env(&self) -> &[Element] {
        self.elements("rights.env")
    }

    /// Bounds on one turn.
    pub fn run_limits(&self) -> RunLimits {
        let steps = self.number("limits.max_steps").map(|steps| u32::try_from(steps).unwrap_or(u32::MAX));
        RunLimits { max_steps: steps, max_tokens: self.number("limits.max_tokens") }
    }

    /// The longest that a run may last.
    pub fn timeout(&self) -> Option<Duration> {
        self.number("limits.timeout_s").map(Duration::from_secs)
    }

    /// Bounds on one call.
    pub fn call_limits(&self) -> Limits {
        let preset = Limits::default();
        let timeout_ms = self.number("limits.command_timeout_s").map(|seconds| seconds.saturating_mul(1000));
        Limits {
            timeout_ms: timeout_ms.unwrap_or(preset.timeout_ms),
            output_bytes: self.number("limits.output_bytes").unwrap_or(preset.output_bytes),
        }
    }

    /// How it is asked in mode `ask`, where somebody can answer or not.
    pub fn approvals(&self, answerer: bool) -> ApprovalSettings {
        let preset = ApprovalSettings::default();
        let words = |element: &Element| {
            element.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        ApprovalSettings {
            timeout: self.number("approvals.timeout_s").map_or(preset.timeout, Duration::from_secs),
            confirm_shell: self.value("approvals.confirm_shell") == Some(&Value::Switch(true)),
            preapproved: self.elements("approvals.preapproved").iter().map(words).collect(),
            answerer,
        }
    }

    /// Which key does what in the terminal UI.
    pub fn keymap(&self) -> Result<Keymap, KeymapError> {
        let rebindings: Vec<_> = self.bindings.iter().map(|binding| binding.rebinding.clone()).collect();
        Keymap::new(&rebindings)
    }

    /// What the model costs, where that is known.
    pub fn prices_of_model(&self) -> Option<Prices> {
        self.prices.get(self.model()).map(|price| price.prices)
    }

    /// What holds of a key.
    pub fn get(&self, name: &str) -> Option<&Settled> {
        self.settled.iter().find(|settled| settled.key.name == name)
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.get(name)?.value.as_ref()
    }

    fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self, name: &str) -> Option<u64> {
        match self.value(name)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn elements(&self, name: &str) -> &[Element] {
        self.value(name).map(Value::elements).unwrap_or_default()
    }
}

/// A path as it was named, with `~` for the user's home.
pub fn at_home(named: &OsStr, home: Option<&std::path::Path>) -> PathBuf {
    let path = PathBuf::from(named);
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}
