"""The report as a file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from pullback_study.report.collect import collect
from pullback_study.report.page import render
from pullback_study.report.performance import find
from pullback_study.runs import write_atomically


def write(out: Path, root: Path, benchmarks: Sequence[Path]) -> int:
    """Write the page; returns its size in bytes."""
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder; name a file, such as {out / 'report.html'}")
    page = render({**collect(root, benchmarks), "made": now()}).encode()
    try:
        write_atomically(out, page)
    except OSError as error:
        raise ValueError(f"{out} cannot be written: {error.strerror or error}") from error
    return len(page)


def find_benchmarks(root: Path, given: Sequence[Path] | None) -> list[Path]:
    """The files that were asked for, which must be there; else those in the usual places."""
    if given is None:
        return find(root)
    for path in given:
        if not path.is_file():
            raise ValueError(f"--benchmarks {path} is not a file; `python -m benchmarks --json {path}` makes it")
    return list(given)


def now() -> str:
    """The time, in the page's words."""
    time = datetime.now(UTC)
    return f"on {time.day} {time:%B %Y at %H:%M} UTC"
