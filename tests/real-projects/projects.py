"""The projects: for each its source, its bug, the replies of the model, and the expected results."""

import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).parent


class Unavailable(Exception):
    """The sources of a project cannot be had on this machine."""


@dataclass
class Project:
    name: str
    #: Function that puts the sources into a directory, given the cache of downloads.
    fetch: object
    #: Files that are written before the first commit: the failing test, and files that the scenario needs.
    committed: dict
    #: Uncommitted text of the user: appended to existing files, or written as new ones.
    uncommitted: dict
    prompt: str
    #: The model's replies: lists of text and (tool, arguments).
    turns: list
    #: Command that fails before the repair and passes after it.
    test: list
    #: The paths that the patch must name, and no others.
    changed: set
    #: Paths that the script moves away.
    moved: set = field(default_factory=set)
    #: Expected tool results: (turn, index in the turn) -> (is_error, pieces of the text).
    told: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)


def sdist(requirement, archive):
    """Returns a function that gets a source distribution from the Python package index, by pip."""

    def fetch(cache, directory):
        path = cache / archive
        if not path.exists():
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-binary", ":all:", "--no-deps"]
            run(pip + ["--dest", str(cache), requirement], "pip cannot fetch " + requirement)
        with tarfile.open(path) as archive_file:
            archive_file.extractall(directory.parent, filter="data")
        (directory.parent / archive.removesuffix(".tar.gz")).rename(directory)

    return fetch


def crate(name, version):
    """Returns a function that gets the sources of a crate, by cargo."""

    def fetch(cache, directory):
        vendored = cache / ("%s-%s" % (name, version))
        if not vendored.exists():
            if shutil.which("cargo") is None:
                raise Unavailable("no cargo on this machine")
            asking = directory.parent / "asking"
            (asking / "src").mkdir(parents=True)
            (asking / "src/lib.rs").touch()
            (asking / "Cargo.toml").write_text(
                '[package]\nname = "asking"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
                '[dependencies]\n%s = "=%s"\n' % (name, version))
            run(["cargo", "vendor", "--quiet", "vendor"], "cargo cannot fetch " + name, cwd=asking)
            shutil.move(asking / "vendor" / name, vendored)
            shutil.rmtree(asking)
        shutil.copytree(vendored, directory)
        (directory / ".cargo-checksum.json").unlink()

    return fetch


def run(command, failure, **options):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True, **options)
    if result.returncode != 0:
        raise Unavailable("%s: %s" % (failure, (result.stderr.strip().splitlines() or ["no reason given"])[-1]))


IGNORED = "__pycache__/\n*.pyc\n/target\n"

MARSHMALLOW = Project(
    name="marshmallow",
    fetch=sdist("marshmallow==3.0.0", "marshmallow-3.0.0.tar.gz"),
    committed={
        ".gitignore": IGNORED,
        "tests/test_inner_datetime.py": '''\
import unittest

from marshmallow import Schema, fields


class InnerDateTime(unittest.TestCase):
    def test_a_list_of_datetimes_takes_the_format_of_its_schema(self):
        class Times(Schema):
            class Meta:
                datetimeformat = "rfc"

            times = fields.List(fields.DateTime())

        self.assertEqual(Times().fields["times"].inner.format, "rfc")
''',
    },
    uncommitted={"README.rst": "\nThe user's own unfinished sentence\n", "notes/todo.txt": "call J\u00e9r\u00f4me\n"},
    prompt="A List of DateTime fields fails when its schema is made. Fix it.",
    turns=[
        ["I'll look at the sources, the test and every place that binds a field.",
         ("list_directory", {"path": "src", "depth": 2}),
         ("read_file", {"path": "tests/test_inner_datetime.py"}),
         ("search_files", {"pattern": r"\.opts\b", "path": "src", "glob": "*.py"})],
        ["The method of DateTime is the one to change.",
         ("edit_file", {"path": "src/marshmallow/fields.py",
                        "old_string": "    def _bind_to_schema(self, field_name, schema):\n",
                        "new_string": "    def _bind_to_schema(self, field_name, parent):\n"})],
        ["That text occurs more than once; I'll name the lines themselves.",
         ("edit_file", {"path": "src/marshmallow/fields.py", "edits": [
             {"old_string": "or getattr(schema.opts, self.SCHEMA_OPTS_VAR_NAME)",
              "new_string": "or getattr(self.root.opts, self.SCHEMA_OPTS_VAR_NAME)"},
             {"old_string": '    SCHEMA_OPTS_VAR_NAME = "datetimeformat"\n',
              "new_string": '    # An option of the schema at the root: the field may lie in a container.\n'
                            '    SCHEMA_OPTS_VAR_NAME = "datetimeformat"\n'}]}),
         ("write_file", {"path": "docs/\u00e4nderungen/3.0.1 \u2013 \u65e5\u6642.rst",
                         "content": "Dates in lists \u2014 `List(DateTime())` \u2014 work again.\n"})],
        [("shell_exec", {"command": "PYTHONPATH=src python3 -m unittest tests.test_inner_datetime"})],
        ["DateTime asked its parent for options that only the schema has; it asks the root now."],
    ],
    test=[sys.executable, "-m", "unittest", "tests.test_inner_datetime"],
    environment={"PYTHONPATH": "src"},
    changed={"src/marshmallow/fields.py", "docs/\u00e4nderungen/3.0.1 \u2013 \u65e5\u6642.rst"},
    told={
        (0, 1): (False, ["marshmallow"]),
        (0, 2): (False, ["test_a_list_of_datetimes_takes_the_format_of_its_schema"]),
        (0, 3): (False, ["getattr(schema.opts, self.SCHEMA_OPTS_VAR_NAME)"]),
        (1, 1): (True, ["5"]),
        (2, 1): (False, []),
        (2, 2): (False, []),
        (3, 0): (False, ["OK"]),
    },
)

