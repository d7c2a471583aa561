//! A world: the directories of one test (home, state, project). No other test uses them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use ipc::confinement::Tier;
use model::replay::ReplayServer;
use nix::sys::signal::{SigHandler, Signal, signal};
use tempfile::TempDir;

use crate::process::{Finished, marked, wait_until};
use crate::programs::{Programs, User, write_script};
use crate::tier;

/// API key of every test's model. It must not appear in any output.
pub const KEY: &str = "sk-ant-canary-0123456789abcdef";

/// Parent directory of all worlds. It is not `/tmp`, which the full tier replaces: attacks there would only find
/// missing files.
pub const PLACE: &str = "/var/tmp";

#[derive(Debug)]
pub struct World {
    user: User,
    place: TempDir,
    tier: Option<Tier>,
}

impl World {
    pub fn new(user: User) -> Self {
        Self::below(user, Path::new(PLACE))
    }

    /// Creates an empty world in a subdirectory of `directory`. Every user must be able to enter `directory`.
    pub fn below(user: User, directory: &Path) -> Self {
        let place = tempfile::Builder::new().prefix("bailiwick-world-").tempdir_in(directory);
        let place = place.expect("a temp directory");
        let world = Self { user, place, tier: None };
        fs::set_permissions(world.root(), fs::Permissions::from_mode(0o755)).expect("our own directory");
        for name in ["home", "own", "project"] {
            fs::create_dir(world.root().join(name)).expect("our own directory");
            world.give(&world.root().join(name));
        }
        world
    }

    /// Makes runs of `exec` require this tier. By default, a run uses the best supported tier.
    #[must_use]
    pub fn in_tier(mut self, tier: Tier) -> Self {
        self.tier = Some(tier);
        self
    }

