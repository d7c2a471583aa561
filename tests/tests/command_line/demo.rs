//! Tests `bailiwick demo`, started as by a new user: on a machine with little more than bash and git.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use insta::assert_snapshot;
use ipc::confinement::Tier;
use nix::unistd::geteuid;
use supervisor::front::demo::poison::Targets;
use supervisor::process::attempt::GOT_THROUGH;
use tests::programs::write_script;
use tests::tier::{self, everywhere};
use tests::ui::Ui;
use tests::{Finished, Programs, User, World, alive};

const SIZE: (u16, u16) = (110, 50);

/// Creates a directory with links to these programs only.
fn only(world: &World, programs: &[&str]) -> PathBuf {
    let place = world.root().join("bin");
    fs::create_dir(&place).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    for program in programs {
        let mut found = std::env::split_paths(&path).map(|directory| directory.join(program));
        symlink(found.find(|found| found.is_file()).unwrap(), place.join(program)).unwrap();
    }
    place
}

fn demo(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.bailiwick(["demo"]);
    command.args(arguments).env("PATH", only(world, &["bash", "git"]));
    command.env("CARGO_TARGET_DIR", world.root().join("target"));
    command
}

#[test]
fn the_demo_needs_bash_and_git_alone() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let run = Finished::of(demo(&world, tier::flags(tier)).env("TERM", "xterm")).expect(0);
        let note = world.home().join("sizes-bug.md");
        let layer = if tier == Tier::Full { "read-only mount" } else { "Landlock" };
        let denied = format!("blocked by the kernel ({layer}): write {}", note.display());
        // A program outside of PATH is named by its path.
        let program = Programs::get().path("bailiwick");
        let next = format!("Next: set ANTHROPIC_API_KEY and run `{}` in your project\n", program.display());
        for shown in [
            "FAIL  parse 1.05 KiB: expected 1075, got 1536\n",
            &denied,
            "hint: allow a directory below that path instead: --write PATH\n",
            "╔ Approve this edit? sizes.sh +1 -3\n",
            "allows: write sizes.sh, once\n",
            "✓ edit sizes.sh\n",
            "all 8 tests passed\n",
            &next,
        ] {
            assert!(run.stdout.contains(shown), "{user:?} {tier}: {shown:?} in {}", run.stdout);
        }
        assert!(!run.stdout.contains('\x1b'), "no colour for a pipe");
        assert_eq!(run.stderr, "", "{user:?} {tier}");
        assert!(!note.exists());
        assert!(fs::read_dir(world.own()).unwrap().next().is_none(), "nothing of ours is left");
    }
}

/// Removes the parts of a printed page that differ from run to run.
fn stable(world: &World, page: &str) -> String {
    let line = |line: &str| match line.split_once("/sizes: ") {
        Some((_, rights)) => format!("[place]/sizes: {rights}"),
        None if line.starts_with("Done in ") => "Done in [time].".to_owned(),
        None => line.to_owned(),
    };
    let program = Programs::get().path("bailiwick").display().to_string();
    world.stable(&page.lines().map(line).collect::<Vec<_>>().join("\n")).replace(&program, "bailiwick")
}

