//! Tests of the advice on failures that more access would not prevent.

use std::ffi::OsString;
use std::sync::Arc;

use ipc::confinement::Tier;
use ipc::tool::CommandExit;

use super::super::{Machine, StandingRights, denied};
use super::auto;
use super::likely::ended;

fn of(root: bool, tier: Tier) -> StandingRights {
    let names = ["DATABASE_URL", "PGHOST", "NPM_TOKEN", "AWS_SECRET_ACCESS_KEY"].map(OsString::from);
    let machine = Arc::new(Machine::new(b"", vec![], root).with_variables(names));
    StandingRights { machine, ..auto().seen_in(tier) }
}

fn advised(standing: &StandingRights, (command, output): (&str, &str), word: &str) -> bool {
    let advice = denied::advice(standing, command, &ended(CommandExit::Code(1), output));
    assert!(advice.iter().all(|said| said.starts_with('(') && said.ends_with(')')), "{advice:?}");
    assert_eq!(denied::advice(standing, command, &ended(CommandExit::Code(0), output)), Vec::<String>::new());
    advice.iter().any(|said| said.contains(word))
}

const OWNERS: [(&str, &str); 12] = [
    ("tar xf a.tar", "tar: p/f: Cannot change ownership to uid 1234, gid 1234: Operation not permitted"),
    ("make install", "install: cannot change ownership of 'x': Operation not permitted"),
    ("chown 1234 x", "chown: changing ownership of 'x': Operation not permitted"),
    ("rsync -a a b", "rsync: [receiver] chown \"/p/b/.f.Yxz\" failed: Operation not permitted (1)"),
    ("npm ci", "npm ERR! Error: EPERM: operation not permitted, lchown '/p/x'"),
    ("cp -a a b", "cp: failed to preserve ownership for 'b': Operation not permitted"),
    ("python3 -c 'os.lchown(\"x\", 1, 1)'", "PermissionError: [Errno 1] Operation not permitted: 'x'"),
    (
        "rpm -i x.rpm",
        "error: unpacking of archive failed on file /p/x: cpio: chown failed - Operation not permitted",
    ),
    ("dpkg --root=r -i x.deb", " error setting ownership of './usr': Operation not permitted"),
    ("bsdtar xf a.tar", "f: Can't set user=1234/group=1234 for f: Operation not permitted"),
    ("rsync -a a b", "rsync: [generator] chgrp \"/p/b\" failed: Operation not permitted (1)"),
    ("unsquashfs i", "create_inode: could not change ownership of f, because Operation not permitted"),
];

const OTHERS: [(&str, &str); 13] = [
    ("runuser -u me id", "runuser: cannot set groups: Operation not permitted"),
    ("setpriv --reuid 9 id", "setpriv: keep process capabilities failed: Operation not permitted"),
    ("su me -c id", "su: System error"),
    ("./start", "nginx: [emerg] setgid(33) failed (1: Operation not permitted)"),
    ("initdb -D d", "initdb: error: cannot be run as root"),
    ("postgres", "\"root\" execution of the PostgreSQL server is not permitted."),
    ("gosu me id", "error: failed switching to \"me\": operation not permitted"),
    ("su-exec me id", "su-exec: setgroups(1000): Operation not permitted"),
    ("sudo -u me id", "sudo: unable to change to root gid: Operation not permitted"),
    ("service x start", "start-stop-daemon: Unable to set gid to 33 (Operation not permitted)"),
    ("mysqld", "Fatal error: Please read the manual to find out how to run mysqld as root!"),
    ("bin/elasticsearch", "java.lang.RuntimeException: can not run elasticsearch as root"),
    ("makepkg", "==> ERROR: Running makepkg as root is not allowed"),
];

#[test]
fn root_is_told_that_owners_and_users_stay() {
    for tier in [Tier::Full, Tier::Floor] {
        for (what, word) in
            OWNERS.iter().map(|what| (what, "owner")).chain(OTHERS.iter().map(|what| (what, "another user")))
        {
            assert!(advised(&of(true, tier), *what, word), "{what:?}");
            assert!(!advised(&of(false, tier), *what, word), "a plain user's own failure: {what:?}");
        }
    }
}

