//! Decides on calls of MCP servers' tools. They need no approval if the server can do no more than the agent.

use ipc::denial::{Denial, Object, Operation};
use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::rights::{Network, Rights};

use super::denial::by_policy;
use super::{StandingRights, flags};
use crate::modes::{Position, permits};
use crate::tools::{ExternalCall, GuestTool, PlannedServer};
use protocol::shell_word::shell_word;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeniedPart {
    First,
    SubAgent,
    Planner,
    Executor,
}

/// True if the agent may do everything that the server may, and the server is given no environment variable. The kernel
/// enforces the server's access. The server's own statements about its tools do not count.
pub(super) fn covers(standing: &StandingRights, guest: &GuestTool) -> bool {
    // The agent's private temp directory is not the server's, even if it has the same path.
    let is_own = |path: &WirePath| standing.temp.as_ref().is_some_and(|temp| path.is_within(temp));
    let is_hosts = |path: &WirePath| !is_own(path) || path.is_within(&standing.project);
    let write = standing.rights.write.iter().filter(|root| is_hosts(root)).cloned().collect();
    let own = Rights { write, ..standing.rights.clone() };
    let GuestTool { rights, access, .. } = guest;
    access.variables.is_empty()
        && rights.read.iter().all(is_hosts)
        && rights.write.iter().all(|path| !standing.read_only.iter().any(|closed| path.is_within(closed)))
        && own.covers(rights)
}

/// True if a call runs without a request only because the user's settings allow it.
pub fn runs_by_settings(standing: &StandingRights, call: &ExternalCall) -> bool {
    call.guest.as_ref().is_some_and(|guest| guest.always && !covers(standing, guest))
}

/// Describes the first server of a plan that may do more than the flags of this session allow; `None` if there is none.
pub fn beyond_flags(standing: &StandingRights, servers: &[PlannedServer]) -> Option<String> {
    let is_beyond = |server: &&PlannedServer| server.guest().is_some_and(|guest| !covers(standing, guest));
    let server = servers.iter().find(is_beyond)?;
    let flags = server.guest().and_then(|guest| flags_beyond(standing, guest));
    let remedy = flags.map(|flags| format!(" ({flags} allows it)")).unwrap_or_default();
    Some(format!("calls of the MCP server {}{remedy}", server.shown))
}

/// Returns what the model can do about a denied call. `None` for a call of the first agent or of an unconfined server.
pub fn remedy(standing: &StandingRights, call: &ExternalCall, part: DeniedPart) -> Option<String> {
    let guest = call.guest.as_deref()?;
    let server = &call.server;
    let remedy = match part {
        DeniedPart::First => return None,
        DeniedPart::SubAgent => {
            let more = match lacked(standing, guest) {
                Some(lacked) => format!(", or start a sub-agent with {lacked}"),
                None => String::new(),
            };
            format!("say so in your report: the agent that started you can make the call itself{more}")
        }
        DeniedPart::Planner => format!(
            "the execution of a plan can call this server if the plan lists it: `- server: {server}` below `## Rights`, which a person approves"
        ),
        DeniedPart::Executor => format!(
            "the approved plan does not list this server, so the step fails; a plan lists a server with `- server: {server}` below `## Rights`"
        ),
    };
    Some(format!(": the MCP server `{server}` can do more than you ({}); {remedy}", guest.access))
}

/// Returns the arguments of `spawn_agent` that give a sub-agent all access of a server. `None` if no arguments do.
fn lacked(standing: &StandingRights, guest: &GuestTool) -> Option<String> {
    let GuestTool { rights, access, .. } = guest;
    let lacks = |path: &&WirePath| !standing.allows_write(path);
    let write: Vec<_> = access.write.iter().filter(lacks).map(|path| format!("\"{path}\"")).collect();
    let write = (!write.is_empty()).then(|| format!("write: [{}]", write.join(", ")));
    let network = (!standing.rights.net.covers(&rights.net)).then(|| "network: true".to_owned());
    let lacked: Vec<_> = write.into_iter().chain(network).collect();
    (access.variables.is_empty() && !lacked.is_empty()).then(|| lacked.join(" and "))
}

