//! What a request says, every byte of it.

use ipc::approval::{
    ApplyPatchApprovalParams, ExecCommandApprovalParams, FileChange, NetworkApprovalParams, ServerRequest,
};
use ipc::id::{AgentId, CallId};
use ipc::path::WirePath;
use ipc::rights::Grant;
use ipc::tool::Access;

use crate::model::{Block, Look, Part};
use crate::text::SafeText;

/// What a request asks for, in a word or two.
pub(crate) const fn title(request: &ServerRequest) -> &'static str {
    match request {
        ServerRequest::ApplyPatchApproval(_) => "approve this change of files?",
        ServerRequest::ExecCommandApproval(_) => "approve this command?",
        ServerRequest::NetworkApproval(_) => "approve the network for this command?",
    }
}

/// Everything that a request says: which right, who, where, what, and last what the agent claims.
pub(crate) fn body(request: &ServerRequest) -> Block {
    let (mut parts, reason) = match request {
        ServerRequest::ApplyPatchApproval(params) => (patch(params), &params.reason),
        ServerRequest::ExecCommandApproval(params) => (command(params), &params.reason),
        ServerRequest::NetworkApproval(params) => (network(params), &params.reason),
    };
    if let Some(reason) = reason {
        parts.push(Part::new(SafeText::line("the agent says why (a claim):"), Look::Heading));
        parts.push(Part::new(SafeText::exact(reason), Look::Claim));
    }
    Block::of(parts)
}

/// A fact of a request, with its name before it.
pub(crate) fn fact(name: &str, value: &str) -> Part {
    Part::new(SafeText::labelled(&format!("{name:<10}"), value.as_bytes()), Look::Fact)
}

fn place(words: &str, path: &WirePath) -> Part {
    Part::new(SafeText::labelled(words, path.as_bytes()), Look::Fact)
}

fn facts(grant: &Grant, rights: &str, agent: &AgentId, call: CallId) -> Vec<Part> {
    let mut parts = Vec::new();
    // Each path is a line of its own, with every byte: the grant's own line is for people, and lossy.
    parts.extend(grant.write.iter().map(|path| place("needs     write ", path)));
    if grant.net == ipc::rights::Network::On {
        parts.push(fact("needs", &format!("net on{}", grant.reach)));
    }
    if grant.is_empty() {
        parts.push(fact("needs", "an answer: the rights suffice"));
    }
    parts.push(fact("standing", rights));
    parts.push(fact("asks", &format!("agent {agent}, call {call}")));
    parts
}

fn patch(params: &ApplyPatchApprovalParams) -> Vec<Part> {
    let mut parts = facts(&params.grant, &params.rights, &params.agent, params.call_id);
    for (path, change) in &params.file_changes.0 {
        parts.extend(file(path, change));
    }
    parts
}

fn file(path: &WirePath, change: &FileChange) -> Vec<Part> {
    let heading =
        |words, path: &WirePath| Part::new(SafeText::labelled(words, path.as_bytes()), Look::Heading);
    match change {
        FileChange::Add { content } => {
            vec![heading("new file ", path), Part::new(SafeText::exact(&signed('+', content)), Look::Diff)]
        }
        FileChange::Delete { content } => {
            vec![heading("delete ", path), Part::new(SafeText::exact(&signed('-', content)), Look::Diff)]
        }
        FileChange::Update { unified_diff, move_path } => {
            let mut parts = vec![heading("change ", path)];
            parts.extend(move_path.as_ref().map(|to| heading("  and move it to ", to)));
            parts.push(Part::new(SafeText::exact(unified_diff), Look::Diff));
            parts
        }
    }
}

/// Each line with its sign, as in a diff.
pub(crate) fn signed(sign: char, content: &str) -> String {
    let mut text: String =
        content.split_inclusive('\n').flat_map(|line| [sign.to_string(), line.to_owned()]).collect();
    if content.is_empty() {
        text.push_str("(empty)\n");
    } else if !content.ends_with('\n') {
        text.push_str("\n\\ no line end at the end of the file\n");
    }
    text
}

fn command(params: &ExecCommandApprovalParams) -> Vec<Part> {
    let mut parts = facts(&params.grant, &params.rights, &params.agent, params.call_id);
    parts.extend(surroundings(&params.cwd, &params.environment, params.access));
    if let Some(network) = params.network {
        let on = network == ipc::rights::Network::On;
        parts.push(fact("declares", if on { "the network" } else { "no network" }));
    }
    parts.extend(argv(&params.command));
    parts
}

fn network(params: &NetworkApprovalParams) -> Vec<Part> {
    let mut parts = facts(&params.grant, &params.rights, &params.agent, params.call_id);
    parts.extend(surroundings(&params.cwd, &params.environment, params.access));
    parts.extend(argv(&params.command));
    parts
}

fn surroundings(cwd: &WirePath, environment: &[(String, WirePath)], access: Access) -> Vec<Part> {
    let mut parts = vec![place("in        ", cwd)];
    parts.extend(environment.iter().map(|(name, value)| {
        let set = [name.as_bytes(), b"=", value.as_bytes()].concat();
        Part::new(SafeText::labelled("with      ", &set), Look::Fact)
    }));
    parts.push(fact(
        "access",
        match access {
            Access::Standing => "standing",
            Access::Read => "read",
            Access::Write => "write",
        },
    ));
    parts
}

/// What runs, argument by argument; of `bash -c` the text is enough.
fn argv(command: &[String]) -> Vec<Part> {
    let whole = |text: &str| Part::new(SafeText::exact(text), Look::Command);
    match command {
        [shell, flag, text] if shell == "bash" && flag == "-c" => {
            vec![Part::new(SafeText::line("bash -c"), Look::Heading), whole(text)]
        }
        _ => {
            let heading = |n| Part::new(SafeText::line(&format!("argument {n}")), Look::Heading);
            command.iter().enumerate().flat_map(|(n, text)| [heading(n), whole(text)]).collect()
        }
    }
}
