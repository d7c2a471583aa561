use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ipc::confinement::Tier;
use tempfile::TempDir;

const PLAIN: u32 = 12345;

/// Directory of one user, with forbidden files as targets of attacks, allowed files, and a copy of sandbox-exec.
pub(crate) struct Place {
    directory: TempDir,
    user: Option<u32>,
    pub(crate) tier: Tier,
}

/// Runs a test as every user that this process can be, in both tiers.
pub(crate) fn as_each_user(test: impl Fn(&Place)) {
    for tier in [Tier::Floor, Tier::Full] {
        in_tier_as_each_user(tier, &test);
    }
}

pub(crate) fn in_tier_as_each_user(tier: Tier, test: impl Fn(&Place)) {
    let users = [None, Some(PLAIN)];
    let root = nix::unistd::geteuid().is_root();
    if !root {
        eprintln!("skipped: as root, and as another user (needs root)");
    }
    for user in users.into_iter().take(if root { 2 } else { 1 }) {
        let place = Place::new(user, tier);
        let possible = tier != Tier::Full || place.sandbox(&[]).arg("true").status().unwrap().success();
        if possible {
            test(&place);
        } else {
            eprintln!("skipped: the full tier (this machine refuses namespaces)");
        }
    }
}

impl Place {
    fn new(user: Option<u32>, tier: Tier) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("sx-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in("/tmp")
            .unwrap();
        let place = Self { directory, user, tier };
        copy_program(Path::new(env!("CARGO_BIN_EXE_sandbox-exec")), &place.path("sandbox-exec"));
        place.make("project/keep", "mine");
        place.make("home/notes", "notes");
        place.make("home/secret/key", "CANARY");
        place
    }

    pub(crate) fn full(&self) -> bool {
        self.tier == Tier::Full
    }

    pub(crate) fn user(&self) -> Option<u32> {
        self.user
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(name)
    }

    pub(crate) fn make(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        for part in path.ancestors().take_while(|part| *part != self.path("").as_path()) {
            chown(part, self.user, self.user).unwrap();
        }
        chown(self.path(""), self.user, self.user).unwrap();
    }

    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("project")).env("HOME", self.path("home")).env("LC_ALL", "C");
        command.env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        // Whoever runs the tests may ignore it, as nohup(1) does, and sandbox-exec leaves it so.
        let heed = || {
            // SAFETY: signal(2) is async-signal-safe, and the default action is no function.
            let before = unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
            if before == libc::SIG_ERR { Err(std::io::Error::last_os_error()) } else { Ok(()) }
        };
        // SAFETY: the closure makes one system call that is async-signal-safe.
        unsafe { command.pre_exec(heed) };
        command
    }

    pub(crate) fn sandbox(&self, flags: &[&str]) -> Command {
        let mut command = self.command(self.path("sandbox-exec"));
        command.args(["--tier", if self.full() { "full" } else { "floor" }]);
        command.arg("--write").arg(self.path("project")).args(flags).arg("--");
        command
    }

    pub(crate) fn confined(&self, flags: &[&str], script: &str) -> Output {
        self.sandbox(flags).args(["/bin/bash", "-c", script]).output().unwrap()
    }

    pub(crate) fn unconfined(&self, script: &str) -> Output {
        self.command("/bin/bash").args(["-c", script]).output().unwrap()
    }

    pub(crate) fn contents(&self, name: &str) -> Vec<(PathBuf, String)> {
        let mut found = vec![];
        collect(&self.path(name), &mut found);
        found.sort();
        found
    }
}

fn collect(path: &Path, found: &mut Vec<(PathBuf, String)>) {
    let kind = fs::symlink_metadata(path).unwrap().file_type();
    let content = if kind.is_file() { fs::read_to_string(path).unwrap() } else { format!("{kind:?}") };
    found.push((path.to_owned(), content));
    if kind.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), found);
        }
    }
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Copies a program by another process. If this process wrote the copy, a child that another test forks meanwhile would
/// keep it open for writing, and it could not be executed (ETXTBSY).
fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}
