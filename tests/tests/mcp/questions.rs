//! Tests questions of MCP servers in whole sessions: answered, declined, withdrawn, and those that are never shown.

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::editor::Editor;
use tests::replies::{done, model_of};
use tests::served::Served;
use tests::{World, tier};

use crate::sessions::{add, echo, results, run, world};

struct Asking {
    served: Served,
    conversation: String,
    _model: ReplayServer,
}

fn asking_world(tier: ipc::confinement::Tier, mode: &str, question: &Value) -> World {
    let world = world(tier);
    add(&world, &[]).expect(0);
    world.file("mode", mode);
    world.file("question.json", question.to_string());
    world
}

impl Asking {
    fn in_mode(world: &World, mode: &str) -> Self {
        let model = model_of([echo("x"), done()]);
        let mut served = Served::greeted(world);
        let conversation = served.converse(&world.project(), &model.base_url(), mode);
        served.call("sendUserMessage", json!({"conversation_id": conversation, "text": "go"}));
        Self { served, conversation, _model: model }
    }

    fn answer(&mut self, asked: &Value, result: &Value) {
        self.served.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string());
    }

    /// Returns the result of the call during which the server asked.
    fn finished(&mut self) -> String {
        let finished = self.served.until("event/toolCallFinished");
        finished["data"]["content"].as_str().unwrap_or_default().to_owned()
    }
}

fn details() -> Value {
    json!({"message": "Which one?", "requestedSchema": {"type": "object", "required": ["count"], "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 5},
        "kind": {"type": "string", "enum": ["a", "b"], "default": "b"},
    }}})
}

