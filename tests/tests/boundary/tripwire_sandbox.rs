//! Tests attacks by commands of `bailiwick sandbox` on files that the host executes later, in both tiers. However the
//! command ends, the files are unchanged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tests::repository::{is_marked, repository, shell};
use tests::{Finished, User, World, marked, wait_until};

/// Later commands of a person in a project.
const PERSON: &str = "git status; git add -A; git commit -qm later; git diff HEAD~1; \
    [ ! -d sub ] || (cd sub && git status; git commit -q --allow-empty -m x); true";

fn sandbox(world: &World, arguments: &[&str], command: &str) -> Command {
    let mut sandbox = world.bailiwick(["sandbox", "-C"]);
    sandbox.arg(world.project()).args(arguments).args(["--", "bash", "-c", command]);
    sandbox
}

/// Returns the restored files that the message names, without the paths to which changed ones were moved.
fn told(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("bailiwick: changed and restored: "));
    let without = |line: &str| match line.split_once("; moved to ") {
        Some((line, _)) => format!("{line})"),
        None => line.to_owned(),
    };
    lines.map(without).collect()
}

/// Commands that would make a person's work in the project run `evil.sh`. The `bool` is true if the full tier permits
/// the write, so that only the tripwire undoes it.
const RUN_BY_GIT: &[(&str, &str, bool)] = &[
    ("hook", "mkdir -p .git/hooks; cp evil.sh .git/hooks/pre-commit", false),
    ("no hooks yet", "rm -rf .git/hooks; mkdir -p .git/hooks; cp evil.sh .git/hooks/pre-commit", false),
    ("fsmonitor", "git config core.fsmonitor \"$PWD/evil.sh\"", false),
    ("moved away", "mv .git .g2; [ -e .git ] || cp -r .g2 .git; cp evil.sh .git/hooks/pre-commit", false),
    (
        "worktree config",
        "printf '[core]\\nfsmonitor = %s\\n' \"$PWD/evil.sh\" > .git/config.worktree; \
         git config extensions.worktreeConfig true",
        true,
    ),
    ("nested", "git init -q sub; git -C sub config core.fsmonitor \"$PWD/evil.sh\"", true),
    ("nested hook", "git init -q sub; mkdir -p sub/.git/hooks; cp evil.sh sub/.git/hooks/post-commit", true),
];

#[test]
fn nothing_that_a_command_planted_is_run_by_a_persons_git() {
    for user in User::all() {
        for (name, command, by_tripwire) in RUN_BY_GIT {
            let control = repository(user);
            shell(&control, command);
            shell(&control, PERSON);
            assert!(is_marked(&control), "{name}: the attack does nothing without the tripwire");
            for tier in ["floor", "full"] {
                let world = repository(user);
                let done =
                    Finished::of(&mut sandbox(&world, &["--tier", tier], &format!("{command}; exit 7")));
                assert_eq!(done.code, 7, "{name}: the status is the command's own: {}", done.stderr);
                let seen = shell(&world, PERSON);
                assert!(!is_marked(&world), "{name}, {tier}: {}\n{}", done.stderr, seen.stderr);
                if tier == "floor" || *by_tripwire {
                    assert!(!told(&done.stderr).is_empty(), "{name}, {tier}: {}", done.stderr);
                }
                assert_eq!(
                    shell(&world, "git fsck && git log -1").code,
                    0,
                    "{name}: the repository is broken"
                );
            }
        }
    }
}

/// Tests missing files that other programs would execute. No tier can mount anything there, and no denial is reported.
#[test]
fn what_is_missing_stays_missing_and_is_told_by_name() {
    const NAMES: [&str; 4] = [".bailiwick.toml", ".envrc", ".hg/hgrc", ".mcp.json"];
    for user in User::all() {
        for tier in ["floor", "full"] {
            let world = repository(user);
            let plant =
                format!("for f in {}; do mkdir -p $(dirname $f); echo evil > $f; done", NAMES.join(" "));
            let done = Finished::of(&mut sandbox(&world, &["--tier", tier], &plant)).expect(0);
            for name in NAMES {
                assert!(!world.project().join(name).exists(), "{name}, {tier}");
            }
            let mut said = told(&done.stderr);
            said.sort_unstable();
            assert_eq!(
                said,
                NAMES.map(|name| format!("{name} (created)")),
                "{user:?}, {tier}: {}",
                done.stderr
            );
            assert!(!done.stderr.contains("blocked by"), "{}", done.stderr);
        }
    }
}

