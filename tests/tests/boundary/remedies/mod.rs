//! Tests that the text about a denial in a tool result suffices: a reader who knows only this text succeeds at the
//! second attempt. The reader is a program (`reader`), so a test case (scene) fails if its text is incomplete.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod attempt;
mod ground;
mod network;
mod reader;
mod scenes;

use attempt::play;
use scenes::SCENES;
use tests::tier::share;

#[test]
fn who_follows_only_the_sentence_succeeds_at_the_second_attempt() {
    assert!(SCENES.len() >= 10);
    let mut failures = vec![];
    for (case, scene) in SCENES.iter().enumerate() {
        for (user, tier) in share(case) {
            if let Err(why) = play(scene, user, tier) {
                failures.push(format!("{} ({user:?}, {tier} tier): {why}", scene.name));
            }
        }
    }
    assert!(failures.is_empty(), "{} scenes\n{}", failures.len(), failures.join("\n\n"));
}
