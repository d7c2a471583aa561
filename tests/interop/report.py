"""Prints a line for each check, and the number of checks with each result."""

import traceback
from collections import Counter


class Failure(Exception):
    """A check had another result than expected."""


def expect(condition, message):
    if not condition:
        raise Failure(message)


class Report:
    """Runs checks and prints the results. A check fails by an exception, and may return a remark."""

    def __init__(self):
        self.count = Counter()

    def check(self, name, run, *arguments):
        try:
            seen = run(*arguments)
        except Failure as reason:
            return self.say("failed", name, str(reason))
        except Exception:
            return self.say("failed", name, traceback.format_exc())
        self.say("passed", name, seen)

    def skip(self, name, reason):
        self.say("skipped", name, reason)

    def say(self, outcome, name, detail):
        self.count[outcome] += 1
        print("%s: %s%s" % (outcome, name, ": %s" % detail if detail else ""), flush=True)

    def close(self):
        """Prints the numbers of checks by result, and returns the exit status of the program."""
        print("%d passed, %d failed, %d skipped" % tuple(self.count[key] for key in ("passed", "failed", "skipped")))
        return 1 if self.count["failed"] or not self.count["passed"] else 0
