//! Tests of access for one turn, and of the access after it.

use gate::modes::Modes;
use insta::assert_snapshot;
use ipc::id::{ApprovalId, CallId};
use ipc::path::WirePath;
use ipc::rights::{Network, Reach, Rights, RightsChange};
use protocol::approval::{ApprovalMode, AskKind, ReviewDecision, SessionScope, TurnAccess};
use protocol::event::{EventKind, TurnAllowanceEnd};
use protocol::frontend::{AgentAction, Op};

use super::approvals::{ask_config, asking, asking_with, make, session, write, written};
use super::script::{Script, call, command, config, error, proved_command, standing, text, with_net};
use crate::conversation::StopReason;
use crate::core::{AgentConfig, Effect, Input};

fn wide() -> Script {
    let rights = Rights {
        write: ["/data", "/p", "/tmp/bw-1"].map(WirePath::from).to_vec(),
        sockets: vec!["/run/x.sock".into()],
        net: Network::On,
        ..standing().rights().clone()
    };
    let modes = Some(Modes { auto: vec!["/p".into()], always: vec!["/data".into()] });
    let standing = standing().with_rights(rights.normalised()).with_modes(modes);
    let mut script = Script::with(AgentConfig { standing, ..config() });
    script.ready(1).lines();
    script
}

fn act(script: &mut Script, action: AgentAction) {
    script.input(Input::Op(Op::Act(action)));
}

fn reading(script: &mut Script, text: &str) {
    act(script, AgentAction::PromptReading { text: text.to_owned(), images: vec![], offline: false });
}

fn replaced(script: &Script) -> Vec<Rights> {
    let rights = |effect: &Effect| match effect {
        Effect::ReplaceWorker { rights } => Some(rights.clone()),
        _ => None,
    };
    script.effects.iter().filter_map(rights).collect()
}