#[test]
fn the_right_to_configure_git_is_exactly_that() {
    for user in User::all() {
        for tier in ["floor", "full"] {
            let plant = "git config core.editor vi; cp evil.sh .git/hooks/pre-commit; echo evil > .envrc";
            let given = repository(user);
            let done = Finished::of(&mut sandbox(&given, &["--tier", tier, "--write", ".git/config"], plant));
            assert!(given.read(".git/config").contains("editor = vi"), "{tier}: {}", done.stderr);
            assert!(!given.project().join(".git/hooks/pre-commit").exists(), "{tier}: {}", done.stderr);
            assert!(told(&done.stderr).contains(&".envrc (created)".to_owned()), "{tier}: {}", done.stderr);
            let kept = repository(user);
            let before = kept.read(".git/config");
            Finished::of(&mut sandbox(&kept, &["--tier", tier], plant));
            assert_eq!(kept.read(".git/config"), before, "{tier}");
        }
    }
    let floor = repository(User::Myself);
    let done = Finished::of(&mut sandbox(&floor, &["--tier", "floor"], "git config core.editor vi"));
    assert_eq!(
        told(&done.stderr),
        [".git/config (core.editor); hint: --write .git/config allows this change"]
    );
}

#[test]
fn a_command_that_may_not_write_has_nothing_put_back() {
    let world = repository(User::Myself);
    let done = Finished::of(&mut sandbox(&world, &["--access", "read"], "echo evil > .envrc"));
    assert!(!world.project().join(".envrc").exists());
    assert_eq!(told(&done.stderr), [] as [&str; 0], "{}", done.stderr);
}

/// Command that ignores signals, and leaves a daemon that plants files repeatedly. Only SIGKILL ends the daemon.
const STUBBORN: &str = "trap '' INT TERM HUP QUIT; \
    setsid bash -c 'while :; do echo evil > .envrc; mkdir -p .claude; echo evil > .claude/settings.json; done' & \
    while [ ! -e .claude/settings.json ]; do :; done; echo > planted; mkfifo gate; read < gate";

fn stubborn(world: &World, tier: &str) -> Child {
    let mut command = sandbox(world, &["--tier", tier], STUBBORN);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("it is planted", || world.project().join("planted").exists());
    child
}

fn check_end(world: &World, child: Child, code: i32, what: &str) {
    let done = Finished::from(child.wait_with_output().unwrap());
    assert_eq!(done.code, code, "{what}: {}", done.stderr);
    assert_eq!(marked(world.mark().as_bytes()), [] as [u32; 0], "{what}: nothing of it lives");
    for name in [".envrc", ".claude"] {
        assert!(!world.project().join(name).exists(), "{what}: {name}: {}", done.stderr);
    }
    let said = told(&done.stderr);
    assert!(said.iter().any(|line| line.starts_with(".envrc")), "{what}: {}", done.stderr);
    assert!(said.iter().any(|line| line.starts_with(".claude")), "{what}: {}", done.stderr);
}

#[test]
fn a_signal_that_ends_us_ends_the_command_first_and_puts_everything_back() {
    for user in User::all() {
        for tier in ["floor", "full"] {
            for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
                let world = repository(user);
                let child = stubborn(&world, tier);
                kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
                check_end(&world, child, 128 + signal as i32, &format!("{user:?}, {tier}, {signal}"));
            }
        }
    }
}

#[test]
fn a_broker_that_is_killed_takes_the_command_along_and_everything_is_put_back() {
    for user in User::all() {
        for tier in ["floor", "full"] {
            let world = repository(user);
            let child = stubborn(&world, tier);
            // The broker is a child of the thread that starts processes.
            let threads = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
            let children: String = threads
                .map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default())
                .collect();
            let broker: i32 = children.split_whitespace().next().unwrap().parse().unwrap();
            kill(Pid::from_raw(broker), Signal::SIGKILL).unwrap();
            check_end(&world, child, 128 + 9, &format!("{user:?}, {tier}"));
        }
    }
}
