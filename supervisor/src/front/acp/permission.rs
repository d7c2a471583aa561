//! Approvals as `session/request_permission`: their display, and the meaning of the answers.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    Diff, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, ToolCallContent,
    ToolCallLocation, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use ipc::path::WirePath;
use ipc::tool::Access;
use protocol::approval::{
    ApplyPatchApprovalParams, FileChange, PlanApprovalParams, ServerFormParams, ServerRequest, default_of,
    defaults, field_bounds, value_in_words,
};
use protocol::rpc::ResponseOutcome;

use super::choices::{self, Chosen};
use super::shown;
use super::updates::call_id;

/// Returns the permission request for an approval, which shows the whole effect.
pub(super) fn question(request: &ServerRequest) -> RequestPermissionRequest {
    let id = call_id(request.agent(), request.call_id());
    let locations = matches!(request, ServerRequest::ApplyPatchApproval(_)).then(|| locations(request));
    let fields = ToolCallUpdateFields::new()
        .title(shown::title(&title(request)))
        .kind(kind(request))
        .content(content(request))
        .locations(locations);
    let options = choices::of(request).iter().map(|choice| choice.option(request.digest())).collect();
    let session = request.conversation_id().as_str().to_owned();
    RequestPermissionRequest::new(session, ToolCallUpdate::new(id, fields), options)
}

/// Returns the option that the person chose. The error is the reason why the answer counts as a denial.
pub(super) fn answer(request: &ServerRequest, outcome: &ResponseOutcome) -> Result<Chosen, String> {
    let result = match outcome {
        ResponseOutcome::Result(result) => result.get(),
        ResponseOutcome::Error(error) => {
            let start: String = error.get().chars().take(200).collect();
            return Err(format!("the client answered with an error: {start}"));
        }
    };
    if !result.starts_with('{') {
        return Err("the client's answer is not an object".to_owned());
    }
    let response: RequestPermissionResponse = serde_json::from_str(result)
        .map_err(|error| format!("the client's answer cannot be understood: {error}"))?;
    let selected = match response.outcome {
        RequestPermissionOutcome::Selected(selected) => selected.option_id,
        RequestPermissionOutcome::Cancelled => return Err("the client cancelled the question".to_owned()),
        _ => return Err("the client's answer has an unknown outcome".to_owned()),
    };
    let offered = choices::of(request);
    let chosen = offered.into_iter().find(|choice| *choice.id(request.digest()) == *selected.0);
    chosen.map(|choice| choice.chosen).ok_or_else(|| {
        let named: String = selected.0.chars().take(100).collect();
        format!("the client named an option that was not offered: {named:?}")
    })
}

/// True if the permission request shows every character of the effect.
pub(super) fn is_whole(request: &ServerRequest) -> bool {
    match request {
        ServerRequest::ApplyPatchApproval(params) => params.file_changes.0.iter().all(|(path, change)| {
            path.as_path().to_str().is_some_and(shown::is_visible)
                && texts(change).iter().all(|text| shown::is_visible(text))
        }),
        ServerRequest::ExternalToolApproval(params) => shown::is_visible(&params.json),
        ServerRequest::HostApproval(params) => shown::is_visible(&params.command),
        ServerRequest::ServerForm(params) => shown::is_visible(&params.message),
        ServerRequest::AgentRightsApproval(params) => shown::is_visible(&params.task),
        ServerRequest::PlanApproval(params) => shown::is_visible(&params.markdown),
        ServerRequest::FetchApproval(_) => true,
        ServerRequest::ExecCommandApproval(_)
        | ServerRequest::DeniedCommandApproval(_)
        | ServerRequest::NetworkApproval(_) => {
            request.command().is_some_and(|words| words.iter().all(|word| shown::is_visible(word)))
        }
    }
}

fn texts(change: &FileChange) -> [&str; 1] {
    match change {
        FileChange::Add { content } | FileChange::Delete { content } => [content],
        FileChange::Update { unified_diff, .. } => [unified_diff],
    }
}

