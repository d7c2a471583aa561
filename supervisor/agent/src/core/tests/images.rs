use insta::assert_snapshot;
use ipc::id::CallId;
use ipc::image::Image;
use ipc::message::CallOutcome;
use ipc::tool::ToolOutput;
use protocol::frontend::{AgentAction, Op};

use super::script::{Script, config, read, text};
use super::served::{note, with_served_tools};
use crate::conversation::StopReason;
use crate::core::{Input, ServedOutcome};

const PNG: &[u8] = include_bytes!("../../../../../fixtures/images/shapes.png");

pub(super) fn image(bytes: usize) -> Image {
    let mut png = PNG.to_vec();
    png.resize(bytes.max(PNG.len()), 0);
    picture::read(png).unwrap()
}

fn says(words: &str, images: Vec<Image>) -> Input {
    Input::Op(Op::Act(AgentAction::Prompt { text: words.to_owned(), images }))
}

#[test]
fn r10_pictures_of_the_user_and_of_results_are_in_the_conversation_and_in_the_log() {
    let mut script = Script::new();
    script.input(says("what is it?", vec![image(0), image(2000)]));
    script.reply(1, &[read("a", "x.png")], StopReason::ToolUse);
    script.input(Input::CallFinished {
        call: CallId(1),
        outcome: CallOutcome::Done(ToolOutput::Image(image(0))),
        duration_ms: 7,
    });
    script.reply(2, &[text("a circle")], StopReason::EndTurn);
    script.input(says("  ", vec![image(0)]));
    assert_snapshot!(script.last_messages(), @r#"
    user [image png 48×32, 192 bytes] [image png 48×32, 2 KB] "what is it?"
    assistant {"type":"tool_use","id":"a","name":"read_file","input":{"path":"x.png"}}
    user [result a: "[image png 48×32, 192 bytes]" with [image png 48×32, 192 bytes]]
    assistant {"type":"text","text":"a circle"}
    user [image png 48×32, 192 bytes]
    "#);
    let logged = script.lines();
    for line in [
        r#"user [image png 48×32, 192 bytes] [image png 48×32, 2 KB] "what is it?""#,
        r#"finished 1 a Completed "[image png 48×32, 192 bytes]" [[image png 48×32, 192 bytes]]"#,
        r#"user [image png 48×32, 192 bytes] "  ""#,
    ] {
        assert!(logged.contains(line), "{line}\n{logged}");
    }
}

#[test]
fn a_picture_that_there_is_no_room_for_is_left_out_and_everybody_is_told() {
    let mut script = Script::new();
    script.input(says("all of these", vec![image(3 << 20); 6]));
    script.reply(1, &[read("a", "x.png")], StopReason::ToolUse);
    script.input(Input::CallFinished {
        call: CallId(1),
        outcome: CallOutcome::Done(ToolOutput::Image(image(0))),
        duration_ms: 7,
    });
    assert_snapshot!(script.last_messages(), @r#"
    user [image png 48×32, 3.1 MB] [image png 48×32, 3.1 MB] [image png 48×32, 3.1 MB] [image png 48×32, 3.1 MB] [image png 48×32, 3.1 MB] "all of these\n([image png 48×32, 3.1 MB] was left out: the pictures of this conversation would have 18874368 bytes together, and 15728640 is the limit; make this picture smaller, or start a new conversation)"
    assistant {"type":"tool_use","id":"a","name":"read_file","input":{"path":"x.png"}}
    user [error a: "[image png 48×32, 192 bytes] was left out: the pictures of this conversation would have 15728832 bytes together, and 15728640 is the limit; make this picture smaller, or start a new conversation"]
    "#);
}

#[test]
fn pictures_of_a_server_are_shown_as_far_as_there_is_room() {
    let mut script = Script::with(with_served_tools(config()));
    script.input(says("look", vec![image(3 << 20); 5]));
    script.reply(1, &[note("a")], StopReason::ToolUse);
    let outcome = ServedOutcome::Pictured("a circle".to_owned(), vec![image(0)]);
    script.input(Input::Served { call: CallId(1), outcome, duration_ms: 1 });
    let full = r#"[result a: "a circle\n([image png 48×32, 192 bytes] was left out: the pictures"#;
    assert!(script.last_messages().contains(full), "{}", script.last_messages());
    let mut script = Script::with(with_served_tools(config()));
    script.input(says("look", vec![]));
    script.reply(1, &[note("a")], StopReason::ToolUse);
    let outcome = ServedOutcome::Pictured("two".to_owned(), vec![image(0), image(2000)]);
    script.input(Input::Served { call: CallId(1), outcome, duration_ms: 1 });
    let both = r#"[result a: "two" with [image png 48×32, 192 bytes] with [image png 48×32, 2 KB]]"#;
    assert!(script.last_messages().contains(both), "{}", script.last_messages());
}
