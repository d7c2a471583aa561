//! Tests of the request about a denied command: its text, its keys, and the answers.

use crossterm::event::KeyCode;
use insta::assert_snapshot;
use ipc::denial::{Denial, Grade, Layer, Object, Operation};
use ipc::id::{ApprovalId, CallId};
use ipc::missing_right::{ClosedBy, MissingRight};
use ipc::rights::{Grant, Network, RightsChange};
use protocol::approval::{
    ApprovalAnswer, ApprovalMode, DeniedCommandApprovalParams, DeniedCommandApprovalResponse, ReviewDecision,
    ServerRequest, SessionScope,
};
use protocol::event::{ApprovalAnswered, DecidedBy, EventKind, ToolCallStatus};
use protocol::frontend::{AgentAction, UserActionKind};
use serde_json::json;

use crate::core::{denied, write_denied};
use crate::seat::Seat;

pub(crate) fn asked((width, height): (u16, u16), params: DeniedCommandApprovalParams) -> Seat {
    let mut seat = Seat::new(width, height);
    seat.ask(1, ServerRequest::DeniedCommandApproval(params));
    seat.wait(400);
    seat
}

fn answer(decision: ReviewDecision) -> Vec<UserActionKind> {
    let digest = Some("d1".to_owned());
    let answer = ApprovalAnswer::Denied(DeniedCommandApprovalResponse { decision, digest });
    vec![UserActionKind::Answer { id: ApprovalId(1), answer }]
}

fn card(seat: &Seat) -> String {
    let screen = seat.screen();
    let rows = screen.lines().skip_while(|row| !row.to_lowercase().contains("blocked by"));
    rows.take_while(|row| !row.starts_with("── ")).collect::<Vec<_>>().join("\n")
}

pub(crate) fn in_project() -> DeniedCommandApprovalParams {
    let project = "/home/me/project";
    let path = format!("{project}/out.txt");
    let closed_by = Some(ClosedBy::Mode);
    let missing = MissingRight::Write { path: path.as_str().into(), closed_by };
    DeniedCommandApprovalParams {
        grant: Grant { write: vec![project.into()], ..Grant::default() },
        denial: Denial { missing_right: missing.into(), grade: Grade::Likely, ..write_denied(&path) },
        grant_root: Some(project.into()),
        reason: Some("the build has to run".to_owned()),
        ..denied("make > out.txt")
    }
}

fn network() -> DeniedCommandApprovalParams {
    DeniedCommandApprovalParams {
        grant: Grant { net: Network::On, ..Grant::default() },
        network: Some(Network::On),
        denial: Denial {
            layer: Layer::Mediation,
            operation: Operation::Network,
            object: Object::Address("93.184.216.34:443".to_owned()),
            program: Some("curl".to_owned()),
            missing_right: MissingRight::Network.into(),
            grant: Some("--net on".to_owned()),
            grade: Grade::Proved,
            errno: Some(1),
        },
        grant_root: None,
        ..denied("curl example.com")
    }
}

fn socket() -> DeniedCommandApprovalParams {
    let path = || "/run/docker.sock".into();
    DeniedCommandApprovalParams {
        grant: Grant { sockets: vec![path()], ..Grant::default() },
        denial: Denial {
            layer: Layer::Mediation,
            operation: Operation::Share,
            object: Object::Path(path()),
            program: Some("docker".to_owned()),
            missing_right: MissingRight::Socket { path: path() }.into(),
            grant: Some("--socket /run/docker.sock".to_owned()),
            grade: Grade::Proved,
            errno: Some(13),
        },
        grant_root: None,
        ..denied("docker ps")
    }
}

