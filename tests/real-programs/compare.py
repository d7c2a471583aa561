"""Runs each program outside of the sandbox and in it, and prints a table of the results. Status 1: a result differs."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from programs import PROGRAMS, Program

BAILIWICK = os.environ["BAILIWICK"]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bailiwick-real-programs"
# A user with a name, which initdb requires.
PLAIN_USER = pwd.getpwnam("nobody").pw_uid
LIMIT_S = 600
# Number of bytes of each output that are shown if the outputs differ.
SHOWN = 1500


def missing(program: Program) -> str | None:
    """Returns a requirement of a program that is missing, or None."""
    for need in program.needs:
        if need.startswith("module:"):
            found = not subprocess.run(["/usr/bin/python3", "-c", f"import {need[7:]}"], stderr=subprocess.DEVNULL).returncode
        else:
            found = Path(need).exists() if need.startswith("/") else shutil.which(need)
        if not found:
            return need
    return None


def lay_out(program: Program, project: Path, uid: int) -> None:
    """Writes the files of a program, and prepares them."""
    for name, text in program.files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    if program.prepare:
        CACHE.mkdir(parents=True, exist_ok=True)
        prepare = ["bash", "-c", program.prepare]
        subprocess.run(prepare, cwd=project, env={**os.environ, "CACHE": str(CACHE)}, check=True, timeout=3 * LIMIT_S)
    for place in [project, *project.rglob("*")]:
        os.chown(place, uid, uid, follow_symlinks=False)


def run(program: Program, tier: str | None, uid: int) -> str:
    """Returns the output of a program in a new project: without a sandbox, or in a tier."""
    # The path is short, since a unix socket's path has 108 bytes. It is not below /tmp: the sandbox has a private /tmp.
    with tempfile.TemporaryDirectory(prefix="real-", dir="/var/tmp", ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o755)
        project, home = Path(directory, "project"), Path(directory, "home")
        project.mkdir()
        home.mkdir()
        os.chown(home, uid, uid)
        lay_out(program, project, uid)
        bash = ["bash", "-c", program.command]
        command = [BAILIWICK, "sandbox", "--tier", tier, "-C", str(project), "--", *bash] if tier else bash
        # Programs look in their home for tools that a user has installed.
        environment = {**os.environ, "HOME": os.environ["HOME"] if program.toolchain else str(home)}
        try:
            done = subprocess.run(
                command, cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=LIMIT_S, text=True, errors="replace",
                user=uid, group=uid, extra_groups=[] if os.getuid() == 0 else None,
            )
            return done.stdout.replace(str(project), ".")
        except subprocess.TimeoutExpired:
            return f"no end after {LIMIT_S} s"


def compare(program: Program, uid: int) -> bool:
    """Runs a program in all three ways, and prints a row. Returns true if the results are as expected."""
    outside = run(program, None, uid)
    inside = {tier: run(program, tier, uid) for tier in ("full", "floor")}
    same = {tier: said == outside for tier, said in inside.items()}
    cells = ["same" if same[tier] else program.differs.get(tier, "**otherwise**") for tier in inside]
    who = "root" if uid == 0 else "plain user"
    print(f"| {program.name} | {who} | {'; '.join(outside.split(chr(10)))[:150].strip('; ')} | {' | '.join(cells)} |", flush=True)
    # A listed difference that has disappeared is a failure too.
    as_expected = {tier: same[tier] != (tier in program.differs) for tier in inside}
    for tier, said in inside.items():
        if not as_expected[tier]:
            print(f"--- outside\n{outside[-SHOWN:]}\n--- {tier}\n{said[-SHOWN:]}", file=sys.stderr)
    return all(as_expected.values())


def main() -> int:
    wanted = sys.argv[1:]
    users = [0, PLAIN_USER] if os.getuid() == 0 else [os.getuid()]
    print("| programs | user | outside | full | floor |\n| --- | --- | --- | --- | --- |")
    same = True
    for program in PROGRAMS:
        if wanted and not any(word in program.name for word in wanted):
            continue
        if need := missing(program):
            print(f"skipped: {program.name}: no {need}", file=sys.stderr)
            continue
        for uid in users:
            # A plain user does not find tools that root has installed in root's home.
            if (uid == 0 and not program.root) or (uid != os.getuid() and program.toolchain):
                continue
            same &= compare(program, uid)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
