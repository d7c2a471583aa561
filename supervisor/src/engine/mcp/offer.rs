//! MCP tools that a session offers to its agents, as defined in pins. No server has to start for this.

use std::collections::BTreeSet;
use std::sync::Arc;

use boundary::install::SelfInstaller;
use boundary::monitor::PrivateTemp;
use gate::tools::{ExternalTool, GuestTool, OfferedServer, Tool, ToolDefinition};
use ipc::mcp::{McpPrompt, McpPromptArgument};
use protocol::event::ToolPinned;
use protocol::server_prompt::{ServerPrompt, ServerPromptArgument};
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use super::confine::{Confined, confine};
use super::file::FileServer;
use super::find::{Catalogue, tools as finding};
use super::host::McpHost;
use super::names::{description, tool_name, visible};
use super::pin::{Pin, PinnedTool, Pins, digest_of_resources};
use super::resources::{self, READ};
use super::server::{ApprovedBy, ApprovedTools, ServerSpec};
use crate::engine::place::ProjectSandbox;
use crate::process::messages::one_line;
use crate::settings::config::McpServer;

/// Maximum number of tools of a server that the prompt includes.
const MOST_TOOLS: usize = 24;

/// Maximum size in bytes of the definitions of a server that the prompt includes.
const MOST_BYTES: usize = 8 << 10;

/// Maximum number of characters of the description of a server's prompt.
const MOST_ABOUT: usize = 200;

/// Maximum number of running servers, for all agents of a session together.
pub(crate) const MOST_RUNNING: usize = 16;

/// Servers that the user approved with their present tables, or of a file that the user named for this run.
pub(crate) struct SessionServers {
    list: Vec<SessionServer>,
    /// Permits for running servers, shared by all agents of the session.
    places: Arc<Semaphore>,
    /// Reason and remedy for each server that is left out.
    pub(crate) notices: Vec<String>,
    /// Approved tools of each server that offers any.
    pub(crate) pins: Vec<ToolPinned>,
    /// Own directories of the servers of a file. Dropping this removes the directories.
    _own: Vec<Arc<PrivateTemp>>,
}

struct SessionServer {
    spec: ServerSpec,
    offered: OfferedServer,
    tools: Vec<(ToolDefinition, ExternalTool)>,
    /// Access by which calls for the server's resources are judged; `None` if the server offers no resources.
    readable: Option<GuestTool>,
    prompts: Vec<ServerPrompt>,
}

/// MCP tools of one agent, with the host that serves them.
pub(crate) struct Offered {
    pub(crate) tools: Vec<Box<dyn Tool>>,
    pub(crate) host: Arc<McpHost>,
    /// Servers that the agent may pass on to sub-agents.
    pub(crate) servers: Vec<OfferedServer>,
}

impl SessionServers {
    /// Creates the servers of a session. `of_file` are servers of a file that the user named for this run.
    pub(crate) fn new(setup: &ProjectSandbox, servers: &[McpServer], of_file: &[FileServer]) -> Self {
        let (mut list, mut notices, mut pins) = (Vec::new(), Vec::new(), Vec::new());
        let mut taken = BTreeSet::new();
        for server in servers {
            match of_server(setup, server) {
                Ok((spec, confined, pin)) => {
                    notices.extend(unknown_tools(server, &pin));
                    pins.push(pin.pinned(&server.name));
                    list.push(SessionServer::new(spec, &confined, &pin, &mut taken));
                }
                Err(why) => notices.push(why),
            }
        }
        for server in of_file {
            notices.extend(unknown_tools(server.server(), server.pin()));
            pins.push(server.pin().pinned(&server.server().name));
            list.push(SessionServer::new(server.spec(setup), server.confined(), server.pin(), &mut taken));
        }
        let own = of_file.iter().map(FileServer::own).collect();
        let places = Arc::new(Semaphore::new(MOST_RUNNING));
        Self { list, places, notices, pins, _own: own }
    }

    /// Returns all servers, for an agent that may pass them on or list them in a plan.
    pub(crate) fn offered(&self) -> Vec<OfferedServer> {
        self.list.iter().map(|server| server.offered.clone()).collect()
    }

    /// Returns the servers for which `has` is true, with processes for this agent alone; `None` if there are none.
    pub(crate) fn of_agent(&self, has: impl Fn(&str) -> bool) -> Option<Offered> {
        let chosen: Vec<_> = self.list.iter().filter(|server| has(&server.offered.name)).collect();
        let (mut tools, mut many, mut found): (Vec<Box<dyn Tool>>, Vec<&str>, Vec<_>) = Default::default();
        for server in &chosen {
            let of_server = server.tools.iter().cloned();
            if is_for_a_prompt(&server.tools) {
                tools.extend(of_server.map(|(_, tool)| Box::new(tool) as Box<dyn Tool>));
            } else {
                many.push(&server.offered.name);
                found.extend(of_server);
            }
        }
        let catalogue = Arc::new(Catalogue(found));
        tools.extend(finding(&catalogue, &many.join(", ")));
        let readable = chosen.iter().filter_map(|server| {
            let readable = server.readable.clone()?;
            Some((server.offered.name.clone(), readable))
        });
        tools.extend(resources::tool(readable.collect()));
        let specs = chosen.iter().map(|server| server.spec.clone()).collect();
        let prompts = chosen.iter().flat_map(|server| server.prompts.clone()).collect();
        let host = Arc::new(McpHost::new(specs, catalogue, prompts, Arc::clone(&self.places)));
        let servers: Vec<_> = chosen.iter().map(|server| server.offered.clone()).collect();
        (!servers.is_empty()).then_some(Offered { tools, host, servers })
    }
}

