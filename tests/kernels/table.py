"""Prints the tables of docs/kernels.md, with a column for each kernel, from the logs of the guests."""

import json
import re
import sys

BEGIN, END = re.compile(r"^== begin (\S+)$"), re.compile(r"^== end (\S+) (\d+)$")


def sections(path):
    """Returns the release of a guest's kernel, and the output and status of each check by name."""
    text = open(path, encoding="utf-8", errors="replace").read().replace("\r", "")
    release = re.search(r"^== kernel (\S+)", text, re.M)
    found, name, lines = {}, None, []
    for line in text.splitlines():
        if match := BEGIN.match(line):
            name, lines = match[1], []
        elif match := END.match(line):
            found[match[1]] = ("\n".join(lines), int(match[2]))
            name = None
        elif name:
            lines.append(line)
    return (release[1] if release else path), found


def page(checks, tier, user):
    """Returns the page of promises that a check has printed, or an empty one."""
    text, _ = checks.get(f"promises-{tier}-{user}", ("{}", 0))
    start = text.find("{")
    try:
        return json.loads(text[start:]) if start >= 0 else {}
    except json.JSONDecodeError:
        return {}


def doctor(checks, user):
    text, status = checks.get(f"doctor-{user}", ("", None))
    tier = re.search(r"^\S+ +tier +(\S+?)[:,]", text, re.M)
    return f"{tier[1]}, status {status}" if tier else f"refused, status {status}"


def demo(checks, tier, user):
    text, status = checks.get(f"demo-{tier}-{user}", ("", None))
    if status is None:
        return "not run"
    count = {word: len(re.findall(rf"^  {word} ", text, re.M)) for word in ("blocked", "undone", "GOT THROUGH")}
    if not any(count.values()):
        return f"refused, status {status}"
    through = f", {count['GOT THROUGH']} got through" if count["GOT THROUGH"] else ""
    return f"{count['blocked']} blocked, {count['undone']} undone{through}"


def held(checks, tier, user, name):
    found = page(checks, tier, user)
    for promise in found.get("promises", []):
        if promise["name"] == name and "tier" in found:
            return promise["held_by"]
    return "–"


def escape(checks, name):
    text, status = checks.get(f"escape-{name}", ("", None))
    if status is None:
        return "not run"
    result = re.search(r"^test result: (\S+) (\d+) passed; (\d+) failed", text, re.M)
    if not result:
        return f"status {status}"
    return f"{result[2]} passed" + (f", {result[3]} failed" if result[3] != "0" else "")


def main(paths):
    guests = [sections(path) for path in paths]
    rows = []

    def row(name, of):
        rows.append((name, [str(of(checks)) for _, checks in guests]))

    row("Landlock ABI", lambda checks: page(checks, "floor", "root").get("landlock_abi", "–"))
    for user in ("root", "plain"):
        row(f"`doctor`, {user}: runs start in", lambda checks, user=user: doctor(checks, user))
    for tier in ("full", "floor"):
        for user in ("root", "plain"):
            row(f"`demo --attack`, {tier}, {user}", lambda checks, t=tier, u=user: demo(checks, t, u))
    names = [promise["name"] for _, checks in guests for promise in page(checks, "floor", "root").get("promises", [])]
    for name in dict.fromkeys(names):
        for tier in ("full", "floor"):
            of = [held(checks, tier, "plain", name) for _, checks in guests]
            if len(set(of) - {"–"}) > 1:
                rows.append((f"{name}, {tier}, plain", of))
    tests = [name.removeprefix("escape-") for _, checks in guests for name in checks if name.startswith("escape-")]
    for name in dict.fromkeys(tests):
        row(f"`escape` {name}", lambda checks, name=name: escape(checks, name))
    print("| | " + " | ".join(release for release, _ in guests) + " |")
    print("| --- |" + " --- |" * len(guests))
    for name, cells in rows:
        print(f"| {name} | " + " | ".join(cells) + " |")


main(sys.argv[1:])
