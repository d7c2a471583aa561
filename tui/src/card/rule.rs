//! Explanation of an approval request: the rule that requires it, and the setting behind the rule.

use ipc::denial::{Denial, Layer};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::rights::{Grant, Network};
use ipc::tool::Access;
use protocol::approval::{ApprovalMode, ServerRequest};

use super::content::fact;
use crate::model::{Block, Look, Part};
use crate::start::Origins;
use crate::text::SafeText;

/// Current settings and their origins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InForce<'a> {
    pub mode: ApprovalMode,
    pub mode_changed: bool,
    pub net_changed: bool,
    pub origins: &'a Origins,
}

impl InForce<'_> {
    fn mode_from(self) -> String {
        if self.mode_changed { "changed in this session".to_owned() } else { self.origins.mode.clone() }
    }

    fn net_from(self) -> String {
        if self.net_changed { "changed in this session".to_owned() } else { self.origins.net.clone() }
    }
}

pub(crate) fn explain(request: &ServerRequest, rules: InForce<'_>) -> Block {
    let (rule, from, change) = match request {
        ServerRequest::ApplyPatchApproval(_) => files(rules),
        ServerRequest::ExecCommandApproval(params) => {
            command(&params.grant, params.access, params.network.as_ref(), rules)
        }
        ServerRequest::NetworkApproval(params) => {
            command(&params.grant, params.access, Some(&Network::On), rules)
        }
        ServerRequest::DeniedCommandApproval(params) => denied(&params.denial, rules),
        ServerRequest::HostApproval(_) => of_hosts(rules),
        ServerRequest::FetchApproval(params) => page(&params.grant, rules),
        ServerRequest::ExternalToolApproval(params) if params.access.is_some() => (
            "Bailiwick asks before calls of a server that has more access than the agent, or a variable of \
             yours"
                .to_owned(),
            "built in".to_owned(),
            "no setting allows this tool; s allows it for the session",
        ),
        ServerRequest::ExternalToolApproval(_) => (
            "Bailiwick asks before each call of a tool outside the sandbox".to_owned(),
            "built in".to_owned(),
            "no setting; s allows this very call for the session",
        ),
        ServerRequest::ServerForm(_) => (
            "a server can ask you something during a call; nothing is sent without your answer".to_owned(),
            "built in".to_owned(),
            "no setting; in mode deny every question is declined",
        ),
        ServerRequest::AgentRightsApproval(_) => (
            "Bailiwick asks before it starts a sub-agent with more access than its parent".to_owned(),
            "built in".to_owned(),
            "no setting",
        ),
        ServerRequest::PlanApproval(_) => {
            ("Bailiwick asks before it executes a plan".to_owned(), "built in".to_owned(), "no setting")
        }
    };
    let is_denial = matches!(request, ServerRequest::DeniedCommandApproval(_));
    let heading = if is_denial { "why this was blocked:" } else { "why this is asked:" };
    let mut parts = vec![
        Part::new(SafeText::line(heading), Look::Heading),
        fact("rule", &rule),
        fact("from", &from),
        fact("change", change),
    ];
    if let ServerRequest::DeniedCommandApproval(params) = request {
        parts.push(fact("enforced", &enforced(&params.denial)));
    }
    Block::of(parts)
}

type Rule = (String, String, &'static str);

const MODE: &str = ":mode ask|auto|deny, --mode, or mode in the settings";
const NET: &str = ":net on|off|HOSTS, --net, or rights.net in the settings";

fn files(rules: InForce<'_>) -> Rule {
    let rule = format!("mode {} asks before each change of files that is not allowed yet", rules.mode);
    (rule, rules.mode_from(), MODE)
}

fn command(grant: &Grant, access: Access, network: Option<&Network>, rules: InForce<'_>) -> Rule {
    if !grant.write.is_empty() {
        let rule = format!("mode {} asks before commands that write in the project", rules.mode);
        return (rule, rules.mode_from(), MODE);
    }
    if grant.net.reaches_out() {
        let rule = "the command needs the network, which is off".to_owned();
        return (rule, rules.net_from(), NET);
    }
    if access == Access::Read && network.is_some_and(Network::reaches_out) {
        let rule = "a read-only command with the network could send out what it reads".to_owned();
        return (rule, "built in".to_owned(), "no setting");
    }
    let rule = "Bailiwick asks before every command except read-only ones".to_owned();
    (rule, rules.origins.confirm_shell.clone(), "approvals.confirm_shell in the settings")
}

fn page(grant: &Grant, rules: InForce<'_>) -> Rule {
    if grant.is_empty() {
        let rule = "Bailiwick asks before every command and every web page".to_owned();
        return (rule, rules.origins.confirm_shell.clone(), "approvals.confirm_shell in the settings");
    }
    ("the agent cannot reach this host".to_owned(), rules.net_from(), NET)
}

fn denied(denial: &Denial, rules: InForce<'_>) -> Rule {
    match denial.missing_right.value() {
        Some(MissingRight::Network) => ("the network is off".to_owned(), rules.net_from(), NET),
        Some(MissingRight::Host { .. }) => of_hosts(rules),
        Some(MissingRight::Socket { .. }) => (
            "you have to allow each socket of another program".to_owned(),
            "built in".to_owned(),
            ":allow socket PATH, --socket PATH, or rights.sockets in the settings",
        ),
        Some(MissingRight::Write { closed_by: Some(ClosedBy::Mode), .. }) => {
            let rule = format!("in mode {} the project is read-only until you allow a write", rules.mode);
            (rule, rules.mode_from(), MODE)
        }
        _ => (
            "this path is read-only; :access lists writable paths".to_owned(),
            rules.origins.write.clone(),
            ":allow write PATH, --write PATH, or rights.write in the settings",
        ),
    }
}

fn of_hosts(rules: InForce<'_>) -> Rule {
    ("the network is on only for some hosts".to_owned(), rules.net_from(), NET)
}

fn enforced(denial: &Denial) -> String {
    match denial.layer {
        Layer::Policy => "by Bailiwick's rules, before anything ran".to_owned(),
        layer => format!("by the sandbox ({layer}), whatever the command is"),
    }
}
