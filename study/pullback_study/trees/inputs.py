"""The arguments of the commands: runs by the beginning of their names, and sentences."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from pullback_study.corpora.files import read_lines

Tokens = tuple[str, ...]


def find_run(given: Path) -> Path:
    """The directory of a run: the one given, or the only one whose path begins like this (also in `runs/`)."""
    if given.is_dir():
        return given
    folders = [given.parent] + ([Path("runs")] if given.parent == Path() else [])
    found = [path for folder in folders for path in sorted(folder.glob(f"{given.name}*/config.json"))]
    if not found:
        raise ValueError(f"there is no run {given}; `pullback runs` lists them")
    if len(found) > 1:
        names = ", ".join(str(path.parent) for path in found[:4])
        raise ValueError(f"{len(found)} runs begin with {given}: {names}{', ...' if len(found) > 4 else ''}")
    return found[0].parent


def read_sentences(given: Sequence[str], file: Path | None) -> list[Tokens]:
    """Sentences from the command line and the lines of a file, split at white space; empty lines are left out."""
    lines = list(given)
    if file == Path("-"):
        lines += sys.stdin.read().removeprefix("\ufeff").split("\n")
    elif file is not None:
        lines += [line for _, line in read_lines(file)]
    sentences = [tokens for tokens in (tuple(line.split()) for line in lines) if tokens]
    if not sentences:
        raise ValueError('there is no sentence to parse; pass one in quotes ("A fun film .") or a --file')
    return sentences
