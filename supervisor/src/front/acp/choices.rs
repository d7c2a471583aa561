//! The options of a permission, and the decisions behind them.
//!
//! An id is a kind and the digest of the exact effect. An answer that names another digest names nothing.

use agent_client_protocol_schema::v1::{PermissionOption, PermissionOptionKind};
use protocol::approval::{
    DeniedCommandApprovalParams, ReviewDecision, ServerRequest, SessionScope, defaults,
};
use protocol::shell_word::shell_word;

use super::permission::is_whole;
use super::shown;

/// An option of a permission.
pub(super) struct Choice {
    kind: &'static str,
    name: String,
    pub(super) chosen: Chosen,
}

/// The meaning of an option.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Chosen {
    Decided(ReviewDecision),
    /// The plan's file was edited: it is read and asked about anew.
    Edited,
}

impl Choice {
    pub(super) fn id(&self, digest: &str) -> String {
        format!("{}:{digest}", self.kind)
    }

    pub(super) fn option(&self, digest: &str) -> PermissionOption {
        let kind = match &self.chosen {
            Chosen::Decided(ReviewDecision::Approved | ReviewDecision::Filled { .. }) => {
                PermissionOptionKind::AllowOnce
            }
            Chosen::Decided(ReviewDecision::ApprovedForSession { .. }) => PermissionOptionKind::AllowAlways,
            _ => PermissionOptionKind::RejectOnce,
        };
        PermissionOption::new(self.id(digest), self.name.clone(), kind)
    }
}

/// Returns the options of a request. For the session only scopes are offered that the request has, and only if every
/// character of it was shown as it is.
pub(super) fn of(request: &ServerRequest) -> Vec<Choice> {
    let decided = |kind, name: &str, decision| Choice {
        kind,
        name: name.to_owned(),
        chosen: Chosen::Decided(decision),
    };
    if let ServerRequest::ServerForm(params) = request {
        let words = if params.fields.is_empty() { "Yes" } else { "Send these values" };
        let sent = defaults(&params.fields).ok();
        let sent = sent.map(|values| decided("allow_once", words, ReviewDecision::Filled { values }));
        return sent.into_iter().chain([decided("reject_once", "Decline", ReviewDecision::DENIED)]).collect();
    }
    let once = match request {
        ServerRequest::PlanApproval(_) => "Execute this plan",
        ServerRequest::DeniedCommandApproval(_) => "Run again with this access",
        ServerRequest::HostApproval(_) => "Allow until the command ends",
        _ => "Allow once",
    };
    let mut choices = vec![decided("allow_once", once, ReviewDecision::Approved)];
    if is_whole(request) {
        choices.extend(scopes(request).into_iter().map(|(kind, name, scope)| Choice {
            kind,
            name: shown::title(&name),
            chosen: Chosen::Decided(ReviewDecision::ApprovedForSession { scope }),
        }));
    }
    if matches!(request, ServerRequest::PlanApproval(_)) {
        choices.push(Choice {
            kind: "edited",
            name: "I edited the plan's file: show it again".to_owned(),
            chosen: Chosen::Edited,
        });
    }
    choices.push(decided("reject_once", "Deny", ReviewDecision::DENIED));
    choices
}

type Named = (&'static str, String, SessionScope);

/// Returns the scopes for the session that a request has.
fn scopes(request: &ServerRequest) -> Vec<Named> {
    let exact = |name: &str| ("allow_always", name.to_owned(), SessionScope::Exact);
    match request {
        ServerRequest::ApplyPatchApproval(params) if params.with.is_empty() => {
            let root = params.grant_root.as_ref().map(|root| grant_root(&root.to_string()));
            [exact("Allow any change of exactly these files")].into_iter().chain(root).collect()
        }
        ServerRequest::ExecCommandApproval(params) => {
            let root = params.grant_root.as_ref().map(|root| grant_root(&root.to_string()));
            commands(params.prefix.as_deref(), &params.parts).into_iter().chain(root).collect()
        }
        ServerRequest::NetworkApproval(params) => {
            let network =
                ("allow_always_network", "Network on for every command".to_owned(), SessionScope::Network);
            commands(params.prefix.as_deref(), &params.parts).into_iter().chain([network]).collect()
        }
        ServerRequest::DeniedCommandApproval(params) => denied(params).into_iter().collect(),
        ServerRequest::HostApproval(params) => {
            let name = format!("Allow {} for the session", params.host);
            vec![("allow_always_network", name, SessionScope::Network)]
        }
        ServerRequest::ExternalToolApproval(params) => {
            let tool = (
                "allow_always_tool",
                format!("Allow {} with any arguments", params.tool),
                SessionScope::Tool,
            );
            let tool = params.access.is_some().then_some(tool);
            [exact("Allow exactly this call")].into_iter().chain(tool).collect()
        }
        ServerRequest::FetchApproval(params) => {
            let host = ("allow_always_host", format!("Allow pages of {}", params.host), SessionScope::Host);
            vec![exact("Allow exactly this page"), host]
        }
        ServerRequest::ApplyPatchApproval(_)
        | ServerRequest::ServerForm(_)
        | ServerRequest::AgentRightsApproval(_)
        | ServerRequest::PlanApproval(_) => Vec::new(),
    }
}

fn grant_root(root: &str) -> Named {
    ("allow_always_root", format!("Allow any change under {root}"), SessionScope::GrantRoot)
}

fn commands(prefix: Option<&[String]>, parts: &[Vec<String>]) -> Vec<Named> {
    let words = |words: &[String]| words.iter().map(shell_word).collect::<Vec<_>>().join(" ");
    let mut scopes = vec![("allow_always", "Allow exactly this command".to_owned(), SessionScope::Exact)];
    if let Some(prefix) = prefix {
        let name = format!("Allow commands that begin with: {}", words(prefix));
        scopes.push(("allow_always_prefix", name, SessionScope::CommandPrefix(prefix.to_vec())));
    }
    if !parts.is_empty() {
        let named: Vec<_> = parts.iter().map(|part| words(part)).collect();
        let name = format!("Allow commands that begin with any of: {}", named.join(" | "));
        scopes.push(("allow_always_parts", name, SessionScope::CommandPrefixes(parts.to_vec())));
    }
    scopes
}

fn denied(params: &DeniedCommandApprovalParams) -> Option<Named> {
    let grant = &params.grant;
    if let Some(root) = &params.grant_root {
        return Some(grant_root(&root.to_string()));
    }
    match (grant.sockets.as_slice(), grant.net.reaches_out()) {
        _ if !grant.write.is_empty() => None,
        ([socket], false) => {
            Some(("allow_always_socket", format!("Allow {socket} for the session"), SessionScope::Socket))
        }
        ([], true) => Some((
            "allow_always_network",
            format!("Network {} for the session", grant.net),
            SessionScope::Network,
        )),
        _ => None,
    }
}
