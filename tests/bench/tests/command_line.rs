//! Tests of the command line of `bailiwick-bench`.

use std::process::Command;

use nix::unistd::geteuid;
use serde_json::Value;
use tests::{Finished, Programs, User, World, skip};

fn bench(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(env!("CARGO_BIN_EXE_bailiwick-bench"));
    command.args(arguments);
    command
}

#[test]
fn ratios_are_printed_as_json() {
    if !geteuid().is_root() {
        skip!("the memory of processes that are not dumpable");
    }
    let world = World::new(User::Myself);
    let mut command = bench(&world, &["idle-worker", "--json", "--program"]);
    let run = Finished::of(command.arg(Programs::get().path("bailiwick"))).expect(0);
    let reports: Vec<Value> = serde_json::from_str(&run.stdout).unwrap();
    let [report] = reports.try_into().unwrap();
    assert_eq!(report["name"], "idle-worker");
    let ratios = report["ratios"].as_array().unwrap();
    assert!(!ratios.is_empty());
    for ratio in ratios {
        assert!(ratio["value"].as_f64().unwrap() > 0.0 && ratio["target"].as_f64().unwrap() > 0.0, "{ratio}");
    }
}

#[test]
fn an_unknown_name_lists_the_measurements() {
    let world = World::new(User::Myself);
    let run = Finished::of(&mut bench(&world, &["nosuch"])).expect(2);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.contains("idle-worker"), "{}", run.stderr);
}

#[test]
fn a_missing_program_is_named_with_the_flag_that_names_another() {
    let world = World::new(User::Myself);
    let run = Finished::of(&mut bench(&world, &["idle-worker", "--program", "/nosuch/bailiwick"])).expect(1);
    assert_eq!(
        run.stderr,
        "bailiwick-bench: cannot measure /nosuch/bailiwick: No such file or directory (os error 2)\n  hint: --program PATH \
         names the program to measure\n"
    );
}
