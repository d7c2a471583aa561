//! Runs the real git without the person's configuration, outside of any repository.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::tree::Tree;

static GIT: LazyLock<bool> = LazyLock::new(|| Command::new("git").arg("--version").output().is_ok());

/// True if git is not installed. Then prints that the test is skipped.
pub(crate) fn is_missing() -> bool {
    if !*GIT {
        eprintln!("skipped: no git on this machine");
    }
    !*GIT
}

/// Creates a repository with the files of this tree. The files are not committed.
pub(crate) fn repository(tree: &Tree) -> TempDir {
    let directory = TempDir::new().unwrap();
    run(directory.path(), &["init", "-q"], b"").unwrap();
    tree.write(directory.path());
    directory
}

pub(crate) fn apply(directory: &Path, options: &[&str], patch: &[u8]) -> Result<(), String> {
    let arguments: Vec<_> =
        ["apply", "--whitespace=nowarn"].into_iter().chain(options.iter().copied()).collect();
    run(directory, &arguments, patch)
}

pub(crate) fn run(directory: &Path, arguments: &[&str], input: &[u8]) -> Result<(), String> {
    let mut git = Command::new("git")
        .current_dir(directory)
        .args(arguments)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Git may end before it has read everything. Its exit status decides.
    let _ = git.stdin.take().unwrap().write_all(input);
    let output = git.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
