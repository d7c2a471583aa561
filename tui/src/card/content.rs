use ipc::id::AgentId;
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Reach};
use ipc::tool::Access;
use protocol::approval::{
    AgentRightsApprovalParams, ApplyPatchApprovalParams, DeniedCommandApprovalParams,
    ExecCommandApprovalParams, ExternalToolApprovalParams, FetchApprovalParams, FileChange,
    HostApprovalParams, NetworkApprovalParams, ServerAccess, ServerRequest, TurnAccess,
};

use super::{FormDraft, denied, plan};
use crate::diff::{Diff, read_unified};
use crate::highlight::language_of;
use crate::model::{Block, Look, Part};
use crate::text::SafeText;

pub(crate) fn body(request: &ServerRequest, project: &WirePath) -> Block {
    let (mut parts, reason, facts) = match request {
        ServerRequest::ApplyPatchApproval(params) => (patch(params, project), &params.reason, Vec::new()),
        ServerRequest::ExecCommandApproval(params) => {
            (argv(&params.command), &params.reason, of_command(params, project))
        }
        ServerRequest::DeniedCommandApproval(params) => {
            (argv(&params.command), &params.reason, after_denial(params, project))
        }
        ServerRequest::NetworkApproval(params) => {
            (argv(&params.command), &params.reason, of_network(params, project))
        }
        ServerRequest::HostApproval(params) => (waiting(params), &params.reason, Vec::new()),
        ServerRequest::ServerForm(_) => (form(request), &None, Vec::new()),
        ServerRequest::FetchApproval(params) => (page(params), &params.reason, Vec::new()),
        ServerRequest::ExternalToolApproval(params) => (arguments(params), &params.reason, Vec::new()),
        ServerRequest::AgentRightsApproval(params) => (task(params), &params.reason, Vec::new()),
        ServerRequest::PlanApproval(params) => (plan::text(params), &params.reason, plan::commands(params)),
    };
    if let ServerRequest::DeniedCommandApproval(params) = request {
        parts.push(denied::tried(&params.denial, project));
    }
    if let Some(reason) = reason {
        parts.push(Part::new(SafeText::line("the agent's reason:"), Look::Heading));
        parts.push(Part::new(SafeText::exact(reason), Look::Claim));
    }
    parts.extend(allowed(request, project));
    parts.extend(facts);
    let agent = request.agent();
    if *agent != AgentId::root() {
        parts.push(fact("asks", &format!("agent {agent}")));
    }
    Block::of(parts)
}

/// Removes the reason that the agent gives for the request, and the heading above the reason.
pub(super) fn remove_reason(block: &mut Block) {
    if let Some(at) = block.parts.iter().position(|part| part.look() == Look::Claim) {
        block.parts.drain(at.saturating_sub(1)..=at);
    }
}

fn allowed(request: &ServerRequest, project: &WirePath) -> Vec<Part> {
    match request {
        ServerRequest::ApplyPatchApproval(params) => allows(&params.grant, project),
        ServerRequest::ExecCommandApproval(params) => allows(&params.grant, project),
        ServerRequest::DeniedCommandApproval(params) => denied::allowed(params, project),
        ServerRequest::NetworkApproval(params) => allows(&params.grant, project),
        ServerRequest::HostApproval(params) => until_the_end(params),
        // The block of the form has all of the request.
        ServerRequest::ServerForm(_) => Vec::new(),
        ServerRequest::FetchApproval(params) => page_allowed(params),
        ServerRequest::ExternalToolApproval(params) => server(params),
        ServerRequest::AgentRightsApproval(params) => agent_rights(params, project),
        ServerRequest::PlanApproval(params) => plan::facts(params, project),
    }
}

fn task(params: &AgentRightsApprovalParams) -> Vec<Part> {
    vec![Part::new(SafeText::exact(&params.task), Look::Command)]
}

