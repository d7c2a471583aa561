use insta::assert_snapshot;

use super::script::{Script, error, file, read, run, text, thinking};
use crate::conversation::{ProviderError, StopReason, StreamEvent};
use crate::core::{EndReason, Input};

#[test]
fn max_tokens_inside_a_tool_call_drops_the_call_and_tells_the_model() {
    let mut script = Script::new();
    let blocks =
        [thinking(), text("I write it."), read("a", "a"), super::script::broken_call("b", "write_file")];
    script.user("go").reply(1, &blocks, StopReason::MaxTokens);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 2 blocks, max_tokens by Supervisor
    log context bailiwick "Your reply was cut at its limit of 1000 tokens. The tool calls in it (read_file, write_file) were not run: make them again, smaller. Go on from where it ends." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"thinking","thinking":"","signature":"s"} {"type":"text","text":"I write it."}
    user "Your reply was cut at its limit of 1000 tokens. The tool calls in it (read_file, write_file) were not run: make them again, smaller. Go on from where it ends."
    "#);
}

#[test]
fn reply_that_is_cut_again_and_again_gives_up() {
    let mut script = Script::new();
    script.user("go");
    for request in 1..=4 {
        script.reply(request, &[text("more")], StopReason::MaxTokens);
    }
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 1 blocks, max_tokens by Supervisor
    log context bailiwick "Your reply was cut at its limit of 1000 tokens. Go on from where it ends." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    log assistant msg_2 1 blocks, max_tokens by Supervisor
    log context bailiwick "Your reply was cut at its limit of 1000 tokens. Go on from where it ends." by Supervisor
    log requested 3.1 by Supervisor
    start 3 with 5 messages
    log assistant msg_3 1 blocks, max_tokens by Supervisor
    log context bailiwick "Your reply was cut at its limit of 1000 tokens. Go on from where it ends." by Supervisor
    log requested 4.1 by Supervisor
    start 4 with 7 messages
    log assistant msg_4 1 blocks, max_tokens by Supervisor
    finish gave_up text="more" steps=4 tokens=460 message=Some("the reply was cut at 1000 tokens 4 times in a row")
    "#);
}

#[test]
fn refusal_ends_the_run_and_leaves_no_trace_in_the_history() {
    let mut script = Script::new();
    let stop = StopReason::Refusal(Some("cyber".to_owned()));
    script.user("go").reply(1, &[text("I can")], stop);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 0 blocks, refusal by Supervisor
    finish refusal text="I can" steps=1 tokens=115 message=Some("the model refused to continue: cyber")
    "#);
    script.user("something else");
    assert_snapshot!(script.last_messages(), @r#"user "go" "something else""#);
}

#[test]
fn paused_reply_goes_back_unchanged() {
    let mut script = Script::new();
    script.user("go").reply(1, &[text("I search.")], StopReason::PauseTurn);
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"text","text":"I search."}
    "#);
    script.reply(2, &[text("Found."), read("a", "a")], StopReason::ToolUse).outcome(1, file("x\n"));
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"text","text":"I search."} {"type":"text","text":"Found."} {"type":"tool_use","id":"a","name":"read_file","input":{"path":"a"}}
    user [result a: "     1\tx\n"]
    "#);
}

#[test]
fn provider_that_only_pauses_is_left() {
    let mut script = Script::new();
    script.user("go");
    for request in 1..=17 {
        script.reply(request, &[text("...")], StopReason::PauseTurn);
    }
    assert!(script.lines().contains("finish gave_up"));
}

#[test]
fn full_context_is_left_for_a_new_one() {
    let mut script = Script::new();
    script.user("go").reply(1, &[text("so f")], StopReason::ContextWindowExceeded);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log assistant msg_1 1 blocks, model_context_window_exceeded by Supervisor
    log compacting Overflow: 115 of 8000 by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 1 messages
    "#);
}

#[test]
fn z5_a_whole_call_is_run_whatever_the_reply_ended_for() {
    let others =
        ["later", "", "eos", "function_call", "SAFETY"].map(|other| StopReason::Other(other.to_owned()));
    for stop in [StopReason::EndTurn, StopReason::StopSequence].into_iter().chain(others) {
        for blocks in [
            vec![text("So."), read("a", "a")],
            vec![read("a", "a")],
            vec![thinking(), read("a", "a"), text("So.")],
        ] {
            let mut script = Script::new();
            script.user("go").reply(1, &blocks, stop.clone()).outcome(1, file("x\n"));
            let lines = script.lines();
            assert!(lines.contains("dispatch 1 read_file") && !lines.contains("\nfinish "), "{lines}");
            assert!(script.last_messages().contains("[result a"), "{}", script.last_messages());
        }
    }
}

