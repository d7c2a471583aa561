//! The second step of opening a session: opens its provider with the API key, and its recording. No worker exists yet.

use std::sync::Arc;

use model::provider::{self, Connection, ModelProvider, socket_of};
use model::recording::{Places, Recorder};
use model::secrets::{ApiKey, KeyError, TakenKeys, find_key};
use secrecy::SecretString;

use super::error::OpenError;
use super::options::SessionOptions;
use super::prepared::PreparedSession;
use crate::engine::place::ProjectSandbox;
use crate::process::messages::say;

pub(super) struct Connected {
    pub(super) provider: Arc<dyn ModelProvider>,
    /// The API key, which logs mask.
    pub(super) secret: Option<SecretString>,
    recorder: Option<Recorder>,
}

impl Connected {
    /// Opens the recording and the provider's files, before an agent exists that could replace them.
    pub(super) fn new(prepared: &PreparedSession, keys: &TakenKeys) -> Result<Self, OpenError> {
        let PreparedSession { options, setup, .. } = prepared;
        let recorder = options.record.as_ref().map(|record| record.open(options)).transpose()?;
        let connection = connection(options, keys, recorder.clone(), setup)?;
        let secret = connection.api_key.clone();
        let provider = open(options, keys, connection)?;
        Ok(Self { provider, secret, recorder })
    }

    /// Writes the description of the run into the recording, if there is one.
    pub(super) fn describe(self, options: &SessionOptions, places: Places) {
        if let (Some(recorder), Some(record)) = (self.recorder, options.record.clone()) {
            record.describe(&recorder, options, places);
        }
    }
}

/// Returns the connection to the provider. A connection to a relay has no key, because the relay has the key.
fn connection(
    options: &SessionOptions,
    keys: &TakenKeys,
    recorder: Option<Recorder>,
    setup: &ProjectSandbox,
) -> Result<Connection, OpenError> {
    let SessionOptions { provider: kind, base_url, model, .. } = options;
    let variable = kind.key_variable();
    if base_url.as_deref().and_then(socket_of).is_some() {
        // The relay has the key, so that none is needed or sent.
        let connection = kind.connection(base_url.clone(), None, "the relay's key".to_owned());
        let chosen_by = model.chosen_by.clone();
        return Ok(Connection { recorder, chosen_by, timeouts: model.timeouts, ..connection });
    }
    let file = setup.directories.key_file(kind.vendor());
    let needs_key = kind.needs_key(base_url.as_deref().unwrap_or(kind.base_url()));
    let connection = match find_key(keys.of(*kind), variable, &file) {
        Ok(ApiKey { secret, origin, credential }) => {
            Connection { credential, ..kind.connection(base_url.clone(), Some(secret), origin) }
        }
        Err(KeyError::Missing { .. }) if !needs_key => {
            kind.connection(base_url.clone(), None, variable.to_owned())
        }
        Err(error) => return Err(error.into()),
    };
    let chosen_by = model.chosen_by.clone();
    Ok(Connection { recorder, chosen_by, timeouts: model.timeouts, ..connection })
}

fn open(
    options: &SessionOptions,
    keys: &TakenKeys,
    connection: Connection,
) -> Result<Arc<dyn ModelProvider>, OpenError> {
    let opened = provider::open(options.provider, connection, options.model.facts.api_version)?;
    for notice in opened.notices.iter().chain(&keys.notice(options.provider)) {
        say(notice);
    }
    Ok(opened.provider)
}
