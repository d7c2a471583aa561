//! Tests sessions that are listed, searched, exported, imported and deleted, also with hostile files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use supervisor::journal::session::SessionLog;
use tests::replies::{done, model_of, says, shell};
use tests::ui::Ui;
use tests::world::KEY;
use tests::{Finished, User, World};

/// Returns a text like a token of GitHub. It is assembled here, so that no scanner takes this file for a leak.
fn token() -> String {
    format!("ghp_{}", "aB3dE6fG9h".repeat(4).chars().take(36).collect::<String>())
}

/// Creates a world with a session in which a token was read and repeated.
fn session() -> World {
    let world = World::new(User::Myself);
    world.file("token", token());
    let server =
        model_of([shell("cat token"), says(&format!("The token is {}.\nThat Is All.", token()), "end_turn")]);
    Finished::of(&mut world.exec(&server, &["--mode", "auto"])).expect(0);
    world
}

fn sessions(world: &World) -> PathBuf {
    world.own().join("state/sessions")
}

fn names(world: &World) -> Vec<String> {
    let entries = fs::read_dir(sessions(world)).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.path().file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

fn run(world: &World, arguments: &[&str]) -> Finished {
    Finished::of(world.bailiwick(arguments).current_dir(world.project()))
}

fn rows(world: &World, arguments: &[&str]) -> Vec<Value> {
    let listed = run(world, &[&["sessions", "--json"], arguments].concat()).expect(0).stdout;
    listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_list_has_sizes_tokens_and_the_line_that_was_looked_for() {
    let world = session();
    let row = &rows(&world, &[])[0];
    assert!(row["bytes"].as_u64().unwrap() > 1000 && row["tokens"].as_u64().unwrap() > 0, "{row}");
    assert_eq!((&row["message"], &row["imported"]), (&json!("do it"), &json!(false)));
    assert_eq!(rows(&world, &["--search", "that is all"])[0]["match"], "That Is All.");
    assert_eq!(rows(&world, &["--search", "cat tok"])[0]["match"], "cat token");
    assert!(rows(&world, &["--search", "THAT IS ALL"]).is_empty());
    let text = run(&world, &["sessions", "--search", "is all"]).expect(0).stdout;
    assert!(text.contains("KiB") && text.contains("> That Is All."), "{text}");
    let elsewhere = world.root().join("other");
    fs::create_dir(&elsewhere).unwrap();
    assert!(rows(&world, &["--project", elsewhere.to_str().unwrap()]).is_empty());
    assert_eq!(rows(&world, &["--project", world.project().to_str().unwrap()]).len(), 1);
    let index = world.own().join("state/sessions-index.jsonl");
    assert_eq!(fs::metadata(index).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_export_has_no_secret_of_a_known_form_and_an_import_goes_on() {
    let world = session();
    let file = world.root().join("export.jsonl");
    let exported = run(&world, &["export", &names(&world)[0], file.to_str().unwrap()]).expect(0);
    assert!(exported.stderr.contains("× github-token"), "{}", exported.stderr);
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&token()[8..]) && text.contains("[redacted: github-token]"));
    let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&head["bailiwick_export"], &head["redacted"]["rechained"]), (&json!(1), &json!(true)));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A file that exists is not overwritten.
    run(&world, &["export", &names(&world)[0], file.to_str().unwrap()]).expect(2);

    let imported = run(&world, &["import", file.to_str().unwrap()]).expect(0).stdout;
    let name = imported.trim();
    assert!(names(&world).len() == 2 && names(&world).contains(&name.to_owned()));
    let audit = run(&world, &["audit", &name[..name.len() - 1], "-C", "/"]).expect(0).stdout;
    assert!(audit.contains("the log is intact, its events are consistent"), "{audit}");
    let shown = run(&world, &["show", name]).expect(0).stdout;
    assert!(
        shown.contains("imported: everything above comes from another machine") && !shown.contains(&token()),
        "{shown}"
    );
    assert_eq!(rows(&world, &[]).iter().filter(|row| row["imported"] == true).count(), 1);
    // An imported session does not count as the project's last one before it was continued.
    let goes_on = |flags: &[&str]| Finished::of(&mut world.exec(&model_of([done()]), flags)).expect(0).stdout;
    assert!(!goes_on(&["-c"]).contains("which was imported"));
    let server = model_of([done()]);
    let resumed = Finished::of(&mut world.exec(&server, &["--resume", name])).expect(0).stdout;
    assert!(resumed.contains("which was imported"), "{resumed}");
    assert!(goes_on(&["-c"]).contains("which was imported"));
    let sent: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert!(sent.to_string().contains("[redacted: github-token]") && !sent.to_string().contains(&token()));
}