#[test]
fn z5_a_call_that_is_not_run_is_no_success() {
    for stop in [StopReason::Refusal(None), StopReason::MaxTokens, StopReason::PauseTurn] {
        let mut script = Script::new();
        script.user("go").reply(1, &[text("So."), run("a", "rm -rf x")], stop);
        let lines = script.lines();
        assert!(!lines.contains("dispatch") && !lines.contains("finish done"), "{lines}");
    }
}

#[test]
fn z5_a_reply_with_nothing_in_it_is_asked_about_once() {
    let nothing = [
        vec![],
        vec![text(" \n")],
        vec![thinking()],
        vec![text("\u{200b}")],
        vec![text("\u{feff}\n")],
        vec![text("\0")],
        vec![thinking(), text("\u{a0}"), text("\u{2060}\u{3000}")],
        vec![text("\u{1b}")],
    ];
    for blocks in nothing {
        for stop in [StopReason::EndTurn, StopReason::ToolUse, StopReason::Other("x".to_owned())] {
            let mut script = Script::new();
            script.user("go").reply(1, &blocks, stop.clone()).reply(2, &[text("Done.")], StopReason::EndTurn);
            assert!(script.lines().contains("finish done text=\"Done.\""), "{blocks:?}");
            script.user("again").reply(3, &blocks, stop.clone()).reply(4, &blocks, stop);
            let lines = script.lines();
            assert!(
                lines.contains("Your reply was empty") && lines.contains("finish nothing_said"),
                "{lines}"
            );
        }
    }
}

#[test]
fn z5_silence_is_counted_in_a_row_and_words_of_the_user_are_a_question_of_their_own() {
    let mut script = Script::new();
    script.user("go").reply(1, &[], StopReason::EndTurn).reply(2, &[read("a", "a")], StopReason::ToolUse);
    script.outcome(1, file("x\n")).reply(3, &[], StopReason::EndTurn).lines();
    script.user("well?").reply(4, &[], StopReason::EndTurn);
    assert!(!script.lines().contains("\nfinish "));
    script.reply(5, &[text("Done.")], StopReason::EndTurn);
    assert!(script.lines().contains("finish done"));
}

/// Text of a reply with a tool call that its server did not parse.
const WRITTEN: &str =
    "<tool_call>\n{\"name\": \"shell_exec\", \"arguments\": {\"command\": \"rm -rf x\"}}\n</tool_call>";

#[test]
fn z5_a_call_as_text_is_told_once_and_then_ends_the_run() {
    let mut script = Script::new();
    script.user("go").reply(1, &[text(WRITTEN)], StopReason::EndTurn);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log notice call_as_text the model wrote a call of shell_exec as text; the model's server did not recognise the call, so it was not run by Supervisor
    log assistant msg_1 1 blocks, end_turn by Supervisor
    log context bailiwick "Your reply contains a call of shell_exec as text. Nothing was run: only calls in the form of this API are. Call the tool in that form; if you meant no call, say in words what came of the task." by Supervisor
    log requested 2.1 by Supervisor
    start 2 with 3 messages
    "#);
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"text","text":"<tool_call>\n{\"name\": \"shell_exec\", \"arguments\": {\"command\": \"rm -rf x\"}}\n</tool_call>"}
    user "Your reply contains a call of shell_exec as text. Nothing was run: only calls in the form of this API are. Call the tool in that form; if you meant no call, say in words what came of the task."
    "#);
    script.reply(2, &[text(WRITTEN)], StopReason::Other("x".to_owned()));
    assert_snapshot!(script.lines(), @r#"
    log notice call_as_text the model wrote a call of shell_exec as text; the model's server did not recognise the call, so it was not run by Supervisor
    log assistant msg_2 1 blocks, x by Supervisor
    finish call_as_text text="" steps=2 tokens=230 message=Some("the model wrote a tool call as text, twice in a row; the model's server did not recognise the calls\n  hint: choose another model with --model, or turn on the server's parser of tool calls (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice)")
    "#);
}

