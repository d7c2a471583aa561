//! MCP servers of a file that the user named for one run. Each server is started once before the session, which permits
//! only the tool definitions of that start.
//!
//! No data outlasts the run, since another file may use the same name for another server. So the server's own directory
//! is temporary, and no pin is written.

use std::path::Path;
use std::sync::Arc;

use boundary::install::SelfInstaller;
use boundary::monitor::PrivateTemp;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use protocol::shell_word::shell_word;

use super::confine::{Confined, confine_in};
use super::inspect::{AccessIn, inspect_confined};
use super::offer::MOST_RUNNING;
use super::pin::Pin;
use super::server::{ApprovedBy, ApprovedTools, ServerSpec};
use crate::engine::place::ProjectSandbox;
use crate::process::messages::one_line;
use crate::settings::config::McpServer;

/// A server of a file, with the description that it returned at its first start.
#[derive(Clone, Debug)]
pub(crate) struct FileServer {
    server: McpServer,
    confined: Confined,
    pin: Pin,
    own: Arc<PrivateTemp>,
}

/// Starts a file's servers, reads their descriptions, and ends them. The error is a sentence for the user.
pub(crate) async fn start(
    setup: &ProjectSandbox,
    servers: Vec<McpServer>,
) -> Result<Vec<FileServer>, String> {
    let started = iter(servers).map(|server| start_one(setup, server)).buffered(MOST_RUNNING);
    started.try_collect().await
}

async fn start_one(setup: &ProjectSandbox, server: McpServer) -> Result<FileServer, String> {
    let server = at_project(setup.policy.project.as_path(), server);
    let McpServer { name, command, args, net, .. } = &server;
    if SelfInstaller::is_runner(command, args) && net.is_off() {
        let words: Vec<_> = server.command_line().into_iter().map(shell_word).collect();
        return Err(format!(
            "cannot start the MCP server {name}: {command} fetches its package at each start, and the server has no network\n  hint: \
             bailiwick mcp add {name} -- {} installs it once, and --mcp {name} offers it",
            one_line(&words.join(" "))
        ));
    }
    let own = setup.another_temp().map_err(|error| error.to_string())?;
    let confined = confine_in(setup, &server, own.path());
    let inspected = inspect_confined(setup, &server, confined, None).await;
    let inspected = inspected.map_err(|error| error.in_words(name, AccessIn::File))?;
    Ok(FileServer { server, confined: inspected.confined, pin: inspected.pin, own: Arc::new(own) })
}

/// Returns the server. If its program has a relative path, the path is resolved in the project.
fn at_project(project: &Path, server: McpServer) -> McpServer {
    let command = Path::new(&server.command);
    if !server.command.contains('/') || command.is_absolute() {
        return server;
    }
    let command = project.join(command).to_string_lossy().into_owned();
    McpServer { command, ..server }
}

impl FileServer {
    pub(super) const fn server(&self) -> &McpServer {
        &self.server
    }

    pub(super) const fn pin(&self) -> &Pin {
        &self.pin
    }

    pub(super) const fn confined(&self) -> &Confined {
        &self.confined
    }

    pub(super) fn own(&self) -> Arc<PrivateTemp> {
        Arc::clone(&self.own)
    }

    pub(super) fn spec(&self, setup: &ProjectSandbox) -> ServerSpec {
        let approved = ApprovedTools { digest: self.pin.digest(), by: ApprovedBy::Run };
        ServerSpec::new(setup, &self.server, &self.confined, approved, None)
    }

    /// Returns a line about the server, shown when the run starts.
    pub(crate) fn notice(&self) -> String {
        let tools = self.pin.tools.len();
        let tools = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
        one_line(&format!(
            "the MCP server {} of --mcp-config: {}; {tools}, not compared with an earlier approval",
            self.server.name, self.confined.access
        ))
    }
}
