//! Tests common mistakes of new users: the cause, the next step, and the exit code. The tests here need an unusual
//! machine; more are in `exit_codes.rs` and `config.rs`.

#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]

use nix::errno::Errno;
use nix::libc;
use tests::replies::{done, model_of};
use tests::{Finished, Programs, User, World, outer};

/// Returns standard error, without parts that differ from run to run.
fn said(world: &World, run: &Finished) -> String {
    let lines = run.stderr.lines().filter(|line| !line.contains(" steps · "));
    world.stable(&lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the last message, with its next step.
fn complaint(text: &str) -> String {
    let last = text.lines().rfind(|line| !line.starts_with("  ")).unwrap_or_default();
    text[text.rfind(last).unwrap_or_default()..].to_owned()
}

/// Runs `bailiwick exec` with a task in separate namespaces, after the shell command `before`, which may mount.
fn in_namespaces(world: &World, flags: &[&str], before: &str, task: &str) -> Finished {
    let program = Programs::get().path("bailiwick").display().to_string();
    let script = format!("{before} && exec {program} exec -C {} {task}", world.project().display());
    let mut unshare = world.command("unshare");
    unshare.args(flags).args(["bash", "-c", &script]).env("ANTHROPIC_API_KEY", tests::world::KEY);
    Finished::of(&mut unshare)
}

fn can_unshare() -> bool {
    let can = Finished::of(std::process::Command::new("unshare").args(["-Urm", "true"])).code == 0;
    if !can {
        eprintln!("skipped: this machine has no user namespaces to be odd in");
    }
    can
}

#[test]
fn a_name_that_nobody_can_look_up_is_told_as_such() {
    if !can_unshare() {
        return;
    }
    let world = World::new(User::Myself);
    world.configure("[retries]\nattempts = 1\n");
    // Without a network there is no resolver.
    let run = in_namespaces(&world, &["-Urn"], "true", "--base-url http://api.example do-it").expect(6);
    insta::assert_snapshot!(said(&world, &run), @r"
    bailiwick: the API key is sent to api.example without encryption
    read-only but for $TMPDIR · network off · secrets hidden · claude-opus-5-5
    note: the project is read-only (--mode deny, the default); --mode auto lets the agent change it
    bailiwick: cannot look up the name api.example [lookup-failed]
      hint: check the network and --base-url
    ");
}

#[test]
fn a_project_that_is_read_only_is_told_before_a_model_is_asked_to_change_it() {
    if !can_unshare() {
        return;
    }
    let world = World::new(User::Myself);
    world.file("a.txt", "a\n");
    let project = world.project().display().to_string();
    let read_only = format!("mount --bind {project} {project} && mount -o remount,bind,ro {project}");
    for (mode, is_told) in [("auto", true), ("ask", true), ("deny", false)] {
        let server = model_of([done()]);
        let task = format!("--mode {mode} --base-url {} do-it", server.base_url());
        let run = in_namespaces(&world, &["-Urm"], &read_only, &task).expect(0);
        let note = said(&world, &run);
        let told: Vec<_> =
            note.lines().filter(|line| line.contains("read-only file") || line.contains("hint:")).collect();
        if is_told {
            insta::allow_duplicates! { insta::assert_snapshot!(told.join("\n"), @r"
            bailiwick: note: [world]/project is on a read-only file system: nothing can be changed there, whatever --mode says [project-read-only]
              hint: work in a copy that you can write
            ");  }
        } else {
            assert!(told.is_empty(), "{note}");
        }
    }
}

/// Numbers of the three Landlock system calls, which are the same on all architectures.
const LANDLOCK: [libc::c_long; 3] =
    [libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self];

#[test]
fn a_machine_without_landlock_and_one_whose_engine_blocks_it_are_told_before_a_model_is_asked() {
    for (errno, code, why) in [
        (
            Errno::ENOSYS,
            "no-landlock",
            "ENOSYS: the kernel, or a container's profile, does not know it; needs Linux 5.13 with CONFIG_SECURITY_LANDLOCK",
        ),
        (Errno::EPERM, "landlock-blocked", "EPERM: a seccomp profile denies it; it has to allow landlock_*"),
    ] {
        for user in User::all() {
            let world = World::new(user);
            let server = model_of([done()]);
            let mut command = world.task(&server.base_url(), ["do it"]);
            outer::refuse(&mut command, &LANDLOCK, errno);
            let run = Finished::of(&mut command).expect(5);
            assert_eq!(server.connections(), 0);
            let complaint = complaint(&said(&world, &run)).replace(why, "[why]");
            let complaint = complaint.replace(code, "code");
            insta::allow_duplicates! { insta::assert_snapshot!(complaint, @r"
            bailiwick: sandbox-exec stopped at stage platform (105): Landlock is not available: what is hidden later, and a command from its own worker, are not held ([why]); --allow-degraded starts all the same [code]
              hint: bailiwick doctor shows what is missing on this machine
            "); }
            let mut doctor = world.bailiwick(["doctor"]);
            outer::refuse(&mut doctor, &LANDLOCK, errno);
            let run = Finished::of(&mut doctor).expect(5);
            let first: Vec<_> = run.stdout.lines().take(2).collect();
            let first = first.join("\n").replace(why, "[why]");
            insta::allow_duplicates! { insta::assert_snapshot!(first, @r"
            FAIL  sandbox     no sandbox works here: platform: Landlock is not available: what is hidden later, and a command from its own worker, are not held ([why]); --allow-degraded starts all the same
                              hint: use a kernel of 5.13 or later with Landlock enabled (lsm=…,landlock), and a container profile that allows landlock_* and seccomp; --allow-degraded runs with what this machine can enforce
            "); }
        }
    }
}

#[test]
fn an_outer_filter_that_refuses_nothing_is_in_nobodys_way() {
    let world = World::new(User::Myself);
    let server = model_of([done()]);
    let mut command = world.task(&server.base_url(), ["do it"]);
    outer::refuse(&mut command, &[], Errno::ENOSYS);
    Finished::of(&mut command).expect(0);
}

#[test]
fn a_disk_that_is_full_ends_a_run_and_says_what_is_safe() {
    if !can_unshare() {
        return;
    }
    let world = World::new(User::Myself);
    let own = world.own().display().to_string();
    let mount = format!("mount -t tmpfs -o size=40k tmpfs {own}");
    let server = model_of([done()]);
    // The disk has room for the first events of the log, but not for this task.
    let task = format!("--base-url {} \"$(printf 'x %.0s' {{1..30000}})\"", server.base_url());
    let run = in_namespaces(&world, &["-Urm"], &mount, &task).expect(1);
    assert_eq!(server.connections(), 0, "what is not in the log is not asked");
    let said = complaint(&said(&world, &run));
    let (before, after) = said.split_once("/own/state/sessions/").unwrap();
    let (_, after) = after.split_once(".jsonl").unwrap();
    insta::assert_snapshot!(format!("{before}…{after}"), @"bailiwick: cannot write the session log: event 5 was not written to [world]…: No space left on device (os error 28); everything up to event 4 is saved: free some space there, and start again [disk-full]");
}

#[test]
fn a_name_that_commands_a_terminal_is_told_without_commanding_it() {
    let world = World::new(User::Myself);
    let victim = world.own().join("a\u{1b}]0;owned\u{7}b");
    std::fs::write(&victim, "").expect("our own directory");
    let mut command = world.command(Programs::get().path("bailiwick"));
    command.args(["sandbox", "--tier", "floor", "-C"]).arg(world.project());
    command.args(["--", "sh", "-c", "chmod 777 \"$1\" 2>/dev/null", "sh"]).arg(&victim);
    let run = Finished::of(&mut command);
    assert_ne!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr.contains(r"a\u{1b}]0;owned\u{7}b") && !run.stderr.contains('\u{1b}'),
        "{:?}",
        run.stderr
    );
}

#[test]
fn a_program_that_is_not_there_is_no_fault_of_the_machine() {
    for user in User::all() {
        let world = World::new(user);
        for program in ["/nowhere/prog", "no-such-program", "/etc/passwd"] {
            let mut command = world.bailiwick(["sandbox", "-C"]);
            command.arg(world.project()).args(["--", program]);
            let run = Finished::of(&mut command).expect(5);
            let complaint = complaint(&said(&world, &run));
            let hint = if program.starts_with('/') {
                format!(
                    "bailiwick explain -C [world]/project --as path {program} shows the access to this program"
                )
            } else {
                format!("install {program}, or give the path of the program")
            };
            assert_eq!(complaint, format!("bailiwick: the command was not started\n  hint: {hint}"));
        }
    }
}
