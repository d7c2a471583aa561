//! Approvals through the session's channel alone, with real workers in both tiers: what was approved happens, exactly and
//! once, and nothing else does.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod asking;
mod bad_answers;
mod confinement;
mod external;
mod flow;
mod grants;
mod offers;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::unistd::geteuid;
use tests::programs::copy_program;
use tests::session::again_with_another_first_agent;
use tests::{Finished, PLAIN_USER, Programs};

#[test]
fn all_of_it_holds_for_another_first_agent() {
    again_with_another_first_agent();
}

/// What a plain user's kernel and root's may answer differently: every test here, once more, as [`PLAIN_USER`].
#[test]
fn all_of_it_holds_for_a_plain_user() {
    if !geteuid().is_root() {
        // It is one already.
        return;
    }
    let place = tempfile::Builder::new().prefix("bailiwick-approvals-").tempdir().unwrap();
    let copy = place.path().join("deps");
    fs::create_dir(&copy).unwrap();
    for directory in [place.path(), &copy] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
    for name in ["bailiwick", "bailiwick-worker", "sandbox-exec", "probe", "fake-worker"] {
        std::os::unix::fs::symlink(Programs::get().path(name), place.path().join(name)).unwrap();
    }
    let me = copy.join("approvals");
    copy_program(&std::env::current_exe().unwrap(), &me);
    let mut again = Command::new(&me);
    again.args(["--test-threads", "2", "--nocapture"]).current_dir("/").env_remove("TMPDIR").env("HOME", "/");
    let again = Finished::of(again.uid(PLAIN_USER).gid(PLAIN_USER));
    eprint!("{}", again.stderr.lines().filter(|line| line.starts_with("skipped: ")).collect::<String>());
    assert_eq!(again.code, 0, "{}\n{}", again.stdout, again.stderr);
}