#[test]
fn an_export_is_no_log_and_says_which_command_takes_it() {
    let world = session();
    let file = world.root().join("export.jsonl");
    let file = file.to_str().unwrap();
    run(&world, &["export", &names(&world)[0], file]).expect(0);
    for command in ["show", "audit", "export"] {
        let refused = run(&world, &[command, file]).expect(2);
        let hint =
            format!("the file is an export\n  hint: bailiwick import {file} makes a session of this export");
        assert!(refused.stdout.is_empty() && refused.stderr.contains(&hint), "{command}: {}", refused.stderr);
    }
}

#[test]
fn where_there_is_an_imported_session_alone_the_error_names_it() {
    let world = session();
    let file = world.root().join("export.jsonl");
    run(&world, &["export", &names(&world)[0], file.to_str().unwrap()]).expect(0);
    run(&world, &["sessions", "delete", &names(&world)[0]]).expect(0);
    let imported = run(&world, &["import", file.to_str().unwrap()]).expect(0).stdout;
    let named = format!("is {name}, which was imported", name = imported.trim());
    for command in ["show", "export", "rewind"] {
        let refused = run(&world, &[command]).expect(2).stderr;
        assert!(refused.contains(&named), "{command}: {refused}");
    }
    let refused = Finished::of(&mut world.exec(&model_of([]), &["-c"])).expect(2).stderr;
    assert!(refused.contains(&format!("hint: bailiwick exec --resume {}", imported.trim())), "{refused}");
}

#[test]
fn an_export_without_redaction_keeps_every_byte() {
    let world = session();
    let name = &names(&world)[0];
    let exported = run(&world, &["export", name, "--no-redact"]).expect(0).stdout;
    let log = fs::read_to_string(sessions(&world).join(format!("{name}.jsonl"))).unwrap();
    assert_eq!(exported.split_once('\n').unwrap().1, log);
    // A changed log is not exported.
    fs::write(sessions(&world).join(format!("{name}.jsonl")), log.replacen("do it", "do that", 1)).unwrap();
    let refused = run(&world, &["export", name]).expect(2);
    assert!(
        refused.stdout.is_empty() && refused.stderr.contains("was changed after it was written"),
        "{}",
        refused.stderr
    );
}

#[test]
fn an_import_that_is_not_as_it_was_exported_leaves_nothing() {
    let world = session();
    let name = names(&world)[0].clone();
    let whole = run(&world, &["export", &name, "--no-redact"]).expect(0).stdout;
    let (head, body) = whole.split_once('\n').unwrap();
    let with_head = |from: &str, to: &str| format!("{}\n{body}", head.replacen(from, to, 1));
    let without_last = body.trim_end().rsplit_once('\n').unwrap().0;
    let file = world.root().join("hostile.jsonl");
    let hostile = [
        ("a path for a name", with_head(&name, "../../../../tmp/x").replace(&name, "../../../../tmp/x")),
        ("another session", with_head(&name, "s-1")),
        ("another version", with_head("\"bailiwick_export\":1", "\"bailiwick_export\":2")),
        ("a member too many", with_head("{", "{\"grants\":[],")),
        ("a line too few", format!("{head}\n{without_last}\n")),
        ("a changed line", whole.replacen("do it", "do that", 1)),
        ("a torn end", whole[..whole.len() - 9].to_owned()),
        ("a log and no head", body.to_owned()),
        ("nothing", String::new()),
        ("a head without end", "{".repeat(1 << 20)),
        ("no text", "\u{1b}]0;x\u{7}\n".to_owned()),
    ];
    for (what, text) in hostile {
        fs::write(&file, text).unwrap();
        let refused = run(&world, &["import", file.to_str().unwrap()]).expect(2);
        assert!(refused.stderr.contains("cannot import"), "{what}: {}", refused.stderr);
        assert!(!refused.stderr.contains('\u{1b}') && refused.stdout.is_empty(), "{what}");
        assert_eq!(names(&world), [name.as_str()], "{what}");
    }
    // If the directory of the logs is a link, nothing is written to its target.
    fs::write(&file, &whole).unwrap();
    let elsewhere = world.root().join("elsewhere");
    fs::rename(sessions(&world), &elsewhere).unwrap();
    symlink(&elsewhere, sessions(&world)).unwrap();
    run(&world, &["import", file.to_str().unwrap()]).expect(2);
    assert_eq!(fs::read_dir(elsewhere).unwrap().count(), 1);
}

