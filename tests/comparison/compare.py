"""Compares Bailiwick's minimal profile with mini-swe-agent on the same scripted tasks: patches, CPU time, memory."""

import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tasks import TASKS, TEST

HERE = Path(__file__).resolve().parent
REPAIRS = [name for name in TASKS if name != "steps"]
# mini-swe-agent reads the output of commands as text. Python then drops a carriage return before a line feed.
LOST = {"line-ends"}


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, **options)


def project(directory, name):
    """Makes a new repository with the files of a task."""
    directory.mkdir(parents=True)
    for path, text in TASKS[name].files.items():
        (directory / path).write_bytes(text.encode())
    git = ["git", "-C", str(directory), "-c", "core.autocrlf=false", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    run(*git, "init", "-q")
    run(*git, "add", "-A")
    run(*git, "commit", "-q", "-m", "base")
    return directory


KCMP = {"x86_64": 312, "aarch64": 272}[platform.machine()]
KCMP_VM = 1
libc = ctypes.CDLL(None)


def parents_below(pid):
    """Returns the pids of a process and its descendants, each with the pid of its parent."""
    found, parents = {pid}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            continue
    more = True
    while more:
        more = {child for child, parent in parents.items() if parent in found and child not in found}
        found |= more
    return {one: parents.get(one, 0) for one in found}


def resident(pid):
    """Returns the KiB of a tree of processes. Shared memory counts once (Pss) if that can be read."""
    total = 0
    for one, parent in parents_below(pid).items():
        if one != pid and libc.syscall(KCMP, parent, one, KCMP_VM, 0, 0) == 0:
            # This process is about to execute a program (vfork): its memory is its parent's.
            continue
        for file, word in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
            try:
                lines = Path("/proc/%d/%s" % (one, file)).read_text().splitlines()
            except OSError:
                continue
            total += next((int(line.split()[1]) for line in lines if line.startswith(word)), 0)
            break
    return total


def measured(command, environment, log, watched):
    """Runs a command. Returns the seconds of CPU time of all its processes, and their peak memory if `watched`."""
    with open(log, "wb") as output:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT)
        most, ended = 0, threading.Event()

        def watch():
            nonlocal most
            while not ended.is_set():
                most = max(most, resident(process.pid))
                time.sleep(0.01)

        watcher = threading.Thread(target=watch)
        if watched:
            watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
        if watched:
            watcher.join()
    if process.returncode != 0:
        raise SystemExit("%s: status %d\n%s" % (command, process.returncode, Path(log).read_text(errors="replace")))
    return usage.ru_utime + usage.ru_stime, most


class Side:
    """One agent: the commands by which it works on tasks, and the results that it leaves."""

    def __init__(self, work, url, options):
        self.work, self.url, self.options = work, url, options

    def place(self, name):
        return self.work / type(self).__name__ / ("%s-%d" % (name, time.monotonic_ns()))

    def environment(self):
        return dict(os.environ, OPENAI_API_KEY="none", HOME=str(self.work / "home"), NO_COLOR="1")

    def run_all(self, watched=False):
        """Returns the processor time and memory of all repairs by one command."""
        place = self.place("all")
        directories = {name: project(place / name / "project", name) for name in REPAIRS}
        environment = self.environment()
        command = self.all_command(directories, place, environment)
        return measured(command, environment, place / "log", watched)

    def run(self, name, watched=False):
        """Returns the processor time, the memory, the number of steps and the patch of one task."""
        place = self.place(name)
        directory = project(place / "project", name)
        environment = self.environment()
        command = self.command(name, directory, place, environment)
        cpu, most = measured(command, environment, place / "log", watched)
        return cpu, most, self.steps(place, name), (place / (name + ".patch")).read_bytes()


