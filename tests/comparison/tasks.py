"""The tasks: small projects with a bug in each, and the commands by which both agents repair it."""

from dataclasses import dataclass, field

# Text before the name of a task in the task's prompt.
MARK = "scripted task "

# The last command of each task of mini-swe-agent (its config/benchmarks/swebench.yaml).
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat ../patch.txt"


@dataclass
class Task:
    files: dict
    # The command of each step, the same for both agents.
    commands: list
    # The files that a person would submit.
    changed: list
    submission: list = field(default_factory=list)

    def __post_init__(self):
        self.submission = ["git add -A && git diff --cached -- %s > ../patch.txt" % " ".join(self.changed)]

    def prompt(self, name):
        return "A test of this project fails. Mend the source so that it passes (%s%s)." % (MARK, name)


TEST = "python3 -B -m unittest -q 2>&1 | tail -n 3"


def module(source, check):
    return {"lib.py": source, "test_lib.py": "import unittest, lib\n\n\nclass Tests(unittest.TestCase):\n"
            "    def test_it(self):\n        %s\n" % check}


LEAP = module("def is_leap(year):\n    return year % 4 == 0\n", "self.assertFalse(lib.is_leap(1900))")
WINDOWS = module("def total(numbers):\n    sum = 1\n    for number in numbers:\n        sum += number\n    return sum\n",
                 "self.assertEqual(lib.total([1, 2]), 3)")
WINDOWS["lib.py"] = WINDOWS["lib.py"].replace("\n", "\r\n")
SLUG = module("def slug(text):\n    return text.lower().replace(' ', '-')\n", "self.assertEqual(lib.slug(' A  B '), 'a-b')")
MEDIAN = module("def median(values):\n    return sorted(values)[len(values) // 2]\n", "self.assertEqual(lib.median([1, 2, 3, 4]), 2.5)")
NAME = module("def greet(name):\n    return 'Gruss, ' + name\n", "self.assertEqual(lib.greet('Ada'), 'Gruß, Ada')")

TASKS = {
    "sed": Task(LEAP, [
        "ls && cat lib.py test_lib.py", TEST,
        "sed -i 's/year % 4 == 0/year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)/' lib.py",
        TEST, "git diff --stat"], ["lib.py"]),
    "line-ends": Task(WINDOWS, [
        "ls && cat -A lib.py", TEST, "sed -i 's/sum = 1/sum = 0/' lib.py", TEST, "git diff --stat"], ["lib.py"]),
    "document": Task(SLUG, [
        "cat lib.py", TEST,
        "cat > lib.py <<'END'\ndef slug(text):\n    \"\"\"The words of a text, as part of an address.\"\"\"\n"
        "    return '-'.join(text.lower().split())\nEND", TEST, "git status --short"], ["lib.py"]),
    "new-file": Task(MEDIAN, [
        "cat lib.py test_lib.py", TEST,
        "printf 'def middle(values):\\n    return values[(len(values) - 1) // 2:len(values) // 2 + 1]\\n' > middle.py",
        "python3 - <<'END'\nfrom pathlib import Path\nPath('lib.py').write_text('from middle import middle\\n\\n\\n"
        "def median(values):\\n    both = middle(sorted(values))\\n    return sum(both) / len(both)\\n')\nEND", TEST,
        "git status --short"], ["lib.py", "middle.py"]),
    "letters": Task(NAME, ["cat lib.py", TEST, "sed -i 's/Gruss/Gruß/' lib.py", TEST, "git diff"], ["lib.py"]),
    # Measures the cost of a step: the steps do almost nothing.
    "steps": Task(NAME, ["cat lib.py"] * 40 + ["sed -i 's/Gruss/Gruß/' lib.py"], ["lib.py"]),
}
