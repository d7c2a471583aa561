//! The tool that starts a sub-agent. The model reads the comments of the fields.

use ipc::path::WirePath;
use protocol::approval::NamedServer;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{BadArgument, filled, path, positive};
use super::external::OfferedServer;
use super::typed::{Arguments, Typed};
use super::{Invocation, Tool, ToolDefinition, ToolUseError};
use crate::roles::{Role, Roles};

/// Maximum size in bytes of a task.
const LONGEST_TASK: usize = 32 << 10;

/// Call for a sub-agent, without the access that the sub-agent will have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpawnAgent {
    pub task: String,
    /// True if the sub-agent may write anything.
    pub writes: bool,
    /// Paths that the sub-agent may write. If empty, all that its parent may write.
    pub write: Vec<WirePath>,
    pub network: bool,
    pub role: Option<String>,
    /// MCP servers of the parent that the sub-agent may call too.
    pub servers: Vec<NamedServer>,
    pub model: Option<String>,
    pub max_steps: Option<u32>,
}

pub(super) const SPAWN: &str = Spawn::NAME;

pub(super) fn spawning(roles: &Roles, servers: &[OfferedServer]) -> Box<dyn Tool> {
    let typed = Typed::<Spawn>::new();
    let named = |OfferedServer { name, access, .. }: &OfferedServer| NamedServer {
        name: name.clone(),
        tools: Vec::new(),
        access: access.clone(),
    };
    let servers: Vec<_> = servers.iter().map(named).collect();
    let definition = with_choices(typed.definition().clone(), roles, &servers);
    Box::new(Spawning { typed, definition, roles: roles.clone(), servers })
}

struct Spawning {
    typed: Typed<Spawn>,
    definition: ToolDefinition,
    roles: Roles,
    servers: Vec<NamedServer>,
}

struct AskedRights {
    spawn: SpawnAgent,
    servers: Vec<String>,
    /// True if the call has an argument `access` or a nonempty argument `write`.
    says_access: bool,
}

impl Tool for Spawning {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn parse(&self, input: &str) -> Result<Invocation, ToolUseError> {
        let mut asked = self.typed.call(input)?;
        let argument_error = |(field, why): BadArgument| self.typed.argument_error(field, &why);
        asked.spawn.servers = self.own_servers(&asked.servers).map_err(argument_error)?;
        Ok(self.in_role(asked).map_err(argument_error)?.into())
    }
}

impl Spawning {
    /// Returns the servers with these names. Fails for a server that the agent itself does not have.
    fn own_servers(&self, names: &[String]) -> Result<Vec<NamedServer>, BadArgument> {
        let unknown = |name: &&String| !self.servers.iter().any(|server| server.name == **name);
        if let Some(name) = names.iter().find(unknown) {
            let known: Vec<_> = self.servers.iter().map(|server| server.name.as_str()).collect();
            let expected = match known.as_slice() {
                [] => "expected none: you have no MCP server".to_owned(),
                known => format!("you have {}", known.join(", ")),
            };
            return Err(("servers", format!("got {name:?}, {expected}")));
        }
        Ok(self.servers.iter().filter(|server| names.contains(&server.name)).cloned().collect())
    }

    /// Applies the role that the call names. A role only removes access: with a reading role, nothing is written.
    fn in_role(
        &self,
        AskedRights { mut spawn, says_access, .. }: AskedRights,
    ) -> Result<SpawnAgent, BadArgument> {
        let Some(name) = &spawn.role else { return Ok(spawn) };
        let known = || self.roles.iter().map(|role| role.name.as_str()).collect::<Vec<_>>().join(", ");
        let role = self.roles.get(name);
        let role = role.ok_or_else(|| {
            if self.roles.is_empty() {
                return ("role", format!("got {name:?}, expected nothing: this session has no roles"));
            }
            ("role", format!("got {name:?}, expected one of {}", known()))
        })?;
        if spawn.writes && !role.writes {
            return Err(("access", format!("the role {name} can only read: leave out access and write")));
        }
        if role.tools.is_some() && !spawn.servers.is_empty() {
            return Err(("servers", format!("the role {name} has a list of tools: leave out servers")));
        }
        spawn.writes |= role.writes && !says_access;
        Ok(spawn)
    }
}

