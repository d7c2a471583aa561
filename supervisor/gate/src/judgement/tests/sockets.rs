use ipc::missing_right::MissingRight;
use ipc::path::WirePath;
use ipc::refusal::{Act, Refusal, Target};
use ipc::rights::{Grant, Rights, RightsChange};
use ipc::tool::{Access, ShellExec};
use protocol::approval::{AskKind, SessionScope};

use super::{auto, deny};
use crate::activity::Activity;
use crate::approval::{Scope, Subject};
use crate::judgement::{
    ApprovalMode, Ask, Modes, SpawnVerdict, StandingRights, change, denied, offer, plan, sockets, spawn,
};
use crate::modes::Position;
use crate::tools::{ExternalCall, SpawnAgent};

const DOCKER: &str = "/run/docker.sock";

fn refused(path: &str) -> Refusal {
    let (object, program) = (Target::Socket(path.into()), "docker".to_owned());
    Refusal { process: 7, program, act: Act::Connect, object, errno: 13, count: 1, untold: 0 }
}

fn command(access: Access) -> ShellExec {
    ShellExec { command: "docker ps".to_owned(), access, network: None, cwd: None, timeout_ms: None }
}

fn with(standing: StandingRights, sockets: &[&str]) -> StandingRights {
    let sockets = sockets.iter().map(WirePath::from).collect();
    StandingRights { rights: Rights { sockets, ..standing.rights.clone() }, ..standing }
}

#[test]
fn a_denied_socket_is_offered_by_itself() {
    let standing = auto();
    let denial = denied::refused_by_rules(&standing, &refused(DOCKER)).unwrap();
    assert_eq!(denial.missing_right.value(), Some(&MissingRight::Socket { path: DOCKER.into() }));
    assert_eq!(denial.grant.as_deref(), Some("--socket /run/docker.sock"));
    let offer = offer::first(&standing, &command(Access::Standing), [&denial], &Grant::default()).unwrap();
    assert_eq!(offer.grant, Grant { sockets: vec![DOCKER.into()], ..Grant::default() });
    assert_eq!(offer.place, None);
    assert_eq!(
        offer::first(&standing, &command(Access::Standing), [&denial], &offer.grant),
        None,
        "given already"
    );
    assert_eq!(
        offer::first(&standing, &command(Access::Read), [&denial], &Grant::default()),
        None,
        "it only reads"
    );
    let fixed = StandingRights { is_fixed: true, ..standing };
    let denial = denied::refused_by_rules(&fixed, &refused(DOCKER)).unwrap();
    assert_eq!(
        (
            denial.grant.as_ref(),
            offer::first(&fixed, &command(Access::Standing), [&denial], &Grant::default())
        ),
        (None, None)
    );
}

#[test]
fn what_is_hidden_or_protected_is_never_offered_and_never_allowed() {
    let mut standing = auto();
    standing.rights.hidden.extend(["/run/user", "/home/me/.local/state/bailiwick"].map(WirePath::from));
    standing.levels = Some("/home/me/.cache/bailiwick/projects/p".into());
    for (path, why) in [
        ("/home/me/.ssh/agent", "/home/me/.ssh/agent is hidden from the sandbox"),
        (
            "/home/me/.local/state/bailiwick/live/1",
            "/home/me/.local/state/bailiwick/live/1 is hidden from the sandbox",
        ),
        ("/home/me/p/.git/hooks/s", "/home/me/p/.git/hooks/s is protected by the settings or by Bailiwick"),
        (
            "/home/me/.cache/bailiwick/projects/p/x/s",
            "/home/me/.cache/bailiwick/projects/p/x/s is protected by the settings or by Bailiwick",
        ),
        ("/proc/1/root/run/s", "/proc/1/root/run/s belongs to the kernel, or contains a path of the kernel"),
    ] {
        let denial = denied::refused_by_rules(&standing, &refused(path)).unwrap();
        assert_eq!(denial.grant, None, "{path}");
        assert_eq!(
            offer::first(&standing, &command(Access::Standing), [&denial], &Grant::default()),
            None,
            "{path}"
        );
        let change = change::rights_after(
            &standing,
            &RightsChange::AddSocket { path: path.into() },
            Activity::Execute,
        );
        assert_eq!(change.unwrap_err().to_string(), format!("the access was not changed: {why}"));
    }
    // One socket of the runtime directory may be allowed, unless something hides it by its own name.
    let bus = WirePath::from("/run/user/1000/bus");
    assert_eq!(sockets::flag(&standing, &bus).as_deref(), Some("--socket /run/user/1000/bus"));
    standing.rights.hidden.push("/run/user/1000".into());
    assert_eq!(sockets::flag(&standing, &bus), None);
    assert_eq!(sockets::hides_socket(&standing.rights.hidden, &bus), Some(&"/run/user/1000".into()));
}