/// Returns the denial of a call if nobody can be asked. Only headless runs have a flag for single tools.
pub(super) fn denial(standing: &StandingRights, call: &ExternalCall, agent: Position) -> Denial {
    let object = Object::Tool(format!("{} of {}", call.tool, call.server));
    let asks = permits(Position::FIRST, standing.mode).asks();
    let missing = call.guest.as_deref().and_then(|guest| flags_beyond(standing, guest));
    let grant = match missing {
        Some(flags) => flags::offered(standing, &flags),
        None if asks => None,
        None if call.guest.is_some() && agent == Position::FIRST && standing.modes.is_none() => {
            let tool = format!("{}/{}", call.server, call.tool);
            flags::offered(standing, &format!("--allow-tool {}", shell_word(tool)))
        }
        None => flags::offered(standing, "--mode ask"),
    };
    by_policy(Operation::Call, object, MissingRight::Approval, grant)
}

fn flags_beyond(standing: &StandingRights, guest: &GuestTool) -> Option<String> {
    let GuestTool { rights, access, .. } = guest;
    let lacks = |path: &&WirePath| !standing.allows_write(path);
    let mut flags: Vec<_> = access
        .write
        .iter()
        .filter(lacks)
        .map(|path| format!("--write {}", shell_word(path.as_path())))
        .collect();
    match &rights.net {
        net if standing.rights.net.covers(net) => {}
        Network::Hosts(hosts) => flags.push(format!("--net {}", hosts.to_string().replace(' ', ","))),
        Network::On | Network::Off => flags.push("--net on".to_owned()),
    }
    let widened = Rights {
        write: [standing.rights.write.as_slice(), &access.write].concat(),
        net: standing.rights.net.join(&rights.net),
        ..standing.rights.clone()
    };
    let helps = covers(&StandingRights { rights: widened.normalised(), ..standing.clone() }, guest);
    (helps && !flags.is_empty()).then(|| flags.join(" "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ipc::confinement::Tier;
    use ipc::rights::{Execution, HostRule, Hosts};
    use proptest::prelude::*;
    use protocol::approval::{ApprovalMode, ServerAccess};
    use protocol::plan::PlanRights;

    use super::*;
    use crate::judgement::{SpawnVerdict, Verdict, judge, plan, spawn};
    use crate::tools::{Invocation, OfferedServer, OfferedTool, SpawnAgent};

    fn guest(rights: Rights, variables: &[&str]) -> GuestTool {
        let access = ServerAccess {
            read: rights.read.clone(),
            write: rights.write.clone(),
            net: rights.net.clone(),
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
        };
        GuestTool { rights, access, definition: "d".to_owned(), always: false }
    }

    fn call(guest: GuestTool) -> Invocation {
        Invocation::External(ExternalCall {
            server: "s".to_owned(),
            tool: "t".to_owned(),
            json: "{}".to_owned(),
            guest: Some(Arc::new(guest)),
        })
    }

    fn standing(rights: Rights, mode: ApprovalMode) -> StandingRights {
        StandingRights::new(rights.normalised(), "/p".into(), Some("/t".into()), mode)
    }

    fn place() -> impl Strategy<Value = WirePath> {
        prop_oneof![
            Just("/"),
            Just("/p"),
            Just("/p/a"),
            Just("/p/a/b"),
            Just("/q"),
            Just("/q/a"),
            Just("/t"),
            Just("/t/x")
        ]
        .prop_map(WirePath::from)
    }

    fn net() -> impl Strategy<Value = Network> {
        let hosts = |names: &[&str]| {
            Network::Hosts(Hosts::new(names.iter().map(|name| name.parse::<HostRule>().unwrap())).unwrap())
        };
        prop_oneof![
            Just(Network::Off),
            Just(Network::On),
            Just(hosts(&["a.example"])),
            Just(hosts(&["a.example", "b.example"])),
        ]
    }

    fn rights() -> impl Strategy<Value = Rights> {
        let places = || proptest::collection::vec(place(), 0..3);
        let exec = prop_oneof![Just(Execution::Allowed), Just(Execution::Denied)];
        (places(), places(), places(), places(), net(), exec).prop_map(
            |(read, hidden, write, protected, net, exec)| {
                Rights { read, hidden, write, protected, net, exec, ..Rights::default() }.normalised()
            },
        )
    }

    proptest! {
        #[test]
        fn nobody_gets_more_through_a_guest_than_it_has(
            own in rights(), of_guest in rights(), path in place(), has_secret in any::<bool>(),
        ) {
            let guest = guest(of_guest.clone(), if has_secret { &["TOKEN"] } else { &[] });
            for mode in ApprovalMode::ALL {
                let standing = standing(own.clone(), mode);
                for position in [Position::FIRST, Position::SUB] {
                    match judge::call(&standing, &call(guest.clone()), position) {
                        Verdict::Run => {
                            prop_assert!(!has_secret);
                            prop_assert!(standing.rights.net.covers(&of_guest.net));
                            prop_assert!(!of_guest.allows_read(&path) || standing.rights.allows_read(&path));
                            prop_assert!(!of_guest.allows_write(&path) || standing.rights.allows_write(&path));
                        }
                        Verdict::Ask(_) => prop_assert!(permits(position, mode).asks()),
                        Verdict::Deny(_) => prop_assert!(!permits(position, mode).asks()),
                        Verdict::Prepare => prop_assert!(false),
                    }
                }
            }
        }
    }

    fn offered(guest: &GuestTool) -> OfferedServer {
        let tool =
            OfferedTool { name: "s__t".to_owned(), tool: "t".to_owned(), guest: Arc::new(guest.clone()) };
        OfferedServer { name: "s".to_owned(), access: guest.access.clone(), tools: vec![tool] }
    }

    /// Checks that a server has nothing that an agent with the access `own` lacks.
    fn is_harmless(guest: &GuestTool, own: &Rights, places: &[WirePath]) -> Result<(), TestCaseError> {
        prop_assert!(guest.access.variables.is_empty());
        prop_assert!(own.net.covers(&guest.rights.net));
        for path in places {
            prop_assert!(!guest.rights.allows_read(path) || own.allows_read(path));
            prop_assert!(!guest.rights.allows_write(path) || own.allows_write(path));
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn nobody_in_a_tree_gets_more_through_a_guest_than_it_has_or_a_person_approved(
            own in rights(),
            of_guest in rights(),
            of_other in rights(),
            places in proptest::collection::vec(place(), 1..6),
            asked in (any::<bool>(), any::<bool>(), proptest::collection::vec(place(), 0..3)),
            (has_secret, is_listed, is_approved) in any::<(bool, bool, bool)>(),
            mode in proptest::sample::select(ApprovalMode::ALL.to_vec()),
        ) {
            let guest = guest(of_guest, if has_secret { &["TOKEN"] } else { &[] });
            let external = call(guest.clone());
            let Invocation::External(called) = &external else { return Ok(()) };
            let parent = standing(own, mode);
            // A sub-agent: its rights are its parent's, and a grant that a person approved.
            let (writes, network, write) = asked;
            let spawn = SpawnAgent {
                task: "t".to_owned(), writes, write, network, role: None, servers: Vec::new(), model: None,
                max_steps: None,
            };
            let child = match spawn::judge(&parent, &spawn, Position::FIRST) {
                SpawnVerdict::Run(child) => Some(child),
                SpawnVerdict::Ask(child, _) => is_approved.then_some(child),
                SpawnVerdict::Deny(_) | SpawnVerdict::Misfit(_) => None,
            };
            if let Some(child) = child {
                let rights = spawn::at_start(&child.rights, &parent, &child.grant);
                let standing = StandingRights { is_fixed: true, ..standing(rights, mode) };
                match judge::call(&standing, &external, Position::SUB) {
                    Verdict::Run => is_harmless(&guest, &standing.rights, &places)?,
                    Verdict::Deny(_) => {
                        let said = remedy(&standing, called, DeniedPart::SubAgent).unwrap();
                        prop_assert!(said.contains("can do more than you"));
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            // A planner reads, and writes its temp.
            let reads = Rights { write: vec!["/t".into()], net: Network::Off, ..parent.rights.clone() };
            let planner = standing(reads, ApprovalMode::Deny);
            match judge::call(&planner, &external, Position::PLANNER) {
                Verdict::Run => is_harmless(&guest, &planner.rights, &places)?,
                other => prop_assert!(matches!(other, Verdict::Deny(_))),
            }
            // An executor calls what its rights cover, and what the plan that a person approved lists as it was shown.
            let asked = PlanRights {
                network,
                servers: if is_listed { vec!["s".to_owned()] } else { Vec::new() },
                ..PlanRights::default()
            };
            let Ok((child, _)) = plan::judge(&parent, Some(&asked), &[], &planner.rights) else { return Ok(()) };
            let planned = PlannedServer::of(Some(&asked), &[offered(&guest)]).unwrap();
            let executor = standing(child.rights, mode);
            if judge::call(&executor, &external, Position::SUB) == Verdict::Run {
                is_harmless(&guest, &executor.rights, &places)?;
            }
            let is_planned = |call: &ExternalCall| planned.iter().any(|server| server.covers(call));
            prop_assert_eq!(is_planned(called), is_listed);
            prop_assert_eq!(planned.iter().any(|server| server.shown.access == guest.access), is_listed);
            let widened = GuestTool { rights: of_other.clone(), ..guest.clone() };
            let widened = ExternalCall { guest: Some(Arc::new(widened)), ..called.clone() };
            prop_assert!(!is_planned(&widened) || of_other == guest.rights);
            // Flags approve a plan only if its servers can do no more than the session itself.
            if beyond_flags(&parent, &planned).is_none() && is_listed {
                is_harmless(&guest, &parent.rights, &places)?;
            }
        }
    }

    #[test]
    fn a_server_within_the_rights_of_the_agent_runs_and_one_beyond_them_is_asked_for_or_denied() {
        let reads = || Rights { read: vec!["/".into()], ..Rights::default() };
        let agent = |mode| standing(reads(), mode);
        let said = |guest: GuestTool, mode| match judge::call(&agent(mode), &call(guest), Position::FIRST) {
            Verdict::Deny(denial) => denial.to_string(),
            Verdict::Ask(_) => "asks".to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(said(guest(reads(), &[]), ApprovalMode::Deny), "Run");
        assert_eq!(said(guest(reads(), &["TOKEN"]), ApprovalMode::Ask), "asks");
        let net = Network::Hosts(
            Hosts::new(["a.example", "b.example"].map(|name| name.parse::<HostRule>().unwrap())).unwrap(),
        );
        let wide = || Rights { write: vec!["/q".into()], net: net.clone(), ..reads() };
        assert_eq!(said(guest(wide(), &[]), ApprovalMode::Ask), "asks");
        insta::assert_snapshot!(said(guest(wide(), &[]), ApprovalMode::Deny), @"blocked by the policy: call t of s; missing access: an approval of this call; the user can allow it with --write /q --net a.example,b.example");
        insta::assert_snapshot!(said(guest(wide(), &["TOKEN"]), ApprovalMode::Deny), @"blocked by the policy: call t of s; missing access: an approval of this call; the user can allow it with --allow-tool s/t");
    }

    #[test]
    fn the_settings_of_a_project_let_its_first_agent_call_a_tool_and_no_other_agent() {
        let always = || GuestTool { always: true, ..guest(Rights::default(), &["TOKEN"]) };
        let agent = standing(Rights::default(), ApprovalMode::Deny);
        assert!(matches!(judge::call(&agent, &call(always()), Position::FIRST), Verdict::Run));
        for position in [Position::SUB, Position::PLANNER] {
            assert!(
                matches!(judge::call(&agent, &call(always()), position), Verdict::Deny(_)),
                "{position:?}"
            );
        }
        let Invocation::External(by_settings) = call(always()) else { panic!("it is external") };
        assert!(runs_by_settings(&agent, &by_settings));
        let covered = GuestTool { always: true, ..guest(Rights::default(), &[]) };
        let Invocation::External(covered) = call(covered) else { panic!("it is external") };
        assert!(!runs_by_settings(&agent, &covered));
    }

    #[test]
    fn an_approval_of_a_tool_covers_its_calls_and_ends_with_its_definition_and_its_rights() {
        use protocol::approval::{AskKind, SessionScope};

        use crate::approval::{KeptSetting, Scope, SessionApprovals, SessionGrants, Subject};
        use crate::judgement::Ask;

        let subject = |json: &str, guest: Option<GuestTool>, tool: &str| {
            Subject::External(ExternalCall {
                server: "s".to_owned(),
                tool: tool.to_owned(),
                json: json.to_owned(),
                guest: guest.map(Arc::new),
            })
        };
        let reads = || Rights { read: vec!["/".into()], ..Rights::default() };
        let usual = || Some(guest(reads(), &["TOKEN"]));
        let ask = Ask { kind: AskKind::ExternalTool, grant: ipc::rights::Grant::default() };
        let standing = standing(reads(), ApprovalMode::Ask);
        let approved = |subject: &Subject| Scope::of(SessionScope::Tool, &ask, subject, &standing);
        let Ok(Scope::Remembered(covered)) = approved(&subject("{}", usual(), "t")) else {
            panic!("it fits")
        };
        let covers = |subject: &Subject| covered.iter().any(|covered| covered.covers(subject));
        assert!(covers(&subject("{\"q\":1}", usual(), "t")));
        assert!(!covers(&subject("{}", usual(), "u")));
        assert!(!covers(&subject("{}", None, "t")));
        assert!(!covers(&subject("{}", Some(guest(reads(), &["TOKEN", "MORE"])), "t")));
        let changed = GuestTool { definition: "e".to_owned(), ..guest(reads(), &["TOKEN"]) };
        assert!(!covers(&subject("{}", Some(changed), "t")));
        assert!(approved(&subject("{}", None, "t")).is_err(), "nothing confines that server");
        let kept = |subject: &Subject| Scope::of(SessionScope::ToolInProject, &ask, subject, &standing);
        assert!(
            matches!(kept(&subject("{}", usual(), "t")), Ok(Scope::Kept { setting: KeptSetting::Tool(call), .. }) if call.tool == "t")
        );
        assert!(kept(&subject("{}", None, "t")).is_err());
        let mut remembered = SessionGrants::default();
        let online =
            GuestTool { rights: Rights { net: Network::On, ..reads() }, ..guest(reads(), &["TOKEN"]) };
        for (subject, net) in
            [(subject("{}", Some(online), "t"), Network::On), (subject("{}", usual(), "t"), Network::Off)]
        {
            let Ok(Scope::Remembered(covered)) = approved(&subject) else { panic!("it fits") };
            for covered in covered {
                assert_eq!(covered.server_net(), Some(&net));
                remembered.add(SessionApprovals { covered, grant: ipc::rights::Grant::default() });
            }
        }
        assert_eq!(remembered.revoke_network(&Network::On).len(), 0);
        assert_eq!(remembered.revoke_network(&Network::Off).len(), 1, "that of the server with the network");
    }

    #[test]
    fn the_private_temp_of_an_agent_is_another_place_than_that_of_the_host() {
        let reads = Rights { read: vec!["/".into()], write: vec!["/t".into()], ..Rights::default() };
        let agent = standing(reads, ApprovalMode::Deny).seen_in(Tier::Full);
        assert_eq!(agent.temp, Some("/tmp".into()));
        for rights in [
            Rights { write: vec!["/tmp/x".into()], ..Rights::default() },
            Rights { read: vec!["/tmp/x".into()], ..Rights::default() },
        ] {
            assert!(!covers(&agent, &guest(rights, &[])));
        }
        assert!(covers(&agent, &guest(Rights { read: vec!["/usr".into()], ..Rights::default() }, &[])));
    }
}
