//! Tests projects that try to delay, mislead or crash the programs that read them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;
use tests::replies::model;
use tests::tier::{self, everywhere};
use tests::world::{KEY, tool_results};
use tests::{Finished, User, World, alive, wait_until};

type Trap = fn(&World);

fn fifo(world: &World, name: &str) {
    let path = world.project().join(name);
    let _ = fs::remove_file(&path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
}

fn link(world: &World, name: &str, target: impl AsRef<Path>) {
    let path = world.project().join(name);
    let _ = fs::remove_file(&path);
    symlink(target, path).unwrap();
}

fn large(world: &World, name: &str) {
    let file = fs::File::create(world.project().join(name)).unwrap();
    // A sparse file, which has its full size for readers.
    file.set_len(3 << 30).unwrap();
}

/// Traps, each set up in a repository with one committed file.
const TRAPS: &[(&str, Trap)] = &[
    ("the instructions are a fifo", |world| fifo(world, "AGENTS.md")),
    ("the instructions are endless", |world| link(world, "AGENTS.md", "/dev/zero")),
    ("the instructions are huge", |world| large(world, "AGENTS.md")),
    ("the instructions are the key file", |world| {
        let key = world.own().join("config/anthropic.key");
        fs::create_dir_all(key.parent().unwrap()).unwrap();
        fs::write(&key, KEY).unwrap();
        link(world, "AGENTS.md", key);
    }),
    ("the index is a fifo", |world| fifo(world, ".git/index")),
    ("the index is endless", |world| link(world, ".git/index", "/dev/zero")),
    ("the index is cut", |world| {
        let path = world.project().join(".git/index");
        let bytes = fs::read(&path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("the index says that it has four thousand million entries", |world| {
        fs::write(world.project().join(".git/index"), b"DIRC\0\0\0\x02\xff\xff\xff\xff").unwrap();
    }),
    ("the configuration is a fifo", |world| fifo(world, ".git/config")),
    ("the repository is a link to itself", |world| {
        fs::rename(world.project().join(".git"), world.project().join("g")).unwrap();
        link(world, ".git", ".git");
    }),
    ("directories link in a circle", |world| link(world, "circle", ".")),
    ("a directory leads out", |world| link(world, "out", "/")),
    ("names command a terminal", |world| {
        fs::write(world.project().join("\u{1b}]0;title\u{7}\n--x"), "x").unwrap();
    }),
    ("directories are deep", |world| {
        let mut path = world.project();
        // The whole path is longer than PATH_MAX, although each name in it is short.
        for _ in 0..40 {
            path = path.join("d".repeat(90));
        }
        fs::create_dir_all(path).unwrap();
    }),
    ("a file cannot be read", |world| {
        let path = world.project().join("closed");
        fs::write(&path, "x").unwrap();
        let closed = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o000);
        fs::set_permissions(path, closed).unwrap();
    }),
];

/// Traps that hide which paths git ignores, so that no correct patch is possible. A run with `--patch` fails and says
/// so.
const REFUSED: &[(&str, Trap)] = &[
    ("the ignore file is a fifo", |world| fifo(world, ".gitignore")),
    ("the ignore file is endless", |world| link(world, ".gitignore", "/dev/zero")),
    ("the other ignore file is a fifo", |world| fifo(world, ".ignore")),
    ("the exclude file is a fifo", |world| fifo(world, ".git/info/exclude")),
    ("the repository lies where a fifo says", |world| {
        fs::rename(world.project().join(".git"), world.project().join("g")).unwrap();
        fifo(world, ".git");
    }),
    ("an ignore file deep down is a fifo", |world| fifo(world, "a/b/c/.gitignore")),
];

#[test]
fn what_cannot_be_read_to_its_end_is_refused_in_time() {
    for tier in tier::all() {
        for (name, trap) in REFUSED {
            let world = World::new(User::Myself).in_tier(tier);
            world.file("kept.txt", "kept\n");
            world.commit();
            trap(&world);
            let patch = world.own().join("out.diff");
            let began = Instant::now();
            let server = model(&[("search_files", json!({"pattern": "kept"}))]);
            let done = Finished::of(&mut world.exec(&server, &["--patch", patch.to_str().unwrap()]));
            assert_eq!(done.code, 1, "{name}: {}\n{}", done.stdout, done.stderr);
            let said = format!("{}{}", done.stdout, done.stderr);
            assert!(said.contains("is not a regular file of at most 1 MiB"), "{name}: {said}");
            // A run without `--patch` reports the trap to the model and continues.
            let server = model(&[
                ("search_files", json!({"pattern": "kept"})),
                ("list_directory", json!({"path": "."})),
                ("read_file", json!({"path": "kept.txt"})),
            ]);
            let done = Finished::of(&mut world.exec(&server, &[]));
            assert_eq!(done.code, 0, "{name}: {}\n{}", done.stdout, done.stderr);
            let found = tool_results(&server, 1)[0].to_string();
            assert!(found.contains("is not a regular file of at most 1 MiB"), "{name}: {found}");
            assert!(began.elapsed() < Duration::from_mins(1), "{name}: {:?}", began.elapsed());
        }
    }
}

#[test]
fn no_trap_in_a_project_holds_or_breaks_a_run() {
    for tier in tier::all() {
        for (name, trap) in TRAPS {
            let world = World::new(User::Myself).in_tier(tier);
            world.file("kept.txt", "kept\n");
            world.commit();
            trap(&world);
            let server = model(&[
                ("list_directory", json!({"path": ".", "depth": 3})),
                ("search_files", json!({"pattern": "kept"})),
                ("read_file", json!({"path": "AGENTS.md"})),
                ("edit_file", json!({"path": "kept.txt", "old_string": "kept", "new_string": "changed"})),
            ]);
            let patch = world.own().join("out.diff");
            let began = Instant::now();
            let arguments = ["--mode", "auto", "--timeout", "100", "--patch", patch.to_str().unwrap()];
            let done = Finished::of(&mut world.exec(&server, &arguments));
            let took = began.elapsed();
            assert_eq!(done.code, 0, "{name}: {}\n{}", done.stdout, done.stderr);
            assert!(took < Duration::from_mins(1), "{name}: {took:?}\n{}", done.stdout);
            assert_eq!(done.events_of("worker_started").len(), 1, "{name}: {}", done.stdout);
            let found = tool_results(&server, 2)[0].to_string();
            assert!(found.contains("kept.txt"), "{name}: {found}");
            let text = fs::read_to_string(&patch).unwrap_or_default();
            assert!(text.contains("+changed"), "{name}: {text}\n{}", done.stdout);
            assert!(!done.stdout.contains(KEY), "{name}");
            let requests = server.requests();
            let told: usize = requests.iter().map(|request| request.body.len()).sum();
            assert!(told < 4 << 20, "{name}: {told} bytes for the model");
            assert!(
                requests.iter().all(|request| !String::from_utf8_lossy(&request.body).contains(KEY)),
                "{name}"
            );
        }
    }
}

/// Tests a fifo with a hidden name. The start tries to read hidden files to check that it cannot, and must not block.
#[test]
fn a_fifo_where_a_secret_was_holds_no_start() {
    for (user, tier) in everywhere() {
        let world = World::new(user).in_tier(tier);
        mkfifo(&world.project().join(".env"), Mode::S_IRWXU).unwrap();
        world.give(&world.project().join(".env"));
        let mut sandbox = world.sandbox(tier, &["--hide", ".env"], "echo");
        sandbox.arg("started");
        let child = sandbox.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        wait_until("the start is over", || !alive(pid));
        let done = Finished::from(child.wait_with_output().unwrap());
        assert_eq!((done.code, done.stdout.as_str()), (0, "started\n"), "{}", done.stderr);
    }
}
