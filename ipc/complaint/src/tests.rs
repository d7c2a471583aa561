use ipc::named::process_of;

use super::*;

fn complaint(text: &str) -> Option<ErrorLine<'_>> {
    ErrorLine::new(Line { text, in_memory: false })
}

fn paths(line: &str) -> Vec<&str> {
    complaint(line).map(|complaint| complaint.paths()).unwrap_or_default()
}

/// Lines of output, each with the first path that the line names.
const NAMED: &[(&str, &str)] = &[
    ("touch: cannot touch '/etc/x': Permission denied", "/etc/x"),
    ("touch: cannot touch ‘/etc/a b’: Read-only file system", "/etc/a b"),
    ("rm: cannot remove \"/etc/x\": Operation not permitted", "/etc/x"),
    ("bash: line 1: /etc/x: Permission denied", "/etc/x"),
    ("bash: line 1: ../x: Permission denied", "../x"),
    ("sh: 1: cannot create /etc/x: Read-only file system", "/etc/x"),
    ("dash: 1: cannot create ../x: Permission denied", "../x"),
    ("PermissionError: [Errno 13] Permission denied: '/etc/x'", "/etc/x"),
    ("OSError: [Errno 30] Read-only file system: '/etc/it's'", "/etc/it"),
    ("PermissionError: [Errno 1] Operation not permitted: '/etc/x'", "/etc/x"),
    ("Error: EACCES: permission denied, open '/etc/x'", "/etc/x"),
    ("  [Error: EROFS: read-only file system, mkdir '/etc/x'] {", "/etc/x"),
    ("npm error Error: EACCES: permission denied, mkdir '/usr/lib/node_modules'", "/usr/lib/node_modules"),
    ("open /home/me/.cache/go-build/x: permission denied", "/home/me/.cache/go-build/x"),
    ("mkdir /srv/a: read-only file system", "/srv/a"),
    ("java.io.FileNotFoundException: /etc/x (Permission denied)", "/etc/x"),
    ("java.io.FileNotFoundException: /etc/x (Read-only file system)", "/etc/x"),
    ("Exception in thread \"main\" java.nio.file.AccessDeniedException: /etc/x", "/etc/x"),
    ("/usr/bin/ld: cannot open output file /usr/x: Permission denied", "/usr/x"),
    ("= note: /usr/bin/ld: cannot open output file ../x: Read-only file system", "../x"),
    (
        "error: failed to create directory `/home/me/.cargo/git`: Permission denied (os error 13)",
        "/home/me/.cargo/git",
    ),
    ("Permission denied @ rb_sysopen - /etc/x (Errno::EACCES)", "/etc/x"),
    ("fatal: could not create work tree dir '/srv/r': Permission denied", "/srv/r"),
    ("error: could not lock config file /home/me/.gitconfig: Permission denied", "/home/me/.gitconfig"),
    ("curl: (23) Failure writing output to destination, cannot open '/etc/x': Permission denied", "/etc/x"),
    ("make: /opt/tool: Permission denied", "/opt/tool"),
    ("mv: cannot move '.git' to '.g2': Device or resource busy", ".git"),
    ("ln: failed to create hard link 'a' => '/etc/x': Invalid cross-device link", "a"),
];

#[test]
fn programs_name_the_path_in_their_own_ways() {
    for (line, expected) in NAMED {
        assert!(paths(line).contains(expected), "{line}: {:?}", paths(line));
    }
}

#[test]
fn dash_does_not_quote_a_path_with_blanks() {
    let table: [(&str, &[&str]); 6] = [
        ("sh: 1: cannot create /srv/a b/x: Permission denied", &["/srv/a b/x"]),
        ("sh: 1: cannot create /srv/a /b: Permission denied", &["/srv/a /b"]),
        ("/bin/dash: 12: cannot open a b: Permission denied", &["a b"]),
        ("sh: 1: cannot create /srv/a: b: Read-only file system", &["/srv/a: b"]),
        ("bash: line 1: cannot create temp file for here-document: Permission denied", &[]),
        ("tool: 1: cannot create the file /srv/x: Permission denied", &["/srv/x"]),
    ];
    for (line, expected) in table {
        assert_eq!(paths(line), expected, "{line}");
    }
}

