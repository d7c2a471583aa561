//! Decides on the access for executing a plan: what the plan asks for, within the session's limits.

use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Reach, Rights};
use protocol::plan::{PlaceToCreate, PlanRights};

use super::judge::{Place, plain};
use super::{ChildRights, StandingRights, flags, judge};
use crate::modes::{Position, permits};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRefusal(pub String);

/// Returns the access for executing a plan, and true if the plan asks for a network that it cannot have. `standing` is
/// the access that the session's flags and settings allow, with host paths; `planner` is that of the planning agent,
/// which has less. A missing path counts as the directory that it is created in.
pub fn judge(
    standing: &StandingRights,
    asked: Option<&PlanRights>,
    to_create: &[PlaceToCreate],
    planner: &Rights,
) -> Result<(ChildRights, bool), PlanRefusal> {
    let roots: &[String] = asked.map_or(&[], |asked| &asked.write);
    let network = asked.is_some_and(|asked| asked.network);
    let has_network = network && standing.rights.net.reaches_out();
    let mut write =
        roots.iter().map(|root| plan_root(standing, root, to_create)).collect::<Result<Vec<_>, _>>()?;
    if write.is_empty() {
        write.push(standing.project.clone());
    }
    // Agents execute files from the caches. Only an agent with the session's own network gets them.
    if has_network == standing.rights.net.reaches_out() && write.contains(&standing.project) {
        write.extend(standing.caches.clone());
    }
    let net = if has_network { standing.rights.net.clone() } else { Network::Off };
    let reach = if has_network { standing.rights.reach } else { Reach::default() };
    // No table of a plan names sockets.
    let sockets = Vec::new();
    let rights = Rights { write, net: net.clone(), reach, sockets, ..standing.rights.clone() }.normalised();
    let beyond = |root: &&WirePath| !planner.write.iter().any(|own| root.is_within(own));
    let write = rights.write.iter().filter(beyond).cloned().collect();
    let grant = Grant { write, net, reach, ..Grant::default() };
    Ok((ChildRights { rights, grant }, network && !has_network))
}

/// Returns the directory to make writable for a path in the plan. Fails if the path is neither in the project nor in a
/// directory that the session's flags make writable.
fn plan_root(
    standing: &StandingRights,
    asked: &str,
    to_create: &[PlaceToCreate],
) -> Result<WirePath, PlanRefusal> {
    let named = plain(&standing.project.as_path().join(asked));
    let root = named
        .map(WirePath::from)
        .ok_or_else(|| PlanRefusal(format!("write: got {asked}, expected a path without `..`")))?;
    let created = to_create.iter().find(|place| place.path == root);
    let root = open_to_plans(standing, asked, root)?;
    created.map_or(Ok(root), |place| open_to_plans(standing, asked, place.directory.clone()))
}

/// Returns `root` if an approval can make it writable. The error quotes `asked`, the path in the plan.
fn open_to_plans(standing: &StandingRights, asked: &str, root: WirePath) -> Result<WirePath, PlanRefusal> {
    if !may_be_planned(standing, &root) {
        let remedy = match flags::for_write(standing, &root) {
            Some(flag) => format!("the user can allow it with {flag}"),
            None => "it cannot be allowed here".to_owned(),
        };
        return Err(PlanRefusal(format!(
            "write: {asked} is neither in the project nor in a directory that this session can write; {remedy}"
        )));
    }
    let closed = judge::closed_place(standing, &Place { path: root.clone(), grant: Some(root.clone()) });
    match closed {
        Some(denial) => Err(PlanRefusal(format!("write: {asked} cannot be allowed: {denial}"))),
        None => Ok(root),
    }
}

/// True if an approval may make a path writable. A plan that names a path in the caches does not get it.
fn may_be_planned(standing: &StandingRights, root: &WirePath) -> bool {
    let allowed = |own: &WirePath| root.is_within(own) && Some(own) != standing.temp.as_ref();
    root.is_within(&standing.project)
        || standing.rights.write.iter().any(allowed) && !standing.is_in_caches(root)
}

/// Fails with the reason if the plan's access exceeds the session's, which the user may have reduced.
pub fn still_allowed(standing: &StandingRights, rights: &Rights) -> Result<(), String> {
    if !permits(Position::FIRST, standing.mode).keeps_approvals() {
        return Err(format!("the mode was changed to {}", standing.mode));
    }
    if !standing.rights.net.covers(&rights.net) {
        return Err(format!("the network was changed to {}", standing.rights.net));
    }
    let gone = |root: &&WirePath| !may_be_planned(standing, root) && standing.caches.as_ref() != Some(root);
    rights.write.iter().find(gone).map_or(Ok(()), |root| Err(format!("{root} is no longer writable")))
}

pub fn beyond_flags(standing: &StandingRights, rights: &Rights) -> Option<String> {
    let own = |root: &&WirePath| !standing.rights.write.iter().any(|own| root.is_within(own));
    let root = rights.write.iter().find(own);
    let network = !standing.rights.net.covers(&rights.net);
    let flag = |root| {
        flags::for_write(standing, root).map(|flag| format!(" ({flag} allows it)")).unwrap_or_default()
    };
    root.map(|root| format!("writing {root}{}", flag(root)))
        .or_else(|| network.then(|| format!("the network (--net {} allows it)", rights.net.flag())))
}