#[test]
fn a_project_of_another_machine_forges_no_line_and_its_hint_can_be_pasted() {
    let world = World::new(User::Myself);
    let odd = world.project().join("p\nbailiwick: forged");
    fs::create_dir(&odd).unwrap();
    let server = model_of([done()]);
    let mut exec = world.bailiwick(["exec", "--base-url", &server.base_url(), "do it", "-C"]);
    Finished::of(exec.arg(&odd).env("ANTHROPIC_API_KEY", KEY)).expect(0);
    let (name, file) = (names(&world)[0].clone(), world.root().join("export.jsonl"));
    run(&world, &["export", &name, file.to_str().unwrap()]).expect(0);
    let imported = run(&world, &["import", file.to_str().unwrap()]).expect(0);
    let elsewhere = Finished::of(&mut world.exec(&model_of([]), &["--resume", &name])).expect(2);
    for said in [&imported.stderr, &elsewhere.stderr] {
        assert!(!said.lines().any(|line| line.starts_with("bailiwick: forged")), "{said}");
    }
    assert!(elsewhere.stderr.contains("hint: -C $'"), "{}", elsewhere.stderr);
}

#[test]
fn an_export_that_nobody_reads_to_its_end_is_no_failure() {
    let world = session();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut export = world.bailiwick(["export", &names(&world)[0]]);
    let export = export.current_dir(world.project()).stdin(Stdio::null()).stderr(Stdio::piped());
    let gone = Finished::from(export.stdout(writer).output().unwrap()).expect(0);
    assert_eq!(gone.stderr, "");
}

#[test]
fn an_output_on_a_full_disk_is_named_and_no_usage_error() {
    let world = session();
    for arguments in [&["export"][..], &["rewind"]] {
        let mut command = world.bailiwick(arguments);
        let command = command.current_dir(world.project()).stdin(Stdio::null()).stderr(Stdio::piped());
        let full = File::options().write(true).open("/dev/full").unwrap();
        let failed = Finished::from(command.stdout(full).output().unwrap()).expect(1);
        let words = "cannot write to standard output: No space left on device";
        assert!(failed.stderr.contains(words), "{arguments:?}: {}", failed.stderr);
    }
}

#[test]
fn an_import_may_go_on_in_a_project_of_this_machine() {
    let world = session();
    let file = world.root().join("export.jsonl");
    run(&world, &["export", &names(&world)[0], file.to_str().unwrap()]).expect(0);
    let other = world.root().join("other");
    fs::create_dir(&other).unwrap();
    // Without the flag it belongs to the project that it names, wherever it is imported.
    let mut import = world.bailiwick(["import", file.to_str().unwrap()]);
    Finished::of(import.current_dir(&other)).expect(0);
    assert!(rows(&world, &["--project", other.to_str().unwrap()]).is_empty());
    run(&world, &["import", "-C", other.to_str().unwrap(), file.to_str().unwrap()]).expect(0);
    let rows = rows(&world, &["--project", other.to_str().unwrap()]);
    assert_eq!(rows[0]["project"], other.to_str().unwrap());
}

/// Makes a session appear as last written `days` days ago.
fn old(world: &World, name: &str, days: u64) {
    let log = SessionLog::create(&world.own().join("state"), &name.into()).unwrap();
    let file = File::options().write(true).open(log.path()).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60)).unwrap();
}

