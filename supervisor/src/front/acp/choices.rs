//! The options that an editor shows for a permission, and the decision that each option stands for.
//!
//! The id of an option is its kind and the digest of the exact effect. An answer with another digest is invalid.

use std::borrow::Cow;

use agent_client_protocol_schema::v1::{PermissionOption, PermissionOptionKind};
use ipc::form::{FieldKind, FormField};
use protocol::approval::{
    DeniedCommandApprovalParams, FormValue, FormValues, ProjectPrefixes, ReviewDecision, ServerRequest,
    SessionScope, TurnAccess, check, check_all, default_of, defaults, value_in_words,
};
use protocol::shell_word::shell_word;

use super::permission::is_whole;
use super::shown;

/// Maximum number of values of a form's field for which each value is shown as an option.
const MOST_OPTIONS: usize = 8;

pub(super) struct Choice {
    kind: Cow<'static, str>,
    name: String,
    pub(super) chosen: Chosen,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Chosen {
    Decided(ReviewDecision),
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
            Chosen::Decided(ReviewDecision::ApprovedForSession { .. } | ReviewDecision::ApprovedForTurn) => {
                PermissionOptionKind::AllowAlways
            }
            _ => PermissionOptionKind::RejectOnce,
        };
        PermissionOption::new(self.id(digest), self.name.clone(), kind)
    }
}

/// Returns the options for a request. Offers an option for the whole session only if the request shows its whole scope.
pub(super) fn of(request: &ServerRequest) -> Vec<Choice> {
    if let ServerRequest::ServerForm(params) = request {
        return of_form(&params.fields);
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
            kind: kind.into(),
            name: shown::title(&name),
            chosen: Chosen::Decided(ReviewDecision::ApprovedForSession { scope }),
        }));
    }
    if let Some(turn) = request.turn().filter(|_| is_whole(request)) {
        choices.push(decided("allow_turn", &whole_turn(turn), ReviewDecision::ApprovedForTurn));
    }
    if matches!(request, ServerRequest::PlanApproval(_)) {
        choices.push(Choice {
            kind: "edited".into(),
            name: "I edited the plan's file: show it again".to_owned(),
            chosen: Chosen::Edited,
        });
    }
    choices.push(decided("reject_once", "Deny", ReviewDecision::DENIED));
    choices
}

fn decided(kind: impl Into<Cow<'static, str>>, name: &str, decision: ReviewDecision) -> Choice {
    Choice { kind: kind.into(), name: name.to_owned(), chosen: Chosen::Decided(decision) }
}

/// Returns one option for each value of the only field that the form leaves open. An editor cannot show fields.
fn of_form(fields: &[FormField]) -> Vec<Choice> {
    let asked = asked_field(fields);
    let mut choices = Vec::new();
    if let Some(field) = asked {
        for (number, value) in values(field).into_iter().enumerate() {
            let name = sends(field, &value);
            let mut values = initial(fields);
            values.insert(field.name.clone(), value);
            if check_all(fields, &values).is_ok() {
                choices.push(decided(
                    format!("allow_once_{number}"),
                    &name,
                    ReviewDecision::Filled { values },
                ));
            }
        }
    }
    if let (None, Ok(values)) = (asked, defaults(fields)) {
        let words = if fields.is_empty() { "Yes" } else { "Send these values" };
        choices.push(decided("allow_once", words, ReviewDecision::Filled { values }));
    }
    choices.push(decided("reject_once", "Decline", ReviewDecision::DENIED));
    choices
}

/// Returns the field that the person answers. `None` if several need a value, or if options cannot list its values.
pub(super) fn asked_field(fields: &[FormField]) -> Option<&FormField> {
    let needs = |field: &&FormField| check(field, default_of(field).as_ref()).is_err();
    let mut open = fields.iter().filter(needs);
    let ((Some(field), None, _) | (None, _, [field])) = (open.next(), open.next(), fields) else {
        return None;
    };
    (!values(field).is_empty()).then_some(field)
}

/// Returns all values that a field can have; an empty list if they are too many, or if one is too long to be shown.
fn values(field: &FormField) -> Vec<FormValue> {
    let values: Vec<_> = match &field.kind {
        FieldKind::YesNo { .. } => vec![FormValue::YesNo(true), FormValue::YesNo(false)],
        FieldKind::Choice { choices, .. } => {
            choices.iter().map(|choice| FormValue::Text(choice.value.clone())).collect()
        }
        _ => Vec::new(),
    };
    let is_shown = |value: &FormValue| {
        let name = sends(field, value);
        shown::is_visible(&name) && shown::title(&name) == name
    };
    let fits = values.len() <= MOST_OPTIONS && values.iter().all(is_shown);
    if fits { values } else { Vec::new() }
}

fn sends(field: &FormField, value: &FormValue) -> String {
    format!("Send: {}", value_in_words(field, Some(value)))
}

fn initial(fields: &[FormField]) -> FormValues {
    fields.iter().filter_map(|field| Some((field.name.clone(), default_of(field)?))).collect()
}

