//! Describes failed connections, with hints.

use std::error::Error;
use std::io;

use protocol::error_code::ErrorCode;

use super::http::{Way, host, is_loopback};
use super::proxy::Proxy;
use super::tls_fault::TlsFault;
use super::{ProviderError, connection};

pub(crate) fn connection_error(error: &reqwest::Error, way: &Way) -> ProviderError {
    let host = host(&way.base);
    if error.is_timeout() {
        // The HTTP client has only this deadline; see `deadlines` for others.
        let within = way.timeouts.connect;
        let message = format!("no connection to {host} within {within:?}");
        return ProviderError::new("timeout", message).hint(check_network(way)).retryable();
    }
    if !error.is_connect() && (error.is_body() || error.is_decode()) {
        let message = format!("the connection to {host} broke in the middle of the reply");
        return ProviderError::new("truncated_stream", message).hint(check_network(way)).retryable();
    }
    match connect_fault(error) {
        HttpFault::Lookup => {
            let name = way.proxy.as_ref().map(|proxy| format!("of the proxy in {}", proxy.variable));
            connection(format!("cannot look up the name {}", name.unwrap_or(host)))
                .coded(ErrorCode::LookupFailed)
                .hint(check_network(way))
                .retryable()
        }
        HttpFault::Refused => refused(way),
        HttpFault::NoTls => {
            connection(format!("no TLS connection to {host}: the server answers without TLS"))
                .coded(ErrorCode::TlsFailed)
                .hint("check the port, or write http:// in --base-url")
        }
        // Another attempt would get the same certificate.
        HttpFault::Tls(fault) => connection(format!("no TLS connection to {host}: {}", fault.words))
            .coded(ErrorCode::TlsFailed)
            .hint(fault.hint),
        HttpFault::NoTunnel => match &way.proxy {
            Some(proxy) => wants_user(proxy),
            None => connection(format!("no connection to {host}: a proxy needs a user (407)"))
                .coded(ErrorCode::ProxyFailed),
        },
        // Another attempt would reach the same program.
        HttpFault::NotHttp => connection(format!("{host} does not speak HTTP"))
            .coded(ErrorCode::ProviderFailed)
            .hint("check --base-url"),
        HttpFault::Other(fault) if !error.is_connect() => {
            connection(format!("the connection to {host} broke before the reply began: {fault}"))
                .hint(check_network(way))
                .retryable()
        }
        HttpFault::Other(fault) => {
            connection(format!("no connection to {host}: {fault}")).hint(check_network(way)).retryable()
        }
    }
}

/// Returns the hint to check the network, and the proxy if the environment has one.
fn check_network(way: &Way) -> String {
    match &way.proxy {
        _ if connection::socket_path(&way.base).is_some() => START_RELAY.to_owned(),
        Some(Proxy { variable, .. }) => format!("check the network, the proxy in {variable}, and --base-url"),
        None => "check the network and --base-url".to_owned(),
    }
}

/// Returns the error for a refused connection. It is not retryable if a port of this machine refused.
fn refused(way: &Way) -> ProviderError {
    let (host, base) = (host(&way.base), &way.base);
    match &way.proxy {
        Some(proxy) => {
            let variable = proxy.variable;
            let error =
                connection(format!("cannot reach {host}: the proxy in {variable} refused the connection"));
            let error =
                error.coded(ErrorCode::ProxyFailed).hint(format!("start the proxy, or unset {variable}"));
            if proxy.is_local() { error } else { error.retryable() }
        }
        None if connection::socket_path(base).is_some() => {
            connection(format!("{host} refused the connection: no relay listens there"))
                .coded(ErrorCode::ConnectionRefused)
                .hint(START_RELAY)
                .retryable()
        }
        None if is_loopback(base) => {
            connection(format!("{host} refused the connection: no server listens there"))
                .coded(ErrorCode::ConnectionRefused)
                .hint("start the server, or check --base-url")
        }
        None => connection(format!("{host} refused the connection"))
            .coded(ErrorCode::ConnectionRefused)
            .hint(check_network(way))
            .retryable(),
    }
}

/// Returns the error for a proxy that demands a user and a password.
pub(crate) fn wants_user(proxy: &Proxy) -> ProviderError {
    let variable = proxy.variable;
    let (fault, step) = if proxy.has_user() {
        ("does not accept the user and the password in that variable", "check both")
    } else {
        ("needs a user and a password", "write both into the variable")
    };
    connection(format!("the proxy in {variable} {fault} (407)"))
        .coded(ErrorCode::ProxyFailed)
        .hint(format!("{step}: {variable}=http://USER:PASSWORD@HOST:PORT"))
}

const START_RELAY: &str = "start the relay, or check --base-url";

fn connection(message: String) -> ProviderError {
    ProviderError::new("connection", message)
}

enum HttpFault {
    Lookup,
    Refused,
    NotHttp,
    NoTls,
    /// The proxy opened no tunnel, because it requires a user and a password.
    NoTunnel,
    Tls(TlsFault),
    Other(String),
}

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
        // hyper-util has no type for this error.
        if last.starts_with("dns error") {
            return HttpFault::Lookup;
        }
        // reqwest does not expose hyper's type for this error.
        if last.starts_with("invalid HTTP ") {
            return HttpFault::NotHttp;
        }
        if last == "tunnel error: proxy authorization required" {
            return HttpFault::NoTunnel;
        }
        cause = error.source();
    }
    HttpFault::Other(last)
}

fn tls_fault(error: &rustls::Error) -> HttpFault {
    match error {
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => HttpFault::NoTls,
        error => HttpFault::Tls(TlsFault::of(error)),
    }
}

/// Returns the fault inside an I/O error, which the error's `source` skips; `None` if the fault is unknown.
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
