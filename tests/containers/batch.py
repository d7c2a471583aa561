"""Tests batches in real containers: repairs of packages, judged by the packages' tests, attacks, and kills."""

import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from model import ScriptedModel

WORK, IMAGE = Path(sys.argv[1]), sys.argv[2]
ENGINE = os.environ.get("BAILIWICK_ENGINE", "docker")
# Option that copies files with their owners. Docker needs the flag for that; Podman does it unless told otherwise.
OWNERS = "--archive=%s" % ("true" if ENGINE == "docker" else "false")
KEY = "sk-ant-canary-0123456789abcdef"
USERS = {"root": "bailiwick-tests:packages", "user": "bailiwick-tests:packages-user"}

# For each package: its version, the file with the bug, the right text in that file, and the wrong text.
PACKAGES = {
    "more-itertools": ("10.5.0", "more_itertools/recipes.py",
                       "        return _zip_equal(*args)\n    if incomplete == 'ignore'",
                       "        return zip(*args)\n    if incomplete == 'ignore'"),
    "idna": ("3.10", "idna/intranges.py",
             "_encode_range(current_range[0], current_range[-1] + 1)",
             "_encode_range(current_range[0], current_range[-1])"),
    "xmltodict": ("0.13.0", "xmltodict.py",
                  "else self.cdata_separator.join(self.data))\n            item = self.item",
                  "else ''.join(self.data))\n            item = self.item"),
    "inflection": ("0.5.1", "inflection/__init__.py", "in (11, 12, 13):", "in (11, 12):"),
    "toolz": ("0.12.1", "toolz/itertoolz.py", "islice(seq, 0, None, n)", "islice(seq, 1, None, n)"),
    "boltons": ("24.0.0", "boltons/mathutils.py", "min(max(x, lower), upper)", "max(x, lower)"),
}

TESTS = "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=/opt/site:. python3 -m pytest -q --noconftest -p no:cacheprovider -rA 2>&1"


def run(*command, check=True, **options):
    done = subprocess.run(command, text=True, capture_output=True, **options)
    if check and done.returncode != 0:
        raise SystemExit("%s: status %d\n%s%s" % (command, done.returncode, done.stdout, done.stderr))
    return done


def fetched():
    """Downloads the source distributions of the packages, and pytest, from the index."""
    place = WORK / "index"
    wanted = ["%s==%s" % (name, package[0]) for name, package in PACKAGES.items()]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    command = [*pip, "download", "--no-deps", "--no-binary", ":all:", "-d", str(place), *wanted]
    if run(*command, check=False).returncode != 0:
        print("skipped: no container engine: the package index is not reachable", file=sys.stderr)
        raise SystemExit(0)
    run(*pip, "install", "--root-user-action", "ignore", "--target", str(WORK / "site"), "pytest")
    return place


def prepared(index):
    """Makes a project for each package, and commits the package with its bug."""
    projects = WORK / "projects"
    for name, (_, file, right, wrong) in PACKAGES.items():
        project = projects / name
        project.mkdir(parents=True)
        archive, = index.glob(name.replace("-", "?") + "-*.tar.gz")
        run("tar", "xzf", str(archive), "--strip-components=1", "--no-same-owner", "-C", str(project))
        text = (project / file).read_text()
        assert text.count(right) == 1, (name, "another version")
        (project / file).write_text(text.replace(right, wrong))
        git = ["git", "-C", str(project), "-c", "user.name=t", "-c", "user.email=t@example.org"]
        run(*git, "init", "-q")
        run(*git, "add", "-A")
        run(*git, "commit", "-q", "-m", "base")
    return projects


def make_images(projects):
    """Makes two images: one in which root works, and one in which a user without privileges works."""
    for user, image in USERS.items():
        run("chown", "-R", "0:0" if user == "root" else "1000:1000", str(projects))
        container = run(ENGINE, "create", IMAGE, "true").stdout.strip()
        run(ENGINE, "cp", OWNERS, str(projects), container + ":/projects")
        run(ENGINE, "cp", str(WORK / "site"), container + ":/opt/site")
        change = ["--change", "USER 1000:1000"] if user == "user" else []
        run(ENGINE, "commit", *change, container, image)
        run(ENGINE, "rm", container)


