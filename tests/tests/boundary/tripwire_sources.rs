//! Tests git settings of the person from unusual sources: the hooks to which they lead are watched too.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::Command;

use tests::programs::write_script;
use tests::repository::{is_marked, repository};
use tests::{Finished, User, World, tier};

/// Environment variables that make a person's git run hooks in `dev/hooks`. `HOME` stands for the home directory.
const WAYS: &[(&str, &[(&str, &str)])] = &[
    ("for all repositories", &[("GIT_CONFIG_GLOBAL", "HOME/elsewhere")]),
    ("included", &[("GIT_CONFIG_GLOBAL", "HOME/including")]),
    ("included by a condition", &[("GIT_CONFIG_GLOBAL", "HOME/conditional")]),
    ("of the system", &[("GIT_CONFIG_SYSTEM", "HOME/elsewhere"), ("GIT_CONFIG_NOSYSTEM", "0")]),
    ("of a git that was built elsewhere", &[("PATH", "HOME/bin:PATH"), ("GIT_CONFIG_NOSYSTEM", "0")]),
    (
        "by number",
        &[
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.hooksPath"),
            ("GIT_CONFIG_VALUE_0", "dev/hooks"),
        ],
    ),
    ("as parameters", &[("GIT_CONFIG_PARAMETERS", "'core.hooksPath=dev/hooks'")]),
];

const ACTS: &[&str] = &[
    "mkdir -p dev/hooks; cp evil.sh dev/hooks/pre-commit",
    "cat evil.sh > dev/hooks/post-commit",
    "rm -rf dev; mkdir -p dev/hooks; cp evil.sh dev/hooks/pre-commit",
];

fn world(user: User) -> World {
    let world = repository(user);
    world.script("dev/hooks/post-commit", "#!/bin/sh\n");
    let home = world.home();
    let write = |name: &str, text: String| fs::write(home.join(name), text).unwrap();
    write("elsewhere", "[core]\n\thooksPath = dev/hooks\n".to_owned());
    write("including", "[include]\n\tpath = elsewhere\n".to_owned());
    write(
        "conditional",
        format!("[includeIf \"gitdir:{}/\"]\n\tpath = elsewhere\n", home.display()).replace("/home/", "/"),
    );
    fs::create_dir(home.join("bin")).unwrap();
    let elsewhere = format!(
        "#!/bin/sh\nGIT_CONFIG_SYSTEM={}/elsewhere PATH=${{PATH#*:}} exec git \"$@\"\n",
        home.display()
    );
    write_script(&home.join("bin/git"), &elsewhere);
    world
}

fn with<'a>(world: &World, command: &'a mut Command, variables: &[(&str, &str)]) -> &'a mut Command {
    let home = world.home();
    for (name, value) in variables {
        let value =
            value.replace("HOME", home.to_str().unwrap()).replace("PATH", &std::env::var("PATH").unwrap());
        command.env(name, value);
    }
    command
}

fn commits(world: &World, variables: &[(&str, &str)]) {
    let mut shell = world.command("bash");
    let commit = "git -c user.name=t -c user.email=t@e commit -q --allow-empty -m later";
    with(world, shell.args(["-c", commit]).current_dir(world.project()), variables);
    Finished::of(&mut shell);
}

#[test]
fn hooks_are_watched_wherever_git_was_told_of_them() {
    for (number, (name, variables)) in WAYS.iter().enumerate() {
        // Tests every act with the first source, and every source with the first act.
        for act in ACTS.iter().take(if number == 0 { ACTS.len() } else { 1 }) {
            let control = world(User::Myself);
            Finished::of(control.command("bash").args(["-c", act]).current_dir(control.project()));
            commits(&control, variables);
            assert!(is_marked(&control), "{name}: {act}: the attack does nothing unconfined");
            for (user, tier) in tier::everywhere() {
                let world = world(user);
                let mut sandbox = world.sandbox(tier, &[], "bash");
                let done = Finished::of(with(&world, sandbox.args(["-c", act]), variables));
                commits(&world, variables);
                assert!(!is_marked(&world), "{name}, {tier}, {user:?}: {act}: {}", done.stderr);
            }
        }
    }
}
