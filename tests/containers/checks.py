"""Checks in a container: the tier, the engine's own filter, everyday programs, a repair, and the escape suite."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from model import ScriptedModel

STAGE = Path(__file__).resolve().parent
BAILIWICK = STAGE / "debug/bailiwick"
ESCAPE = STAGE / "debug/deps/escape"

SERVER = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
client = threading.Thread(target=lambda: socket.create_connection(server.getsockname()).sendall(b"x"))
client.start()
print(server.accept()[0].recv(1).decode())
client.join()
"""

WORKS = {
    "TCP on loopback": SERVER,
    "a unix socket": SERVER.replace('create_server(("127.0.0.1", 0))', "socket(socket.AF_UNIX); server.bind('s'); server.listen()")
                           .replace("socket.create_connection(server.getsockname()).sendall(b\"x\")", "connect()")
                           .replace("import socket, threading", "import socket, threading\ndef connect():\n    client = socket."
                                    "socket(socket.AF_UNIX)\n    client.connect('s')\n    client.sendall(b'x')"),
    "multiprocessing": "import multiprocessing as m\nwith m.Pool(2) as pool: print('x' if pool.map(abs, [-1]) == [1] else '')",
    "shared memory": "from multiprocessing.shared_memory import SharedMemory as S\n"
                     "s = S(create=True, size=9); s.buf[0] = 120; other = S(s.name); print(chr(other.buf[0])); s.unlink()",
    "a terminal": "import os\nmain, other = os.openpty()\nos.write(other, b'x')\nprint(os.read(main, 1).decode())",
}

MEAN = "def mean(numbers):\n    return sum(numbers) / (len(numbers) - 1)\n"
TEST = "import unittest\nfrom mean import mean\n\n\nclass Mean(unittest.TestCase):\n    def test_of_two(self):\n" \
       "        self.assertEqual(mean([1, 3]), 2)\n"


FILL = "head -c 100M /dev/zero > /dev/shm/all; python3 -c 'import multiprocessing as m; m.Lock()'; " \
       "rm /dev/shm/all && python3 -c 'import multiprocessing as m; m.Lock(); print(\"locks\")'"


class Failure(Exception):
    """A check had another result than expected."""


def expect(condition, message):
    if not condition:
        raise Failure(message)


def environment(work):
    return dict(os.environ, BAILIWICK_HOME=str(work / "own"), ANTHROPIC_API_KEY="sk-container")


def run(work, *arguments, **variables):
    return subprocess.run([str(part) for part in arguments], cwd="/", env=dict(environment(work), **variables),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)


def project(work):
    place = Path(tempfile.mkdtemp(dir=work, prefix="project-"))
    (place / "mean.py").write_text(MEAN)
    (place / "test_mean.py").write_text(TEST)
    return place


def check_profile(_):
    """Checks that the engine's filter applies, since without it these containers would show nothing."""
    status = Path("/proc/self/status").read_text()
    expect(re.search(r"^Seccomp:\t2$", status, re.M), "no filter is in force")
    done = subprocess.run(["unshare", "--user", "true"], stderr=subprocess.PIPE, text=True)
    expect(done.returncode != 0 and "not permitted" in done.stderr, "namespaces are allowed: %s" % done.stderr)


def check_doctor(work):
    done = run(work, BAILIWICK, "doctor", "--json")
    found = json.loads(done.stdout)
    expect(found.get("tier", {}).get("tested") == "floor", found.get("tier") or found["checks"][0])
    checks = {check["name"]: check for check in found["checks"]}
    expect(checks["self-test"]["state"] == "ok", checks["self-test"])
    expect("unshare" in checks["profile"]["found"], checks["profile"])
    expect(checks["ca certs"]["state"] == "ok" and "none on this system" in checks["ca certs"]["found"], checks["ca certs"])
    return "%s; %s" % (checks["tier"]["found"], checks["profile"]["found"])


def check_work(work, program):
    place = project(work)
    done = run(work, BAILIWICK, "sandbox", "-C", place, "--", "python3", "-c", program)
    expect(done.stdout == "x\n", "status %d: %s" % (done.returncode, (done.stdout + done.stderr).strip()[-400:]))


def check_full_shared_memory(work):
    """Checks that a process gets an error when shared memory is full, and that the sandbox continues."""
    done = run(work, BAILIWICK, "sandbox", "-C", project(work), "--", "bash", "-c", FILL)
    expect(done.stdout == "locks\n" and done.stderr.count("No space left on device") == 2, done.stdout + done.stderr)


def check_no_temp(work):
    """Checks that a session starts without a system's temp directory, if Bailiwick's directories are writable."""
    place = project(work)
    with ScriptedModel([["done"]]) as model:
        task = (BAILIWICK, "exec", "--base-url", model.url, "-C", place, "do it")
        done = run(work, *task)
        expect(done.returncode == 0 and len(model.requests) == 1, "status %d: %s" % (done.returncode, done.stderr))


def check_repair(work):
    """Checks a repair by confined commands: a test finds the bug, and passes after the change."""
    place = project(work)
    test = ("shell_exec", {"command": "python3 -B -m unittest -q 2>&1 | tail -n 1"})
    mend = ("edit_file", {"path": "mean.py", "old_string": "(len(numbers) - 1)", "new_string": "len(numbers)"})
    with ScriptedModel([[test], [mend], [test], ["done"]]) as model:
        done = run(work, BAILIWICK, "exec", "--mode", "auto", "--base-url", model.url, "-C", place, "mend it")
    expect(done.returncode == 0, "status %d: %s" % (done.returncode, done.stderr[-400:]))
    told = [json.dumps(request["messages"][-1]) for request in model.requests[1:]]
    expect("FAILED" in told[0] and "OK" in told[2], "the model was told %s" % told)
    expect("/ len(numbers)" in (place / "mean.py").read_text(), (place / "mean.py").read_text())


def check_escape(_):
    done = subprocess.run([ESCAPE, "--nocapture", "--test-threads=2"], cwd="/", stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    skipped = set(re.findall(r"skipped: the container itself denies it: .*", done.stdout))
    missing = set(re.findall(r"skipped: not on this machine: (.*?)(?: as \w+)?: ", done.stdout))
    attacks = sum(int(count) for count in re.findall(r"^\w+: (\d+) attacks$", done.stdout, re.M))
    result = re.findall(r"^test result: .*", done.stdout, re.M)
    expect(done.returncode == 0, done.stdout[-20000:])
    return "%s; %d attacks, of which the engine itself denies %d; of the works, %d are not on this machine" % (
        result[-1], attacks, len(skipped), len(missing))


def main():
    checks = {"the engine's filter": check_profile, "doctor": check_doctor}
    checks.update({name: (lambda work, program=program: check_work(work, program)) for name, program in WORKS.items()})
    checks.update({"a full shared memory": check_full_shared_memory, "a repair": check_repair, "the escape suite": check_escape})
    wanted = sys.argv[1:] or list(checks)
    checks["no temp"] = check_no_temp
    failed = 0
    with tempfile.TemporaryDirectory(dir=os.environ.get("PLACE", "/var/tmp")) as work:
        for name in wanted:
            try:
                seen = checks[name](Path(work))
                print("passed: %s%s" % (name, ": %s" % seen if seen else ""), flush=True)
            except Exception as reason:
                failed += 1
                print("failed: %s: %s" % (name, reason), flush=True)
    print("uid %d: %d of %d hold" % (os.getuid(), len(wanted) - failed, len(wanted)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
