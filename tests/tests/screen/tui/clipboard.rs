//! Tests pictures by Ctrl+V and by a dropped path. A program in `PATH` imitates the desktop's clipboard.

use std::path::{Path, PathBuf};

use tests::programs::write_script;

use super::*;

const CTRL_V: &str = "\u{16}";

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/images/shapes.png")
}

/// Starts the UI on a desktop whose clipboard this script prints.
fn desktop(world: &World, server: &ReplayServer, script: &str) -> Ui {
    let programs = world.outside();
    write_script(&programs.join("wl-paste"), script);
    let mut command = world.ui(server, &[]);
    let path = std::env::var("PATH").unwrap();
    command.env("WAYLAND_DISPLAY", "wayland-0").env("PATH", format!("{}:{path}", programs.display()));
    let ui = Ui::start(&command, SIZE);
    ui.until_shown("net off");
    ui
}

#[test]
fn the_picture_in_the_clipboard_goes_with_the_message() {
    let (world, server) = (world(), model_of([done()]));
    let script = format!("#!/bin/sh\nexec cat {}\n", fixture().display());
    let mut ui = desktop(&world, &server, &script);
    ui.types(CTRL_V);
    ui.until_shown("48×32");
    ui.types("look\r");
    ui.until_shown("Done.");
    assert!(sent(&server, 0).contains("image/png"), "{}", sent(&server, 0));
}

#[test]
fn a_clipboard_without_a_picture_is_one_line_and_nothing_is_sent() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = desktop(&world, &server, "#!/bin/sh\nprintf '\\033[2Jtext, and no picture'\n");
    ui.types(CTRL_V);
    ui.until_shown("the content of the clipboard is not a PNG");
    ui.types("look\r");
    ui.until_shown("Done.");
    assert!(!sent(&server, 0).contains("image/png"), "{}", sent(&server, 0));
}

#[test]
fn a_dropped_path_is_offered_and_the_key_attaches_it() {
    let (world, server) = (world(), model_of([done()]));
    let mut ui = desktop(&world, &server, "#!/bin/sh\nexit 1\n");
    let picture = world.project().join("a b.png");
    fs::copy(fixture(), &picture).unwrap();
    ui.types(&format!("\u{1b}[200~'{}' \u{1b}[201~", picture.display()));
    ui.until_shown("attaches this picture");
    ui.types(CTRL_V);
    ui.until("the picture in the place of its path", |screen| {
        screen.contains("48×32") && !screen.contains("a b.png")
    });
    ui.types("look\r");
    ui.until_shown("Done.");
    let request = sent(&server, 0);
    assert!(request.contains("image/png") && !request.contains("a b.png"), "{request}");
}