#[test]
fn programs_that_cannot_be_seen_into_are_told_of_the_other_tier() {
    for line in [
        "unix_listener: cannot bind to path /t/agent.1: Operation not permitted",
        "gpg-agent[7]: error binding socket to '/t/S.gpg-agent': Operation not permitted",
        "gpg: can't connect to the gpg-agent: IPC connect call failed",
        "gnome-keyring-daemon: couldn't bind to control socket: Operation not permitted",
        "gpg: can't connect to the keyboxd: IPC connect call failed",
        "gpg: can't connect to the dirmngr: IPC connect call failed",
        "gpg-agent: socket 'S.gpg-agent.extra': Operation not permitted",
    ] {
        assert!(advised(&of(false, Tier::Floor), ("x", line), "--tier full"), "{line}");
        assert!(!advised(&of(false, Tier::Full), ("x", line), "--tier full"), "{line}");
    }
}

#[test]
fn a_temp_directory_that_java_takes_is_told_where_it_cannot_be_written() {
    for line in [
        "Exception in thread \"main\" java.nio.file.AccessDeniedException: /tmp/x1y",
        "java.io.IOException: Permission denied: /tmp/hs/err",
        "  at java.base/java.nio.file.TempFileHelper.create(TempFileHelper.java:136)",
        "java.io.FileNotFoundException: /tmp/snappy.so (Permission denied)",
        "The specified java.io.tmpdir /tmp either does not exist or is not accessible",
        "Caused by: java.nio.file.AccessDeniedException: /tmp/kotlin-daemon.log",
    ] {
        assert!(advised(&of(false, Tier::Floor), ("java T", line), "-Djava.io.tmpdir"), "{line}");
        assert!(!advised(&of(false, Tier::Full), ("java T", line), "-Djava.io.tmpdir"), "{line}");
    }
}

#[test]
fn a_browser_is_told_what_it_wants() {
    for line in [
        "[1:1:ERROR] Failed to create a unique user data directory, DevTools remote debugging requires one",
        "[0100/1] Cannot create default profile directory",
        "FATAL:zygote_host_impl_linux.cc(127)] No usable sandbox! Update your kernel",
        "Failed to move to new namespace: PID namespaces supported, but failed: errno = Operation not permitted",
        "Running as root without --no-sandbox is not supported",
        "The SUID sandbox helper binary was found, but is not configured correctly",
        "chrome: Creating shared memory in /dev/shm/.org.chromium.x failed: No such file or directory (2)",
        "Your Firefox profile cannot be loaded. It may be missing or inaccessible.",
    ] {
        assert!(advised(&of(false, Tier::Full), ("node shot.js", line), "--user-data-dir"), "{line}");
    }
}

#[test]
fn a_variable_that_is_left_out_is_named() {
    let line_of =
        |line: &str| denied::advice(&of(false, Tier::Full), "make test", &ended(CommandExit::Code(1), line));
    for line in [
        "bash: line 1: DATABASE_URL: unbound variable",
        "KeyError: 'DATABASE_URL'",
        "Error: environment variable DATABASE_URL is not set",
        "panicked: DATABASE_URL must be set: NotPresent",
        "django.core.exceptions.ImproperlyConfigured: DATABASE_URL is required",
        "(KeyError) could not fetch environment variable \"DATABASE_URL\"",
    ] {
        assert!(line_of(line).iter().any(|said| said.contains("--env DATABASE_URL")), "{line}");
    }
    for line in [
        "bash: NPM_TOKEN: unbound variable",
        "KeyError: 'AWS_SECRET_ACCESS_KEY'",
        "bash: OTHER: unbound variable",
        "connected to DATABASE_URL",
        "KeyError: 'database_url'",
    ] {
        assert!(line_of(line).is_empty(), "{line}");
    }
}

#[test]
fn ordinary_failures_get_no_advice() {
    for (command, line) in [
        ("make", "make: *** [all] Error 1"),
        ("cat x", "cat: x: Permission denied"),
        ("kill 1", "kill: (1) - Operation not permitted"),
        ("npm ci", "npm ERR! EPERM: operation not permitted, rename 'a'"),
        ("pytest", "AssertionError: undefined is not a function"),
    ] {
        for tier in [Tier::Full, Tier::Floor] {
            let said = denied::advice(&of(true, tier), command, &ended(CommandExit::Code(1), line));
            assert!(said.is_empty(), "{command}: {said:?}");
        }
    }
}

#[test]
fn an_ssh_agent_takes_a_word_of_the_user() {
    let said = ("ssh-add -l", "Could not open a connection to your authentication agent.");
    for tier in [Tier::Full, Tier::Floor] {
        assert!(advised(&of(false, tier), said, ":allow socket PATH"));
        let fixed = StandingRights { is_fixed: true, ..of(false, tier) };
        assert!(!advised(&fixed, said, ":allow socket PATH"), "a sub-agent has its parent's");
    }
}
