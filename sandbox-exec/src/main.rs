//! Executes a program under a ruleset.
fn main() {}
