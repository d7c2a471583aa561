//! Decides on the access of a sub-agent: never more than its parent's plus a grant that a person approves.

use ipc::denial::{Denial, Object, Operation};
use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Reach, Rights};
use protocol::approval::AskKind;

use super::denial::by_policy;
use super::judge::{Place, plain};
use super::{Ask, StandingRights, flags, judge};
use crate::modes::{Position, permits};
use crate::tools::SpawnAgent;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildRights {
    /// All access of the sub-agent, with host paths.
    pub rights: Rights,
    /// Access of the sub-agent that its parent does not have.
    pub grant: Grant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnVerdict {
    Run(ChildRights),
    /// A person has to approve access that the parent does not have.
    Ask(ChildRights, Ask),
    Deny(Denial),
    /// The arguments are invalid; the field has the reason.
    Misfit(String),
}

/// Decides on the start of a sub-agent. `standing` is the access of its parent, with host paths, and `parent` the
/// parent's position in the tree of agents.
pub fn judge(standing: &StandingRights, spawn: &SpawnAgent, parent: Position) -> SpawnVerdict {
    let write = match asked_roots(standing, spawn) {
        Ok(write) => write,
        Err(misfit) => return SpawnVerdict::Misfit(misfit),
    };
    if let Some(denial) = write.iter().find_map(|root| closed_root(standing, root)) {
        return SpawnVerdict::Deny(denial);
    }
    let child = child_with(standing, write, spawn.network);
    if child.grant.is_empty() {
        SpawnVerdict::Run(child)
    } else if permits(parent, standing.mode).asks() {
        let ask = Ask { kind: AskKind::Agent, grant: child.grant.clone() };
        SpawnVerdict::Ask(child, ask)
    } else {
        SpawnVerdict::Deny(beyond(standing, &child.grant))
    }
}

fn asked_roots(standing: &StandingRights, spawn: &SpawnAgent) -> Result<Vec<WirePath>, String> {
    match (spawn.writes, spawn.write.as_slice()) {
        (false, _) => Ok(Vec::new()),
        (true, []) => Ok(whole_write_right(standing, spawn.network)),
        (true, paths) => paths.iter().map(|path| asked_root(standing, path)).collect(),
    }
}

/// Returns everything that the agent may write, without its temp directory. The project's lasting caches are included
/// only if the sub-agent has the same network, because agents execute files from there.
fn whole_write_right(standing: &StandingRights, network: bool) -> Vec<WirePath> {
    let same_network = network == standing.rights.net.reaches_out();
    let passes =
        |root: &&WirePath| !standing.is_in_temp(root) && (same_network || !standing.is_in_caches(root));
    let mut roots: Vec<_> = standing.rights.write.iter().filter(passes).cloned().collect();
    if !roots.iter().any(|root| standing.project.is_within(root)) {
        roots.push(standing.project.clone());
    }
    roots
}

/// Resolves a path from the model by its text. When the sub-agent starts, the path is opened without following links.
fn asked_root(standing: &StandingRights, path: &WirePath) -> Result<WirePath, String> {
    let named = plain(&standing.project.as_path().join(path.as_path()));
    let root =
        WirePath::from(named.ok_or_else(|| format!("write: got {path}, expected a path without `..`"))?);
    if root.is_within(&standing.project) {
        return Ok(root);
    }
    if standing.is_in_temp(&root) {
        return Err(format!(
            "write: {path} is in your private temp directory, which no other agent sees; the sub-agent has a temp directory of its own"
        ));
    }
    let is_own = standing.rights.write.iter().any(|own| root.is_within(own)) && !standing.is_in_caches(&root);
    is_own.then_some(root).ok_or_else(|| {
        format!("write: {path} is neither in the project nor in a directory that you can write")
    })
}

/// Removes the lasting caches from access that does not include the project: such an agent must not change them.
fn without_idle_caches(standing: &StandingRights, mut rights: Rights) -> Rights {
    if !rights.allows_write(&standing.project) {
        rights.write.retain(|root| !standing.is_in_caches(root));
    }
    rights
}

fn closed_root(standing: &StandingRights, root: &WirePath) -> Option<Denial> {
    judge::closed_place(standing, &Place { path: root.clone(), grant: Some(root.clone()) })
}

fn child_with(standing: &StandingRights, write: Vec<WirePath>, network: bool) -> ChildRights {
    let lacks = |root: &&WirePath| !standing.rights.write.iter().any(|own| root.is_within(own));
    let lacks_network = network && standing.rights.net.is_off();
    let grant = Grant {
        write: write.iter().filter(lacks).cloned().collect(),
        net: if lacks_network { Network::On } else { Network::Off },
        reach: if lacks_network { standing.reach } else { Reach::default() },
        ..Grant::default()
    };
    let net = match network {
        true if lacks_network => Network::On,
        true => standing.rights.net.clone(),
        false => Network::Off,
    };
    let reach = if lacks_network { standing.reach } else { standing.rights.reach };
    ChildRights { rights: Rights { write, net, reach, ..standing.rights.clone() }.normalised(), grant }
}

fn beyond(standing: &StandingRights, grant: &Grant) -> Denial {
    if let Some(root) = grant.write.first() {
        let missing = MissingRight::WriteForSubAgent { path: root.clone() };
        return by_policy(
            Operation::Write,
            Object::Path(root.clone()),
            missing,
            flags::for_write(standing, root),
        );
    }
    let object = Object::Address("the network".to_owned());
    by_policy(
        Operation::Network,
        object,
        MissingRight::NetworkForSubAgent,
        flags::offered(standing, "--net on"),
    )
}

/// Returns the access of a running sub-agent after its parent's access has changed: never more than before, and never
/// more than the parent's access plus the approved grant.
#[must_use]
pub fn narrowed(child: &StandingRights, parent: &Rights, grant: &Grant) -> Rights {
    let mut allowed = parent.with_grant(grant);
    allowed.write.extend(child.temp.iter().cloned());
    without_idle_caches(child, child.rights.meet(&allowed.normalised()))
}

/// Returns the access of a sub-agent when it starts. Its parent may have lost some of `asked` while the call waited.
#[must_use]
pub fn at_start(asked: &Rights, parent: &StandingRights, grant: &Grant) -> Rights {
    without_idle_caches(parent, asked.meet(&parent.rights.with_grant(grant)))
}

/// Returns what remains of a grant after a user limited the network to `bound`, or removed a directory.
#[must_use]
pub fn narrowed_grant(grant: &Grant, bound: &Network, removed: Option<&WirePath>) -> Grant {
    let mut left = Grant { net: grant.net.meet(bound), ..grant.clone() };
    if left.net.is_off() {
        left.reach = Reach::default();
    }
    if let Some(removed) = removed {
        left.write.retain(|root| !root.is_within(removed));
    }
    left
}
