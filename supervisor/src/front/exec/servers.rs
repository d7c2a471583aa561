//! The MCP servers of a run: those of the settings that `--mcp` names, and those of the file of `--mcp-config`.

use std::path::Path;
use std::time::Instant;

use protocol::frontend::{AgentAction, UserActionKind};

use crate::engine::mcp::{FileServer, start};
use crate::engine::opening::Refusal;
use crate::engine::place::ProjectSandbox;
use crate::process::exit::Exit;
use crate::process::messages::one_line;
use crate::process::signals::UserSignals;
use crate::settings::config::{McpFile, McpServer, ToolName};

/// Returns the MCP servers that the flags name. A headless agent has no other servers.
pub(super) fn chosen_servers(names: &[String], servers: &[McpServer]) -> Result<Vec<McpServer>, String> {
    let find = |name: &String| {
        let found = servers.iter().find(|server| server.name == *name).cloned();
        found.ok_or_else(|| {
            format!("--mcp {name}: your settings have no such MCP server\n  hint: bailiwick mcp list")
        })
    };
    names.iter().map(find).collect()
}

/// Lets the first agent call these tools without a question. Fails if the run lacks the MCP server of a tool.
pub(super) fn allow_tools(
    tools: &[ToolName],
    of_settings: &mut [McpServer],
    of_file: &mut Option<McpFile>,
) -> Result<(), String> {
    for name in tools {
        let of_file = of_file.iter_mut().flat_map(|file| &mut file.servers);
        let mut servers = of_settings.iter_mut().chain(of_file);
        let server = servers.find(|server| server.name == name.server).ok_or_else(|| {
            format!(
                "--allow-tool {name}: this run has no MCP server {0}\n  hint: add --mcp {0}, or --mcp-config with a file that has it",
                name.server
            )
        })?;
        server.unasked.push(name.tool.clone());
    }
    Ok(())
}

/// Returns remarks for the person about the file of `--mcp-config`, before its servers start.
pub(super) fn remarks(file: &McpFile, project: &Path) -> Vec<String> {
    let left_out = file.left_out.iter().map(|part| one_line(&format!("--mcp-config: left out: {part}")));
    let [place, project] = [&file.path, project].map(|path| path.canonicalize().ok());
    let is_projects = place.zip(project).is_some_and(|(place, project)| place.starts_with(project));
    let warning = is_projects.then(|| {
        "--mcp-config: the file is in the project: everybody who can change the project decides what these servers can do".to_owned()
    });
    left_out.chain(warning).collect()
}

/// Starts the servers of a file to read the lists of their tools. Fails at the run's deadline and at a signal.
pub(super) async fn started(
    file: McpFile,
    setup: &ProjectSandbox,
    deadline: Option<Instant>,
    signals: &mut UserSignals,
) -> Result<Vec<FileServer>, Refusal> {
    let over = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        started = start(setup, file.servers) => started.map_err(|why| Refusal(Exit::NoSandbox, why)),
        () = over => Err(Refusal(
            Exit::GaveUp,
            "the MCP servers of --mcp-config did not start within the time of --timeout".to_owned(),
        )),
        signal = signals.next() => Err(Refusal(
            ended_by(&signal),
            "interrupted while the MCP servers of --mcp-config started".to_owned(),
        )),
    }
}

const fn ended_by(signal: &UserActionKind) -> Exit {
    match signal {
        UserActionKind::Agent(AgentAction::HangUp) => Exit::HungUp,
        UserActionKind::Agent(AgentAction::Terminate) => Exit::Terminated,
        _ => Exit::Interrupted,
    }
}