class Bailiwick(Side):
    def command(self, name, directory, place, environment):
        return [str(self.options.bailiwick), "exec", *self.flags(place, environment), "--output", "json",
                "-C", str(directory), "--patch", str(place / (name + ".patch")), TASKS[name].prompt(name)]

    def all_command(self, directories, place, environment):
        rows = [{"id": name, "prompt": TASKS[name].prompt(name), "repo": str(directory),
                 "base_commit": run("git", "-C", str(directory), "rev-parse", "HEAD", text=True).stdout.strip()}
                for name, directory in directories.items()]
        (place / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return [str(self.options.bailiwick), "batch", str(place / "tasks.jsonl"), *self.flags(place, environment),
                "--output", str(place / "out"), "--jobs", "1"]

    def flags(self, place, environment):
        environment.update(BAILIWICK_HOME=str(place / "own"))
        return ["--profile", "minimal", "--mode", "auto", "--provider", "openai", "--base-url", self.url,
                "--model", "scripted"]

    def steps(self, place, name):
        lines = (place / "log").read_text().splitlines()
        return next(json.loads(line) for line in lines if line.startswith("{"))["data"]["steps"]


class Mini(Side):
    def command(self, name, directory, place, environment):
        return self.all_command({name: directory}, place, environment)

    def all_command(self, directories, place, environment):
        environment.update(MSWEA_GLOBAL_CONFIG_DIR=str(self.work / "config"), MSWEA_CONFIGURED="1",
                           MSWEA_SILENT_STARTUP="1", PYTHONPATH=str(HERE), LITELLM_LOCAL_MODEL_COST_MAP="True")
        places = ["%s=%s" % (name, directory) for name, directory in directories.items()]
        return [str(self.options.python), "-B", str(HERE / "mini.py"), self.url, str(place), *places]

    def steps(self, place, name):
        return int((place / (name + ".steps")).read_text())


def outcome(work, name, patch):
    """Returns the files after a patch on a clean checkout (None if it does not apply), and whether the tests pass."""
    directory = project(work / "outcomes" / ("%s-%d" % (name, time.monotonic_ns())), name)
    applied = subprocess.run(["git", "-C", str(directory), "apply", "-"], input=patch, capture_output=True)
    if applied.returncode != 0:
        return None, False
    tests = subprocess.run(["sh", "-c", TEST], cwd=directory, capture_output=True, text=True)
    files = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    return files, tests.stdout.strip().endswith("OK")


def alone(work, name):
    """Returns the processor time of a task's commands without an agent."""
    directory = project(work / "alone" / ("%s-%d" % (name, time.monotonic_ns())), name)
    script = "cd %s\n" % directory + "".join("bash -c %s\n" % quoted(command) for command in TASKS[name].commands)
    return measured(["bash", "-c", script], dict(os.environ), directory.parent / "log", False)[0]


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def compare(ours, theirs, work, rounds):
    failed, rows = [], []
    for name in TASKS:
        each = {side: [side.run(name) for _ in range(rounds)] for side in (ours, theirs)}
        memory = {side: side.run(name, watched=True)[1] for side in (ours, theirs)}
        commands = min(alone(work, name) for _ in range(rounds))
        row = {"task": name, "commands": commands}
        outcomes = {}
        for side, runs in each.items():
            word = type(side).__name__
            cpu, _, steps, patch = min(runs, key=lambda run: run[0])
            row[word] = {"cpu": cpu, "steps": steps, "kib": memory[side]}
            outcomes[word] = outcome(work, name, patch)
        row["same"] = outcomes["Bailiwick"][0] == outcomes["Mini"][0]
        if not outcomes["Bailiwick"][1] and name in REPAIRS:
            failed.append("%s: our patch does not repair it" % name)
        if row["same"] != (name not in LOST):
            failed.append("%s: %s" % (name, "both patches are the same" if row["same"] else "the patches differ"))
        rows.append(row)
    together = {type(side).__name__: (min(side.run_all()[0] for _ in range(rounds)), side.run_all(watched=True)[1])
                for side in (ours, theirs)}
    return rows, together, failed


def show(rows, together):
    print("| task | steps | CPU a step | | memory | | patches |\n| --- | --- | --- | --- | --- | --- | --- |")
    print("| | ours, theirs | ours | theirs | ours | theirs | |")
    for row in rows:
        ours, theirs = row["Bailiwick"], row["Mini"]
        each = [side["cpu"] / side["steps"] * 1000 for side in (ours, theirs)]
        print("| %s | %d, %d | %.1f ms | %.1f ms | %.1f MiB | %.1f MiB | %s |" % (
            row["task"], ours["steps"], theirs["steps"], *each, ours["kib"] / 1024, theirs["kib"] / 1024,
            "the same" if row["same"] else "theirs does not apply"))
    steps = {word: sum(row[word]["steps"] for row in rows if row["task"] in REPAIRS) for word in together}
    each = [together[word][0] / steps[word] * 1000 for word in ("Bailiwick", "Mini")]
    print("| the five repairs, one command | %d, %d | %.1f ms | %.1f ms | %.1f MiB | %.1f MiB | |" % (
        *steps.values(), *each, *(most / 1024 for _, most in together.values())))


def limits(rows):
    """Returns the limits that were missed: a tenth of the processor time of a step, a fifth of the memory."""
    repairs = [row for row in rows if row["task"] in REPAIRS]
    cpu, memory = {}, {}
    for word in ("Bailiwick", "Mini"):
        cpu[word] = sum(row[word]["cpu"] for row in repairs) / sum(row[word]["steps"] for row in repairs)
        memory[word] = max(row[word]["kib"] for row in repairs)
    work = sum(row["commands"] for row in repairs) / sum(len(TASKS[row["task"]].commands) for row in repairs)
    long, short = (next(row for row in rows if row["task"] == name) for name in ("steps", "letters"))
    more = {word: (long[word]["cpu"] - long["commands"] - short[word]["cpu"] + short["commands"])
            / (long[word]["steps"] - short[word]["steps"]) for word in cpu}
    print("a step of the repairs: %.1f ms and %.1f ms of CPU: 1/%.1f; a command alone, in the environment of this script: %.1f ms"
          % (cpu["Bailiwick"] * 1000, cpu["Mini"] * 1000, cpu["Mini"] / cpu["Bailiwick"], work * 1000))
    print("one step more, without its command: %.1f ms and %.1f ms" % (more["Bailiwick"] * 1000, more["Mini"] * 1000))
    print("most memory: %.1f MiB and %.1f MiB: 1/%.1f" % (
        memory["Bailiwick"] / 1024, memory["Mini"] / 1024, memory["Mini"] / memory["Bailiwick"]))
    if cpu["Bailiwick"] * 10 > cpu["Mini"]:
        yield "a step takes more than a tenth of their CPU"
    if memory["Bailiwick"] * 5 > memory["Mini"]:
        yield "a run takes more than a fifth of their memory"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bailiwick", type=Path, required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bailiwick-comparison-", dir="/var/tmp") as work:
        work = Path(work)
        (work / "home").mkdir()
        port = work / "port"
        model = subprocess.Popen([sys.executable, "-B", str(HERE / "model.py"), str(port)])
        try:
            while not (port.exists() and port.read_text().endswith("\n")):
                if model.poll() is not None:
                    raise SystemExit("the scripted model did not start")
                time.sleep(0.05)
            url = "http://127.0.0.1:" + port.read_text().strip()
            ours, theirs = Bailiwick(work, url, options), Mini(work, url, options)
            rows, together, failed = compare(ours, theirs, work, options.rounds)
        finally:
            model.terminate()
            model.wait()
        show(rows, together)
        failed += limits(rows)
    for line in failed:
        print("failed: " + line, file=sys.stderr)
    sys.exit(bool(failed))


main()
