//! Tests of the tools in a real sandbox, as root and as a plain user.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says aloud what it skips"
)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ipc::confinement::Tier;
use ipc::denial::Operation;
use ipc::message::Work;
use ipc::path::WirePath;
use ipc::tool::{
    Access, CommandExit, CommandResult, SearchFiles, ShellExec, ToolCall, ToolError, ToolErrorKind,
    ToolOutput,
};
use nix::unistd::{Uid, geteuid};
use support::{Worker, attribute, edit_file, hello, set_attribute, write_file};
use tempfile::TempDir;

const PLAIN: u32 = 12_345;

const TIERS: [Tier; 2] = [Tier::Full, Tier::Floor];

struct Site {
    directory: TempDir,
    user: u32,
    tier: Tier,
}

impl Site {
    /// Returns a site for each user and tier that this machine can test; none without sandbox-exec.
    fn all() -> Vec<Self> {
        let users = if geteuid().is_root() { vec![0, PLAIN] } else { vec![Uid::effective().as_raw()] };
        if !sandbox_exec().exists() {
            eprintln!("skipped: {} is not built", sandbox_exec().display());
            return vec![];
        }
        let sites = users.into_iter().flat_map(|user| TIERS.map(|tier| Self::new(user, tier)));
        sites.filter(Self::can_be_tested).collect()
    }

