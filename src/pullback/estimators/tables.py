"""The documentation's table of estimators, made from the registry.

    python -m pullback.estimators.tables docs/estimators.md

writes it between the two markers of the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pullback.estimators.registry import ENTRIES, Entry

BEGIN = "<!-- estimators: python -m pullback.estimators.tables docs/estimators.md -->"
END = "<!-- end of estimators -->"
_HEADINGS = ("name", "made by", "decoder sees", "decoder calls", "inference calls")


def markdown() -> str:
    """All estimators as a Markdown table: names, how to make them, and calls in one training step.

    >>> print(markdown().splitlines()[0])
    | name | made by | decoder sees | decoder calls | inference calls |
    """
    rows = [_HEADINGS, ("---",) * len(_HEADINGS), *map(_cells, ENTRIES)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def renewed(page: str) -> str:
    """The page with today's table between its markers."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{markdown()}\n{END}{rest.split(END)[1]}"


def _cells(entry: Entry) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in (entry.name, *entry.aliases))
    sees = f"{'random ' if entry.stochastic else ''}{entry.sees}{'s' if entry.downstream.of else ''}"
    only = "" if entry.only is None else f" ({entry.only.__name__} only)"
    calls = ", ".join(f"{name}: {count}" for name, count in entry.inference.items())
    return names, f"`{entry.make()!r}`{only}", sees, str(entry.downstream), calls


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(renewed(path.read_text()))