#[test]
fn what_a_shell_connects_to_is_no_path() {
    assert!(paths("bash: line 1: /dev/tcp/127.0.0.1/1: Permission denied").is_empty());
    assert!(paths("bash: line 1: /dev/tcpdump: Permission denied").contains(&"/dev/tcpdump"));
}

#[test]
fn what_quotes_a_complaint_is_none() {
    let table = [
        "docs/log.txt:3:touch: cannot touch '/etc/x': Permission denied",
        "log.txt:touch: cannot touch '/etc/x': Permission denied",
        "test shows_permission_denied_of_/etc/x ... FAILED",
        "test 'permission denied: /etc/x' ... ok",
        "bash: -c: line 1: syntax error near unexpected token `Permission denied: /etc/x'",
        "  assert \"Permission denied: '/etc/x'\" in output",
        "assertion `left == right` failed: '/etc/x': Permission denied",
        "expected \"cannot open /etc/x: Permission denied\", got nothing",
        "git@example.org: Permission denied (publickey).",
        "touch: cannot touch '/etc/x': No such file or directory",
    ];
    for line in table {
        assert!(complaint(line).is_none(), "{line}");
    }
}

#[test]
fn shared_memory_is_named_where_it_lies() {
    for line in [
        "PermissionError: [Errno 13] Permission denied: '/psm_f1e2'",
        "shm_open: Permission denied",
        "tool: sem_open(/lock) failed: Permission denied",
        "FATAL:  could not open shared memory segment \"/PostgreSQL.1\": Permission denied",
    ] {
        assert_eq!(paths(line), ["/dev/shm"], "{line}");
    }
    for line in [
        "tool: '/psm': Permission denied",
        "rm: cannot remove '/psm_x': Operation not permitted",
        "shm_open: x",
    ] {
        assert!(!paths(line).contains(&"/dev/shm"), "{line}");
    }
}

#[test]
fn a_trace_tells_that_its_error_is_of_shared_memory() {
    let trace = |module: &str, error: &str| {
        format!(
            "  File \"/x/{module}.py\", line 9, in f\n    f(\n     ^^\n{error}\nls: cannot open '/y': Permission denied\n"
        )
    };
    let bare = "PermissionError: [Errno 13] Permission denied";
    let named = "PermissionError: [Errno 13] Permission denied: '/seg'";
    let [lock, segment, other] = [
        trace("multiprocessing/synchronize", bare),
        trace("multiprocessing/shared_memory", named),
        trace("multiprocessing/pool", named),
    ];
    assert_eq!(named_in([&lock, ""]), ["/dev/shm", "/y"]);
    assert_eq!(named_in([&segment, ""]), ["/dev/shm", "/y"]);
    assert_eq!(named_in([&other, ""]), ["/seg", "/y"]);
}

#[test]
fn names_come_once_and_not_without_end() {
    let complaint = |n| format!("touch: cannot touch '/etc/{n}': Permission denied\n");
    let many = (0..100).map(complaint).collect::<Vec<_>>().concat();
    let twice = "rm: cannot remove '/a': Permission denied\nrm: cannot remove '/a': Permission denied\n";
    assert_eq!(named_in([twice, ""]), ["/a"]);
    assert_eq!(named_in([&many, twice]).len(), 32);
}

#[test]
fn a_process_is_told_by_who_signals() {
    let process = |line: &str| complaint(line).and_then(|complaint| complaint.process());
    for line in [
        "kill: 12: Operation not permitted",
        "/usr/bin/kill: 12: Operation not permitted",
        "bash: line 1: kill: (12) - Operation not permitted",
        "pkill: (12) - Operation not permitted",
    ] {
        assert_eq!(process(line), Some(12), "{line}");
    }
    for other in [
        "touch: 12: Operation not permitted",
        "kill: x: Operation not permitted",
        "kill: (12) - No such process",
    ] {
        assert_eq!(process(other), None, "{other}");
    }
    let said = "kill: 12: Operation not permitted\nkill: 12: Operation not permitted\n";
    assert_eq!(processes_in([said, ""]), ["/proc/12"]);
    assert_eq!(process_of(Path::new("/proc/12/fd/3")), Some(12));
    assert_eq!(process_of(Path::new("/proc/self/fd")), None);
}