/// Returns the name of the option that allows the whole turn. The name lists the access of the turn.
fn whole_turn(turn: &TurnAccess) -> String {
    let places: Vec<_> = turn.write.iter().map(ToString::to_string).collect();
    let after = if turn.network_after.reaches_out() { ", then on again" } else { "" };
    let commands = if turn.confirms_commands { "; commands still need your approval" } else { "" };
    let text = format!(
        "Allow everything in this turn: write {}; the network is off until the turn ends{after}{commands}",
        places.join(", ")
    );
    // The name is not shortened, because the person would also allow the part that is not shown.
    shown::line(&text)
}

type Named = (&'static str, String, SessionScope);

fn scopes(request: &ServerRequest) -> Vec<Named> {
    let exact = |name: &str| ("allow_always", name.to_owned(), SessionScope::Exact);
    match request {
        ServerRequest::ApplyPatchApproval(params) if params.with.is_empty() => {
            let root = params.grant_root.as_ref().map(|root| grant_root(&root.to_string()));
            [exact("Allow any change of exactly these files")].into_iter().chain(root).collect()
        }
        ServerRequest::ExecCommandApproval(params) => {
            let root = params.grant_root.as_ref().map(|root| grant_root(&root.to_string()));
            let always = params.in_project.as_ref().and_then(in_project);
            let scopes = commands(params.prefix.as_deref(), &params.parts).into_iter();
            scopes.chain(always).chain(root).collect()
        }
        ServerRequest::NetworkApproval(params) => {
            let network = (
                "allow_always_network",
                "Allow the network for every command".to_owned(),
                SessionScope::Network,
            );
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

/// Returns the option for the whole project; `None` if its name would be cut, because the person would then allow more
/// than is shown.
fn in_project(kept: &ProjectPrefixes) -> Option<Named> {
    let name = format!("Allow always in this project: {}", kept.words());
    let scope = SessionScope::CommandPrefixesInProject(kept.prefixes.clone());
    (shown::title(&name) == name).then_some(("allow_always_project", name, scope))
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

#[cfg(test)]
mod tests {
    use ipc::form::FormChoice;

    use super::*;

    fn field(name: &str, kind: FieldKind) -> FormField {
        FormField { name: name.to_owned(), title: None, about: String::new(), required: true, kind }
    }

    fn choice(titles: &[&str], default: Option<&str>) -> FieldKind {
        let choice = |(number, title): (usize, &&str)| FormChoice {
            value: number.to_string(),
            title: Some((*title).to_owned()),
        };
        let choices = titles.iter().enumerate().map(choice).collect();
        FieldKind::Choice { choices, default: default.map(str::to_owned) }
    }

    fn text(default: Option<&str>) -> FieldKind {
        FieldKind::Text { format: None, least: None, most: None, default: default.map(str::to_owned) }
    }

    fn options(fields: &[FormField]) -> Vec<String> {
        let option = |choice: Choice| match choice.chosen {
            Chosen::Decided(ReviewDecision::Filled { values }) => {
                format!("{}: {}", choice.name, serde_json::to_string(&values).unwrap())
            }
            _ => choice.name,
        };
        of_form(fields).into_iter().map(option).collect()
    }

    #[test]
    fn each_option_of_a_form_is_a_whole_form_or_declines() {
        let yes_no = || field("a", FieldKind::YesNo { default: None });
        assert_eq!(options(&[]), ["Yes: {}", "Decline"]);
        assert_eq!(options(&[yes_no()]), ["Send: yes: {\"a\":true}", "Send: no: {\"a\":false}", "Decline"]);
        assert_eq!(
            options(&[field("a", choice(&["Bug", "Wish"], Some("1"))),]),
            ["Send: Bug [0]: {\"a\":\"0\"}", "Send: Wish [1]: {\"a\":\"1\"}", "Decline"]
        );
        assert_eq!(
            options(&[field("b", text(Some("x"))), yes_no()]),
            ["Send: yes: {\"a\":true,\"b\":\"x\"}", "Send: no: {\"a\":false,\"b\":\"x\"}", "Decline"]
        );
        assert_eq!(options(&[field("b", text(Some("x")))]), ["Send these values: {\"b\":\"x\"}", "Decline"]);
    }

    #[test]
    fn a_form_that_no_option_can_fill_in_is_declined_alone() {
        let long = "x".repeat(200);
        let many = [""; MOST_OPTIONS + 1];
        for fields in [
            vec![field("b", text(None))],
            vec![
                field("a", FieldKind::YesNo { default: None }),
                field("b", FieldKind::YesNo { default: None }),
            ],
            vec![field("a", FieldKind::YesNo { default: None }), field("b", text(None))],
            vec![field("a", choice(&["one", &long], None))],
            vec![field("a", choice(&["one", "t\u{202e}wo"], None))],
            vec![field("a", choice(&many, None))],
        ] {
            assert_eq!(options(&fields), ["Decline"], "{fields:?}");
        }
    }
}
