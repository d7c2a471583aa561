//! `bailiwick mcp list`: lists the MCP servers with their access and tools.

use std::io::{self, Write};

use super::shown::{access, command};
use super::{McpRefusal, servers, sources};
use crate::engine::mcp::{Pin, Pins, fault};
use crate::process::directories::Directories;
use crate::process::exit::{Exit, printed};
use crate::process::messages::{one_line, say};
use crate::settings::args::McpListArgs;
use crate::settings::config::{McpServer, ToolGrant};

pub(super) fn run(args: &McpListArgs, directories: &Directories) -> Result<Exit, McpRefusal> {
    let sources = sources(directories, &args.directory)?;
    let (servers, pins) = (servers(&sources), Pins::new(directories));
    let mut text = String::new();
    for server in &servers {
        text.push_str(&entry(server, &state(server, &pins)));
        let installed = pins.read(&server.name).ok().flatten().and_then(|pin| pin.installed);
        text.push_str(&always(server, &pins));
        text.extend(installed.map(|installed| format!("  version  {}\n", one_line(&installed.in_words()))));
    }
    for proposal in sources.proposals() {
        match proposal {
            Ok(proposal) => {
                let server = &proposal.server;
                let accept = format!(
                    "proposed by the project; bailiwick mcp add --from-project {} shows it and asks for your approval",
                    server.name
                );
                text.push_str(&entry(server, &accept));
            }
            Err(why) => say(&format!("note: {}", one_line(why))),
        }
    }
    if text.is_empty() {
        text.push_str("no MCP server yet: bailiwick mcp add NAME -- COMMAND ARGS adds one\n");
    }
    Ok(printed(write!(io::stdout(), "{text}"), Exit::Done))
}

fn entry(server: &McpServer, state: &str) -> String {
    format!("{}  {state}\n  command  {}\n  access   {}\n", server.name, command(server), access(server))
}

fn always(server: &McpServer, pins: &Pins) -> String {
    let pin = pins.read(&server.name).ok().flatten().filter(|pin| pin.is_of(server));
    let holds = |grant: &ToolGrant| {
        let mut tools = pin.iter().flat_map(|pin| &pin.tools);
        tools.any(|tool| tool.name == grant.tool && tool.digest == grant.definition)
    };
    let in_words = |grant: &ToolGrant| {
        if holds(grant) {
            grant.tool.clone()
        } else {
            format!("{} (asks again: the tool has changed)", grant.tool)
        }
    };
    let names: Vec<_> = server.always.iter().map(in_words).collect();
    if names.is_empty() { String::new() } else { format!("  unasked  {}\n", one_line(&names.join(", "))) }
}

fn state(server: &McpServer, pins: &Pins) -> String {
    let again = format!("bailiwick mcp add {}", server.name);
    match pins.read(&server.name) {
        _ if !server.enabled => "off (enabled = false)".to_owned(),
        Err(error) => error.to_string(),
        Ok(None) => format!("not approved: {again} shows the server and asks for your approval"),
        Ok(Some(pin)) if !pin.is_of(server) => {
            format!("changed since your approval: {again} shows the server and asks again")
        }
        Ok(Some(pin)) => ready(server, &pin),
    }
}

fn ready(server: &McpServer, pin: &Pin) -> String {
    if let Some(why) = fault(server, pin) {
        return format!("not started: {why}");
    }
    let is_offered = |name: &String| server.offer.as_ref().is_none_or(|offer| offer.contains(name));
    let names: Vec<_> = pin
        .tools
        .iter()
        .map(|tool| &tool.name)
        .filter(|name| is_offered(name))
        .map(|name| one_line(name))
        .collect();
    let unit = if names.len() == 1 { "tool" } else { "tools" };
    format!("ready, {} {unit}: {}", names.len(), names.join(", "))
}
