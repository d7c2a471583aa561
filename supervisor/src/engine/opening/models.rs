//! Models that a session may change to: all models in the settings that have the same provider and address.

use agent::core::{ModelChoice, RunLimits};
use model::provider::ProviderKind;
use model::provider::anthropic::ApiVersion;
use protocol::rpc::SET_MODEL_METHOD;

use super::SessionOptions;
use super::model::ModelOptions;
use crate::engine::driver::{Models, Turns};
use crate::settings::config::{ConfigOrigin, Effective, Layer, Sources, Value};

/// Models in the settings. The settings are read again for each change of the model.
#[derive(Debug)]
pub(crate) struct SettingsModels {
    sources: Sources,
    asked: Layer,
    provider: ProviderKind,
    base_url: Option<String>,
    version: ApiVersion,
    limits: RunLimits,
    watches: bool,
}

impl SettingsModels {
    /// Creates the value for the settings `sources` and `asked`, from which `options` were derived.
    pub(crate) fn new(options: &SessionOptions, sources: Sources, asked: Layer) -> Self {
        Self {
            sources,
            asked,
            provider: options.provider,
            base_url: options.base_url.clone(),
            version: options.model.facts.api_version,
            limits: options.limits,
            watches: options.turns == Turns::Many,
        }
    }

    fn settings_of(&self, name: &str) -> Effective {
        let name = Value::Text(name.to_owned());
        self.sources.effective(&self.asked.clone().with(
            "model",
            Some(name),
            ConfigOrigin::Flag(SET_MODEL_METHOD),
        ))
    }

    /// Fails if this model needs another connection than the session's. The error is a text for the user.
    fn is_reached(&self, name: &str, effective: &Effective, model: &ModelOptions) -> Result<(), String> {
        let (ours, other) = (self.provider.as_str(), effective.provider().as_str());
        if other != ours {
            return Err(format!("the model {name} needs the provider {other}, but this session uses {ours}"));
        }
        if effective.base_url() != self.base_url.as_deref() || model.facts.api_version != self.version {
            return Err(format!(
                "the model {name} needs another address or another version of the API than this session uses"
            ));
        }
        Ok(())
    }
}

impl Models for SettingsModels {
    fn choose(&self, name: &str) -> Result<ModelChoice, String> {
        if name.trim().is_empty() {
            return Err("a model has a name".to_owned());
        }
        let effective = self.settings_of(name);
        let model = ModelOptions::new(&effective, self.watches);
        self.is_reached(name, &effective, &model)?;
        model.check(&self.limits).map_err(|error| error.to_string())?;
        Ok(model.choice(effective.window()))
    }
}
