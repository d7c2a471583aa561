//! Everyday actions of a developer. The output of each is the same in every directory.

pub(super) const GIT: &str = "git init -q . && git config user.name t && git config user.email t@example.org && echo x > f \
                   && git add f && git commit -qm one";

/// Names and scripts of the actions. The output of each is the same with and without a sandbox.
pub(super) const ACTS: &[(&str, &str)] = &[
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
    (
        "npm scripts",
        "printf '{\"name\":\"x\",\"version\":\"1.0.0\",\"scripts\":{\"hi\":\"echo from a script\"}}' > package.json && npm run --silent hi",
    ),
    (
        "java",
        "printf 'class A{public static void main(String[] a)throws Exception{var t=new Thread(()->System.out.println(7));t.start();t.join();}}' > A.java && java A.java",
    ),
    (
        "pip from a local wheel",
        "python3 -c 'import zipfile; z = zipfile.ZipFile(\"x-1-py3-none-any.whl\", \"w\"); z.writestr(\"x.py\", \"v = 7\"); z.writestr(\"x-1.dist-info/METADATA\", \"Metadata-Version: 2.1\\nName: x\\nVersion: 1\\n\"); z.writestr(\"x-1.dist-info/WHEEL\", \"Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n\"); z.writestr(\"x-1.dist-info/RECORD\", \"\"); z.close()' && $(python3 -c 'import sys; print(sys.executable)') -m pip install -q --no-index --no-cache-dir --disable-pip-version-check --root-user-action=ignore --target t ./x-1-py3-none-any.whl && PYTHONPATH=t python3 -c 'import x; print(x.v)'",
    ),
    (
        "python3 unittest",
        "printf 'import unittest\\nclass T(unittest.TestCase):\\n def test(self): self.assertEqual(1, 1)\\n' > test_x.py && python3 -m unittest -q 2>&1 | tail -1",
    ),
    (
        "the leak sanitizer finds a leak",
        "printf '#include <stdlib.h>\\nvoid*p;int main(){p=malloc(7);p=0;return 0;}' > a.c && cc -fsanitize=address a.c -o a && ./a 2>&1 | grep -c 'detected memory leaks'",
    ),
    (
        "a program's own Landlock domain",
        "python3 -c 'import ctypes, struct; c = ctypes.CDLL(None, use_errno=True); a = struct.pack(\"Q\", 2); r = c.syscall(444, a, 8, 0); assert r >= 0; c.prctl(38, 1, 0, 0, 0); assert c.syscall(446, r, 0) == 0\ntry: open(\"x\", \"w\")\nexcept PermissionError: print(\"held\")'",
    ),
    (
        "a program's own seccomp filter",
        "python3 -c 'import ctypes, struct; c = ctypes.CDLL(None); f = ctypes.create_string_buffer(struct.pack(\"HBBI\", 6, 0, 0, 0x7fff0000)); p = ctypes.create_string_buffer(struct.pack(\"HxxxxxxQ\", 1, ctypes.addressof(f))); c.prctl(38, 1, 0, 0, 0); print(c.prctl(22, 2, p, 0, 0))'",
    ),
];