    /// Returns the flags of `exec` for the required tier.
    pub fn tier_flags(&self) -> &'static [&'static str] {
        self.tier.map_or(&[], tier::flags)
    }

    pub fn root(&self) -> &Path {
        self.place.path()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    pub fn own(&self) -> PathBuf {
        self.root().join("own")
    }

    pub fn user(&self) -> User {
        self.user
    }

    /// Creates a file in the project, with missing directories. Returns the file's path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(name);
        let parent = path.parent().expect("a file has a directory");
        fs::create_dir_all(parent).expect("our own directory");
        fs::write(&path, content).expect("our own file");
        for place in path.ancestors().take_while(|place| *place != self.project()) {
            self.give(place);
        }
        path
    }

    /// Writes an executable script in the project. Returns the script's path.
    pub fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, "");
        write_script(&path, text);
        path
    }

    /// Writes the person's settings file. Returns the file's path.
    pub fn configure(&self, text: &str) -> PathBuf {
        let place = self.own().join("config");
        fs::create_dir_all(&place).expect("our own directory");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).expect("our own directory");
        let file = place.join("config.toml");
        fs::write(&file, text).expect("our own file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("our own file");
        for path in [&place, &file] {
            self.give(path);
        }
        file
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Makes the project a git repository, and commits all files.
    pub fn commit(&self) {
        for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "base"]] {
            let mut git = self.command("git");
            git.args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
            let done = Finished::of(git.current_dir(self.project()));
            assert_eq!(done.code, 0, "git {arguments:?}: {}", done.stderr);
        }
    }

    /// Returns the command that runs a program as the world's user. The environment has only the world's variables.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.root());
        for name in ["PATH", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("HOME", self.home()).env("BAILIWICK_HOME", self.own()).env("LC_ALL", "C.UTF-8");
        // This variable is passed into the sandbox: see `mark`.
        command.env("CONDA_WORLD", self.root());
        if self.user == User::Plain {
            command.uid(self.user.uid()).gid(self.user.uid());
        }
        // The test process may ignore the signal, as under nohup(1), and Bailiwick would inherit that.
        let heed = || {
            // SAFETY: signal(2) is async-signal-safe, and the default action is no function.
            unsafe { signal(Signal::SIGHUP, SigHandler::SigDfl) }.map(drop).map_err(Into::into)
        };
        // SAFETY: the closure makes one system call that is async-signal-safe.
        unsafe { command.pre_exec(heed) };
        command
    }

    pub fn bailiwick<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command(Programs::get().path("bailiwick"));
        command.args(arguments);
        command
    }

    /// Returns `bailiwick sandbox` in the project, with this tier, flags and program.
    pub fn sandbox(&self, tier: Tier, flags: &[&str], program: impl AsRef<OsStr>) -> Command {
        let mut command = self.bailiwick(["sandbox", "-C"]);
        command.arg(self.project()).args(tier::flags(tier)).args(flags).arg("--").arg(program);
        command
    }

    /// Returns `bailiwick exec --output stream-json` in the project, with a task, a model server and more arguments.
    pub fn exec(&self, server: &ReplayServer, arguments: &[&str]) -> Command {
        let mut command =
            self.bailiwick(["exec", "--output", "stream-json", "--base-url", &server.base_url()]);
        command.arg("-C").arg(self.project()).args(self.tier_flags()).args(arguments).arg("do it");
        command.env("ANTHROPIC_API_KEY", KEY);
        command
    }

    /// Returns a text that is in the environment of all processes of this world, and of no other process.
    pub fn mark(&self) -> String {
        format!("CONDA_WORLD={}", self.root().display())
    }

    pub fn log(&self) -> Vec<serde_json::Value> {
        let sessions = fs::read_dir(self.own().join("state/sessions")).into_iter().flatten().flatten();
        let mut paths: Vec<_> = sessions.map(|entry| entry.path()).collect();
        // Their names sort by time.
        paths.sort_unstable();
        // A line that is being written may end in the middle of a character.
        let whole =
            |log: Vec<u8>| log[..log.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1)].to_vec();
        let text = |log| String::from_utf8(whole(log)).expect("a log is text");
        let texts = paths.into_iter().map(|path| text(fs::read(path).expect("a log can be read")));
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        texts.flat_map(|text| text.lines().map(parse).collect::<Vec<_>>()).collect()
    }

    /// Returns the private temp directories in use, by their lock files.
    pub fn temps(&self) -> Vec<PathBuf> {
        let locks = fs::read_dir(self.own().join("state/temps")).into_iter().flatten().flatten();
        let named = |lock: fs::DirEntry| {
            // The file may be removed meanwhile.
            let text = fs::read(lock.path()).ok()?;
            Some(OsStr::from_bytes(text.split(|byte| *byte == 0).next().unwrap_or_default()).into())
        };
        locks.filter_map(named).collect()
    }

    /// Returns the pid of the process that wrote its id in its own pid namespace into a file of the project. Of this
    /// world's processes, it is the one whose last `NSpid` is that id (`proc_pid_status(5)`).
    pub fn pid_in(&self, name: &str) -> u32 {
        let path = self.project().join(name);
        let mut pid = None;
        wait_until(&format!("{name} holds a pid"), || {
            let inside = fs::read_to_string(&path).unwrap_or_default();
            let is_it = |pid: &u32| {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
                numbers.and_then(|numbers| numbers.split_whitespace().last()) == Some(inside.trim())
            };
            let all = || marked(self.mark().as_bytes());
            pid = inside.ends_with('\n').then(|| all().into_iter().find(is_it)).flatten();
            pid.is_some()
        });
        pid.expect("it was waited for")
    }

    /// Makes the world's user the owner of a path.
    pub fn give(&self, path: &Path) {
        if self.user == User::Plain {
            chown(path, Some(self.user.uid()), Some(self.user.uid())).expect("root may give files away");
        }
    }
}

impl Drop for World {
    /// Makes the directory above the private temp directories listable, so that it can be removed.
    fn drop(&mut self) {
        let temps = self.own().join("cache/temps");
        let _ = fs::set_permissions(temps, fs::Permissions::from_mode(0o700));
    }
}

/// Returns the tool results in a request to the model, in order.
pub fn tool_results(server: &ReplayServer, request: usize) -> Vec<serde_json::Value> {
    let requests = server.requests();
    let request = requests.get(request).unwrap_or_else(|| panic!("only {} requests came", requests.len()));
    let body: serde_json::Value = serde_json::from_slice(&request.body).expect("a request is JSON");
    let last = body["messages"].as_array().and_then(|messages| messages.last().cloned()).expect("a message");
    let content = last["content"].as_array().cloned().unwrap_or_default();
    content.into_iter().filter(|block| block["type"] == "tool_result").collect()
}