fn kind(request: &ServerRequest) -> ToolKind {
    match request {
        ServerRequest::ApplyPatchApproval(_) => ToolKind::Edit,
        ServerRequest::FetchApproval(_) => ToolKind::Fetch,
        ServerRequest::ExternalToolApproval(_) | ServerRequest::ServerForm(_) => ToolKind::Other,
        ServerRequest::AgentRightsApproval(_) => ToolKind::Think,
        // Clients draw a permission of this kind as the end of planning.
        ServerRequest::PlanApproval(_) => ToolKind::SwitchMode,
        ServerRequest::ExecCommandApproval(_)
        | ServerRequest::DeniedCommandApproval(_)
        | ServerRequest::NetworkApproval(_)
        | ServerRequest::HostApproval(_) => ToolKind::Execute,
    }
}

fn title(request: &ServerRequest) -> String {
    match request {
        ServerRequest::ApplyPatchApproval(params) => {
            let paths: Vec<_> = params.file_changes.0.keys().map(ToString::to_string).collect();
            format!("Change {}", paths.join(", "))
        }
        ServerRequest::ExternalToolApproval(params) => format!("Call {} of {}", params.tool, params.server),
        ServerRequest::FetchApproval(params) => format!("Fetch {}", params.url),
        ServerRequest::HostApproval(params) => format!("Connect to {}", params.host),
        ServerRequest::ServerForm(params) => format!("Answer the MCP server {}", params.server),
        ServerRequest::AgentRightsApproval(_) => "Start a sub-agent".to_owned(),
        ServerRequest::PlanApproval(params) => format!("Execute the plan: {}", params.plan.title),
        ServerRequest::DeniedCommandApproval(_) => format!("Run again: {}", command_line(request)),
        ServerRequest::ExecCommandApproval(_) | ServerRequest::NetworkApproval(_) => {
            format!("Run {}", command_line(request))
        }
    }
}

fn command_line(request: &ServerRequest) -> String {
    match request.command().unwrap_or_default() {
        [shell, flag, text] if shell == "bash" && flag == "-c" => text.clone(),
        words => words.iter().map(protocol::shell_word::shell_word).collect::<Vec<_>>().join(" "),
    }
}

fn content(request: &ServerRequest) -> Vec<ToolCallContent> {
    let mut content = match request {
        ServerRequest::ApplyPatchApproval(params) => changes(params),
        request => vec![text(facts(request))],
    };
    if let Some(reason) = request.reason() {
        content.push(text(format!("The agent's reason: {}", shown::line(reason))));
    }
    content
}

fn text(text: String) -> ToolCallContent {
    ToolCallContent::from(text)
}

/// Describes the effect of a request that changes no files.
fn facts(request: &ServerRequest) -> String {
    let grant = request
        .grant()
        .map(|grant| format!("additional access for this action: {}", shown::line(&grant.to_string())));
    let mut lines = match request {
        ServerRequest::ExecCommandApproval(params) => {
            let mut lines = command(request, &params.cwd, &params.environment);
            lines.push(format!("access: {}", access_word(params.access)));
            let network = params.network.as_ref().map_or_else(|| "off".to_owned(), ToString::to_string);
            lines.push(format!("requested network access: {network}"));
            lines
        }
        ServerRequest::NetworkApproval(params) => {
            let mut lines = command(request, &params.cwd, &params.environment);
            lines.push(format!("access: {}", access_word(params.access)));
            lines.push("requested network access: on".to_owned());
            lines
        }
        ServerRequest::DeniedCommandApproval(params) => {
            let mut lines = command(request, &params.cwd, &params.environment);
            lines.push(format!("access: {}", access_word(params.access)));
            lines.push(format!("what was denied before: {}", shown::line(&params.denial.to_string())));
            lines.push("the whole command runs again; the changes of its first run stay".to_owned());
            lines
        }
        ServerRequest::HostApproval(params) => vec![
            shown::block(&params.command, "sh"),
            format!("host: {}", params.host),
            format!("program, by the name that it gives itself: {}", shown::line(&params.program)),
        ],
        ServerRequest::ExternalToolApproval(params) => {
            let access = params.access.as_ref().map_or_else(
                || "the MCP server runs outside of any sandbox".to_owned(),
                |access| format!("the MCP server runs in its own sandbox: {access}"),
            );
            let server =
                format!("server {}, tool {}", shown::line(&params.server), shown::line(&params.tool));
            vec![shown::block(&params.json, "json"), server, shown::line(&access)]
        }
        ServerRequest::ServerForm(params) => form(params),
        ServerRequest::FetchApproval(params) => {
            vec![
                shown::block(&params.url, ""),
                format!("the whole address is sent to {}", shown::line(&params.host)),
            ]
        }
        ServerRequest::AgentRightsApproval(params) => {
            let write: Vec<_> = params.write.iter().map(ToString::to_string).collect();
            let write = if write.is_empty() { "nothing".to_owned() } else { write.join(", ") };
            let role = params.role.as_ref().map(|role| format!("role: {}", shown::line(role)));
            let asked = format!("the sub-agent can write: {}", shown::line(&write));
            let mut lines =
                vec![shown::block(&params.task, ""), asked, format!("network: {}", params.network)];
            lines.extend(role);
            lines
        }
        ServerRequest::PlanApproval(params) => plan(params),
        ServerRequest::ApplyPatchApproval(_) => Vec::new(),
    };
    lines.extend(grant);
    lines.join("\n\n")
}

