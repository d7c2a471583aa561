use std::path::Path;

use reqwest::Url;
use secrecy::SecretString;

use super::InvalidKey;
use super::http::{HttpError, Timeouts};
use crate::recording::Recorder;
use crate::secrets::Credential;

#[derive(Debug)]
pub struct Connection {
    /// The base URL of the server. The path of an endpoint is added to the path of this URL.
    pub base_url: String,
    pub api_key: Option<SecretString>,
    /// The source of the key, for errors: `ANTHROPIC_API_KEY`, for example, or the name of a file.
    pub key_origin: String,
    pub credential: Credential,
    /// The reason for the choice of this API, for errors about a server with another one; `None` if the user chose it.
    pub chosen_by: Option<String>,
    pub timeouts: Timeouts,
    pub recorder: Option<Recorder>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the base URL {url:?} {fault}\n  hint: {hint}", hint = base_url_hint(.fault))]
    BaseUrl {
        /// Base URL that the user gave, without the password.
        url: String,
        fault: &'static str,
    },
    #[error(transparent)]
    Key(#[from] InvalidKey),
    #[error(transparent)]
    Http(#[from] HttpError),
}

const QUERY: &str = "has a query";

/// Paths of endpoints, as documentation shows them. A base URL that ends with such a path is shortened.
const ENDPOINTS: [&str; 8] = [
    "/chat/completions",
    "/messages/count_tokens",
    "/messages/batches",
    "/messages",
    "/responses",
    "/completions",
    "/embeddings",
    "/models",
];

fn base_url_hint(fault: &str) -> &'static str {
    if fault == QUERY {
        "leave out the part from `?` on: Bailiwick does not send a query (for Azure, https://NAME.openai.azure.com/openai/v1 is enough)"
    } else {
        "write the URL like https://api.anthropic.com"
    }
}

const SOCKET: &str = "unix";

/// Maximum length of a socket's path in bytes (unix(7)).
const MOST_OF_SOCKET: usize = 107;

pub fn socket_of(base_url: &str) -> Option<&Path> {
    base_url.trim().strip_prefix(SOCKET)?.strip_prefix(':').map(Path::new)
}

pub(crate) fn socket_path(base: &Url) -> Option<&Path> {
    (base.scheme() == SOCKET).then(|| Path::new(base.path()))
}

/// True if an address is a Unix socket, or a port on this machine.
pub fn is_of_this_machine(text: &str) -> bool {
    socket_of(text).is_some() || base_url(text).is_ok_and(|url| super::http::is_loopback(&url))
}

pub(crate) fn base_url(text: &str) -> Result<Url, ConfigError> {
    let fault = |url: &str, fault| ConfigError::BaseUrl { url: url.to_owned(), fault };
    if let Some(path) = socket_of(text) {
        let url: Url = text.trim().parse().map_err(|_| fault(text, "is not a URL"))?;
        return match path {
            path if !path.is_absolute() => Err(fault(text, "has no absolute path")),
            path if path.as_os_str().len() > MOST_OF_SOCKET => Err(fault(text, "is longer than 107 bytes")),
            path if socket_path(&url) != Some(path) => {
                Err(fault(text, "has spaces or other characters that an address cannot have"))
            }
            _ => Ok(url),
        };
    }
    let url: Url = text.trim().parse().map_err(|_| fault(text, "is not a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(fault("…@…", "contains a user name or a password"));
    }
    match url.scheme() {
        "http" | "https" if !url.has_host() => Err(fault(text, "has no host")),
        "http" | "https" if url.query().is_some() || url.fragment().is_some() => Err(fault(text, QUERY)),
        "http" | "https" => Ok(without_endpoint(url)),
        _ => Err(fault(text, "is neither http nor https")),
    }
}

/// Removes the path of an endpoint from the end of an address: `/chat/completions` always, others only after a version.
fn without_endpoint(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/');
    let is_version = |segment: &str| {
        segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    let rest = ENDPOINTS.iter().find_map(|endpoint| path.strip_suffix(endpoint));
    let rest = rest.filter(|rest| path.ends_with("/chat/completions") || rest.split('/').any(is_version));
    if let Some(rest) = rest.map(str::to_owned) {
        url.set_path(&rest);
    }
    url
}

/// Returns the URL of an endpoint. The base URL keeps its path, but a version at its end is not repeated:
/// `https://host/v1` and `/v1/messages` give `https://host/v1/messages`.
pub(crate) fn endpoint(base: &Url, path: &str) -> Url {
    // The server at a socket has one path for each API.
    let local = (base.scheme() == SOCKET).then(|| Url::parse("http://localhost").ok()).flatten();
    let base = local.as_ref().unwrap_or(base);
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
    fn an_endpoint_at_the_end_counts_once() {
        for (base, path, expected) in [
            ("http://h/v1/messages", "/v1/messages", "http://h/v1/messages"),
            ("http://h/v1/messages/", "/v1/messages", "http://h/v1/messages"),
            ("http://h/gw/v1/responses", "/v1/responses", "http://h/gw/v1/responses"),
            ("http://h/v1/chat/completions", "/chat/completions", "http://h/v1/chat/completions"),
            ("http://h/chat/completions/", "/v1/chat/completions", "http://h/v1/chat/completions"),
            (
                "http://h/api/paas/v4/chat/completions",
                "/chat/completions",
                "http://h/api/paas/v4/chat/completions",
            ),
            ("http://h/messages", "/v1/messages", "http://h/messages/v1/messages"),
            ("http://h/v1/messages/batches", "/v1/messages", "http://h/v1/messages"),
            ("http://h/v1/messages/count_tokens", "/v1/messages", "http://h/v1/messages"),
            ("http://h/v1/models", "/v1/chat/completions", "http://h/v1/chat/completions"),
            ("http://h/v1/completions/", "/v1/chat/completions", "http://h/v1/chat/completions"),
            ("http://h/openai/v1/embeddings", "/v1/responses", "http://h/openai/v1/responses"),
            ("http://h/v1/models/m1", "/v1/messages", "http://h/v1/models/m1/v1/messages"),
            ("http://h/models", "/v1/chat/completions", "http://h/models/v1/chat/completions"),
        ] {
            assert_eq!(endpoint(&base_url(base).expect(base), path).as_str(), expected, "{base}");
        }
    }

    #[test]
    fn a_socket_is_an_address_and_has_the_apis_paths() {
        let base = base_url("unix:/run/v1/relay.sock").expect("a socket");
        assert_eq!(socket_path(&base), Some(Path::new("/run/v1/relay.sock")));
        assert_eq!(endpoint(&base, "/v1/messages").as_str(), "http://localhost/v1/messages");
        for text in
            ["unix:relay.sock", "unix:/a/../b", "unix:/a b", "unix:", &format!("unix:/{}", "x".repeat(107))]
        {
            assert!(base_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused_by_name_and_a_password_never_shown() {
        for (text, expected) in [
            ("api.anthropic.com", "is not a URL"),
            ("ftp://x/", "neither http nor https"),
            ("unix:relay.sock", "has no absolute path"),
            ("https://x/?a=b", "has a query"),
            ("https://me:hunter2@x/", "a user name or a password"),
        ] {
            let error = base_url(text).expect_err(text).to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
