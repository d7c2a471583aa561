//! A turn that only reads, and the access after it.

use gate::StandingRights;
use gate::modes::Modes;
use insta::assert_snapshot;
use ipc::path::WirePath;
use ipc::rights::{Network, Reach, Rights, RightsChange};
use protocol::approval::ApprovalMode;
use protocol::frontend::{AgentAction, Op};

use super::approvals::ask_config;
use super::script::{Script, call, config, standing, text};
use crate::conversation::StopReason;
use crate::core::{AgentConfig, Effect, Input};

/// An agent that writes in the project and in `/data`, may use the network and a socket.
fn wide() -> Script {
    let rights = Rights {
        write: ["/data", "/p", "/tmp/bw-1"].map(WirePath::from).to_vec(),
        sockets: vec!["/run/x.sock".into()],
        net: Network::On,
        ..standing().rights
    };
    let modes = Some(Modes { auto: vec!["/p".into()], always: vec!["/data".into()] });
    let standing = StandingRights { rights: rights.normalised(), modes, ..standing() };
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

/// The rights of the workers that were started.
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
    assert_eq!(script.agent.standing().mode, ApprovalMode::Deny);
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
    assert_eq!(script.agent.standing().mode, ApprovalMode::Auto);
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
        |script| _ = script.failed(1, super::script::error("invalid_request_error", false)),
    ];
    for end in ends {
        let mut script = wide();
        let before = script.agent.rights().clone();
        reading(&mut script, "look");
        end(&mut script);
        assert_eq!((script.agent.rights(), script.agent.host_standing().mode), (&before, ApprovalMode::Auto));
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
    assert_snapshot!(script.lines(), @"log notice command_not_run the message was not sent: a turn is running, and this one is to read only by Supervisor");
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
    assert_eq!(script.lines().matches("the change is made when it is over").count(), 3);
    script.reply(1, &[text("done")], StopReason::EndTurn);
    let after = replaced(&script).pop().unwrap();
    assert_eq!(after.write, ["/more", "/tmp/bw-1"].map(WirePath::from));
    assert_eq!((after.net, after.reach), (Network::Off, Reach::default()));
    assert_eq!(script.agent.host_standing().mode, ApprovalMode::Ask);
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
    assert_eq!(script.agent.host_standing().mode, ApprovalMode::Ask);
}