#[test]
fn its_worker_writes_nothing_but_the_temp_and_the_access_comes_back_with_its_end() {
    let mut script = wide();
    let before = script.agent.rights().clone();
    reading(&mut script, "look");
    let narrow = replaced(&script).pop().unwrap();
    assert_eq!(narrow.write, ["/tmp/bw-1".into()]);
    assert!(narrow.sockets.is_empty());
    assert_eq!(script.agent.standing().mode(), ApprovalMode::Deny);
    let lines = script.lines();
    assert!(lines.starts_with("replace the worker\n"), "before anything else: {lines}");
    assert!(script.last_messages().contains("a command that only reads"));
    script.ready(2);
    assert_snapshot!(script.lines(), @r"
    log mode deny by Supervisor
    log rights changed: generation 2, read-only but for $TMPDIR · network on · secrets hidden by Supervisor
    ");
    script.reply(
        1,
        &[call("a", "shell_exec", r#"{"command":"rm x","access":"write"}"#)],
        StopReason::ToolUse,
    );
    let lines = script.lines();
    assert!(lines.contains("Denied") && !lines.contains("dispatch"), "{lines}");
    script.reply(2, &[text("done")], StopReason::EndTurn);
    assert!(script.lines().ends_with("replace the worker\n"));
    assert_eq!(replaced(&script).len(), 2);
    assert_eq!(*script.agent.rights(), before);
    assert_eq!(replaced(&script).pop().unwrap(), before);
    script.ready(3);
    assert!(script.lines().starts_with("log mode auto by Supervisor\nlog rights changed: generation 3"));
    assert_eq!(script.agent.standing().mode(), ApprovalMode::Auto);
}

#[test]
fn an_offline_turn_has_no_network_and_a_network_that_is_turned_on_meanwhile_waits_for_its_end() {
    let mut script = wide();
    let before = script.agent.rights().clone();
    let (text, images) = ("review".to_owned(), vec![]);
    act(&mut script, AgentAction::PromptReading { text, images, offline: true });
    let narrow = replaced(&script).pop().unwrap();
    assert_eq!((narrow.write, narrow.net), (vec!["/tmp/bw-1".into()], Network::Off));
    assert!(script.last_messages().contains("the network is off, and nothing is approved"));
    script.ready(2).lines();
    let change = RightsChange::Network { net: Network::On, reach: None };
    act(&mut script, AgentAction::SetRights { change });
    assert_eq!(replaced(&script).len(), 1, "{}", script.lines());
    script.reply(1, &[super::script::text("done")], StopReason::EndTurn);
    assert_eq!(*script.agent.rights(), before);
}

#[test]
fn however_it_ends_the_access_of_before_is_back() {
    let ends: [fn(&mut Script); 3] = [
        |script| _ = script.interrupt(),
        |script| _ = script.input(Input::TimeUp),
        |script| _ = script.failed(1, error("invalid_request_error", false)),
    ];
    for end in ends {
        let mut script = wide();
        let before = script.agent.rights().clone();
        reading(&mut script, "look");
        end(&mut script);
        assert_eq!(
            (script.agent.rights(), script.agent.host_standing().mode()),
            (&before, ApprovalMode::Auto)
        );
        assert_eq!(replaced(&script).last(), Some(&before));
    }
    let mut script = wide();
    reading(&mut script, "look");
    act(&mut script, AgentAction::Quit);
    assert_eq!(replaced(&script).len(), 1, "no worker is started for a session that ends");
}

#[test]
fn a_turn_that_runs_is_not_narrowed_and_a_message_during_the_turn_widens_nothing() {
    let mut script = wide();
    script.user("go").lines();
    reading(&mut script, "look");
    assert_snapshot!(script.lines(), @"log notice command_not_run the message was not sent: a turn is running, and this message needs a turn of its own that only reads by Supervisor");
    assert!(replaced(&script).is_empty());
    script.reply(1, &[text("done")], StopReason::EndTurn);
    reading(&mut script, "look");
    script.ready(2).user("and more").reply(2, &[text("seen")], StopReason::EndTurn);
    assert_eq!(replaced(&script).len(), 1, "the turn goes on with the message, and only reads");
    script.reply(3, &[text("seen")], StopReason::EndTurn);
    assert_eq!(replaced(&script).len(), 2);
}

#[test]
fn a_change_that_takes_is_made_at_once_and_one_that_gives_after_the_turn() {
    let mut script = wide();
    reading(&mut script, "look");
    script.ready(2).lines();
    script.net(Network::Off);
    let narrow = replaced(&script).pop().unwrap();
    assert!(narrow.net.is_off() && narrow.write == ["/tmp/bw-1".into()]);
    script.ready(3).lines();
    script.set_rights(RightsChange::AddWrite { path: "/more".into() });
    script.set_rights(RightsChange::RemoveWrite { path: "/data".into() });
    act(&mut script, AgentAction::SetMode { mode: ApprovalMode::Ask });
    assert_eq!(replaced(&script).len(), 2, "nothing is given during the turn");
    assert_eq!(script.lines().matches("the change is made when the turn is over").count(), 3);
    script.reply(1, &[text("done")], StopReason::EndTurn);
    let after = replaced(&script).pop().unwrap();
    assert_eq!(after.write, ["/more", "/tmp/bw-1"].map(WirePath::from));
    assert_eq!((after.net, after.reach), (Network::Off, Reach::default()));
    assert_eq!(script.agent.host_standing().mode(), ApprovalMode::Ask);
}

#[test]
fn in_mode_ask_nobody_is_asked_until_the_turn_is_over() {
    let mut script = Script::with(ask_config());
    script.ready(1).lines();
    reading(&mut script, "look");
    let edit = r#"{"path":"x","content":"y"}"#;
    script.reply(1, &[call("a", "write_file", edit)], StopReason::ToolUse);
    let lines = script.lines();
    assert!(!lines.contains("prepare") && !lines.contains("ask "), "{lines}");
    script.interrupt().lines();
    assert_eq!(script.agent.host_standing().mode(), ApprovalMode::Ask);
}

fn offered(script: &Script) -> Option<TurnAccess> {
    let request = script.effects.iter().rev().find_map(|effect| match effect {
        Effect::RequestApproval { request, .. } => Some(request),
        _ => None,
    });
    request.and_then(|request| request.turn().cloned())
}

fn allow(script: &mut Script, id: u64, kind: AskKind) {
    let decision = ReviewDecision::ApprovedForTurn;
    script.decide(Op::Answer { id: ApprovalId(id), kind, decision, digest: None });
}

/// Returns an agent in mode `ask`, with the network on, that has requested a change of a file.
fn asked_online() -> Script {
    let mut config = ask_config();
    config.standing = with_net(config.standing, Network::On);
    let mut script = asking_with(config, &[write("a", "v.txt")]);
    script.prepared(1, "/p/v.txt");
    script
}

fn allowed() -> Script {
    let mut script = asked_online();
    allow(&mut script, 1, AskKind::Patch);
    script.ready(2).lines();
    script
}

fn is_over(script: &Script) -> bool {
    let ends = |effect: &Effect| matches!(effect, Effect::Log { kind: EventKind::TurnAllowanceEnded { cause }, .. } if *cause == TurnAllowanceEnd::TurnEnded);
    script.effects.iter().any(ends)
}

#[test]
fn a_yes_to_the_turn_gives_the_project_without_the_network_until_it_ends() {
    let mut script = asked_online();
    let before = script.agent.rights().clone();
    let access = offered(&script).unwrap();
    assert_eq!((access.write.clone(), access.network_after.clone()), (vec!["/p".into()], Network::On));
    script.lines();
    allow(&mut script, 1, AskKind::Patch);
    let given = replaced(&script).pop().unwrap();
    assert_eq!((given.write, given.net), (["/p", "/tmp/bw-1"].map(WirePath::from).to_vec(), Network::Off));
    assert_eq!(
        script.agent.standing().summary(),
        *access.rights.value().unwrap(),
        "exactly what the card said"
    );
    assert_snapshot!(script.lines(), @r"
    log answered 1 of call 1: approved_for_turn by User - by Supervisor
    asked 1 no more
    log call 1: everything in this turn is allowed: writes in the project, $TMPDIR · network off · secrets hidden; when the turn ends, the access is as before, and the network on again by Supervisor
    replace the worker
    dispatch 1 write_file
    ");
    script.ready(2).lines();
    // Actions in the project run without an approval. Network access still needs one, and its request does not offer
    // the whole turn again.
    script.outcome(1, written()).reply(2, &[make("b", "make"), write("c", "w.txt")], StopReason::ToolUse);
    let lines = script.lines();
    assert!(lines.contains("dispatch 2 shell_exec") && lines.contains("dispatch 3 write_file"), "{lines}");
    script.outcome(2, command(0, "ok"));
    let online = call("d", "shell_exec", r#"{"command":"curl x","access":"write","network":true}"#);
    script.outcome(3, written()).reply(3, &[online], StopReason::ToolUse);
    assert!(script.lines().contains("ask 2: networkApproval"));
    assert_eq!(offered(&script), None);
    script.decide(Op::Answer {
        id: ApprovalId(2),
        kind: AskKind::Network,
        decision: ReviewDecision::DENIED,
        digest: None,
    });
    script.reply(4, &[text("done")], StopReason::EndTurn);
    assert!(is_over(&script));
    assert_eq!((script.agent.rights(), replaced(&script).last()), (&before, Some(&before)));
    assert_eq!(script.agent.host_standing().mode(), ApprovalMode::Ask);
    script.ready(3).user("more").reply(5, &[make("e", "make")], StopReason::ToolUse);
    assert!(script.lines().contains("ask 3: execCommandApproval"), "it asks again");
}

#[test]
fn however_an_allowed_turn_ends_nothing_of_it_is_left() {
    let ends: [fn(&mut Script); 5] = [
        |script| _ = script.interrupt(),
        |script| _ = script.input(Input::TimeUp),
        |script| _ = script.outcome(1, written()).failed(2, error("invalid_request_error", false)),
        |script| _ = script.outcome(1, written()).reply(2, &[text("done")], StopReason::EndTurn),
        |script| _ = script.lost(1).reply(2, &[text("the worker died")], StopReason::EndTurn),
    ];
    for (n, end) in ends.into_iter().enumerate() {
        for is_ready in [true, false] {
            let mut script = asked_online();
            let before = script.agent.rights().clone();
            allow(&mut script, 1, AskKind::Patch);
            if is_ready {
                script.ready(2);
            }
            end(&mut script);
            script.ready(3);
            if !is_ready {
                // Results wait for the worker, so the turn ends after its start.
                end(&mut script);
                script.ready(4);
            }
            assert!(is_over(&script), "{n}");
            assert_eq!((script.agent.rights(), replaced(&script).last()), (&before, Some(&before)), "{n}");
            assert_eq!(*script.agent.standing().rights(), before, "{n}");
        }
    }
    let mut script = allowed();
    act(&mut script, AgentAction::Quit);
    assert_eq!(replaced(&script).len(), 1, "no worker is started for a session that ends");
}

#[test]
fn a_worker_that_does_not_start_leaves_nothing_either() {
    let mut script = asked_online();
    let before = script.agent.rights().clone();
    allow(&mut script, 1, AskKind::Patch);
    script.not_replaced().interrupt();
    assert_eq!(replaced(&script).last(), Some(&before));
    script.ready(3);
    assert_eq!(*script.agent.standing().rights(), before);
}

#[test]
fn only_a_request_that_the_turn_would_answer_offers_it() {
    let offers = |blocks: &[crate::conversation::AssistantBlock]| offered(&asking(blocks)).is_some();
    assert!(offers(&[make("a", "make")]));
    let online = r#"{"command":"curl x","access":"write","network":true}"#;
    assert!(!offers(&[call("a", "shell_exec", online)]), "the network would be off");
    // Write access to the project does not include files that the host runs later.
    for (place, offers) in [("/p/v.txt", true), ("/p/.git/config", false), ("/etc/hosts", false)] {
        let mut script = asking(&[write("a", place)]);
        script.prepared(1, place);
        assert_eq!(offered(&script).is_some(), offers, "{place}: {}", script.lines());
    }
    // No offer if the mode is fixed, or if the person wants to be asked about every command.
    let fixed = ask_config();
    let fixed = AgentConfig { standing: fixed.standing.with_modes(None), ..fixed };
    assert_eq!(offered(&asking_with(fixed, &[make("a", "make")])), None);
    let mut confirms = ask_config();
    confirms.approvals.confirm_shell = true;
    assert_eq!(offered(&asking_with(confirms, &[make("a", "make")])), None, "each command is asked about");
}

#[test]
fn such_a_yes_to_another_request_denies_it() {
    let online = r#"{"command":"curl x","network":true}"#;
    let mut script = asking(&[call("a", "shell_exec", online)]);
    script.lines();
    allow(&mut script, 1, AskKind::Network);
    let lines = script.lines();
    assert!(
        lines.contains("denied by BadAnswer this request cannot be answered by approving everything"),
        "{lines}"
    );
    assert!(replaced(&script).is_empty());
    // A second answer to the same request has no effect.
    let mut script = allowed();
    allow(&mut script, 1, AskKind::Patch);
    assert!(script.lines().contains("approval_ignored"));
    assert_eq!(replaced(&script).len(), 1);
}

#[test]
fn an_earlier_approval_opens_no_network_in_the_turn() {
    let online = |id| call(id, "shell_exec", r#"{"command":"make get","access":"write","network":true}"#);
    let mut script = asking(&[online("a"), write("b", "v.txt")]);
    script.exec(1, session(SessionScope::CommandPrefix(vec!["make".to_owned()])));
    script.carried_out(1, command(0, "")).prepared(2, "/p/v.txt").lines();
    allow(&mut script, 2, AskKind::Patch);
    script.ready(2).outcome(2, written()).reply(2, &[online("c")], StopReason::ToolUse);
    let lines = script.lines();
    assert!(lines.contains("ask 3: networkApproval") && !lines.contains("carry out 3"), "{lines}");
}

#[test]
fn a_mode_that_asks_or_denies_takes_the_yes_back_at_once() {
    for mode in [ApprovalMode::Ask, ApprovalMode::Deny] {
        let mut script = allowed();
        act(&mut script, AgentAction::SetMode { mode });
        let after = replaced(&script).pop().unwrap();
        assert_eq!(after.write, ["/tmp/bw-1".into()], "{mode}");
        assert_eq!(after.net, if mode == ApprovalMode::Ask { Network::On } else { Network::Off });
        script.ready(3);
        assert_eq!(script.agent.standing().mode(), mode);
        assert!(!is_over(&script), "the turn goes on");
        script.reply(2, &[text("done")], StopReason::EndTurn);
        assert_eq!(replaced(&script).len(), 2, "and its end changes nothing more");
    }
}

#[test]
fn what_the_user_gives_during_the_turn_waits_and_what_they_take_is_gone_at_once() {
    let mut script = allowed();
    script.net(Network::On);
    script.set_rights(RightsChange::AddWrite { path: "/more".into() });
    act(&mut script, AgentAction::SetMode { mode: ApprovalMode::Auto });
    assert_eq!(replaced(&script).len(), 1, "nothing is given");
    assert_eq!(script.lines().matches("the change is made when the turn is over").count(), 3);
    script.set_rights(RightsChange::RemoveWrite { path: "/p".into() });
    assert_eq!(replaced(&script).pop().unwrap().write, ["/tmp/bw-1".into()]);
    script.ready(3).net(Network::Off).reply(2, &[text("done")], StopReason::EndTurn);
    let after = replaced(&script).pop().unwrap();
    assert!(after.net.is_off() && after.write.contains(&"/more".into()), "{after:?}");
    assert_eq!(script.agent.host_standing().mode(), ApprovalMode::Auto);
}

#[test]
fn a_network_that_was_approved_in_the_turn_ends_with_the_users_off() {
    let mut script = allowed();
    let online = call("b", "shell_exec", r#"{"command":"curl x","network":true}"#);
    script.outcome(1, written()).reply(2, &[online], StopReason::ToolUse);
    let decision = ReviewDecision::Approved;
    script.decide(Op::Answer { id: ApprovalId(2), kind: AskKind::Network, decision, digest: None }).lines();
    script.net(Network::Off);
    assert!(script.lines().contains("cancel call 2"));
    assert_eq!(replaced(&script).len(), 1);
}

#[test]
fn a_denied_command_runs_again_on_the_worker_of_the_turn() {
    let mut config = ask_config();
    config.approvals.offers = true;
    let mut script = asking_with(config, &[call("a", "shell_exec", r#"{"command":"make"}"#)]);
    let told = "sh: 1: cannot create /p/out: Permission denied";
    script.outcome(1, proved_command(1, told));
    script.input(Input::Located { call: CallId(1), place: Some("/p".into()) }).lines();
    assert!(offered(&script).is_some());
    allow(&mut script, 1, AskKind::Denied);
    script.ready(2);
    let lines = script.lines();
    assert!(lines.contains("replace the worker") && lines.contains("dispatch 1 shell_exec"), "{lines}");
    script.outcome(1, command(0, "built"));
    assert!(script.lines().contains("finished 1 a Completed"), "with the result of the second run alone");
}

#[test]
fn all_changes_of_a_reply_begin_again_under_the_turn() {
    let mut script = asking(&[write("a", "v.txt"), write("b", "w.txt")]);
    script.prepared(1, "/p/v.txt");
    act(&mut script, AgentAction::AskTogether { id: ApprovalId(1) });
    script.prepared(2, "/p/w.txt").lines();
    allow(&mut script, 2, AskKind::Patch);
    script.ready(2);
    let lines = script.lines();
    assert!(lines.contains("dispatch 1 write_file") && lines.contains("dispatch 2 write_file"), "{lines}");
    assert!(!lines.contains("carry out"), "{lines}");
}