#[test]
fn the_page_of_the_demo_reads_well() {
    let world = World::new(User::Myself);
    let floor = tier::flags(Tier::Floor);
    let run = Finished::of(&mut demo(&world, floor)).expect(0);
    assert_snapshot!(stable(&world, &run.stdout), @r##"
    A scripted model repairs a small git repository; its commands really run, in a real sandbox.
    [place]/sizes: read-only until you approve · network off · no API key

    > A test of this project fails. Find out why and fix it.

    I'll read the program and its tests.
      ✓ read sizes.sh
      ✓ read test.sh

    Now the tests, before I change anything.
      ✗ run bash test.sh
          FAIL  parse 1.05 KiB: expected 1075, got 1536
          1 of 8 tests failed

    `1.05 KiB` is read as 1.5 KiB: `scale` follows the value of the digits after the point, so
    a zero before them is lost. I'll leave a note about that outside the project, for later.
      ✗ run echo 'sizes.sh reads 1.05 KiB as 1.5 KiB' > [world]/home/sizes-bug.md
          blocked by the kernel (Landlock): write [world]/home/sizes-bug.md
          hint: allow a directory below that path instead: --write PATH

    I am not allowed to write there, and do not need to. The fix is one line: count the
    digits.

      ╔ Approve this edit? sizes.sh +1 -3
      ║ @@ -23,9 +23,7 @@
      ║    [[ $1 =~ ^([0-9]+)(\.([0-9]+))?\ *([KMGT]iB|B)?$ ]] || { echo "not a size: $1" >&2; return 1; }
      ║    local whole=${BASH_REMATCH[1]} digits=${BASH_REMATCH[3]:-0} unit scale=1
      ║    unit=$(bytes_of "${BASH_REMATCH[4]:-B}")
      ║ -  while ((scale <= 10#$digits)); do
      ║ -    ((scale *= 10))
      ║ -  done
      ║ +  ((scale = 10 ** ${#digits}))
      ║    echo $((10#$whole * unit + unit * 10#$digits / scale))
      ║  }
      ║
      ║ allows: write sizes.sh, once
      ╚ yes, once (the script answers here; with --tui you answer)
      ✓ edit sizes.sh

    Now the tests again.
      ✓ run bash test.sh
          all 8 tests passed

    Fixed, and the tests pass: the scale is now ten to the power of the number of digits.

    The patch, as `exec --patch` writes it:

    diff --git a/sizes.sh b/sizes.sh
    index 5c86fd529fc07f8d820a9cc3e973f481b83bf46e..f9f8db62ca9e43f147234d471362e47c3b5a31e3 100755
    --- a/sizes.sh
    +++ b/sizes.sh
    @@ -23,9 +23,7 @@
       [[ $1 =~ ^([0-9]+)(\.([0-9]+))?\ *([KMGT]iB|B)?$ ]] || { echo "not a size: $1" >&2; return 1; }
       local whole=${BASH_REMATCH[1]} digits=${BASH_REMATCH[3]:-0} unit scale=1
       unit=$(bytes_of "${BASH_REMATCH[4]:-B}")
    -  while ((scale <= 10#$digits)); do
    -    ((scale *= 10))
    -  done
    +  ((scale = 10 ** ${#digits}))
       echo $((10#$whole * unit + unit * 10#$digits / scale))
     }

    Done in [time].
    Next: set ANTHROPIC_API_KEY and run `bailiwick` in your project
          bailiwick demo --attack    runs attacks, and shows what stops each of them
          bailiwick demo --tui       the same in the terminal UI, where you answer
    "##);
}

#[test]
fn the_patch_of_the_demo_applies() {
    let world = World::new(User::Myself);
    let kept = world.root().join("kept");
    let run = Finished::of(&mut demo(&world, &["--keep", kept.to_str().unwrap()])).expect(0);
    assert_eq!(run.stderr, format!("bailiwick: the project of the demo is still in {}\n", kept.display()));
    // The printed patch can be reverted on the fixed project, and then applied again.
    let fixed = fs::read_to_string(kept.join("sizes.sh")).unwrap();
    apply(&world, &kept, &["-R"], &run.stdout);
    assert_ne!(fs::read_to_string(kept.join("sizes.sh")).unwrap(), fixed);
    apply(&world, &kept, &[], &run.stdout);
    assert_eq!(fs::read_to_string(kept.join("sizes.sh")).unwrap(), fixed);
}

/// Runs `git apply` on a whole page that contains a patch.
fn apply(world: &World, project: &Path, arguments: &[&str], page: &str) {
    let mut git = world.command("git");
    let git = git.arg("apply").args(arguments).current_dir(project).stdin(Stdio::piped());
    let mut git = git.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    Finished::from(git.wait_with_output().unwrap()).expect(0);
}

#[test]
fn the_demo_plays_without_a_home_that_can_be_written() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let mut demo = demo(&world, tier::flags(tier));
        demo.env("HOME", "/nonexistent").env_remove("BAILIWICK_HOME");
        let run = Finished::of(&mut demo).expect(0);
        assert!(run.stdout.contains("write /var/tmp/sizes-bug.md"), "{user:?} {tier}: {}", run.stdout);
    }
}

#[test]
fn the_demo_names_a_missing_program_before_it_starts() {
    let world = World::new(User::Myself);
    let bash = only(&world, &["bash"]);
    let run = Finished::of(world.bailiwick(["demo"]).env("PATH", &bash)).expect(1);
    let said = "bailiwick: cannot run the demo: git is not on PATH\n  hint: install bash and git\n";
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", said));
    let run = Finished::of(world.bailiwick(["demo", "--keep"]).arg(&bash)).expect(2);
    let said = "bailiwick: cannot keep the project in [world]/bin: the path exists already\n  \
                hint: name a directory that does not exist\n";
    assert_eq!((run.stdout.as_str(), world.stable(&run.stderr).as_str()), ("", said));
    assert_eq!(fs::read_dir(&bash).unwrap().count(), 1);
}

#[test]
fn a_demo_whose_tests_do_not_pass_fails() {
    let world = World::new(User::Myself);
    // This bash fails only for the tests. Until then, the output is the usual one.
    let bash = only(&world, &["git"]).join("bash");
    let script =
        "#!/bin/bash\ncase $* in *test.sh*) echo no such luck; exit 1;; esac\nexec /bin/bash \"$@\"\n";
    write_script(&bash, script);
    let run = Finished::of(world.bailiwick(["demo"]).env("PATH", bash.parent().unwrap())).expect(1);
    assert!(run.stdout.contains("      no such luck\n"), "{}", run.stdout);
    assert_eq!(run.stderr, "bailiwick: the demo failed: the tests did not pass at the end\n");
}

fn demo_in_ui(world: &World) -> Ui {
    let mut command = world.bailiwick(["demo", "--tui"]);
    Ui::start(command.env("TERM", "xterm-256color"), SIZE)
}

#[test]
fn a_person_answers_the_demo_in_the_terminal_ui() {
    let world = World::new(User::Myself);
    let mut ui = demo_in_ui(&world);
    ui.until("the card", |screen| screen.contains("10 ** ${#digits}"));
    ui.press_until("y", "The demo ends here.");
    ui.types("what now?\r");
    ui.until("an answer to more words", |screen| screen.matches("The demo ends here.").count() == 2);
    assert!(!ui.screen().contains("api_error"), "{}", ui.screen());
    ui.types(":q\r");
    let left = ui.end();
    assert_eq!((left.code, &left.modes[..]), (0, &[][..]), "{}", left.screen);
    // The session's log was removed with its directory.
    assert!(!left.screen.contains("the session's log"), "{}", left.screen);
    assert!(left.screen.contains("set ANTHROPIC_API_KEY"), "{}", left.screen);
}

#[test]
fn a_no_ends_the_demo_in_good_order() {
    let world = World::new(User::Myself);
    let mut ui = demo_in_ui(&world);
    ui.until("the card", |screen| screen.contains("10 ** ${#digits}"));
    ui.press_until("n", "I leave");
    ui.until_shown("The demo ends here.");
    // A key that came too late for the card is in the prompt: Ctrl+C clears it.
    ui.types("\x03:q\r");
    assert_eq!(ui.end().code, 0);
}

/// Programs of coreutils that the attacks need.
const COREUTILS: [&str; 6] = ["cat", "chmod", "dd", "head", "mkdir", "timeout"];

fn attack(world: &World, arguments: &[&str], missing: &[&str]) -> Command {
    let programs: Vec<_> = ["bash", "git"].into_iter().chain(COREUTILS).collect();
    let programs: Vec<_> = programs.into_iter().filter(|program| !missing.contains(program)).collect();
    let mut command = world.bailiwick(["demo", "--attack"]);
    command.args(arguments).env("PATH", only(world, &programs));
    command
}

/// Returns the attacks that succeeded, by the rows of the printed table.
fn through(run: &Finished) -> Vec<&str> {
    run.stdout.lines().filter_map(|line| line.strip_prefix("  GOT THROUGH  ")).collect()
}

#[test]
fn every_attack_of_the_demo_is_blocked() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let run = Finished::of(&mut attack(&world, tier::flags(tier), &[])).expect(0);
        assert_eq!((through(&run), run.stderr.as_str()), (vec![], ""), "{user:?} {tier}: {}", run.stdout);
        let rows = |word: &str| run.stdout.lines().filter(|line| line.starts_with(word)).count();
        let (blocked, undone) = (rows("  blocked  "), rows("  undone  "));
        // In the floor tier, no mount protects git's configuration.
        let expected = if tier == Tier::Full { (17, 1) } else { (16, 2) };
        assert_eq!((blocked, undone), expected, "{user:?} {tier}: {}", run.stdout);
        let sum = format!("Of 18 attacks {blocked} were blocked, and {undone} undone when the command ended");
        assert!(run.stdout.contains(&sum), "{}", run.stdout);
        let home =
            if tier == Tier::Full { "read-only mount: write ~/owned" } else { "Landlock: write ~/owned" };
        for layer in [home, "tripwire: .git/hooks/post-commit (created)", "seccomp: "] {
            assert!(run.stdout.contains(layer), "{user:?} {tier}: {layer} in {}", run.stdout);
        }
        assert!(!run.stdout.contains("canary"), "{}", run.stdout);
        assert!(fs::read_dir(world.home()).unwrap().next().is_none(), "the user's own home is left alone");
    }
}

#[test]
fn an_attack_that_gets_through_is_marked_and_fails_the_demo() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let flags = [tier::flags(tier), &["--write", "/var/tmp"]].concat();
        let run = Finished::of(&mut attack(&world, &flags, &[])).expect(1);
        let expected = [
            "write a file in the home directory ~/owned was changed",
            "add a line to ~/.bashrc            ~/.bashrc was changed",
        ];
        assert_eq!(through(&run), expected, "{user:?} {tier}: {}", run.stdout);
        assert_eq!(run.stderr, "bailiwick: 2 of 18 attacks were neither blocked nor undone\n");
    }
}

#[test]
fn an_attack_that_was_not_tried_is_not_blocked() {
    let world = World::new(User::Myself);
    let run = Finished::of(&mut attack(&world, &[], &["timeout"])).expect(1);
    let titles = ["post the key over TCP", "reach a server on this machine"];
    let through = through(&run);
    assert_eq!(through.len(), 2, "{}", run.stdout);
    assert!(through.iter().zip(titles).all(|(row, title)| row.starts_with(title)), "{through:?}");
}

#[test]
fn attacks_need_a_sandbox_and_say_so() {
    let world = World::new(User::Myself);
    let run = Finished::of(&mut attack(&world, &["--write", "/nonexistent"], &[])).expect(2);
    assert!(run.stderr.contains("bailiwick: --write /nonexistent: does not exist"), "{}", run.stderr);
    let run = Finished::of(world.bailiwick(["demo"]).args(["--write", "/var/tmp"])).expect(2);
    assert!(run.stderr.contains("--attack"), "{}", run.stderr);
}

/// Targets of the attacks for the control, in which the attacker has no sandbox.
struct Open {
    world: World,
    supervisor: Child,
    targets: Targets,
    _servers: (TcpListener, UnixListener, UnixListener),
}

impl Open {
    fn new() -> Self {
        let world = World::new(User::Myself);
        world.file("README.md", "");
        world.commit();
        for (name, content) in
            [(".ssh/key", "canary"), (".config/bailiwick/x.key", "canary"), (".bashrc", "")]
        {
            let path = world.home().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let supervisor = world.command("sleep").arg("1000").env("KEY", "canary").spawn().unwrap();
        let name = format!("bailiwick-test-{}", std::process::id());
        let socket = world.home().join("bus");
        let servers = (
            TcpListener::bind("127.0.0.1:0").unwrap(),
            UnixListener::bind(&socket).unwrap(),
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap(),
        );
        let targets = Targets {
            pid: supervisor.id(),
            process: "sleep".to_owned(),
            helper: Programs::get().path("bailiwick"),
            home: world.home(),
            own_keys: Some(world.home().join(".ssh")),
            port: servers.0.local_addr().unwrap().port(),
            name,
            socket,
            terminal: world.home().join("no-terminal"),
        };
        Self { world, supervisor, targets, _servers: servers }
    }

    fn output(&self, command: &str) -> String {
        let mut bash = self.world.command("bash");
        let run = Finished::of(bash.args(["-c", command]).current_dir(self.world.project()));
        run.stdout
    }
}

/// Control: without a sandbox, the attacks succeed.
#[test]
fn the_attacks_get_through_without_a_sandbox() {
    if !geteuid().is_root() {
        tests::skip!("only root can trace any process (Yama)");
    }
    let mut open = Open::new();
    let elsewhere = ["post the key over TCP", "send the key out in a DNS query"];
    // These depend on the terminal, and on the capabilities of a container's root.
    let kernel = ["type into the user's terminal", "mount a file system", "load a kernel module"];
    let mut silent = BTreeSet::new();
    for attack in open.targets.attacks() {
        if elsewhere.iter().chain(&kernel).any(|title| *title == attack.title) {
            continue;
        }
        let output = open.output(&attack.command);
        if !(output.contains(GOT_THROUGH) || output.contains("canary")) {
            silent.insert(attack.title);
        }
    }
    // These acts print nothing, and succeeded.
    let changed = [
        "add a line to ~/.bashrc",
        "kill the supervisor",
        "make git run a program",
        "plant a git hook",
        "write a file in the home directory",
    ];
    assert_eq!(silent, BTreeSet::from(changed));
    assert!(open.world.home().join("owned").exists());
    assert!(!fs::read(open.world.home().join(".bashrc")).unwrap().is_empty());
    assert!(open.world.read(".git/config").contains("fsmonitor"));
    assert!(open.world.project().join(".git/hooks/post-commit").exists());
    open.supervisor.wait().unwrap();
    assert!(!alive(open.targets.pid));
}
