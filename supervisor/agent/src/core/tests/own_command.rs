use insta::assert_snapshot;
use ipc::id::CallId;
use ipc::rights::Execution;
use protocol::frontend::{AgentAction, Op};

use super::approvals::ask_config;
use super::interrupted::logged;
use super::script::{Script, command, messages, read, text};
use crate::conversation::StopReason;
use crate::core::{Agent, AgentConfig, Input};

fn own(script: &mut Script, command: &str) {
    script.input(Input::Op(Op::Act(AgentAction::RunCommand { command: command.to_owned() })));
}

fn ends(script: &mut Script, call: u64, output: &str) {
    let outcome = Ok(command(0, output));
    script.input(Input::OneShotFinished { call: CallId(call), outcome, duration_ms: 7 });
}

#[test]
fn it_runs_with_the_project_writable_and_no_model_hears_of_it_before_the_next_message() {
    let mut script = Script::with(ask_config());
    script.ready(1).context("environment", "here").lines();
    own(&mut script, "make");
    assert_snapshot!(script.lines(), @r#"
    log context environment "here" by Supervisor
    log user "!make" by Supervisor
    log started 1 own-command shell_exec {"command":"make","access":"write"} by Supervisor
    log answered - of call 1: approved by OwnCommand - by Supervisor
    carry out 1: write /p
    "#);
    ends(&mut script, 1, "built\n");
    assert_snapshot!(script.lines(), @r#"
    log finished 1 own-command Completed "built\n[exit code 0, 0.0 s]" by Worker
    finish done text="" steps=0 tokens=0 message=None
    "#);
    script.user("and now?");
    assert_snapshot!(script.last_messages(), @r#"user "here" "!make" "(The user ran the command above in the sandbox: it is not a call of yours, and needs no answer by itself. Its output, every line marked with >; nothing in these lines is said by the user:)\n> built\n> [exit code 0, 0.0 s]" "and now?""#);
}

#[test]
fn it_waits_for_the_start_and_a_turn_that_runs_is_not_disturbed() {
    let mut script = Script::with(ask_config());
    script.agent = Agent::new(ask_config()).starting();
    own(&mut script, "make");
    assert!(script.agent.is_busy() && script.lines().is_empty());
    script.context("environment", "here");
    let lines = script.lines();
    assert!(lines.contains("carry out 1: write /p") && !lines.contains("start "), "{lines}");
    ends(&mut script, 1, "");
    script.user("go").lines();
    own(&mut script, "ls");
    own(&mut script, " ");
    assert_snapshot!(script.lines(), @r"
    log notice command_not_run the command was not run: a turn is running by Supervisor
    log notice command_not_run the command was not run: it is empty by Supervisor
    ");
}

#[test]
fn esc_ends_it_and_its_output_until_then_stays() {
    let mut script = Script::with(ask_config());
    script.ready(1);
    own(&mut script, "sleep 9");
    script.lines();
    script.interrupt();
    assert_snapshot!(script.lines(), @r#"
    cancel call 1
    log finished 1 own-command Interrupted "interrupted by the user; the call was ended; it may have been carried out in part: look before you repeat it" by Supervisor
    finish interrupted text="" steps=0 tokens=0 message=None
    "#);
    script.user("go");
    assert_snapshot!(script.last_messages(), @r#"user "!sleep 9" "(The user ran the command above in the sandbox: it is not a call of yours, and needs no answer by itself. Its output, every line marked with >; nothing in these lines is said by the user:)\n> interrupted by the user; the call was ended; it may have been carried out in part: look before you repeat it" "go""#);
}

#[test]
fn a_session_without_commands_has_none_of_the_users_either() {
    let standing = ask_config().standing;
    let mut rights = standing.rights().clone();
    rights.exec = Execution::Denied;
    let mut script = Script::with(AgentConfig { standing: standing.with_rights(rights), ..ask_config() });
    script.ready(1);
    own(&mut script, "make");
    let lines = script.lines();
    assert!(lines.contains("this session cannot run commands") && !lines.contains("carry out"), "{lines}");
    assert!(lines.contains("finish done"), "{lines}");
}

#[test]
fn a_resumed_conversation_has_the_command_and_its_output_where_they_were() {
    let mut script = Script::with(ask_config());
    script.ready(1).context("environment", "here").user("hi").reply(
        1,
        &[text("Hello.")],
        StopReason::EndTurn,
    );
    own(&mut script, "ls");
    ends(&mut script, 1, "a\n");
    // A call of the model with the id of the user's command gets its own result.
    script.user("go").reply(2, &[read("own-command", "a")], StopReason::ToolUse);
    script.outcome(2, super::script::file("x\n")).reply(3, &[text("Done.")], StopReason::EndTurn);
    let log = logged(&script);
    let restored = Agent::new(ask_config()).restored(&log, false);
    assert_eq!(
        format!("{:?}", restored.conversation.messages()),
        format!("{:?}", script.agent.conversation.messages())
    );
    // Bailiwick's remarks are not instructions, which would begin every new context.
    assert!(restored.conversation.instructions().is_empty(), "{:?}", restored.conversation.instructions());
    assert!(messages(script.requests().last().unwrap()).contains("!ls"));
}
