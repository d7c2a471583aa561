use std::path::Path;

use model::provider::{Connection, ProviderKind};
use model::relay::{MAX_REPLY, Settings};
use model::secrets::{ApiKey, KeyError, TakenKeys, find_key};

use super::Refusal;
use crate::process::directories::Directories;
use crate::process::messages::say;
use crate::settings::config::{ConfigOrigin, Effective, Layer, Sources, Value};

/// Settings of a relay that the user requested.
#[derive(Clone, Debug, Default)]
pub(crate) struct RelayWanted {
    /// APIs that the relay offers; if empty, the API in the settings.
    pub(crate) providers: Vec<ProviderKind>,
    pub(crate) base_url: Option<String>,
    /// Models that clients may use; if empty, all models. Models without a known price are excluded.
    pub(crate) models: Vec<String>,
    /// Maximum number of tokens of a reply; `None` for the relay's default.
    pub(crate) max_reply: Option<u64>,
}

/// Derives a relay's settings from the user's flags, the user's settings and the API keys.
pub(crate) fn relay_settings(
    wanted: RelayWanted,
    keys: &TakenKeys,
    directories: &Directories,
) -> Result<Settings, Refusal> {
    // Without settings of a project: the root directory has no trusted ones.
    let sources = Sources::read(directories, Path::new("/")).map_err(Refusal::usage)?;
    let of = |kind: Option<ProviderKind>| {
        let provider = kind.map(|kind| Value::Text(kind.as_str().to_owned()));
        let flags = Layer::default().with("provider", provider, ConfigOrigin::Flag("--provider")).with(
            "base_url",
            wanted.base_url.clone().map(Value::Text),
            ConfigOrigin::Flag("--base-url"),
        );
        sources.effective(&flags)
    };
    let preset = of(None);
    let mut kinds = wanted.providers.clone();
    if kinds.is_empty() {
        kinds.push(preset.provider());
    }
    let mut upstreams = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        if !kinds[..index].contains(kind) {
            upstreams.push((*kind, connection(*kind, &of(Some(*kind)), keys, directories)?));
        }
    }
    Ok(Settings {
        upstreams,
        facts: Box::new(move |model| preset.facts_of(model)),
        models: wanted.models,
        max_reply: wanted.max_reply.unwrap_or(MAX_REPLY),
        log: directories.state.join("relay"),
        complain: say,
    })
}

fn connection(
    kind: ProviderKind,
    effective: &Effective,
    keys: &TakenKeys,
    directories: &Directories,
) -> Result<Connection, Refusal> {
    let base_url = effective.base_url().map(str::to_owned);
    let needs_key = kind.needs_key(base_url.as_deref().unwrap_or(kind.base_url()));
    let (variable, file) = (kind.key_variable(), directories.key_file(kind.vendor()));
    let connection = match find_key(keys.of(kind), variable, &file) {
        Ok(ApiKey { secret, origin, credential }) => {
            Connection { credential, ..kind.connection(base_url, Some(secret), origin) }
        }
        Err(KeyError::Missing { .. }) if !needs_key => kind.connection(base_url, None, variable.to_owned()),
        Err(error) => return Err(Refusal::usage(error)),
    };
    Ok(Connection { timeouts: effective.timeouts(), ..connection })
}
