//! `:access`: page with the agent's access, the approvals for the session, and commands that change both.

use ipc::rights::{NamedRoot, RightsSummary};
use protocol::approval::{ApprovalMode, SessionGrant};
use protocol::known_sockets::gives;

use crate::model::{Block, Look, Model, Part, Session, TurnAccess, access};
use crate::text::SafeText;

/// Commands that change the access, each with its effect in words, in the order in which the page lists them.
const CHANGES: [(&str, &str); 5] = [
    (":mode ask|auto|deny", "ask first, allow changes in the project, or deny"),
    (":net on|off|HOSTS", "the network, or only these hosts"),
    (":allow write PATH", "a directory or file outside of the project"),
    (":allow socket PATH", "a socket of another program"),
    (":disallow ACCESS", "withdraw one of these"),
];

pub(super) fn show(model: &mut Model) {
    let Session { grants, rights, mode, .. } = &model.agents.shown().session;
    let fact = |name: &str, value: &str| Part::new(SafeText::line(&format!("{name:<10}{value}")), Look::Fact);
    let heading = |text: &str| Part::new(SafeText::line(text), Look::Heading);
    let session = &model.agents.shown().session;
    let mut parts = vec![heading("access of the agent")];
    parts.extend(facts(session).iter().map(|(name, value)| fact(name, value)));
    if let Some(words) = session.until.as_ref().and_then(TurnAccess::words) {
        parts.push(heading("until this turn ends"));
        parts.push(Part::listed(SafeText::line(words), 2));
    }
    parts.push(heading(ALLOWED));
    let lines = allowed(rights, *mode, grants);
    parts.extend(lines.iter().map(|line| Part::listed(SafeText::line(line), 2)));
    let unasked = &model.start.unasked;
    if !unasked.is_empty() {
        parts.push(heading("run without a question, by your settings"));
        parts.extend(unasked.iter().map(|line| Part::listed(SafeText::line(line), 2)));
    }
    parts.push(heading("to change it"));
    let changes = CHANGES.iter().map(|(typed, about)| format!("{typed:<22}{about}"));
    parts.extend(changes.map(|line| Part::listed(SafeText::line(&line), 22)));
    model.open_page(Block::of(parts));
}

fn facts(session: &Session) -> Vec<(&'static str, String)> {
    let rights = &session.rights;
    let sandbox = match session.tier {
        None => "not started".to_owned(),
        Some(tier) => match access::sandbox(session.tier) {
            "" => format!("{tier} tier"),
            words => format!("{words} ({tier} tier)"),
        },
    };
    let hidden = match rights.hidden {
        0 => "nothing".to_owned(),
        1 => "1 path with secrets: agents cannot read its content".to_owned(),
        places => format!("{places} paths with secrets: agents cannot read their content"),
    };
    vec![
        ("access", access::plain(rights)),
        ("hidden", hidden),
        ("mode", format!("{}: {}", session.mode, about(session.mode))),
        ("sandbox", sandbox),
        ("exactly", rights.to_string()),
    ]
}

const fn about(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Ask => "changes and other access wait for your answer",
        ApprovalMode::Auto => "changes in the project are allowed, other access is denied",
        ApprovalMode::Deny => "changes and other access are denied",
    }
}

/// Heading of the list of approvals for the session.
pub const ALLOWED: &str = "allowed in this session";

/// Returns a line for each approval of the session, with the command that revokes it.
pub fn allowed(rights: &RightsSummary, mode: ApprovalMode, grants: &[SessionGrant]) -> Vec<String> {
    // In mode `ask`, write access to the project was granted separately, and a change of the mode would not revoke it.
    let asks_again = match mode {
        ApprovalMode::Ask => ":disallow write .",
        ApprovalMode::Auto | ApprovalMode::Deny => ":mode ask",
    };
    let mut lines = Vec::new();
    for root in &rights.write {
        match root {
            NamedRoot::Path(path) => {
                let name = SafeText::labelled("", path.as_bytes());
                lines.push(format!("writes in {0} · :disallow write {0}", name.as_str()));
            }
            NamedRoot::Project => lines.push(format!("writes in the project · {asks_again} asks first")),
            NamedRoot::Temp | NamedRoot::Caches | NamedRoot::System => {}
        }
    }
    lines.extend(rights.sockets.iter().map(|path| {
        let name = SafeText::labelled("", path.as_bytes());
        format!("reaches {0}: {1} · :disallow socket {0}", name.as_str(), gives(path))
    }));
    if !rights.net.is_off() {
        lines.push("network on · :disallow net".to_owned());
    }
    let of_grant = |grant: &SessionGrant| {
        format!("{}  {} · {} · :revoke {}", grant.id, grant.covers, grant.given(), grant.id)
    };
    lines.extend(grants.iter().map(of_grant));
    if lines.is_empty() {
        lines.push("no additional access".to_owned());
    }
    lines
}
