//! Access for executing a plan: what the plan asks for, within the session's limits.

use ipc::path::WirePath;
use ipc::rights::{Grant, Network, Reach, Rights};
use protocol::plan::{PlaceToCreate, PlanRights};

use super::judge::{Place, plain};
use super::{ChildRights, StandingRights};
use crate::modes::{Position, permits};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRefusal(pub String);

impl StandingRights {
    /// Access for executing a plan, and true if it asks for a network that it cannot have. `self` is the access that
    /// the session's flags and settings allow, with host paths; the planner has less. A missing path counts as the
    /// directory that it is created in.
    pub fn judge_plan(
        &self,
        asked: Option<&PlanRights>,
        to_create: &[PlaceToCreate],
        planner: &Rights,
    ) -> Result<(ChildRights, bool), PlanRefusal> {
        let roots: &[String] = asked.map_or(&[], |asked| &asked.write);
        let network = asked.is_some_and(|asked| asked.network);
        let has_network = network && self.rights.net.reaches_out();
        let mut write =
            roots.iter().map(|root| self.plan_root(root, to_create)).collect::<Result<Vec<_>, _>>()?;
        if write.is_empty() {
            write.push(self.project.clone());
        }
        // Agents execute files from the caches. Only an agent with the session's own network gets them.
        if has_network == self.rights.net.reaches_out() && write.contains(&self.project) {
            write.extend(self.caches.clone());
        }
        let net = if has_network { self.rights.net.clone() } else { Network::Off };
        let reach = if has_network { self.rights.reach } else { Reach::default() };
        // No table of a plan names sockets.
        let sockets = Vec::new();
        let rights = Rights { write, net: net.clone(), reach, sockets, ..self.rights.clone() }.normalised();
        let beyond = |root: &&WirePath| !planner.write.iter().any(|own| root.is_within(own));
        let write = rights.write.iter().filter(beyond).cloned().collect();
        let grant = Grant { write, net, reach, ..Grant::default() };
        Ok((ChildRights { rights, grant }, network && !has_network))
    }

    /// Fails for a path that is neither in the project nor in a directory that the session's flags make writable.
    fn plan_root(&self, asked: &str, to_create: &[PlaceToCreate]) -> Result<WirePath, PlanRefusal> {
        let named = plain(&self.project.as_path().join(asked));
        let root = named
            .map(WirePath::from)
            .ok_or_else(|| PlanRefusal(format!("write: got {asked}, expected a path without `..`")))?;
        let created = to_create.iter().find(|place| place.path == root);
        let root = self.open_to_plans(asked, root)?;
        created.map_or(Ok(root), |place| self.open_to_plans(asked, place.directory.clone()))
    }

    /// The error quotes the plan's own words.
    fn open_to_plans(&self, asked: &str, root: WirePath) -> Result<WirePath, PlanRefusal> {
        if !self.may_be_planned(&root) {
            let remedy = match self.write_grant(&root) {
                Some(flag) => format!("the user can allow it with {flag}"),
                None => "it cannot be allowed here".to_owned(),
            };
            return Err(PlanRefusal(format!(
                "write: {asked} is neither in the project nor in a directory that this session can write; {remedy}"
            )));
        }
        let closed = self.closed_place(&Place { path: root.clone(), grant: Some(root.clone()) });
        match closed {
            Some(denial) => Err(PlanRefusal(format!("write: {asked} cannot be allowed: {denial}"))),
            None => Ok(root),
        }
    }

    /// True if an approval may make a path writable for a plan. The caches come with access to the whole project, and
    /// never by name.
    fn may_be_planned(&self, root: &WirePath) -> bool {
        let allowed = |own: &WirePath| root.is_within(own) && Some(own) != self.temp.as_ref();
        root.is_within(&self.project) || self.rights.write.iter().any(allowed) && !self.is_in_caches(root)
    }

    /// Fails with the reason if the access for executing a plan exceeds the session's, which the user may have reduced.
    pub fn still_allows_plan(&self, rights: &Rights) -> Result<(), String> {
        if !permits(Position::FIRST, self.mode).keeps_approvals() {
            return Err(format!("the mode was changed to {}", self.mode));
        }
        if !self.rights.net.covers(&rights.net) {
            return Err(format!("the network was changed to {}", self.rights.net));
        }
        let gone = |root: &&WirePath| !self.may_be_planned(root) && self.caches.as_ref() != Some(root);
        rights.write.iter().find(gone).map_or(Ok(()), |root| Err(format!("{root} is no longer writable")))
    }

    pub fn beyond_flags(&self, rights: &Rights) -> Option<String> {
        let own = |root: &&WirePath| !self.rights.write.iter().any(|own| root.is_within(own));
        let root = rights.write.iter().find(own);
        let network = !self.rights.net.covers(&rights.net);
        let flag =
            |root| self.write_grant(root).map(|flag| format!(" ({flag} allows it)")).unwrap_or_default();
        root.map(|root| format!("writing {root}{}", flag(root)))
            .or_else(|| network.then(|| format!("the network (--net {} allows it)", rights.net.flag())))
    }
}