/// Describes a form of an MCP server, and the values that each option sends.
fn form(params: &ServerFormParams) -> Vec<String> {
    let asked = format!("the MCP server asks while it runs the tool {}:", shown::line(&params.tool));
    let mut lines = vec![asked, shown::block(&params.message, "")];
    let chosen = choices::asked_field(&params.fields);
    for field in &params.fields {
        let value = match chosen {
            Some(chosen) if chosen.name == field.name => "your answer".to_owned(),
            _ => value_in_words(field, default_of(field).as_ref()),
        };
        let name = format!("{} ({}), {}: {value}", field.label(), field.name, field_bounds(field));
        lines.push(shown::line(&name));
        if !field.about.is_empty() {
            lines.push(shown::block(&field.about, ""));
        }
    }
    lines.extend(
        params
            .access
            .as_ref()
            .map(|access| shown::line(&format!("the MCP server runs in its own sandbox: {access}"))),
    );
    let why = defaults(&params.fields).err().filter(|_| chosen.is_none());
    lines.extend(why.map(|why| {
        let sentence =
            "An editor cannot fill in this form: decline the form here, or use the terminal UI instead";
        shown::line(&format!("{sentence} ({why})."))
    }));
    lines
}

const fn access_word(access: Access) -> &'static str {
    match access {
        Access::Standing => "the same as the agent has",
        Access::Read => "read",
        Access::Write => "write",
    }
}

fn command(request: &ServerRequest, cwd: &WirePath, environment: &[(String, WirePath)]) -> Vec<String> {
    let mut lines = vec![
        shown::block(&command_line(request), "sh"),
        format!("directory: {}", shown::line(&cwd.to_string())),
    ];
    lines.extend(environment.iter().map(|(name, value)| shown::line(&format!("variable {name}={value}"))));
    lines
}

