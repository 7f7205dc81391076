"""Command lines that make missing runs, for people to copy."""

from __future__ import annotations

import shlex
from pathlib import Path


def command(*words: str, runs: Path) -> str:
    """A command of ours that would make what is missing in a folder of runs.

    >>> command("reproduce", "steps", runs=Path("my runs"))
    "pullback reproduce steps --runs 'my runs'"
    """
    where = [] if runs == Path("runs") else ["--runs", str(runs)]
    return shlex.join(["pullback", *words, *where])
