//! Connections of a fetch to the hosts that the supervisor's order allows. Counts the bytes that they carry.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use ipc::fetch::{Authorities, FetchFailure, FetchReport};
use ipc::gateway::GatewayFailure;
use ipc::page_url::PageUrl;
use ipc::rights::Hosts;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

use super::words;
use crate::gateway::dial;

pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

#[derive(Debug, Default)]
struct Carried {
    sent: AtomicU64,
    received: AtomicU64,
}

pub(super) struct Connector {
    hosts: Hosts,
    tls: TlsConnector,
    carried: Arc<Carried>,
    reports: mpsc::Sender<FetchReport>,
}

impl Connector {
    pub(super) fn new(
        hosts: Hosts,
        authorities: Option<&Authorities>,
        reports: mpsc::Sender<FetchReport>,
    ) -> Result<Self, FetchFailure> {
        let tls = TlsConnector::from(Arc::new(client(roots(authorities)?)?));
        Ok(Self { hosts, tls, carried: Arc::default(), reports })
    }

    pub(super) fn allows(&self, url: &PageUrl) -> bool {
        self.hosts.allows(url.host(), url.port())
    }

    pub(super) async fn connect(&self, url: &PageUrl) -> Result<Box<dyn ByteStream>, FetchFailure> {
        if !self.allows(url) {
            return Err(FetchFailure::Unresolved);
        }
        let addresses = dial::resolve(url.host(), url.port()).await.map_err(failure)?;
        let (socket, address) = dial::connect(addresses).await.map_err(failure)?;
        // The queue has room for each connection of an order.
        let _ = self.reports.try_send(FetchReport::Connected { port: url.port(), address });
        let stream = Counted { inner: socket, carried: Arc::clone(&self.carried) };
        if !url.is_encrypted() {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(url.host().to_string()).map_err(tls)?;
        Ok(Box::new(self.tls.connect(name, stream).await.map_err(tls)?))
    }

    pub(super) fn tell_carried(&self) {
        let Carried { sent, received } = &*self.carried;
        let (sent, received) = (sent.load(Ordering::Relaxed), received.load(Ordering::Relaxed));
        let _ = self.reports.try_send(FetchReport::Carried { sent, received });
    }
}

fn failure(failure: GatewayFailure) -> FetchFailure {
    match failure {
        GatewayFailure::Unreachable { address, errno } => FetchFailure::Unreachable { address, errno },
        _ => FetchFailure::Unresolved,
    }
}

fn tls(error: impl std::fmt::Display) -> FetchFailure {
    FetchFailure::Tls(words(&error.to_string()))
}

fn client(roots: RootCertStore) -> Result<ClientConfig, FetchFailure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(tls)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the certificate authorities to trust: the user's setting, else the system's, else bundled ones.
fn roots(named: Option<&Authorities>) -> Result<RootCertStore, FetchFailure> {
    let mut roots = RootCertStore::empty();
    match named {
        Some(Authorities { file, directories }) => {
            let file = file.as_ref().map(ipc::path::WirePath::as_path);
            let mut places: Vec<_> = directories.iter().map(|path| Some(path.as_path())).collect();
            if places.is_empty() {
                places.push(None);
            }
            for directory in places {
                let read = rustls_native_certs::load_certs_from_paths(file, directory);
                roots.add_parsable_certificates(read.certs);
                if let (true, Some(error)) = (roots.is_empty(), read.errors.first()) {
                    return Err(FetchFailure::Authorities(words(&error.to_string())));
                }
            }
            if roots.is_empty() {
                return Err(FetchFailure::Authorities(
                    "the certificate files hold no certificate".to_owned(),
                ));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    Ok(roots)
}

struct Counted {
    inner: TcpStream,
    carried: Arc<Carried>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.carried.received.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        if let Poll::Ready(Ok(count)) = &written {
            self.carried.sent.fetch_add(*count as u64, Ordering::Relaxed);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
