//! Tests changes of access to files that the host executes later, and to the directories above them: no other user
//! gains write access, and restored files keep their owner.

use std::os::unix::fs::{MetadataExt, chown};

use nix::unistd::geteuid;
use tests::repository::shell;
use tests::{Finished, PLAIN_USER, User, World, skip, tier};

/// Program that gives write access to a path: to everybody, or to one user by an access control list (`struct
/// posix_acl_xattr_entry`).
const OPEN: &str = "import os, struct, sys\n\
    how, path = sys.argv[1:]\n\
    entry = lambda tag, rights, id=0xffffffff: struct.pack('<HHI', tag, rights, id)\n\
    full = 7 if os.path.isdir(path) else 6\n\
    acl = struct.pack('<I', 2) + entry(1, full) + entry(2, full, 65533) + entry(4, 5) + entry(16, 7) + entry(32, 4)\n\
    if how == 'mode': os.chmod(path, os.stat(path).st_mode | 0o022)\n\
    if how == 'sticky': os.chmod(path, 0o777)\n\
    if how == 'list': os.setxattr(path, 'system.posix_acl_access', acl)\n\
    if how == 'default': os.setxattr(path, 'system.posix_acl_default', acl)\n";

/// Program that prints the mode, owner, group and access control lists of each path.
const SHOW: &str = "import os, sys\n\
    for path in sys.argv[1:]:\n\
    \x20   lists = [a for a in os.listxattr(path) if 'posix_acl' in a] if os.path.exists(path) else []\n\
    \x20   stat = os.stat(path)\n\
    \x20   print(path, oct(stat.st_mode), stat.st_uid, stat.st_gid, lists)\n";

const DIRECTORIES: &[&str] = &[
    ".",
    ".git",
    ".git/hooks",
    ".git/objects/info",
    ".vscode",
    ".vscode/deep",
    ".config",
    "sub",
    "sub/.git",
];
const FILES: &[&str] =
    &[".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json", ".envrc", "sub/.git/config"];

fn furnished(user: User) -> World {
    let world = World::new(user);
    world.file("open.py", OPEN);
    world.file("show.py", SHOW);
    let made = shell(
        &world,
        "umask 022; git init -q .; git init -q sub; mkdir -p .vscode/deep .config/mise .git/hooks; echo x > .envrc; \
         echo x > .vscode/tasks.json; echo x > .git/hooks/pre-commit; echo x > .config/mise/config.toml",
    );
    assert_eq!(made.code, 0, "{}", made.stderr);
    world
}

fn shown(world: &World) -> String {
    let all = [DIRECTORIES, FILES].concat().join(" ");
    shell(world, &format!("python3 show.py {all}")).stdout
}

/// Returns the commands that give write access to each path in each way of [`OPEN`].
fn opened() -> Vec<String> {
    let of = |hows: &[&str], paths: &[&str]| -> Vec<_> {
        let on =
            |how: &&str| paths.iter().map(|path| format!("python3 open.py {how} {path}")).collect::<Vec<_>>();
        hows.iter().flat_map(on).collect()
    };
    [of(&["mode", "list", "default"], DIRECTORIES), of(&["mode", "list"], FILES)].concat()
}

#[test]
fn nobody_comes_to_write_in_the_way_to_a_watched_place() {
    for user in User::all() {
        let control = furnished(user);
        let before = shown(&control);
        for act in opened() {
            assert_eq!(shell(&control, &act).code, 0, "{act}");
        }
        let lines = shown(&control);
        assert!(lines.lines().zip(before.lines()).all(|(now, then)| now != then), "{lines}");
        for tier in tier::all() {
            let world = furnished(user);
            let before = shown(&world);
            let all = opened().join("; ");
            let done = Finished::of(world.sandbox(tier, &[], "bash").args(["-c", &format!("{all}; true")]));
            assert_eq!(shown(&world), before, "{user:?}, {tier}: {}", done.stderr);
            assert!(done.stderr.contains("changed and restored: . (writable by others)"), "{}", done.stderr);
        }
    }
}

#[test]
fn what_is_new_is_no_wider_than_what_is_around_it() {
    const MAKE: &str = "umask 0; rm -rf .git/hooks; mkdir .git/hooks; git init -q sub/new; git remote add o x; \
        mkdir -p sub/new/.git/hooks";
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        shell(&world, "umask 022; git init -q .; rm -rf .git/hooks; mkdir sub");
        Finished::of(world.sandbox(tier, &[], "bash").args(["-c", MAKE]));
        let find = "find .git -maxdepth 1 -name hooks -perm /022; find sub/new/.git -path '*/objects' -prune -o -perm /022 \
            \\( -name config -o -name hooks -o -name .git \\) -print";
        let open = shell(&world, find);
        assert_eq!(open.stdout, "", "{user:?}, {tier}");
        assert!(world.project().join("sub/new/.git/config").exists(), "{user:?}, {tier}");
    }
}

/// Tests a person whose umask lets the group write, and whose repository is shared. There is nothing to report.
#[test]
fn what_was_open_before_may_be_open_later() {
    for (user, tier) in tier::everywhere() {
        let world = World::new(user);
        let make =
            "umask 002; chmod 775 .; git init -q .; git commit -q --allow-empty -m one; echo x > .envrc";
        shell(&world, make);
        let work = "umask 002; export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@e; \
            git checkout -q -b a/b; git commit -q --allow-empty -m two; git init -q sub; git remote add o ../x; chmod 700 .git; true";
        let done = Finished::of(world.sandbox(tier, &[], "bash").args(["-c", work]));
        assert!(!done.stderr.contains("writable by others"), "{user:?}, {tier}: {}", done.stderr);
    }
}

#[test]
fn what_root_puts_back_in_another_users_project_belongs_to_that_user() {
    if !geteuid().is_root() {
        skip!("only root works in another user's project");
    }
    for tier in tier::all() {
        let world = World::new(User::Myself);
        shell(
            &world,
            "git init -q .; mkdir -p .vscode .git/hooks; echo x > .envrc; echo x > .vscode/tasks.json",
        );
        shell(&world, "echo x > .git/hooks/pre-commit");
        let given = shell(&world, &format!("chown -R {PLAIN_USER}:{PLAIN_USER} ."));
        assert_eq!(given.code, 0, "{}", given.stderr);
        let act = "echo evil > .envrc; rm -rf .vscode; rm -rf .git/hooks; git config core.pager evil; \
            git remote add o https://example.org/x; true";
        let done = Finished::of(world.sandbox(tier, &[], "bash").args(["-c", act]));
        for name in
            [".envrc", ".vscode", ".vscode/tasks.json", ".git/hooks", ".git/hooks/pre-commit", ".git/config"]
        {
            let meta = world.project().join(name).symlink_metadata();
            let meta = meta.unwrap_or_else(|error| panic!("{tier}: {name}: {error}: {}", done.stderr));
            assert_eq!((meta.uid(), meta.gid()), (PLAIN_USER, PLAIN_USER), "{tier}: {name}: {}", done.stderr);
        }
        // Gives the project back to root, so that the test can remove it.
        chown(world.project(), Some(0), Some(0)).unwrap();
    }
}
