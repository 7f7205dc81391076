"""Whether the files that runs were trained on are still what they were.

The hash of a run holds the names of its data alone; the files' checksums stand in its result and in its checkpoints.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pullback_study.runs.run import Run
from pullback_study.tasks.task import Task


def checksums(files: Mapping[str, Path]) -> dict[str, str]:
    """The SHA-256 of each file; of one that nothing has touched since, as this process remembers it."""
    stats = {name: path.stat() for name, path in files.items()}
    return {name: _checksum(files[name], (at.st_size, at.st_ino, at.st_mtime_ns, at.st_ctime_ns)) for name, at in stats.items()}


def change(recorded: Any, files: Mapping[str, Path]) -> str | None:
    """How files differ from recorded checksums, in words; None if they do not, or if there is nothing to compare."""
    with contextlib.suppress(OSError):
        if isinstance(recorded, dict):
            for name, found in checksums({name: path for name, path in files.items() if name in recorded}).items():
                if found != recorded[name]:
                    return f"{files[name]} has changed since: its SHA-256 was {recorded[name]} and is {found}"
    return None


def changed_since(task: Task, run: Run) -> str | None:
    """Why the result of a run is not that of the data at hand; None if it is, is not there yet, or cannot be told."""
    try:
        files = task.sources(run.config) if run.done else {}
    except ValueError:
        return None
    data = run.result.get("data") if files else None
    difference = change(data.get("checksums"), files) if isinstance(data, dict) else None
    return difference and (
        f"{run.path} is a result on other data: {difference}; put that file back, use another folder of runs (--runs), or "
        f"delete {run.path} to train this run again"
    )


@functools.lru_cache(maxsize=64)
def _checksum(path: Path, stamp: tuple[int, ...]) -> str:
    from pullback_study.corpora.files import remembered_sha256
    from pullback_study.corpora.layout import cache_folder

    return remembered_sha256(path, cache_folder() / "checksums")