impl SessionServer {
    fn new(spec: ServerSpec, confined: &Confined, pin: &Pin, taken: &mut BTreeSet<String>) -> Self {
        let name = &spec.server.name;
        let server = &spec.server;
        let readable = (pin.resources && is_offered(server, READ))
            .then(|| confined.tool(digest_of_resources(server), false));
        let offered = pin.tools.iter().filter(|tool| is_offered(server, &tool.name));
        let tools: Vec<_> = offered
            .filter_map(|tool| {
                let definition = defined(name, tool, taken)?;
                let named = ExternalTool::new(name.clone(), tool.name.clone(), definition.clone());
                let always = server.is_unasked(&tool.name, &tool.digest);
                Some((definition, named.confined(confined.tool(tool.digest.clone(), always))))
            })
            .collect();
        let offered = OfferedServer {
            name: name.clone(),
            access: confined.access.clone(),
            tools: tools.iter().filter_map(|(_, tool)| tool.offered()).collect(),
        };
        let prompts = pin.prompts.iter().map(|prompt| server_prompt(name, prompt)).collect();
        Self { spec, offered, tools, readable, prompts }
    }
}

/// True if the server's table permits the tool or prompt with the name `name`.
fn is_offered(server: &McpServer, name: &str) -> bool {
    server.offer.as_ref().is_none_or(|offer| offer.iter().any(|offered| offered == name))
}

/// Returns a note if the server's table permits a tool that the server does not have.
fn unknown_tools(server: &McpServer, pin: &Pin) -> Option<String> {
    let unknown = server.unasked.iter().find(|name| !pin.tools.iter().any(|tool| tool.name == **name))?;
    let known: Vec<_> = pin.tools.iter().map(|tool| tool.name.as_str()).collect();
    let McpServer { name, .. } = server;
    Some(one_line(&format!(
        "--allow-tool {name}/{unknown}: the server has no such tool: {}",
        known.join(", ")
    )))
}

/// Returns a server that is ready to be called. The error is a sentence for the user, with a remedy.
fn of_server(setup: &ProjectSandbox, server: &McpServer) -> Result<(ServerSpec, Confined, Pin), String> {
    let name = &server.name;
    let left_out = |why: &str| format!("the MCP server {name} is left out: {why}");
    let pin = Pins::new(&setup.directories).read(name).map_err(|error| left_out(&error.to_string()))?;
    let Some(pin) = pin else {
        return Err(left_out(&format!(
            "you have not approved the server's tools\n  hint: bailiwick mcp add {name}"
        )));
    };
    if !pin.is_of(server) {
        return Err(left_out(&format!(
            "its table in config.toml has changed since you approved the server\n  hint: bailiwick mcp add {name}"
        )));
    }
    let is_runner = SelfInstaller::of(&server.command, &server.args).is_some();
    if is_runner && pin.installed.is_none() {
        return Err(left_out(&format!(
            "the server's package is not installed yet\n  hint: bailiwick mcp add {name} installs the package and asks for your approval"
        )));
    }
    let tree = pin.installed.as_ref().map(|installed| installed.tree.as_path());
    let confined = confine(setup, server, tree).map_err(|error| left_out(&error.to_string()))?;
    let approved = ApprovedTools { digest: pin.digest(), by: ApprovedBy::Person };
    let spec = ServerSpec::new(setup, server, &confined, approved, pin.installed.as_ref());
    Ok((spec, confined, pin))
}

fn server_prompt(server: &str, prompt: &McpPrompt) -> ServerPrompt {
    let McpPrompt { name, description, arguments } = prompt;
    let line = description.lines().next().unwrap_or_default().chars().take(MOST_ABOUT).collect::<String>();
    let argument = |argument: &McpPromptArgument| ServerPromptArgument {
        name: argument.name.clone(),
        required: argument.required,
    };
    ServerPrompt {
        server: server.to_owned(),
        name: name.clone(),
        description: visible(&line),
        arguments: arguments.iter().map(argument).collect(),
    }
}

/// Returns a tool's definition for the model; `None` if the schema is not JSON.
fn defined(server: &str, tool: &PinnedTool, taken: &mut BTreeSet<String>) -> Option<ToolDefinition> {
    let input_schema = RawValue::from_string(tool.input_schema.clone()).ok()?;
    Some(ToolDefinition {
        name: tool_name(server, &tool.name, taken).into(),
        description: description(server, &tool.description).into(),
        input_schema,
    })
}

/// True if the definitions are few and short enough for the prompt.
fn is_for_a_prompt(tools: &[(ToolDefinition, ExternalTool)]) -> bool {
    let size = |definition: &ToolDefinition| {
        definition.name.len() + definition.description.len() + definition.input_schema.get().len()
    };
    tools.len() <= MOST_TOOLS
        && tools.iter().map(|(definition, _)| size(definition)).sum::<usize>() <= MOST_BYTES
}
