//! What has to go on inside with the network off: what works unconfined on this machine works confined, with the same output.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use ipc::confinement::Tier;
use serde_json::json;
use tests::world::{model, tool_results};
use tests::{Finished, Programs, User, World};

const GIT: &str = "git init -q . && git config user.name t && git config user.email t@example.org && echo x > f \
                   && git add f && git commit -qm one";

/// Each prints something that does not depend on where it runs.
const ACTS: &[(&str, &str)] = &[
    ("git init, add, commit", "GIT && git log --format=%s"),
    (
        "git branch, switch, merge",
        "GIT && git switch -qc b && echo y > g && git add g && git commit -qm two && git switch -q - && git merge -q b && git log --format=%s",
    ),
    ("git stash", "GIT && echo y > f && git stash -q && cat f && git stash pop -q && cat f"),
    ("git worktree", "GIT && git worktree add -q w && ls w && git worktree remove w && ls"),
    (
        "git clone of a local repository",
        "mkdir a && cd a && GIT && cd .. && git clone -q a b && cd b && git log --format=%s",
    ),
    (
        "git clone into the temp directory",
        "GIT && git clone -q . ${TMPDIR:-/tmp}/c$$ && ls ${TMPDIR:-/tmp}/c$$ && rm -r ${TMPDIR:-/tmp}/c$$",
    ),
    (
        "git gc, tag, rebase",
        "GIT && git tag v1 && echo y > g && git add g && git commit -qm two && git rebase -q v1 && git gc -q && git log --format=%s",
    ),
    (
        "git branch -m, remote, submodule by path",
        "GIT && git branch -m trunk && git remote add o ../x && git remote -v && git branch",
    ),
    ("cc", "printf '#include <stdio.h>\\nint main(){puts(\"hi\");}' > a.c && cc a.c -o a && ./a"),
    (
        "cc with threads",
        "printf '#include <pthread.h>\\n#include <stdio.h>\\nvoid*f(void*x){puts(\"hi\");return x;}int main(){pthread_t t;pthread_create(&t,0,f,0);pthread_join(t,0);}' > a.c && cc a.c -pthread -o a && ./a",
    ),
    (
        "cc with the address and leak sanitizers",
        "printf '#include <stdio.h>\\nint main(){puts(\"hi\");}' > a.c && cc -fsanitize=address a.c -o a && ./a",
    ),
    ("make -j", "printf 'all: a b c\\n%%: \\n\\techo $@ > $@\\n' > Makefile && make -sj4 && cat a b c"),
    (
        "cargo build and test",
        "cargo init -q --vcs none --name x --lib . && cargo test -q --offline 2>&1 | grep -c 'test result: ok'",
    ),
    (
        "python3 venv",
        "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'",
    ),
    (
        "python3 subprocess and threads",
        "python3 -c 'import subprocess, threading; t = threading.Thread(target=lambda: print(subprocess.check_output([\"echo\", \"hi\"]))); t.start(); t.join()'",
    ),
    (
        "python3 asyncio subprocess",
        "python3 -c 'import asyncio\nasync def m():\n p = await asyncio.create_subprocess_exec(\"echo\", \"hi\", stdout=-1)\n print(await p.communicate())\nasyncio.run(m())'",
    ),
    (
        "python3 multiprocessing with pipes",
        "python3 -c 'import multiprocessing as m\nc = m.get_context(\"fork\")\na, b = c.Pipe()\np = c.Process(target=b.send, args=(7,)); p.start(); print(a.recv()); p.join()'",
    ),
    (
        "python3 mmap of a file",
        "python3 -c 'import mmap; f = open(\"m\", \"w+b\"); f.truncate(9999); m = mmap.mmap(f.fileno(), 0); m[0:2] = b\"ok\"; m.flush(); print(open(\"m\").read(2))'",
    ),
    (
        "python3 socketpair and selectors",
        "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'",
    ),
    (
        "node script",
        "node -e 'require(\"fs\").writeFileSync(\"x\", \"1\"); console.log(require(\"child_process\").execSync(\"cat x\").toString())'",
    ),
    (
        "node worker threads",
        "node -e 'const w = require(\"worker_threads\"); new w.Worker(\"require(`worker_threads`).parentPort.postMessage(7)\", {eval: true}).on(\"message\", console.log)'",
    ),
    (
        "sqlite in WAL mode",
        "sqlite3 t.db 'pragma journal_mode=wal; create table t(a); insert into t values (7); select * from t;'",
    ),
    ("flock", "flock f -c 'echo locked'"),
    (
        "inotify",
        "echo a > f; (until [ -e seen ]; do echo b >> f; sleep 0.05; done) & timeout 9 tail -n +1 -f f | head -2; touch seen; wait",
    ),
    ("pipes, heredoc, process substitution", "cat <(echo a) - <<< b | sort | tr '\\n' ' '"),
    (
        "job control and signals",
        "sleep 99 & kill %1; wait $!; echo $?; timeout 0.1 sleep 9; echo $?; (trap 'echo got' USR1; kill -USR1 $BASHPID)",
    ),
    ("mktemp", "f=$(mktemp) && d=$(mktemp -d) && echo x > $f && touch $d/y && cat $f && rm -r $f $d"),
    (
        "harmless devices",
        "head -c4 /dev/zero | wc -c; head -c4 /dev/urandom | wc -c; echo x > /dev/null; head -c4 /dev/random | wc -c",
    ),
    (
        "standard streams by path",
        "echo a > /dev/stdout; echo b | cat /dev/stdin; echo c | cat /dev/fd/0; echo d > /dev/stderr",
    ),
    ("gdb on its own child", "gdb -q -batch -ex run -ex bt --args echo hi 2>/dev/null | grep -c hi"),
    ("strace on its own child", "strace -o s echo hi && grep -c execve s"),
    (
        "locale, time zones and user lookup",
        "LC_ALL=C.UTF-8 awk 'BEGIN{print length(\"é\")}'; TZ=Europe/Zurich date -d @0 +%H; getent passwd 0 | cut -d: -f1; getent services 80/tcp | cut -d' ' -f1",
    ),
    (
        "sparse and large files",
        "truncate -s 5G big && stat -c %s big && dd if=/dev/zero of=big bs=1 seek=6G count=1 conv=notrunc status=none && stat -c %s big",
    ),
    (
        "modes, links and times of own files",
        "touch a && chmod 750 a && ln a b && ln -s a c && touch -d @7 c && stat -Lc '%a %h %Y' c && mv a d && cp -a d e && stat -c %Y e",
    ),
    (
        "moves between the project and the temp directory",
        "mkdir -p ${TMPDIR:-/tmp}/m$$ && echo x > a && mv a ${TMPDIR:-/tmp}/m$$/ && mv ${TMPDIR:-/tmp}/m$$ here && cat here/a",
    ),
    ("fifos", "mkfifo p && (echo x > p &) && cat p"),
    ("archives", "mkdir d && echo x > d/y && tar czf t.tgz d && rm -r d && tar xzf t.tgz && cat d/y"),
    ("names that are not UTF-8", "touch $'caf\\xe9 \\n x' && ls | od -c | head -1 && rm caf*"),
    ("limits", "ulimit -n 64 && ulimit -n && nice -n 5 nice"),
    (
        "a confined program in a confined program",
        "SANDBOX_EXEC --allow-degraded -C . -- cat /etc/hostname > /dev/null && echo nested",
    ),
    (
        "reading the system",
        "test -r /etc/os-release && head -c0 /proc/self/status && ls / | grep -c etc && cat /proc/sys/kernel/ostype && test -r /usr/bin/env && echo ok",
    ),
    (
        "extended attributes of own files",
        "touch f && python3 -c 'import os; os.setxattr(\"f\", \"user.x\", b\"1\"); print(os.getxattr(\"f\", \"user.x\"))'",
    ),
    (
        "perl and awk",
        "perl -e 'print join(q(,), map { $_ * 2 } 1..3), qq(\\n)'; awk 'BEGIN{\"echo hi\" | getline x; print x}'",
    ),
];