def outcomes(name, patch=None):
    """Returns the results of a package's tests, by name, in a separate container, after a patch if one is given."""
    script = "cd /projects/%s && %s %s" % (name, "git apply - &&" if patch else "", TESTS)
    command = [ENGINE, "run", "--rm", "-i", "--network", "none", USERS["root"], "sh", "-c", script]
    done = run(*command, check=False, input=patch or "")
    lines = done.stdout.splitlines()
    found = [re.match(r"(PASSED|FAILED|ERROR|SUBFAILED)\S* (?:\[[^]]*\] )?(\S+)", line) for line in lines]
    tests = {match[2]: "PASSED" for match in found if match}
    tests.update((match[2], "FAILED") for match in found if match and match[1] != "PASSED")
    assert tests, done.stdout + done.stderr
    return tests


class Model(ScriptedModel):
    """Chooses the script by the task that the first message of a request names."""

    def __init__(self, scripts):
        super().__init__([])
        self.scripts = scripts
        self.keys = set()

    def answer(self, http):
        length = int(http.headers["content-length"])
        body = http.rfile.read(length)
        self.keys.add(http.headers.get("x-api-key"))
        first = json.dumps(json.loads(body)["messages"][0])
        task = re.search(r"the task is ([\w-]+)", first)[1]
        turns = next(turns for prefix, turns in self.scripts.items() if task.startswith(prefix))
        one = ScriptedModel.__new__(ScriptedModel)
        one.turns, one.requests = turns, self.requests
        connection, http.rfile = http.rfile, io.BytesIO(body)
        try:
            ScriptedModel.answer(one, http)
        finally:
            http.rfile = connection


def shell(command):
    return ("shell_exec", {"command": command})


def repairs():
    scripts = {}
    for name, (_, file, right, wrong) in PACKAGES.items():
        edit = ("edit_file", {"path": file, "old_string": wrong, "new_string": right})
        tests = shell("%s | tail -n 3" % TESTS)
        scripts[name] = [[tests], [edit], [tests], ["The tests pass."]]
    return scripts


def tasks_file(name, tasks):
    path = WORK / name
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return path


def batch(model, tasks, output, *flags, command=("batch",)):
    environment = dict(os.environ, ANTHROPIC_API_KEY=KEY, HOME=str(WORK / "home"), BAILIWICK_HOME=str(WORK / "own"))
    command = [str(WORK / "programs/bailiwick"), *command, str(tasks), "--output", str(output), "--engine", ENGINE,
               "--programs", str(WORK / "programs"), "--jobs", "4", "--base-url", model.url, "--model",
               "claude-opus-5-5", "--name", "scripted", "--max-usd", "5", *flags]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def containers():
    return run(ENGINE, "ps", "-a", "-q", "--filter", "label=bailiwick.batch").stdout.split()


def state(output, task):
    return json.loads((output / "instances" / task / "state.json").read_text())


def check_repairs():
    before = {name: outcomes(name) for name in PACKAGES}
    for name, tests in before.items():
        assert "FAILED" in tests.values(), (name, "no test fails before")
    tasks = [{"id": "%s-%s" % (name, user), "prompt": "A test fails. Mend it; the task is %s-%s." % (name, user),
              "image": image, "workdir": "/projects/" + name} for name in PACKAGES for user, image in USERS.items()]
    output = WORK / "repairs"
    with Model(repairs()) as model:
        process = batch(model, tasks_file("repairs.jsonl", tasks), output)
        said = process.communicate()[0]
    assert process.returncode == 0, said
    predictions = [json.loads(line) for line in (output / "predictions/predictions.jsonl").read_text().splitlines()]
    assert sorted(row["instance_id"] for row in predictions) == sorted(task["id"] for task in tasks)
    assert model.keys == {KEY}, "the relay has the key, and it alone"
    for row in predictions:
        name = row["instance_id"].rsplit("-", 1)[0]
        assert state(output, row["instance_id"])["status"] == "done", state(output, row["instance_id"])
        after = outcomes(name, row["model_patch"])
        broken = [test for test, outcome in after.items() if outcome != "PASSED"]
        assert not broken and after.keys() >= before[name].keys(), (row["instance_id"], broken)
    assert containers() == []
    no_key_is_left(output)
    print("ok: %d packages, as root and not: each patch resolves the failing tests and breaks none" % len(PACKAGES))


def no_key_is_left(output):
    assert run("grep", "-rl", KEY, str(output), check=False).stdout == "", "the key is in a file"


