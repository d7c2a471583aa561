"""Runs the kernel's selftests outside of the sandbox and in both tiers, and compares the results with a list."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from differences import Listed
from outcomes import outcomes

# seccomp_benchmark only measures.
NO_TESTS = {"seccomp_benchmark"}

# Time limit of a program in seconds. A program takes seconds, so one that takes longer hangs and has failed.
PATIENCE = 300

# Runs a program without capabilities, as in the sandbox: a test that fails here too fails only because it lacks them.
UNCAPABLE = ["setpriv", "--securebits=+noroot,+noroot_locked", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all",
             "--no-new-privs"]


def programs(built):
    found = [path for path in sorted(built.glob("*/*")) if path.name.endswith("_test") or path.name.startswith("seccomp_")]
    return [path for path in found if path.name not in NO_TESTS]


def ways(bailiwick):
    sandbox = lambda tier: [bailiwick, "sandbox", "--tier", tier, "-C", ".", "--"]
    return {"outside": [], "no capabilities": UNCAPABLE, "full": sandbox("full"), "floor": sandbox("floor")}


def run(program, prefix, place):
    """Runs a program in a directory with the programs that it executes. Returns the result of each test."""
    project = Path(tempfile.mkdtemp(dir=place))
    for file in (program, program.parent.parent / "landlock" / "true"):
        shutil.copy(file, project)
    environment = dict(os.environ, BAILIWICK_HOME=str(place / "own"))
    try:
        done = subprocess.run([*prefix, "./" + program.name], cwd=project, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        output = done.stdout
    except subprocess.TimeoutExpired as late:
        output = late.stdout or b""
    return outcomes(program.name, output.decode(errors="replace"))


def starts(prefix, place):
    """Returns the reason why no program starts with this prefix, or None."""
    project = Path(tempfile.mkdtemp(dir=place))
    environment = dict(os.environ, BAILIWICK_HOME=str(place / "own"))
    done = subprocess.run([*prefix, "true"], cwd=project, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = done.stdout.decode(errors="replace").splitlines()
    return None if done.returncode == 0 else said[0] if said else "status %d" % done.returncode


def measure(built, bailiwick):
    """Returns the result of every test, by prefix and test."""
    measured = {}
    # The directory is not below /tmp, because the full tier has a private /tmp.
    with tempfile.TemporaryDirectory(prefix="bailiwick-selftests-", dir="/var/tmp") as place:
        place = Path(place)
        (place / "own").mkdir()
        for way, prefix in ways(bailiwick).items():
            why_not = starts(prefix, place)
            if why_not:
                print("skipped: %s: %s" % (way, why_not), file=sys.stderr)
                continue
            measured[way] = {}
            for program in programs(built):
                measured[way].update(run(program, prefix, place))
    return measured


def table(measured):
    """Prints every test whose result in a tier differs from that outside."""
    names = list(measured)
    print("\t".join(["test", *names]))
    for test in measured["outside"]:
        became = [measured[name].get(test, "is missing") for name in names]
        if len(set(became)) > 1:
            print("\t".join([test, *became]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--built", type=Path, required=True)
    parser.add_argument("--list", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    measured = measure(options.built, os.path.realpath(os.environ["BAILIWICK"]))
    for way, became in measured.items():
        counts = Counter(became.values())
        print("%s: %s" % (way, ", ".join("%d %s" % (counts[what], what) for what in sorted(counts))))
    if options.table:
        return table(measured)
    faults = Listed.read(options.list).faults(measured)
    for fault in faults:
        print("differs: %s" % fault)
    print("%d differences from the list" % len(faults))
    return 1 if faults or not measured.get("outside") or len(measured) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
