//! The sample project: a small crate, one of whose tests fails.

/// One embedded file by its path in the project.
macro_rules! file {
    ($path:literal) => {
        ($path, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/projects/demo/", $path)))
    };
}

/// The project's files by their paths.
pub static FILES: &[(&str, &[u8])] = &[
    file!(".gitignore"),
    file!("AGENTS.md"),
    file!("Cargo.lock"),
    file!("Cargo.toml"),
    file!("README.md"),
    file!("src/lib.rs"),
    file!("src/parse.rs"),
    file!("src/print.rs"),
    file!("src/unit.rs"),
    file!("tests/parse.rs"),
];