fn plan(params: &PlanApprovalParams) -> Vec<String> {
    let paths = |paths: &[WirePath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut lines = vec![shown::block(&params.markdown, "markdown")];
    lines.push(format!("file: {}", shown::line(&params.path.to_string())));
    lines.push(format!("the plan's execution can write: {}", shown::line(&paths(&params.rights.write))));
    lines.push(format!("network: {}", params.rights.net));
    if params.network_refused {
        lines.push("the plan needs the network, which is off in this session".to_owned());
    }
    let commands: Vec<_> = params.plan.commands().map(|(step, text)| format!("{step}. {text}")).collect();
    if !commands.is_empty() {
        let asked = if params.confirms_commands {
            "only when you approve each of them"
        } else {
            "without another approval"
        };
        lines.push(format!("these commands run {asked}:\n{}", shown::block(&commands.join("\n"), "sh")));
    }
    lines.extend(params.to_create.iter().map(|place| {
        shown::line(&format!("to create {}, the plan's execution can write {}", place.path, place.directory))
    }));
    if !params.finished.is_empty() {
        let finished: Vec<_> = params.finished.iter().map(ToString::to_string).collect();
        lines.push(format!("finished before: steps {}", finished.join(", ")));
    }
    lines
}

/// Shows changes of files as diffs. A change with invisible characters is also shown as text that escapes them.
fn changes(params: &ApplyPatchApprovalParams) -> Vec<ToolCallContent> {
    let mut content = Vec::new();
    for (path, change) in &params.file_changes.0 {
        let words = match change {
            FileChange::Add { .. } => "creates",
            FileChange::Delete { .. } => "deletes",
            FileChange::Update { move_path: Some(_), .. } => "changes and moves",
            FileChange::Update { .. } => "changes",
        };
        let target = match change {
            FileChange::Update { move_path: Some(to), .. } => format!(" to {to}"),
            _ => String::new(),
        };
        content.push(text(shown::line(&format!("{words} {path}{target}"))));
        let name = path.as_path().to_str();
        if let Some(name) = name {
            content.extend(diffs(name, change).into_iter().map(ToolCallContent::from));
        }
        if name.is_none_or(|name| !shown::is_visible(name))
            || !texts(change).iter().all(|text| shown::is_visible(text))
        {
            let warning = "The name or the change has invisible characters. With these characters escaped:";
            content.push(text(format!("{warning}\n\n{}", shown::block(texts(change)[0], "diff"))));
        }
    }
    if !params.grant.is_empty() {
        content.push(text(format!(
            "additional access for this action: {}",
            shown::line(&params.grant.to_string())
        )));
    }
    if !params.with.is_empty() {
        content.push(text(format!("your answer applies to the changes of {} calls", params.with.len() + 1)));
    }
    content
}

fn diffs(path: &str, change: &FileChange) -> Vec<Diff> {
    match change {
        FileChange::Add { content } => vec![Diff::new(path, content.clone())],
        FileChange::Delete { content } => vec![Diff::new(path, String::new()).old_text(content.clone())],
        FileChange::Update { unified_diff, .. } => hunks(unified_diff)
            .into_iter()
            .map(|Hunk { old, new, .. }| Diff::new(path, new).old_text(old))
            .collect(),
    }
}

fn locations(request: &ServerRequest) -> Vec<ToolCallLocation> {
    let ServerRequest::ApplyPatchApproval(params) = request else { return Vec::new() };
    let places = params.file_changes.0.iter().filter_map(|(path, change)| {
        let name = PathBuf::from(path.as_path().to_str()?);
        let line = match change {
            FileChange::Update { unified_diff, .. } => hunks(unified_diff).first().map(|hunk| hunk.line),
            _ => None,
        };
        Some(ToolCallLocation::new(name).line(line))
    });
    places.collect()
}

/// One hunk of a unified diff: the old text, the new text, and the line at which the new text begins.
struct Hunk {
    line: u32,
    old: String,
    new: String,
}

fn hunks(diff: &str) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    let mut last = ' ';
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@ ") {
            let new = line.split(' ').find_map(|word| word.strip_prefix('+')).unwrap_or_default();
            let line = new.split(',').next().and_then(|number| number.parse().ok()).unwrap_or(1);
            hunks.push(Hunk { line, old: String::new(), new: String::new() });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let Some(mark) = line.chars().next() else { continue };
        let text = line.get(1..).unwrap_or_default();
        match mark {
            ' ' | '\n' => {
                let text = if mark == '\n' { line } else { text };
                hunk.old.push_str(text);
                hunk.new.push_str(text);
            }
            '-' => hunk.old.push_str(text),
            '+' => hunk.new.push_str(text),
            // "\ No newline at end of file" is about the line above it.
            '\\' => {
                let sides = [(last != '+').then_some(&mut hunk.old), (last != '-').then_some(&mut hunk.new)];
                for side in sides.into_iter().flatten() {
                    side.truncate(side.strip_suffix('\n').map_or(side.len(), str::len));
                }
            }
            _ => {}
        }
        last = mark;
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hunk_has_both_texts() {
        let diff = "@@ -3,3 +3,2 @@\n a\n-b\n-c\n\\ No newline at end of file\n+d\n@@ -9 +8,2 @@\n x\n+y\n";
        let found = hunks(diff);
        let texts: Vec<_> =
            found.iter().map(|hunk| (hunk.line, hunk.old.as_str(), hunk.new.as_str())).collect();
        assert_eq!(texts, [(3, "a\nb\nc", "a\nd\n"), (8, "x\n", "x\ny\n")]);
    }
}
