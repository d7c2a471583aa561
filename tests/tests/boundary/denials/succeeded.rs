//! Tests commands that exit with 0 although a write was refused, and commands that only print such a message.

use std::fs;

use serde_json::json;
use tests::tier::everywhere;
use tests::{Finished, User, World};

use crate::denials::told::{command, tell};

const AUTO: &[&str] = &["--mode", "auto"];

/// Commands whose exit status hides a refused write, each with the grade of the denial. The grade is `proved` if the
/// command itself names the path. `{o}` stands for a directory outside of the project.
const HIDE: &[(&str, &str)] = &[
    ("touch {o}/new; true", "proved"),
    ("touch {o}/new 2>&1 | tail -5", "proved"),
    ("(echo x > {o}/new); true", "proved"),
    ("mkdir {o}/new || echo went on", "proved"),
    ("rm -f {o}/file; true", "proved"),
    (
        "python3 -c 'import traceback\ntry: open(\"{o}/new\", \"w\")\nexcept OSError: traceback.print_exc()'",
        "likely",
    ),
    ("make -s 2>&1 | cat", "likely"),
];

/// Commands that only print the error message of an earlier command.
const SHOW: &[&str] = &[
    "cat build.log",
    "tail -n 5 build.log 2>&1 | head -3",
    "grep -rh 'cannot touch' .",
    "grep -rn 'cannot touch' .",
    "sed -n 1p build.log | sort -u",
    "git log -1 --format=%B",
    "ls {o}/closed; true",
];

/// Creates a world, and a directory outside of the project to which only the sandbox denies access.
fn world(user: User) -> (World, String) {
    let world = World::new(user);
    let outside = world.root().join("outside");
    for name in ["", "file", "closed"] {
        let path = outside.join(name);
        if name == "file" {
            fs::write(&path, "content").unwrap();
        } else {
            fs::create_dir(&path).unwrap();
        }
        world.give(&path);
    }
    let outside = outside.display().to_string();
    world.file("build.log", format!("touch: cannot touch '{outside}/new': Permission denied\n").repeat(3));
    world.file("Makefile", format!("all:\n\t-touch {outside}/new\n"));
    (world, outside)
}

#[test]
fn a_refused_write_is_told_although_the_command_succeeded() {
    for (user, tier) in everywhere() {
        let (world, outside) = world(user);
        let asked: Vec<_> = HIDE.iter().map(|(line, _)| command(&line.replace("{o}", &outside))).collect();
        for ((line, grade), told) in HIDE.iter().zip(tell(&world, tier, AUTO, &asked)) {
            let [denied] = told.denials.as_slice() else { panic!("{user:?} {tier}: {line}: {told:?}") };
            assert_eq!(
                (&denied["grade"], &denied["operation"]),
                (&json!(grade), &json!("write")),
                "{user:?} {tier}: {line}: {told:?}"
            );
            assert!(!told.failed, "it ended with 0: {told:?}");
            let sure = if *grade == "proved" {
                "blocked by the kernel ("
            } else {
                "likely blocked by the sandbox ("
            };
            let sentence = format!("\nDespite exit code 0: {sure}");
            assert!(told.content.contains(&sentence) && told.content.contains("--write "), "{told:?}");
        }
        // Control: without the sandbox, the command succeeds.
        let mut touch = world.command("touch");
        Finished::of(touch.arg(format!("{outside}/new"))).expect(0);
        assert_eq!(fs::read_to_string(format!("{outside}/file")).unwrap(), "content");
    }
}

#[test]
fn a_line_that_a_command_only_shows_is_no_denial() {
    for (user, tier) in everywhere() {
        let (world, outside) = world(user);
        world.commit();
        let mut git = world.command("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--amend", "-F"]);
        Finished::of(git.arg("build.log").current_dir(world.project())).expect(0);
        let hide = format!("{outside}/closed");
        let asked: Vec<_> = SHOW.iter().map(|line| command(&line.replace("{o}", &outside))).collect();
        let told = tell(&world, tier, &["--mode", "auto", "--hide", &hide], &asked);
        for (line, told) in SHOW.iter().zip(told) {
            assert!(told.denials.is_empty(), "{user:?} {tier}: {line}: {told:?}");
            assert!(
                !told.failed && !told.content.contains("blocked by"),
                "{user:?} {tier}: {line}: {told:?}"
            );
        }
    }
}

#[test]
fn sandbox_tells_of_a_refused_write_whatever_the_status() {
    for (user, tier) in everywhere() {
        let (world, outside) = world(user);
        // Quoted arguments of bash are not searched for programs and redirections.
        for line in ["touch {o}/new; true", "(echo x > {o}/new); true", "make -s"] {
            let mut sandbox = world.sandbox(tier, &[], "bash");
            let done = Finished::of(sandbox.args(["-c", &line.replace("{o}", &outside)])).expect(0);
            let said = format!("{outside}/new is read-only here\n  hint: --write {outside} allows it\n");
            let sure = "bailiwick: likely blocked by the sandbox (";
            assert!(done.stderr.contains(sure), "{tier}: {}", done.stderr);
            assert!(done.stderr.contains(&said), "{user:?} {tier}: {}", done.stderr);
            assert_eq!(done.stderr.matches("blocked by").count(), 1, "{tier}: {}", done.stderr);
        }
        let done =
            Finished::of(world.sandbox(tier, &[], "bash").args(["-c", "curl -s http://192.0.2.1 || true"]));
        let done = done.expect(0);
        assert_eq!(done.stderr.matches("blocked by").count(), 1, "{user:?} {tier}: {}", done.stderr);
        assert!(done.stderr.contains("--net on allows it"), "{user:?} {tier}: {}", done.stderr);
        for line in ["cat build.log >&2", "ls {o}/none; true"] {
            let mut sandbox = world.sandbox(tier, &[], "bash");
            let done = Finished::of(sandbox.args(["-c", &line.replace("{o}", &outside)])).expect(0);
            assert!(!done.stderr.contains("blocked by"), "{user:?} {tier}: {line}: {}", done.stderr);
        }
    }
}
