use secrecy::SecretString;

use crate::provider::http::Timeouts;
use crate::provider::{Connection, Credential};

pub const BASE_URL: &str = "https://api.anthropic.com";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiVersion {
    #[default]
    V2026_10_21,
    /// Version 2023-06-01, for gateways that accept no newer version.
    V2023_06_01,
}

impl ApiVersion {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2026_10_21 => "2026-10-21",
            Self::V2023_06_01 => "2023-06-01",
        }
    }
}

#[derive(Debug)]
pub struct AnthropicConfig {
    pub connection: Connection,
    pub version: ApiVersion,
}

impl AnthropicConfig {
    pub fn new(api_key: Option<SecretString>) -> Self {
        Self::at(Connection {
            base_url: BASE_URL.to_owned(),
            api_key,
            key_origin: "ANTHROPIC_API_KEY".to_owned(),
            credential: Credential::default(),
            chosen_by: None,
            timeouts: Timeouts::default(),
            recorder: None,
        })
    }

    pub fn at(connection: Connection) -> Self {
        Self { connection, version: ApiVersion::default() }
    }
}
