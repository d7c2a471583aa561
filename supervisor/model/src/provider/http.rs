use std::sync::Once;
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Url, redirect};

use super::authorities::{self, AuthorityError};
use super::connection;
use super::proxy::{Proxy, ProxyError};

/// Time limits for a request. The total time of a reply has no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub connect: Duration,
    /// Maximum time from the start of the attempt to the first byte. A small machine needs minutes for a long prompt.
    pub first_byte: Duration,
    /// Maximum time between two chunks of the body. Pings arrive about every 15 seconds.
    pub idle: Duration,
    /// Maximum time between two deltas or blocks of the reply.
    pub progress: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_mins(5),
            idle: Duration::from_mins(2),
            progress: Duration::from_mins(30),
        }
    }
}

pub(crate) struct Http {
    pub client: Client,
    pub notices: Vec<String>,
    pub way: Way,
}

#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub base: Url,
    pub proxy: Option<Proxy>,
    pub timeouts: Timeouts,
}

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("no HTTP client: {0}")]
    Client(#[source] reqwest::Error),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error(transparent)]
    Authorities(#[from] AuthorityError),
}

impl Http {
    /// Returns a client for a base URL. The client follows no redirects. It trusts the authorities from the
    /// environment, else the system's, else (in containers) bundled ones.
    pub(crate) fn new(base: &Url, timeouts: Timeouts, has_key: bool) -> Result<Self, HttpError> {
        Self::through(base, timeouts, has_key, Proxy::of(base)?)
    }

    pub(crate) fn through(
        base: &Url,
        timeouts: Timeouts,
        has_key: bool,
        proxy: Option<Proxy>,
    ) -> Result<Self, HttpError> {
        install_crypto();
        let way = Way { base: base.clone(), proxy, timeouts };
        let mut notices = Vec::new();
        if let Some(path) = connection::socket_path(base) {
            let client = way.builder()?.unix_socket(path).tls_certs_only([]).build();
            return Ok(Self { client: client.map_err(HttpError::Client)?, notices, way });
        }
        if base.scheme() == "http" {
            if !is_loopback(base) {
                let what = if has_key { "the API key is sent" } else { "everything for the model is sent" };
                notices.push(format!("{what} to {} without encryption", host(base)));
            }
            // Without TLS no authorities are needed, and reading the files takes time.
            let client = way.builder()?.tls_certs_only([]).build().map_err(HttpError::Client)?;
            return Ok(Self { client, notices, way });
        }
        let are_named = authorities::named()?;
        let client = match way.builder()?.build() {
            Ok(client) => client,
            Err(error) if are_named => return Err(HttpError::Client(error)),
            Err(_) => {
                notices.push(NO_AUTHORITIES.to_owned());
                let builder = way.builder()?.tls_certs_only(bundled_roots());
                builder.build().map_err(HttpError::Client)?
            }
        };
        Ok(Self { client, notices, way })
    }
}

const NO_AUTHORITIES: &str =
    "no certificate authorities on this system: Bailiwick uses the authorities that it was built with";

impl Way {
    fn builder(&self) -> Result<ClientBuilder, HttpError> {
        let builder = Client::builder()
            .user_agent(concat!("bailiwick/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(self.timeouts.connect)
            .tcp_nodelay(true)
            // The library would bypass a proxy whose address it cannot parse.
            .no_proxy();
        let Some(proxy) = &self.proxy else { return Ok(builder) };
        let proxy = reqwest::Proxy::all(proxy.url.clone()).map_err(HttpError::Client)?;
        Ok(builder.proxy(proxy))
    }
}

fn bundled_roots() -> Vec<Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect()
}

/// Installs ring as the cryptography provider of rustls, which has no built-in provider in this build.
fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            tracing::debug!("another crypto provider is installed already");
        }
    });
}

pub(crate) fn is_loopback(url: &Url) -> bool {
    let name = url.host_str().unwrap_or_default();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

pub(crate) fn host(url: &Url) -> String {
    if connection::socket_path(url).is_some() {
        return url.to_string();
    }
    let name = url.host_str().unwrap_or("?");
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    #[test]
    fn loopback_is_known_in_every_form() {
        for (text, expected) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("https://api.anthropic.com", false),
            ("http://10.0.0.1", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(is_loopback(&url(text)), expected, "{text}");
        }
    }

    #[test]
    fn every_bundled_root_is_a_certificate_and_a_client_can_be_made_of_them() {
        install_crypto();
        let roots = bundled_roots();
        assert_eq!(roots.len(), webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
        let base = url("https://api.anthropic.com");
        let way = Way { base, proxy: None, timeouts: Timeouts::default() };
        assert!(way.builder().expect("one").tls_certs_only(roots).build().is_ok());
    }

    #[test]
    fn a_key_in_the_clear_is_noticed() {
        let notices =
            |text, has_key| Http::new(&url(text), Timeouts::default(), has_key).expect("a client").notices;
        assert_eq!(
            [notices("http://gw.example:81/v", true), notices("http://gw.example:81/v", false)].concat(),
            [
                "the API key is sent to gw.example:81 without encryption",
                "everything for the model is sent to gw.example:81 without encryption",
            ]
        );
        assert!(notices("http://127.0.0.1:81", true).is_empty());
    }
}
