//! The tested programs, and the users as whom tests run them.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use nix::unistd::{getegid, geteuid};

use crate::world::PLACE;

/// User id and group id as whom root's tests are repeated. No such account needs to exist.
pub const PLAIN_USER: u32 = 12345;

pub(crate) const NAMES: [&str; 6] =
    ["bailiwick", "bailiwick-worker", "sandbox-exec", "probe", "fake-worker", "fake-mcp-server"];

/// User as whom a test runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    Myself,
    /// The user [`PLAIN_USER`]. Only root with its capabilities can become that user.
    Plain,
}

impl User {
    /// Returns the users as whom tests can run here. For root, the plain user is among them.
    pub fn all() -> Vec<Self> {
        if may_become_another() { vec![Self::Myself, Self::Plain] } else { vec![Self::Myself] }
    }

    pub fn uid(self) -> u32 {
        match self {
            Self::Myself => geteuid().as_raw(),
            Self::Plain => PLAIN_USER,
        }
    }

    /// Returns the user's group id. A container engine may give root another group id than 0.
    pub fn gid(self) -> u32 {
        match self {
            Self::Myself => getegid().as_raw(),
            Self::Plain => PLAIN_USER,
        }
    }

    /// True if the user has any capability. In a container, root may have none.
    pub fn is_capable(self) -> bool {
        self == Self::Myself && capabilities() != 0
    }
}

/// True if this process is root and has the capabilities to give files away and change its ids (capabilities(7)).
fn may_become_another() -> bool {
    const NEEDED: u64 = 1 << 0 | 1 << 6 | 1 << 7;
    geteuid().is_root() && capabilities() & NEEDED == NEEDED
}

/// Returns the effective capabilities of this process as a bit mask.
fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or_default()
}

/// Directory with the tested programs. Every user can read it.
#[derive(Debug)]
pub struct Programs(PathBuf);

impl Programs {
    /// Copies the programs that cargo built for this test run to a directory where every user can execute them. Later
    /// calls return the same copies.
    pub fn get() -> &'static Self {
        static COPY: OnceLock<Programs> = OnceLock::new();
        COPY.get_or_init(|| Self(copy()))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn directory(&self) -> &Path {
        &self.0
    }
}

/// Environment variable that names a directory whose programs are tested instead, such as those for another target.
const INSTEAD: &str = "BAILIWICK_PROGRAMS";

/// Returns `target/PROFILE`, which contains the test program.
fn built() -> PathBuf {
    let me = std::env::current_exe().expect("a test has a path");
    me.ancestors().nth(2).expect("a test lies in target/PROFILE/deps").to_owned()
}

fn copy() -> PathBuf {
    let built = built();
    let instead = std::env::var_os(INSTEAD).map(PathBuf::from);
    let origin = |name: &str| {
        let instead = instead.as_ref().map(|instead| instead.join(name)).filter(|path| path.exists());
        instead.unwrap_or_else(|| built.join(name))
    };
    assert!(
        instead.is_none() || NAMES.iter().any(|name| !origin(name).starts_with(&built)),
        "{INSTEAD} names a directory without any of the programs"
    );
    // A plain user needs no copies, unless the programs are in `/tmp`, because the full tier has a private `/tmp`.
    if instead.is_none() && !geteuid().is_root() && !built.starts_with("/tmp") {
        return built;
    }
    // There is one copy per build for all test processes. Its name contains the times and sizes of the programs.
    let stamp: Vec<String> = NAMES.iter().map(|name| stamp(&origin(name))).collect();
    let place = Path::new(PLACE).join(format!("bailiwick-tests-{}", stamp.join("-")));
    if !place.is_dir() {
        let fresh =
            tempfile::Builder::new().prefix("bailiwick-tests-").tempdir_in(PLACE).expect("a temp directory");
        for name in NAMES {
            let (from, to) = (origin(name), fresh.path().join(name));
            // A hard link if possible, because debug builds are large.
            if fs::hard_link(&from, &to).is_err() {
                copy_program(&from, &to);
            }
        }
        fs::set_permissions(fresh.path(), fs::Permissions::from_mode(0o755)).expect("our own directory");
        // If another test process was faster, its copy is used, and this one removed.
        if fs::rename(fresh.path(), &place).is_ok() {
            let _ = fresh.keep();
        }
    }
    place
}

fn stamp(program: &Path) -> String {
    let missing = "is not built: run the whole test command of the README";
    let meta = fs::metadata(program).unwrap_or_else(|_| panic!("{} {missing}", program.display()));
    format!("{:x}{:x}{:x}", meta.len(), meta.mtime(), meta.mtime_nsec())
}

/// Copies a program by another process. Otherwise, a process that this one forks meanwhile could inherit the open copy,
/// and executing it would fail (ETXTBSY).
pub fn copy_program(from: &Path, to: &Path) {
    let done = Command::new("cp").arg(from).arg(to).status().expect("cp can be executed");
    assert!(done.success(), "cp {} {}", from.display(), to.display());
}

/// Writes an executable script, by another process for the same reason as [`copy_program`].
pub fn write_script(path: &Path, text: &str) {
    let write = r#"printf %s "$1" > "$2" && chmod 755 "$2""#;
    let done =
        Command::new("sh").args(["-c", write, "sh", text]).arg(path).status().expect("sh can be executed");
    assert!(done.success(), "{}", path.display());
}

/// Creates a subdirectory with the programs, in which the fake worker replaces the worker. Returns its path.
pub fn taken_over(directory: &Path) -> PathBuf {
    let place = directory.join("programs");
    fs::create_dir(&place).expect("our own directory");
    for (from, to) in
        [("bailiwick", "bailiwick"), ("sandbox-exec", "sandbox-exec"), ("fake-worker", "bailiwick-worker")]
    {
        let (from, to) = (Programs::get().path(from), place.join(to));
        // A hard link if possible, because copies of debug builds are large.
        if fs::hard_link(&from, &to).is_err() {
            copy_program(&from, &to);
        }
    }
    place.join("bailiwick")
}

/// Creates a subdirectory with the programs, in which `script` replaces `sandbox-exec`. Returns the path of
/// `bailiwick`.
pub fn with_sandbox_exec(directory: &Path, script: &str) -> PathBuf {
    let place = directory.join("programs");
    fs::create_dir(&place).expect("our own directory");
    for name in ["bailiwick", "bailiwick-worker"] {
        copy_program(&Programs::get().path(name), &place.join(name));
    }
    write_script(&place.join("sandbox-exec"), script);
    place.join("bailiwick")
}

/// Creates a worker that first runs a bash command in the background. That process is confined like the worker, and
/// belongs to no tool call.
pub fn worker_with_process(directory: &Path, command: &str) -> PathBuf {
    let (ours, script) = (directory.join("worker"), directory.join("bailiwick-worker"));
    copy_program(&Programs::get().path("bailiwick-worker"), &ours);
    let text = format!(
        "#!/bin/bash\n{{\n{command}\n}} </dev/null >/dev/null 2>&1 &\nexec {} \"$@\"\n",
        ours.display()
    );
    write_script(&script, &text);
    script
}