#[test]
fn a_form_is_filled_in_for_its_call_and_an_answer_beyond_it_sends_nothing() {
    for tier in tier::all() {
        let world = asking_world(tier, "asks", &details());
        let digest = |asked: &Value| asked["params"]["digest"].clone();
        let count = |count: u32| json!({"decision": "approved", "values": {"count": count, "kind": "a"}});
        for (answer, expected) in [
            (count(3), r#""action":"accept","content":{"count":3,"kind":"a"}"#),
            (count(9), r#""action":"cancel""#),
            (json!({"decision": "approved", "values": {"count": 3, "other": 1}}), r#""action":"cancel""#),
            (json!({"decision": "approved"}), r#""action":"cancel""#),
            (json!({"decision": "approved_for_session"}), r#""action":"cancel""#),
            (json!({"decision": "denied"}), r#""action":"decline""#),
            (json!({"decision": "cancelled"}), r#""action":"cancel""#),
            (json!({"decision": "approved", "values": {"count": 3}, "digest": "0"}), r#""action":"cancel""#),
        ] {
            let mut asking = Asking::in_mode(&world, "auto");
            let asked = asking.served.asked("serverForm");
            let params = &asked["params"];
            assert_eq!((&params["server"], &params["message"]), (&json!("docs"), &json!("Which one?")));
            assert_eq!(params["fields"][0]["kind"]["number"]["most"], "5");
            let mut answer = answer;
            if answer.get("digest").is_none() {
                answer["digest"] = digest(&asked);
            }
            asking.answer(&asked, &answer);
            // A second answer to a question has no effect.
            asking.answer(&asked, &count(5));
            let said = asking.finished();
            assert!(said.contains(expected), "{answer}: {said}");
            asking.served.end();
        }
    }
}

#[test]
fn an_editor_sends_a_whole_form_by_an_option_or_can_only_decline() {
    let go = json!({"message": "Go on?", "requestedSchema": {"type": "object", "required": ["go"], "properties": {
        "go": {"type": "boolean"}, "how": {"type": "string", "default": "slowly"},
    }}});
    let names = |asked: &Value| -> Vec<String> {
        let options = asked["params"]["options"].as_array().unwrap();
        options.iter().map(|option| option["name"].as_str().unwrap().to_owned()).collect()
    };
    for (question, offered, chosen, expected) in [
        (
            &go,
            ["Send: yes", "Send: no", "Decline"].as_slice(),
            1,
            r#""action":"accept","content":{"go":false,"how":"slowly"}"#,
        ),
        (&go, &["Send: yes", "Send: no", "Decline"], 2, r#""action":"decline""#),
        (&details(), &["Decline"], 0, r#""action":"decline""#),
    ] {
        let world = asking_world(tier::all()[0], "asks", question);
        let model = model_of([echo("x"), done()]);
        let mut editor = Editor::greeted(&world, &model.base_url(), &[]);
        let session = editor.open(&world);
        let prompt = editor.say(&session, "go");
        let asked = editor.asked();
        assert_eq!(names(&asked), offered, "{asked}");
        let text = asked["params"]["toolCall"]["content"].to_string();
        if offered.len() == 1 {
            assert!(text.contains("decline the form here"), "{text}");
        } else {
            assert!(text.contains("how (how), text, can stay empty: slowly"), "{text}");
        }
        let option = &asked["params"]["options"][chosen]["optionId"];
        editor.answer(&asked, json!({"outcome": {"outcome": "selected", "optionId": option}}));
        assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
        let log = world.log();
        let finished = log.iter().find(|event| event["type"] == "tool_call_finished").unwrap();
        let said = finished["data"]["content"].as_str().unwrap();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_form_ends_with_its_turn() {
    let world = asking_world(tier::all()[0], "asks", &details());
    let mut asking = Asking::in_mode(&world, "ask");
    let asked = asking.served.asked("serverForm");
    let conversation = asking.conversation.clone();
    asking.served.call("interrupt", json!({"conversation_id": conversation}));
    let answered = asking.served.until("event/approvalAnswered");
    assert_eq!(answered["data"]["decision"], json!({"decision": "cancelled"}), "{answered}");
    let late = json!({"decision": "approved", "values": {"count": 3}, "digest": asked["params"]["digest"]});
    asking.answer(&asked, &late);
    let (rest, _) = asking.served.end();
    assert!(!rest.iter().any(|line| line.to_string().contains(r#"\"action\":\"accept\""#)), "{rest:?}");
}

#[test]
fn a_question_for_a_secret_a_page_or_a_form_that_cannot_be_shown_is_declined_and_told() {
    let form = |properties: Value| json!({"message": "m", "requestedSchema": {"type": "object", "properties": properties}});
    let many: serde_json::Map<_, _> =
        (0..40).map(|number| (format!("f{number}"), json!({"type": "boolean"}))).collect();
    let page = json!({"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "1"});
    for (question, why) in [
        (form(json!({"github_token": {"type": "string"}})), "seems to ask for a secret"),
        (form(json!({"a": {"type": "string", "title": "Your p\u{430}ssword"}})), "seems to ask for a secret"),
        (form(json!({"pass\u{200b}word": {"type": "string"}})), "seems to ask for a secret"),
        (page, "a web page"),
        (form(Value::Object(many)), "the form has too many fields"),
        (
            form(json!({"a": {"type": "string", "minLength": 100_000}})),
            "a default or minimum length of a text field is too long",
        ),
        // The protocol's crate cannot parse these messages.
        (
            form(json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}}})),
            "a field is not a text",
        ),
        (form(json!({"a": {"type": "string", "format": "colour"}})), "a text has an unknown format"),
        (form(json!({"a": {"type": "array", "items": {"type": "string"}}})), "a list has values"),
        (json!({"message": "m"}), "the server's question has no form"),
        (
            json!({"message": "m".repeat(10_000), "requestedSchema": {"type": "object", "properties": {}}}),
            "too long",
        ),
    ] {
        // A server of MCP version 2026-07-28 asks by the result of a call.
        for mode in ["asks", "modern-asks"] {
            let world = asking_world(tier::all()[0], mode, &question);
            let mut asking = Asking::in_mode(&world, "ask");
            let notice = asking.served.until("event/notice");
            assert_eq!(notice["data"]["code"], "form_declined", "{mode} {question}: {notice}");
            assert!(notice["data"]["message"].as_str().unwrap().contains(why), "{mode} {question}: {notice}");
            let said = asking.finished();
            assert!(said.contains("decline"), "{mode} {question}: {said}");
            asking.served.end();
        }
    }
}

#[test]
fn several_choices_are_a_list_within_its_bounds() {
    let labels = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}});
    let question = json!({"message": "Which?", "requestedSchema": {"type": "object", "properties": {"labels": labels},
        "required": ["labels"]}});
    for (values, expected) in [
        (json!(["c", "a"]), r#""action":"accept","content":{"labels":["c","a"]}"#),
        (json!([]), r#""action":"cancel""#),
        (json!(["a", "b", "c"]), r#""action":"cancel""#),
        (json!(["d"]), r#""action":"cancel""#),
        (json!("a"), r#""action":"cancel""#),
    ] {
        let world = asking_world(tier::all()[0], "asks", &question);
        let mut asking = Asking::in_mode(&world, "ask");
        let asked = asking.served.asked("serverForm");
        assert_eq!(asked["params"]["fields"][0]["kind"]["choices"]["most"], 2, "{asked}");
        let digest = &asked["params"]["digest"];
        asking
            .answer(&asked, &json!({"decision": "approved", "values": {"labels": values}, "digest": digest}));
        let said = asking.finished();
        assert!(said.contains(expected), "{values}: {said}");
        asking.served.end();
    }
}

#[test]
fn nobody_is_asked_in_a_run_or_after_a_call_has_ended() {
    let world = asking_world(tier::all()[0], "asks", &details());
    let ran = run(&world, [echo("x")], &["--mcp", "docs"]).expect(0);
    assert!(results(&ran)[0].1.contains("decline"), "{}", ran.stdout);
    assert!(ran.stdout.contains("nobody can be asked in this run"), "{}", ran.stdout);
    let world = asking_world(tier::all()[0], "asks-late", &details());
    let mut asking = Asking::in_mode(&world, "ask");
    assert!(asking.finished().contains("done"));
    asking.served.until("event/turnFinished");
    let (rest, _) = asking.served.end();
    assert!(!rest.iter().any(|line| line["method"] == "serverForm"), "{rest:?}");
}
