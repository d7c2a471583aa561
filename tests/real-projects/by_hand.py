"""Carries out the tool calls that change files without Bailiwick, to show that a script is right."""

import re
import subprocess


def carry_out(turns, directory):
    """Carries out the calls. Returns the results by (turn, index in the turn), each as (is_error, text)."""
    results = {}
    for turn, blocks in enumerate(turns):
        for index, block in enumerate(blocks):
            if not isinstance(block, str):
                results[turn, index] = call(directory, *block)
    return results


def call(directory, tool, arguments):
    try:
        return False, TOOLS[tool](directory, arguments)
    except (OSError, ValueError) as error:
        return True, str(error)


def write_file(directory, arguments):
    path = directory / arguments["path"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(arguments["content"].encode())
    return ""


def edit_file(directory, arguments):
    path = directory / arguments["path"]
    text = path.read_bytes().decode()
    ends = "\r\n" if "\r\n" in text else "\n"
    for edit in arguments.get("edits", [arguments]):
        old, new = (edit[key].replace("\n", ends) for key in ("old_string", "new_string"))
        if text.count(old) != 1:
            raise ValueError("old_string occurs %d times" % text.count(old))
        text = text.replace(old, new)
    path.write_bytes(text.encode())
    return ""


def read_file(directory, arguments):
    lines = (directory / arguments["path"]).read_text().splitlines(keepends=True)
    first = arguments.get("offset", 1) - 1
    return "".join(lines[first:first + arguments.get("limit", len(lines))])


def list_directory(directory, arguments):
    return "\n".join(str(path) for path in (directory / arguments["path"]).rglob("*"))


def search_files(directory, arguments):
    root = directory / arguments.get("path", ".")
    found = []
    for path in root.rglob(arguments.get("glob", "*")):
        if path.is_file() and ".git" not in path.parts:
            text = path.read_bytes().decode(errors="replace")
            if re.search(arguments["pattern"], text):
                found += ["%s:%s" % (path.relative_to(directory), line) for line in text.splitlines()
                          if re.search(arguments["pattern"], line)]
    return "\n".join(found)


def shell_exec(directory, arguments):
    done = subprocess.run(["bash", "-c", arguments["command"]], cwd=directory, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout + "\nexit %d" % done.returncode


TOOLS = {name: globals()[name] for name in
         ("write_file", "edit_file", "read_file", "list_directory", "search_files", "shell_exec")}
