//! Tests `exec review`: it reads a change in a sandbox without write access, finds the lines of the findings, and
//! cannot be influenced by the repository.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tests::programs::write_script;
use tests::replies::{model_of, says, shell};
use tests::{Finished, User, World};

fn git(world: &World, arguments: &[&str]) -> Finished {
    let person = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.fsmonitor="];
    Finished::of(world.command("git").args(person).args(arguments).current_dir(world.project()))
}

fn world() -> World {
    let world = World::new(User::Myself);
    world.file("src/lib.rs", "fn a() {}\nfn b() {}\n");
    world.file("gone.txt", "x\ny\n");
    world.commit();
    world.file("src/lib.rs", "fn a() {}\nfn b() { panic!() }\n");
    world.file("new file.txt", "new\n");
    fs::remove_file(world.project().join("gone.txt")).unwrap();
    world
}

fn finding(file: &str, line: u64, severity: &str) -> Value {
    json!({
        "file": file, "first_line": line, "last_line": line, "severity": severity, "category": "correctness",
        "title": format!("about {file}"), "explanation": "It fails.",
    })
}

fn answer(findings: &[Value]) -> String {
    says(&json!({ "summary": "A change.", "findings": findings }).to_string(), "end_turn")
}

/// Runs a review. Also returns the bodies of its requests.
fn review(world: &World, replies: &[String], arguments: &[&str]) -> (Finished, Vec<String>) {
    let server = model_of(replies.iter().cloned());
    let mut command = world.bailiwick(["exec", "review", "--base-url", &server.base_url(), "-C"]);
    command.arg(world.project()).args(world.tier_flags()).args(arguments).env("ANTHROPIC_API_KEY", "none");
    let done = Finished::of(&mut command);
    let bodies = server.requests().into_iter();
    (done, bodies.map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect())
}

#[test]
fn findings_are_placed_and_the_reviewer_writes_nothing() {
    let world = world();
    let findings = [
        finding("new file.txt", 1, "low"),
        finding("src/lib.rs", 2, "high"),
        finding("gone.txt", 2, "low"),
        finding("src/lib.rs", 3, "medium"),
        finding("../a", 1, "low"),
    ];
    let replies = [shell("echo x > src/made.txt; echo seen"), answer(&findings)];
    let (done, bodies) = review(&world, &replies, &["--output", "json"]);
    let done = done.expect(8);
    let report: Value = serde_json::from_str(&done.stdout).unwrap();
    let placed: Vec<_> = report["findings"].as_array().unwrap().iter().collect();
    let told: Vec<_> = placed
        .iter()
        .map(|one| (one["file"].as_str().unwrap(), one["severity"].as_str().unwrap(), one["placed"] == true))
        .collect();
    assert_eq!(
        told,
        [
            ("src/lib.rs", "high", true),
            ("src/lib.rs", "medium", false),
            ("new file.txt", "low", true),
            ("gone.txt", "low", true),
            ("../a", "low", false),
        ]
    );
    assert!(
        bodies[0].contains("+fn b() { panic!() }") && bodies[0].contains("new file.txt"),
        "{}",
        bodies[0]
    );
    assert!(
        bodies[1].contains("Read-only file system") || bodies[1].contains("Permission denied"),
        "{}",
        bodies[1]
    );
    assert!(!world.project().join("src/made.txt").exists());
}

#[test]
fn a_hidden_file_is_no_part_of_the_review() {
    let world = World::new(User::Myself);
    for file in [".env", "keys/a*b.pem", "src/lib.rs"] {
        world.file(file, "old 0123456789\n");
    }
    world.commit();
    for file in [".env", "keys/a*b.pem", "src/lib.rs"] {
        world.file(file, "new 9876543210\n");
    }
    world.file("keys/fresh.pem", "fresh 5555\n");
    let hides = ["--hide", ".env", "--hide", "keys"];
    let findings = [finding("src/lib.rs", 1, "low"), finding(":(top)src/lib.rs", 1, "low")];
    let (done, bodies) = review(&world, &[answer(&findings)], &[&hides[..], &["--output", "json"]].concat());
    let done = done.expect(8);
    assert!(
        done.stderr.contains("not reviewed, because these files are hidden: .env, keys/a*b.pem\n"),
        "{}",
        done.stderr
    );
    assert!(bodies[0].contains("diff --git a/src/lib.rs"), "{}", bodies[0]);
    for hidden in ["a/.env", "a/keys", "fresh.pem"] {
        assert!(!bodies[0].contains(hidden), "{hidden}: {}", bodies[0]);
    }
    // The prompt has the content of the one file that is not hidden, once.
    for content in ["old 0123456789", "new 9876543210"] {
        assert_eq!(bodies[0].matches(content).count(), 1, "{content}: {}", bodies[0]);
    }
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(found["findings"].as_array().unwrap().iter().filter(|one| one["placed"] == true).count(), 1);
    // With no other change, there is nothing to review.
    world.file("src/lib.rs", "old 0123456789\n");
    let (done, bodies) = review(&world, &[], &hides);
    assert!(bodies.is_empty() && done.expect(0).stderr.contains("nothing to review"));
}