/// Returns the lines about the access that a sub-agent would have, including access that its parent has too.
fn agent_rights(params: &AgentRightsApprovalParams, project: &WirePath) -> Vec<Part> {
    let AgentRightsApprovalParams { role, rights, grant, .. } = params;
    let beyond = |is_granted| if is_granted { &b", which the main agent cannot"[..] } else { b"" };
    let write = rights.write.iter().map(|path| {
        let place = if path == project { b"in this project" } else { in_project(path, project) };
        [b"write ", place, beyond(grant.write.contains(path))].concat()
    });
    let network = if rights.net.is_off() {
        b"off".to_vec()
    } else {
        let reach = places(&rights.net.to_string(), rights.reach);
        [reach.as_bytes(), beyond(grant.net.reaches_out())].concat()
    };
    let mut lines: Vec<_> = write.collect();
    let sockets = rights.sockets.iter().map(|path| [b"reach ", path.as_bytes()].concat());
    if lines.is_empty() {
        lines.push(b"write only a private temp directory".to_vec());
    }
    lines.extend(sockets);
    let names = std::iter::once("may").chain(std::iter::repeat(""));
    let mut parts: Vec<_> = role.iter().map(|role| fact("role", role)).collect();
    parts.extend(names.zip(lines).map(|(name, line)| named(name, &line)));
    parts.push(named("network", &network));
    let servers = params.servers.iter().flat_map(|server| plan::server_lines(server, ""));
    let denied = (!params.servers.is_empty()).then(|| b"calls that need more access are denied".to_vec());
    let names = std::iter::once("has").chain(std::iter::repeat(""));
    parts.extend(names.zip(servers.chain(denied)).map(|(name, line)| named(name, &line)));
    parts.push(fact("lasts", "as long as the sub-agent runs"));
    parts
}

fn arguments(params: &ExternalToolApprovalParams) -> Vec<Part> {
    vec![
        Part::new(SafeText::exact(&params.json), Look::Command),
        fact("tool", &params.tool),
        fact("server", &params.server),
    ]
}

/// Returns the running command that tries to connect, and the program and the host of the connection.
fn waiting(params: &HostApprovalParams) -> Vec<Part> {
    let HostApprovalParams { command, program, host, .. } = params;
    let by = if program.is_empty() { String::new() } else { format!(" by {program}") };
    let tried = format!("connect to {}:{}{by}, which is not on the list of hosts", host.name(), host.port());
    vec![Part::new(SafeText::exact(command), Look::Command), fact("tries to", &tried)]
}

fn until_the_end(params: &HostApprovalParams) -> Vec<Part> {
    let HostApprovalParams { host, .. } = params;
    vec![
        fact("allows", &format!("reach {}:{}, until this command ends", host.name(), host.port())),
        fact("waits", "the command is running, and this connection waits for your answer"),
    ]
}

/// Returns the lines about the access of the called MCP server, which does not depend on the agent's access.
fn server(params: &ExternalToolApprovalParams) -> Vec<Part> {
    let mut parts = server_access(params.access.as_ref());
    let allows = match &params.access {
        Some(_) => "this call, once; the arguments go to that server",
        None => "this call, once; the server runs outside the sandbox",
    };
    parts.push(fact("allows", allows));
    parts
}

/// Returns the access of an MCP server, one part per line; empty if the server runs outside the sandbox.
pub(super) fn server_access(access: Option<&ServerAccess>) -> Vec<Part> {
    let Some(access) = access else { return Vec::new() };
    let lines = access.to_string();
    let names = std::iter::once("access").chain(std::iter::repeat(""));
    names.zip(lines.split(" · ")).map(|(name, line)| fact(name, line)).collect()
}

/// Returns the form with its default values; empty if the request is not about a form.
fn form(request: &ServerRequest) -> Vec<Part> {
    let ServerRequest::ServerForm(params) = request else { return Vec::new() };
    FormDraft::of(request).map(|form| form.block(params, false).0.parts).unwrap_or_default()
}

