//! Calls of the tools of servers: a call runs without an approval only where the server can do no more than the agent.

use ipc::denial::{Denial, Object, Operation};
use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::rights::{Network, Rights};

use super::StandingRights;
use super::judge::refused;
use crate::modes::{Position, permits};
use crate::tools::{ExternalCall, GuestTool};
use protocol::shell_word::shell_word;

impl StandingRights {
    /// True if the agent may do everything that the server may, and the server is given no variable. The kernel holds the server to
    /// its rights, so that such a call gives the agent nothing. Hints of the server count for nothing.
    pub(super) fn covers_guest(&self, guest: &GuestTool) -> bool {
        // Directories of the agent alone are other directories for the server, also where they have the same name.
        let is_own = |path: &WirePath| self.temp.as_ref().is_some_and(|temp| path.is_within(temp));
        let is_hosts = |path: &WirePath| !is_own(path) || path.is_within(&self.project);
        let write = self.rights.write.iter().filter(|root| is_hosts(root)).cloned().collect();
        let standing = Rights { write, ..self.rights.clone() };
        let GuestTool { rights, access, .. } = guest;
        access.variables.is_empty()
            && rights.read.iter().all(is_hosts)
            && rights.write.iter().all(|path| !self.read_only.iter().any(|closed| path.is_within(closed)))
            && standing.covers(rights)
    }

    /// True if the person's settings alone let a call run: the agent's rights do not cover the server's.
    pub fn runs_by_settings(&self, call: &ExternalCall) -> bool {
        call.guest.as_ref().is_some_and(|guest| guest.always && !self.covers_guest(guest))
    }

    /// Returns the denial of a call for which nobody can be asked.
    pub(super) fn no_external(&self, call: &ExternalCall) -> Denial {
        let object = Object::Tool(format!("{} of {}", call.tool, call.server));
        let asks = permits(Position::FIRST, self.mode).asks();
        let missing = call.guest.as_deref().and_then(|guest| self.flags_beyond(guest));
        let grant = match missing {
            Some(flags) => self.offered(&flags),
            None if asks => None,
            None => self.offered("--mode ask"),
        };
        refused(Operation::Call, object, MissingRight::Approval, grant)
    }

    /// Returns the flags with which the agent could do what the server can. `None` if no flags help.
    fn flags_beyond(&self, guest: &GuestTool) -> Option<String> {
        let GuestTool { rights, access, .. } = guest;
        let lacks = |path: &&WirePath| !self.allows_write(path);
        let mut flags: Vec<_> = access
            .write
            .iter()
            .filter(lacks)
            .map(|path| format!("--write {}", shell_word(path.as_path())))
            .collect();
        match &rights.net {
            net if self.rights.net.covers(net) => {}
            Network::Hosts(hosts) => flags.push(format!("--net {}", hosts.to_string().replace(' ', ","))),
            Network::On | Network::Off => flags.push("--net on".to_owned()),
        }
        let widened = Rights {
            write: [self.rights.write.as_slice(), &access.write].concat(),
            net: self.rights.net.join(&rights.net),
            ..self.rights.clone()
        };
        let helps = Self { rights: widened.normalised(), ..self.clone() }.covers_guest(guest);
        (helps && !flags.is_empty()).then(|| flags.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ipc::confinement::Tier;
    use ipc::rights::{Execution, HostRule, Hosts};
    use proptest::prelude::*;
    use protocol::approval::{ApprovalMode, ServerAccess};

    use super::*;
    use crate::judgement::Verdict;
    use crate::tools::Invocation;

    /// A tool of a server with these rights.
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
                    match standing.judge(&call(guest.clone()), position) {
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

    #[test]
    fn a_server_within_the_rights_of_the_agent_runs_and_one_beyond_them_is_asked_for_or_denied() {
        let reads = || Rights { read: vec!["/".into()], ..Rights::default() };
        let agent = |mode| standing(reads(), mode);
        let said = |guest: GuestTool, mode| match agent(mode).judge(&call(guest), Position::FIRST) {
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
        insta::assert_snapshot!(said(guest(wide(), &[]), ApprovalMode::Deny), @"denied by the policy: call t of s; the missing right is: an approval of this very call; the user can allow it with --write /q --net a.example,b.example");
        insta::assert_snapshot!(said(guest(wide(), &["TOKEN"]), ApprovalMode::Deny), @"denied by the policy: call t of s; the missing right is: an approval of this very call; the user can allow it with --mode ask");
    }

    #[test]
    fn the_settings_of_a_project_let_its_first_agent_call_a_tool_and_no_other_agent() {
        let always = || GuestTool { always: true, ..guest(Rights::default(), &["TOKEN"]) };
        let agent = standing(Rights::default(), ApprovalMode::Deny);
        assert!(matches!(agent.judge(&call(always()), Position::FIRST), Verdict::Run));
        for position in [Position::SUB, Position::PLANNER] {
            assert!(matches!(agent.judge(&call(always()), position), Verdict::Deny(_)), "{position:?}");
        }
        let Invocation::External(by_settings) = call(always()) else { panic!("it is external") };
        assert!(agent.runs_by_settings(&by_settings));
        let covered = GuestTool { always: true, ..guest(Rights::default(), &[]) };
        let Invocation::External(covered) = call(covered) else { panic!("it is external") };
        assert!(!agent.runs_by_settings(&covered));
    }

    #[test]
    fn an_approval_of_a_tool_covers_its_calls_and_ends_with_its_definition_and_its_rights() {
        use protocol::approval::{AskKind, SessionScope};

        use crate::approval::{Scope, Subject};
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
            matches!(kept(&subject("{}", usual(), "t")), Ok(Scope::Kept { call, .. }) if call.tool == "t")
        );
        assert!(kept(&subject("{}", None, "t")).is_err());
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
            assert!(!agent.covers_guest(&guest(rights, &[])));
        }
        assert!(agent.covers_guest(&guest(Rights { read: vec!["/usr".into()], ..Rights::default() }, &[])));
    }
}
