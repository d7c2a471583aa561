//! A relay. Clients can be added and removed while it runs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::client::{ClientName, ClientSettings, Listen};
use super::ledger::{Account, RelayLedger};
use super::log::RelayLog;
use super::serve::{self, Client};
use super::socket::{self, OpenedSocket, PlaceError, SocketName};
use crate::provider::catalogue::Facts;
use crate::provider::passage::Passage;
use crate::provider::{ConfigError, Connection, ProviderKind, socket_of};

pub type FactsOf = Box<dyn Fn(&str) -> Facts + Send + Sync>;

pub struct Settings {
    /// Providers that the relay forwards to, each with its address and key.
    pub upstreams: Vec<(ProviderKind, Connection)>,
    /// Facts about each model. The prices in them limit what clients spend.
    pub facts: FactsOf,
    /// Models that clients may use; if empty, every model with a price.
    pub models: Vec<String>,
    /// Maximum tokens of a reply.
    pub max_reply: u64,
    pub log: PathBuf,
    /// Called to warn the user that the log cannot be written.
    pub complain: fn(&str),
}

/// Default limit for a reply, in tokens. Bailiwick's own client never requests more.
pub const MAX_REPLY: u64 = 32_000;

#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error("cannot write the relay's log in {path}: {source}")]
    Log { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Upstream(#[from] ConfigError),
    #[error(
        "{0:?} is the socket of another relay, but a relay must connect to the provider itself\n  hint: name the provider's address with --base-url"
    )]
    Behind(String),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("the client {0} already exists")]
    Known(ClientName),
}

pub(super) struct RelayShared {
    pub(super) passages: Vec<Arc<Passage>>,
    pub(super) facts: FactsOf,
    pub(super) models: Vec<String>,
    pub(super) max_reply: u64,
    pub(super) log: Arc<RelayLog>,
}

pub struct Relay {
    shared: Arc<RelayShared>,
    clients: BTreeMap<ClientName, ServedRequest>,
}

/// A client that is being served. Dropping this value closes its connections.
struct ServedRequest {
    base_url: String,
    ledger: RelayLedger,
    serving: JoinHandle<()>,
    /// Sender whose drop ends the serving of the client; `None` once dropped.
    stop: Option<oneshot::Sender<Infallible>>,
    _name: Option<SocketName>,
}

impl Drop for ServedRequest {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Relay {
    pub fn start(settings: Settings) -> Result<Self, RelayError> {
        let Settings { upstreams, facts, models, max_reply, log: directory, complain } = settings;
        let mut passages = Vec::new();
        for (kind, connection) in upstreams {
            if socket_of(&connection.base_url).is_some() {
                return Err(RelayError::Behind(connection.base_url));
            }
            passages.push(Passage::new(kind, connection)?);
        }
        let keys: Vec<_> = passages.iter().filter_map(Passage::secret).collect();
        for passage in &mut passages {
            passage.hide_also(&keys);
        }
        let passages = passages.into_iter().map(Arc::new).collect();
        let log = RelayLog::create(&directory, complain)
            .map_err(|source| RelayError::Log { path: directory, source })?;
        let shared = RelayShared { passages, facts, models, max_reply, log: Arc::new(log) };
        Ok(Self { shared: Arc::new(shared), clients: BTreeMap::new() })
    }

    /// Adds a client. Returns the value of `--base-url` for the client. Must be called within the tokio runtime.
    pub fn add(&mut self, settings: ClientSettings) -> Result<String, RelayError> {
        let ClientSettings { name, listen, limits } = settings;
        if self.clients.contains_key(&name) {
            return Err(RelayError::Known(name));
        }
        let OpenedSocket { listener, base_url, name: socket } = socket::open(&listen)?;
        let token = match listen {
            Listen::Socket(_) => None,
            Listen::Loopback { token, .. } => Some(token),
        };
        let ledger = RelayLedger::new(limits);
        let client = Client::new(name.to_string(), token, ledger.clone(), Arc::clone(&self.shared));
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(serve::serve(Arc::new(client), listener, stopped));
        let (stop, base) = (Some(stop), base_url.clone());
        self.clients.insert(name, ServedRequest { base_url: base, ledger, serving, stop, _name: socket });
        Ok(base_url)
    }

    /// Closes a client's connections and removes its socket. Returns what it has spent; `None` for an unknown client.
    pub async fn remove(&mut self, name: &ClientName) -> Option<Account> {
        let mut served = self.clients.remove(name)?;
        served.stop.take();
        // Open requests are charged when their connections are closed.
        let _ = (&mut served.serving).await;
        Some(served.ledger.account())
    }

    pub fn account(&self, name: &ClientName) -> Option<Account> {
        self.clients.get(name).map(|served| served.ledger.account())
    }

    pub fn clients(&self) -> impl Iterator<Item = (&ClientName, &str)> {
        self.clients.iter().map(|(name, served)| (name, &*served.base_url))
    }

    pub fn log_path(&self) -> &Path {
        self.shared.log.path()
    }

    /// Removes the log, for a relay that never served a client.
    pub fn withdraw_log(&self) {
        let is_empty = std::fs::metadata(self.log_path()).is_ok_and(|log| log.len() == 0);
        if is_empty {
            // It does no harm if an empty log stays.
            let _ = std::fs::remove_file(self.log_path());
        }
    }

    /// Returns warnings for the user: bundled certificates are in use, or a key is sent without encryption.
    pub fn notices(&self) -> Vec<String> {
        self.shared.passages.iter().flat_map(|passage| passage.notices().iter().cloned()).collect()
    }
}
