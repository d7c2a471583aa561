//! Approvals that last for the session. They can be listed and revoked, and cover no more than the answer said.

use ipc::effect::{Effect, Exec};
use ipc::id::GrantId;
use ipc::rights::{Grant, Network};
use protocol::approval::SessionGrant;
use protocol::event::DecidedBy;

use super::Subject;
use super::scope::{Covered, is_within, script};
use crate::judgement::command_line::covers;
use crate::judgement::{Ask, StandingRights};

#[derive(Debug, Default)]
pub struct SessionGrants {
    remembered: Vec<Remembered>,
    last: GrantId,
}

/// Actions that an approval covers, and the access that each of them gets.
#[derive(Clone, Debug)]
pub struct SessionApprovals {
    pub covered: Covered,
    pub grant: Grant,
}

#[derive(Debug)]
struct Remembered {
    id: GrantId,
    approved: SessionApprovals,
}

impl SessionGrants {
    /// Adds an approval. Returns the approval's entry for lists of approvals.
    pub fn add(&mut self, approved: SessionApprovals) -> SessionGrant {
        self.last = self.last.next();
        let grant = (!approved.covered.is_of_files()).then(|| approved.grant.clone().into());
        let listed = SessionGrant { id: self.last, covers: approved.covered.to_string(), grant };
        self.remembered.push(Remembered { id: self.last, approved });
        listed
    }

    /// Returns an empty list whose entries get ids after `last`. Approvals of earlier runs of the session are void.
    pub fn after(last: GrantId) -> Self {
        Self { remembered: Vec::new(), last }
    }

    pub fn revoke(&mut self, id: GrantId) -> bool {
        let before = self.remembered.len();
        self.remembered.retain(|remembered| remembered.id != id);
        self.remembered.len() < before
    }

    /// Removes every approval whose actions or server have more network access than `bound`. Returns the removed ids.
    pub fn revoke_network(&mut self, bound: &Network) -> Vec<GrantId> {
        let gives = |remembered: &Remembered| {
            let SessionApprovals { covered, grant } = &remembered.approved;
            !bound.covers(&grant.net) || covered.server_net().is_some_and(|net| !bound.covers(net))
        };
        self.remembered
            .extract_if(.., |remembered| gives(remembered))
            .map(|remembered| remembered.id)
            .collect()
    }

    /// Returns the source of the approval that covers the action and all its missing access: an approval of the
    /// session, several for the parts of a command, or the person's settings.
    pub fn approve(
        &self,
        subject: &Subject,
        ask: &Ask,
        standing: &StandingRights,
        preapproved: &[Vec<String>],
    ) -> Option<DecidedBy> {
        let enough = |approved: &SessionApprovals| {
            let of_files = approved.covered.is_of_files() && ask.grant.net.is_off();
            of_files || is_within(&ask.grant, &approved.grant)
        };
        let candidates: Vec<_> =
            self.remembered.iter().filter(|remembered| enough(&remembered.approved)).collect();
        let single = candidates.iter().find(|remembered| remembered.approved.covered.covers(subject));
        if let Some(remembered) = single {
            return Some(DecidedBy::SessionGrant(remembered.id));
        }
        let Effect::Exec(exec) = subject.effect()? else { return None };
        let text = script(exec)?;
        let configured = if is_run_as_configured(exec, ask, standing) { preapproved } else { &[] };
        if !configured.is_empty() && covers(configured, text) {
            return Some(DecidedBy::Configuration);
        }
        let with_words = candidates.iter().filter_map(|remembered| {
            Some((remembered.id, remembered.approved.covered.prefix_for(exec)?.clone()))
        });
        let (ids, mut words): (Vec<GrantId>, Vec<_>) = with_words.unzip();
        words.extend(configured.iter().cloned());
        covers(&words, text).then(|| ids.last().copied().map(DecidedBy::SessionGrant)).flatten()
    }
}

/// True if a command runs as the prefixes in the person's settings assume: in the project, with the standard
/// environment and without network. If the agent may write the directory of the command, prefixes do not count, because
/// `make` would run a file of the agent.
pub(super) fn is_run_as_configured(exec: &Exec, ask: &Ask, standing: &StandingRights) -> bool {
    let offline = ask.grant.net.is_off() && !exec.network.as_ref().is_some_and(Network::reaches_out);
    // Without additional rights it does not matter who wrote the files that the command runs.
    let found = ask.grant.is_empty() || !standing.allows_write(&exec.cwd);
    offline && exec.environment.is_empty() && exec.cwd.is_within(standing.project()) && found
}
