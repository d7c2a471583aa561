use insta::assert_snapshot;
use ipc::id::{AgentId, CallId, EventId};
use ipc::message::CallOutcome;
use ipc::rights::{Network, RightsChange};
use protocol::approval::ReviewDecision;
use protocol::event::{EventKind, ObservedBy, SessionEvent, TokenUsage};
use protocol::frontend::{AgentAction, Op};

use super::approvals::{asking, make};
use super::script::{Script, command, config, read, run};
use crate::conversation::{StopReason, StreamEvent};
use crate::core::{Agent, CallProgress, Effect, EndReason, Input};

pub(super) fn logged(script: &Script) -> Vec<SessionEvent> {
    let logged = script.effects.iter().filter_map(|effect| match effect {
        Effect::Log { kind, .. } => Some(kind.clone()),
        _ => None,
    });
    let event = |(id, kind): (u64, EventKind)| SessionEvent {
        id: EventId(id),
        parent: None,
        time_ms: 0,
        session: "s".into(),
        agent: AgentId::root(),
        parent_agent: None,
        observed_by: ObservedBy::Supervisor,
        kind,
    };
    (1..).zip(logged).map(event).collect()
}

fn progress(call: u64, output: &str, duration_ms: u64) -> Input {
    Input::Progress { call: CallId(call), progress: CallProgress { output: output.to_owned(), duration_ms } }
}

#[test]
fn a_call_that_the_user_ends_keeps_its_output_and_its_duration() {
    let mut script = Script::new();
    script.user("go").reply(1, &[run("a", "make"), run("b", "true"), read("c", "c")], StopReason::ToolUse);
    script.lines();
    script.input(progress(1, "cc a.c\ncc b.c", 3210)).input(progress(2, "", 20)).input(progress(3, "", 7));
    script.interrupt();
    assert_snapshot!(script.lines(), @r#"
    cancel call 1
    log finished 1 a Interrupted "interrupted by the user after 3.2 s; the call was ended\nThe output until then:\ncc a.c\ncc b.c" by Supervisor
    cancel call 2
    log finished 2 b Interrupted "interrupted by the user after 0.0 s; the call was ended\n(no output until then)" by Supervisor
    cancel call 3
    log finished 3 c Interrupted "interrupted by the user after 0.0 s; the call was ended" by Supervisor
    finish interrupted text="" steps=1 tokens=115 message=None
    "#);
    assert_eq!(script.durations(), [3210, 20, 7]);
}

#[test]
fn what_the_provider_counted_of_an_interrupted_reply_is_taken_and_the_rest_is_estimated() {
    let told =
        TokenUsage { input: 40, cache_read: 4_900, cache_creation: 60, output: 1, ..TokenUsage::default() };
    for told in [told, TokenUsage::default()] {
        let mut script = Script::new();
        script.user("go").started(1);
        script.stream(1, StreamEvent::UsageTold { usage: told });
        script.delta(1, 0, "a text of some length that nobody counted, and that goes on").interrupt();
        let log = logged(&script);
        let reply = log.iter().find_map(|event| match &event.kind {
            EventKind::AssistantMessage(reply) => Some(reply),
            _ => None,
        });
        let reply = reply.unwrap();
        let TokenUsage { input, cache_read, output, estimated, .. } = reply.usage;
        assert!(reply.estimated && output > 1, "{:?}", reply.usage);
        if told.prompt() > 0 {
            assert_eq!((input, cache_read, estimated), (40, 4_900, output - 1));
        } else {
            assert_eq!((cache_read, estimated), (0, input + output));
        }
    }
}

#[test]
fn a_command_keeps_its_output_whatever_ends_it() {
    let change = RightsChange::Network { net: Network::On, reach: None };
    for end in [
        Input::TimeUp,
        Input::Broken { reason: EndReason::Internal, message: "no base".to_owned() },
        Input::FrontEndGone,
        Input::CallLost { call: CallId(1), reason: "the worker died".to_owned() },
        Input::CallFinished { call: CallId(1), outcome: CallOutcome::Cancelled, duration_ms: 1500 },
        Input::Op(Op::Act(AgentAction::Quit)),
        Input::Op(Op::Act(AgentAction::SetRights { change })),
    ] {
        let mut script = Script::new();
        script.user("go").reply(1, &[run("a", "make")], StopReason::ToolUse);
        script.input(progress(1, "cc a.c", 1500)).input(end.clone());
        let lines = script.lines();
        assert!(lines.contains(r"The output until then:\ncc a.c"), "{end:?}: {lines}");
        assert_eq!(script.durations(), [1500], "{end:?}");
    }
}

#[test]
fn an_approved_command_keeps_its_output_as_well() {
    let begun = || {
        let mut script = asking(&[make("a", "make")]);
        script.exec(1, ReviewDecision::Approved).lines();
        script.input(progress(1, "cc a.c", 1500));
        script
    };
    let mut interrupted = begun();
    interrupted.interrupt();
    assert_snapshot!(interrupted.lines(), @r#"
    cancel call 1
    log finished 1 a Interrupted "interrupted by the user after 1.5 s; the call was ended; it was approved, and may have been carried out in part: look before you repeat it\nThe output until then:\ncc a.c" by Supervisor
    finish interrupted text="" steps=1 tokens=115 message=None
    "#);
    let mut lost = begun();
    let outcome = Err("the worker is gone".to_owned());
    lost.input(Input::OneShotFinished { call: CallId(1), outcome, duration_ms: 1600 });
    assert!(lost.lines().contains(r#"Failed "the worker is gone\nThe output until then:\ncc a.c" by"#));
}

/// The output of the command arrives twice, as progress and in the result.
#[test]
fn a_whole_result_has_its_output_once() {
    let mut approved = asking(&[make("a", "make")]);
    approved.exec(1, ReviewDecision::Approved).input(progress(1, "cc a.c", 1500)).lines();
    let outcome = Ok(command(0, "cc a.c\n"));
    approved.input(Input::OneShotFinished { call: CallId(1), outcome, duration_ms: 1600 });
    let mut unasked = Script::new();
    unasked.user("go").reply(1, &[run("a", "make")], StopReason::ToolUse);
    unasked.input(progress(1, "cc a.c", 1500)).lines();
    let outcome = command(0, "cc a.c\n");
    unasked.input(Input::CallFinished { call: CallId(1), outcome, duration_ms: 1600 });
    for mut script in [approved, unasked] {
        let lines = script.lines();
        let finished = lines.lines().find(|line| line.starts_with("log finished")).expect("a result");
        assert_eq!(finished.matches("cc a.c").count(), 1, "{finished}");
    }
}

/// A resumed session tells the model the same as a session that went on without a break.
#[test]
fn a_session_that_goes_on_tells_the_model_that_it_was_cut_off() {
    let said = |script: &mut Script| script.user("go on").last_messages();
    let mut script = Script::new();
    script.user("go").started(1).delta(1, 0, "Half a").interrupt();
    let log = logged(&script);
    let alive = said(&mut script);
    let mut restored = Script::new();
    restored.agent = Agent::new(config()).restored(&log, false);
    let goes_on = said(&mut restored);
    for messages in [&alive, &goes_on] {
        assert!(messages.contains("Half a") && messages.contains("interrupted you here"), "{messages}");
    }
    // The model was told of the interruption before the second end of the session, and is not told again.
    let log = [log, logged(&restored)].concat();
    let mut again = Script::new();
    again.agent = Agent::new(config()).restored(&log, false);
    assert_eq!(said(&mut again).matches("interrupted you here").count(), 1);
}
