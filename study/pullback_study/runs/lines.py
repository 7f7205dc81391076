"""Where a key stands in a TOML file: the parser of the standard library does not tell."""

from __future__ import annotations

import re

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
_KEY = re.compile(r"""\s*(?:"([^"]+)"|'([^']+)'|([A-Za-z0-9_-]+))\s*[=.]""")


class Lines:
    r"""The line of every key of a TOML file.

    >>> lines = Lines('task = "synthetic"\n[fields]\nseed = [0, 1]\n[[grid]]\nclusters = 3\n')
    >>> lines.of("fields", "seed"), lines.of("grid", "clusters", part=0), lines.of("grid", "seed", part=0)
    (3, 5, 4)

    A key that is not found, as in an inline table, has the line of its table.
    """

    def __init__(self, text: str) -> None:
        self._found: dict[tuple[str, int, str], int] = {}
        counts: dict[str, int] = {}
        table, part = "", 0
        for number, line in enumerate(text.splitlines(), start=1):
            if heading := _TABLE.fullmatch(line.partition("#")[0].rstrip()):
                table = heading[2].strip("\"'")
                part = counts.get(table, 0) if heading[1] == "[[" else 0
                counts[table] = part + 1
                self._found[table, part, ""] = number
            elif key := _KEY.match(line):
                name = next(name for name in key.groups() if name)
                self._found.setdefault((table, part, name), number)

    def of(self, table: str, key: str = "", part: int = 0) -> int:
        """The line of a key of a table, or of its `part`-th where it is repeated; "" is the top of the file."""
        for place in ((table, part, key), (table, part, ""), (key, part, ""), ("", 0, table)):
            if place in self._found:
                return self._found[place]
        return 1
