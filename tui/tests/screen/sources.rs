//! Tests that only one file of the crate writes cells, and that no file reads a clock or does I/O.

use std::path::Path;

fn sources(directory: &Path, visit: &mut impl FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, visit);
        } else {
            visit(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn one_place_writes_cells_and_nothing_reads_a_clock() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    sources(&root, &mut |path, text| {
        seen += 1;
        for writer in [
            "set_symbol",
            "set_string",
            "set_line",
            "set_span",
            "cell_mut",
            "render_widget",
            "Paragraph::",
            "Span::",
            "Line::",
        ] {
            assert!(
                !text.contains(writer) || path.ends_with("view/pane.rs"),
                "{} writes cells: {writer}",
                path.display()
            );
        }
        for impure in [
            "Instant",
            "SystemTime",
            "std::fs",
            "std::env",
            "std::io",
            "std::process",
            "std::thread",
            "std::net",
        ] {
            assert!(!text.contains(impure), "{} uses {impure}", path.display());
        }
    });
    assert!(seen > 20, "only {seen} files");
}
