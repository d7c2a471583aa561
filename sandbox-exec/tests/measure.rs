//! What `bailiwick bench attach` asks sandbox-exec for.

use std::process::Command;

#[test]
fn each_tier_has_a_line_with_a_time() {
    let output = Command::new(env!("CARGO_BIN_EXE_sandbox-exec")).arg("--measure").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<_> = text.lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert_eq!(rows.iter().map(|(tier, _)| *tier).collect::<Vec<_>>(), ["full", "floor"]);
    assert!(rows.iter().all(|(_, nanoseconds)| nanoseconds.parse::<u64>().unwrap() > 0), "{text}");
}
