//! Reports the start and the end of each guest to its agent's log.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ipc::confinement::{Confinement, RulesetReport};
use ipc::id::{CallId, Generation, GuestId};
use ipc::rights::Hosts;
use ipc::text::one_line;
use protocol::event::{GuestEnd, GuestEnded, GuestRole, GuestTotals, HostUse, ToolPinned};
use tokio::sync::mpsc;

/// Maximum number of characters of a reason by a guest or a server that are logged.
const LONGEST: usize = 300;

#[derive(Debug)]
pub enum GuestNews {
    Started(Box<StartedGuest>),
    Ended(GuestEnded),
    /// The tools of an MCP server differ from those that a person has approved.
    Pinned(ToolPinned),
}

#[derive(Debug)]
pub struct StartedGuest {
    pub guest: GuestId,
    pub kind: GuestRole,
    pub of: GuestOwner,
    pub pid: u32,
    pub program: PathBuf,
    pub confinement: Confinement,
    pub ruleset: RulesetReport,
    pub hosts: Option<Hosts>,
    pub startup: Duration,
}

/// MCP server, worker, other guest or tool call for which a guest is started.
#[derive(Clone, Debug, Default)]
pub struct GuestOwner {
    /// Name of the MCP server or tool in the settings, or host of a fetched page; `None` without either.
    pub name: Option<String>,
    pub worker: Option<Generation>,
    pub guest: Option<GuestId>,
    pub call: Option<CallId>,
}

impl GuestOwner {
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct GuestLog {
    agent: Option<Arc<AgentLog>>,
    call: Option<CallId>,
}

#[derive(Debug)]
struct AgentLog {
    news: mpsc::UnboundedSender<GuestNews>,
    last: AtomicU32,
}

impl GuestLog {
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<GuestNews>) {
        let (news, inbox) = mpsc::unbounded_channel();
        (Self { agent: Some(Arc::new(AgentLog { news, last: AtomicU32::new(0) })), call: None }, inbox)
    }

    #[must_use]
    pub fn of_call(&self, call: CallId) -> Self {
        Self { call: Some(call), ..self.clone() }
    }

    pub fn pinned(&self, tools: ToolPinned) {
        if let Some(agent) = &self.agent {
            // An error means that the session is over.
            let _ = agent.news.send(GuestNews::Pinned(tools));
        }
    }

    /// Returns a new number for a guest that is about to start.
    pub(super) fn number(&self) -> GuestId {
        let last = self.agent.as_ref().map_or(0, |agent| agent.last.fetch_add(1, Ordering::Relaxed));
        GuestId(last.saturating_add(1))
    }

    pub(super) fn started(&self, mut guest: StartedGuest) -> LoggedGuest {
        guest.of.call = guest.of.call.or(self.call);
        let logged = LoggedGuest {
            agent: self.agent.clone(),
            guest: guest.guest,
            reason: GuestEnd::Closed,
            totals: GuestTotals::default(),
            hosts: Vec::new(),
        };
        logged.tell(GuestNews::Started(Box::new(guest)));
        logged
    }
}

/// A guest whose start has been logged. Dropping it logs the guest's end.
#[derive(Debug)]
pub struct LoggedGuest {
    agent: Option<Arc<AgentLog>>,
    guest: GuestId,
    pub(super) reason: GuestEnd,
    pub(super) totals: GuestTotals,
    pub(super) hosts: Vec<HostUse>,
}

impl LoggedGuest {
    pub(super) const fn guest(&self) -> GuestId {
        self.guest
    }

    fn tell(&self, news: GuestNews) {
        if let Some(agent) = &self.agent {
            // An error means that the session is over.
            let _ = agent.news.send(news);
        }
    }
}

impl Drop for LoggedGuest {
    fn drop(&mut self) {
        let mut reason = std::mem::replace(&mut self.reason, GuestEnd::Closed);
        if let GuestEnd::Failed { failure: words } | GuestEnd::Violation { violation: words } = &mut reason {
            *words = one_line(words).chars().take(LONGEST).collect();
        }
        let (guest, totals, hosts) = (self.guest, self.totals, std::mem::take(&mut self.hosts));
        self.tell(GuestNews::Ended(GuestEnded { guest, reason, totals, hosts }));
    }
}

#[cfg(test)]
mod tests {
    use ipc::confinement::{Bounds, Tier};
    use ipc::rights::Rights;

    use super::*;

    fn started(log: &GuestLog) -> LoggedGuest {
        let ruleset = RulesetReport {
            tier: Tier::Floor,
            landlock_abi: 7,
            rules: 1,
            seccomp_rules: 1,
            bounds: Bounds::default(),
            no_full_tier: None,
            missing: Vec::new(),
            attempts: Vec::new(),
        };
        log.started(StartedGuest {
            guest: log.number(),
            kind: GuestRole::Fetch,
            of: GuestOwner::named("a.example"),
            pid: 7,
            program: "/worker".into(),
            confinement: Confinement::new(Rights::default(), "/".into()),
            ruleset,
            hosts: None,
            startup: Duration::ZERO,
        })
    }

    #[test]
    fn a_guest_has_one_end_however_it_goes() {
        let (log, mut news) = GuestLog::channel();
        drop(started(&log));
        let mut failed = started(&log.of_call(CallId(3)));
        failed.reason = GuestEnd::Failed { failure: format!("it said:\n{}", "x".repeat(1000)) };
        drop(failed);
        let mut told = Vec::new();
        while let Ok(news) = news.try_recv() {
            told.push(match news {
                GuestNews::Started(guest) => (guest.guest.0, guest.of.call.map(|call| call.0), None),
                GuestNews::Ended(ended) => (ended.guest.0, None, Some(ended.reason)),
                GuestNews::Pinned(tools) => panic!("{tools:?}"),
            });
        }
        let failure = format!("it said:\\n{}", "x".repeat(LONGEST - 10));
        let ends = [Some(GuestEnd::Closed), Some(GuestEnd::Failed { failure })];
        let [closed, failed] = ends;
        assert_eq!(told, [(1, None, None), (1, None, closed), (2, Some(3), None), (2, None, failed)]);
        drop(started(&GuestLog::default()));
    }
}