    fn can_be_tested(&self) -> bool {
        let mut command = Command::new(self.path("sandbox-exec"));
        command.args(["--tier", self.flag(), "--", "true"]);
        let output = self.as_user(command).output().unwrap();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            eprintln!("skipped: no {} tier: {}", self.tier, said.lines().next().unwrap_or_default());
        }
        output.status.success()
    }

    fn new(user: u32, tier: Tier) -> Self {
        // Not below `/tmp`, which is the sandbox's own in the full tier.
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let site = Self { directory, user, tier };
        fs::set_permissions(site.path(""), Permissions::from_mode(0o755)).unwrap();
        for program in [sandbox_exec(), Path::new(env!("CARGO_BIN_EXE_bailiwick-worker")).into()] {
            // By another process: a fork of another thread would inherit the open copy, and it could not be executed.
            let copy = site.path(program.file_name().unwrap());
            assert!(Command::new("cp").arg(&program).arg(copy).status().unwrap().success());
        }
        for name in ["project", "temp", "outside"] {
            fs::create_dir(site.path(name)).unwrap();
            chown(site.path(name), Some(user), Some(user)).unwrap();
        }
        for name in ["project/file", "outside/file", "outside/secret", "outside/granted"] {
            site.write(name, "old\n");
        }
        site
    }

    fn flag(&self) -> &'static str {
        match self.tier {
            Tier::Full => "full",
            Tier::Floor | Tier::FloorUnmediated => "floor",
        }
    }

    /// Returns the error number with which a change outside the writable directories fails in this tier.
    fn read_only(&self) -> i32 {
        match self.tier {
            Tier::Full => nix::libc::EROFS,
            Tier::Floor | Tier::FloorUnmediated => nix::libc::EACCES,
        }
    }

    /// True if the operation on a hidden file meets the file without permissions that covers it in the full tier.
    fn is_masked(&self, operation: Operation) -> bool {
        self.tier == Tier::Full && operation == Operation::Read
    }

    /// Checks that the sandbox denied the access, and not plain permissions.
    fn assert_denied(
        &self,
        result: Result<impl std::fmt::Debug, ToolError>,
        operation: Operation,
        path: &Path,
    ) {
        let error = result.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Refused, "{error:?}");
        let access = error.access.unwrap();
        assert_eq!((access.operation, access.path.as_path()), (operation, path));
        let errno = if operation == Operation::Write { self.read_only() } else { nix::libc::EACCES };
        assert_eq!(
            (access.errno, access.permitted_by_mode),
            (errno, !self.is_masked(operation)),
            "{}",
            self.tier
        );
    }

    fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        chown(self.path(name), Some(self.user), Some(self.user)).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn hello(&self) -> ipc::message::Hello {
        let mut hello = hello(&self.path("project"));
        hello.tier = self.tier;
        hello.temp = Some(self.path("temp").into());
        hello.rights.hidden = vec![self.path("outside/secret").into()];
        hello.rights.write = ["project", "temp", "outside/granted"].map(|name| self.path(name).into()).into();
        hello.rights = hello.rights.normalised();
        hello
    }

    fn confined(&self) -> Worker {
        let hello = self.hello();
        let mut command = Command::new(self.path("sandbox-exec"));
        command
            .args(["--tier", self.flag(), "-C"])
            .arg(self.path("project"))
            .arg("--env")
            .arg(format!("TMPDIR={}", self.path("temp").display()));
        let flagged = |flag, paths: &[WirePath]| {
            paths
                .iter()
                .flat_map(|path| [flag, path.as_path().to_str().unwrap()].map(str::to_owned))
                .collect::<Vec<_>>()
        };
        command.args(flagged("--write", &hello.rights.write)).args(flagged("--hide", &hello.rights.hidden));
        command.arg("--").arg(self.path("bailiwick-worker")).args(["--generation", "1"]);
        Worker::start(self.as_user(command), hello)
    }

    fn unconfined(&self) -> Worker {
        let mut command = Command::new(self.path("bailiwick-worker"));
        command.args(["--generation", "1"]);
        Worker::start(self.as_user(command), self.hello())
    }

    fn as_user(&self, mut command: Command) -> Command {
        if geteuid().is_root() && self.user != 0 {
            command.uid(self.user).gid(self.user);
        }
        command
            .env("HOME", self.path("temp"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

fn sandbox_exec() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_bailiwick-worker")).with_file_name("sandbox-exec")
}

fn shell(worker: &mut Worker, access: Access, command: &str) -> CommandResult {
    let call = ShellExec { command: command.to_owned(), access, network: None, cwd: None, timeout_ms: None };
    match worker.run(ToolCall::ShellExec(call)).unwrap() {
        ToolOutput::Command(result) => result,
        other => panic!("{other:?}"),
    }
}

#[test]
fn writes_outside_the_write_roots_are_denied_and_inside_they_succeed() {
    for site in Site::all() {
        let mut worker = site.confined();
        worker.run(write_file("made/new", "new")).unwrap();
        worker.run(edit_file("file", &[("old", "new")])).unwrap();
        assert_eq!(
            (site.read("project/made/new"), site.read("project/file")),
            ("new".into(), "new\n".into())
        );
        let (file, new) = (site.path("outside/file"), site.path("outside/new"));
        site.assert_denied(worker.run(write_file(&file, "x")), Operation::Write, &file);
        site.assert_denied(
            worker.run(edit_file("../outside/file", &[("old", "x")])),
            Operation::Write,
            &file,
        );
        site.assert_denied(worker.run(write_file(&new, "x")), Operation::Write, &new);
        site.assert_denied(
            worker.run(write_file("../outside/d/new", "x")),
            Operation::Write,
            &site.path("outside/d/new"),
        );
        std::os::unix::fs::symlink(&file, site.path("project/link")).unwrap();
        site.assert_denied(worker.run(write_file("link", "x")), Operation::Write, &file);
        assert_eq!(site.read("outside/file"), "old\n");
        assert_eq!(fs::read_dir(site.path("outside")).unwrap().count(), 3, "nothing was left there");
        let mut worker = site.unconfined();
        worker.run(write_file(&file, "x")).unwrap();
        worker.run(write_file(&new, "x")).unwrap();
    }
}

#[test]
fn an_effect_is_prepared_without_the_right_and_committed_only_with_it() {
    for site in Site::all() {
        let file = site.path("outside/file");
        let mut worker = site.confined();
        let effect = worker.prepare(edit_file(&file, &[("old", "new")])).unwrap();
        site.assert_denied(worker.commit(&effect), Operation::Write, &file);
        assert_eq!(site.read("outside/file"), "old\n");
        site.unconfined().commit(&effect).unwrap();
        assert_eq!(site.read("outside/file"), "new\n");
    }
}

#[test]
fn a_file_that_is_granted_alone_is_overwritten_in_place() {
    for site in Site::all() {
        let granted = site.path("outside/granted");
        let before = granted.metadata().unwrap();
        let mut worker = site.confined();
        worker.run(edit_file(&granted, &[("old", "a longer text")])).unwrap();
        assert_eq!(site.read("outside/granted"), "a longer text\n");
        worker.run(write_file(&granted, "x")).unwrap();
        assert_eq!(site.read("outside/granted"), "x");
        let after = granted.metadata().unwrap();
        assert_eq!((after.ino(), after.mode()), (before.ino(), before.mode()));
    }
}

#[test]
fn a_file_that_a_new_one_would_not_be_like_keeps_its_inode_and_its_access() {
    for site in Site::all() {
        let path = site.path("project/file");
        let second = site.path("project/second");
        fs::hard_link(&path, &second).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let has_attribute = set_attribute(&path, "user.k", b"v");
        let mut worker = site.confined();
        worker.run(edit_file("file", &[("old", "new")])).unwrap();
        worker.run(write_file("second", "newer\n")).unwrap();
        assert_eq!(
            (site.read("project/file"), site.read("project/second")),
            ("newer\n".into(), "newer\n".into())
        );
        let (now, other) = (path.metadata().unwrap(), second.metadata().unwrap());
        assert_eq!((now.ino(), now.mode() & 0o7777, now.uid()), (other.ino(), 0o640, site.user));
        assert_eq!(attribute(&path, "user.k").is_some(), has_attribute);
    }
}

#[test]
fn hidden_files_are_unreadable_for_every_tool_and_command() {
    for site in Site::all() {
        let secret = site.path("outside/secret");
        let mut worker = site.confined();
        site.assert_denied(worker.read(&secret), Operation::Read, &secret);
        site.assert_denied(
            worker.read("../outside/secret"),
            Operation::Read,
            &site.path("project/../outside/secret"),
        );
        site.assert_denied(worker.run(edit_file(&secret, &[("old", "new")])), Operation::Read, &secret);
        assert_eq!(worker.read(site.path("outside/file")).unwrap().text, "old\n");
        let path = Some(site.path("outside").into());
        let call =
            ToolCall::SearchFiles(SearchFiles { pattern: "old".into(), path, glob: None, inside: false });
        let ToolOutput::Matches(matches) = worker.run(call).unwrap() else { panic!() };
        assert_eq!(matches.files, 2, "{matches:?}");
        for access in [Access::Standing, Access::Read] {
            let result = shell(&mut worker, access, &format!("cat {}", secret.display()));
            assert!(
                result.exit == CommandExit::Code(1) && result.head.contains("Permission denied"),
                "{result:?}"
            );
        }
        assert_eq!(site.unconfined().read(&secret).unwrap().text, "old\n");
    }
}

#[test]
fn plain_permissions_are_not_taken_for_the_ruleset() {
    for site in Site::all() {
        if site.user == 0 {
            eprintln!("skipped: the owner of the project is root, who may everything by mode");
            continue;
        }
        let mut worker = site.confined();
        fs::write(site.path("project/theirs"), "").unwrap();
        chown(site.path("project/theirs"), Some(0), Some(0)).unwrap();
        fs::set_permissions(site.path("project/theirs"), Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(site.path("project/file"), Permissions::from_mode(0o444)).unwrap();
        for (call, operation, in_tree) in [
            (support::read_file("theirs"), Operation::Read, false),
            (edit_file("file", &[("old", "new")]), Operation::Write, false),
            (write_file("/usr/new", "x"), Operation::Write, true),
        ] {
            let access = worker.run(call).unwrap_err().access.unwrap();
            assert_eq!((access.operation, access.permitted_by_mode), (operation, false));
            // Of a file in the read-only tree the mount speaks first.
            let expected = if in_tree { site.read_only() } else { nix::libc::EACCES };
            assert_eq!(access.errno, expected);
        }
    }
}

#[test]
fn commands_have_the_rights_of_their_worker_and_no_hold_on_it() {
    for site in Site::all() {
        let mut worker = site.confined();
        let result = shell(
            &mut worker,
            Access::Standing,
            "echo x > made; echo x > ../outside/file; echo $PPID; ls /proc/self/fd",
        );
        assert_eq!((site.read("project/made"), site.read("outside/file")), ("x\n".into(), "old\n".into()));
        let refusal = match site.tier {
            Tier::Full => "Read-only file system",
            Tier::Floor | Tier::FloorUnmediated => "Permission denied",
        };
        assert!(result.head.contains(&format!("../outside/file: {refusal}")), "{result:?}");
        assert!(
            result.head.ends_with("\n0\n1\n2\n3\n"),
            "no descriptor but the standard ones and ls's own: {result:?}"
        );
        let attack = "worker=$(sed -n 's/^PPid:\\s*//p' /proc/$PPID/status); grep -q bailiwick-work /proc/$worker/comm || exit 9; \
                      for name in mem environ fd/0 maps; do cat /proc/$worker/$name && echo got $name; done; \
                      kill -0 $worker && echo got kill; kill -0 $PPID && echo got reaper; exit 0";
        let result = shell(&mut worker, Access::Standing, attack);
        assert!(result.exit == CommandExit::Code(0) && !result.head.contains("got "), "{result:?}");
    }
}

#[test]
fn development_goes_on_inside() {
    for site in Site::all() {
        let mut worker = site.confined();
        let git = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; \
                   echo '*.log' > .gitignore && echo x > kept.log && git init -q && git add -f . && git commit -qm one && \
                   mktemp && python3 -c 'print(1)'";
        let result = shell(&mut worker, Access::Standing, git);
        assert_eq!(result.exit, CommandExit::Code(0), "{result:?}");
        let result = shell(&mut worker, Access::Read, "git status --short && git log --oneline | wc -l");
        assert_eq!((result.exit, result.head.trim()), (CommandExit::Code(0), "1"), "{result:?}");
        let (entries, notes) = worker.entries(Work::Snapshot { contents: true });
        let names: Vec<_> = entries.iter().map(|(entry, _)| entry.path.to_string()).collect();
        assert_eq!((names, notes), ([".gitignore", "file", "kept.log"].map(str::to_owned).into(), vec![]));
    }
}
