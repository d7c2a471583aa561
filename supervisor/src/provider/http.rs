//! The HTTP client, and what a failed connection means.

use std::error::Error;
use std::io;
use std::sync::Once;
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Url, redirect};

use super::proxy::Proxy;
use super::{ProviderError, connection};

/// How long things may take (WIRE E5). There is no limit on a whole reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection to be there.
    pub connect: Duration,
    /// For the reply to begin, from the beginning of the attempt: a long prompt takes its time, on a small machine minutes.
    pub first_byte: Duration,
    /// For the next byte to come; pings come every 15 seconds or so.
    pub idle: Duration,
    /// For the next delta or block to come: pings and comments do not count.
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

/// A client for one base URL, and what a person should know about it.
pub(crate) struct Http {
    pub(crate) client: Client,
    pub(crate) notices: Vec<String>,
}

/// The client could not be made.
#[derive(Debug, thiserror::Error)]
#[error("no HTTP client: {0}")]
pub struct HttpError(#[source] reqwest::Error);

impl Http {
    /// A client that follows no redirect (E6) and trusts the system's certificate authorities, or those that come with
    /// this program where the system has none (containers).
    pub(crate) fn new(base: &Url, timeouts: Timeouts, has_key: bool) -> Result<Self, HttpError> {
        install_crypto();
        let mut notices = Vec::new();
        if let Some(path) = connection::socket_path(base) {
            let client = builder(base, timeouts).unix_socket(path).no_proxy().tls_certs_only([]).build();
            return Ok(Self { client: client.map_err(HttpError)?, notices });
        }
        if base.scheme() == "http" {
            if !is_loopback(base) {
                let what = if has_key { "the API key goes" } else { "everything the model is told goes" };
                notices.push(format!("{what} to {} without encryption", host(base)));
            }
            // Without TLS no authorities are needed: reading the system's would only cost time.
            let client = builder(base, timeouts).tls_certs_only([]).build().map_err(HttpError)?;
            return Ok(Self { client, notices });
        }
        if let Ok(client) = builder(base, timeouts).build() {
            return Ok(Self { client, notices });
        }
        let client = builder(base, timeouts).tls_certs_only(bundled_roots()).build().map_err(HttpError)?;
        notices.push(
            "no certificate authorities on this system: the ones that come with bailiwick are used"
                .to_owned(),
        );
        Ok(Self { client, notices })
    }
}

fn builder(base: &Url, timeouts: Timeouts) -> ClientBuilder {
    let builder = Client::builder()
        .user_agent(concat!("bailiwick/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .connect_timeout(timeouts.connect)
        .tcp_nodelay(true);
    // A proxy could not reach this machine's own addresses.
    if is_loopback(base) { builder.no_proxy() } else { builder }
}

fn bundled_roots() -> Vec<Certificate> {
    webpki_root_certs::TLS_SERVER_ROOT_CERTS
        .iter()
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect()
}

/// rustls is built without a default provider; the first one that is installed holds.
fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            tracing::debug!("another crypto provider is installed already");
        }
    });
}

/// Whether the address is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let name = url.host_str().unwrap_or_default();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || address.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The host, with its port where that is not the usual one.
pub(crate) fn host(url: &Url) -> String {
    if connection::socket_path(url).is_some() {
        return url.to_string();
    }
    let name = url.host_str().unwrap_or("?");
    url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
}

/// A failed connection as an error that says where it failed, and on which host.
pub(crate) fn connection_error(error: &reqwest::Error, base: &Url, timeouts: Timeouts) -> ProviderError {
    let host = host(base);
    if error.is_timeout() {
        // The other deadlines are not the client's: see `deadlines`.
        let within = timeouts.connect;
        let message = format!("no connection to {host} within {within:?}");
        return ProviderError::new("timeout", message).hint(check_network(base)).retryable();
    }
    if !error.is_connect() && (error.is_body() || error.is_decode()) {
        let message = format!("the connection to {host} broke in the middle of the reply");
        return ProviderError::new("truncated_stream", message).hint(check_network(base)).retryable();
    }
    match connect_fault(error) {
        HttpFault::Lookup => {
            connection(format!("cannot look up the name {host}")).hint(check_network(base)).retryable()
        }
        HttpFault::Refused => refused(base),
        HttpFault::NoTls => {
            connection(format!("no TLS connection to {host}: the server answers without TLS"))
                .hint("check the port, or write http:// in --base-url")
        }
        // Another attempt would meet the same certificate.
        HttpFault::Tls(fault) => connection(format!("no TLS connection to {host}: {fault}"))
            .hint("check --base-url, the clock, and the certificates (bailiwick doctor --api)"),
        // Another attempt would meet the same program.
        HttpFault::NotHttp => connection(format!("{host} does not speak HTTP")).hint("check --base-url"),
        HttpFault::Other(fault) if !error.is_connect() => {
            connection(format!("the connection to {host} broke before the reply began: {fault}"))
                .hint(check_network(base))
                .retryable()
        }
        HttpFault::Other(fault) => {
            connection(format!("no connection to {host}: {fault}")).hint(check_network(base)).retryable()
        }
    }
}

