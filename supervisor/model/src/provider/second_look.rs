//! Connects once more to a server or proxy that closed a connection, since the HTTP library gives no reason.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use protocol::error_code::ErrorCode;
use reqwest::Url;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::ProviderError;
use super::connection_error::wants_user;
use super::http::{Way, host};
use super::proxy::Proxy;

const PATIENCE: Duration = Duration::from_secs(1);

/// First bytes of the TLS records with which a server can answer: an alert, or a part of the handshake.
const RECORDS: [u8; 2] = [0x15, 0x16];

/// Connects once more to find the reason of `error`. Returns a more specific error if there is one, else `error`.
pub(crate) async fn looked_at(error: ProviderError, way: &Way) -> ProviderError {
    if error.kind != "connection" {
        return error;
    }
    match &way.proxy {
        Some(proxy) if error.retryable && error.message.contains("tunnel error") => {
            let status = timeout(PATIENCE, tunnel_status(proxy, &way.base)).await.ok().flatten();
            status.and_then(|status| refused_tunnel(status, proxy, &way.base)).unwrap_or(error)
        }
        None if way.base.scheme() == "http" => match timeout(PATIENCE, speaks_tls(&way.base)).await {
            Ok(Some(true)) => plain_words(&way.base),
            Ok(_) | Err(_) => error,
        },
        Some(_) | None => error,
    }
}

fn plain_words(base: &Url) -> ProviderError {
    let host = host(base);
    let message =
        format!("no connection to {host}: the server speaks TLS, and the address begins with http://");
    ProviderError::new("connection", message).coded(ErrorCode::TlsFailed).hint("write https:// in --base-url")
}

fn refused_tunnel(status: u16, proxy: &Proxy, base: &Url) -> Option<ProviderError> {
    let variable = proxy.variable;
    let message = format!("the proxy in {variable} does not let {} through ({status})", host(base));
    match status {
        407 => Some(wants_user(proxy)),
        400..500 => {
            Some(ProviderError::new("connection", message).coded(ErrorCode::ProxyFailed).hint(format!(
                "ask the operator of the proxy, or name the host in NO_PROXY if it can be reached without {variable}"
            )))
        }
        _ => None,
    }
}

/// Returns the HTTP status with which a proxy answers a request for a tunnel; `None` if the proxy sends no status.
async fn tunnel_status(proxy: &Proxy, base: &Url) -> Option<u16> {
    if proxy.url.scheme() != "http" {
        return None;
    }
    let mut stream = connected(&proxy.url).await?;
    let target = format!("{}:{}", base.host_str()?, base.port_or_known_default()?);
    let user = user_of(proxy).map(|user| format!("proxy-authorization: {user}\r\n")).unwrap_or_default();
    let request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{user}\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut head = [0; 64];
    let mut read = 0;
    while read < head.len() && !head[..read].contains(&b'\n') {
        match stream.read(&mut head[read..]).await.ok()? {
            0 => break,
            more => read += more,
        }
    }
    std::str::from_utf8(&head[..read]).ok()?.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()
}

fn user_of(proxy: &Proxy) -> Option<String> {
    if !proxy.has_user() {
        return None;
    }
    let plain = |text: &str| percent_decoded(text);
    let user = plain(proxy.url.username());
    let password = plain(proxy.url.password().unwrap_or_default());
    Some(format!("Basic {}", STANDARD.encode([&user[..], b":", &password[..]].concat())))
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

/// True if a server answers a TLS handshake with TLS; `None` if it sends no answer at all.
async fn speaks_tls(base: &Url) -> Option<bool> {
    let name = ServerName::try_from(base.host_str()?.trim_matches(['[', ']']).to_owned()).ok()?;
    let config = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
    let mut hello = Vec::new();
    ClientConnection::new(Arc::new(config), name).ok()?.write_tls(&mut hello).ok()?;
    let mut stream = connected(base).await?;
    stream.write_all(&hello).await.ok()?;
    let first = stream.read_u8().await.ok()?;
    Some(RECORDS.contains(&first))
}

async fn connected(url: &Url) -> Option<TcpStream> {
    let host = url.host_str()?.trim_matches(['[', ']']);
    TcpStream::connect((host, url.port_or_known_default()?)).await.ok()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};
    use std::time::Instant;

    use super::*;
    use crate::provider::connection_error::connection_error;
    use crate::provider::http::{Http, Timeouts};

    /// Starts a server that sends `answer` after the first bytes of each connection. Returns its port.
    fn answering(answer: &'static [u8]) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut first = [0; 4096];
                // The server does not wait for a client that hangs up.
                let _ = stream.read(&mut first);
                let _ = stream.write_all(answer);
            }
        });
        port
    }

    async fn asked(base: &str, proxy: Option<Proxy>) -> ProviderError {
        let base: Url = base.parse().unwrap();
        let Http { client, way, .. } = Http::through(&base, Timeouts::default(), false, proxy).unwrap();
        let error = client.post(base).send().await.expect_err("an answer");
        looked_at(connection_error(&error, &way), &way).await
    }

    fn proxy(port: u16, user: &str) -> Proxy {
        let url = format!("http://{user}127.0.0.1:{port}").parse().unwrap();
        Proxy { variable: "HTTPS_PROXY", url }
    }

    #[tokio::test]
    async fn z6_a_proxy_that_says_no_for_good_is_told_at_once_with_its_variable() {
        let begun = Instant::now();
        for (answer, user, retryable, words) in [
            (&b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"[..], "", false, "needs a user and a password"),
            (b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n", "me:gehe%69m@", false, "does not accept"),
            (
                b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n",
                "me:gehe%69m@",
                false,
                "does not let api.example through (403)",
            ),
            (b"HTTP/1.0 404 No\r\n\r\n", "", false, "(404)"),
            (b"HTTP/1.1 502 No\r\ncontent-length: 0\r\n\r\n", "", true, "tunnel error"),
            (b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", "", true, "tunnel error"),
            (b"nonsense\r\n\r\n", "", true, "tunnel error"),
            (b"", "", true, ""),
        ] {
            let error = asked("https://api.example/v1", Some(proxy(answering(answer), user))).await;
            assert_eq!(error.retryable, retryable, "{error}");
            assert!(error.message.contains(words) && !format!("{error:?}").contains("geheim"), "{error:?}");
            let hint = error.hint.unwrap_or_default();
            assert!(hint.contains("HTTPS_PROXY"), "{hint}");
        }
        assert!(begun.elapsed() < Duration::from_secs(8));
    }

    #[tokio::test]
    async fn z6_plain_words_to_a_port_for_tls_are_told_at_once_and_a_dropped_connection_is_tried_again() {
        let alert = answering(b"\x15\x03\x03\x00\x02\x02\x46");
        let error = asked(&format!("http://127.0.0.1:{alert}/v1"), None).await;
        assert!(!error.retryable, "{error}");
        assert_eq!(error.hint.as_deref(), Some("write https:// in --base-url"));
        let dropped = asked(&format!("http://127.0.0.1:{}/v1", answering(b"")), None).await;
        assert!(dropped.retryable, "{dropped}");
    }

    #[test]
    fn a_user_is_told_to_the_proxy_as_it_is_meant() {
        let user = user_of(&proxy(1, "me:a%20b%zz@"));
        assert_eq!(user.as_deref(), Some("Basic bWU6YSBiJXp6"));
        assert_eq!(user_of(&proxy(1, "")), None);
    }
}
