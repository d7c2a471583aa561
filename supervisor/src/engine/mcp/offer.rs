//! The tools that a session's agent is offered, from the pins of its servers. No server is started for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use boundary::install::SelfInstaller;
use boundary::monitor::GuestLog;
use gate::tools::{ExternalTool, Tool, ToolDefinition};
use protocol::event::ToolPinned;
use serde_json::value::RawValue;

use super::confine::{Confined, confine};
use super::find::{Catalogue, tools};
use super::host::McpHost;
use super::kept::KeptTools;
use super::names::{description, tool_name};
use super::pin::{Pin, PinnedTool, Pins, digest_of_resources};
use super::resources::{self, READ};
use super::server::ServerSpec;
use crate::engine::place::ProjectSandbox;
use crate::settings::config::McpServer;

/// The most tools of a server, and the most bytes of their definitions, that stand in a prompt.
const MOST_TOOLS: usize = 24;
const MOST_BYTES: usize = 8 << 10;

/// The servers of a session.
pub(crate) struct Offered {
    pub(crate) tools: Vec<Box<dyn Tool>>,
    pub(crate) host: Arc<McpHost>,
    /// The servers that offer nothing, with the reasons and remedies.
    pub(crate) notices: Vec<String>,
    /// The approved tools of each server that offers some.
    pub(crate) pins: Vec<ToolPinned>,
}

/// Returns the tools of the servers that a person approved as their tables are now; nothing without servers.
pub(crate) fn offer(setup: &ProjectSandbox, servers: &[McpServer]) -> Option<Offered> {
    let (mut ready, mut notices, mut found) = (Vec::new(), Vec::new(), Vec::new());
    let (mut direct, mut many): (Vec<Box<dyn Tool>>, _) = (Vec::new(), Vec::new());
    let (mut taken, mut readable, mut pins) = (BTreeSet::new(), Vec::new(), Vec::new());
    for server in servers {
        match of_server(setup, server) {
            Ok((spec, confined, pin)) => {
                pins.push(pin.pinned(&server.name));
                if pin.resources && is_offered(server, READ) {
                    readable.push((server.name.clone(), confined.tool(digest_of_resources(server), false)));
                }
                let offered = pin.tools.iter().filter(|tool| is_offered(server, &tool.name));
                let defined: Vec<_> = offered
                    .filter_map(|tool| {
                        defined(&server.name, tool, &mut taken).map(|definition| (definition, tool))
                    })
                    .map(|(definition, tool)| {
                        let named =
                            ExternalTool::new(server.name.clone(), tool.name.clone(), definition.clone());
                        (
                            definition,
                            named.confined(
                                confined
                                    .tool(tool.digest.clone(), server.is_always(&tool.name, &tool.digest)),
                            ),
                        )
                    })
                    .collect();
                if is_for_a_prompt(&defined) {
                    direct.extend(defined.into_iter().map(|(_, tool)| Box::new(tool) as Box<dyn Tool>));
                } else {
                    many.push(server.name.clone());
                    found.extend(defined);
                }
                ready.push(spec);
            }
            Err(why) => notices.push(why),
        }
    }
    let catalogue = Arc::new(Catalogue(found));
    direct.extend(tools(&catalogue, &many.join(", ")));
    direct.extend(resources::tool(readable));
    let host = Arc::new(McpHost::new(ready, catalogue, KeptTools::of(setup)));
    (!servers.is_empty()).then_some(Offered { tools: direct, host, notices, pins })
}

/// True if the table of the server withholds nothing of this name.
fn is_offered(server: &McpServer, name: &str) -> bool {
    server.offer.as_ref().is_none_or(|offer| offer.iter().any(|offered| offered == name))
}

/// Returns a server that is ready to be called, with its pin. The error is a sentence for a person, with a remedy.
fn of_server(setup: &ProjectSandbox, server: &McpServer) -> Result<(ServerSpec, Confined, Pin), String> {
    let name = &server.name;
    let left_out = |why: &str| format!("the MCP server {name} is left out: {why}");
    let pin = Pins::new(&setup.directories).read(name).map_err(|error| left_out(&error.to_string()))?;
    let Some(pin) = pin else {
        return Err(left_out(&format!("you have not approved its tools\n  hint: bailiwick mcp add {name}")));
    };
    if !pin.is_of(server) {
        return Err(left_out(&format!(
            "its table has changed since you approved it\n  hint: bailiwick mcp add {name}"
        )));
    }
    let is_runner = SelfInstaller::of(&server.command, &server.args).is_some();
    if is_runner && pin.installed.is_none() {
        return Err(left_out(&format!(
            "its package is not installed yet\n  hint: bailiwick mcp add {name} installs it and asks"
        )));
    }
    let tree = pin.installed.as_ref().map(|installed| installed.tree.as_path());
    let confined = confine(setup, server, tree).map_err(|error| left_out(&error.to_string()))?;
    let spec = ServerSpec {
        server: server.clone(),
        spawner: setup.spawner.clone(),
        program: setup.programs.worker.clone(),
        confinement: confined.confinement.clone(),
        approved: pin.digest(),
        log: GuestLog::default(),
        most: usize::try_from(setup.policy.limits.output_bytes).unwrap_or(usize::MAX),
        installed: pin.installed.clone(),
    };
    Ok((spec, confined, pin))
}

/// Returns a tool's definition for the model; nothing if its schema is no JSON.
fn defined(server: &str, tool: &PinnedTool, taken: &mut BTreeSet<String>) -> Option<ToolDefinition> {
    let input_schema = RawValue::from_string(tool.input_schema.clone()).ok()?;
    Some(ToolDefinition {
        name: tool_name(server, &tool.name, taken).into(),
        description: description(server, &tool.description).into(),
        input_schema,
    })
}

/// True if the definitions are few and short.
fn is_for_a_prompt(tools: &[(ToolDefinition, ExternalTool)]) -> bool {
    let size = |definition: &ToolDefinition| {
        definition.name.len() + definition.description.len() + definition.input_schema.get().len()
    };
    tools.len() <= MOST_TOOLS
        && tools.iter().map(|(definition, _)| size(definition)).sum::<usize>() <= MOST_BYTES
}
