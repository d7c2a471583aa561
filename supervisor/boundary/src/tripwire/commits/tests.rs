//! Tests with real repositories. Some of them contain objects that an agent has forged.

#[cfg(test)]
use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::Pid;
use tempfile::TempDir;

use super::*;
use crate::system;
use crate::tripwire::access::PlaceAccess;
use crate::tripwire::git::GitQuestion;
use crate::tripwire::persons_git::PersonsGit;
use crate::tripwire::state::FileKind;

#[derive(Debug)]
struct PlainGit;

impl ConfinedGit for PlainGit {
    fn start(&self, directory: &Path, command: &[&OsStr]) -> io::Result<GitQuestion> {
        let mut child = Command::new(command[0])
            .args(&command[1..])
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let ends = [child.stdin.take().unwrap().into(), OwnedFd::from(child.stdout.take().unwrap())];
        let process = system::open_process(Pid::from_raw(child.id().cast_signed()))?;
        let status = fs::File::open("/dev/null")?.into();
        Ok(GitQuestion::new(ends, [process, status], Duration::from_secs(20)))
    }
}

struct Repository(TempDir);

impl Repository {
    /// Creates a repository, and runs shell commands that make commits in it.
    fn new(format: &str, commands: &str) -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        repository.sh(&format!("git init -q -b main --object-format={format} . && {commands}"));
        repository
    }

    fn sh(&self, commands: &str) {
        let identity = ["AUTHOR", "COMMITTER"]
            .into_iter()
            .flat_map(|who| [(format!("GIT_{who}_NAME"), "t"), (format!("GIT_{who}_EMAIL"), "t@e")]);
        let mut shell = Command::new("bash");
        shell
            .args(["-ec", commands])
            .current_dir(self.0.path())
            .envs(identity)
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(shell.status().unwrap().success(), "{commands}");
    }

    fn git(&self) -> PersonsGit {
        PersonsGit::ask(Arc::new(PlainGit), self.0.path()).unwrap()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a place that is there, beside ones that are not")]
fn file(text: &str, mode: u32) -> Option<WatchedPlace> {
    let access = PlaceAccess { mode, ..PlaceAccess::default() };
    let body = FileBody::File(text.as_bytes().into());
    Some(WatchedPlace { kind: FileKind::Whole, body, access })
}

#[expect(clippy::unnecessary_wraps, reason = "as above")]
fn link(target: &str) -> Option<WatchedPlace> {
    let body = FileBody::Link(target.into());
    Some(WatchedPlace { kind: FileKind::Whole, body, access: PlaceAccess::default() })
}

fn is_held(
    repository: &Repository,
    git: &PersonsGit,
    path: &str,
    (before, now): (&Option<WatchedPlace>, &Option<WatchedPlace>),
) -> bool {
    let path = Path::new(path);
    let change = PlaceChanged { path, before: before.as_ref(), now: now.as_ref() };
    !git.hold(repository.0.path(), &[change]).is_empty()
}

/// Commands that make a person's commits: on two branches, one of them packed, in a tag and a stash, and an older
/// commit.
const PERSONS: &str = "mkdir -p .husky; echo zero > .envrc; git add -A; git commit -qm 0; \
    echo one > .envrc; echo hook > .husky/pre-commit; chmod +x .husky/pre-commit; ln -s .envrc .pryrc; git add -A; git commit -qm 1; \
    git checkout -qb other; echo two > .envrc; git rm -q .husky/pre-commit .pryrc; git add -A; git commit -qm 2; git gc -q; \
    git checkout -q --detach; echo tagged > .envrc; git commit -qam 3; git tag -am x t; \
    git checkout -q main; echo first > .envrc; git stash -q; echo second > .envrc; git stash -q";

#[test]
fn what_a_commit_of_the_persons_has_is_held_and_nothing_else() {
    for format in ["sha1", "sha256"] {
        let repository = Repository::new(format, PERSONS);
        let git = repository.git();
        let one = file("one\n", 0o644);
        let hook = file("hook\n", 0o755);
        let removed = (&hook, &None);
        assert!(!is_held(&repository, &git, ".husky/pre-commit", removed), "git has it still");
        repository.sh("git rm -q --cached .husky/pre-commit .envrc");
        for (path, before, now, expected) in [
            (".envrc", &one, file("two\n", 0o644), true),
            (".envrc", &one, file("zero\n", 0o644), true),
            (".envrc", &one, file("tagged\n", 0o644), true),
            (".envrc", &one, file("first\n", 0o644), true),
            (".envrc", &one, file("second\n", 0o644), true),
            (".envrc", &one, file("evil\n", 0o644), false),
            (".envrc", &one, file("hook\n", 0o644), false),
            (".envrc", &one, file("two\n", 0o755), false),
            (".envrc", &one, link("two\n"), false),
            (".husky/pre-commit", &hook, None, true),
            (".husky/pre-commit", &file("mine\n", 0o755), None, false),
            (".husky/pre-commit", &None, hook.clone(), true),
            (".husky/pre-commit", &None, file("hook\n", 0o644), true),
            (".husky/pre-push", &None, hook.clone(), false),
            (".envrc/x", &None, hook.clone(), false),
            (".pryrc", &None, link(".envrc"), true),
            (".pryrc", &None, link("evil"), false),
            // Every commit contains the file.
            (".envrc", &one, None, false),
        ] {
            let found = is_held(&repository, &git, path, (before, &now));
            assert_eq!(found, expected, "{format}: {path}: {before:?} to {now:?}");
            assert_eq!(is_held(&repository, &git, path, (before, &now)), expected, "asked again");
        }
    }
}

/// Commands that forge objects, each with a command that shows that git itself accepts the forgery.
const FORGED: &[(&str, &str)] = &[
    ("a branch", "git checkout -qb new; echo evil > .envrc; git commit -qam x"),
    ("a branch moved", "git checkout -q other; echo evil > .envrc; git commit -qam x"),
    (
        "a replacement",
        "old=$(git rev-parse other); git checkout -q other; echo evil > .envrc; git commit -qam x; git replace $old HEAD",
    ),
    (
        "another content of a tree",
        "old=$(git rev-parse main^{tree}); echo evil > .envrc; git add -A; new=$(git write-tree); \
         f=.git/objects/${old:0:2}/${old:2}; chmod u+w $f; cp .git/objects/${new:0:2}/${new:2} $f",
    ),
    (
        "another content of a commit",
        "old=$(git rev-parse main); echo evil > .envrc; git commit -qam x; new=$(git rev-parse HEAD); \
         f=.git/objects/${old:0:2}/${old:2}; chmod u+w $f; cp .git/objects/${new:0:2}/${new:2} $f; \
         test \"$(git log -1 --format=%s $old)\" = x",
    ),
    (
        "another content of a blob",
        "old=$(git rev-parse main:.envrc); echo evil > .envrc; new=$(git hash-object -w .envrc); \
         f=.git/objects/${old:0:2}/${old:2}; chmod u+w $f; cp .git/objects/${new:0:2}/${new:2} $f; \
         test \"$(git cat-file -p $old)\" = evil",
    ),
];

#[test]
fn nothing_that_was_forged_since_is_held() {
    for (name, commands) in FORGED {
        let setup = "echo one > .envrc; git add -A; git commit -qm 1; git checkout -qb other; echo two > .envrc; \
            git commit -qam 2; git checkout -q main";
        let repository = Repository::new("sha1", setup);
        let git = repository.git();
        repository.sh(commands);
        let (one, evil) = (file("one\n", 0o644), file("evil\n", 0o644));
        assert!(!is_held(&repository, &git, ".envrc", (&one, &evil)), "{name}");
    }
}

#[test]
fn a_store_that_is_gone_holds_nothing_and_holds_nobody_up() {
    let repository = Repository::new("sha1", PERSONS);
    let git = repository.git();
    let (one, two) = (file("one\n", 0o644), file("two\n", 0o644));
    for commands in [
        "find .git/objects -type f | while read f; do chmod u+w $f; echo x > $f; done",
        "find .git/objects -type f -delete",
        "rm -rf .git",
    ] {
        repository.sh(commands);
        assert!(!is_held(&repository, &git, ".envrc", (&one, &two)), "{commands}");
    }
}

#[test]
fn a_git_that_lies_is_not_believed() {
    #[derive(Debug)]
    struct Liar(&'static str);
    impl ConfinedGit for Liar {
        fn start(&self, directory: &Path, _: &[&OsStr]) -> io::Result<GitQuestion> {
            PlainGit.start(directory, &["bash", "-c", self.0].map(OsStr::new))
        }
    }
    let repository = Repository::new("sha1", PERSONS);
    let named = vec![ObjectId::from_hex(b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391").unwrap()];
    for lie in [
        "while read id; do echo $id commit 4; echo evil; done",
        "while read id; do echo $id blob 99999999999999999999; done",
        "while read id; do echo $id blob 18446744073709551615; done",
        "read id; echo $id blob 100000; echo short",
        "head -c 100000 /dev/zero",
        "exit 1",
    ] {
        let git: Arc<dyn ConfinedGit> = Arc::new(Liar(lie));
        let commits = PersonsCommits::new(repository.0.path().to_owned(), named.clone());
        let (before, now) = (file("one\n", 0o644), file("evil\n", 0o644));
        let change = PlaceChanged { path: Path::new(".envrc"), before: before.as_ref(), now: now.as_ref() };
        assert_eq!(commits.hold(&git, &[change]), [] as [&Path; 0], "{lie}");
    }
}

#[test]
fn what_git_has_in_its_index_was_there_at_the_start() {
    let repository = Repository::new("sha1", PERSONS);
    let git = repository.git();
    fs::write(repository.0.path().join(".pdbrc"), "x").unwrap();
    fs::set_permissions(repository.0.path().join(".pdbrc"), Permissions::from_mode(0o644)).unwrap();
    let places = [".envrc", ".husky", ".pdbrc"].map(PathBuf::from);
    let places: Vec<_> = places.iter().collect();
    let tracked = [".envrc", ".husky/pre-commit"].map(PathBuf::from).into();
    assert_eq!(git.tracked(repository.0.path(), &places), &tracked);
    repository.sh("git add -A");
    assert_eq!(git.tracked(repository.0.path(), &places), &tracked);
}
