//! Results in a whole session: pictures, resources and what is only named.

use serde_json::{Value, json};
use tests::replies::{done, model_of};
use tests::{Finished, tier};

use crate::sessions::{add, echo, results, world};

#[test]
fn a_picture_of_a_result_reaches_the_model_and_other_parts_are_named() {
    let world = world(tier::all()[0]);
    add(&world, &[]).expect(0);
    world.file("mode", "all-kinds");
    let model = model_of([echo("x"), done()]);
    let flags = ["--mcp", "docs", "--output", "stream-json", "go"];
    let ran = Finished::of(&mut world.task(&model.base_url(), flags)).expect(0);
    let expected = "words\n[image png 48×32, 192 bytes]\n\
        (image/png of 12 bytes, not shown: it is no PNG, JPEG, GIF or WebP picture)\n\
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
