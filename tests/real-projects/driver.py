"""Repairs each project with Bailiwick, driven by the project's script, and checks the results. See README.md."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import by_hand
from model import ScriptedModel, tool_use_id
from projects import PROJECTS, Unavailable, git_environment, materialise


class Failure(Exception):
    """A check had another result than expected."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def git(directory, *arguments):
    done = subprocess.run(["git", *arguments], cwd=directory, env=git_environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(done.returncode == 0, "git %s: %s" % (" ".join(arguments), done.stderr.decode(errors="replace")))
    return done.stdout


def tree(directory):
    """Returns all files except git's and ignored ones by path: kind, executable bit and bytes."""
    names = git(directory, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")
    found = {}
    for name in filter(None, names):
        path = directory / os.fsdecode(name)
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.exists():
            found[name] = ("file", path.stat().st_mode & 0o100, path.read_bytes())
    return found


def differences(old, new):
    return {os.fsdecode(name) for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def passes(project, directory):
    environment = dict(os.environ, **project.environment)
    done = subprocess.run(project.test, cwd=directory, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode == 0


def clean_clone(repository, directory):
    git(repository.parent, "clone", "--quiet", str(repository), str(directory))
    return directory


def check_told(project, results):
    for (turn, index), (is_error, pieces) in project.told.items():
        call = "call %d of turn %d" % (index, turn)
        check((turn, index) in results, call + " has no result")
        found_error, text = results[turn, index]
        check(found_error == is_error, "%s: is_error is %s: %s" % (call, found_error, text[:400]))
        for piece in pieces:
            check(piece in text, "%s does not say %r: %s" % (call, piece, text[:400]))


def run_by_hand(project, work, repository):
    """Checks the script: the calls have the expected results, and git makes the patch."""
    results = by_hand.carry_out(project.turns, repository)
    patch = work / "out.diff"
    git(repository, "add", "--intent-to-add", "--all")
    users = [":(exclude)" + name for name in project.uncommitted]
    patch.write_bytes(git(repository, "diff", "--binary", "HEAD", "--", ".", *users))
    return patch, results


def run_bailiwick(project, work, repository):
    """Lets Bailiwick make the repair, and checks the results."""
    patch, home, temp = work / "out.diff", work / "home", work / "tmp"
    temp.mkdir()
    environment = dict(os.environ, ANTHROPIC_API_KEY="dummy", BAILIWICK_HOME=str(home), TMPDIR=str(temp))
    with ScriptedModel(project.turns) as model:
        command = [os.environ["BAILIWICK"], "exec", "--mode", "auto", "--net", "off", "--base-url", model.url,
                   "--patch", str(patch), "-C", str(repository), project.prompt]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=900)
        told = model.tool_results()
    check(done.returncode == 0, "exit status %d: %s" % (done.returncode, done.stderr.decode(errors="replace")[-2000:]))
    left = sorted(path.name for path in temp.iterdir())
    check(not left, "left in the temporary directory: %s" % left)
    places = [(turn, index) for turn, blocks in enumerate(project.turns) for index in range(len(blocks))]
    return patch, {place: told[tool_use_id(*place)] for place in places if tool_use_id(*place) in told}


def check_patch(project, work, repository, patch, before):
    after = tree(repository)
    expected = project.changed | project.moved
    check(differences(before, after) == expected, "changed in the project: %s" % differences(before, after))
    clone = clean_clone(repository, work / "clone")
    base = tree(clone)
    check(not passes(project, clone), "the test passes before the fix")
    git(clone, "apply", "--check", str(patch))
    git(clone, "apply", "--whitespace=nowarn", str(patch))
    patched = tree(clone)
    check(differences(base, patched) == expected, "changed by the patch: %s" % differences(base, patched))
    wrong = {name for name in expected if patched.get(os.fsencode(name)) != after.get(os.fsencode(name))}
    check(not wrong, "the patch and the project differ in %s" % wrong)
    check(passes(project, clone), "the test fails after the fix")


def attempt(project, cache, run):
    work = Path(tempfile.mkdtemp(prefix="real-projects-"))
    try:
        repository = work / "project"
        materialise(project, cache, repository)
        before = tree(repository)
        patch, results = run(project, work, repository)
        check_told(project, results)
        check_patch(project, work, repository, patch, before)
    finally:
        shutil.rmtree(work)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by-hand", action="store_true", help="prove the scripts, without Bailiwick")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a project; all of them if none is named")
    options = parser.parse_args()
    unknown = set(options.names) - {project.name for project in PROJECTS}
    if unknown:
        parser.error("no such project: %s" % ", ".join(sorted(unknown)))
    if not options.by_hand and not os.access(os.environ["BAILIWICK"], os.X_OK):
        parser.error("no program at %s; build it, or name it by BAILIWICK" % os.environ["BAILIWICK"])
    cache = Path(os.environ["BAILIWICK_PROJECT_CACHE"])
    count = Counter()
    for project in PROJECTS:
        if options.names and project.name not in options.names:
            continue
        outcome, reason = judge(project, cache, run_by_hand if options.by_hand else run_bailiwick)
        count[outcome] += 1
        print("%s: %s%s" % (outcome, project.name, reason), file=sys.stdout if outcome == "passed" else sys.stderr)
    print("%d passed, %d failed, %d skipped" % (count["passed"], count["failed"], count["skipped"]))
    return 1 if count["failed"] else 0


def judge(project, cache, run):
    try:
        attempt(project, cache, run)
    except Unavailable as reason:
        return "skipped", ": %s" % reason
    except (Failure, subprocess.TimeoutExpired) as reason:
        return "failed", ": %s" % reason
    return "passed", ""


if __name__ == "__main__":
    sys.exit(main())
