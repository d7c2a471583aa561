//! A start of a server for a person who adds or tests it: it describes itself and ends.

use std::time::{Duration, Instant};

use boundary::monitor::{GuestLog, McpEvent, McpServerProcess};
use ipc::mcp::McpReport;
use ipc::refusal::Refusal;
use protocol::event::GuestEnd;
use tokio::time::timeout;

use super::confine::{Confined, confine};
use super::installed::InstalledServer;
use super::pin::Pin;
use super::result::words;
use super::server::{ServerSpec, words_of_end};
use crate::engine::place::ProjectSandbox;
use crate::settings::config::McpServer;

/// The longest time from the start to the whole description.
const PATIENCE: Duration = Duration::from_mins(2);

/// A server that was started and has described itself.
pub(crate) struct Inspected {
    pub(crate) pin: Pin,
    pub(crate) instructions: String,
    pub(crate) confined: Confined,
    /// The time from the start to the whole description.
    pub(crate) took: Duration,
    /// Calls that the sandbox denied.
    pub(crate) refused: Vec<Refusal>,
}

/// The reason why a server did not describe itself, and what the sandbox denied until then.
pub(crate) struct InspectError {
    pub(crate) why: String,
    /// True if the server itself failed, and not its confinement.
    pub(crate) is_servers: bool,
    pub(crate) refused: Vec<Refusal>,
}

/// Starts a server in its sandbox, from its installed files if it has such, reads its description and ends it.
pub(crate) async fn inspect(
    setup: &ProjectSandbox,
    server: &McpServer,
    installed: Option<&InstalledServer>,
) -> Result<Inspected, InspectError> {
    let failed = |why: String| InspectError { why, is_servers: false, refused: Vec::new() };
    let tree = installed.map(|installed| installed.tree.as_path());
    let confined = confine(setup, server, tree).map_err(|error| failed(error.to_string()))?;
    let spec = ServerSpec {
        server: server.clone(),
        spawner: setup.spawner.clone(),
        program: setup.programs.worker.clone(),
        confinement: confined.confinement.clone(),
        most: 0,
        approved: String::new(),
        log: GuestLog::default(),
        installed: installed.cloned(),
    };
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
    match described
        .unwrap_or_else(|_| Err(format!("it did not describe itself within {} s", PATIENCE.as_secs())))
    {
        Ok((mut pin, instructions)) => {
            pin.installed = installed.cloned();
            Ok(Inspected { pin, instructions, confined, took, refused })
        }
        Err(why) => Err(InspectError { why, is_servers: true, refused }),
    }
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
