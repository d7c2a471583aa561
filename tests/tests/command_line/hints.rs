//! Tests hints that can be pasted: each runs in a shell in the reader's directory, and has the described effect.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use model::replay::ReplayServer;
use serde_json::json;
use tests::programs::Programs;
use tests::replies::{calls, done, model_of};
use tests::world::KEY;
use tests::{Finished, User, World};

/// File name that a shell would split if it were not quoted.
const ODD: &str = "it's $HOME";

struct Shell {
    world: World,
    project: PathBuf,
    base_url: String,
}

impl Shell {
    fn new(server: Option<&ReplayServer>) -> Self {
        let world = World::new(User::Myself);
        let project = world.project().join(ODD);
        fs::create_dir(&project).unwrap();
        // No server listens at this address.
        let base_url = server.map_or_else(|| "http://127.0.0.1:9".to_owned(), ReplayServer::base_url);
        Self { world, project, base_url }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.world.command("bash");
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", Programs::get().directory().display());
        command.args(["-c", line]).current_dir(&self.project).stdin(Stdio::null());
        command.env("PATH", path).env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", &self.base_url);
        command
    }

    fn types(&self, line: &str) -> Finished {
        Finished::of(&mut self.command(line))
    }
}

/// Returns the command in the last hint, without the sentence around it.
fn hint(finished: &Finished) -> &str {
    let hints = finished.stderr.lines().chain(finished.stdout.lines());
    let hint = hints.filter_map(|line| line.trim_start().strip_prefix("hint: ")).next_back();
    let hint = hint.unwrap_or_else(|| panic!("no hint: {}\n{}", finished.stdout, finished.stderr));
    let verbs =
        [" allows it", " allows writes there", " shows ", " reads the log", " runs one task", " lists "];
    let end = verbs.iter().filter_map(|verb| hint.find(verb)).min().unwrap_or(hint.len());
    &hint[..end]
}

fn writes(path: &str) -> String {
    calls(&[("write_file", json!({"path": path, "content": "new\n"}))])
}

#[test]
fn no_hint_opens_the_home_and_who_opens_it_is_warned() {
    let shell = Shell::new(None);
    let home = shell.world.home();
    let denied = shell.types("bailiwick sandbox -- touch ~/x").expect(1);
    assert!(denied.stderr.contains("in the home directory itself"), "{}", denied.stderr);
    assert!(!denied.stderr.contains("--write /"), "{}", denied.stderr);
    assert_eq!(hint(&denied), "allow a directory below that path instead: --write PATH");
    let above = shell.types("bailiwick sandbox -- touch ../x").expect(1);
    assert!(above.stderr.contains("in a directory above the project"), "{}", above.stderr);
    for mode in ["ask", "deny"] {
        let explained = shell.types(&format!("bailiwick explain --mode {mode} ~/new")).stdout;
        assert!(explained.contains("write ") && !explained.contains("--write"), "{explained}");
    }
    let opened = shell.types("bailiwick sandbox --write ~ -- touch ~/x").expect(0);
    let warning = format!(
        "bailiwick: note: {} is your home or contains it: agents can write shells' start files and ~/.ssh/authorized_keys, too",
        home.display()
    );
    assert!(opened.stderr.lines().any(|line| line == warning), "{}", opened.stderr);
    fs::create_dir(home.join("own")).unwrap();
    let narrow = shell.types("bailiwick sandbox --write ~/own -- touch ~/own/x").expect(0);
    assert_eq!(narrow.stderr, "");
}

#[test]
fn a_hint_about_exec_changes_the_project() {
    let server = model_of([writes("fixed"), done()]);
    let shell = Shell::new(Some(&server));
    let refused = shell.types("bailiwick").expect(2);
    assert_eq!(hint(&refused), "bailiwick exec --mode auto \"fix the failing test\"");
    shell.types(hint(&refused)).expect(0);
    assert_eq!(fs::read_to_string(shell.project.join("fixed")).unwrap(), "new\n");
}

#[test]
fn a_denials_hint_is_a_flag_of_exec_that_allows_it() {
    for outside in [false, true] {
        let server = model_of([done()]);
        let shell = Shell::new(Some(&server));
        let place = shell.world.root().join(ODD);
        fs::create_dir(&place).unwrap();
        let file = if outside { place.join("old") } else { shell.project.join("old") };
        fs::write(&file, "old\n").unwrap();
        drop(server);
        let run = |flags: &str| {
            let server = model_of([writes(file.to_str().unwrap()), done()]);
            let line = format!("bailiwick exec {flags} --base-url {} 'do it'", server.base_url());
            shell.types(&line)
        };
        let denied = run(if outside { "--mode auto" } else { "" }).expect(4);
        assert!(
            hint(&denied).starts_with(if outside { "--write '" } else { "--mode auto" }),
            "{}",
            denied.stderr
        );
        let mode = if outside { "--mode auto " } else { "" };
        run(&format!("{mode}{}", hint(&denied))).expect(0);
        assert_eq!(fs::read_to_string(file).unwrap(), "new\n");
    }
}

