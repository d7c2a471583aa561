use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::path::WirePath;
use ipc::rights::Network;
use protocol::approval::{DeniedCommandApprovalParams, SessionScope};
use protocol::event::Recorded;
use protocol::known_sockets::gives;

use super::content::{fact, in_project, named, reached};
use crate::model::Part;

/// Maximum number of characters of a path in a key hint.
const LONGEST: usize = 24;

pub(super) const fn title(denial: &Denial) -> &'static str {
    match (denial.grade, denial.layer) {
        (Grade::Likely, _) => "Likely blocked by the sandbox",
        (Grade::Proved, Layer::Mediation | Layer::Policy) => "Blocked by the sandbox",
        (Grade::Proved, _) => "Blocked by the kernel",
    }
}

pub(super) const fn grade(denial: &Denial) -> &'static str {
    match denial.grade {
        Grade::Proved => "  proved",
        Grade::Likely => "",
    }
}

/// Returns the line about the denied access, with the reason of the denial.
pub(super) fn tried(denial: &Denial, project: &WirePath) -> Part {
    let Denial { operation, object, missing_right, .. } = denial;
    let object = match object {
        Object::Path(path) => in_project(path, project).to_vec(),
        other => other.to_string().into_bytes(),
    };
    let by = denial.program.as_ref().map(|program| format!(" by {program}")).unwrap_or_default();
    let because = because(*operation, missing_right);
    named(
        "tried",
        &[operation.to_string().as_bytes(), b" ", &object, by.as_bytes(), because.as_bytes()].concat(),
    )
}

/// Returns the reason of a denial, to be appended to a sentence; empty if the sentence needs no reason.
pub(crate) const fn because(operation: Operation, missing: &Recorded<MissingRight>) -> &'static str {
    match (missing.value(), operation) {
        (Some(MissingRight::Write { closed_by: Some(ClosedBy::Mode), .. }), _) => {
            ", in the project, which is read-only in mode ask"
        }
        (Some(MissingRight::Write { .. }), _) => ", which is read-only for this session",
        (Some(MissingRight::Network), _) => ": the network is off",
        (Some(MissingRight::Socket { .. }), _) => ", a socket of another program",
        (Some(MissingRight::Host { .. }), _) => ", which is not on the list of hosts",
        _ => "",
    }
}

/// Returns the additional access that the command gets when it runs again, one line each.
pub(super) fn allowed(params: &DeniedCommandApprovalParams, project: &WirePath) -> Vec<Part> {
    let write = params.grant.write.iter().map(|path| {
        let place = if path == project { &b"in this project"[..] } else { in_project(path, project) };
        let within: &[u8] = if is_place(params, path) && path != project { b"in " } else { b"" };
        [b"write ", within, place].concat()
    });
    let network = reached(&params.grant).map(String::into_bytes);
    let sockets = params.grant.sockets.iter().map(|path| [b"reach ", path.as_bytes()].concat());
    let lines = write.chain(network).chain(sockets);
    let lines = lines.map(|access| [&access[..], b", for one more run"].concat());
    let names = std::iter::once("allows").chain(std::iter::repeat(""));
    let mut parts: Vec<_> = names.zip(lines).map(|(name, line)| named(name, &line)).collect();
    parts.extend(params.grant.sockets.iter().map(|path| fact("gives", gives(path))));
    parts.push(fact("again", "the whole command; changes of its first run stay"));
    parts
}

fn is_place(params: &DeniedCommandApprovalParams, path: &WirePath) -> bool {
    !matches!(&params.denial.object, Object::Path(denied) if denied == path)
}

pub(crate) fn for_session(params: &DeniedCommandApprovalParams) -> Option<SessionScope> {
    let nothing_to_write = params.grant.write.is_empty();
    let sockets = params.grant.sockets.len();
    let network = params.grant.net.reaches_out() && nothing_to_write && sockets == 0;
    let socket = params.grant.net.is_off() && nothing_to_write && sockets == 1;
    let scope = params.grant_root.as_ref().map(|_| SessionScope::GrantRoot);
    let scope = scope.or_else(|| socket.then_some(SessionScope::Socket));
    scope.or_else(|| network.then_some(SessionScope::Network))
}

pub(super) fn words_for_session(params: &DeniedCommandApprovalParams, project: &WirePath) -> String {
    match &params.grant_root {
        None if params.grant.net.is_off() => "allow this socket, this session".to_owned(),
        None => match &params.grant.net {
            Network::Hosts(hosts) => format!("allow {hosts}, this session"),
            Network::Off | Network::On => "allow the network, this session".to_owned(),
        },
        Some(root) if root == project => "allow writes in this project, this session".to_owned(),
        Some(root) => {
            let name = root.to_string();
            if name.len() > LONGEST {
                return "allow this path, this session".to_owned();
            }
            let within = if is_place(params, root) { "in" } else { "to" };
            format!("allow writes {within} {name}, this session")
        }
    }
}
