//! Tests of calls without an agent: the model's calls as input, workers' tasks and results as output.

use std::sync::Arc;

use gate::modes::Position;
use ipc::id::{ApprovalId, CallId};
use protocol::event::{DecidedBy, ToolCallStatus};

use super::*;
use crate::core::call::ToolUse;
use crate::core::outbox::Outbox;
use crate::core::rights::RightsState;
use crate::core::tests::alone::{ask_config, config};
use crate::core::tests::script::file;
use crate::core::{AgentConfig, Effect, EndReason, Input};

fn calls(config: &AgentConfig, uses: &[(&str, &str)]) -> Calls {
    let charter = Charter {
        conversation: config.conversation.clone(),
        agent: config.id.clone(),
        tools: Arc::clone(&config.tools),
        approvals: config.approvals.clone(),
    };
    let mut calls = Calls::new(charter, None, None);
    let call = |(at, (name, input)): (usize, &(&str, &str))| {
        ToolUse::ours(format!("t{at}"), name, (*input).to_owned()).unwrap()
    };
    calls.add(uses.iter().enumerate().map(call).collect());
    calls
}

const READ: (&str, &str) = ("read_file", r#"{"path":"a"}"#);

fn dispatched(out: &mut Outbox) -> Vec<CallId> {
    let call = |effect: Effect| match effect {
        Effect::Dispatch { call, .. } => Some(call),
        _ => None,
    };
    out.take().into_iter().filter_map(call).collect()
}

#[test]
fn a_call_that_goes_on_stays_when_results_are_taken() {
    let config = config();
    let (mut calls, mut out) = (calls(&config, &[READ, READ]), Outbox::default());
    let rights = RightsState::new(config.standing, Position::FIRST);
    let bounds = Bounds { rights: &rights, room: 10_000 };
    assert!(matches!(calls.begin(bounds, &mut out), Begun::All));
    assert_eq!(dispatched(&mut out), [CallId(1), CallId(2)]);
    let end = || CallEnd::OfWorker(file("text"));
    let after = calls.on_end(CallId(2), end(), 5, Pictures::default(), bounds, &mut out);
    assert!(matches!(after, After::GoOn));
    let results = calls.take_results();
    assert_eq!(results.iter().filter_map(|(id, _)| id.clone()).collect::<Vec<_>>(), ["t1".into()]);
    assert!(!calls.are_closed());
    let _ = calls.on_end(CallId(1), end(), 5, Pictures::default(), bounds, &mut out);
    assert!(calls.are_closed());
    assert_eq!(calls.take_results().len(), 1);
    let late = calls.on_end(CallId(1), end(), 5, Pictures::default(), bounds, &mut out);
    assert!(matches!(late, After::Rest), "it has its result");
}

#[test]
fn a_call_beyond_the_rights_is_asked_about_and_nothing_begins_beside_it() {
    let AgentConfig { standing, .. } = ask_config();
    let config = ask_config();
    let make = ("shell_exec", r#"{"command":"make","access":"write"}"#);
    let (mut calls, mut out) = (calls(&config, &[make, READ]), Outbox::default());
    let rights = RightsState::new(standing, Position::FIRST);
    let bounds = Bounds { rights: &rights, room: 10_000 };
    let _ = calls.begin(bounds, &mut out);
    let effects = out.take();
    assert!(effects.iter().any(|effect| matches!(effect, Effect::RequestApproval { .. })), "{effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Dispatch { .. })), "{effects:?}");
    let lapsed =
        Input::Lapsed { id: ApprovalId(1), by: DecidedBy::Deadline, cause: "nobody came".to_owned() };
    assert!(matches!(calls.on(lapsed, bounds, &mut out), After::GoOn));
    out.take();
    let _ = calls.begin(bounds, &mut out);
    assert_eq!(dispatched(&mut out), [CallId(2)]);
    assert_eq!(calls.first_result().map(|result| result.status), Some(ToolCallStatus::Denied));
}

#[test]
fn an_interruption_gives_every_call_its_result() {
    let config = config();
    let (mut calls, mut out) = (calls(&config, &[READ, READ]), Outbox::default());
    let rights = RightsState::new(config.standing, Position::FIRST);
    let bounds = Bounds { rights: &rights, room: 10_000 };
    let _ = calls.begin(bounds, &mut out);
    calls.interrupt(EndReason::Interrupted, bounds, &mut out);
    let cancelled = out.take().iter().filter(|effect| matches!(effect, Effect::CancelCall(_))).count();
    assert_eq!(cancelled, 2);
    let results = calls.take_results();
    let is_interrupted = |status| status == ToolCallStatus::Interrupted;
    assert!(results.len() == 2 && results.iter().all(|(_, result)| is_interrupted(result.status)));
}

#[test]
fn results_share_the_room_that_there_is() {
    let config = config();
    let (mut calls, mut out) = (calls(&config, &[READ, READ]), Outbox::default());
    let rights = RightsState::new(config.standing, Position::FIRST);
    let bounds = Bounds { rights: &rights, room: 4_000 };
    let _ = calls.begin(bounds, &mut out);
    let long = CallEnd::OfWorker(file(&"a line of code;\n".repeat(5_000)));
    let _ = calls.on_end(CallId(1), long, 5, Pictures::default(), bounds, &mut out);
    let content = &calls.first_result().unwrap().content;
    assert!(content.contains("the context has no room for more"), "{content}");
    assert!(content.len() < 9_000, "{} bytes", content.len());
}