#[test]
fn z5_a_real_call_or_words_after_a_call_as_text_go_on() {
    let mut script = Script::new();
    script.user("go");
    for step in 0..3 {
        script.reply(2 * step + 1, &[text(WRITTEN)], StopReason::EndTurn);
        script.reply(2 * step + 2, &[read(&format!("t{step}"), "a")], StopReason::ToolUse);
        script.outcome(step + 1, file("x\n"));
    }
    script.reply(7, &[text(WRITTEN)], StopReason::EndTurn).reply(
        8,
        &[text("It was done.")],
        StopReason::EndTurn,
    );
    let lines = script.lines();
    assert!(lines.contains("finish done text=\"It was done.\""), "{lines}");
    assert!(!lines.contains("dispatch 1 shell_exec"), "{lines}");
}

#[test]
fn z5_words_beside_a_real_call_are_words() {
    let mut script = Script::new();
    script.user("go").reply(1, &[text(WRITTEN), read("a", "a")], StopReason::ToolUse);
    let lines = script.lines();
    assert!(lines.contains("dispatch 1 read_file") && !lines.contains("call_as_text"), "{lines}");
}

#[test]
fn a_model_that_does_the_same_again_and_again_is_told_and_then_ends() {
    let play = |name: &str, changes: bool| {
        let mut script = Script::new();
        script.user("go");
        for step in 1..=60 {
            let block = super::script::call(&format!("t{step}"), name, r#"{"path":"a"}"#);
            script.reply(step, &[block], StopReason::ToolUse);
            let content = if changes { step } else { 1 };
            script.outcome(step, file(&format!("{content}\n")));
        }
        script.lines()
    };
    let lines = play("read_file", false);
    assert_eq!(lines.matches("You made the same call 10 times in a row").count(), 1, "{lines}");
    assert_eq!(lines.matches("log assistant").count(), 20);
    let end = "the model made the same call 20 times in a row, each with the same result: read_file";
    assert!(lines.contains("finish gave_up") && lines.contains(end), "{lines}");
    let unknown = play("nonexistent", true);
    assert_eq!(unknown.matches("log assistant").count(), 20, "{unknown}");
    let polling = play("read_file", true);
    assert!(!polling.contains("same call") && !polling.contains("\nfinish "), "{polling}");
}

#[test]
fn tool_use_without_calls_is_an_end() {
    let mut script = Script::new();
    script.user("go").reply(1, &[text("So.")], StopReason::ToolUse);
    assert!(script.lines().contains("finish done"));
}

#[test]
fn interrupt_while_the_model_speaks_keeps_what_was_shown() {
    let mut script = Script::new();
    script.user("go").started(1);
    script.stream(1, StreamEvent::BlockClosed { index: 0, block: text("First.") });
    script.stream(1, StreamEvent::BlockClosed { index: 1, block: read("a", "a") });
    script.delta(1, 2, "And th").interrupt().delta(1, 2, "is is late");
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    show "And th"
    cancel 1
    log assistant msg_1 2 blocks, interrupted by Supervisor
    finish interrupted text="First.\n\nAnd th" steps=0 tokens=1225 message=None
    "#);
    script.user("go on");
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"text","text":"First."} {"type":"text","text":"And th"}
    user "The user interrupted you here." "go on"
    "#);
}

