//! Tests results and resources of MCP servers in whole sessions: pictures, embedded resources, and links to resources.

use std::fs;

use serde_json::{Value, json};
use tests::replies::{calls, done, model_of};
use tests::{Finished, tier};

use crate::sessions::{add, echo, results, run, world};

#[test]
fn a_picture_of_a_result_reaches_the_model_and_other_parts_are_named() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    world.file("mode", "all-kinds");
    let model = model_of([echo("x"), done()]);
    let flags = ["--mcp", "docs", "--output", "stream-json", "go"];
    let ran = Finished::of(&mut world.task(&model.base_url(), flags)).expect(0);
    let expected = "words\n[image png 48×32, 192 bytes]\n\
        (image/png of 12 bytes, not shown: it is not a PNG, JPEG, GIF or WebP picture)\n\
        (image/jpeg of 3 bytes, not shown: it is not in base64)\n(audio/wav of 3 bytes, not shown)\n[file:///a]\ninside\n\
        (application/pdf of 3 bytes, not shown: it is file:///c.pdf)\n[b](file:///b)";
    assert_eq!(results(&ran), [("completed".to_owned(), expected.to_owned())]);
    let body: Value = serde_json::from_slice(&model.requests()[1].body).unwrap();
    let content = &body["messages"].as_array().unwrap().last().unwrap()["content"][0]["content"];
    assert_eq!(content[0]["text"], expected);
    let data = content[1]["source"]["data"].as_str().unwrap();
    assert!(data.starts_with("iVBORw0KGgo") && data.len() == 256, "{data}");
}

#[test]
fn a_flood_of_pictures_is_bounded() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    world.file("mode", "many-pictures");
    let model = model_of([echo("x"), done()]);
    let flags = ["--mcp", "docs", "--output", "stream-json", "go"];
    let ran = Finished::of(&mut world.task(&model.base_url(), flags)).expect(0);
    let found = results(&ran);
    assert!(found[0].1.contains("not shown: a result shows at most 8 pictures"), "{found:?}");
    let finished = ran.events().into_iter().find(|event| event["type"] == "tool_call_finished").unwrap();
    assert_eq!(finished["data"]["images"].as_array().map(Vec::len), Some(8));
    assert_eq!(json!(found[0].0), "completed");
}

fn read(arguments: Value) -> String {
    calls(&[("read_resource", arguments)])
}

#[test]
fn resources_are_listed_and_read_by_one_tool_under_the_gate_of_their_server() {
    let world = world(tier::all()[0]);
    let added = add(&world, &[]).expect(0);
    assert!(added.stdout.contains("resources yes"), "{}", added.stdout);
    let wanted = || {
        [
            read(json!({"server": "docs"})),
            read(json!({"server": "docs", "uri": "file:///b"})),
            read(json!({"server": "other"})),
        ]
    };
    let found = results(&run(&world, wanted(), &["--mcp", "docs"]).expect(0));
    let list = "[a](file:///a): The first.\n[b](file:///b)\n[files](file:///{name}), with a value for each name in braces: All \
        of them.";
    assert_eq!(found[0], ("completed".to_owned(), list.to_owned()));
    assert_eq!(found[1], ("completed".to_owned(), "[file:///b]\ninside".to_owned()));
    assert!(found[2].1.contains("no server with resources has this name"), "{found:?}");
    // A server with more access than the agent needs an approval, and nobody answers in this run.
    add(&world, &["--env", "MCP_TOKEN"]).expect(0);
    let found = results(&run(&world, wanted(), &["--mcp", "docs"]));
    assert!(found[0].0 == "denied" && found[0].1.contains("call read_resource of docs"), "{found:?}");
    // A server's table in the settings that offers only some tools offers no resources.
    add(&world, &[]).expect(0);
    let config = world.own().join("config/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("read = ", "offer = [\"echo\"]\nread = ")).unwrap();
    let found = results(&run(&world, wanted(), &["--mcp", "docs"]));
    assert!(found[0].1.contains("there is no tool named `read_resource`"), "{found:?}");
}