ATTACK = r"""
env | grep -c ANTHROPIC_API_KEY
cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -c sk-ant
grep -rls sk-ant-canary /root /home /tmp /var/tmp /run /bailiwick-relay /bailiwick-out /etc 2>/dev/null | wc -l
python3 - <<'PY'
import glob, os, socket
def attempt(name, act):
    try:
        act()
        print(name, "REACHED")
    except OSError as error:
        print(name, os.strerror(error.errno) if error.errno else error)
def unix(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(3); s.connect(path)
paths = [line.split()[-1] for line in open("/proc/net/unix") if "/" in line.split()[-1]]
paths += [path for root in ("/bailiwick-relay", "/run", "/opt", "/mnt") for path in glob.glob(root + "/**", recursive=True)]
sockets = {path for path in paths if os.path.exists(path) and (os.stat(path).st_mode & 0o170000) == 0o140000}
for path in sorted(sockets | {"/bailiwick-relay/relay.sock"}):
    attempt("unix", lambda: unix(path))
for address in (("1.1.1.1", 443), ("172.17.0.1", 2375), ("169.254.169.254", 80)):
    attempt("tcp", lambda: socket.create_connection(address, 3).close())
PY
"""


def check_attacks():
    tasks = [{"id": "attack-" + user, "prompt": "the task is attack-%s" % user, "image": image,
              "workdir": "/projects/idna"} for user, image in USERS.items()]
    output = WORK / "attacks"
    with Model({"attack": [[shell(ATTACK)], ["Nothing."]]}) as model:
        process = batch(model, tasks_file("attacks.jsonl", tasks), output)
        said = process.communicate()[0]
    assert process.returncode in (0, 3), said
    told = [body["messages"][-1] for body in model.requests if len(body["messages"]) > 1]
    assert len(told) == 2, said
    for message in told:
        text = json.dumps(message["content"])
        assert KEY not in text and "REACHED" not in text, text
        assert "unix Permission denied" in text, text
    no_key_is_left(output)
    assert containers() == []
    print("ok: from inside neither the key nor the relay nor a network is reached")