/// Actions with sockets in the sandbox. The broker mediates them. Each prints only `1`.
pub(super) const SOCKETS: &[(&str, &str)] = &[
    (
        "TCP on loopback",
        "python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); c = socket.create_connection(s.getsockname()); a, _ = s.accept(); c.send(b\"1\"); print(a.recv(1).decode())'",
    ),
    (
        "TCP on loopback of IPv6",
        "python3 -c 'import socket; s = socket.create_server((\"::1\", 0), family=socket.AF_INET6); c = socket.create_connection(s.getsockname()[:2]); a, _ = s.accept(); c.send(b\"1\"); print(a.recv(1).decode())'",
    ),
    (
        "UDP on loopback",
        "python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind((\"127.0.0.1\", 0)); c = socket.socket(type=socket.SOCK_DGRAM); c.sendto(b\"1\", s.getsockname()); print(s.recv(9).decode())'",
    ),
    (
        "HTTP by python3",
        "echo 1 > f && (python3 -u -m http.server --bind 127.0.0.1 0 > log 2>&1 & p=$!; until grep -q port log; do :; done; python3 -c 'import re, urllib.request; port = re.search(r\"port (\\d+)\", open(\"log\").read())[1]; print(urllib.request.urlopen(f\"http://127.0.0.1:{port}/f\").read().decode(), end=\"\")'; kill $p)",
    ),
    (
        "HTTP by node, and its interfaces",
        "node -e 'const h = require(\"http\"), o = require(\"os\"); if (!o.networkInterfaces().lo) throw 1; const s = h.createServer((q, r) => r.end(\"1\")).listen(0, \"127.0.0.1\", () => h.get({port: s.address().port}, r => r.on(\"data\", d => { console.log(d.toString()); s.close(); process.exit(0) })))'",
    ),
    (
        "asyncio servers",
        "python3 -c 'import asyncio\nasync def h(r, w):\n w.write(await r.readline()); w.close()\nasync def m():\n s = await asyncio.start_server(h, \"localhost\", 0); p = s.sockets[0].getsockname()[1]\n u = await asyncio.start_unix_server(h, \"u\")\n for c in asyncio.open_connection(\"localhost\", p), asyncio.open_unix_connection(\"u\"):\n  r, w = await c; w.write(b\"1\\n\"); x = await r.readline()\n print(x.decode(), end=\"\")\nasyncio.run(m())'",
    ),
    (
        "unix sockets in the project, of every kind",
        "python3 -c 'import socket as k\nfor n, t in enumerate((k.SOCK_STREAM, k.SOCK_SEQPACKET)):\n s = k.socket(k.AF_UNIX, t); s.bind(str(n)); s.listen(); c = k.socket(k.AF_UNIX, t); c.connect(str(n)); s.accept()\nd = k.socket(k.AF_UNIX, k.SOCK_DGRAM); d.bind(\"d\"); e = k.socket(k.AF_UNIX, k.SOCK_DGRAM); e.sendto(b\"1\", \"d\"); print(d.recv(9).decode())'",
    ),
    (
        "an abstract socket",
        "python3 -c 'import socket as k; s = k.socket(k.AF_UNIX); s.bind(\"\\0bailiwick-works\"); s.listen(); c = k.socket(k.AF_UNIX); c.connect(\"\\0bailiwick-works\"); s.accept()[0].send(b\"1\"); print(c.recv(9).decode())'",
    ),
    (
        "descriptors passed over a connection of a unix socket",
        "echo 1 > f; python3 -c 'import os, socket as k; s = k.socket(k.AF_UNIX); s.bind(\"d\"); s.listen(); c = k.socket(k.AF_UNIX); c.connect(\"d\"); a, _ = s.accept(); k.send_fds(c, [b\"x\"], [os.open(\"f\", 0)]); print(os.read(k.recv_fds(a, 9, 1)[1][0], 1).decode())'",
    ),
    (
        "connected UDP on loopback",
        "python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind((\"127.0.0.1\", 0)); c = socket.socket(type=socket.SOCK_DGRAM); c.connect(s.getsockname()); c.send(b\"1\"); d, a = s.recvfrom(9); s.connect(a); s.send(d); print(c.recv(9).decode())'",
    ),
    (
        "UDP by node",
        "node -e 'const d = require(\"dgram\"), s = d.createSocket(\"udp4\"), c = d.createSocket(\"udp4\"); s.on(\"message\", (m, r) => s.send(m, r.port, r.address)); s.bind(0, \"127.0.0.1\", () => c.connect(s.address().port, \"127.0.0.1\", () => c.send(\"1\"))); c.on(\"message\", m => { console.log(m.toString()); process.exit(0) })'",
    ),
    (
        "servers on all addresses",
        "python3 -c 'import socket\nfor f, h, t in (socket.AF_INET, \"0.0.0.0\", \"127.0.0.1\"), (socket.AF_INET6, \"::\", \"::1\"):\n s = socket.create_server((h, 0), family=f); c = socket.create_connection((t, s.getsockname()[1])); a, _ = s.accept(); c.send(b\"1\"); x = a.recv(1)\nprint(x.decode())'",
    ),
    (
        "System V semaphores, memory and queues",
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); i = c.semget(0, 1, 0o1600); j = c.shmget(0, 4096, 0o1600); k = c.msgget(0, 0o1600); assert min(i, j, k) >= 0; c.semctl(i, 0, 0); c.shmctl(j, 0, 0); c.msgctl(k, 0, 0); print(1)'",
    ),
];

