//! Checks for `doctor` if a provider can be reached, without a key and without costs.

use std::time::{Duration, SystemTime};

use reqwest::header::DATE;

use super::ProviderError;
use super::connection::{self, ConfigError};
use super::connection_error::connection_error;
use super::http::{self, Http, Timeouts};
use super::second_look::looked_at;

/// The requested path. Every API has this path, and answers at once.
const PATH: &str = "/v1/models";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    pub host: String,
    pub status: u16,
    pub date: Option<SystemTime>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Provider(ProviderError),
    #[error("{host} did not answer within {within:?}")]
    Late { host: String, within: Duration },
}

pub async fn ask(base_url: &str, within: Duration) -> Result<ProbeAnswer, ProbeError> {
    let base = connection::base_url(base_url)?;
    let timeouts = Timeouts::default();
    let Http { client, way, .. } = Http::new(&base, timeouts, false).map_err(ConfigError::from)?;
    let (url, host) = (connection::endpoint(&base, PATH), http::host(&base));
    let sent = tokio::time::timeout(within, client.get(url).send());
    let sent = sent.await.map_err(|_| ProbeError::Late { host: host.clone(), within })?;
    let response = match sent {
        Ok(response) => response,
        Err(error) => {
            return Err(ProbeError::Provider(looked_at(connection_error(&error, &way), &way).await));
        }
    };
    let date =
        response.headers().get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    Ok(ProbeAnswer { host, status: response.status().as_u16(), date })
}

pub fn has_system_authorities() -> Result<bool, ConfigError> {
    let anywhere = connection::base_url("https://localhost")?;
    Ok(Http::new(&anywhere, Timeouts::default(), false)?.notices.is_empty())
}
