//! Checks the MCP servers in the person's settings, as far as possible without starting them.

use std::path::Path;

use super::{CheckState, DoctorCheck};
use crate::engine::mcp::{Pins, fault};
use crate::engine::place::ProjectSandbox;
use crate::settings::config::{Layer, Sources};

/// Reports MCP servers that sessions leave out; `None` without servers in the settings.
pub(super) fn check(setup: &ProjectSandbox) -> Option<DoctorCheck> {
    let sources = Sources::read(&setup.directories, Path::new(".")).ok()?;
    let servers = sources.effective(&Layer::default()).mcp;
    let servers: Vec<_> = servers.iter().filter(|server| server.enabled).collect();
    let pins = Pins::new(&setup.directories);
    let is_approved =
        |name: &str, server| pins.read(name).ok().flatten().is_some_and(|pin| pin.is_of(server));
    let left_out: Vec<_> = servers
        .iter()
        .filter(|server| !is_approved(&server.name, server))
        .map(|server| server.name.as_str())
        .collect();
    let names: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    let first = names.first()?;
    let fault = servers.iter().find_map(|server| {
        let pin = pins.read(&server.name).ok().flatten().filter(|pin| pin.is_of(server))?;
        let why = fault(server, &pin)?;
        Some((why, &server.name))
    });
    Some(match left_out.first() {
        None if fault.is_none() => {
            let found =
                format!("{}; bailiwick mcp test {first} starts a server and checks it", names.join(", "));
            DoctorCheck::new("MCP servers", CheckState::Ok, found)
        }
        None => {
            let (why, name) = fault?;
            DoctorCheck::new("MCP servers", CheckState::Warn, format!("{name} is not started: {why}"))
                .remedy(format!("bailiwick mcp test {name}"))
        }
        Some(one) => {
            let found = format!(
                "not approved in their present form, so sessions do not start them: {}",
                left_out.join(", ")
            );
            DoctorCheck::new("MCP servers", CheckState::Warn, found)
                .remedy(format!("bailiwick mcp add {one}"))
        }
    })
}
