//! Tests a session that is continued after the change of a file was reverted.

use serde_json::json;
use tests::replies::{calls, done, model_of};
use tests::ui::Ui;

use super::world;

#[test]
fn a_file_that_was_taken_back_is_not_listed_as_changed_when_the_session_goes_on() {
    let write = |path: &str| ("write_file", json!({"path": path, "content": "new\n"}));
    let (world, server) = (world(), model_of([calls(&[write("one.txt"), write("two.txt")]), done()]));
    let mut ui = Ui::start(&world.ui(&server, &["--mode", "auto", "write both"]), (120, 40));
    ui.until_shown("Done.");
    ui.until_shown("2 files · ");
    ui.types(":revert one.txt\r");
    ui.until_shown("y restore");
    // The key is pressed only once, because a second one would be text in the prompt.
    ui.types("y");
    ui.until("one file", |screen| screen.contains("1 file · "));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    assert!(!world.project().join("one.txt").exists());
    let mut ui = Ui::start(&world.ui(&server, &["-c"]), (120, 40));
    ui.until_shown("earlier approvals are no longer valid");
    let screen = ui.screen();
    assert!(screen.contains("1 file · ") && !screen.contains("2 files · "), "{screen}");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}
