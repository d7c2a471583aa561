use std::collections::BTreeSet;
use std::sync::Arc;

use protocol::approval::NamedServer;
use protocol::plan::PlanRights;

use super::{ExternalCall, GuestTool, OfferedServer, OfferedTool};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedServer {
    pub shown: NamedServer,
    tools: Vec<PlannedTool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PlannedTool {
    tool: String,
    guest: Arc<GuestTool>,
}

impl PlannedServer {
    /// Returns the servers and tools that a plan lists. The error names a server or tool that the session lacks.
    pub fn of(asked: Option<&PlanRights>, offered: &[OfferedServer]) -> Result<Vec<Self>, String> {
        let Some(PlanRights { servers, tools, .. }) = asked else { return Ok(Vec::new()) };
        for name in servers {
            if !offered.iter().any(|server| server.name == *name) {
                return Err(unknown("server", name, offered.iter().map(|server| server.name.as_str())));
            }
        }
        let all = || offered.iter().flat_map(|server| &server.tools);
        for name in tools {
            if !all().any(|tool| tool.name == *name) {
                return Err(unknown("tool", name, all().map(|tool| tool.name.as_str())));
            }
        }
        let planned = |server: &OfferedServer| {
            let is_whole = servers.contains(&server.name);
            let is_listed = |tool: &&OfferedTool| is_whole || tools.contains(&tool.name);
            let listed: Vec<_> = server.tools.iter().filter(is_listed).collect();
            let names =
                if is_whole { Vec::new() } else { listed.iter().map(|one| one.tool.clone()).collect() };
            let shown =
                NamedServer { name: server.name.clone(), tools: names, access: server.access.clone() };
            let of_tool =
                |one: &OfferedTool| PlannedTool { tool: one.tool.clone(), guest: Arc::clone(&one.guest) };
            let tools = listed.into_iter().map(of_tool).collect();
            (is_whole || !shown.tools.is_empty()).then_some(Self { shown, tools })
        };
        Ok(offered.iter().filter_map(planned).collect())
    }

    /// True if the plan lists the call's tool, with the same definition and access of its server.
    pub fn covers(&self, call: &ExternalCall) -> bool {
        let is_it =
            |listed: &PlannedTool| listed.tool == call.tool && call.guest.as_ref() == Some(&listed.guest);
        self.shown.name == call.server && self.tools.iter().any(is_it)
    }

    pub fn guest(&self) -> Option<&GuestTool> {
        self.tools.first().map(|tool| &*tool.guest)
    }

    /// Returns the data in the digest of an approval: the server as shown, and name and definition of each tool.
    pub fn digested(&self) -> (&NamedServer, Vec<(&str, &str)>) {
        let tools = self.tools.iter().map(|tool| (tool.tool.as_str(), tool.guest.definition.as_str()));
        (&self.shown, tools.collect())
    }
}

/// Maximum number of existing names that an error about an unknown name lists.
const NAMED: usize = 24;

fn unknown<'a>(kind: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: BTreeSet<_> = known.collect();
    let more = if known.len() > NAMED { ", …" } else { "" };
    let listed = known.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    if listed.is_empty() {
        return format!("{kind}: {name} does not exist: this session has no MCP {kind}s");
    }
    format!("{kind}: {name} does not exist: the MCP {kind}s of this session are {listed}{more}")
}

#[cfg(test)]
mod tests {
    use ipc::rights::Rights;
    use protocol::approval::ServerAccess;

    use super::*;

    fn guest(definition: &str, variables: &[&str]) -> Arc<GuestTool> {
        let variables = variables.iter().map(|name| (*name).to_owned()).collect();
        let access = ServerAccess { variables, ..ServerAccess::default() };
        Arc::new(GuestTool {
            rights: Rights::default(),
            access,
            definition: definition.to_owned(),
            always: false,
        })
    }

    fn offered(server: &str, tools: &[&str]) -> OfferedServer {
        let tool = |tool: &&str| OfferedTool {
            name: format!("{server}__{tool}"),
            tool: (*tool).to_owned(),
            guest: guest("d", &["TOKEN"]),
        };
        let access = guest("d", &["TOKEN"]).access.clone();
        OfferedServer { name: server.to_owned(), access, tools: tools.iter().map(tool).collect() }
    }

    fn asked(servers: &[&str], tools: &[&str]) -> PlanRights {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        PlanRights { servers: owned(servers), tools: owned(tools), ..PlanRights::default() }
    }

    fn call(server: &str, tool: &str, guest: Option<Arc<GuestTool>>) -> ExternalCall {
        ExternalCall { server: server.to_owned(), tool: tool.to_owned(), json: "{}".to_owned(), guest }
    }

    #[test]
    fn a_plan_covers_the_tools_that_it_lists_as_they_were_shown_and_no_others() {
        let servers = [offered("docs", &["echo", "other"]), offered("git", &["log"])];
        let usual = || Some(guest("d", &["TOKEN"]));
        let planned = PlannedServer::of(Some(&asked(&["git"], &["docs__echo"])), &servers).unwrap();
        let covers = |call: ExternalCall| planned.iter().any(|server| server.covers(&call));
        assert!(covers(call("docs", "echo", usual())) && covers(call("git", "log", usual())));
        for other in [
            call("docs", "other", usual()),
            call("git", "echo", usual()),
            call("docs", "echo", None),
            call("docs", "echo", Some(guest("e", &["TOKEN"]))),
            call("docs", "echo", Some(guest("d", &["TOKEN", "MORE"]))),
        ] {
            assert!(!covers(other.clone()), "{other:?}");
        }
        let shown: Vec<_> = planned.iter().map(|server| server.shown.to_string()).collect();
        insta::assert_snapshot!(shown.join("\n"), @r"
        docs (echo): reads no project files · writes only the server's own files · network off · given TOKEN
        git: reads no project files · writes only the server's own files · network off · given TOKEN
        ");
        assert_eq!(PlannedServer::of(None, &servers), Ok(Vec::new()));
        assert_eq!(PlannedServer::of(Some(&asked(&[], &[])), &servers), Ok(Vec::new()));
    }

    #[test]
    fn a_plan_lists_only_what_its_session_has() {
        let servers = [offered("docs", &["echo"])];
        let why = |asked: PlanRights| PlannedServer::of(Some(&asked), &servers).unwrap_err();
        insta::assert_snapshot!(why(asked(&["dox"], &[])), @"server: dox does not exist: the MCP servers of this session are docs");
        insta::assert_snapshot!(why(asked(&[], &["docs__other"])), @"tool: docs__other does not exist: the MCP tools of this session are docs__echo");
        insta::assert_snapshot!(PlannedServer::of(Some(&asked(&["docs"], &[])), &[]).unwrap_err(), @"server: docs does not exist: this session has no MCP servers");
    }
}
