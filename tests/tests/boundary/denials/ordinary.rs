//! Tests that failures with other causes than the sandbox are never reported as denials.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use ipc::confinement::Tier;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use serde_json::json;
use tests::tier::everywhere;
use tests::{User, World};

use crate::denials::told::{Told, command, tell};

/// Users for whom a command fails without a sandbox as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Anybody,
    /// Users other than root, because root's capabilities would let the command succeed.
    Plain,
}

use Whose::{Anybody, Plain};

/// Failing commands, each with a part of its message. `{o}` stands for a directory outside of the project.
const FAILURES: &[(Whose, &str, &str)] = &[
    (Anybody, "cat closed", "Permission denied"),
    (Anybody, "echo x > closed", "Permission denied"),
    (Anybody, "python3 -c \"open('closed')\"", "PermissionError"),
    (Anybody, "./plain-text", "Permission denied"),
    (Anybody, "cat closed-directory/x", "Permission denied"),
    (Anybody, "cat missing", "No such file"),
    (Anybody, "cat /etc/no-such-file", "No such file"),
    (Anybody, "python3 -c \"open('/etc/no-such-file')\"", "FileNotFoundError"),
    (Anybody, "cd missing && ls", "No such file"),
    (Anybody, "./no-interpreter", "cannot execute"),
    (Anybody, "no-such-program", "not found"),
    (Anybody, "false", ""),
    (Anybody, "exit 7", ""),
    (Anybody, "echo x > /dev/full", "No space left"),
    (Anybody, "head -c 999999 /dev/zero > small/x", "No space left"),
    (Anybody, "ln plain-text small/y", "ross-device"),
    (Anybody, "mkdir -p d/e; rmdir d", "not empty"),
    (Anybody, "mkdir -p d/e; echo x > d", "Is a directory"),
    (Anybody, "cat plain-text/x", "Not a directory"),
    (Anybody, "ln -s a plain-text", "File exists"),
    (Anybody, "touch $(printf 'n%.0s' {1..300})", "too long"),
    (Anybody, "echo x >> {o}/theirs/file", "Permission denied"),
    (Anybody, "rm -f {o}/theirs/file", "cannot remove"),
    (Anybody, "touch {o}/read-only/new", "Read-only file system"),
    (Anybody, "python3 -c \"open('{o}/read-only/new', 'w')\"", "Read-only file system"),
    (Anybody, "ulimit -f 0; head -c 99999 /dev/zero > big", ""),
    (Anybody, "ulimit -n 4; cat plain-text plain-text < plain-text | cat", "Too many open files"),
    (Anybody, "kill -9 $$", ""),
    (Anybody, "kill -SEGV $$", ""),
    (Anybody, "python3 -c 'import socket as s; s.socket(45, s.SOCK_STREAM)'", "rror"),
    (Anybody, "python3 -c 'import socket as s; s.socket(s.AF_INET, s.SOCK_STREAM, 200)'", "rror"),
    (Anybody, "prlimit --nofile --pid 99999999", "prlimit"),
    (
        Anybody,
        "python3 -c 'import socket as s; a = s.create_server((\"127.0.0.1\", 0)); \
        s.socket().bind(a.getsockname())'",
        "Address already in use",
    ),
    (Anybody, "exec 3<>/dev/tcp/127.0.0.1/1", "refused"),
    (
        Anybody,
        "python3 -c 'import socket as s; a = s.create_server((\"127.0.0.1\", 0)); n = a.getsockname(); a.close(); \
        s.socket().connect(n)'",
        "refused",
    ),
    (
        Anybody,
        "python3 -c 'import socket as s; s.socket(s.AF_UNIX).connect(\"missing.sock\")'",
        "No such file",
    ),
    (
        Anybody,
        "python3 -c 'import socket as s; s.socket(s.AF_UNIX).connect(\"{o}/missing.sock\")'",
        "No such file",
    ),
    (
        Anybody,
        "python3 -c 'import socket as s; a = s.socket(s.AF_UNIX); a.bind(\"stale\"); a.close(); \
        s.socket(s.AF_UNIX).connect(\"stale\")'",
        "refused",
    ),
    (
        Anybody,
        "python3 -c 'import socket as s; s.socket(s.AF_UNIX).connect(\"\\0bailiwick-no-such-name\")'",
        "refused",
    ),
    (Anybody, "python3 -c 'import socket as s; s.socket(s.AF_UNIX).connect(\"/etc/hosts\")'", "Error"),
    (Anybody, "python3 -c 'import socket as s; s.socket().bind((\"192.0.2.1\", 0))'", "assign requested"),
    (Anybody, "python3 -c 'import socket as s; s.socket().bind((\"127.0.0.1\", 99999))'", "0-65535"),
    (Anybody, "sleep 0 & p=$!; wait $p; kill $p", "No such process"),
    (Anybody, "kill -9 99999999", ""),
    (Anybody, "ipcrm -m 99999999", ""),
    (Anybody, "chmod 600 missing", "No such file"),
    (Anybody, "chmod 600 {o}/missing", "No such file"),
    (Anybody, "touch -d yesterday {o}/read-only", "setting times"),
    (Anybody, "tar xf missing.tar", "Cannot open"),
    (Anybody, "make", "No "),
    (Anybody, "cd $TMPDIR && git status", "not a git repository"),
    (Anybody, "if \"Permission denied: /etc/x\"", "syntax error"),
    (Anybody, "echo Permission denied; false", "Permission denied"),
    (Anybody, "grep -rn denied log.txt docs; false", "denied"),
    (Anybody, "grep -H denied log.txt; false", "denied"),
    (Anybody, "echo 'test refuses_permission_denied_of_/etc/x ... FAILED'; exit 101", "FAILED"),
    (Anybody, "echo \"E   assert 'Permission denied: /etc/x' == ''\"; exit 1", "assert"),
    (Anybody, "echo \"expected \\\"open /etc/x: permission denied\\\", got nil\"; exit 1", "expected"),
    (Anybody, "echo 'git@example.org: Permission denied (publickey).'; exit 128", "publickey"),
    (Anybody, "echo 'ERROR:  permission denied for table users'; exit 1", "permission denied"),
    (Plain, "touch /etc/x", ""),
    (Plain, "rm /etc/hosts", ""),
    (Plain, "chmod 600 /etc/hosts", ""),
    (Plain, "touch -d yesterday /etc/hosts", ""),
    (Plain, "chmod 600 {o}/theirs/file", "changing permissions"),
    (Plain, "chown 1 {o}/mine", "changing ownership"),
    (Plain, "python3 -c 'import os; os.utime(\"{o}/theirs/file\", (1, 1))'", "Error"),
    (Plain, "python3 -c 'import socket as s; s.socket(s.AF_UNIX).connect(\"{o}/theirs/socket\")'", "Error"),
    (Plain, "mkdir /srv/new", ""),
    (Plain, "cat /etc/shadow", ""),
    (Plain, "chown 1 plain-text", "changing ownership"),
    (Plain, "mount -t tmpfs none d", ""),
    (Plain, "unshare --net true", "unshare failed"),
    (Plain, "unshare --mount --uts true", "unshare failed"),
    (Plain, "python3 -c 'import socket as s; s.socket(s.AF_PACKET, s.SOCK_RAW)'", "PermissionError"),
    (Plain, "python3 -c 'import socket as s; s.socket(s.AF_INET, s.SOCK_RAW, 1)'", "PermissionError"),
    (Plain, "prlimit --nofile --pid 1", "prlimit"),
    (
        Plain,
        "python3 -c 'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); \
        c.process_vm_readv(1, 0, 0, 0, 0, 0) and exit(os.strerror(ctypes.get_errno()))'",
        "not permitted",
    ),
    (
        Plain,
        "python3 -c 'import ctypes, os; c = ctypes.CDLL(None, use_errno=True); \
        c.ptrace(16, 1, 0, 0) and exit(os.strerror(ctypes.get_errno()))'",
        "not permitted",
    ),
];