#[test]
fn a_denied_socket_is_shown_with_what_it_gives() {
    assert_snapshot!(card(&asked((80, 24), socket())), @r"
     Blocked by the sandbox  proved ────────────────────────────────────────────────
    │ docker ps
      tried     use /run/docker.sock by docker, a socket of another program
      allows    reach /run/docker.sock, for one more run
      gives     root on this machine: a container can change any file
      again     the whole command; changes of its first run stay
      runs      by bash -c, in this project
    o allow once, run it again  s allow this socket, this session  n leave it  ? why
    e no, because…  d full screen  Esc stop
    ");
    let mut unknown = socket();
    unknown.grant.sockets = vec!["/srv/app/s".into()];
    let card = card(&asked((80, 24), unknown));
    assert!(card.contains("whatever the program behind"), "{card}");
}

#[test]
fn a_denied_write_outside_the_project() {
    assert_snapshot!(card(&asked((80, 24), denied("touch /etc/probe"))), @r"
     Blocked by the kernel  proved ─────────────────────────────────────────────────
    │ touch /etc/probe
      tried     write /etc/probe, which is read-only for this session
      allows    write in /etc, for one more run
      again     the whole command; changes of its first run stay
      runs      by bash -c, in this project
    o allow once, run it again  s allow writes in /etc, this session  n leave it
    ? why  e no, because…  d full screen  Esc stop
    ");
}

#[test]
fn a_denied_write_in_the_project() {
    assert_snapshot!(card(&asked((80, 24), in_project())), @r"
     Likely blocked by the sandbox ─────────────────────────────────────────────────
    │ make > out.txt
      tried     write out.txt, in the project, which is read-only in mode ask
    the agent's reason:
    “ the build has to run
      allows    write in this project, for one more run
      again     the whole command; changes of its first run stay
      runs      by bash -c, in this project
    o allow once, run it again  s allow writes in this project, this session
    n leave it  ? why  e no, because…  d full screen  Esc stop
    ");
}

#[test]
fn a_denied_connection() {
    assert_snapshot!(card(&asked((80, 24), network())), @r"
     Blocked by the sandbox  proved ────────────────────────────────────────────────
    │ curl example.com
      tried     reach 93.184.216.34:443 by curl: the network is off
      allows    reach the network, for one more run
      again     the whole command; changes of its first run stay
      runs      by bash -c, in this project
    o allow once, run it again  s allow the network, this session  n leave it  ? why
    e no, because…  d full screen  Esc stop
    ");
}

#[test]
fn on_the_smallest_terminal_no_key_is_lost() {
    assert_snapshot!(asked((40, 10), denied("touch /etc/probe")).screen(), @"
     Blocked by the kernel  proved ─────────
    │ touch /etc/probe
      tried     write /etc/probe, which is
                read-only for this session
      allows    write in /etc, for one more
    4 more lines: G, then o  n leave it
    ? why  e no, because…  d full screen
    Esc stop

     APPROVAL EXE·ask·off·↑0↓0/↑0↓0
    ");
}

#[test]
fn hostile_text_is_shown_as_what_it_is() {
    let mut params = denied("touch '/etc/a\u{202e}b'");
    params.denial = write_denied("/etc/a\u{202e}b\n o allow");
    params.denial.program = Some("x\u{1b}[2J".to_owned());
    let card = card(&asked((80, 24), params));
    assert!(card.contains(r"/etc/a\u{202e}b\u{a} o allow") && card.contains(r"x\u{1b}[2J"), "{card}");
}

#[test]
fn each_key_has_its_answer() {
    let message = Some("use /tmp".to_owned());
    let session = |scope| ReviewDecision::ApprovedForSession { scope };
    let outside = || denied("touch /etc/probe");
    for (params, keys, decision) in [
        (outside(), "o", ReviewDecision::Approved),
        (outside(), "n", ReviewDecision::DENIED),
        (outside(), "euse /tmp\n", ReviewDecision::Denied { message }),
        (outside(), "s", session(SessionScope::GrantRoot)),
        (in_project(), "s", session(SessionScope::GrantRoot)),
        (network(), "s", session(SessionScope::Network)),
        (socket(), "s", session(SessionScope::Socket)),
    ] {
        let mut seat = asked((80, 24), params);
        seat.keys(keys);
        assert_eq!(seat.told(), answer(decision), "{keys}");
    }
    let mut seat = asked((80, 24), outside());
    seat.press(KeyCode::Esc);
    assert_eq!(seat.told(), answer(ReviewDecision::Abort));
}

#[test]
fn no_other_key_allows_anything() {
    for keys in ["y", "\n", " ", "a", "Y", "O", "?o", "?s"] {
        let mut seat = asked((80, 24), denied("touch /etc/probe"));
        seat.keys(keys);
        assert_eq!(seat.told(), [], "{keys:?}");
    }
}

#[test]
fn what_was_not_seen_for_long_enough_or_to_its_end_is_not_allowed() {
    let mut seat = Seat::new(80, 24);
    seat.ask(1, ServerRequest::DeniedCommandApproval(denied("touch /etc/probe")));
    seat.keys("ooss");
    assert_eq!(seat.told(), [], "typed ahead");
    let mut seat = asked((80, 24), denied(&"true\n".repeat(60)));
    seat.keys("os");
    assert_eq!(seat.told(), [], "not read to its end");
    seat.keys("Go");
    assert_eq!(seat.told(), answer(ReviewDecision::Approved));
}

#[test]
fn two_rights_at_once_have_no_answer_for_the_session() {
    let mut params = in_project();
    params.grant.net = Network::On;
    params.grant_root = None;
    let mut seat = asked((80, 24), params);
    assert!(!seat.screen().contains("session"), "{}", seat.screen());
    seat.keys("s");
    assert_eq!(seat.told(), []);
}

#[test]
fn the_rule_and_where_it_comes_from() {
    for (params, expected) in [
        (denied("touch /etc/probe"), "this path is read-only"),
        (in_project(), "in mode ask the project is read-only"),
        (network(), "the network is off"),
    ] {
        let mut seat = asked((80, 24), params);
        seat.keys("?");
        assert!(seat.screen().contains(expected), "{}", seat.screen());
        seat.keys("?");
        assert!(!seat.screen().contains("why this was blocked"), "{}", seat.screen());
    }
    let mut seat = asked((80, 24), network());
    seat.keys("?");
    assert_snapshot!(card(&seat), @r"
     Blocked by the sandbox  proved ────────────────────────────────────────────────
    why this was blocked:
      rule      the network is off
      from      --net
      change    :net on|off|HOSTS, --net, or rights.net in the settings
      enforced  by the sandbox (mediation), whatever the command is
    Esc back to the request  n leave it
    ");
}

fn with_a_call() -> Seat {
    let mut seat = Seat::new(100, 30);
    seat.keys("hi\n");
    seat.told();
    seat.call(7, "shell_exec", &json!({"command": "touch /etc/probe"}));
    seat.ask(1, ServerRequest::DeniedCommandApproval(denied("touch /etc/probe")));
    seat.wait(400);
    seat
}

fn decided(decision: ReviewDecision) -> EventKind {
    let id = Some(ApprovalId(1));
    EventKind::ApprovalAnswered(ApprovalAnswered {
        id,
        call: CallId(7),
        decision,
        by: DecidedBy::User,
        cause: None,
        in_part: None,
    })
}

#[test]
fn a_call_that_runs_again_shows_its_second_run_alone() {
    let mut seat = with_a_call();
    seat.keys("o");
    seat.log(decided(ReviewDecision::Approved));
    seat.finish(7, ToolCallStatus::Completed, "done");
    let screen = seat.screen();
    assert!(
        screen.contains("✓ run touch /etc/probe · allowed by you, and run again\n")
            && screen.contains("done"),
        "{screen}"
    );
    assert!(!screen.contains("denied") && !screen.contains("Blocked"), "{screen}");
}

#[test]
fn a_denial_that_is_left_is_told_once() {
    let mut seat = with_a_call();
    seat.keys("n");
    seat.log(decided(ReviewDecision::DENIED));
    let EventKind::Denied { rights, .. } = crate::core::denial() else { unreachable!() };
    let denial = write_denied("/etc/probe");
    seat.log(EventKind::Denied { call: Some(CallId(7)), denial, rights });
    let said = "touch: cannot touch '/etc/probe': Permission denied\n[exit code 1]";
    seat.finish_explained(7, ToolCallStatus::Failed, (said, "\nWHY"));
    let screen = seat.screen();
    assert_eq!(screen.matches("blocked by the kernel").count(), 1, "{screen}");
    assert!(screen.contains("cannot touch") && screen.contains(":allow write /etc/probe"), "{screen}");
    assert!(!screen.contains("WHY") && !screen.contains("call 7: denied"), "{screen}");
}

#[test]
fn a_typed_command_asks_for_the_right() {
    let typed = |line: &str| {
        let mut seat = Seat::new(80, 24);
        seat.keys(line);
        (seat.told(), seat.screen())
    };
    let write = |path: &str| {
        vec![UserActionKind::Agent(AgentAction::SetRights {
            change: RightsChange::AddWrite { path: path.into() },
        })]
    };
    assert_eq!(typed(":allow write /srv/my data\n").0, write("/srv/my data"));
    assert_eq!(typed(":allow write '/srv/my data'\n").0, write("/srv/my data"));
    for (line, change) in [
        (":allow socket '/run/a b'\n", RightsChange::AddSocket { path: "/run/a b".into() }),
        (":disallow socket /run/s\n", RightsChange::RemoveSocket { path: "/run/s".into() }),
    ] {
        assert_eq!(typed(line).0, vec![UserActionKind::Agent(AgentAction::SetRights { change })], "{line}");
    }
    let change = RightsChange::Network { net: Network::On, reach: None };
    assert_eq!(typed(":allow net\n").0, vec![UserActionKind::Agent(AgentAction::SetRights { change })]);
    for line in [":allow write\n", ":allow socket\n", ":allow read /etc\n", ":allow net on\n"] {
        let (told, screen) = typed(line);
        assert!(told.is_empty() && screen.contains("write PATH"), "{line}: {screen}");
    }
}

#[test]
fn a_changed_mode_is_not_put_down_to_the_start() {
    let mut seat = asked((80, 24), in_project());
    seat.log(EventKind::ModeChanged { mode: ApprovalMode::Auto });
    seat.keys("?");
    assert!(seat.screen().contains("changed in this session"), "{}", seat.screen());
}

#[test]
fn a_denial_in_the_home_offers_no_command_that_opens_it() {
    let mut seat = Seat::new(120, 30);
    let missing = MissingRight::Write { path: "/home/me/x".into(), closed_by: Some(ClosedBy::Home) };
    let denial = Denial { missing_right: missing.into(), grant: None, ..write_denied("/home/me/x") };
    let EventKind::Denied { rights, .. } = crate::core::denial() else { unreachable!() };
    seat.call(12, "shell_exec", &json!({"command": "touch ~/x"}));
    seat.log(EventKind::Denied { call: Some(CallId(12)), denial, rights });
    let screen = seat.screen();
    assert!(!screen.contains("to allow"), "{screen}");
    assert!(screen.contains("missing   write /home/me/x, in the home directory itself"), "{screen}");
    assert!(screen.contains("instead   allow a directory below, e.g. :allow write ~/notes"), "{screen}");
}
