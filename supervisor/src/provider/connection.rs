//! How a provider is reached: its address, its key, its time-outs.

use reqwest::Url;
use secrecy::SecretString;

use super::InvalidKey;
use super::http::{HttpError, Timeouts};
use crate::recording::Recorder;
use crate::secrets::Credential;

/// How a provider is reached.
#[derive(Debug)]
pub struct Connection {
    /// Its address; a path stays in front of the API's own.
    pub base_url: String,
    /// The key, where one is set.
    pub api_key: Option<SecretString>,
    /// Where the key comes from: `ANTHROPIC_API_KEY`, or the name of a file. Told to people when the key is refused.
    pub key_origin: String,
    /// How the key is sent.
    pub credential: Credential,
    /// The reason why its API is spoken, where no person chose it: told where the server speaks another.
    pub chosen_by: Option<String>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Who writes down what goes out and what comes back.
    pub recorder: Option<Recorder>,
}

/// The provider cannot be reached like this.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The base URL is none.
    #[error("the base URL {url:?} {fault}\n  hint: write it like https://api.anthropic.com")]
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
pub(crate) fn base_url(text: &str) -> Result<Url, ConfigError> {
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

/// The address of an endpoint: the base URL keeps its path (R1). A version that ends the base already is not doubled:
/// `https://host/v1` and `/v1/messages` make `https://host/v1/messages`.
pub(crate) fn endpoint(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let prefix = base.path().trim_end_matches('/');
    let version = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let prefix = prefix.strip_suffix(version).filter(|rest| rest.ends_with('/')).unwrap_or(prefix);
    url.set_path(&format!("{}{path}", prefix.trim_end_matches('/')));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_a_path_prefix_is_kept_and_a_version_is_not_doubled() {
        for (base, expected) in [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            ("http://127.0.0.1:9/", "http://127.0.0.1:9/v1/messages"),
            ("https://gw.example/team/a/", "https://gw.example/team/a/v1/messages"),
            ("https://gw.example/team/v1", "https://gw.example/team/v1/messages"),
            ("http://127.0.0.1:9/v1/", "http://127.0.0.1:9/v1/messages"),
            ("http://127.0.0.1:9/dev1", "http://127.0.0.1:9/dev1/v1/messages"),
        ] {
            assert_eq!(endpoint(&base_url(base).expect(base), "/v1/messages").as_str(), expected);
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