/// Commands that fail even with the network on.
const OF_THE_NETWORK: &[(Whose, &str, &str)] = &[
    (Anybody, "python3 -c 'import socket; socket.getaddrinfo(\"no-such.invalid\", 1)'", "gaierror"),
    (Anybody, "echo \"curl: (6) Could not resolve host: example.org\"; exit 6", "resolve"),
    (
        Anybody,
        "echo \"curl: (7) Failed to connect to example.org port 80: Connection refused\"; exit 7",
        "refused",
    ),
    (Anybody, "echo 'connect: Network is unreachable'; exit 1", "unreachable"),
    // An address for documentation (RFC 3849): there is no route, or no answer.
    (
        Anybody,
        "python3 -c 'import socket as s; a = s.socket(s.AF_INET6); a.settimeout(1); a.connect((\"2001:db8::1\", 9))'",
        "rror",
    ),
    (Anybody, "exec 3<>/dev/tcp/127.0.0.1/1", "connect"),
    (
        Anybody,
        "python3 -c 'import socket as s; a = s.create_server((\"127.0.0.1\", 0)); n = a.getsockname(); a.close(); \
        s.socket().connect(n)'",
        "Error",
    ),
    (Anybody, "echo 'Error: connect ETIMEDOUT 192.0.2.1:443'; exit 1", "ETIMEDOUT"),
];

