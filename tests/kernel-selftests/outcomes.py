"""Parses the output of a program of the kernel's selftest harness: TAP version 13, as kselftest.h prints it."""

import re

PLAN = re.compile(r"^1\.\.(\d+)$", re.M)
LINE = re.compile(r"^(ok|not ok) (\d+) (\S+)(?: # (SKIP|XFAIL))?.*$", re.M)


def outcomes(program, text):
    """Returns `passes`, `fails` or `skips` by `program test`. Tests without a result are left out."""
    found = {}
    for word, _, test, mark in LINE.findall(text):
        found["%s %s" % (program, test)] = "skips" if mark == "SKIP" else "passes" if word == "ok" or mark == "XFAIL" else "fails"
    planned = PLAN.search(text)
    if planned is None or int(planned[1]) != len(found):
        found["%s (its end)" % program] = "fails"
    return found