#[test]
fn interrupted_reply_that_is_refused_is_left_out() {
    let mut script = Script::new();
    script.user("go").started(1).delta(1, 0, "And th").interrupt().user("go on").lines();
    let refused = ProviderError { status: Some(400), ..error("invalid_request_error", false) };
    script.failed(2, refused.clone());
    assert_snapshot!(script.lines(), @r#"
    log failed invalid_request_error retry=None by Supervisor
    log notice interrupted_reply_dropped it failed (invalid_request_error); the conversation continues without the interrupted reply by Supervisor
    log requested 1.2 by Supervisor
    start 3 with 1 messages
    "#);
    assert_snapshot!(script.last_messages(), @r#"user "go" "The user interrupted you here." "go on""#);
    script.failed(3, refused);
    assert!(script.lines().contains("finish provider_error"));
}

#[test]
fn interrupt_before_the_first_byte() {
    let mut script = Script::new();
    script.user("go").interrupt();
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    cancel 1
    finish interrupted text="" steps=0 tokens=0 message=None
    "#);
}

#[test]
fn interrupt_while_backing_off() {
    let mut script = Script::new();
    script.user("go").failed(1, error("connection", true)).interrupt().timer(1);
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    log failed connection retry=Some(1000) by Supervisor
    timer 1 after 1s
    finish interrupted text="" steps=0 tokens=0 message=None
    "#);
}

#[test]
fn interrupt_while_calls_run_gives_each_its_result() {
    let mut script = Script::new();
    script.user("go").reply(
        1,
        &[read("a", "a"), run("b", "sleep 9"), run("c", "sleep 9")],
        StopReason::ToolUse,
    );
    script.outcome(1, file("x\n")).lines();
    script.user("wait").interrupt().outcome(2, file("late")).lost(3);
    assert_snapshot!(script.lines(), @r#"
    cancel call 2
    log finished 2 b Interrupted "interrupted by the user; the call was ended" by Supervisor
    cancel call 3
    log finished 3 c Interrupted "interrupted by the user; the call was ended" by Supervisor
    finish interrupted text="" steps=1 tokens=115 message=None
    "#);
    script.user("go on");
    assert_snapshot!(script.last_messages(), @r#"
    user "go"
    assistant {"type":"tool_use","id":"a","name":"read_file","input":{"path":"a"}} {"type":"tool_use","id":"b","name":"shell_exec","input":{"command":"sleep 9"}} {"type":"tool_use","id":"c","name":"shell_exec","input":{"command":"sleep 9"}}
    user [result a: "     1\tx\n"] [error b: "interrupted by the user; the call was ended"] [error c: "interrupted by the user; the call was ended"] "The user interrupted you here." "wait" "go on"
    "#);
}

#[test]
fn spent_time_ends_the_run_like_an_interrupt() {
    let mut script = Script::new();
    script.user("go").reply(1, &[run("a", "sleep 9")], StopReason::ToolUse).lines();
    script.input(Input::TimeUp);
    assert_snapshot!(script.lines(), @r#"
    cancel call 1
    log finished 1 a Interrupted "interrupted: the time limit of the run is reached; the call was ended" by Supervisor
    finish time_limit text="" steps=1 tokens=115 message=Some("the time limit of this run is reached")
    "#);
}

#[test]
fn shutdown_is_final() {
    let mut script = Script::new();
    script
        .user("go")
        .input(Input::Op(protocol::frontend::Op::Act(protocol::frontend::AgentAction::Quit)))
        .user("more");
    assert_snapshot!(script.lines(), @r#"
    log user "go" by Supervisor
    log requested 1.1 by Supervisor
    start 1 with 1 messages
    cancel 1
    finish closed text="" steps=0 tokens=0 message=None
    "#);
}

#[test]
fn run_that_breaks_ends_before_its_first_turn_and_within_one() {
    let broken = || Input::Broken { reason: EndReason::Internal, message: "no base".to_owned() };
    let mut script = Script::new();
    script.input(broken()).user("too late");
    assert_snapshot!(script.lines(), @r#"finish internal_error text="" steps=0 tokens=0 message=Some("no base")"#);
    let mut script = Script::new();
    script.user("go").reply(1, &[run("a", "sleep 9")], StopReason::ToolUse).lines();
    script.input(broken()).user("too late");
    assert_snapshot!(script.lines(), @r#"
    cancel call 1
    log finished 1 a Interrupted "interrupted: the run cannot continue; the call was ended" by Supervisor
    finish internal_error text="" steps=1 tokens=115 message=Some("no base")
    "#);
}

#[test]
fn time_that_is_spent_between_attempts_is_a_failure_of_the_provider() {
    let mut script = Script::new();
    script.user("go").failed(1, error("overloaded_error", true)).lines();
    script.input(Input::TimeUp);
    assert_snapshot!(script.lines(), @r#"finish provider_error text="" steps=0 tokens=0 message=Some("it failed (overloaded_error); the time limit of this run is reached before another attempt [provider-failed]")"#);
}

#[test]
fn reply_that_is_cut_never_ends_with_thinking() {
    for (blocks, kept) in [
        (vec![text("I think."), thinking()], r#"assistant {"type":"text","text":"I think."}"#),
        (vec![thinking(), read("a", "a")], r#"user "go" "Your reply was cut"#),
    ] {
        let mut script = Script::new();
        script.user("go").reply(1, &blocks, StopReason::MaxTokens);
        let messages = script.last_messages();
        assert!(messages.contains(kept) && !messages.contains("thinking\""), "{messages}");
    }
}
