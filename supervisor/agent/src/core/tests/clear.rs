use insta::assert_snapshot;
use protocol::frontend::{AgentAction, Op};

use super::script::{Script, text};
use crate::conversation::StopReason;
use crate::core::Input;

fn clear(script: &mut Script) -> String {
    script.input(Input::Op(Op::Act(AgentAction::Clear)));
    script.lines()
}

#[test]
fn the_next_request_knows_nothing_of_the_conversation_before() {
    let mut script = Script::new();
    script.context("environment", "here").context("AGENTS.md", "Use tabs.").ready(1);
    script.user("the secret word is plum").reply(1, &[text("I see.")], StopReason::EndTurn).lines();
    assert_snapshot!(clear(&mut script), @"log compacted Clear by Nobody: 115 to 1327 by Supervisor");
    script.user("go on");
    let sent = script.last_messages();
    assert!(!sent.contains("plum") && !sent.contains("I see."), "{sent}");
    assert!(sent.contains("Use tabs.") && sent.contains("go on"), "{sent}");
}

#[test]
fn an_empty_conversation_and_one_that_goes_on_are_not_cleared() {
    let mut script = Script::new();
    script.context("environment", "here").ready(1);
    script.lines();
    assert_snapshot!(clear(&mut script), @"log notice not_cleared the conversation was not cleared: it is empty by Supervisor");
    script.user("hi").lines();
    assert_snapshot!(clear(&mut script), @"log notice not_cleared the conversation was not cleared: a turn is running by Supervisor");
}