/// Adds roles and servers to the schema, and the roles to the description. Removes fields without choices.
fn with_choices(mut definition: ToolDefinition, roles: &Roles, servers: &[NamedServer]) -> ToolDefinition {
    let Ok(mut schema) = serde_json::from_str::<Value>(definition.input_schema.get()) else {
        return definition;
    };
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        match properties.get_mut("role") {
            Some(role) if !roles.is_empty() => {
                role["enum"] = roles.iter().map(|role| Value::from(role.name.as_str())).collect();
            }
            _ => drop(properties.shift_remove("role")),
        }
        match properties.get_mut("servers") {
            Some(names) if !servers.is_empty() => {
                names["items"]["enum"] =
                    servers.iter().map(|server| Value::from(server.name.as_str())).collect();
            }
            _ => drop(properties.shift_remove("servers")),
        }
    }
    if let Ok(schema) = serde_json::value::to_raw_value(&schema) {
        definition.input_schema = schema;
    }
    if !roles.is_empty() {
        let of = |role: &Role| format!("\n- {} ({}): {}", role.name, access(role), role.description);
        let listed: String = roles.iter().map(of).collect();
        definition.description =
            format!("{}\nRoles, for which the user wrote instructions:{listed}", definition.description)
                .into();
    }
    definition
}

const fn access(role: &Role) -> &'static str {
    if role.writes { "may write" } else { "reads" }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Spawn {
    /// Everything that it has to know: it sees nothing of this conversation. Say what to do, where to look, what to
    /// report.
    task: String,
    /// "read" (the default): it reads, and runs commands that write nothing but its own TMPDIR. "write": it may change
    /// files.
    access: Option<Access>,
    /// Only these files and directories may it change; they have to exist. Relative to the project or absolute. Absent
    /// with access "write": all that you may change.
    write: Option<Vec<String>>,
    /// Whether it needs the network.
    network: Option<bool>,
    /// The role that fits the task, if one does.
    role: Option<String>,
    /// Those of your MCP servers that it needs too. A call is denied where the server may do more than the sub-agent.
    servers: Option<Vec<String>>,
    /// Another model than yours, where the user allows it.
    model: Option<String>,
    /// The most replies that it may take.
    #[schemars(range(min = 1))]
    max_steps: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Access {
    Read,
    Write,
}

impl Arguments for Spawn {
    type Call = AskedRights;

    const NAME: &'static str = "spawn_agent";
    const DESCRIPTION: &'static str = "Starts a sub-agent: another agent with an empty conversation and a sandbox of its \
        own, which carries out one task and reports back. Several in one reply run at the same time. Returns what the \
        supervisor saw of it (status, files, cost), then its last message.";

    fn into_call(self) -> Result<AskedRights, BadArgument> {
        let Self { task, access, write, network, role, servers, model, max_steps } = self;
        let task = filled("task", task)?;
        if task.len() > LONGEST_TASK {
            let got = task.len();
            return Err(("task", format!("got {got} bytes, expected at most {LONGEST_TASK}")));
        }
        let write = write.unwrap_or_default();
        if matches!(access, Some(Access::Read)) && !write.is_empty() {
            return Err((
                "write",
                "got paths together with access \"read\", expected only one of the two".to_owned(),
            ));
        }
        let says_access = access.is_some() || !write.is_empty();
        let spawn = SpawnAgent {
            task,
            writes: matches!(access, Some(Access::Write)) || !write.is_empty(),
            write: write.iter().map(|text| path("write", text)).collect::<Result<_, _>>()?,
            network: network.unwrap_or(false),
            role,
            servers: Vec::new(),
            model: model.map(|name| filled("model", name)).transpose()?,
            max_steps: positive("max_steps", max_steps)?,
        };
        Ok(AskedRights { spawn, servers: servers.unwrap_or_default(), says_access })
    }
}

impl From<AskedRights> for Invocation {
    fn from(asked: AskedRights) -> Self {
        asked.spawn.into()
    }
}

impl From<SpawnAgent> for Invocation {
    fn from(spawn: SpawnAgent) -> Self {
        Self::Agent(spawn)
    }
}