#[test]
fn a_change_allows_one_socket_and_takes_it_back() {
    let [add, remove] =
        [RightsChange::AddSocket { path: DOCKER.into() }, RightsChange::RemoveSocket { path: DOCKER.into() }];
    let allowed = change::rights_after(&auto(), &add, Activity::Execute).unwrap();
    assert_eq!(allowed, Rights { sockets: vec![DOCKER.into()], ..auto().rights.normalised() });
    let standing = with(auto(), &[DOCKER]);
    let said = |standing: &StandingRights, change, activity| {
        change::rights_after(standing, change, activity).unwrap_err().to_string()
    };
    assert_eq!(
        said(&standing, &add, Activity::Execute),
        "nothing changed: /run/docker.sock can already be reached"
    );
    assert_eq!(
        change::rights_after(&standing, &remove, Activity::Execute).unwrap(),
        auto().rights.normalised()
    );
    assert_eq!(
        said(&auto(), &remove, Activity::Execute),
        "nothing changed: the socket /run/docker.sock was not allowed before"
    );
    assert_eq!(
        said(&auto(), &add, Activity::Plan),
        "the access was not changed: no socket is allowed while a plan is made"
    );
}

#[test]
fn no_agent_below_has_a_socket_that_its_parent_lacks() {
    let parent = with(auto(), &[DOCKER]);
    let spawn = SpawnAgent {
        task: "t".to_owned(),
        writes: false,
        write: vec![],
        network: false,
        role: None,
        servers: Vec::new(),
        model: None,
        max_steps: None,
    };
    let SpawnVerdict::Run(child) = spawn::judge(&parent, &spawn, Position::FIRST) else {
        panic!("nothing is lacked")
    };
    assert_eq!(child.rights.sockets, parent.rights.sockets);
    assert!(child.grant.sockets.is_empty(), "it is no more than the parent has");
    let child = StandingRights { rights: child.rights, ..deny() };
    assert!(
        spawn::narrowed(&child, &auto().rights, &Grant::default()).sockets.is_empty(),
        "the parent lost it"
    );
    let (executor, _) = plan::judge(&parent, None, &[], &deny().rights).unwrap();
    assert!(executor.rights.sockets.is_empty(), "no table of a plan names sockets");
    let modes = Modes { auto: vec!["/home/me/p".into()], always: vec![] };
    let parent = StandingRights { modes: Some(modes), ..parent };
    assert!(change::to_mode(&parent, ApprovalMode::Deny, Activity::Execute).unwrap().sockets.is_empty());
    assert!(!change::to_mode(&parent, ApprovalMode::Ask, Activity::Execute).unwrap().sockets.is_empty());
}

#[test]
fn an_answer_for_the_session_is_exactly_the_socket_that_was_asked_for() {
    let socket = Grant { sockets: vec![DOCKER.into()], ..Grant::default() };
    let of = |scope, grant: &Grant| {
        let ask = Ask { kind: AskKind::Denied, grant: grant.clone() };
        let subject = Subject::External(ExternalCall {
            guest: None,
            server: String::new(),
            tool: String::new(),
            json: String::new(),
        });
        match Scope::of(scope, &ask, &subject, &auto()) {
            Ok(Scope::Standing(change)) => Some(change),
            _ => None,
        }
    };
    assert_eq!(of(SessionScope::Socket, &socket), Some(RightsChange::AddSocket { path: DOCKER.into() }));
    assert_eq!([of(SessionScope::Network, &socket), of(SessionScope::GrantRoot, &socket)], [None, None]);
    let both = socket.join(&Grant { write: vec!["/srv".into()], ..Grant::default() });
    for scope in [SessionScope::Socket, SessionScope::GrantRoot, SessionScope::Network] {
        assert_eq!(of(scope, &both), None, "two rights are no single standing right");
    }
}