/// What this tier breaks with the network off: each works unconfined, fails confined, and is on `SECURITY.md`'s list.
pub(crate) const BROKEN: &[(&str, &str)] = &[
    (
        "a TCP server on loopback",
        "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); print(1)'",
    ),
    (
        "a unix socket inside the project",
        "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); print(1)'",
    ),
    ("a lock of Python's multiprocessing", "python3 -c 'import multiprocessing as m; m.Lock(); print(1)'"),
    (
        "shared memory of Python's multiprocessing",
        "python3 -c 'from multiprocessing import shared_memory as s; x = s.SharedMemory(create=True, size=9); x.close(); x.unlink(); print(1)'",
    ),
    ("a terminal of its own", "python3 -c 'import pty; pty.openpty(); print(1)'"),
    ("a hard-coded /tmp", "f=/tmp/bailiwick-hard-coded-$$; echo 1 > $f && cat $f && rm $f"),
    (
        "System V semaphores",
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); i = c.semget(0, 1, 0o1600); assert i >= 0; c.semctl(i, 0, 0); print(1)'",
    ),
];

/// The toolchain's own programs before those of `PATH`, which may be rustup's and look for a home.
fn with_toolchain(world: &World, command: &mut Command) {
    let cargo = std::env::var_os("CARGO").map(std::path::PathBuf::from);
    let toolchain = cargo.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(toolchain.into_iter().chain(std::env::split_paths(&path))).unwrap();
    command.env("PATH", path).current_dir(world.project());
}

