//! What was approved for the session: listed, revocable, and never wider than an answer made it.

use ipc::effect::{Effect, Exec};
use ipc::id::GrantId;
use ipc::rights::{Grant, Network};
use protocol::approval::SessionGrant;
use protocol::event::DecidedBy;

use super::Subject;
use super::scope::{Covered, is_within, script};
use crate::judgement::command_line::covers;
use crate::judgement::{Ask, StandingRights};

/// What was approved for the session.
#[derive(Debug, Default)]
pub struct SessionGrants {
    remembered: Vec<Remembered>,
    last: GrantId,
}

/// What was approved, and what a match of it may be given.
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
    /// Remembers an approval; gives it as it is listed.
    pub fn add(&mut self, approved: SessionApprovals) -> SessionGrant {
        self.last = self.last.next();
        let grant = (!approved.covered.is_of_files()).then(|| approved.grant.clone().into());
        let listed = SessionGrant { id: self.last, covers: approved.covered.to_string(), grant };
        self.remembered.push(Remembered { id: self.last, approved });
        listed
    }

    /// None at all, and the next has the number after this one: those of an earlier run are asked for again.
    pub fn after(last: GrantId) -> Self {
        Self { remembered: Vec::new(), last }
    }

    /// Forgets an approval; whether there was one.
    pub fn revoke(&mut self, id: GrantId) -> bool {
        let before = self.remembered.len();
        self.remembered.retain(|remembered| remembered.id != id);
        self.remembered.len() < before
    }

    /// Forgets every approval that gives the network; tells which.
    pub fn revoke_network(&mut self) -> Vec<GrantId> {
        let gives = |remembered: &Remembered| remembered.approved.grant.net.reaches_out();
        self.remembered
            .extract_if(.., |remembered| gives(remembered))
            .map(|remembered| remembered.id)
            .collect()
    }

    /// Who has approved this already, with at least what it lacks: an approval of the session, several of them for
    /// the parts of one command, or the user's configuration.
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

/// Whether a command is run as one is that configuration approves: in the project as it was found, with the environment that
/// every command has, and without the network. Where the agent may write without asking, `make` would be what the agent
/// wrote there.
fn is_run_as_configured(exec: &Exec, ask: &Ask, standing: &StandingRights) -> bool {
    let offline = ask.grant.net.is_off() && !exec.network.is_some_and(Network::reaches_out);
    // Where nothing is granted beside the standing rights, whose text it runs makes no difference.
    let found = ask.grant.is_empty() || !standing.allows_write(&exec.cwd);
    offline && exec.environment.is_empty() && exec.cwd.is_within(&standing.project) && found
}
