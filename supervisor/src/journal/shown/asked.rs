//! The content of an approval request, in the form of the approval card.

use ipc::path::WirePath;
use ipc::rights::{Grant, Rights};
use protocol::approval::{FileChange, FileChanges, PlanApprovalParams, ServerRequest};

use tui::plan_request::{ACCOUNT, account, will_run};
use tui::text::SafeText;

use super::entry::ShownPart;

/// Returns the shown parts of an approval request: the action, the additional access, and the agent's reason.
pub(super) fn asked(request: &ServerRequest, project: Option<&WirePath>, full: bool) -> Vec<ShownPart> {
    let mut parts = subject(request, project, full);
    if let Some(grant) = request.grant().filter(|grant| !grant.is_empty()) {
        parts.push(ShownPart::whole(grant.to_string()).named("additional access"));
    }
    if let Some(reason) = request.reason() {
        parts.push(ShownPart::cut(reason, full).named("the agent's reason"));
    }
    parts
}

fn subject(request: &ServerRequest, project: Option<&WirePath>, full: bool) -> Vec<ShownPart> {
    match request {
        ServerRequest::ApplyPatchApproval(params) => changes(&params.file_changes, full),
        ServerRequest::ExecCommandApproval(_) | ServerRequest::NetworkApproval(_) => {
            request.command().map(|words| command(words, full)).into_iter().collect()
        }
        ServerRequest::DeniedCommandApproval(params) => {
            vec![
                command(&params.command, full),
                ShownPart::cut(&params.denial.to_string(), full).named("denial"),
            ]
        }
        ServerRequest::HostApproval(params) => {
            vec![
                ShownPart::cut(&params.command, full),
                ShownPart::whole(format!("{} connects to {}", params.program, params.host)).named("host"),
            ]
        }
        ServerRequest::ServerForm(params) => {
            let fields = params.fields.iter().map(|field| {
                let must = if field.required { "" } else { " (can stay empty)" };
                ShownPart::cut(&format!("{}{must}", field.label()), full)
                    .named(format!("field {}", field.name))
            });
            let asked =
                format!("the MCP server {} asks while it runs the tool {}", params.server, params.tool);
            std::iter::once(ShownPart::cut(&params.message, full).named(asked)).chain(fields).collect()
        }
        ServerRequest::FetchApproval(params) => vec![ShownPart::cut(&params.url, full).named("page")],
        ServerRequest::ExternalToolApproval(params) => {
            vec![ShownPart::cut(&params.json, full).named(format!("{} of {}", params.tool, params.server))]
        }
        ServerRequest::AgentRightsApproval(params) => {
            let servers = params.servers.iter();
            let servers = servers.map(|server| ShownPart::whole(server.to_string()).named("MCP server"));
            [
                ShownPart::cut(&params.task, full).named("task"),
                ShownPart::whole(all(&params.rights)).named("access of the sub-agent"),
            ]
            .into_iter()
            .chain(servers)
            .collect()
        }
        ServerRequest::PlanApproval(params) => {
            let plan = ShownPart::cut(&params.markdown, full).named(params.path.to_string());
            std::iter::once(plan).chain(execution(params, project)).collect()
        }
    }
}

/// Returns all access and all commands of a plan's execution. All are shown, since the execution asks for no approval.
fn execution(params: &PlanApprovalParams, project: Option<&WirePath>) -> Vec<ShownPart> {
    let lines = account(params, project);
    let lines: Vec<_> = lines.iter().map(SafeText::as_str).collect();
    let mut parts = vec![ShownPart::whole(lines.join("\n")).named(ACCOUNT)];
    let words = will_run(params);
    let command = |(step, command): (usize, &str)| {
        ShownPart::whole(command).named(format!("{words}: the command of step {step}"))
    };
    parts.extend(params.plan.commands().map(command));
    if parts.len() == 1 {
        parts.push(ShownPart::whole("no acceptance command").named(words));
    }
    parts
}

/// Returns the words of a command. A word with characters that a shell would interpret is quoted.
fn command(words: &[String], full: bool) -> ShownPart {
    let is_plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c))
    };
    let word = |word: &String| if is_plain(word) { word.clone() } else { format!("'{word}'") };
    ShownPart::cut(&words.iter().map(word).collect::<Vec<_>>().join(" "), full)
}

fn changes(changes: &FileChanges, full: bool) -> Vec<ShownPart> {
    let part = |(path, change): (_, &FileChange)| {
        let (what, text) = match change {
            FileChange::Add { content } => ("new", content),
            FileChange::Delete { content } => ("removed", content),
            FileChange::Update { unified_diff, .. } => ("changed", unified_diff),
        };
        ShownPart::cut(text, full).named(format!("{what}: {path}"))
    };
    changes.0.iter().map(part).collect()
}

/// Returns all access in words, except for the private temporary directory.
fn all(rights: &Rights) -> String {
    let Rights { write, net, reach, sockets, .. } = rights.clone();
    let all = Grant { write, net, reach, sockets };
    if all.is_empty() { "read-only · net off".to_owned() } else { all.to_string() }
}