#[test]
fn old_sessions_are_deleted_but_for_one_that_is_open() {
    let world = session();
    let name = names(&world)[0].clone();
    old(&world, "a-old", 40);
    old(&world, "b-old", 20);
    let open = SessionLog::create(&world.own().join("state"), &"c-open".into()).unwrap();
    File::options().write(true).open(open.path()).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    run(&world, &["sessions", "prune"]).expect(2);
    let dry = run(&world, &["sessions", "prune", "--older-than", "30", "--dry-run"]).expect(0).stdout;
    assert!(
        dry.contains("would delete a-old") && dry.contains("not deleted: c-open, which a process has open"),
        "{dry}"
    );
    assert_eq!(names(&world).len(), 4);
    let gone = run(&world, &["sessions", "prune", "--older-than", "30"]).expect(0).stdout;
    assert!(gone.contains("deleted a-old") && gone.contains("deleted 1 session"), "{gone}");
    assert_eq!(names(&world), [name.as_str(), "b-old", "c-open"]);
    run(&world, &["sessions", "prune", "--larger-than", "0"]).expect(0);
    assert_eq!(names(&world), ["c-open"]);
}

#[test]
fn with_a_project_only_its_own_sessions_are_deleted() {
    let world = session();
    let name = names(&world)[0].clone();
    old(&world, "a-old", 40);
    let (project, other) = (world.project(), world.root().join("other"));
    fs::create_dir(&other).unwrap();
    let (project, other) = (project.to_str().unwrap(), other.to_str().unwrap());
    for line in [
        ["sessions", "prune", "-C", other],
        ["sessions", "-C", other, "prune"],
        ["-C", other, "sessions", "prune"],
    ] {
        let gone = run(&world, &[&line[..], &["--larger-than", "0"]].concat()).expect(0).stdout;
        assert!(gone.contains("deleted 0 sessions"), "{gone}");
    }
    assert_eq!(names(&world), [name.as_str(), "a-old"]);
    run(&world, &["sessions", "prune", "--larger-than", "0", "-C", project]).expect(0);
    assert_eq!(names(&world), ["a-old"]);
}

#[test]
fn a_session_that_is_named_is_deleted_with_its_checkpoints() {
    let world = session();
    let name = names(&world)[0].clone();
    old(&world, "a-old", 40);
    let open = SessionLog::create(&world.own().join("state"), &"c-open".into()).unwrap();
    let looks = world.own().join("state/checkpoints").join(&name);
    fs::create_dir_all(&looks).unwrap();
    let refused = run(&world, &["sessions", "delete", &name, "none"]).expect(2);
    assert!(
        refused.stderr.contains("no session \"none\"") && names(&world).contains(&name),
        "{}",
        refused.stderr
    );
    let gone = run(&world, &["sessions", "delete", &name[..name.len() - 1], &name]).expect(0).stdout;
    assert!(gone.starts_with(&format!("deleted {name}: its log (")), "{gone}");
    assert!(gone.ends_with("), and its checkpoints\n") && gone.lines().count() == 1, "{gone}");
    assert!(!looks.exists());
    let held = run(&world, &["sessions", "delete", "c-open", "a-old"]).expect(2);
    assert!(held.stderr.contains("another process has this session open\n  hint: "), "{}", held.stderr);
    assert!(held.stdout.starts_with("deleted a-old: its log (0 bytes)\n"), "{}", held.stdout);
    assert_eq!(names(&world), ["c-open"]);
    drop(open);
    assert!(rows(&world, &["--all"]).is_empty());
}

#[test]
fn the_settings_delete_old_sessions_when_one_starts_and_say_so() {
    let world = session();
    world.configure("[sessions]\nkeep_days = 30\n");
    old(&world, "a-old", 40);
    old(&world, "b-new", 20);
    let server = model_of([done()]);
    let ran = Finished::of(&mut world.exec(&server, &[])).expect(0).stdout;
    assert!(ran.contains("deleted 1 old session") && ran.contains("sessions_deleted"), "{ran}");
    assert!(!names(&world).contains(&"a-old".to_owned()) && names(&world).contains(&"b-new".to_owned()));
    let again = model_of([done()]);
    assert!(!Finished::of(&mut world.exec(&again, &[])).expect(0).stdout.contains("old session"));
}

