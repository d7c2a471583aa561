//! Runs the tests of a module again under another condition.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use nix::unistd::geteuid;

use crate::programs::{NAMES, PLAIN_USER, copy_program};
use crate::session::FIRST_AGENT;
use crate::{Finished, Programs};

/// Part of the names of the tests that run a module again. Such a test is not itself run again.
const OF_ALL: &str = "all_of_it_holds";

/// Runs the tests of a module (`module_path!()`) again, in sessions whose first agent has another id than `1`.
pub fn with_another_first_agent(module: &str) {
    let me = std::env::current_exe().expect("a test has a path");
    run(Command::new(me).env(FIRST_AGENT, "7"), module);
}

/// Runs the tests of a module (`module_path!()`) again as [`PLAIN_USER`], because the kernel may treat root and other
/// users differently.
pub fn as_a_plain_user(module: &str) {
    if !geteuid().is_root() {
        // This process already runs as a plain user.
        return;
    }
    let place = tempfile::Builder::new().prefix("bailiwick-again-").tempdir().expect("a temp directory");
    let copy = place.path().join("deps");
    fs::create_dir(&copy).expect("our own directory");
    for directory in [place.path(), &copy] {
        fs::set_permissions(directory, Permissions::from_mode(0o755)).expect("our own directory");
    }
    for name in NAMES {
        symlink(Programs::get().path(name), place.path().join(name)).expect("a link in our own directory");
    }
    let me = copy.join("again");
    copy_program(&std::env::current_exe().expect("a test has a path"), &me);
    let again = &mut Command::new(&me);
    run(
        again
            .current_dir(Path::new("/"))
            .env_remove("TMPDIR")
            .env("HOME", "/")
            .uid(PLAIN_USER)
            .gid(PLAIN_USER),
        module,
    );
}

fn run(again: &mut Command, module: &str) {
    let (_, module) = module.split_once("::").expect("a module of a test program");
    let again = Finished::of(again.arg(format!("{module}::")).args([
        "--test-threads",
        "2",
        "--nocapture",
        "--skip",
        OF_ALL,
    ]));
    eprint!("{}", again.stderr.lines().filter(|line| line.starts_with("skipped: ")).collect::<String>());
    assert_eq!(again.code, 0, "{}\n{}", again.stdout, again.stderr);
    assert!(!again.stdout.contains(" 0 passed"), "{}", again.stdout);
}
