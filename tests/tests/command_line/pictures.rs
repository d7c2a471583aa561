//! Tests pictures through all processes: from the user and from `read_file`, to the model and into the log.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use model::replay::ReplayServer;
use serde_json::{Value, json};
use tests::replies::model;
use tests::tier::everywhere;
use tests::world::tool_results;
use tests::{Finished, World};

const PNG: &[u8] = include_bytes!("../../../fixtures/images/shapes.png");
const WEBP: &[u8] = include_bytes!("../../../fixtures/images/lossy.webp");

/// Returns the content of the first message in a request.
fn first_message(server: &ReplayServer, request: usize) -> Vec<Value> {
    let body: Value = serde_json::from_slice(&server.requests()[request].body).unwrap();
    body["messages"][0]["content"].as_array().unwrap().clone()
}

#[test]
fn r10_the_model_sees_the_users_picture_and_the_projects() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        world.file("shot.dat", PNG);
        let server = model(&[("read_file", json!({"path": "shot.dat"}))]);
        let photo = world.root().join("photo");
        std::fs::write(&photo, WEBP).unwrap();
        let done = Finished::of(&mut world.exec(&server, &["--image", photo.to_str().unwrap()]));
        assert_eq!(done.code, 0, "{}\n{}", done.stdout, done.stderr);
        let first = first_message(&server, 0);
        let [.., image, words] = &first[..] else { panic!("{first:?}") };
        assert_eq!((&image["type"], &image["source"]["media_type"]), (&json!("image"), &json!("image/webp")));
        assert_eq!(words["text"], "do it");
        assert_eq!(first_message(&server, 1), first, "what was sent stays as it is");
        let result = &tool_results(&server, 1)[0]["content"];
        assert_eq!(result[0]["text"], "[image png 48×32, 192 bytes]");
        assert_eq!(result[1]["source"]["media_type"], "image/png");
        let log = world.log();
        let of =
            |kind: &str| log.iter().find(|event| event["type"] == kind).unwrap()["data"]["images"][0].clone();
        assert_eq!(of("user_message")["data"], image["source"]["data"]);
        assert_eq!(of("tool_call_finished")["data"], result[1]["source"]["data"]);
    }
}

#[test]
fn a_picture_that_cannot_be_sent_is_said_before_anything_starts() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        world.file("cut.png", &PNG[..60]);
        let server = model(&[]);
        let cut = world.project().join("cut.png");
        let done = Finished::of(&mut world.exec(&server, &["--image", cut.to_str().unwrap()]));
        assert_eq!((done.code, server.connections()), (2, 0));
        assert!(done.stderr.contains("cut.png` is a damaged png picture"), "{}", done.stderr);
    }
}
