//! Tests the tool results that the model gets: in the order of its calls, of bounded size, and with the expected text.

use serde_json::json;
use tests::{User, World, tier};

use crate::tools::turn::{command, content, told, turn};

#[test]
fn three_calls_in_one_turn_are_answered_in_their_order() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        world.file("a.txt", "alpha\n");
        let asked = [
            ("read_file", json!({"path": "a.txt"})),
            ("read_file", json!({"path": "missing.txt"})),
            command("echo gamma"),
        ];
        let (results, run) = turn(&world, &asked, &["--mode", "auto"]);
        let ids: Vec<_> = results.iter().map(|result| result["tool_use_id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["toolu_0", "toolu_1", "toolu_2"]);
        let errors: Vec<_> = results.iter().map(|result| result["is_error"] == true).collect();
        assert_eq!(errors, [false, true, false]);
        assert!(
            content(&results[0]).contains("alpha") && content(&results[2]).contains("gamma"),
            "{results:?}"
        );
        assert_eq!(run.code, 0);
    }
}

#[test]
fn effects_of_one_turn_happen_in_their_order() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let write = |text: &str| ("write_file", json!({"path": "a.txt", "content": text}));
        let asked = [
            write("1\n"),
            command("cat a.txt; echo 2 >> a.txt"),
            ("edit_file", json!({"path": "a.txt", "old_string": "2", "new_string": "3"})),
            ("read_file", json!({"path": "a.txt"})),
        ];
        let (results, _) = turn(&world, &asked, &["--mode", "auto"]);
        assert!(content(&results[1]).contains('1'), "{results:?}");
        assert!(content(&results[3]).contains('3'), "{results:?}");
        assert_eq!(world.read("a.txt"), "1\n3\n");
    }
}

#[test]
fn arguments_that_do_not_fit_come_back_with_what_was_expected() {
    let world = World::new(User::Myself);
    let of = |name, input| told(&world, name, input, &[]);
    insta::assert_snapshot!(of("read_file", json!({"file": "a.txt"})), @"`read_file` was not run: argument `file`: unknown field `file`, expected one of `path`, `offset`, `limit`. Its arguments are {path, offset?, limit?}");
    insta::assert_snapshot!(of("read_file", json!({"path": 7})), @"`read_file` was not run: argument `path`: invalid type: integer `7`, expected a string. Its arguments are {path, offset?, limit?}");
    insta::assert_snapshot!(of("shell_exec", json!({"command": "true", "access": "root"})), @"`shell_exec` was not run: argument `access`: unknown variant `root`, expected one of `standing`, `read`, `write`. Its arguments are {command, access?, network?, cwd?, timeout_s?}");
    insta::assert_snapshot!(of("read_file", json!(["a.txt"])), @"`read_file` was not run: got no JSON object (the arguments are not a JSON object), expected one with the arguments {path, offset?, limit?}");
    insta::assert_snapshot!(of("launch_rocket", json!({})), @"there is no tool named `launch_rocket`; the tools are: read_file, list_directory, search_files, write_file, edit_file, shell_exec, spawn_agent, update_tasks");
}

#[test]
fn an_ambiguous_or_absent_edit_is_refused_and_changes_nothing() {
    let world = World::new(User::Myself);
    world.file("a.txt", "one\ntwo\none\n");
    let edit = |old: &str| json!({"path": "a.txt", "old_string": old, "new_string": "x"});
    let of = |old| told(&world, "edit_file", edit(old), &["--mode", "auto"]);
    insta::assert_snapshot!(of("one"), @"old_string occurs 2 times, at lines 1, 3; add lines around it until it is unique, or set replace_all.");
    insta::assert_snapshot!(of("three"), @"old_string does not occur in the file. Nothing in the file is similar; read the file again, or check the path.");
    assert_eq!(world.read("a.txt"), "one\ntwo\none\n");
    let mut all = edit("one");
    all["replace_all"] = true.into();
    told(&world, "edit_file", all, &["--mode", "auto"]);
    assert_eq!(world.read("a.txt"), "x\ntwo\nx\n");
}

#[test]
fn a_command_that_takes_too_long_ends_with_everything_below_it() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let asked =
            [("shell_exec", json!({"command": "echo begun; sleep 1000 & sleep 1000", "timeout_s": 3}))];
        let (results, run) = turn(&world, &asked, &["--mode", "auto"]);
        let said = content(&results[0]);
        assert!(results[0]["is_error"] == true && said.contains("begun"), "{said}");
        assert_eq!((run.code, run.events_of("denied").len()), (0, 0));
    }
}

#[test]
fn output_beyond_the_budget_keeps_its_head_and_tail() {
    for tier in tier::all() {
        let world = World::new(User::Myself).in_tier(tier);
        let said = told(&world, "shell_exec", command("echo first; seq 1 1000000; echo last").1, &[]);
        assert!(said.contains("first\n1\n2\n") && said.contains("1000000\nlast"), "{}", said.len());
        assert!(said.len() < 100_000, "{}", said.len());
    }
}
