//! How the Messages API is reached.

use reqwest::Url;
use secrecy::SecretString;

use crate::provider::InvalidKey;
use crate::provider::http::{HttpError, Timeouts};

/// The address of the vendor's own API.
pub const BASE_URL: &str = "https://api.anthropic.com";

/// The version of the API that a request speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApiVersion {
    /// `2026-10-21`.
    #[default]
    V2026_10_21,
    /// `2023-06-01`: for gateways that know no other.
    V2023_06_01,
}

impl ApiVersion {
    /// The value of the header `anthropic-version`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2026_10_21 => "2026-10-21",
            Self::V2023_06_01 => "2023-06-01",
        }
    }
}

/// How the API is reached.
#[derive(Debug)]
pub struct Config {
    /// Its address; a path stays in front of `/v1/messages`.
    pub base_url: String,
    /// The key, where one is set.
    pub api_key: Option<SecretString>,
    /// Where the key comes from: `ANTHROPIC_API_KEY`, or the name of a file. Told to people when the key is refused.
    pub key_origin: String,
    /// The version of the API.
    pub version: ApiVersion,
    /// How long things may take.
    pub timeouts: Timeouts,
}

impl Config {
    /// The vendor's API with a key from the environment.
    pub fn new(api_key: Option<SecretString>) -> Self {
        Self {
            base_url: BASE_URL.to_owned(),
            api_key,
            key_origin: "ANTHROPIC_API_KEY".to_owned(),
            version: ApiVersion::default(),
            timeouts: Timeouts::default(),
        }
    }
}

/// The configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The base URL is none.
    #[error("the base URL {url:?} {fault}: expected something like {BASE_URL}")]
    BaseUrl {
        /// The text, without a password that it may have.
        url: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// The key cannot go into a header.
    #[error(transparent)]
    Key(#[from] InvalidKey),
    /// The client could not be made.
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// The base URL, checked.
pub(super) fn base_url(text: &str) -> Result<Url, ConfigError> {
    let fault = |url: &str, fault| ConfigError::BaseUrl { url: url.to_owned(), fault };
    let url: Url = text.trim().parse().map_err(|_| fault(text, "is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("…@…", "has a name or a password in it"));
    }
    match url.scheme() {
        "http" | "https" if !url.has_host() => Err(fault(text, "has no host")),
        "http" | "https" if url.query().is_some() || url.fragment().is_some() => {
            Err(fault(text, "has a query"))
        }
        "http" | "https" => Ok(url),
        _ => Err(fault(text, "is neither http nor https")),
    }
}

/// The address of the endpoint: the base URL keeps its path (R1).
pub(super) fn endpoint(base: &Url) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/v1/messages", base.path().trim_end_matches('/')));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_a_path_prefix_is_kept() {
        for (base, expected) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9/v1/messages"),
            ("https://gw.example/team/a/", "https://gw.example/team/a/v1/messages"),
        ] {
            assert_eq!(endpoint(&base_url(base).expect(base)).as_str(), expected);
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused_by_name_and_a_password_never_shown() {
        for (text, expected) in [
            ("api.anthropic.com", "is not a URL"),
            ("ftp://x/", "neither http nor https"),
            ("https://x/?a=b", "has a query"),
            ("https://me:hunter2@x/", "password in it"),
        ] {
            let error = base_url(text).expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