fn script(text: &str) -> String {
    let sandbox_exec = Programs::get().path("sandbox-exec");
    text.replace("GIT", GIT).replace("SANDBOX_EXEC", sandbox_exec.to_str().unwrap())
}

fn unconfined(user: User, text: &str) -> Finished {
    let world = World::new(user);
    let mut bash = world.command("bash");
    with_toolchain(&world, bash.arg("-c").arg(script(text)));
    Finished::of(&mut bash)
}

fn confined(user: User, text: &str) -> Finished {
    let world = World::new(user);
    let mut command = world.sandbox(Tier::FloorUnmediated, &[], "bash");
    command.args(["-c", &script(text)]);
    with_toolchain(&world, &mut command);
    Finished::of(&mut command)
}

#[test]
fn development_goes_on() {
    let mut failures = vec![];
    for user in User::all() {
        for (name, text) in ACTS {
            let control = unconfined(user, text);
            if control.code != 0 || control.stdout.trim().is_empty() {
                let why = control.stderr.lines().next().unwrap_or_default().to_owned();
                eprintln!("skipped: not on this machine: {name} as {user:?}: {why}");
                continue;
            }
            let done = confined(user, text);
            if (done.code, &done.stdout) != (control.code, &control.stdout) {
                failures.push(format!("{user:?}: {name}: {done:?}, unconfined {:?}", control.stdout));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn what_this_tier_breaks_is_exactly_this() {
    for user in User::all() {
        for (name, text) in BROKEN {
            if unconfined(user, text).stdout != "1\n" {
                eprintln!("skipped: not on this machine: {name} as {user:?}");
                continue;
            }
            let done = confined(user, text);
            assert_ne!(done.code, 0, "{name} works by now: {done:?}");
        }
    }
}

#[test]
fn a_project_lies_anywhere_under_any_name() {
    for user in User::all() {
        for name in
            [b"with spaces".as_slice(), b"caf\xe9-not-utf-8", "ünï-漢".as_bytes(), b"-dash", b"linked"]
        {
            let world = World::new(user);
            let mut place = world.root().join(OsStr::from_bytes(name));
            std::fs::create_dir(&place).unwrap();
            world.give(&place);
            if name == b"linked" {
                symlink(&place, world.root().join("link")).unwrap();
                place = world.root().join("link");
            }
            let act = "echo x > f && git init -q . && git add f && git status --porcelain";
            let mut sandbox = world.bailiwick(["sandbox", "-C"]);
            let done = Finished::of(sandbox.arg(&place).args(["--", "bash", "-c", act]));
            assert_eq!((done.code, done.stdout.as_str()), (0, "A  f\n"), "{place:?} {}", done.stderr);
            let server = model(&[
                ("write_file", json!({"path": "g", "content": "y"})),
                ("shell_exec", json!({"command": "cat f g; touch $'\\xff'; ls"})),
            ]);
            let patch = world.own().join("out.diff");
            let mut exec =
                world.bailiwick(["exec", "--mode", "auto", "--base-url", &server.base_url(), "-C"]);
            exec.arg(&place).arg("--patch").arg(&patch).arg("do it").env("ANTHROPIC_API_KEY", "k");
            let done = Finished::of(&mut exec);
            assert_eq!(done.code, 0, "{place:?} {}{}", done.stdout, done.stderr);
            let said = tool_results(&server, 2)[0]["content"].to_string();
            assert!(said.contains("x\\ny"), "{said}");
            let patch = std::fs::read_to_string(patch).unwrap();
            assert!(patch.contains("b/g") && patch.contains("\\377"), "{patch}");
        }
    }
}