DJANGO_FIX = r"""python3 - <<'END'
from pathlib import Path
path = Path('django/utils/numberformat.py')
text = path.read_text()
old = "    if isinstance(number, Decimal):\n"
assert text.count(old) == 1
path.write_text(text.replace(old, old + '''
        if decimal_pos is not None:
            # Too small for any of the decimal places to be visible: zero.
            cutoff = Decimal('0.' + '1'.rjust(decimal_pos, '0'))
            if abs(number) < cutoff:
                number = Decimal('0')

'''))
END
git diff --stat"""

DJANGO = Project(
    name="django",
    fetch=sdist("Django==2.2", "Django-2.2.tar.gz"),
    committed={
        ".gitignore": IGNORED,
        "tests/tiny_numbers.py": '''\
import unittest
from decimal import Decimal

from django.conf import settings

settings.configure(USE_L10N=False)


class TinyNumbers(unittest.TestCase):
    def test_a_number_too_small_for_its_places_is_zero(self):
        from django.utils.numberformat import format

        self.assertEqual(format(Decimal('1e-200'), '.', decimal_pos=2), '0.00')
        self.assertEqual(format(Decimal('0.01'), '.', decimal_pos=2), '0.01')
''',
    },
    uncommitted={"AUTHORS": "    The user <user@example.invalid>\n", "django/local_settings.py": "DEBUG = True\n"},
    prompt="format() prints 1e-200 with two decimal places as 1.00e-200; it should be 0.00.",
    turns=[
        ["Who formats numbers, in the whole tree?",
         ("search_files", {"pattern": r"abs\(exponent\) \+ len\(digits\) > 200"}),
         ("search_files", {"pattern": "numberformat", "glob": "*.py"})],
        [("shell_exec", {"command": DJANGO_FIX})],
        [("shell_exec", {"command": "python3 -m unittest tests.tiny_numbers"})],
        ["Numbers below the last visible place are formatted as zero now."],
    ],
    test=[sys.executable, "-m", "unittest", "tests.tiny_numbers"],
    changed={"django/utils/numberformat.py"},
    told={
        (0, 1): (False, ["django/utils/numberformat.py"]),
        (0, 2): (False, ["django/utils/formats.py", "tests/utils_tests/test_numberformat.py"]),
        (1, 0): (False, ["django/utils/numberformat.py"]),
        (2, 0): (False, ["OK"]),
    },
)

SHLEX = Project(
    name="shlex",
    fetch=crate("shlex", "1.1.0"),
    committed={
        ".gitignore": IGNORED + "Cargo.lock\n",
        "tests/braces.rs": '''\
#[test]
fn braces_are_quoted() {
    assert_eq!(shlex::quote("{a,b}"), "\\"{a,b}\\"");
    assert_eq!(shlex::quote("plain"), "plain");
}
''',
        "HISTORY.txt": "shlex\r\n\r\n1.1.0\r\n  std is a feature\r\n",
        "ci.txt": "cargo test --offline, and nothing else\n",
    },
    uncommitted={"README.md": "\nThe user's own unfinished sentence\n", "scratch.sh": "echo mine\n"},
    prompt="quote() leaves braces bare, and shells expand them. Fix it, and note it in HISTORY.txt.",
    turns=[
        [("read_file", {"path": "src/lib.rs", "offset": 155, "limit": 35}), ("read_file", {"path": "HISTORY.txt"})],
        [("edit_file", {"path": "src/lib.rs", "old_string": "'=' | '%' => true,",
                        "new_string": "'=' | '%' | '{' | '}' => true,"}),
         ("edit_file", {"path": "HISTORY.txt", "old_string": "  std is a feature\n",
                        "new_string": "  std is a feature\n\n1.1.1\n  braces are quoted\n"}),
         ("shell_exec", {"command": "mkdir ci && mv ci.txt ci/about.txt && "
                                    "printf '#!/bin/sh\\nexec cargo test --offline\\n' > ci/run && chmod +x ci/run"})],
        [("shell_exec", {"command": "ci/run --test braces"})],
        ["Braces are quoted now."],
    ],
    test=["cargo", "test", "--offline", "--test", "braces"],
    changed={"src/lib.rs", "HISTORY.txt", "ci/about.txt", "ci/run"},
    moved={"ci.txt"},
    told={
        (0, 0): (False, ["pub fn quote"]),
        (1, 0): (False, []),
        (1, 1): (False, []),
        (1, 2): (False, []),
        (2, 0): (False, ["test result: ok. 1 passed"]),
    },
)

PROJECTS = [MARSHMALLOW, DJANGO, SHLEX]


def materialise(project, cache, directory):
    """Makes the repository of the project, with uncommitted work of the user."""
    cache.mkdir(parents=True, exist_ok=True)
    project.fetch(cache, directory)
    write(directory, project.committed)
    commit = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "--quiet", "--message", "base"]
    for command in (["git", "init", "--quiet"], ["git", "add", "--all"], commit):
        run(command, " ".join(command[:2]), cwd=directory, env=git_environment())
    write(directory, project.uncommitted, append=True)


def write(directory, files, append=False):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab" if append else "wb") as out:
            out.write(text.encode())


def git_environment():
    """Returns an environment without any user's git configuration."""
    return dict(os.environ, GIT_CONFIG_GLOBAL=os.devnull, GIT_CONFIG_NOSYSTEM="1")
