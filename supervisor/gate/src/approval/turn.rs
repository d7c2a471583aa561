//! A yes to everything in a turn: the requests that it answers.
//!
//! The mode stays as it is. Only the writable directories become those of the mode that asks for nothing, and the network is off:
//! whatever that mode would deny is still asked about.

use ipc::path::WirePath;
use ipc::rights::Grant;
use protocol::approval::TurnAccess;

use super::Subject;
use crate::judgement::{Ask, SpawnVerdict, StandingRights, Verdict};
use crate::modes::Position;
use crate::tools::Invocation;

impl StandingRights {
    /// Returns the access that a yes to everything in the turn gives, for the request; `turn` has the rights of the turn.
    pub fn turn_access(&self, turn: &Self) -> TurnAccess {
        let is_new = |root: &&WirePath| !self.rights.allows_write(root);
        TurnAccess {
            write: turn.rights.write.iter().filter(is_new).cloned().collect(),
            rights: turn.summary().into(),
            network_after: self.rights.net.clone(),
            confirms_commands: turn.confirm_shell,
        }
    }

    /// True if an action that somebody is asked about runs without a request under these rights, which are those of the turn as
    /// its worker sees them. `host` has the same rights with host paths.
    pub fn allows_in_turn(&self, host: &Self, ask: &Ask, subject: &Subject) -> bool {
        self.includes(&ask.grant)
            && match subject {
                Subject::Effect { tool, proposal, .. } if proposal.places.is_empty() => {
                    self.judge(&Invocation::Worker(tool.clone()), Position::FIRST) == Verdict::Run
                }
                Subject::Effect { proposal, .. } => self.judge_change(&proposal.places) == Verdict::Run,
                Subject::Changes(all) => {
                    all.iter().all(|(_, change)| self.judge_change(&change.proposal.places) == Verdict::Run)
                }
                Subject::Agent(agent) => {
                    matches!(host.judge_spawn(&agent.spawn, Position::FIRST), SpawnVerdict::Run(_))
                }
                // These are approved by themselves in every mode.
                Subject::External(_) | Subject::Fetch(_) | Subject::Plan(_) => false,
            }
    }

    fn includes(&self, grant: &Grant) -> bool {
        let Grant { write, net, reach: _, sockets } = grant;
        write.iter().all(|path| self.writes_unasked(path))
            && net.is_off()
            && sockets.iter().all(|socket| self.rights.sockets.contains(socket))
    }
}
