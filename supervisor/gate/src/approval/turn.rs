//! Approvals of everything in a turn: the access that they give, and the requests that they answer.
//!
//! The agent stays in its mode. Only its writable directories become those of mode `auto`, without network. Actions
//! that mode `auto` would deny still need an approval each.

use ipc::path::WirePath;
use ipc::rights::Grant;
use protocol::approval::TurnAccess;

use super::Subject;
use crate::judgement::{Ask, SpawnVerdict, StandingRights, Verdict, judge, spawn};
use crate::modes::Position;
use crate::tools::Invocation;

/// Returns the access that the request shows: `standing` is the access now, `turn` that for the rest of the turn.
pub fn turn_access(standing: &StandingRights, turn: &StandingRights) -> TurnAccess {
    let is_new = |root: &&WirePath| !standing.allows_write(root);
    TurnAccess {
        write: turn.rights().write.iter().filter(is_new).cloned().collect(),
        rights: turn.summary().into(),
        network_after: standing.rights().net.clone(),
        confirms_commands: turn.confirms_commands(),
    }
}

/// True if the action needs no request once the agent has the access of the turn. `standing` has the paths that the
/// worker sees, `host` is the same access with host paths.
pub fn allowed_in_turn(
    standing: &StandingRights,
    host: &StandingRights,
    ask: &Ask,
    subject: &Subject,
) -> bool {
    includes(standing, &ask.grant)
        && match subject {
            Subject::Effect { tool, proposal, .. } if proposal.places.is_empty() => {
                judge::call(standing, &Invocation::Worker(tool.clone()), Position::FIRST) == Verdict::Run
            }
            Subject::Effect { proposal, .. } => judge::change(standing, &proposal.places) == Verdict::Run,
            Subject::Changes(all) => {
                all.iter().all(|(_, change)| judge::change(standing, &change.proposal.places) == Verdict::Run)
            }
            Subject::Agent(agent) => {
                matches!(spawn::judge(host, &agent.spawn, Position::FIRST), SpawnVerdict::Run(_))
            }
            // These are approved by themselves in every mode.
            Subject::External(_) | Subject::Fetch(_) | Subject::Plan(_) => false,
        }
}

fn includes(standing: &StandingRights, grant: &Grant) -> bool {
    let Grant { write, net, reach: _, sockets } = grant;
    write.iter().all(|path| standing.writes_unasked(path))
        && net.is_off()
        && sockets.iter().all(|socket| standing.rights().sockets.contains(socket))
}

#[cfg(test)]
mod tests {
    use ipc::confinement::Tier;
    use ipc::rights::{Network, Rights};
    use protocol::approval::ApprovalMode;

    use super::*;
    use crate::judgement::change;
    use crate::modes::Modes;

    fn standing(project: &str, mode: ApprovalMode) -> StandingRights {
        let rights = Rights { write: vec!["/tmp/bw-1".into()], net: Network::On, ..Rights::default() };
        let modes = Some(Modes { auto: vec![project.into()], always: Vec::new() });
        let standing = StandingRights::new(rights, project.into(), Some("/tmp/bw-1".into()), mode);
        standing.with_modes(modes)
    }

    #[test]
    fn the_access_names_each_place_that_becomes_writable_wherever_the_project_is() {
        for tier in [Tier::Full, Tier::Floor, Tier::FloorUnmediated] {
            // In the full tier the private temp directory stands over /tmp.
            for project in ["/p", "/tmp/p"] {
                let before = standing(project, ApprovalMode::Ask);
                let rights = change::for_turn(&before, Position::FIRST).unwrap();
                assert!(rights.net.is_off(), "{tier}, {project}");
                let turn = before.clone().with_rights(rights);
                let access = turn_access(&before.seen_in(tier), &turn.seen_in(tier));
                assert_eq!(access.write, [WirePath::from(project)], "{tier}");
                assert_eq!(access.network_after, Network::On);
            }
        }
    }

    #[test]
    fn nobody_who_is_not_asked_is_offered_a_turn() {
        let offers = |mode, position| change::for_turn(&standing("/p", mode), position).is_some();
        assert!(offers(ApprovalMode::Ask, Position::FIRST));
        for (mode, position) in [
            (ApprovalMode::Auto, Position::FIRST),
            (ApprovalMode::Deny, Position::FIRST),
            (ApprovalMode::Ask, Position::SUB),
            (ApprovalMode::Ask, Position::PLANNER),
        ] {
            assert!(!offers(mode, position), "{mode}, {position:?}");
        }
        let fixed = standing("/p", ApprovalMode::Ask).with_modes(None);
        assert!(change::for_turn(&fixed, Position::FIRST).is_none());
    }

    #[test]
    fn what_the_host_runs_later_is_not_in_the_turn() {
        let before = standing("/p", ApprovalMode::Ask);
        let rights = change::for_turn(&before, Position::FIRST).unwrap();
        let turn = before.with_rights(rights);
        for (path, writes) in [
            ("/p/src/a", true),
            ("/p", true),
            ("/p/.git/index", true),
            ("/p/.git/config", false),
            ("/p/.git/hooks/pre-commit", false),
            ("/p/sub/.git/hooks/x", false),
            ("/p/.vscode/tasks.json", false),
            ("/etc/hosts", false),
        ] {
            assert_eq!(turn.writes_unasked(&path.into()), writes, "{path}");
        }
    }
}
