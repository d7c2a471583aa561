//! What a failed command lacked, as far as its own words tell.

use ipc::confinement::Tier;
use ipc::denial::{Denial, Object, Operation};
use ipc::rights::Rights;
use ipc::tool::{Access, CommandExit, CommandResult, ShellExec};

use super::super::say;
use super::super::setup::Setup;
use crate::gate::{ApprovalMode, Standing};

/// Says which right a failed command seems to have lacked.
pub(super) fn explain(setup: &Setup, rights: Rights, tier: Tier, status: u8, errors: &[u8]) {
    let standing = Standing { rights, ..setup.standing() }.seen_in(tier);
    let call = ShellExec {
        command: String::new(),
        access: Access::Standing,
        network: None,
        cwd: None,
        timeout_ms: None,
    };
    let result = CommandResult {
        exit: CommandExit::Code(status.into()),
        head: String::from_utf8_lossy(errors).into_owned(),
        omitted_bytes: 0,
        tail: String::new(),
        saved: None,
        duration_ms: 0,
    };
    if let Some(hint) = standing.refused_connection(&result) {
        say(hint);
    }
    if let Some(mut denial) = standing.likely(&call, &result) {
        denial.grant = grant(&denial, &standing);
        say(&format!("{denial} · rights: {}", standing.line()));
    } else if let Some(hint) = standing.refused_git_config(&result) {
        say(hint.trim_matches(['(', ')']));
    }
}

/// What would allow it, in the words of this command: a flag of ours, with a path that exists.
fn grant(denial: &Denial, standing: &Standing) -> Option<String> {
    match (&denial.object, denial.operation) {
        (Object::Path(path), Operation::Write) if path.is_within(&standing.project) => {
            let by_mode = standing.mode == ApprovalMode::Deny;
            denial.grant.clone().map(|grant| if by_mode { "--access write".to_owned() } else { grant })
        }
        (Object::Path(path), Operation::Write) if path.as_path().exists() => denial.grant.clone(),
        (Object::Path(path), Operation::Write) => {
            // The command is the user's own, and so is the look at what exists.
            let nearest = path.as_path().ancestors().find(|place| place.exists())?;
            denial.grant.as_ref().and_then(|_| standing.write_grant(&nearest.into()))
        }
        _ => denial.grant.clone(),
    }
}
