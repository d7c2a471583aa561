//! Confined helper processes, shown in the list of agents: network gateways, fetches of pages, and MCP servers.

use std::collections::BTreeMap;

use ipc::id::Generation;
use ipc::path::WirePath;
use ipc::rights::{NamedRoot, Network, RightsSummary};
use protocol::event::{GuestEnd, GuestEnded, GuestRole, GuestStarted, GuestTotals, HostUse};

/// Name under which connections of the fetch tool are reported, instead of the name of a program.
const FETCH: &str = "fetch_url";

/// Name of the tool that calls a tool of an MCP server. Server and tool are in the arguments.
const CALL_TOOL: &str = "call_tool";

#[derive(Debug, Default)]
pub(crate) struct Guests {
    list: Vec<GuestView>,
    /// Number of calls of each MCP server since its start.
    calls: BTreeMap<String, u64>,
    /// Number of connections of the latest worker, by host, port and program.
    connections: BTreeMap<(String, u16, String), u64>,
    generation: Generation,
}

#[derive(Debug)]
struct GuestView {
    started: GuestStarted,
    ended: Option<(GuestEnd, GuestTotals)>,
}

impl Guests {
    pub(crate) fn started(&mut self, started: GuestStarted) {
        // The gateway of a single command or of an MCP server has no line of its own.
        if started.kind == GuestRole::Gateway && (started.call.is_some() || started.of.is_some()) {
            return;
        }
        let replaces =
            |view: &GuestView| view.started.kind == started.kind && view.started.name == started.name;
        self.list.retain(|view| view.ended.is_none() || !replaces(view));
        self.list.push(GuestView { started, ended: None });
    }

    /// Records the end of a process. Returns a notice if the process ended unexpectedly.
    pub(crate) fn ended(&mut self, ended: &GuestEnded) -> Option<String> {
        let of = |view: &GuestView| view.started.guest == ended.guest && view.ended.is_none();
        let at = self.list.iter().position(of)?;
        let view = &mut self.list[at];
        let notice = ended.reason.is_failure().then(|| format!("{} {}", view.started, ended.reason));
        if let Some(server) = &view.started.name {
            self.calls.remove(server);
        }
        let is_expected = match view.started.kind {
            GuestRole::Fetch => true,
            GuestRole::Gateway => matches!(ended.reason, GuestEnd::OwnerEnded | GuestEnd::Closed),
            GuestRole::McpServer | GuestRole::Other(_) => false,
        };
        if is_expected {
            self.list.remove(at);
        } else {
            view.ended = Some((ended.reason.clone(), ended.totals));
        }
        notice
    }

    /// Counts a tool call if it is a call to an MCP server.
    pub(crate) fn called(&mut self, tool: &str, input: &str) {
        let arguments = (tool == CALL_TOOL).then(|| serde_json::from_str::<serde_json::Value>(input).ok());
        let within = arguments.flatten().and_then(|value| value.get("name")?.as_str().map(str::to_owned));
        let name = within.as_deref().unwrap_or(tool);
        if let Some((server, _)) = name.split_once("__") {
            *self.calls.entry(server.to_owned()).or_default() += 1;
        }
    }

    pub(crate) fn used(&mut self, generation: Generation, uses: &[HostUse]) {
        if generation != self.generation {
            self.connections.clear();
            self.generation = generation;
        }
        for used in uses.iter().filter(|used| used.program != FETCH) {
            let key = (used.host.clone(), used.port, used.program.clone());
            self.connections.insert(key, used.connections);
        }
    }

    /// Removes processes that have ended. Called when the user's next turn begins.
    pub(crate) fn forget_ended(&mut self) {
        self.list.retain(|view| view.ended.is_none());
    }

    pub(crate) fn lines(&self, project: &WirePath) -> Vec<(String, bool)> {
        self.list.iter().map(|view| (self.line(view, project), view.ended.is_some())).collect()
    }

    fn line(&self, view: &GuestView, project: &WirePath) -> String {
        let GuestView { started, ended } = view;
        if let Some((reason, totals)) = ended {
            let totals = totals.to_string();
            let totals = if totals.is_empty() { totals } else { format!(" · {totals}") };
            return format!("{started} {reason}{totals}");
        }
        let counted = |count: u64, unit: &str| match count {
            0 => String::new(),
            1 => format!(" · 1 {unit}"),
            several => format!(" · {several} {unit}s"),
        };
        match started.kind {
            GuestRole::Gateway => {
                let names = started.hosts.as_ref().map_or(0, |hosts| hosts.rules().len());
                let connections =
                    if started.worker == Some(self.generation) { self.connections.values().sum() } else { 0 };
                let names = counted(u64::try_from(names).unwrap_or(u64::MAX), "name");
                format!("{started}{names}{}", counted(connections, "connection"))
            }
            // The name of a fetch is the address, which is its only access.
            GuestRole::Fetch => started.to_string(),
            GuestRole::McpServer | GuestRole::Other(_) => {
                let calls = started.name.as_ref().and_then(|name| self.calls.get(name)).copied().unwrap_or(0);
                format!("{started} · {}{}", brief(&started.rights, project), counted(calls, "call"))
            }
        }
    }
}

/// Returns access in few words, such as `read project, write /srv, net api.example`.
fn brief(rights: &RightsSummary, project: &WirePath) -> String {
    let name = |root: &NamedRoot| match root {
        NamedRoot::Project => Some("project".to_owned()),
        NamedRoot::Temp | NamedRoot::Caches | NamedRoot::System => None,
        NamedRoot::Path(path) => {
            let inside = path.as_path().strip_prefix(project.as_path());
            Some(inside.map_or_else(|_| path.to_string(), |inside| inside.display().to_string()))
        }
    };
    let named = |word: &str, roots: &[NamedRoot]| {
        let names: Vec<_> = roots.iter().filter_map(name).collect();
        (!names.is_empty()).then(|| format!("{word} {}", names.join(" ")))
    };
    let net = match &rights.net {
        Network::Off => None,
        net => Some(format!("net {net}")),
    };
    let parts: Vec<_> =
        [named("read", &rights.read), named("write", &rights.write), net].into_iter().flatten().collect();
    if parts.is_empty() { "own files only".to_owned() } else { parts.join(", ") }
}