fn page(params: &FetchApprovalParams) -> Vec<Part> {
    vec![Part::new(SafeText::exact(&params.url), Look::Command), fact("host", &params.host)]
}

fn page_allowed(params: &FetchApprovalParams) -> Vec<Part> {
    let reached = reached(&params.grant).unwrap_or_else(|| "no additional access".to_owned());
    let once = if params.grant.is_empty() { "" } else { ", once" };
    vec![fact("allows", &format!("{reached}{once}")), fact("sends", "the whole URL to the host")]
}

/// Returns the page about allowing the whole turn: the access that the turn gets, and the time at which it ends.
pub(crate) fn whole_turn(access: &TurnAccess, project: &WirePath) -> Block {
    let TurnAccess { write, network_after, confirms_commands, .. } = access;
    let mut parts = vec![Part::new(
        SafeText::line("yes to everything in this turn that needs no more than this:"),
        Look::Heading,
    )];
    let (own, further): (Vec<_>, Vec<_>) = write.iter().partition(|path| *path == project);
    let places = own.into_iter().chain(further).map(|path| {
        let place = if path == project { b"in this project" } else { in_project(path, project) };
        [b"write ", place].concat()
    });
    let commands: &[u8] = if *confirms_commands {
        b"run commands that only read; your settings make other commands ask"
    } else {
        b"run commands with that access"
    };
    let lines = places.chain([commands.to_vec()]);
    let names = std::iter::once("allows").chain(std::iter::repeat(""));
    parts.extend(names.zip(lines).map(|(name, line)| named(name, &line)));
    parts.push(fact(
        "network",
        &match network_after {
            Network::Off => "off".to_owned(),
            Network::On => "off until the turn ends, then on again".to_owned(),
            Network::Hosts(hosts) => format!("off until the turn ends, then {hosts} again"),
        },
    ));
    parts.push(fact("asks", "before all else: the network, other paths, files your programs run"));
    parts.push(fact("lasts", "until the turn ends in any way; :mode ask ends this access earlier"));
    parts.push(fact("then", "you see all changes, and keep or undo them"));
    Block::of(parts)
}

pub(crate) fn fact(name: &str, value: &str) -> Part {
    named(name, value.as_bytes())
}

/// Returns a line with a label and a value. Every byte of the value is visible.
pub(super) fn named(name: &str, value: &[u8]) -> Part {
    Part::new(labelled(name, value), Look::Fact)
}

pub(super) fn labelled(name: &str, value: &[u8]) -> SafeText {
    SafeText::labelled(&format!("{name:<10}"), value)
}

/// Returns a path relative to the project; the absolute path if it is outside the project.
pub(crate) fn in_project<'a>(path: &'a WirePath, project: &WirePath) -> &'a [u8] {
    let (path, project) = (path.as_bytes(), project.as_bytes());
    let inside = path.strip_prefix(project).and_then(|rest| rest.strip_prefix(b"/"));
    inside.filter(|rest| !rest.is_empty()).unwrap_or(path)
}

pub(super) fn allows(grant: &Grant, project: &WirePath) -> Vec<Part> {
    let write = grant.write.iter().map(|path| {
        if path == project {
            return b"write in this project".to_vec();
        }
        [b"write ", in_project(path, project)].concat()
    });
    let network = reached(grant).map(String::into_bytes);
    let sockets = grant.sockets.iter().map(|path| [b"reach ", path.as_bytes()].concat());
    let mut lines: Vec<_> =
        write.chain(network).chain(sockets).map(|access| [&access[..], b", once"].concat()).collect();
    if lines.is_empty() {
        lines.push(b"no additional access".to_vec());
    }
    let names = std::iter::once("allows").chain(std::iter::repeat(""));
    names.zip(lines).map(|(name, line)| named(name, &line)).collect()
}

pub(super) fn reached(grant: &Grant) -> Option<String> {
    let words = match &grant.net {
        Network::Off => return None,
        Network::On => "reach the network".to_owned(),
        Network::Hosts(hosts) => format!("reach {hosts}"),
    };
    Some(places(&words, grant.reach))
}

