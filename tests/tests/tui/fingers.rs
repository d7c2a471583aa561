//! The message in an editor, and the history over sessions.

use std::fs;
use std::os::unix::fs::MetadataExt;

use tests::replies::{done, model_of};
use tests::ui::Ui;

use super::{SIZE, sent, world};

#[test]
fn ctrl_g_hands_the_terminal_to_the_editor_and_takes_its_text() {
    let (world, server) = (world(), model_of([done()]));
    let mut command = world.ui(&server, &[]);
    command.env_remove("VISUAL").env("EDITOR", "sed -i s/wrong/right/");
    let mut ui = Ui::start(&command, SIZE);
    ui.until_shown("INSERT");
    ui.types("the wrong word");
    ui.until_shown("the wrong word");
    // In a burst of keys it would be a part of a paste.
    std::thread::sleep(std::time::Duration::from_millis(300));
    ui.types("\x07");
    ui.until_shown("the right word");
    ui.types("\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("the right word"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn the_history_goes_on_in_the_next_session() {
    let (world, server) = (world(), model_of([done(), done()]));
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("look at the parser\r");
    ui.until_shown("Done.");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
    let file = world.own().join("state/history.jsonl");
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("\x12parser");
    ui.until_shown("▸ look at the parser");
    ui.types("\r");
    ui.until_shown("› look at the parser");
    ui.types("\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 1).contains("look at the parser"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn a_file_is_named_by_a_few_letters_and_no_ignored_one_is_offered() {
    let (world, server) = (world(), model_of([done()]));
    fs::create_dir_all(world.project().join("src/parts")).unwrap();
    fs::write(world.project().join("src/parts/engine.rs"), "").unwrap();
    fs::write(world.project().join("engine.log"), "").unwrap();
    fs::write(world.project().join(".gitignore"), "*.log\n").unwrap();
    let mut ui = Ui::start(&world.ui(&server, &[]), SIZE);
    ui.until_shown("INSERT");
    ui.types("read @engi");
    ui.until_shown("▸ src/parts/engine.rs");
    assert!(!ui.screen().contains("engine.log"), "{}", ui.screen());
    ui.types("\t");
    ui.until_shown("› read @src/parts/engine.rs");
    ui.types("now\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("read @src/parts/engine.rs now"));
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}
