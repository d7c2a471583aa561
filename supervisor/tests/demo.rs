//! The demo's project and session hold what they promise: one failing test, and edits that mend it.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use supervisor::demo::project::FILES;
use supervisor::demo::session::{HOME, REPLIES};
use tempfile::TempDir;

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/projects/demo");

fn unpacked() -> TempDir {
    let directory = TempDir::new().unwrap();
    for (path, bytes) in FILES {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    directory
}

fn paths_below(root: &Path, directory: &Path, paths: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().unwrap() != "target" {
            paths_below(root, &path, paths);
        } else if path.is_file() {
            paths.insert(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
        }
    }
}

/// The names of the tests that fail and the number of those that pass; nothing where there is no cargo.
fn cargo_test(project: &Path) -> Option<(Vec<String>, usize)> {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--offline", "--no-fail-fast"]).current_dir(project).env_remove("CARGO_TARGET_DIR");
    let Ok(output) = cargo.output() else {
        eprintln!("skipped: no cargo on this machine");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ending = |word: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(word));
        lines.map(str::to_owned).collect()
    };
    Some((ending(" ... FAILED"), ending(" ... ok").len()))
}

/// The tool calls of a stream, names and arguments, by the rules of the API: by block, parts joined.
fn tool_calls(stream: &str) -> Vec<(String, Value)> {
    let mut blocks = BTreeMap::<u64, (String, String)>::new();
    for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let event: Value = serde_json::from_str(data).unwrap();
        let index = event["index"].as_u64().unwrap_or_default();
        if event["content_block"]["type"] == "tool_use" {
            blocks
                .insert(index, (event["content_block"]["name"].as_str().unwrap().to_owned(), String::new()));
        }
        if let Some(json) = event["delta"]["partial_json"].as_str() {
            blocks.get_mut(&index).unwrap().1.push_str(json);
        }
    }
    blocks.into_values().map(|(name, input)| (name, serde_json::from_str(&input).unwrap())).collect()
}

#[test]
fn every_file_of_the_project_is_embedded() {
    let mut there = BTreeSet::new();
    paths_below(Path::new(PROJECT), Path::new(PROJECT), &mut there);
    assert_eq!(FILES.iter().map(|(path, _)| (*path).to_owned()).collect::<BTreeSet<_>>(), there);
}

#[test]
fn the_session_mends_the_one_test_that_fails() {
    let project = unpacked();
    let Some(before) = cargo_test(project.path()) else { return };
    assert_eq!(before, (vec!["what_is_printed_is_read_back".to_owned()], 5));
    for (tool, input) in REPLIES.iter().flat_map(|(_, stream)| tool_calls(stream)) {
        if tool == "edit_file" {
            let path = project.path().join(input["path"].as_str().unwrap());
            let text = fs::read_to_string(&path).unwrap();
            let (old, new) = (input["old_string"].as_str().unwrap(), input["new_string"].as_str().unwrap());
            assert_eq!(text.matches(old).count(), 1, "{old}");
            fs::write(path, text.replace(old, new)).unwrap();
        }
    }
    assert_eq!(cargo_test(project.path()).unwrap(), (vec![], 7));
}

#[test]
fn the_session_is_what_the_demo_tells() {
    let calls: Vec<Vec<String>> = REPLIES
        .iter()
        .map(|(_, stream)| tool_calls(stream).into_iter().map(|call| call.0).collect())
        .collect();
    let expected: [&[&str]; 6] = [
        &["list_directory", "read_file", "read_file"],
        &["shell_exec"],
        &["write_file"],
        &["edit_file", "edit_file"],
        &["shell_exec"],
        &[],
    ];
    assert_eq!(calls, expected);
    let (_, input) = tool_calls(REPLIES[2].1).remove(0);
    assert_eq!(input["path"].as_str().unwrap().strip_prefix(HOME), Some("/sizes-bug.md"));
    assert_eq!(REPLIES[2].1.matches(HOME).count(), 1, "the placeholder crosses no border of two deltas");
}