/// A step that helps where a network is in between; a proxy that the environment names is part of it.
fn check_network(base: &Url) -> String {
    match Proxy::of(base) {
        _ if connection::socket_path(base).is_some() => START_RELAY.to_owned(),
        Some(Proxy { variable, .. }) => format!("check the network, the proxy in {variable}, and --base-url"),
        None => "check the network and --base-url".to_owned(),
    }
}

/// A refused connection. On this machine no network is in between that could heal.
fn refused(base: &Url) -> ProviderError {
    let host = host(base);
    match Proxy::of(base) {
        Some(Proxy { variable, is_local }) => {
            let error =
                connection(format!("cannot reach {host}: the proxy in {variable} refused the connection"));
            let error = error.hint(format!("start the proxy, or unset {variable}"));
            if is_local { error } else { error.retryable() }
        }
        None if connection::socket_path(base).is_some() => {
            connection(format!("{host} refused the connection: no relay listens there"))
                .hint(START_RELAY)
                .retryable()
        }
        None if is_loopback(base) => {
            connection(format!("{host} refused the connection: no server listens there"))
                .hint("start the server, or check --base-url")
        }
        None => connection(format!("{host} refused the connection")).hint(check_network(base)).retryable(),
    }
}

/// A step that helps where the model is behind a socket.
const START_RELAY: &str = "start the relay, or check --base-url";

fn connection(message: String) -> ProviderError {
    ProviderError::new("connection", message)
}

enum HttpFault {
    Lookup,
    Refused,
    NotHttp,
    NoTls,
    Tls(String),
    Other(String),
}

/// The innermost cause that has a name.
fn connect_fault(error: &reqwest::Error) -> HttpFault {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    let mut last = "the request could not be sent".to_owned();
    while let Some(error) = cause {
        if let Some(fault) = error.downcast_ref::<io::Error>().and_then(io_fault) {
            return fault;
        }
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return tls_fault(tls);
        }
        last = error.to_string();
        // hyper-util has no type for it.
        if last.starts_with("dns error") {
            return HttpFault::Lookup;
        }
        // Nor has hyper one that reqwest shows.
        if last.starts_with("invalid HTTP ") {
            return HttpFault::NotHttp;
        }
        cause = error.source();
    }
    HttpFault::Other(last)
}

fn tls_fault(error: &rustls::Error) -> HttpFault {
    match error {
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => HttpFault::NoTls,
        error => HttpFault::Tls(error.to_string()),
    }
}

/// `source` of an I/O error skips the error that it wraps, so that one is looked at here.
fn io_fault(error: &io::Error) -> Option<HttpFault> {
    if error.kind() == io::ErrorKind::ConnectionRefused {
        return Some(HttpFault::Refused);
    }
    let inner = error.get_ref()?;
    match inner.downcast_ref::<rustls::Error>() {
        Some(tls) => Some(tls_fault(tls)),
        None => inner.downcast_ref::<io::Error>().and_then(io_fault),
    }
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
        assert!(builder(&base, Timeouts::default()).tls_certs_only(roots).build().is_ok());
    }

    #[test]
    fn a_key_in_the_clear_is_noticed() {
        let notices =
            |text, has_key| Http::new(&url(text), Timeouts::default(), has_key).expect("a client").notices;
        assert_eq!(
            [notices("http://gw.example:81/v", true), notices("http://gw.example:81/v", false)].concat(),
            [
                "the API key goes to gw.example:81 without encryption",
                "everything the model is told goes to gw.example:81 without encryption",
            ]
        );
        assert!(notices("http://127.0.0.1:81", true).is_empty());
    }
}