/// Creates a world with two sessions, and starts `resume` on a terminal.
fn picking() -> (World, Ui) {
    let world = World::new(User::Myself);
    for (task, reply) in
        [("fix the parser", "The parser is fixed."), ("write the docs", "The docs are written.")]
    {
        let server = model_of([says(reply, "end_turn")]);
        let mut exec = world.bailiwick(["exec", "--base-url", &server.base_url(), task, "-C"]);
        Finished::of(exec.arg(world.project()).env("ANTHROPIC_API_KEY", KEY)).expect(0);
    }
    let mut resume = world.bailiwick(["resume", "--base-url", "http://127.0.0.1:1", "-C"]);
    resume.arg(world.project()).env("ANTHROPIC_API_KEY", KEY).env("TERM", "xterm-256color");
    let ui = Ui::start(&resume, (80, 24));
    ui.until("the list", |screen| screen.contains("fix the parser") && screen.contains("write the docs"));
    (world, ui)
}

#[test]
fn a_session_is_picked_from_a_list_that_typing_narrows() {
    let (_world, mut ui) = picking();
    ui.types("parser");
    ui.until("one session", |screen| screen.contains("1 of 2") && !screen.contains("write the docs"));
    ui.types("\r");
    ui.until_shown("The parser is fixed.");
    ui.until_shown("earlier approvals are no longer valid");
    ui.types(":q\r");
    assert_eq!(ui.end().code, 0);
}

#[test]
fn whoever_leaves_the_list_has_the_terminal_as_it_was() {
    for key in ["\u{1b}", "\u{3}"] {
        let (world, mut ui) = picking();
        ui.types(key);
        let left = ui.end();
        assert_eq!((left.code, left.modes.as_slice()), (0, &[][..]), "{key:?}");
        assert_eq!(names(&world).len(), 2, "no session began");
    }
    let (_world, ui) = picking();
    ui.signal(Signal::SIGTERM);
    assert_eq!(ui.end().modes, Vec::<&str>::new());
}

#[test]
fn without_a_terminal_the_last_session_is_the_one() {
    let world = session();
    let mut resume = world.bailiwick(["resume", "-C"]);
    let refused = Finished::of(resume.arg(world.project()).env("ANTHROPIC_API_KEY", KEY)).expect(2);
    assert!(refused.stderr.contains("the UI needs a terminal"), "{}", refused.stderr);
}

/// An imported archive may name any project, so the person is asked before that project is used.
#[test]
fn an_import_goes_on_in_its_own_project_only_if_somebody_says_so() {
    let world = session();
    let file = world.root().join("export.jsonl");
    run(&world, &["export", &names(&world)[0], file.to_str().unwrap()]).expect(0);
    let imported = run(&world, &["import", file.to_str().unwrap()]).expect(0).stdout;
    let resume = |name: &str, flags: &[&str]| {
        let mut resume = world.bailiwick(["resume", name]);
        resume.args(flags).env("ANTHROPIC_API_KEY", KEY).env("TERM", "xterm-256color").current_dir("/");
        resume
    };
    let project = world.project();
    let refused = Finished::of(&mut resume(imported.trim(), &[])).expect(2).stderr;
    assert!(
        refused.contains("names the project")
            && refused.contains("hint: choose the project with bailiwick resume -C DIR"),
        "{refused}"
    );
    // If the user named the project, or the session is not imported, the only error is the missing terminal.
    let own = names(&world).into_iter().find(|name| name != imported.trim()).unwrap();
    for (name, flags) in [(imported.trim(), &["-C", project.to_str().unwrap()][..]), (&own, &[])] {
        let refused = Finished::of(&mut resume(name, flags)).expect(2).stderr;
        assert!(refused.contains("the UI needs a terminal"), "{name}: {refused}");
    }
    // At a terminal a person is asked, and anything but yes is no.
    let mut ui = Ui::start(&resume(imported.trim(), &["--base-url", "http://127.0.0.1:1"]), (80, 24));
    ui.until("the question", |screen| screen.contains("[y/N]"));
    ui.types("n\r");
    assert_eq!((ui.end().code, names(&world).len()), (0, 2));
}