fn furnish(world: &World) {
    world.file("plain-text", "text\n");
    world.file("no-interpreter", "#!/no/such/interpreter\n");
    world.file("closed", "closed\n");
    world.file("closed-directory/x", "x\n");
    let complaint = "touch: cannot touch '/etc/x': Permission denied\n";
    world.file("log.txt", complaint);
    world.file("docs/log.txt", complaint);
    for (name, mode) in [("closed", 0), ("closed-directory", 0), ("no-interpreter", 0o755)] {
        fs::set_permissions(world.project().join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let outside = world.root().join("outside");
    for name in ["", "theirs", "read-only"] {
        fs::create_dir(outside.join(name)).unwrap();
    }
    fs::write(outside.join("theirs/file"), "theirs\n").unwrap();
    fs::write(outside.join("mine"), "mine\n").unwrap();
    world.give(&outside.join("mine"));
    // Nobody listens on this socket. A command without write access is denied before it finds that out.
    drop(UnixListener::bind(outside.join("theirs/socket")).unwrap());
    world.give(&outside);
    world.give(&outside.join("read-only"));
    for name in ["theirs", "theirs/file", "theirs/socket"] {
        chown(outside.join(name), Some(1), Some(1)).unwrap();
    }
    world.file("small/keep", "");
}

/// Mounts a full file system in the project, and a read-only one outside, visible only to this thread and its child
/// processes.
fn mount_apart(world: &World) {
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let none: Option<&Path> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    let small = world.project().join("small");
    let options = format!("size=64k,uid={},mode=755", world.user().uid());
    mount(Some("tmpfs"), &small, Some("tmpfs"), MsFlags::empty(), Some(options.as_str())).unwrap();
    let read_only = world.root().join("outside/read-only");
    mount(Some(&read_only), &read_only, none, MsFlags::MS_BIND, none).unwrap();
    let again = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(none, &read_only, none, again, none).unwrap();
}

fn check(user: User, tier: Tier, rows: &[(Whose, &str, &str)], flags: &[&str]) -> Vec<String> {
    let world = World::new(user);
    furnish(&world);
    mount_apart(&world);
    let outside = world.root().join("outside").display().to_string();
    let is_plain = user.uid() != 0;
    let rows: Vec<_> = rows.iter().filter(|(whose, ..)| is_plain || *whose == Anybody).collect();
    let asked: Vec<_> = rows.iter().map(|(_, line, _)| command(&line.replace("{o}", &outside))).collect();
    let told = tell(&world, tier, flags, &asked);
    let wrong = |((_, line, says), told): (&&(Whose, &str, &str), &Told)| {
        let failed = told.failed && told.content.contains(says);
        let claimed = !told.denials.is_empty() || told.content.contains("blocked by");
        (claimed || !failed).then(|| format!("{user:?}, {tier} tier: {line}: {told:?}"))
    };
    rows.iter().zip(&told).filter_map(wrong).collect()
}

/// Runs the checks on separate threads with mounts of their own.
fn check_apart(rows: &'static [(Whose, &str, &str)], flags: &'static [&str]) {
    if !geteuid().is_root() {
        tests::skip!("only root can give files away and mount");
    }
    let all: Vec<_> = everywhere()
        .into_iter()
        .flat_map(|(user, tier)| thread::spawn(move || check(user, tier, rows, flags)).join().unwrap())
        .collect();
    assert!(all.is_empty(), "{} rows\n{}", all.len(), all.join("\n"));
}

#[test]
fn there_are_enough_of_them() {
    assert!(FAILURES.len() + OF_THE_NETWORK.len() > 50);
}

#[test]
fn no_ordinary_failure_is_called_a_denial() {
    check_apart(FAILURES, &["--mode", "auto"]);
}

#[test]
fn with_the_network_on_nobody_claims_that_it_is_off() {
    check_apart(OF_THE_NETWORK, &["--mode", "auto", "--net", "on"]);
}

/// Tests commands that only print a message about a denied operation. If the kernel refuses that operation with the
/// same error, the message counts as true; otherwise no denial is reported.
#[test]
fn a_liar_is_believed_as_far_as_the_kernel_bears_him_out() {
    for (user, tier) in everywhere() {
        let world = World::new(user);
        let outside = world.root().join("outside");
        fs::create_dir(&outside).unwrap();
        world.give(&outside);
        let lie = |path: &Path, error: &str| {
            command(&format!("echo \"liar: cannot write '{}': {error}\"; exit 1", path.display()))
        };
        let refused = outside.join("x");
        let lies = [
            lie(&refused, "Permission denied"),
            lie(&refused, "Read-only file system"),
            lie(&refused, "Operation not permitted"),
            lie(&world.project().join("x"), "Permission denied"),
        ];
        let told = tell(&world, tier, &["--mode", "auto"], &lies);
        let grades: Vec<_> =
            told.iter().map(|told| told.denials.first().map(|denied| denied["grade"].clone())).collect();
        let (proved, likely) = (Some(json!("proved")), Some(json!("likely")));
        let expected = match tier {
            Tier::Full => [likely.clone(), proved, likely, None],
            // Landlock never denies a write with this error.
            Tier::Floor | Tier::FloorUnmediated => [proved, None, likely, None],
        };
        assert_eq!(grades, expected, "{user:?} {tier}: {told:?}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing is left of the look");
    }
}
