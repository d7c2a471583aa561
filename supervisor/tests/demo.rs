//! Tests that one test of the demo's project fails at first, and passes after the scripted model's edit.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use model::replay::Block;
use supervisor::front::demo::conversation::{Answered, DemoTurn};
use supervisor::front::demo::project::{self, FILES};
use supervisor::front::demo::repair::{BUG, END, FIX, Repairer};

/// Runs the tests of the demo's project. Returns the exit status and the last line of the output.
fn test(project: &Path) -> (Option<i32>, String) {
    let output = Command::new("bash").arg("test.sh").current_dir(project).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text.lines().last().unwrap_or_default().to_owned())
}

fn texts(blocks: &[Block]) -> String {
    let text = |block: &Block| match block {
        Block::Text(text) => Some(text.clone()),
        _ => None,
    };
    blocks.iter().filter_map(text).collect()
}

fn after(id: &str, is_error: bool) -> DemoTurn {
    DemoTurn::After(vec![Answered { id: id.to_owned(), is_error }])
}

#[test]
fn every_file_of_the_project_is_embedded() {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/projects/demo");
    let names = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(FILES.iter().map(|(path, _)| (*path).to_owned()).collect::<BTreeSet<_>>(), names.collect());
}

#[test]
fn the_edit_repairs_the_one_test_that_fails() {
    let place = tempfile::tempdir().unwrap();
    project::create(place.path()).unwrap();
    assert_eq!(test(place.path()), (Some(1), "1 of 8 tests failed".to_owned()));
    let program = place.path().join("sizes.sh");
    let text = fs::read_to_string(&program).unwrap();
    assert_eq!(text.matches(BUG).count(), 1);
    fs::write(program, text.replace(BUG, FIX)).unwrap();
    assert_eq!(test(place.path()), (Some(0), "all 8 tests passed".to_owned()));
}

#[test]
fn the_project_is_committed_without_settings_of_the_user() {
    let place = tempfile::tempdir().unwrap();
    project::create(place.path()).unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = git.args(arguments).current_dir(place.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(git(&["log", "--format=%an %s"]), "Bailiwick Read and print sizes\n");
    assert_eq!(git(&["status", "--short"]), "");
}

#[test]
fn the_model_goes_on_from_what_really_happened() {
    let model = Repairer::new(Path::new("/home/it's me/note"), true);
    let note = model.reply(&after("toolu_test", true));
    let [_, Block::ToolUse { input, .. }] = note.as_slice() else { panic!("{note:?}") };
    assert!(input.contains(r"> '/home/it'\\''s me/note'"), "{input}");
    for (step, is_error, words) in [
        ("toolu_note", true, "I am not allowed to write there"),
        ("toolu_note", false, "The note is there"),
        ("toolu_fix", true, "I leave `sizes.sh` as it is"),
        ("toolu_verify", true, "The tests still fail."),
        ("toolu_verify", false, "Fixed, and the tests pass"),
        ("toolu_of_another", false, END),
    ] {
        let said = texts(&model.reply(&after(step, is_error)));
        assert!(said.contains(words), "{step} {is_error}: {said}");
    }
    assert_eq!(texts(&model.reply(&DemoTurn::Over)), END);
}