def children(pid, word):
    """Returns the children of a process that have `word` as their first argument."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        if parent == pid and len(words) > 1 and words[1] == word:
            found.append(int(entry.name))
    return found


def check_kills():
    count = 20
    tasks = [{"id": "slow-%02d" % n, "prompt": "the task is slow-%02d" % n, "image": USERS["root"],
              "workdir": "/projects/idna"} for n in range(count)]
    change = shell("sleep 1; echo done >> NOTES.txt")
    kinds = ["batch", "relay", "run"] + ["engine"] * (WORK / "dockerd").exists()
    if "engine" not in kinds:
        print("skipped: kills of the engine: it is none of ours", file=sys.stderr)
    output, path, kills = WORK / "kills", tasks_file("kills.jsonl", tasks), dict.fromkeys(kinds, 0)
    chance, deadline = random.Random(7), time.monotonic() + 600
    with Model({"slow": [[change], ["Done."]]}) as model:
        while True:
            process, began = batch(model, path, output), time.monotonic()
            while process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.3)
                what = chance.choice(list(kills))
                if time.monotonic() - began < 2 or kills[what] >= 2:
                    continue
                kills[what] += kill(what, process)
            process.kill()
            said = process.communicate()[0]
            print("   status %s after %d s, kills so far: %s" % (process.returncode, time.monotonic() - began, kills))
            assert time.monotonic() < deadline, said
            if process.returncode == 0:
                break
            assert process.returncode in (-9, 1, 2, 3), (process.returncode, said)
    assert all(kills.values()), kills
    rows = [json.loads(line) for line in (output / "predictions/predictions.jsonl").read_text().splitlines()]
    assert sorted(row["instance_id"] for row in rows) == [task["id"] for task in tasks], rows
    for row in rows:
        added = [line for line in row["model_patch"].splitlines() if line == "+done"]
        assert len(added) == 1, row
    assert containers() == []
    print("ok: %d tasks, each exactly once, through these kills: %s" % (count, kills))


def kill(what, process):
    """Kills a process of this kind, if there is one. True if one was killed."""
    try:
        if what == "batch":
            process.send_signal(signal.SIGKILL)
        elif what == "relay":
            os.kill(children(process.pid, b"relay")[0], signal.SIGKILL)
        elif what == "engine":
            kill_engine()
        else:
            run(ENGINE, "kill", run(ENGINE, "ps", "-q", "--filter", "label=bailiwick.batch").stdout.split()[0])
    except (IndexError, ProcessLookupError, SystemExit):
        return False
    return True


def swebench():
    """Returns a Python with the harness of SWE-bench, or None."""
    if "BAILIWICK_SWEBENCH" in os.environ:
        return os.environ["BAILIWICK_SWEBENCH"]
    place = WORK / "swebench"
    run(sys.executable, "-m", "venv", str(place))
    pip = [str(place / "bin/pip"), "install", "-q", "--disable-pip-version-check", "swebench==5.0.2"]
    return str(place / "bin/python") if run(*pip, check=False).returncode == 0 else None


def testbed(name):
    """Makes an image like those of SWE-bench, with the project in /testbed."""
    image = "bailiwick-tests:testbed-" + name
    container = run(ENGINE, "create", USERS["root"], "true").stdout.strip()
    run(ENGINE, "cp", OWNERS, str(WORK / "projects" / name) + "/.", container + ":/testbed")
    run(ENGINE, "commit", "--change", "USER 0:0", container, image)
    run(ENGINE, "rm", container)
    return image


def row(name, image):
    """Returns the package as an instance of SWE-bench: the columns of the data sets that its current harness reads."""
    before = outcomes(name)
    after = outcomes(name, right_patch(name))
    wanted = sorted(test for test, outcome in after.items() if outcome == "PASSED")
    script = ["#!/bin/bash", "set -uxo pipefail", "cd /testbed", ": '>>>>> Start Test Output'", TESTS,
              ": '>>>>> End Test Output'"]
    project = WORK / "projects" / name
    return {"instance_id": "scripted__%s-1" % name, "repo": "scripted/" + name, "version": PACKAGES[name][0],
            "base_commit": run("git", "-C", str(project), "rev-parse", "HEAD").stdout.strip(),
            "problem_statement": "A test fails. Mend it; the task is %s" % name, "image": image,
            "FAIL_TO_PASS": json.dumps([test for test in wanted if before.get(test) != "PASSED"]),
            "PASS_TO_PASS": json.dumps([test for test in wanted if before.get(test) == "PASSED"]),
            "log_parser": "parse_log_pytest", "eval_type": "pass_and_fail", "eval_script": "\n".join(script)}


def right_patch(name):
    """Returns the repair as a patch that a person would submit."""
    _, file, right, wrong = PACKAGES[name]
    path = WORK / "projects" / name / file
    text = path.read_text()
    path.write_text(text.replace(wrong, right))
    patch = run("git", "-C", str(WORK / "projects" / name), "diff").stdout
    path.write_text(text)
    return patch


def check_swebench():
    python = swebench()
    if python is None:
        return print("skipped: no container engine: the package index has no swebench", file=sys.stderr)
    run("chown", "-R", "0:0", str(WORK / "projects"))
    rows = [row(name, testbed(name)) for name in ("idna", "toolz")]
    path, output = tasks_file("instances.jsonl", rows), WORK / "swebench.batch"
    with Model(repairs()) as model:
        process = batch(model, path, output, command=["batch", "swe-bench"])
        said = process.communicate()[0]
    assert process.returncode == 0, said
    for file in ("predictions.jsonl", "preds.json"):
        evaluation = [python, "-m", "swebench.harness.run_evaluation", "--dataset_name", str(path), "--predictions_path",
                      str(output / "predictions" / file), "--run_id", file, "--max_workers", "1"]
        said = run(*evaluation, cwd=WORK, env=dict(os.environ, HF_HUB_OFFLINE="1"))
        report, = WORK.glob("*.%s.json" % file)
        found = json.loads(report.read_text())
        assert found["resolved_instances"] == len(rows), (found, said.stdout[-2000:], said.stderr[-2000:])
    for one in rows:
        run(ENGINE, "rmi", "-f", one["image"], check=False)
    print("ok: the harness of SWE-bench takes the predictions in both forms, and finds %d of %d resolved" % (
        len(rows), len(rows)))


def kill_engine():
    """Kills the engine's daemon while containers run, and starts it again after a moment."""
    if not run(ENGINE, "ps", "-q", "--filter", "label=bailiwick.batch").stdout.split():
        raise ProcessLookupError
    os.kill(int((WORK / "pid").read_text()), signal.SIGKILL)
    time.sleep(3)
    with open(WORK / "engine.log", "ab") as log:
        subprocess.Popen([str(WORK / "dockerd")], stdout=log, stderr=log, start_new_session=True)
    deadline = time.monotonic() + 60
    while run(ENGINE, "version", check=False).returncode != 0:
        assert time.monotonic() < deadline, (WORK / "engine.log").read_text()[-2000:]
        time.sleep(0.3)


def main():
    wanted = sys.argv[3:] or ["repairs", "attacks", "kills", "swebench"]
    make_images(prepared(fetched()))
    for name in wanted:
        began = time.monotonic()
        globals()["check_" + name]()
        print("   %d s" % (time.monotonic() - began))
    for image in USERS.values():
        run(ENGINE, "rmi", "-f", image, check=False)


main()
