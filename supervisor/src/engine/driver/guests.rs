//! Logs starts and ends of an agent's guests (gateways, MCP servers, page fetchers), with one end for each start. These
//! events are logged before all others, so that a gateway ends before its worker, and a server before its agent.

use std::collections::BTreeMap;
use std::path::Path;

use boundary::monitor::{GuestLog, GuestNews, StartedGuest};
use boundary::policy::SYSTEM;
use ipc::id::{Generation, GuestId};
use protocol::event::{EventKind, GuestEnd, GuestEnded, GuestStarted, GuestTotals, ObservedBy};
use tokio::sync::mpsc;

use super::digest::Digests;
use super::event_sink::EventSink;
use super::worker::SessionWorker;
use super::{SessionError, Shared};

pub(super) struct Guests {
    log: GuestLog,
    news: mpsc::UnboundedReceiver<GuestNews>,
    /// Guests without an end, each with the generation of its worker; `None` for a guest without a worker.
    open: BTreeMap<GuestId, Option<Generation>>,
}

impl Default for Guests {
    fn default() -> Self {
        let (log, news) = GuestLog::channel();
        Self { log, news, open: BTreeMap::new() }
    }
}

impl Guests {
    /// Returns the channel by which starts and ends of this agent's guests are reported.
    pub(super) fn log(&self) -> &GuestLog {
        &self.log
    }

    /// Waits for the next start or end of a guest. Cancel safe.
    pub(super) async fn next(&mut self) -> GuestNews {
        match self.news.recv().await {
            Some(news) => news,
            // Never happens, since `self` holds a sender.
            None => std::future::pending().await,
        }
    }

    pub(super) fn record_all(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        worker: &SessionWorker,
    ) -> Result<(), SessionError> {
        while let Ok(news) = self.news.try_recv() {
            self.record(shared, sink, worker, news)?;
        }
        Ok(())
    }

    pub(super) fn record(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
        worker: &SessionWorker,
        news: GuestNews,
    ) -> Result<(), SessionError> {
        let kind = match news {
            GuestNews::Started(started) => {
                self.open.insert(started.guest, started.of.worker);
                EventKind::GuestStarted(Box::new(guest_started(*started)))
            }
            GuestNews::Ended(mut ended) => {
                let Some(owner) = self.open.remove(&ended.guest) else { return Ok(()) };
                let is_standing = owner == Some(worker.generation());
                if ended.reason == GuestEnd::OwnerEnded && is_standing && worker.changes_rights() {
                    ended.reason = GuestEnd::RightsChanged;
                }
                EventKind::GuestEnded(ended)
            }
            GuestNews::Pinned(tools) => EventKind::ToolPinned(tools),
        };
        sink.record(shared, kind, ObservedBy::Supervisor)
    }

    /// Logs an end for each guest that has none when the agent ends. The supervisor then kills such guests.
    pub(super) fn record_last(
        &mut self,
        shared: &mut Shared,
        sink: &mut EventSink,
    ) -> Result<(), SessionError> {
        while let Some((guest, _)) = self.open.pop_last() {
            let (reason, totals) = (GuestEnd::OwnerEnded, GuestTotals::default());
            let ended = GuestEnded { guest, reason, totals, hosts: Vec::new() };
            sink.record(shared, EventKind::GuestEnded(ended), ObservedBy::Supervisor)?;
        }
        Ok(())
    }
}

fn guest_started(started: StartedGuest) -> GuestStarted {
    let StartedGuest { guest, kind, of, pid, program, confinement, ruleset, hosts, startup } = started;
    let program = program.canonicalize().unwrap_or(program);
    let system: Vec<_> = SYSTEM.iter().map(Path::new).chain([program.as_path()]).collect();
    let digests = Digests::new(&confinement, &ruleset);
    GuestStarted {
        guest,
        kind,
        name: of.name,
        worker: of.worker,
        of: of.guest,
        call: of.call,
        pid,
        tier: ruleset.tier,
        landlock_abi: ruleset.landlock_abi,
        rules: ruleset.rules,
        rights: confinement.summary().with_system(&system),
        hosts,
        variables: confinement.environment.pass,
        rights_digest: digests.rights,
        ruleset_digest: digests.ruleset,
        not_enforced: ruleset.missing,
        startup_us: u64::try_from(startup.as_micros()).unwrap_or(u64::MAX),
    }
}
