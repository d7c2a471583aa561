//! Approvals of command prefixes that last in a project, because the person's settings keep them.
//!
//! A request offers a prefix only if settings with that prefix would have approved the command. The prefixes are the
//! same as those that the request offers for the session.

use ipc::effect::Exec;
use protocol::approval::AskKind;

use super::scope::{Covered, KeptSetting, Scope, script};
use super::session::is_run_as_configured;
use crate::judgement::command_line::{offered_parts, offered_prefix};
use crate::judgement::{Ask, StandingRights};

/// Returns the command's prefixes that the settings could keep; empty if the settings cannot approve this command.
pub(super) fn offered_in_project(exec: &Exec, ask: &Ask, standing: &StandingRights) -> Vec<Vec<String>> {
    let text =
        script(exec).filter(|_| ask.kind == AskKind::Exec && is_run_as_configured(exec, ask, standing));
    let Some(text) = text else { return Vec::new() };
    offered_prefix(text).map_or_else(|| offered_parts(text), |prefix| vec![prefix])
}

/// Returns the scope of an answer that chose the prefixes `list`. The error says why they do not fit the request.
pub(super) fn in_project(
    list: Vec<Vec<String>>,
    exec: &Exec,
    ask: &Ask,
    standing: &StandingRights,
) -> Result<Scope, String> {
    let offered = offered_in_project(exec, ask, standing);
    if list.is_empty() {
        return Err("the answer names no command prefix".to_owned());
    }
    if let Some(other) = list.iter().find(|words| !offered.contains(words)) {
        return Err(format!(
            "the request does not offer the command prefix {:?} for the project",
            other.join(" ")
        ));
    }
    let like = |words: &Vec<String>| Covered::Prefix { words: words.clone(), like: Box::new(exec.clone()) };
    Ok(Scope::Kept { covered: list.iter().map(like).collect(), setting: KeptSetting::Prefixes(list) })
}
