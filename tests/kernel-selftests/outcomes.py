"""What a program of the kernel's selftest harness says of its tests: TAP version 13, as kselftest.h prints it."""

import re

PLAN = re.compile(r"^1\.\.(\d+)$", re.M)
LINE = re.compile(r"^(ok|not ok) (\d+) (\S+)(?: # (SKIP|XFAIL))?.*$", re.M)


def outcomes(program, text):
    """`passes`, `fails` or `skips` by `program test`; a test of which nothing is said any more is not there."""
    found = {}
    for word, _, test, mark in LINE.findall(text):
        found["%s %s" % (program, test)] = "skips" if mark == "SKIP" else "passes" if word == "ok" or mark == "XFAIL" else "fails"
    planned = PLAN.search(text)
    if planned is None or int(planned[1]) != len(found):
        found["%s (its end)" % program] = "fails"
    return found
