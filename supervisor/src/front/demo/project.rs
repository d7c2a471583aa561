//! The sample project: a small bash program with a failing test, in a git repository.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

macro_rules! file {
    ($path:literal) => {
        ($path, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/projects/demo/", $path)))
    };
}

pub static FILES: &[(&str, &str)] = &[file!("README.md"), file!("sizes.sh"), file!("test.sh")];

/// Names and addresses for git commits, so that git needs no settings of the person.
const AUTHOR: &[(&str, &str)] = &[
    ("GIT_AUTHOR_NAME", "Bailiwick"),
    ("GIT_AUTHOR_EMAIL", "demo@example.org"),
    ("GIT_COMMITTER_NAME", "Bailiwick"),
    ("GIT_COMMITTER_EMAIL", "demo@example.org"),
];

pub fn create(directory: &Path) -> io::Result<()> {
    for (name, content) in FILES {
        let file = directory.join(name);
        fs::write(&file, content)?;
        if content.starts_with("#!") {
            fs::set_permissions(&file, Permissions::from_mode(0o755))?;
        }
    }
    commit(directory, "Read and print sizes")
}

pub(super) fn commit(directory: &Path, message: &str) -> io::Result<()> {
    // Without a template no hooks of the person are copied.
    git(directory, &["init", "--quiet", "--template="])?;
    git(directory, &["add", "--all"])?;
    git(directory, &["commit", "--quiet", "--message", message])
}

/// Runs git without settings of the user or the system.
fn git(directory: &Path, arguments: &[&str]) -> io::Result<()> {
    let mut git = Command::new("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", directory);
    git.envs(AUTHOR.iter().copied()).args(arguments).current_dir(directory);
    let output = git.stdin(Stdio::null()).output();
    let output = output.map_err(|error| io::Error::new(error.kind(), format!("git: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("git {}: {}", arguments[0], said.trim())))
}