#[test]
fn a_denials_hint_is_a_flag_of_sandbox_that_allows_it() {
    let shell = Shell::new(None);
    let place = shell.world.home().join("a b");
    fs::create_dir_all(&place).unwrap();
    let file = format!("'{}/made'", place.display());
    for (flags, file, hinted) in
        [("", file.as_str(), "--write '"), ("--access read", "made", "--access write")]
    {
        let run = |flags: &str| shell.types(&format!("bailiwick sandbox {flags} -- touch {file}"));
        let denied = run(flags).expect(1);
        assert!(hint(&denied).starts_with(hinted), "{}", denied.stderr);
        run(hint(&denied)).expect(0);
    }
}

#[test]
fn a_missing_write_root_has_a_hint_that_is_accepted() {
    let shell = Shell::new(None);
    let outside = shell.world.outside();
    let refused =
        shell.types(&format!("bailiwick sandbox --write {}/a/b -- true", outside.display())).expect(5);
    let flag = hint(&refused).strip_prefix("create the path first, or use ").unwrap();
    let flag = flag.strip_suffix(", which exists").unwrap();
    shell.types(&format!("bailiwick sandbox {flag} -- true")).expect(0);
}

#[test]
fn a_key_that_others_can_read_has_a_hint_that_mends_it() {
    let server = model_of([done()]);
    let shell = Shell::new(Some(&server));
    let home = shell.world.root().join("an own home");
    fs::create_dir_all(home.join("config")).unwrap();
    fs::write(home.join("config/anthropic.key"), KEY).unwrap();
    fs::set_permissions(home.join("config/anthropic.key"), Permissions::from_mode(0o644)).unwrap();
    let run = || {
        let mut command = shell.command("bailiwick exec 'do it'");
        Finished::of(command.env_remove("ANTHROPIC_API_KEY").env("BAILIWICK_HOME", &home))
    };
    let refused = run().expect(2);
    shell.types(hint(&refused)).expect(0);
    run().expect(0);
}

#[test]
fn the_hints_of_other_commands_are_commands() {
    let shell = Shell::new(None);
    let all = shell.types("bailiwick config").expect(0);
    assert!(shell.types(hint(&all)).expect(0).stdout.contains("retries.attempts"));
    let elsewhere = shell.types("cd /; bailiwick config -C \"$OLDPWD\"").expect(0);
    assert!(shell.types(hint(&elsewhere)).expect(0).stdout.contains("retries.attempts"));
    let absent = shell.types("bailiwick sandbox -- ./no\\ program").expect(5);
    assert!(shell.types(hint(&absent)).expect(0).stdout.contains("no program"));
    shell.types("bailiwick sandbox -- no-program").expect(5);
    fs::write(shell.project.join(".bailiwick.toml"), "[rights]\nwrite = [\"/srv\"]\n").unwrap();
    let untrusted = shell.types("bailiwick config").expect(0);
    let note = untrusted.stderr.lines().find_map(|line| line.trim_start().strip_prefix("hint: ")).unwrap();
    let asked = shell.types(note).expect(2);
    assert!(asked.stderr.contains("cannot ask for your trust in .bailiwick.toml"), "{}", asked.stderr);
    assert!(hint(&asked).ends_with(note), "{}", asked.stderr);
}

#[test]
fn a_wrong_session_has_a_hint_that_finds_the_right_one() {
    let server = model_of([done()]);
    let shell = Shell::new(Some(&server));
    shell.types("bailiwick exec 'do it'").expect(0);
    let refused = shell.types("bailiwick audit 0199").expect(2);
    assert!(shell.types(hint(&refused)).expect(0).stdout.contains("do it"));
}

#[test]
fn a_refused_network_is_told_in_one_line_where_the_command_ends_with_0() {
    let shell = Shell::new(None);
    let connect = "for i in 7 8; do exec 3<>/dev/tcp/192.0.2.$i/80; done 2>/dev/null";
    let run = shell.types(&format!("bailiwick sandbox -- bash -c '{connect}; true'")).expect(0);
    assert_eq!(run.stderr.matches("tried to use the network").count(), 1, "{}", run.stderr);
    assert_eq!(hint(&run), "--net on");
    // A denied access that the program can do without is not reported to the person.
    let probing = shell.types("bailiwick sandbox -- bash -c 'cat ~/.ssh/id 2>/dev/null; test -w /etc; true'");
    assert_eq!((probing.code, probing.stderr.as_str()), (0, ""));
}
