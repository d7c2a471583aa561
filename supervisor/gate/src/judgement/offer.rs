//! Offers to repeat a denied command with more access, if a person approves it.
//!
//! A command or a worker may claim anything. So a path outside of the project is offered only if the denial is proved.
//! The project and the network are always possible, since the model may request them at any time.

use ipc::denial::{Denial, Grade};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::path::WirePath;
use ipc::rights::{Execution, Grant, Hosts, Network};
use ipc::tool::{Access, ShellExec};

use super::judge::plain;
use super::{Ask, Place, StandingRights, Verdict, change, judge};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub denial: Denial,
    pub command: ShellExec,
    pub grant: Grant,
    /// Denied path outside of the project, until the existing path to grant is found for it; otherwise `None`.
    pub place: Option<WirePath>,
}

/// Returns the offer for the first denial that an approval can prevent, if any. The command had the access `given`.
pub fn first<'a>(
    standing: &StandingRights,
    command: &ShellExec,
    denials: impl IntoIterator<Item = &'a Denial>,
    given: &Grant,
) -> Option<Offer> {
    denials.into_iter().find_map(|denial| offer_for(standing, command, denial, given))
}

fn offer_for(
    standing: &StandingRights,
    command: &ShellExec,
    denial: &Denial,
    given: &Grant,
) -> Option<Offer> {
    // An approval cannot allow what no flag allows.
    denial.grant.as_ref()?;
    let reads = command.access == Access::Read;
    let lifted = match denial.missing_right.value()? {
        MissingRight::Write { path, closed_by } => {
            let place = Place { path: path.clone(), grant: Some(path.clone()) };
            if judge::closed_place(standing, &place).is_some() || plain(path.as_path()).is_none() {
                return None;
            }
            match closed_by {
                Some(ClosedBy::Mode) if path.is_within(&standing.project) => {
                    with_the_project(standing, command)
                }
                None if denial.grade == Grade::Proved && !reads && !path.is_within(&standing.project) => {
                    return Some(Offer {
                        denial: denial.clone(),
                        command: command.clone(),
                        grant: given.clone(),
                        place: Some(path.clone()),
                    });
                }
                _ => None,
            }
        }
        // A command that can read everything must not be able to send it out.
        MissingRight::Network if !reads && !command.network.as_ref().is_some_and(Network::is_off) => {
            declared(standing, ShellExec { network: Some(Network::On), ..command.clone() })
        }
        MissingRight::Host { host } if !reads && denial.grade == Grade::Proved => {
            let net = Hosts::new([host.clone()]).map(Network::Hosts)?;
            Some((command.clone(), Grant { net, ..Grant::default() }))
        }
        MissingRight::Socket { path } if !reads && denial.grade == Grade::Proved => {
            Some((command.clone(), Grant { sockets: vec![path.clone()], ..Grant::default() }))
        }
        _ => None,
    };
    let (command, lacked) = lifted?;
    let grant = given.join(&lacked);
    (grant != *given).then(|| Offer { denial: denial.clone(), command, grant, place: None })
}

/// Returns the command with declared write access, and a grant of the project; `None` if the agent may run no commands.
fn with_the_project(standing: &StandingRights, command: &ShellExec) -> Option<(ShellExec, Grant)> {
    let command = ShellExec { access: Access::Write, ..command.clone() };
    let project =
        Grant { write: vec![standing.project.clone()], ..judge::lacked_network(standing, &command) };
    (standing.rights.exec == Execution::Allowed).then_some((command, project))
}

/// Returns a command that declares more access, with a grant of what the agent lacks; `None` if none can be approved.
fn declared(standing: &StandingRights, command: ShellExec) -> Option<(ShellExec, Grant)> {
    match judge::command_to_ask(standing, &command) {
        Verdict::Ask(Ask { grant, .. }) => Some((command, grant)),
        Verdict::Run | Verdict::Prepare | Verdict::Deny(_) => None,
    }
}

/// Adds the existing path `found` to the grant of an offer. `None` if no approval can grant that path.
pub fn placed(standing: &StandingRights, offer: Offer, found: Option<WirePath>) -> Option<Offer> {
    let (place, found) = (offer.place.as_ref()?, found?);
    let holds_the_project = standing.project.is_within(&found);
    if !place.is_within(&found) || holds_the_project || change::closed(standing, &found).is_some() {
        return None;
    }
    let grant = offer.grant.join(&Grant { write: vec![found], ..Grant::default() });
    (grant != offer.grant).then_some(Offer { grant, place: None, ..offer })
}
