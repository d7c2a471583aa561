//! Tests MCP servers with a person at a terminal: the question of `mcp add`, and a server's form with `--plain`.

use serde_json::{Value, json};
use tests::replies::{done, model_of};
use tests::ui::Ui;
use tests::{Finished, World, tier};

use crate::sessions::{add, echo, world};

const SIZE: (u16, u16) = (120, 60);

#[test]
fn no_answer_but_yes_at_the_question_of_mcp_add_leaves_anything() {
    let world = world(tier::all()[0]);
    let mut command = world.bailiwick(["mcp", "add", "docs", "--read", ".", "-C"]);
    command.arg(world.project()).args(["--", "./server.sh"]).current_dir(world.project());
    let ask = |keys: &str| {
        let mut ui = Ui::start(&command, SIZE);
        ui.until_shown("Let agents call docs with this access? [y/N]");
        ui.types(keys);
        ui.end()
    };
    for (keys, code) in [("n\r", 0), ("\r", 0), ("yes please\r", 0), ("\u{4}", 0), ("\u{3}", 130)] {
        let left = ask(keys);
        assert_eq!(left.code, code, "{keys:?}: {}", left.screen);
        assert!(left.screen.contains("\nbailiwick: nothing was changed"), "{keys:?}: {}", left.screen);
        for rest in
            ["config/config.toml", "state/guests/docs", "state/pins/docs.json", "state/installed/docs"]
        {
            assert!(!world.own().join(rest).exists(), "{keys:?} leaves {rest}");
        }
    }
    assert!(ask("y\r").screen.contains("added the MCP server docs"));
    let listed = Finished::of(world.bailiwick(["mcp", "list", "-C"]).arg(world.project())).expect(0).stdout;
    assert!(listed.starts_with("docs  ready, 2 tools"), "{listed}");
}

/// Returns the results of the calls in the last session.
fn results(world: &World) -> Vec<String> {
    let log = world.log();
    let finished = log.iter().filter(|event| event["type"] == "tool_call_finished");
    finished.map(|event| event["data"]["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn details() -> Value {
    let labels = json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "default": ["b"]});
    json!({"message": "Which ones?", "requestedSchema": {"type": "object", "required": ["count"], "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 5},
        "labels": labels,
    }}})
}

#[test]
fn a_form_is_filled_in_line_by_line_and_sent_after_all_of_it_was_shown() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    world.file("mode", "asks");
    world.file("question.json", details().to_string());
    let model = model_of([echo("1"), echo("2"), echo("3"), done()]);
    let mut ui = Ui::start(&world.ui(&model, &["--plain", "go on"]), SIZE);
    let ended = |count: usize| {
        tests::wait_until("the call ends", || results(&world).len() == count);
        results(&world).pop().unwrap_or_default()
    };
    ui.until_shown("Field 1 of 2: count (whole number, 1 to 5)");
    ui.types("9\r");
    ui.until_shown("Not accepted: at most 5.");
    ui.types("3\r");
    ui.until_shown("Type the numbers of your choices, separated by commas; an empty line means: b; - leaves the field empty.");
    ui.types("\r");
    ui.until_shown("Type yes to send these values to the MCP server docs");
    ui.until_shown("  labels: b");
    assert!(results(&world).is_empty(), "nothing is sent before a yes");
    ui.types("yes\r");
    let said = ended(1);
    assert!(said.contains(r#""action":"accept","content":{"count":3,"labels":["b"]}"#), "{said}");
    ui.until("the second form", |screen| screen.matches("Field 1 of 2").count() == 3);
    ui.types(":decline not now\r");
    assert!(ended(2).contains(r#""action":"decline""#));
    ui.until("the third form", |screen| screen.matches("Field 1 of 2").count() == 4);
    ui.types(":cancel\r");
    assert!(ended(3).contains(r#""action":"cancel""#));
    ui.until_shown("> ");
    ui.types("\u{4}");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_form_that_asks_for_a_secret_is_not_asked_in_lines_either() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    world.file("mode", "asks");
    let question = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {"password": {"type": "string"}}}});
    world.file("question.json", question.to_string());
    let model = model_of([echo("1"), done()]);
    let mut ui = Ui::start(&world.ui(&model, &["--plain", "go on"]), SIZE);
    ui.until_shown("was declined: the form seems to ask for a secret");
    ui.until_shown("> ");
    ui.types("\u{4}");
    let left = ui.end();
    assert!(!left.screen.contains("Field 1"), "{}", left.screen);
    assert!(results(&world)[0].contains("decline"));
}
