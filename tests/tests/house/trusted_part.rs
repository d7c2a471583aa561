//! Tests that the trusted part stays small: listed files alone have unsafe code, and some words are never used.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Beginnings of names of packages on which no crate may depend directly, each with the reason.
const NOT_NAMED: &[(&str, &str)] = &[
    ("tree-sitter", "no C parser reads a model's text"),
    ("rustix", "nix and libc are the crates for system calls"),
];

/// Words that no code may contain, each with the reason.
const NOT_WRITTEN: &[(&str, &str)] =
    &[("asm!", "no machine code by hand"), ("no_main", "a program starts as Rust's do")];

const MEMBERS: &[&str] = &[
    "ipc",
    "ipc/complaint",
    "ipc/picture",
    "ipc/protocol",
    "sandbox-exec",
    "supervisor",
    "supervisor/agent",
    "supervisor/boundary",
    "supervisor/gate",
    "supervisor/model",
    "tui",
    "worker",
];

const UNSAFE: &[&str] = &[
    "sandbox-exec/src/descriptors.rs",
    "sandbox-exec/src/handover.rs",
    "sandbox-exec/src/init.rs",
    "sandbox-exec/src/launch/floor.rs",
    "sandbox-exec/src/launch/full.rs",
    "sandbox-exec/src/mediate/call/listener.rs",
    "sandbox-exec/src/mediate/call/memory.rs",
    "sandbox-exec/src/mediate/files/metadata/change.rs",
    "sandbox-exec/src/mediate/sysv.rs",
    "sandbox-exec/src/mediate/call/socket.rs",
    "sandbox-exec/src/memory.rs",
    "sandbox-exec/src/namespace/mount.rs",
    "sandbox-exec/src/system.rs",
    "sandbox-exec/src/system/file.rs",
    "sandbox-exec/src/system/forbidden.rs",
    "sandbox-exec/src/system/process.rs",
    "supervisor/boundary/src/system.rs",
    "supervisor/model/src/secrets/harden.rs",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the path and the text of each source of the programs, without tests.
fn sources() -> Vec<(String, String)> {
    let output =
        Command::new("git").args(["ls-files", "--", "*/src/*.rs"]).current_dir(root()).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    let is_ours = |path: &&str| !path.starts_with("tests/") && !path.contains("/tests");
    let sources = listing.lines().filter(is_ours).filter_map(|path| {
        let text = std::fs::read_to_string(root().join(path)).ok()?;
        let production = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
        Some((path.to_owned(), production))
    });
    let sources: Vec<_> = sources.collect();
    assert!(sources.len() > 300, "{} sources", sources.len());
    sources
}

/// Returns the lines of a source, without comments.
fn code(source: &str) -> impl Iterator<Item = &str> {
    source.lines().map(str::trim_start).filter(|line| !line.starts_with("//"))
}

fn has_unsafe_code(source: &str) -> bool {
    let starts = ["unsafe {", "unsafe fn ", "unsafe extern ", "unsafe impl "];
    code(source).any(|line| starts.iter().any(|start| line.contains(start)))
}

#[test]
fn no_crate_names_a_package_of_the_list() {
    let output =
        Command::new("git").args(["ls-files", "--", "*Cargo.toml"]).current_dir(root()).output().unwrap();
    let listing = String::from_utf8(output.stdout).unwrap();
    assert!(listing.lines().count() > 5, "{listing}");
    for path in listing.lines() {
        let manifest = std::fs::read_to_string(root().join(path)).unwrap();
        for (package, reason) in NOT_NAMED {
            assert!(
                !manifest.lines().any(|line| line.starts_with(package)),
                "{path} names {package}: {reason}"
            );
        }
    }
}

/// Tests that only the TLS library compiles C. A crate that does so has `cc` as a build dependency.
#[test]
fn the_supervisor_compiles_no_c_but_its_tls_librarys() {
    let tree = [
        "tree",
        "--offline",
        "-e",
        "normal,build",
        "-p",
        "supervisor",
        "-i",
        "cc",
        "--depth",
        "1",
        "--prefix",
        "none",
    ];
    let output = Command::new(env!("CARGO")).args(tree).current_dir(root()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let users: Vec<_> = text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(users, ["ring"], "{text}");
}

#[test]
fn no_code_has_a_word_of_the_list() {
    for (path, source) in sources() {
        for (word, reason) in NOT_WRITTEN {
            assert!(!code(&source).any(|line| line.contains(word)), "{path} has {word}: {reason}");
        }
    }
}

#[test]
fn unsafe_code_is_in_the_named_files_only() {
    let found: Vec<_> = sources().into_iter().filter(|(_, source)| has_unsafe_code(source)).collect();
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    let unnamed: Vec<_> = paths.iter().filter(|path| !UNSAFE.contains(path)).collect();
    assert!(unnamed.is_empty(), "these have unsafe code, and do not exist for it: {unnamed:?}");
    let without: Vec<_> = UNSAFE.iter().filter(|path| !paths.contains(path)).collect();
    assert!(without.is_empty(), "these have no unsafe code any more: {without:?}");
    assert!(UNSAFE.len() <= 20, "{} files", UNSAFE.len());
}

/// Tests that the compiler enforces the list of files: every crate root forbids unsafe code, or denies it while the
/// listed files expect it with a reason. The crate `tests` is left out: its probe and its victims make system calls for
/// which there is no crate.
#[test]
fn the_compiler_rejects_unsafe_code_elsewhere() {
    for name in MEMBERS {
        for root_file in ["lib.rs", "main.rs"] {
            let path = format!("{name}/src/{root_file}");
            let Ok(source) = std::fs::read_to_string(root().join(&path)) else { continue };
            let has_files = UNSAFE.iter().any(|file| file.starts_with(&format!("{name}/src/")));
            let level = if has_files && root_file == "lib.rs" { "deny" } else { "forbid" };
            assert!(source.contains(&format!("#![{level}(unsafe_code)]")), "{path} does not {level} it");
        }
    }
    for (path, source) in sources() {
        let gives_leave = code(&source)
            .any(|line| line.contains("unsafe_code") && !line.contains("deny(") && !line.contains("forbid("));
        assert_eq!(gives_leave, UNSAFE.contains(&path.as_str()), "{path}");
        assert!(!gives_leave || source.contains("#![expect("), "{path} gives no reason");
    }
}