/// Actions for which the broker must duplicate the caller's descriptors (`pidfd_getfd(2)`). Each prints only `1`.
pub(super) const OF_DUPLICATES: &[(&str, &str)] = &[(
    "descriptors passed in a datagram of a unix socket",
    "echo 1 > f; python3 -c 'import os, socket as k; s = k.socket(k.AF_UNIX, k.SOCK_DGRAM); s.bind(\"d\"); c = k.socket(k.AF_UNIX, k.SOCK_DGRAM); c.connect(\"d\"); k.send_fds(c, [b\"x\"], [os.open(\"f\", 0)]); print(os.read(k.recv_fds(s, 9, 1)[1][0], 1).decode())'",
)];

/// Actions that need namespaces if the network is off. They fail in the floor tier. Each prints only `1`.
pub(super) const OF_THE_FULL_TIER: &[(&str, &str)] = &[
    (
        "locks, queues and pools of multiprocessing",
        "python3 -c 'import multiprocessing as m; c = m.get_context(\"fork\"); l = c.Lock(); q = c.Queue(); q.put(1); q.get(); p = c.Pool(2); print(p.map(abs, [-1])[0]); p.close(); p.join()'",
    ),
    (
        "shared memory of multiprocessing",
        "python3 -c 'from multiprocessing import shared_memory as s; x = s.SharedMemory(create=True, size=9); x.close(); x.unlink(); print(1)'",
    ),
    ("a terminal of its own", "python3 -c 'import pty; pty.openpty(); print(1)'"),
    ("script", "script -qec 'test -t 0 && echo 1' /dev/null | tr -d '\\r'"),
    (
        "job control on a terminal",
        "script -qec \"bash --norc -ic 'sleep 99 & kill %1; wait %1 2> /dev/null; jobs -r | wc -l; fg 2> /dev/null; echo 1'\" /dev/null | tr -d '\\r' | tail -1",
    ),
    (
        "tmux",
        "tmux -S ./socket -f /dev/null new-session -d 'echo 1 > out; exec sleep 99' && until [ -s out ]; do :; done; tmux -S ./socket list-sessions > /dev/null && cat out; tmux -S ./socket kill-server",
    ),
    ("a hard-coded /tmp", "f=/tmp/bailiwick-hard-coded-$$; echo 1 > $f && cat $f && rm $f"),
    (
        "POSIX semaphores and shared memory",
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); c.sem_open.restype = ctypes.c_void_p; s = c.sem_open(b\"/bailiwick-works\", 0o100, 0o600, 1); assert s; c.sem_unlink(b\"/bailiwick-works\"); m = c.shm_open(b\"/bailiwick-works-m\", 0o102, 0o600); assert m >= 0; c.shm_unlink(b\"/bailiwick-works-m\"); print(1)'",
    ),
    (
        "POSIX message queues",
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); q = c.mq_open(b\"/bailiwick-works\", 0o102, 0o600, None); assert q >= 0; assert c.mq_send(q, b\"1\", 1, 0) == 0; b = ctypes.create_string_buffer(8192); assert c.mq_receive(q, b, 8192, None) == 1; c.mq_unlink(b\"/bailiwick-works\"); print(b.value.decode())'",
    ),
];
