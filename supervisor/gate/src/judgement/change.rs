//! Decides on a user's change of an agent's access or mode while the agent runs.

use ipc::path::WirePath;
use ipc::rights::{Network, Reach, Rights, RightsChange};
use protocol::event::NoticeCode;
use protocol::network_words::{NetworkWordError, too_wide};

use super::standing::is_kernel_tree;
use super::{ApprovalMode, StandingRights, sockets};
use crate::activity::Activity;
use crate::modes::{Position, WIDEST, permits};

/// Change that a user makes to a running agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Rights(RightsChange),
    Mode(ApprovalMode),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchanged {
    /// The agent already has this access.
    #[error("nothing changed: {0}")]
    Same(String),
    #[error("the access was not changed: {0}")]
    Refused(String),
}

impl Unchanged {
    pub const fn code(&self) -> NoticeCode {
        match self {
            Self::Same(_) => NoticeCode::RightsUnchanged,
            Self::Refused(_) => NoticeCode::RightsRefused,
        }
    }
}

/// Returns the access after a change, with host paths. Fails if nothing changes or the change is not allowed.
pub fn rights_after(
    standing: &StandingRights,
    change: &RightsChange,
    activity: Activity,
) -> Result<Rights, Unchanged> {
    if let Some(why) = refusal(standing, change, activity) {
        return Err(Unchanged::Refused(why));
    }
    let mut changed = standing.rights.with_change(&as_far_as_allowed(standing, change));
    if let RightsChange::RemoveWrite { path } = change {
        // The removed directory may contain these, and replaced them when it was added.
        let auto = permits(Position::FIRST, standing.mode).writes_project();
        let of_auto = [Some(&standing.project), standing.caches.as_ref()].into_iter().flatten();
        let of_auto = of_auto.filter(|place| auto && *place != path);
        changed.write.extend(standing.temp.iter().chain(of_auto).cloned());
        changed = changed.normalised();
    }
    let same_as_before = changed == standing.rights.clone().normalised();
    if same_as_before { Err(Unchanged::Same(same(change))) } else { Ok(changed) }
}

/// Returns the change with the addresses that the session allowed at its start, unless the change names addresses.
fn as_far_as_allowed(standing: &StandingRights, change: &RightsChange) -> RightsChange {
    match change {
        RightsChange::Network { net, reach: None } => {
            RightsChange::Network { net: net.clone(), reach: Some(standing.reach) }
        }
        RightsChange::AddHosts { hosts, reach: None } if standing.rights.net.is_off() => {
            RightsChange::AddHosts { hosts: hosts.clone(), reach: Some(standing.reach) }
        }
        change => change.clone(),
    }
}

/// Returns the access in another mode. Fails if the mode is the same or cannot change.
pub fn to_mode(
    standing: &StandingRights,
    mode: ApprovalMode,
    activity: Activity,
) -> Result<Rights, Unchanged> {
    if mode == standing.mode {
        return Err(Unchanged::Same(format!("the mode is already {mode}")));
    }
    let refused = |why: &str| Err(Unchanged::Refused(why.to_owned()));
    match (&standing.modes, activity) {
        (_, Activity::Plan) => refused("while the agent makes a plan, nothing is writable in any mode"),
        (None, _) => refused("the mode of this session cannot be changed"),
        (Some(modes), Activity::Execute) => {
            let mut rights = standing.rights.clone();
            // Directories that the user added stay. Those inside of a removed directory are added again.
            rights.write.retain(|root| !modes.auto.contains(root));
            rights.write.extend(standing.temp.iter().chain(modes.roots(mode)).cloned());
            if permits(Position::FIRST, mode).turns_network_off() {
                (rights.net, rights.reach) = (Network::Off, Reach::default());
                rights.sockets.clear();
            }
            Ok(rights.normalised())
        }
    }
}

/// Returns the access for the rest of a turn that a person approves as a whole: the writable directories of the mode
/// that makes the project writable, and no network. `None` if the agent may ask nobody, or its mode cannot change.
pub fn for_turn(standing: &StandingRights, agent: Position) -> Option<Rights> {
    if !permits(agent, standing.mode).asks() {
        return None;
    }
    let mut rights = to_mode(standing, WIDEST, agent.activity).ok()?;
    (rights.net, rights.reach) = (Network::Off, Reach::default());
    Some(rights.normalised())
}

fn refusal(standing: &StandingRights, change: &RightsChange, activity: Activity) -> Option<String> {
    let wide = too_wide(&Rights::default().with_change(change).net).map(ToString::to_string);
    if let Some(rule) = wide {
        return Some(NetworkWordError::Suffix(rule).to_string());
    }
    match (change, activity) {
        (RightsChange::Network { net, .. }, Activity::Plan) if net.reaches_out() => {
            Some("the network stays off while a plan is made".to_owned())
        }
        (RightsChange::AddHosts { .. }, Activity::Plan) => {
            Some("the network stays off while a plan is made".to_owned())
        }
        (RightsChange::AddWrite { .. }, Activity::Plan) => {
            Some("nothing is writable while a plan is made".to_owned())
        }
        (RightsChange::AddSocket { .. }, Activity::Plan) => {
            Some("no socket is allowed while a plan is made".to_owned())
        }
        (RightsChange::AddWrite { path }, Activity::Execute) => closed(standing, path),
        (RightsChange::AddSocket { path }, Activity::Execute) => sockets::refusal(standing, path),
        (RightsChange::RemoveWrite { path }, _) if Some(path) == standing.temp.as_ref() => {
            Some("the private temp directory is always writable".to_owned())
        }
        _ => None,
    }
}

pub(super) fn closed(standing: &StandingRights, path: &WirePath) -> Option<String> {
    let within = |roots: &[WirePath]| roots.iter().any(|root| path.is_within(root));
    let holds = |tree: &str| WirePath::from(tree).is_within(path);
    if standing.hidden_root(path).is_some() {
        Some(format!("{path} is hidden from the sandbox"))
    } else if within(&standing.rights.protected) || standing.is_in_levels(path) {
        Some(format!("{path} is protected by the settings or by Bailiwick"))
    } else if ["/proc", "/sys", "/dev"].into_iter().any(holds)
        || is_kernel_tree(path) && !path.is_within(&"/dev".into())
    {
        Some(format!("{path} belongs to the kernel, or contains a path of the kernel"))
    } else {
        None
    }
}

fn same(change: &RightsChange) -> String {
    match change {
        RightsChange::Network { net: Network::Off, .. } => "the network is already off".to_owned(),
        RightsChange::Network { net: Network::On, .. } => "the network is already on".to_owned(),
        RightsChange::Network { net: Network::Hosts(hosts), .. } => {
            format!("the network is already on for {hosts}, and only for them")
        }
        RightsChange::AddHosts { hosts, .. } => format!("{hosts} can already be reached"),
        RightsChange::AddWrite { path } => format!("{path} is already writable"),
        RightsChange::AddSocket { path } => format!("{path} can already be reached"),
        RightsChange::RemoveSocket { path } => format!("the socket {path} was not allowed before"),
        RightsChange::RemoveWrite { path } => format!("writing to {path} was not allowed before"),
    }
}
