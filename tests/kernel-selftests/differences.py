"""The expected differences between outside and a tier: rows of the tables in docs/selftests.md that name tests."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

COLUMNS = ["tests", "no capabilities", "full", "floor", "why"]
WAYS = COLUMNS[1:4]


@dataclass
class Row:
    program: str
    patterns: list
    became: dict

    def names(self, test):
        program, _, name = test.partition(" ")
        return program == self.program and any(fnmatchcase(name, pattern) for pattern in self.patterns)


class Listed:
    def __init__(self, rows):
        self.rows = rows

    @classmethod
    def read(cls, path):
        rows, within = [], False
        for line in path.read_text().splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells == COLUMNS:
                within = True
            elif not line.startswith("|"):
                within = False
            elif within and not set(line) <= set("|- "):
                rows.append(cls.row(cells))
        return cls(rows)

    @staticmethod
    def row(cells):
        if len(cells) != len(COLUMNS) or not cells[-1]:
            raise SystemExit("not a row of the list: %s" % " | ".join(cells))
        program, *patterns = re.findall(r"`([^`]+)`", cells[0])
        return Row(program, patterns, dict(zip(WAYS, cells[1:4])))

    def faults(self, measured):
        """Returns sentences about the results that contradict the list."""
        outside = measured["outside"]
        faults = []
        for test in sorted(set().union(*measured.values())):
            rows = [row for row in self.rows if row.names(test)]
            if len(rows) > 1:
                faults.append("%s is listed %d times" % (test, len(rows)))
            for way in WAYS:
                if way in measured:
                    expected = rows[0].became[way] if rows else outside.get(test, "is missing")
                    became = measured[way].get(test, "is missing")
                    if became != expected:
                        faults.append("%s: %s: %s, the list says %s" % (way, test, became, expected))
        return faults + self.idle(outside)

    def idle(self, outside):
        """Returns the patterns that match no test."""
        every = [(row.program, pattern) for row in self.rows for pattern in row.patterns]
        named = lambda program, pattern: any(Row(program, [pattern], {}).names(test) for test in outside)
        return ["%s `%s` is no test" % each for each in every if not named(*each)]
