//! A guest (see [`guest`](super::guest)) that fetches one page for an agent.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipc::confinement::Confinement;
use ipc::fetch::{Authorities, FetchFailure, FetchOrder, FetchReport, Fetched, MAX_REDIRECTS, MAX_TEXT};
use ipc::page_url::PageUrl;
use ipc::path::WirePath;
use ipc::rights::{Hosts, Reach};
use protocol::event::{GuestEnd, GuestRole, HostUse};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::gateway::gateway_confinement;
use super::guest::{Guest, GuestError, GuestEvent, GuestKind, GuestSpec};
use super::guest_log::{GuestLog, GuestOwner};
use super::spawn::Spawner;

/// Name under which a fetch is listed, like a program, in reports about an agent's network use.
const PROGRAM: &str = "fetch_url";

const CONNECTIONS: u64 = MAX_REDIRECTS as u64 + 1;

/// Time after which the supervisor ends a fetch. The guest itself gives up earlier.
const LATEST: Duration = Duration::from_secs(35);

/// Files and directories with certificates of certificate authorities. None of them contains private keys.
const AUTHORITIES: [&str; 8] = [
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
];

/// Environment variable that names a file of certificates to use instead of the system's.
const FILE: &str = "SSL_CERT_FILE";
const DIRECTORIES: &str = "SSL_CERT_DIR";

#[derive(Debug)]
pub struct FetchKind;

impl GuestKind for FetchKind {
    type Order = FetchOrder;
    type Report = FetchReport;

    const ROLE: GuestRole = GuestRole::Fetch;
    const FLAG: &'static str = "--fetch";
    const QUEUE: usize = 1;

    fn is_ready(report: &FetchReport) -> bool {
        matches!(report, FetchReport::Ready)
    }

    fn hosts(task: &FetchOrder) -> Option<Hosts> {
        Some(task.hosts.clone())
    }
}

#[derive(Clone, Debug)]
pub struct FetchSpec {
    pub program: PathBuf,
    pub agent: Confinement,
    /// Local and private addresses that a fetch may connect to, in addition to public ones.
    pub reach: Reach,
    pub url: PageUrl,
    pub hosts: Hosts,
    pub log: GuestLog,
}

impl FetchSpec {
    /// Returns the description of the guest to start. The guest may run no commands, and may read only the resolver's
    /// files, the certificates of authorities, and its own program.
    pub fn guest(self) -> GuestSpec<FetchKind> {
        let Self { program, mut agent, reach, url, hosts, log } = self;
        agent.rights.reach = reach;
        let authorities = named();
        let named = authorities.iter().flat_map(|named| named.file.iter().chain(&named.directories));
        let mut confinement = gateway_confinement(&program, &agent);
        confinement.rights.read.extend(named.cloned());
        let places = AUTHORITIES.iter().filter_map(|place| fs::canonicalize(place).ok());
        confinement.rights.read.extend(places.map(WirePath::from));
        confinement.rights = confinement.rights.normalised();
        let of = GuestOwner::named(url.host().to_string());
        GuestSpec { program, confinement, order: FetchOrder { url, hosts, authorities }, of, log }
    }
}

fn named() -> Option<Authorities> {
    let canonical = |path: &Path| WirePath::from(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
    let file = env::var_os(FILE).filter(|path| !path.is_empty());
    let directories = env::var_os(DIRECTORIES).unwrap_or_default();
    let directories: Vec<_> = env::split_paths(&directories)
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| canonical(&path))
        .collect();
    let file = file.map(|path| canonical(Path::new(&path)));
    (file.is_some() || !directories.is_empty()).then_some(Authorities { file, directories })
}

#[derive(Debug)]
pub struct FetchEnd {
    /// Page, or an inner `Err` with the reason why it was not fetched. An outer `Err` if the guest itself failed.
    pub outcome: Result<Result<Fetched, FetchFailure>, GuestError>,
    pub used: HostUse,
}

/// Fetches a page; aborts if the sender of `cancelled` is dropped. The guest has ended when this returns.
pub async fn fetch(spawner: &Spawner, spec: FetchSpec, cancelled: oneshot::Receiver<()>) -> FetchEnd {
    let (host, port) = (spec.url.host().to_string(), spec.url.port());
    let mut used = HostUse { host, port, program: PROGRAM.to_owned(), ..HostUse::default() };
    let outcome = match Guest::start(spawner, spec.guest()).await {
        Ok((mut guest, _)) => {
            let (outcome, reason) = tokio::select! {
                outcome = follow(&mut guest, &mut used) => {
                    let reason = match &outcome {
                        Ok(_) => GuestEnd::Finished,
                        Err(error) => GuestEnd::Violation { violation: error.to_string() },
                    };
                    (outcome, reason)
                }
                _ = cancelled => (Err(GuestError::Ended), GuestEnd::Closed),
                () = sleep(LATEST) => (Ok(Err(FetchFailure::Late)), GuestEnd::Late),
            };
            guest.used(vec![used.clone()]);
            guest.end(reason).await.map_err(GuestError::from).and(outcome)
        }
        Err(error) => Err(error),
    };
    FetchEnd { outcome, used }
}

async fn follow(
    guest: &mut Guest<FetchKind>,
    used: &mut HostUse,
) -> Result<Result<Fetched, FetchFailure>, GuestError> {
    loop {
        match guest.next().await {
            GuestEvent::Report(FetchReport::Connected { address, .. }) if used.connections < CONNECTIONS => {
                used.connections += 1;
                used.address.get_or_insert_with(|| address.to_string());
            }
            GuestEvent::Report(FetchReport::Carried { sent, received }) => {
                (used.sent, used.received) = (sent, received);
            }
            GuestEvent::Report(FetchReport::Done(Ok(Fetched::Page(page)))) if page.text.len() > MAX_TEXT => {
                return Err(GuestError::Ended);
            }
            GuestEvent::Report(FetchReport::Done(done)) => return Ok(done),
            // The guest itself reports these, as error numbers of connect(2).
            GuestEvent::Refused(_) => {}
            GuestEvent::Report(FetchReport::Ready | FetchReport::Connected { .. }) | GuestEvent::Ended => {
                return Err(GuestError::Ended);
            }
        }
    }
}
