//! Tests every command in README and guide as printed. It is run in a project with a session, or listed with a reason.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use model::replay::ReplayServer;
use serde_json::json;
use tests::replies::{calls, done, model_of, model_of_agents};
use tests::{Finished, Programs, User, World};

/// Beginnings of commands that are not run, each with the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("cargo ", "it builds, or is what runs this test"),
    ("rustup ", "it installs"),
    ("install -D ", "what it installs was not built"),
    ("sha256sum ", "the archive is not made here: command_line/packaging"),
    ("tar ", "the archive is not made here"),
    (
        "bailiwick-0.1.0-x86_64-linux/install.sh",
        "the archive is not made here: command_line/packaging tries the script",
    ),
    ("export ", "it has no effect beyond its shell"),
    ("cd ", "the terminal UI needs a terminal: screen/tui"),
    ("bailiwick --mode", "the terminal UI needs a terminal: screen/tui"),
    ("bailiwick sandbox --net @", "it needs the internet: tests/hosts has one of its own"),
    ("bailiwick --net ", "the terminal UI needs a terminal: screen/tui"),
    ("bailiwick --socket ", "the terminal UI needs a terminal: screen/tui"),
    ("bailiwick sandbox --socket ", "it needs a server: tests/escape has one of its own"),
    ("bailiwick mcp add ", "it asks at a terminal: tests/mcp"),
    ("bailiwick exec --mcp-config ", "it needs servers: tests/mcp"),
    ("bailiwick relay ", "it stays: fleet/relay"),
    ("docker ", "it needs an engine: fleet/batch and boundary/containers"),
    ("bailiwick exec --provider openai", "it asks another API: session/providers"),
];

/// Session id in the examples of the documents. The tests replace it by the id of a real session.
const NAMED: &str = "01a203d8";

/// Commands whose exit status is not 0, as the text next to them says.
const STATUS: &[(&str, i32)] = &[("bailiwick sandbox -- touch /srv/x", 1)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Returns the commands in a document's console blocks.
fn commands(text: &str) -> Vec<String> {
    let mut is_console = false;
    let mut commands = Vec::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(language) => is_console = language == "console",
            None => commands.extend(line.strip_prefix("$ ").filter(|_| is_console).map(str::to_owned)),
        }
    }
    commands
}

/// Creates a project with an earlier session and two sub-agents. Also returns the id of that session.
fn worked() -> (World, String) {
    let world = World::new(User::Myself);
    world.file("Makefile", "test:\n\t@echo all tests passed\n");
    world.commit();
    for place in
        ["../other", "../home/src/app", "../home/.local/share/bash-completion/completions", "../home/.ssh"]
    {
        fs::create_dir_all(world.project().join(place)).unwrap();
    }
    let task = |task: &str| ("spawn_agent", json!({"task": task, "access": "read"}));
    let server = model_of_agents(
        [calls(&[task("one"), task("two")]), done()],
        ["one", "two"].map(|task| (task.to_owned(), vec![done()])),
    );
    Finished::of(&mut world.exec(&server, &[])).expect(0);
    let log = fs::read_dir(world.own().join("state/sessions")).unwrap().next().unwrap().unwrap().path();
    let name = log.file_stem().unwrap().to_str().unwrap().to_owned();
    (world, name)
}

fn run(world: &World, server: &ReplayServer, session: &str, command: &str) -> Finished {
    world.configure(&format!("base_url = \"{}\"\n", server.base_url()));
    let mut shell = world.command("bash");
    let directory = Programs::get().directory();
    let path = format!("{}:{}", directory.display(), std::env::var("PATH").unwrap());
    shell.env("PATH", path).env("ANTHROPIC_API_KEY", "no-key-is-needed").current_dir(world.project());
    shell.args(["-o", "pipefail", "-c", &command.replace(NAMED, session)]);
    Finished::of(&mut shell)
}

#[test]
fn every_command_of_the_guide_does_what_it_says() {
    let mut documents = vec![root().join("README.md")];
    documents.extend(fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.sort();
    let (mut ran, mut named) = (BTreeSet::new(), BTreeSet::new());
    for document in documents {
        let commands = commands(&fs::read_to_string(&document).unwrap());
        if commands.is_empty() {
            continue;
        }
        // Each page is read by itself.
        let (world, session) = worked();
        for command in commands {
            let is_bare = command.split('#').next().unwrap().trim() == "bailiwick";
            if let Some((beginning, _)) = NOT_RUN.iter().find(|(beginning, _)| command.starts_with(beginning))
            {
                named.insert(*beginning);
                continue;
            }
            if is_bare || !ran.insert(command.clone()) {
                continue;
            }
            if command.contains("| jq")
                && Finished::of(world.command("sh").args(["-c", "command -v jq"])).code != 0
            {
                eprintln!("skipped: not on this machine: jq");
                continue;
            }
            let status = STATUS
                .iter()
                .find(|(listed, _)| command.starts_with(listed))
                .map_or(0, |(_, status)| *status);
            let server = model_of([done()]);
            let done = run(&world, &server, &session, &command);
            assert_eq!(
                done.code,
                status,
                "{}: $ {command}\n{}{}",
                document.display(),
                done.stdout,
                done.stderr
            );
        }
    }
    assert!(ran.len() > 20, "{ran:?}");
    let listed: BTreeSet<_> = NOT_RUN.iter().map(|(beginning, _)| *beginning).collect();
    assert_eq!(named, listed, "what is not run stands in a document");
}
