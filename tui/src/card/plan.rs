//! Text of a request to execute a plan: the plan itself behind a vertical line, then facts from the supervisor.

use ipc::path::WirePath;
use ipc::rights::Network;
use protocol::approval::{NamedServer, PlanApprovalParams};
use protocol::plan::{OnFailure, PlanStep};

use super::content::{labelled, places};
use crate::model::{Look, Part};
use crate::plan::styled;
use crate::text::SafeText;

pub(super) fn text(params: &PlanApprovalParams) -> Vec<Part> {
    let heading = Part::new(SafeText::line("the complete plan:"), Look::Heading);
    std::iter::once(heading).chain(styled(&params.markdown)).collect()
}

/// Returns facts about a plan: its steps, and the access of the execution with absolute paths.
pub(super) fn facts(params: &PlanApprovalParams, project: &WirePath) -> Vec<Part> {
    let heading = Part::new(SafeText::line(&format!("{ACCOUNT}:")), Look::Heading);
    let facts = account(params, Some(project)).into_iter().map(|line| Part::new(line, Look::Fact));
    std::iter::once(heading).chain(facts).collect()
}

pub const ACCOUNT: &str = "access of the execution, as Bailiwick enforces it";

/// Returns the facts as text. Without a project, each path is labelled as outside the project.
pub fn account(params: &PlanApprovalParams, project: Option<&WirePath>) -> Vec<SafeText> {
    let mut lines = listed("may", written(params, project));
    lines.push(labelled("network", network(params).as_bytes()));
    lines.extend(listed("calls", calls(params)));
    lines.extend(listed("steps", steps(params)));
    lines.push(labelled("failure", failure(params.plan.on_failure.unwrap_or_default()).as_bytes()));
    lines.push(labelled("lasts", b"until the plan ends; no further questions"));
    lines
}

/// Returns the lines as texts, the first one after the label `name`.
fn listed(name: &'static str, lines: Vec<Vec<u8>>) -> Vec<SafeText> {
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    names.zip(lines).map(|(name, line)| labelled(name, &line)).collect()
}

/// Returns a line for each writable path. Words like `write` precede the path, so that no path can imitate or hide
/// them.
fn written(params: &PlanApprovalParams, project: Option<&WirePath>) -> Vec<Vec<u8>> {
    let write = &params.rights.write;
    if write.is_empty() {
        return vec![b"write only a private temp directory".to_vec()];
    }
    let is_inside =
        |path: &WirePath| project.is_some_and(|project| path.as_path().starts_with(project.as_path()));
    let line = |path: &WirePath| {
        let words: &[u8] = if is_inside(path) {
            b"write "
        } else if params.caches.as_ref() == Some(path) {
            b"write the package caches of the project, "
        } else {
            b"write OUTSIDE THE PROJECT "
        };
        [words, path.as_bytes(), created(params, path).as_bytes()].concat()
    };
    let (inside, beyond): (Vec<_>, Vec<_>) = write.iter().partition(|path| is_inside(path));
    inside.into_iter().chain(beyond).map(line).collect()
}

/// Returns a note about the paths that will be created in a directory; empty if no path will be created.
fn created(params: &PlanApprovalParams, directory: &WirePath) -> String {
    let of_it = params.to_create.iter().filter(|place| place.directory == *directory);
    let places: Vec<_> = of_it.map(|place| place.path.to_string()).collect();
    if places.is_empty() { String::new() } else { format!(" (to create {})", places.join(", ")) }
}

fn network(params: &PlanApprovalParams) -> String {
    match (&params.rights.net, params.network_refused) {
        (net @ (Network::On | Network::Hosts(_)), _) => places(&net.to_string(), params.rights.reach),
        (Network::Off, false) => "off".to_owned(),
        (Network::Off, true) => "off: the plan asks for the network, which is off in this session".to_owned(),
    }
}

/// Returns the MCP servers that the plan uses, with their own access, which differs from that of the execution.
fn calls(params: &PlanApprovalParams) -> Vec<Vec<u8>> {
    params.servers.iter().flat_map(|server| server_lines(server, "all tools of ")).collect()
}

/// Returns the name of an MCP server with its tools, and then its access.
pub(super) fn server_lines(server: &NamedServer, all: &str) -> Vec<Vec<u8>> {
    let NamedServer { name, tools, access } = server;
    let heading = match tools.as_slice() {
        [] => format!("{all}the MCP server {name}, with this access:"),
        tools => format!("{} of the MCP server {name}, with this access:", tools.join(", ")),
    };
    let access = access.to_string();
    let rights = access.split(" · ").map(|right| format!("  {right}").into_bytes());
    std::iter::once(heading.into_bytes()).chain(rights).collect()
}

fn steps(params: &PlanApprovalParams) -> Vec<Vec<u8>> {
    let line = |(number, step): (u32, &PlanStep)| {
        let kept = if params.finished.contains(&number) { "finished before: " } else { "" };
        let counts = match (step.files.len(), step.acceptance.len()) {
            (0, 0) => String::new(),
            (files, 0) => format!("({}) ", counted(files, "file")),
            (0, conditions) => format!("({}) ", counted(conditions, "condition")),
            (files, conditions) => {
                format!("({}, {}) ", counted(files, "file"), counted(conditions, "condition"))
            }
        };
        format!("{number} {kept}{counts}{}", step.title).into_bytes()
    };
    (1..).zip(&params.plan.steps).map(line).collect()
}

fn counted(count: usize, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

const fn failure(on_failure: OnFailure) -> &'static str {
    match on_failure {
        OnFailure::Stop => "a failed step ends the execution",
        OnFailure::Retry => "a failed step is retried a few times",
        OnFailure::Replan => "after a failed step the planner revises the plan, for your approval",
    }
}

pub fn will_run(params: &PlanApprovalParams) -> &'static str {
    let asks = params.confirms_commands && params.plan.commands().next().is_some();
    if asks { "will run, asking before each" } else { "will run without asking" }
}

/// Returns every acceptance command in full below its step number. Titles are omitted: a title could imitate a fact.
pub(super) fn commands(params: &PlanApprovalParams) -> Vec<Part> {
    let heading = |text: &str| Part::new(SafeText::line(text), Look::Heading);
    let words = will_run(params);
    if params.plan.commands().next().is_none() {
        return vec![heading(&format!("{words}: no acceptance command"))];
    }
    let mut parts = vec![heading(&format!("{words}:"))];
    let mut last = 0;
    for (step, command) in params.plan.commands() {
        if step != last {
            parts.push(heading(&format!("step {step}")));
        }
        last = step;
        parts.push(Part::new(SafeText::exact(command), Look::Command));
    }
    parts
}