#[test]
fn the_exit_status_follows_the_worst_finding() {
    let world = world();
    let medium = || [answer(&[finding("src/lib.rs", 2, "medium")])];
    for (fail_on, code) in [("low", 8), ("medium", 8), ("high", 0), ("critical", 0), ("never", 0)] {
        let (done, _) = review(&world, &medium(), &["--fail-on", fail_on]);
        let done = done.expect(code);
        assert!(done.stdout.starts_with("src/lib.rs:2: medium: about src/lib.rs"), "{}", done.stdout);
    }
    let (done, _) = review(&world, &[answer(&[])], &[]);
    assert!(done.expect(0).stdout.contains("no finding · 3 files"));
    let (done, bodies) = review(&world, &[says("LGTM", "end_turn"), says("LGTM", "end_turn")], &[]);
    let done = done.expect(3);
    assert_eq!((done.stdout.as_str(), bodies.len()), ("", 2));
}

#[test]
fn a_branch_and_a_commit_are_reviewed_and_a_clean_tree_asks_no_model() {
    let world = world();
    git(&world, &["branch", "before"]).expect(0);
    git(&world, &["add", "-A"]).expect(0);
    git(&world, &["commit", "-qm", "second"]).expect(0);
    let (done, bodies) = review(&world, &[answer(&[])], &[]);
    assert!(done.expect(0).stderr.contains("nothing to review") && bodies.is_empty());
    let (done, bodies) = review(&world, &[answer(&[])], &["--base", "before"]);
    assert!(done.expect(0).stdout.contains("in the changes since this branch left before"));
    assert!(bodies[0].contains("+fn b() { panic!() }"), "{}", bodies[0]);
    // The finding is on a line that is in the commit, but not in the working tree.
    world.file("src/lib.rs", "");
    let replies = [answer(&[finding("src/lib.rs", 2, "low")])];
    let (done, _) = review(&world, &replies, &["--commit", "HEAD", "--output", "sarif"]);
    let log: Value = serde_json::from_str(&done.expect(8).stdout).unwrap();
    let place = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&json!("src/lib.rs"), &json!(2))
    );
    for name in ["nosuch", "-x", "--output=x"] {
        let (done, bodies) = review(&world, &[answer(&[])], &[&format!("--base={name}")]);
        let done = done.expect(2);
        assert!(
            done.stderr.contains(&format!("there is no commit `{name}`")) && bodies.is_empty(),
            "{}",
            done.stderr
        );
    }
}

/// Makes every program in a repository's configuration leave a mark. Returns the path of the mark.
fn hostile(world: &World) -> PathBuf {
    let outside = world.outside();
    let (mark, program) = (outside.join("mark"), world.root().join("program"));
    write_script(&program, &format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display()));
    let program = program.display().to_string();
    for key in ["core.fsmonitor", "diff.external", "core.pager", "diff.evil.textconv", "filter.evil.clean"] {
        git(world, &["config", key, &program]).expect(0);
    }
    fs::write(world.project().join(".git/info/attributes"), "*.rs diff=evil filter=evil\n").unwrap();
    mark
}

#[test]
fn programs_that_a_repository_names_reach_nothing() {
    let world = world();
    let mark = hostile(&world);
    let (done, bodies) = review(&world, &[answer(&[finding("src/lib.rs", 2, "low")])], &["--output", "json"]);
    let report: Value = serde_json::from_str(&done.expect(8).stdout).unwrap();
    assert_eq!(report["findings"][0]["placed"], true);
    assert!(bodies[0].contains("+fn b() { panic!() }"), "{}", bodies[0]);
    assert!(!mark.exists(), "a program of the repository wrote outside of the sandbox");
    // Control: without the sandbox, git runs the programs.
    git(&world, &["diff", "HEAD"]).expect(0);
    assert!(mark.exists(), "the programs leave a mark where nothing stops them");
}

#[test]
fn flags_of_exec_before_the_review_are_its_own_or_a_mistake() {
    let world = world();
    let server = model_of([answer(&[])]);
    let mut command = world.bailiwick(["exec", "--base-url", &server.base_url(), "-C"]);
    command.arg(world.project()).args(world.tier_flags()).arg("review").env("ANTHROPIC_API_KEY", "none");
    assert!(Finished::of(&mut command).expect(0).stdout.contains("no finding"));
    let mistake = Finished::of(&mut world.bailiwick(["exec", "--mode", "auto", "review"])).expect(2);
    assert!(mistake.stderr.contains("the command review has no flag --mode"), "{}", mistake.stderr);
}
