//! Starts a server for a user who adds or tests it. The server describes itself and is then ended.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use boundary::monitor::{McpEvent, McpServerProcess};
use ipc::mcp::McpReport;
use ipc::refusal::Refusal;
use protocol::event::GuestEnd;
use protocol::shell_word::shell_word;
use tokio::time::timeout;

use super::confine::{ConfineError, Confined, confine};
use super::denied::denied;
use super::installed::InstalledServer;
use super::pin::Pin;
use super::program::unread;
use super::result::words;
use super::server::{ApprovedBy, ApprovedTools, ServerSpec, words_of_end};
use crate::engine::place::ProjectSandbox;
use crate::process::messages::harmless;
use crate::settings::config::McpServer;

/// Time limit for the start and the complete description.
const PATIENCE: Duration = Duration::from_mins(2);

pub(crate) struct Inspected {
    pub(crate) pin: Pin,
    pub(crate) instructions: String,
    pub(crate) confined: Confined,
    /// Time from the start to the complete description.
    pub(crate) took: Duration,
    pub(crate) refused: Vec<Refusal>,
}

pub(crate) struct InspectError {
    why: String,
    /// True if the server failed after its start; false if it was not started.
    is_servers: bool,
    /// Accesses that the sandbox denied before the failure.
    refused: Vec<Refusal>,
    /// Directories that the server's program needs and cannot read.
    unread: Vec<PathBuf>,
}

/// Place in which the user states the access of a server. The advice in messages depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessIn {
    /// Table in the settings, which `mcp add` writes from its flags.
    Table,
    /// Entry in a file with servers for one run.
    File,
}

impl AccessIn {
    /// Returns advice about letting a server access hosts, for a server that failed without network.
    const fn hosts(self) -> &'static str {
        match self {
            Self::Table => "--net HOST, or `hosts` in the server's table, lets the server reach a host",
            Self::File => "`hosts` in the server's entry lets the server reach a host",
        }
    }

    const fn more(self) -> &'static str {
        match self {
            Self::Table => "--read PATH, or `read` in the server's table, lets the server read more files",
            Self::File => "`read` in the server's entry lets the server read more files",
        }
    }

    /// Returns advice about letting a server read these paths.
    fn reading(self, places: &[PathBuf]) -> String {
        match self {
            Self::Table => {
                let flags: Vec<_> =
                    places.iter().map(|place| format!("--read {}", shell_word(place))).collect();
                flags.join(" ")
            }
            Self::File => {
                let words: Vec<_> = places.iter().map(|place| format!("\"{}\"", place.display())).collect();
                format!("`read` with {} in the server's entry", words.join(", "))
            }
        }
    }
}

impl InspectError {
    /// Returns a text with the cause, the denied accesses and a remedy.
    pub(crate) fn in_words(&self, name: &str, access: AccessIn) -> String {
        let Self { why, is_servers, refused, unread } = self;
        let denied = denied(refused).into_iter().fold(String::new(), |text, line| text + "\n  " + &line);
        let hint = match unread.as_slice() {
            _ if !is_servers => String::new(),
            [] if refused.iter().any(Refusal::is_of_internet) => format!("\n  hint: {}", access.hosts()),
            [] => {
                format!(
                    "\n  hint: a server can read only the system's programs and its own files: {}",
                    access.more()
                )
            }
            places => format!("\n  hint: {} lets the server read its own program", access.reading(places)),
        };
        format!("cannot start the MCP server {name}: {}{denied}{hint}", harmless(why))
    }
}

/// Starts a server (or its installed files) in its sandbox, reads its description and ends it.
pub(crate) async fn inspect(
    setup: &ProjectSandbox,
    server: &McpServer,
    installed: Option<&InstalledServer>,
) -> Result<Inspected, InspectError> {
    let tree = installed.map(|installed| installed.tree.as_path());
    let confined = confine(setup, server, tree);
    inspect_confined(setup, server, confined, installed).await
}

pub(super) async fn inspect_confined(
    setup: &ProjectSandbox,
    server: &McpServer,
    confined: Result<Confined, ConfineError>,
    installed: Option<&InstalledServer>,
) -> Result<Inspected, InspectError> {
    let failed =
        |why: String| InspectError { why, is_servers: false, refused: Vec::new(), unread: Vec::new() };
    let confined = confined.map_err(|error| failed(error.to_string()))?;
    let approved = ApprovedTools { digest: String::new(), by: ApprovedBy::Person };
    let spec = ServerSpec::new(setup, server, &confined, approved, installed);
    let process = spec
        .process()
        .await
        .map_err(|error| failed(format!("{error}\n  hint: {}", error.remedy(&server.name))))?;
    let began = Instant::now();
    let mut process =
        McpServerProcess::start(&spec.spawner, process).await.map_err(|error| failed(error.to_string()))?;
    let mut refused = Vec::new();
    let described = timeout(PATIENCE, description(&mut process, server, &mut refused)).await;
    let took = began.elapsed();
    refused.extend(process.end(GuestEnd::Finished).await.refused);
    match described.unwrap_or_else(|_| {
        Err(format!("the server did not describe itself within {} s", PATIENCE.as_secs()))
    }) {
        Ok((mut pin, instructions)) => {
            pin.installed = installed.cloned();
            Ok(Inspected { pin, instructions, confined, took, refused })
        }
        Err(why) => {
            let unread = unread(&with_places(server, &confined));
            Err(InspectError { why, is_servers: true, refused, unread })
        }
    }
}

/// Returns the server with resolved paths, taken from its confinement, in place of the paths in its table.
fn with_places(server: &McpServer, confined: &Confined) -> McpServer {
    let [read, write] = [&confined.access.read, &confined.access.write]
        .map(|places| places.iter().map(ToString::to_string).collect());
    McpServer { read, write, ..server.clone() }
}

async fn description(
    process: &mut McpServerProcess,
    server: &McpServer,
    refused: &mut Vec<Refusal>,
) -> Result<(Pin, String), String> {
    let (mut tools, mut prompts) = (Vec::new(), Vec::new());
    loop {
        match process.next().await {
            McpEvent::Report(McpReport::Tool(tool)) => tools.push(tool),
            McpEvent::Report(McpReport::Prompt(prompt)) => prompts.push(prompt),
            McpEvent::Report(McpReport::Described(description)) => {
                let pin = Pin::new(server, &description, tools).with_prompts(prompts);
                return Ok((pin, description.instructions));
            }
            McpEvent::Report(McpReport::Gone(failure)) => return Err(words(&failure)),
            McpEvent::Ended(end) => return Err(words_of_end(&end)),
            McpEvent::Refused(more) => refused.extend(more),
            McpEvent::Report(_) | McpEvent::HostUsed(_) => {}
        }
    }
}