/// Appends the names of special networks that may be reached, such as `private networks`, to `words`.
pub(super) fn places(words: &str, reach: Reach) -> String {
    let Reach { host, lan, link_local, metadata } = reach;
    let besides = [
        (host, "this machine"),
        (lan, "private networks"),
        (link_local, "link-local addresses"),
        (metadata, "metadata services"),
    ];
    let besides = besides.iter().filter(|(within, _)| *within);
    besides.fold(words.to_owned(), |words, (_, place)| words + " and " + place)
}

fn patch(params: &ApplyPatchApprovalParams, project: &WirePath) -> Vec<Part> {
    let changes = &params.file_changes.0;
    let parts = changes.iter().flat_map(|(path, change)| {
        let named = changes.len() == 1 && params.grant.write.contains(path);
        file(path, change, project, named)
    });
    parts.collect()
}

fn file(path: &WirePath, change: &FileChange, project: &WirePath, is_named: bool) -> Vec<Part> {
    let heading = |words, path: &WirePath| {
        Part::new(SafeText::labelled(words, in_project(path, project)), Look::Heading)
    };
    let (words, diff, to) = match change {
        FileChange::Add { content } => ("create ", Diff::added(content), None),
        FileChange::Delete { content } => ("delete ", Diff::removed(content), None),
        FileChange::Update { unified_diff, move_path } => {
            ("edit ", read_unified(unified_diff), move_path.as_ref())
        }
    };
    let mut parts = Vec::new();
    if !is_named || to.is_some() {
        parts.push(heading(words, path));
    }
    parts.extend(to.map(|to| heading("and move it to ", to)));
    parts.push(Part::diff(diff.in_language(&language_of(path.as_bytes()))));
    parts
}

fn of_command(params: &ExecCommandApprovalParams, project: &WirePath) -> Vec<Part> {
    let ExecCommandApprovalParams { command, cwd, environment, access, network, grant, .. } = params;
    let mut parts = surroundings(command, cwd, environment, *access, project);
    let network = network.as_ref().filter(|_| grant.net.is_off());
    parts.extend(network.map(|net| fact("network", &net.to_string())));
    parts
}

fn after_denial(params: &DeniedCommandApprovalParams, project: &WirePath) -> Vec<Part> {
    surroundings(&params.command, &params.cwd, &params.environment, params.access, project)
}

fn of_network(params: &NetworkApprovalParams, project: &WirePath) -> Vec<Part> {
    surroundings(&params.command, &params.cwd, &params.environment, params.access, project)
}

fn surroundings(
    command: &[String],
    cwd: &WirePath,
    environment: &[(String, WirePath)],
    access: Access,
    project: &WirePath,
) -> Vec<Part> {
    let by = if bash(command).is_some() { "by bash -c, " } else { "" };
    let mut parts = vec![if cwd == project {
        fact("runs", &format!("{by}in this project"))
    } else {
        named("runs", &[by.as_bytes(), b"in ", cwd.as_bytes()].concat())
    }];
    parts.extend(environment.iter().map(|(name, value)| {
        let set = [name.as_bytes(), b"=", value.as_bytes()].concat();
        named("with", &set)
    }));
    if access == Access::Read {
        parts.push(fact("writes", "nothing"));
    }
    parts
}

pub(crate) fn bash(command: &[String]) -> Option<&str> {
    match command {
        [shell, flag, text] if shell == "bash" && flag == "-c" => Some(text),
        _ => None,
    }
}

fn argv(command: &[String]) -> Vec<Part> {
    let whole = |text: &str| Part::new(SafeText::exact(text), Look::Command);
    if let Some(text) = bash(command) {
        return vec![whole(text)];
    }
    let heading = |n| Part::new(SafeText::line(&format!("argument {n}")), Look::Heading);
    command.iter().enumerate().flat_map(|(n, text)| [heading(n), whole(text)]).collect()
}
