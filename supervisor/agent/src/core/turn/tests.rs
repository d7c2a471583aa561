use std::time::Duration;

use protocol::event::EndReason;

use super::*;
use crate::conversation::{ProviderError, StreamEvent};
use crate::core::conversation::Asked;
use crate::core::end::Ending;
use crate::core::outbox::Outbox;
use crate::core::phase::Phase;
use crate::core::tariff::Tariff;
use crate::core::tests::alone::{completed, config, text};
use crate::core::{AgentConfig, Effect, RequestId, RunLimits, TimerId};

fn turn(limits: RunLimits) -> Turn {
    let AgentConfig { model, system, tools, options, prices, backoff, answer, fails_when_denied, .. } =
        config();
    let tariff = Tariff(prices);
    Turn::new(TurnSettings {
        model,
        system,
        tools,
        options,
        tariff,
        limits,
        backoff,
        answer,
        fails_when_denied,
    })
}

fn asked() -> Asked {
    Asked { messages: Vec::new(), max_tokens: 1000 }
}

fn asking() -> (Turn, Outbox) {
    let (mut turn, mut out) = (turn(RunLimits::default()), Outbox::default());
    assert!(turn.begin());
    turn.ask(asked(), 10, &mut out);
    out.take();
    (turn, out)
}

fn reply(turn: &mut Turn, words: &str, out: &mut Outbox) -> Replied {
    let request = turn.last_request();
    if !words.is_empty() {
        let event = StreamEvent::BlockClosed { index: 0, block: text(words) };
        assert!(turn.on_stream(request, event, false, out).is_none());
    }
    let whole = turn.on_stream(request, completed(), false, out).unwrap();
    turn.on_reply(whole, false, false, 1000, out).then
}

#[test]
fn a_run_waits_for_the_start() {
    let mut turn = turn(RunLimits::default());
    turn.wait_for_start();
    assert!(!turn.begin());
    assert_eq!(turn.phase(), Phase::Waiting);
    assert!(turn.start() && turn.takes_start() && !turn.takes_start());
    assert_eq!(turn.phase(), Phase::Resting);
}

#[test]
fn words_are_shown_and_a_summary_is_not() {
    let (mut turn, mut out) = asking();
    let delta = || StreamEvent::TextDelta { index: 0, text: "Hello".to_owned() };
    turn.on_stream(RequestId(1), delta(), true, &mut out);
    turn.on_stream(RequestId(9), delta(), false, &mut out);
    assert!(out.take().is_empty(), "a summary, and a request that is not waited for");
    turn.on_stream(RequestId(1), delta(), false, &mut out);
    assert!(matches!(out.take()[..], [Effect::Show(_)]));
}

#[test]
fn a_reply_without_calls_ends_the_turn_and_silence_is_asked_about_once() {
    let (mut turn, mut out) = asking();
    assert!(matches!(reply(&mut turn, "Done.", &mut out), Replied::TurnEnds));
    let TurnEnd::Ends(ending) = turn.end(None, &mut out) else { panic!("it asks again") };
    assert_eq!(ending.reason, EndReason::Done);
    let (mut turn, mut out) = asking();
    assert!(matches!(reply(&mut turn, "", &mut out), Replied::Step(Some(_))));
    turn.ask(asked(), 10, &mut out);
    let Replied::Ends(ending) = reply(&mut turn, "", &mut out) else { panic!("it goes on") };
    assert_eq!(ending.reason, EndReason::NothingSaid);
}

#[test]
fn a_failure_is_tried_again_and_its_reason_outlives_the_time_of_the_run() {
    let (mut turn, mut out) = asking();
    let error = ProviderError::new("overloaded", "the provider is busy").retryable();
    let retry = turn.retry(&error);
    assert_eq!(retry.as_ref().ok(), Some(&Duration::from_secs(1)));
    assert!(matches!(turn.fail(&error, false, retry, None, &mut out), Failed::BacksOff));
    assert!(turn.on_timer(TimerId(1)) && !turn.on_timer(TimerId(2)));
    let time = Ending::because(EndReason::TimeLimit, "the time is spent");
    let Stopped::Ends(ending) = turn.stop(&time, &mut out) else { panic!("it waits on") };
    assert_eq!(ending.reason, EndReason::Provider);
    assert!(ending.message.unwrap().contains("the provider is busy"));
}

#[test]
fn a_run_ends_at_its_limit_of_steps() {
    let limits = RunLimits { max_steps: Some(1), ..RunLimits::default() };
    let (mut turn, mut out) = (turn(limits), Outbox::default());
    turn.begin();
    assert!(turn.spent().is_none());
    turn.ask(asked(), 10, &mut out);
    reply(&mut turn, "One.", &mut out);
    assert_eq!(turn.spent().unwrap().reason, EndReason::StepLimit);
    turn.finish(Ending::of(EndReason::Done), &mut out);
    assert!(turn.spent().is_none(), "the next run has an account of its own");
}

#[test]
fn an_interrupted_reply_is_counted_and_kept() {
    let (mut turn, mut out) = asking();
    let delta = StreamEvent::TextDelta { index: 0, text: "half a sen".to_owned() };
    turn.on_stream(RequestId(1), delta, false, &mut out);
    let Stopped::Asking(reply) = turn.stop(&Ending::of(EndReason::Interrupted), &mut out) else {
        panic!("it asks nothing");
    };
    let echo = turn.cut_off(&reply, 500, &mut out);
    assert_eq!(echo.len(), 1);
    turn.finish(Ending::of(EndReason::Interrupted), &mut out);
    let Some(Effect::Finish(end)) = out.take().pop() else { panic!("no end") };
    assert_eq!((end.text.as_str(), end.usage.input), ("half a sen", 500));
}
