//! Tests of a server whose error names a smaller window than configured: the conversation continues in that window.

use ipc::id::EventId;
use protocol::event::{CompactionCause, EventKind, ObservedBy, SessionEvent, TokenUsage};

use super::script::{Script, config, error, file, read, text};
use super::witness::size;
use crate::conversation::{ProviderError, StopReason, StreamEvent};
use crate::core::{Agent, AgentConfig, Effect, Window};

fn overflow(words: &str) -> ProviderError {
    ProviderError { status: Some(400), message: words.to_owned(), ..error("invalid_request_error", false) }
}

fn assumed() -> AgentConfig {
    AgentConfig { window: Window::new(128_000), max_tokens: 16_000, ..config() }
}

/// Returns an agent with long results. Its provider counts no tokens, and has rejected the last request with `words`.
fn refused(words: &str) -> Script {
    let mut script = Script::with(assumed());
    script.user("go");
    for step in 1..=12 {
        answer(&mut script, step);
    }
    script.failed(13, overflow(words));
    script
}

fn answer(script: &mut Script, step: u64) {
    let block = read(&format!("t{step}"), &format!("f{step}"));
    script.stream(step, StreamEvent::BlockClosed { index: 0, block });
    let usage = TokenUsage::default();
    script.stream(step, StreamEvent::MessageCompleted { stop_reason: StopReason::ToolUse, usage });
    script.outcome(script.agent.calls.last_ids().0.0, file(&"a line of code;\n".repeat(300)));
}

fn started(script: &Script) -> Vec<(CompactionCause, u64)> {
    let of = |effect: &Effect| match effect {
        Effect::Log { kind: EventKind::CompactionStarted(started), .. } => {
            Some((started.cause, started.window))
        }
        _ => None,
    };
    script.effects.iter().filter_map(of).collect()
}

#[test]
fn z4_no_later_request_is_as_long_as_the_refused_one_and_the_next_summary_comes_by_itself() {
    for (words, window) in [
        ("This model's maximum context length is 20000 tokens. However, you requested 24000", Some(20_000)),
        ("Your input exceeds the context window of this model.", None),
        ("prompt is too long: 300000 tokens > 200000 maximum", None),
    ] {
        let mut script = refused(words);
        let refused_size = size(script.requests()[12]);
        let learnt = started(&script)[0].1;
        assert!(window.is_none_or(|window| window == learnt) && learnt < refused_size, "{words}: {learnt}");
        script.reply(14, &[text("So far.")], StopReason::EndTurn);
        for step in 15..60 {
            let request = script.agent.turn.last_request().0;
            if script.agent.conversation.is_compacting() {
                script.reply(request, &[text("So far.")], StopReason::EndTurn);
            } else {
                answer(&mut script, request);
            }
            assert!(step < 1_000 && script.agent.is_busy(), "{words}");
        }
        let later = script.requests().iter().skip(13).map(|request| size(request)).max().unwrap();
        assert!(later < refused_size, "{words}: {later} after {refused_size}");
        let causes: Vec<_> = started(&script).iter().map(|(cause, _)| *cause).collect();
        assert_eq!(causes[0], CompactionCause::Overflow);
        assert!(
            causes.len() > 1 && causes[1..].iter().all(|cause| *cause == CompactionCause::Limit),
            "{causes:?}"
        );
    }
}

#[test]
fn z4_what_was_learnt_holds_in_the_next_run_too() {
    let script = refused("maximum context length is 20000 tokens");
    let log = script.effects.iter().filter_map(|effect| match effect {
        Effect::Log { kind, .. } => Some(kind.clone()),
        _ => None,
    });
    let event = |(id, kind): (u64, EventKind)| SessionEvent {
        id: EventId(id),
        parent: None,
        time_ms: id,
        session: "s".into(),
        agent: "1".into(),
        parent_agent: None,
        observed_by: ObservedBy::Supervisor,
        kind,
    };
    let log: Vec<_> = (1..).zip(log).map(event).collect();
    assert_eq!(Agent::new(assumed()).restored(&log, false).conversation.window(), 20_000);
    assert_eq!(Agent::new(assumed()).restored(&log, true).conversation.window(), 128_000);
}
